"""A train that runs is shown everywhere, and keeps no request waiting."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from patchq.gate.hooks.sandbox import NO_SANDBOX
from tests.helpers.command import patchq, report
from tests.helpers.gitrepo import write_config
from tests.page.people import Person, proposals, served


def until(true: Callable[[], object]) -> None:
    late = time.monotonic() + 60
    while not true():
        assert time.monotonic() < late
        time.sleep(0.05)


def test_accept_leaves_its_train_to_another_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(NO_SANDBOX, "1")
    ids = ("first", "second")
    made = "{0}.txt\n<<<<<<< SEARCH\n=======\n{0}\n>>>>>>> REPLACE\n"
    repo = proposals(tmp_path, {f"{id}.md": made.format(id) for id in ids})
    began, go = tmp_path / "began", tmp_path / "go"
    line = f"touch {began}; until test -e {go}; do sleep 0.02; done"
    hook = f"id: tests, stage: pre-commit, unconfined: true, run: '{line}'"
    write_config(repo, f"version: 1\nmode: review\nhooks: [{{{hook}}}]\n")
    with served(repo) as url:
        person = Person(url)
        commits = [report(repo / ".patchq", id)["commit"] for id in ids]
        chosen = [("chosen", f"{id} {commit}") for id, commit in zip(ids, commits, strict=True)]
        done = person.send("/several", [("deed", "accept"), *chosen])
        assert done.headers["location"].endswith("undo=first&undo=second"), "they still wait"
        until(began.exists)
        says = "rain for main, run 1: checks 2 by tests for 0:0"
        assert says in (page := person.look("/"))
        assert "For you (0)" in page
        assert "Accepted (2)" in page
        assert says in patchq("status", cwd=repo).out
        (train,) = patchq("--json", "status", cwd=repo).json()["trains"]
        assert {"target": "main", "run": 1, "first": 2, "joined": 2}.items() <= train.items()
        go.touch()
        until(lambda: not patchq("--json", "status", cwd=repo).json()["trains"])
        assert {report(repo / ".patchq", id)["state"] for id in ids} == {"accepted"}
    kinds = [
        json.loads(line)["kind"] for line in patchq("--json", "events", cwd=repo).out.splitlines()
    ]
    assert kinds[-4:] == ["boarded", "boarded", "accepted", "accepted"]
