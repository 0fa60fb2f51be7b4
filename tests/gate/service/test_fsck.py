"""`patchq fsck`: every kind of damage is found, and what can be derived comes back."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.command import block, drop, patchq, report
from tests.helpers.gitrepo import git, make_repo, write_config
from tests.helpers.stores import sql

BODY = block("a.txt", "a\n", "A\n")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository and queue with a batch in each state, made once."""
    return tmp_path_factory.mktemp("fsck")


@pytest.fixture
def repo(finished: Path, tmp_path: Path) -> Path:
    pattern = finished / "repo"
    if not pattern.exists():
        _make(pattern)
    shutil.copytree(pattern, tmp_path / "repo", symlinks=True)
    return tmp_path / "repo"


def _make(repo: Path) -> None:
    make_repo(repo, {f"{name}.txt": f"{name}\n" for name in "abcdefg"})
    patchq("init", cwd=repo)
    _batch(repo, "applied", "a", "auto")
    _batch(repo, "accepted", "b")
    patchq("accept", "accepted", cwd=repo)
    _batch(repo, "discarded", "c")
    patchq("discard", "discarded", cwd=repo)
    _batch(repo, "waits", "d")
    _batch(repo, "superseded", "e")
    patchq("retry", "superseded", cwd=repo)
    _batch(repo, "reverted", "f", "auto")
    patchq("revert", "reverted", cwd=repo)
    drop(repo / ".patchq", {"refused.md": block("g.txt", "nowhere\n", "x\n")})
    patchq("run", cwd=repo, code=1)
    drop(repo / ".patchq", {"held.md": f"---\ndepends_on: [later]\n---\n{BODY}"})
    patchq("run", cwd=repo)


def _batch(repo: Path, id: str, path: str, mode: str = "review") -> None:
    with (repo / ".git/info/exclude").open("a") as exclude:
        exclude.write("/.patchq.yaml\n")
    write_config(repo, f"version: 1\nmode: {mode}\n")
    drop(repo / ".patchq", {f"{id}.md": block(f"{path}.txt", f"{path}\n", f"{path.upper()}\n")})
    patchq("run", cwd=repo)


def fsck(repo: Path, *words: str, code: int | None = None) -> list[dict[str, Any]]:
    told = patchq("--json", "fsck", *words, cwd=repo, code=code).json()
    damage: list[dict[str, Any]] = told["damage"]
    assert told["ok"] == all(each["repaired"] for each in damage)
    return damage


# ---------------------------------------------------------------- what is mended


def remove(name: str) -> Callable[[Path], object]:
    return lambda repo: (repo / ".patchq" / name).unlink()


def ref(*words: str) -> Callable[[Path], object]:
    return lambda repo: git("update-ref", *words, cwd=repo)


def break_report(id: str, folder: str = "done") -> Callable[[Path], object]:
    return lambda repo: (repo / f".patchq/{folder}/{id}.report.json").write_bytes(b'{"schema": ')


def empty(name: str) -> Callable[[Path], object]:
    return lambda repo: (repo / ".git/refs" / name).write_bytes(b"")


def forget(id: str) -> Callable[[Path], object]:
    """Have the store lose a batch."""
    number = "(select number from responses where id = ?)"

    def lose(repo: Path) -> None:
        sql(repo / ".patchq", f"delete from papers where number = {number}", id)
        sql(repo / ".patchq", "delete from responses where id = ?", id)

    return lose


MENDED: dict[str, tuple[Callable[[Path], object], set[str]]] = {
    "page": (remove("done/applied.report.md"), {"file.missing"}),
    "report that is torn": (break_report("applied"), {"file.differs"}),
    "response": (remove("done/applied.md"), {"file.missing"}),
    "change that the store does not know": (forget("refused"), {"file.unknown"}),
    "mark": (ref("-d", "refs/patchq/waiting/waits"), {"mark.missing"}),
    "notes": (ref("-d", "refs/notes/patchq"), {"note.missing"}),
    "report of a held change": (remove("active/held.report.json"), {"file.missing"}),
    "empty branch": (empty("heads/patchq/waits"), {"ref.broken"}),
    "empty notes": (empty("notes/patchq"), {"ref.broken"}),
}


@pytest.mark.parametrize("case", MENDED)
def test_damage_is_mended(repo: Path, case: str) -> None:
    spoil, kinds = MENDED[case]
    bodies = {path.name: path.read_bytes() for path in (repo / ".patchq/done").glob("*.md")}
    spoil(repo)
    found = fsck(repo, code=1)
    assert kinds <= {each["kind"] for each in found}
    assert {each["cure"] for each in found} == {"patchq fsck --repair"}
    assert all(each["repaired"] for each in fsck(repo, "--repair", code=0))
    assert fsck(repo, code=0) == []
    git("rev-parse", "--verify", "-q", "refs/heads/patchq/superseded-2", cwd=repo)
    done = {id: repo / f".patchq/done/{id}.report.json" for id in ("applied", "superseded-2")}
    states = {id: json.loads(path.read_bytes())["state"] for id, path in done.items()}
    assert states == {"applied": "applied", "superseded-2": "proposed"}
    for name, data in bodies.items():
        if not name.endswith(".report.md"):
            assert (repo / ".patchq/done" / name).read_bytes() == data
    git("fsck", "--strict", "--no-dangling", cwd=repo)


