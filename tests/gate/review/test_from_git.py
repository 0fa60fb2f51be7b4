"""The log when the queue is lost: git alone tells what happened to every batch."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.command import block, drop, patchq
from tests.helpers.gitrepo import commit_files, git, make_repo

CONFIG = "version: 1\nmode: {}\n"
AGENT = "agent: coder\nmodel: some-model\n"
ALONE = "from git alone: its report is not in the queue"


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    files = {f"{name}.txt": f"{name}\n" for name in "abcdefgh"}
    repo = make_repo(tmp_path / "repo", {**files, ".patchq.yaml": CONFIG.format("auto")})
    patchq("init", cwd=repo)
    return repo


def batch(repo: Path, id: str, path: str, head: str = "") -> None:
    text = block(path, f"{path[0]}\n", f"{path[0].upper()} {id}\n")
    drop(repo / ".patchq", {f"{id}.md": f"---\n{AGENT}{head}---\n{text}"})
    patchq("run", cwd=repo)


def history(repo: Path) -> None:
    """A batch in each state that leaves a commit."""
    batch(repo, "applied", "a.txt")
    batch(repo, "reverted", "b.txt")
    patchq("revert", "reverted", cwd=repo)
    commit_files(repo, {".patchq.yaml": CONFIG.format("review")})
    batch(repo, "accepted", "c.txt")
    patchq("accept", "accepted", cwd=repo)
    batch(repo, "discarded", "d.txt")
    patchq("discard", "discarded", cwd=repo)
    batch(repo, "superseded", "e.txt")
    patchq("retry", "superseded", cwd=repo)
    batch(repo, "merged", "f.txt")
    git("merge", "-q", "--no-ff", "--no-edit", "patchq/merged", cwd=repo)
    patchq("run", cwd=repo)
    batch(repo, "waits", "g.txt")


STATES = {state: state for state in ("applied", "reverted", "accepted", "discarded", "superseded")}
STATES |= {"revert-reverted": "applied", "superseded-2": "proposed"}
STATES |= {"merged": "accepted", "waits": "proposed"}


def log(repo: Path) -> dict[str, dict[str, Any]]:
    lines = patchq("--json", "log", cwd=repo).out.splitlines()
    return {told["id"]: told for told in map(json.loads, lines)}


def facts(reports: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """What git knows of each batch."""
    kept = ("state", "duplicate_of", "target", "agent", "model", "branch", "commit", "tree", "diff")
    return {
        id: [
            sorted((edit["path"], edit["op"]) for edit in told["edits"]),
            told["base"]["commit"],
            told["source"]["sha256"],
            *(told[key] for key in kept),
        ]
        for id, told in reports.items()
    }


def test_all_is_known_from_git_alone(repo: Path) -> None:
    history(repo)
    before = log(repo)
    assert {id: told["state"] for id, told in before.items()} == STATES
    notes_say_who_when_and_why(repo, before)
    diff = patchq("show", "accepted", "--diff", cwd=repo).out
    shutil.rmtree(repo / ".patchq")
    assert facts(log(repo)) == facts(before)
    assert patchq("show", "accepted", "--diff", cwd=repo).out == diff
    page = patchq("show", "accepted", cwd=repo).out
    assert page.startswith("# `accepted`: accepted\n")
    assert ALONE in page
    assert ALONE in patchq("status", "accepted", cwd=repo).out
    waiting = patchq("--json", "status", cwd=repo).json()["waiting"]
    paths = {told["id"]: told["paths"] for told in waiting}
    assert paths == {"superseded-2": ["e.txt"], "waits": ["g.txt"]}
    assert not (repo / ".patchq").exists()


def test_what_waits_lands_where_its_branch_does_not_have_to_move(repo: Path) -> None:
    commit_files(repo, {".patchq.yaml": CONFIG.format("review")})
    for id in "abc":
        batch(repo, id, f"{id}.txt")
    shutil.rmtree(repo / ".patchq")
    patchq("init", cwd=repo)
    left_out = patchq("accept", "a", "b", cwd=repo, code=1)
    assert "accepted   a  main" in left_out.out
    assert "the response of b is gone from the queue" in left_out.err
    assert "git merge patchq/b" in left_out.err
    patchq("accept", "c", "--no-wait", cwd=repo)
    batch(repo, "d", "d.txt")
    patchq("accept", "d", cwd=repo)
    assert git("for-each-ref", "refs/patchq/boarded", cwd=repo) == ""
    git("rebase", "-q", "main", "patchq/b", cwd=repo)
    git("checkout", "-q", "main", cwd=repo)
    patchq("accept", "b", cwd=repo)
    states = {id: told["state"] for id, told in log(repo).items()}
    assert states == {**dict.fromkeys("abd", "accepted"), "c": "proposed"}


def notes_say_who_when_and_why(repo: Path, reports: dict[str, dict[str, Any]]) -> None:
    notes = {
        id: git("notes", "--ref=patchq", "show", told["commit"], cwd=repo).splitlines()
        for id, told in reports.items()
        if told["state"] not in ("applied", "proposed")
    }
    assert notes.keys() == {"reverted", "accepted", "discarded", "superseded", "merged"}
    for id, lines in notes.items():
        assert lines[:2] == [f"Patchq-Batch: {id}", f"Patchq-State: {STATES[id]}"]
        assert {"Patchq-Target: main", "Patchq-Agent: coder"} <= {*lines}
    assert "Patchq-Reason: superseded by superseded-2" in notes["superseded"]
    assert "Patchq-Reason: merged by hand" in notes["merged"]
    assert any("Reason: reverted by revert-reverted, commit " in line for line in notes["reverted"])
    assert "Patchq-Mode: auto" in notes["reverted"]
    assert "Patchq-Mode: review" in notes["accepted"]
    assert git("fsck", "--strict", "--no-dangling", cwd=repo) == ""


def test_notes_of_people_and_of_git_are_kept(repo: Path) -> None:
    batch(repo, "x", "a.txt")
    commit = git("rev-parse", "main", cwd=repo)
    git("notes", "--ref=patchq", "add", "-m", "Ada: looks good", commit, cwd=repo)
    patchq("revert", "x", cwd=repo)
    note = git("notes", "--ref=patchq", "show", commit, cwd=repo)
    assert note.startswith("Ada: looks good\n\nPatchq-Batch: x\nPatchq-State: reverted\n")
    git("notes", "--ref=patchq", "append", "-m", "Ada: a pity", commit, cwd=repo)
    shutil.rmtree(repo / ".patchq")
    assert log(repo)["x"]["state"] == "reverted"


def test_an_id_is_its_own_change_and_no_beginning(repo: Path) -> None:
    batch(repo, "login", "a.txt")
    commit_files(repo, {".patchq.yaml": CONFIG.format("review")})
    batch(repo, "login-two", "b.txt")
    shutil.rmtree(repo / ".patchq")
    assert patchq("show", "login", cwd=repo).out.startswith("# `login`: applied\n")
    assert "login is over" in patchq("accept", "login", cwd=repo, code=2).err
