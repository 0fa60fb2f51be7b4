"""`patchq retry`: a stored response is decided again, whole or without some of its edits; and which
edits `accept` takes with a choice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.command import block, drop, patchq, report
from tests.helpers.gitrepo import commit_files, git, make_repo

GOOD = block("a.txt", "one\n", "1\n")
LATER = block("a.txt", "later\n", "LATER\n")
MIXED = GOOD + LATER + block("b.txt", "b\n", "B\n")


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    files = {"a.txt": "one\ntwo\nthree\n", "b.txt": "b\n", ".patchq.yaml": "version: 1\n"}
    repo = make_repo(tmp_path / "repo", files)
    patchq("init", cwd=repo)
    return repo


def run(repo: Path, name: str, text: str, code: int | None = None) -> None:
    drop(repo / ".patchq", {name: text})
    patchq("run", cwd=repo, code=code)


def states(told: dict[str, Any]) -> list[str]:
    return [edit["state"] for edit in told["edits"]]


def test_a_refused_response_is_decided_on_today_s_tip(repo: Path) -> None:
    run(repo, "x.md", LATER, 1)
    told = patchq("--json", "retry", "x", cwd=repo, code=1).json()
    assert (told["id"], told["state"], told["retry"]["of"]) == ("x-2", "rejected", "x")
    commit_files(repo, {"a.txt": "one\nlater\n"})
    told = patchq("--json", "retry", "x", cwd=repo).json()
    assert (told["id"], told["state"], told["retry"]["of"]) == ("x-3", "proposed", "x")
    assert told["source"] == report(repo / ".patchq", "x")["source"]
    assert report(repo / ".patchq", "x")["state"] == "rejected"
    assert git("show", "patchq/x-3:a.txt", cwd=repo) == "one\nLATER"
    assert (repo / ".patchq/done/x-3.md").read_text() == LATER


def test_the_good_edits_of_a_refused_response(repo: Path) -> None:
    run(repo, "x.md", MIXED, 1)
    assert states(report(repo / ".patchq", "x")) == ["ready", "failed", "ready"]
    wrong = patchq("retry", "x", "--without", "2,9", cwd=repo, code=2)
    assert "no edit 9; its edits: 1, 2, 3" in wrong.err
    told = patchq("--json", "retry", "x", "--without", "2", cwd=repo).json()
    assert told["state"] == "proposed"
    assert states(told) == ["applied", "skipped", "applied"]
    assert git("show", "patchq/x-2:a.txt", cwd=repo) == "1\ntwo\nthree"
    assert git("show", "patchq/x-2:b.txt", cwd=repo) == "B"


def test_a_failed_retry_leaves_the_waiting_one_and_a_discarded_one_comes_back(repo: Path) -> None:
    run(repo, "x.md", GOOD)
    tip = git("rev-parse", "main", cwd=repo)
    commit_files(repo, {"a.txt": "nothing of it\n"})
    patchq("retry", "x", cwd=repo, code=1)
    assert report(repo / ".patchq", "x")["state"] == "proposed"
    git("reset", "-q", "--hard", tip, cwd=repo)
    patchq("discard", "x", cwd=repo)
    assert patchq("retry", "x", cwd=repo).out.startswith("proposed   x-3 ")


def test_what_stands_is_not_tried_again(repo: Path) -> None:
    commit_files(repo, {".patchq.yaml": "version: 1\nmode: auto\n"})
    run(repo, "x.md", GOOD)
    run(repo, "again.md", GOOD)
    run(repo, "waits.md", "---\ndepends_on: [nobody]\n---\n" + LATER)
    said = {id: patchq("retry", id, cwd=repo, code=2).err for id in ("x", "again", "waits", "no")}
    assert "patchq revert x" in said["x"]
    assert "is duplicate: there is nothing to try again" in said["again"]
    assert "waits is held" in said["waits"]
    assert "no change no" in said["no"]
    patchq("revert", "x", cwd=repo)
    assert patchq("retry", "x", cwd=repo).out.startswith("applied    x-2 ")


CHANGES = {"1": ("a.txt", "two", "2"), "2": ("b.txt", "b", "B"), "3": ("a.txt", "three", "3")}
EDITS = [
    {"id": id, "type": "modification", "file": file, "target": old, "replacement": new}
    for id, (file, old, new) in CHANGES.items()
]
EDITS[1]["dependsOn"] = "1"


@pytest.mark.parametrize(("words", "third"), [("--without=1", "applied"), ("--only=2", "skipped")])
def test_accept_names_the_edits_that_a_choice_brings_back(
    repo: Path, words: str, third: str
) -> None:
    run(repo, "x.json", json.dumps({"edits": EDITS}))
    _, back = patchq("accept", "x", words, cwd=repo).out.splitlines()
    assert back.strip() == "with edit 2, which the choice brings back"
    assert states(report(repo / ".patchq", "x")) == ["skipped", "applied", third]
    assert git("show", "main:b.txt", cwd=repo) == "B"
