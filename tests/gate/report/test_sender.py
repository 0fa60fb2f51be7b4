"""Sender of a change: one value by every door, from the first source that names it."""

from __future__ import annotations

from pathlib import Path

import pytest

from patchq.gate.report.message import with_header
from tests.helpers.command import block, patchq, report
from tests.helpers.gitrepo import commit_files, git, make_repo

EDIT = block("a.txt", "one\n", "1\n")
WORK = "Work\n\nAssisted-by: trailed:t-1"


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    repo = make_repo(tmp_path / "repo", {"a.txt": "one\ntwo\n"})
    patchq("init", cwd=repo)
    patchq("hooks", "install", "--git", cwd=repo)
    git("branch", "work", cwd=repo)
    git("worktree", "add", "-q", str(tmp_path / "w"), "work", cwd=repo)
    commit_files(tmp_path / "w", {"a.txt": "1\ntwo\n"}, message=WORK)
    commit_files(tmp_path / "w", {"b.txt": "new\n"}, message=WORK)
    return repo


BRANCH = ("submit", "--branch", "work")
DOORS = {
    "flags": (("submit", "-", "--agent", "f", "--model", "f-1"), "agent: h\n", ("f", "f-1")),
    "front matter": (("submit", "-"), "agent: h\nmodel: h-1\n", ("h", "h-1")),
    "environment": (("submit", "-"), "", ("env", "env-1")),
    "each alone": (("submit", "-", "--model", "f-1"), "agent: h\n", ("h", "f-1")),
    "work tree, a flag": (("submit", "--worktree", "../w", "--agent", "f"), "", ("f", "env-1")),
}


@pytest.mark.parametrize(("words", "header", "sender"), DOORS.values(), ids=DOORS)
def test_sender_is_the_first_that_is_named(
    repo: Path,
    words: tuple[str, ...],
    header: str,
    sender: tuple[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PATCHQ_AGENT", "env")
    monkeypatch.setenv("PATCHQ_MODEL", "env-1")
    front = f"---\n{header}---\n" if header else ""
    said = patchq(*words, cwd=repo, stdin=front + EDIT).out.split()
    patchq("run", cwd=repo)
    found = report(repo / ".patchq", said[0])
    assert (found["agent"], found["model"], found["state"]) == (*sender, "proposed")


@pytest.mark.parametrize("door", ["push", "series"])
def test_commits_name_their_sender_by_a_trailer(repo: Path, door: str) -> None:
    if door == "push":
        git("config", "receive.procReceiveRefs", "refs/for/", cwd=repo)
        git("push", "-q", ".", "work:refs/for/main", "-o", "timeout=0.1", cwd=repo)
        patchq("run", cwd=repo)
        (path,) = (repo / ".patchq/done").glob("*.report.json")
        ids = [path.name.removesuffix(".report.json")]
    else:
        ids = patchq(*BRANCH, "--id", "mine", "--series", cwd=repo).out.split()
        patchq("run", cwd=repo)
        assert ids == ["mine-1", "mine-2"]
    for id in ids:
        found = report(repo / ".patchq", id)
        assert (found["agent"], found["model"]) == ("trailed", "t-1")
        message = git("log", "-1", "--format=%B", found["commit"], cwd=repo)
        assert message.count("Assisted-by: trailed:t-1") == 1


def test_a_flag_replaces_the_front_matter_and_the_rest_stays(repo: Path) -> None:
    front = "---\nagent: h\nmessage: |\n  One\n\n  two\nmodel: m\n---\n"
    done = patchq("submit", "-", "--agent", "f", "--message", "New", cwd=repo, stdin=front + EDIT)
    assert "--agent replaces `agent` of the front matter" in done.err
    data, replaced = with_header((front + EDIT).encode(), {"agent": "f", "message": "New"})
    assert data == b'---\nmessage: "New"\nagent: "f"\nmodel: "m"\n---\n' + EDIT.encode()
    assert replaced == ["agent", "message"]
    assert with_header(b"---\n---\n" + EDIT.encode(), {"agent": "f"}) == (
        b'---\nagent: "f"\n---\n' + EDIT.encode(),
        [],
    )
    assert with_header(data, {"agent": "f"}, {"agent": "x", "model": "y"}) == (data, [])
