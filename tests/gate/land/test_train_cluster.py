"""A train for each lane of a cluster: its owner runs it, and another takes over what it left."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from patchq.gate.hooks.sandbox import NO_SANDBOX
from tests.helpers.command import block, drop, patchq, report
from tests.helpers.gitrepo import git
from tests.helpers.machines import Machines

CONFIG = """mode: review
targets: [other]
queue: {{settle_seconds: 0.1}}
landing: {{poll_seconds: 0.2}}
cluster: {{takeover_seconds: 1}}
hooks:
- id: tests
  stage: pre-commit
  unconfined: true
  cache: false
  run: "grep -q 2 a.txt && test -e {root}/armed && touch {root}/began && \
    until test -e {root}/go; do sleep 0.05; done; true"
"""


@pytest.mark.slow
@pytest.mark.parametrize("stop", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "frozen"])
def test_lanes_do_not_wait_and_a_successor_goes_on(
    tmp_path: Path, database: str, monkeypatch: pytest.MonkeyPatch, stop: signal.Signals
) -> None:
    monkeypatch.setenv("PATCHQ_DATABASE", database)
    monkeypatch.setenv(NO_SANDBOX, "1")
    files = {"a.txt": "one\n", "b.txt": "one\n"}
    machines = Machines(tmp_path, database, files, CONFIG.format(root=tmp_path))
    try:
        git("branch", "other", cwd=machines.hub)
        feeder = tmp_path / "feeder"
        machines.start("feeder", "watch")
        owner = machines.start("w1", "worker", "--name", "w1", "--lanes", "main")
        machines.start("w2", "worker", "--name", "w2", "--lanes", "other")
        machines.soon((feeder / ".patchq/inbox").exists)
        other = "---\ntarget: other\n---\n" + block("b.txt", "one\n", "2\n")
        drop(feeder / ".patchq", {"x.md": block("a.txt", "one\n", "2\n"), "y.md": other})
        machines.soon(lambda: len([*feeder.glob(".patchq/done/?.report.json")]) == 2)
        (tmp_path / "armed").touch()
        train = machines.start("feeder", "accept", "x")
        machines.soon((tmp_path / "began").exists)
        patchq("accept", "--no-wait", "y", cwd=feeder)
        assert report(feeder / ".patchq", "y")["state"] == "accepted"
        os.kill(owner.pid, stop)
        (tmp_path / "go").touch()
        machines.start("w3", "worker", "--name", "w3", "--lanes", "main")
        assert train.wait(60) == 0
        if stop == signal.SIGSTOP:
            os.kill(owner.pid, signal.SIGCONT)
        machines.soon(lambda: report(feeder / ".patchq", "x")["state"] == "accepted")
        assert git("log", "--format=%s", "main", cwd=machines.hub).split("\n") == [
            "Edit a.txt", "Start"
        ]  # fmt: skip
    finally:
        machines.close()
