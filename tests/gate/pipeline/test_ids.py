"""Which batch a response becomes: ids, second deliveries, successors and dependents."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from patchq.core.formats.envelope import front_matter
from patchq.gate.land import worker
from patchq.gate.pipeline import process
from tests.helpers.command import block, codes, drop, patchq, report
from tests.helpers.gitrepo import commit_files, git, make_repo, write_config
from tests.helpers.sessions import opened

FILES = {"a.txt": "one\ntwo\nthree\n", "b.txt": "b\n", "c.txt": "c\n"}
EDIT = block("a.txt", "one\ntwo\n", "one\n2\n")
OTHER = block("b.txt", "b\n", "B\n")
THIRD = block("c.txt", "c\n", "C\n")
HOLDS = "mode: auto\npaths: {review: [a.txt, c.txt]}\n"
"""Proposals wait, and what depends on them is held."""
BAD = block("a.txt", "nowhere\n", "x\n")


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    repo = make_repo(tmp_path / "repo", FILES)
    patchq("init", cwd=repo)
    configure(repo)
    return repo


def configure(repo: Path, more: str = "mode: review\n") -> None:
    write_config(repo, f"version: 1\n{more}")


def run(repo: Path, *responses: tuple[str, str], code: int = 0) -> list[dict[str, Any]]:
    """Have the responses, file name and text, worked off; their reports in the same order."""
    ids = []
    for name, text in responses:
        drop(repo / ".patchq", {name: text})
        ids.append(patchq("run", cwd=repo, code=None).out.split()[1])
    reports = [told(repo, id) for id in ids]
    assert any(each["state"] == "rejected" for each in reports) == bool(code)
    return reports


def told(repo: Path, id: str) -> dict[str, Any]:
    return report(repo / ".patchq", id)


def matter(text: str, **keys: str) -> str:
    lines = "".join(f"{key}: {value}\n" for key, value in keys.items())
    return f"---\n{lines}---\n{text}"


def branches(repo: Path) -> list[str]:
    names = git("for-each-ref", "--format=%(refname:short)", "refs/heads/patchq", cwd=repo)
    return [name.removeprefix("patchq/") for name in names.split()]


def test_a_defect_in_reading_a_header_refuses_that_response_alone(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(data: bytes) -> Any:
        if data.startswith(b"---"):
            raise ZeroDivisionError
        return front_matter.open_response(data)

    monkeypatch.setattr(process, "open_response", broken)
    monkeypatch.setattr(process, "header_of", lambda data: broken(data).header)
    drop(repo / ".patchq", {"x.md": matter(EDIT, agent="a"), "y.md": OTHER})
    session = opened(repo, "mode: review\n")
    assert worker.turn(session, lambda report: None) == 2
    session.close()
    assert codes(told(repo, "x")) == [("fault.crashed", "error")]
    assert told(repo, "y")["state"] == "proposed"


def test_id_comes_from_the_front_matter_else_the_file(repo: Path) -> None:
    names = {
        "two  words & more.md": "two-words-more",
        "x.lock.md": "x-lock-2",
        "n" * 150: "n" * 100,
    }
    git("branch", "patchq/x-lock", cwd=repo)
    for number, (name, id) in enumerate(names.items()):
        (one,) = run(repo, (name, block(f"new{number}.txt", "", "x\n")))
        assert (one["id"], one["source"]["name"]) == (id, name)
    (own,) = run(repo, ("a.md", matter(EDIT, id="../../x")))
    assert sorted(branches(repo)) == sorted([*names.values(), own["id"], "x-lock"])


def test_same_bytes_while_the_first_waits_and_when_it_is_gone(repo: Path) -> None:
    first, second = run(repo, ("x.md", EDIT), ("y.md", EDIT))
    assert (first["state"], second["state"]) == ("proposed", "duplicate")
    assert second["duplicate_of"] == "x"
    assert branches(repo) == ["x"]
    patchq("discard", "x", cwd=repo)
    (third,) = run(repo, ("z.md", EDIT))
    assert (third["state"], third["id"]) == ("proposed", "z")
    first, second = run(repo, ("v.md", BAD), ("w.md", BAD), code=1)
    assert [first["state"], second["state"]] == ["rejected", "rejected"]


def test_same_bytes_once_landed_and_rebased_and_after_their_lines_changed(repo: Path) -> None:
    run(repo, ("x.md", EDIT))
    patchq("accept", "x", cwd=repo)
    git("reset", "-q", "--hard", "HEAD~1", cwd=repo)
    commit_files(repo, {"b.txt": "moved\n"})
    git("cherry-pick", "ORIG_HEAD", cwd=repo)
    start = commit_files(repo, {"a.txt": "one\n2\nthree\nfour\n"})
    (second,) = run(repo, ("y.md", EDIT))
    assert (second["state"], second["duplicate_of"]) == ("duplicate", "x")
    assert git("rev-parse", "main", cwd=repo) == start
    commit = commit_files(repo, {"a.txt": "one\ntwo\nthree\n"})
    (third,) = run(repo, ("z.md", EDIT), code=1)
    (problem,) = third["problems"]
    assert (problem["code"], problem["conflicts_with"]["commit"]) == ("conflict.base", commit)


def test_a_retry_supersedes_what_waits_unless_it_is_refused(repo: Path) -> None:
    first, second = run(repo, ("x.md", BAD), ("x.md", matter(EDIT, retries="x")), code=1)
    assert (first["state"], second["state"]) == ("rejected", "proposed")
    assert (second["id"], second["retry"]["of"]) == ("x-2", "x")
    run(repo, ("y.md", matter(BAD, retries="x-2")), code=1)
    assert branches(repo) == ["x-2"]
    run(repo, ("z.md", matter(EDIT, retries="x-2")))
    assert (told(repo, "x-2")["state"], branches(repo)) == ("superseded", ["z"])


def test_explicit_id_supersedes_the_same_agent_s_alone(repo: Path) -> None:
    keys = {"id": "fix", "agent": "coder"}
    others = (matter(OTHER, id="lib", agent="a"), matter(THIRD, id="lib", agent="b"))
    run(repo, *((f"{n}.md", text) for n, text in enumerate((*others, matter(EDIT, id="lib")))))
    tries = [matter(block(f"{n}.txt", "", "x\n"), **keys) for n in range(3)]
    first, second, third = run(repo, *((f"{n}.md", text) for n, text in enumerate(tries)))
    assert [first["duplicate_of"], second["duplicate_of"]] == ["fix-2", "fix-3"]
    assert third["state"] == "proposed"
    assert branches(repo) == ["fix-3", "lib", "lib-2", "lib-3"]


def test_branch_that_is_checked_out_outlives_its_batch(repo: Path) -> None:
    run(repo, ("x.md", EDIT))
    git("checkout", "-q", "patchq/x", cwd=repo)
    configure(repo, "target: main\n")
    run(repo, ("y.md", matter(OTHER, retries="x")))
    assert told(repo, "x")["state"] == "superseded"
    assert branches(repo) == ["x", "y"]
    assert git("status", "--porcelain", "--untracked-files=no", cwd=repo) == ""


def after(text: str, *ids: str) -> str:
    return matter(text, depends_on=f"[{', '.join(ids)}]")


def test_dependent_waits_until_the_other_has_landed(repo: Path) -> None:
    configure(repo, HOLDS)
    run(repo, ("x.md", EDIT), ("y.md", after(OTHER, "x")))
    held = told(repo, "y")
    assert (held["state"], codes(held)) == ("held", [("depends.failed", "warning")])
    assert (repo / ".patchq/active/y.report.json").exists()
    assert "\n  y  waits for " in patchq("status", cwd=repo).out
    patchq("accept", "x", cwd=repo)
    patchq("run", cwd=repo)
    assert (told(repo, "y")["state"], codes(told(repo, "y"))) == ("applied", [])
    assert not (repo / ".patchq/active/y.report.json").exists()


@pytest.mark.parametrize("way", ["rejected", "discarded", "deleted"])
def test_dependent_of_what_will_never_land_is_refused(repo: Path, way: str) -> None:
    configure(repo, HOLDS)
    run(repo, ("x.md", BAD if way == "rejected" else EDIT), code=way == "rejected")
    drop(repo / ".patchq", {"y.md": after(OTHER, "x")})
    if way != "rejected":
        assert patchq("run", cwd=repo).code == 0
        assert told(repo, "y")["state"] == "held"
    if way == "discarded":
        patchq("discard", "x", cwd=repo)
    elif way == "deleted":
        git("branch", "-q", "-D", "patchq/x", cwd=repo)
    assert patchq("run", cwd=repo, code=1).out.startswith("rejected   y  depends.failed")
    assert codes(told(repo, "y")) == [("depends.failed", "error")]
    assert told(repo, "y")["problems"][0]["conflicts_with"]["batch"] == "x"


def test_circle_is_refused_as_a_whole(repo: Path) -> None:
    ids = ["n0", "n1", "n2"]
    for one, other in zip(ids, [*ids[1:], ids[0]], strict=True):
        drop(repo / ".patchq", {f"{one}.md": after(OTHER + one, other)})
    drop(repo / ".patchq", {"outside.md": after(EDIT, "n0")})
    patchq("run", cwd=repo, code=1)
    for id in (*ids, "outside"):
        assert codes(told(repo, id)) == [("depends.failed", "error")], id


def test_replacement_of_a_dependency_counts(repo: Path) -> None:
    configure(repo, HOLDS)
    run(repo, ("x.md", EDIT), ("y.md", after(OTHER, "x")))
    run(repo, ("x.md", matter(THIRD, retries="x")))
    assert told(repo, "x")["duplicate_of"] == "x-2"
    assert told(repo, "y")["state"] == "held"
    assert "x-2" in told(repo, "y")["problems"][0]["message"]
    patchq("accept", "x-2", cwd=repo)
    patchq("run", cwd=repo)
    assert told(repo, "y")["state"] == "applied"


def test_unknown_dependency_is_waited_for_so_long(repo: Path) -> None:
    configure(repo, "queue: {hold_seconds: 60}\n")
    drop(repo / ".patchq", {"x.md": after(EDIT, "nobody")})
    assert patchq("run", cwd=repo).out.startswith("held       x")
    assert told(repo, "x")["state"] == "held"
    configure(repo, "queue: {hold_seconds: 0.2}\n")
    time.sleep(0.25)
    assert patchq("run", cwd=repo, code=1).out.startswith("rejected   x")
    assert codes(told(repo, "x")) == [("depends.failed", "error")]