def test_damage_discards_nothing(repo: Path) -> None:
    """A branch that is gone counts as discarded by hand; one that cannot be read does not."""
    MENDED["empty branch"][0](repo)
    fsck(repo, "--repair", code=0)
    patchq("run", cwd=repo)
    assert report(repo / ".patchq", "waits")["state"] == "proposed"
    assert patchq("accept", "waits", cwd=repo).out.startswith("accepted")


def test_a_mend_that_fails_is_told_and_keeps_none_from_the_others(repo: Path) -> None:
    remove("done/applied.report.md")(repo)
    ref("-d", "refs/patchq/waiting/waits")(repo)
    (repo / ".git/refs/patchq/waiting/waits.lock").touch()
    found = {each["kind"]: each for each in fsck(repo, "--repair", code=1)}
    assert found["file.missing"]["repaired"]
    assert "waits.lock" in found["mark.missing"]["cure"]


def test_the_queue_is_gone(repo: Path) -> None:
    """What waits comes back from git, and can be decided."""
    shutil.rmtree(repo / ".patchq")
    patchq("init", cwd=repo)
    patchq("run", cwd=repo)
    for id in ("waits", "superseded-2"):
        assert report(repo / ".patchq", id)["state"] == "proposed"
    assert patchq("discard", "superseded-2", cwd=repo).out.startswith("discarded")
    git("merge", "-q", "--no-edit", "patchq/waits", cwd=repo)
    patchq("run", cwd=repo)
    assert report(repo / ".patchq", "waits")["state"] == "accepted"
    assert fsck(repo, code=0) == []


def test_the_id_of_a_commit_is_never_given_again(repo: Path) -> None:
    forget("applied")(repo)
    for path in (repo / ".patchq/done").glob("applied.*"):
        path.unlink()
    (found,) = fsck(repo, code=1)
    assert (found["kind"], found["where"]) == ("batch.unknown", "applied")
    fsck(repo, "--repair", code=0)
    assert fsck(repo, code=0) == []
    drop(repo / ".patchq", {"applied.md": block("another.txt", "", "x\n")})
    patchq("run", cwd=repo)
    assert report(repo / ".patchq", "applied-2")["edits"][0]["path"] == "another.txt"


def test_a_response_that_nobody_knows_the_verdict_of_gets_another_one(repo: Path) -> None:
    body = (repo / ".patchq/rejected/refused.md").read_bytes()
    forget("refused")(repo)
    break_report("refused", "rejected")(repo)
    fsck(repo, "--repair", code=0)
    assert (repo / ".patchq/inbox/refused.md").read_bytes() == body
    patchq("run", cwd=repo, code=1)
    again = json.loads((repo / ".patchq/rejected/refused.report.json").read_bytes())
    assert again["state"] == "rejected"
    assert fsck(repo, code=0) == []


def lone(repo: Path) -> None:
    """In place of all that, one batch which landed."""
    shutil.rmtree(repo)
    make_repo(repo, {"g.txt": "g\n"})
    patchq("init", cwd=repo)
    _batch(repo, "late", "g", "auto")


def prune(repo: Path) -> None:
    """Lose the commit of the batch, which no branch has any more."""
    git("reflog", "expire", "--expire=now", "--expire-unreachable=now", "--all", cwd=repo)
    git("gc", "-q", "--prune=now", cwd=repo)


def test_a_landed_commit_that_was_rewritten_and_pruned(repo: Path) -> None:
    lone(repo)
    git("commit", "-q", "--amend", "--no-edit", "--date=2001-01-01T00:00:00Z", cwd=repo)
    prune(repo)
    assert fsck(repo, code=0) == []
    patchq("revert", "late", cwd=repo)
    assert git("show", "main:g.txt", cwd=repo) == "g"


# ---------------------------------------------------------------- what only a person can mend


def test_a_commit_that_is_nowhere(repo: Path) -> None:
    lone(repo)
    git("update-ref", "refs/heads/main", "main~1", cwd=repo)
    prune(repo)
    for words in ((), ("--repair",)):
        (found,) = fsck(repo, *words, code=1)
        assert (found["kind"], found["repaired"]) == ("commit.missing", False)
        assert "git fsck --lost-found" in found["cure"]
    assert "DAMAGED" in patchq("fsck", cwd=repo, code=1).out


def test_it_does_not_repair_beside_a_daemon(repo: Path) -> None:
    patchq("watch", "--detach", cwd=repo)
    try:
        patchq("fsck", "--repair", cwd=repo, code=75)
        assert fsck(repo, code=0) == []
    finally:
        patchq("stop", cwd=repo)


def test_a_line_of_packed_refs_that_is_no_ref_is_named(repo: Path) -> None:
    git("pack-refs", "--all", cwd=repo)
    with (repo / ".git/packed-refs").open("a") as packed:
        packed.write("garbage line\n")
    for words in ((), ("--repair",)):
        (found,) = fsck(repo, *words, code=1)
        assert found["kind"] == "ref.packed"
        assert "'garbage line'" in found["message"]
        assert "correct the line" in found["cure"]
