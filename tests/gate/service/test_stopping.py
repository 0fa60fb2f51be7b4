"""Whoever ends the work hears what it waits for, and may leave that to the next start."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from patchq.gate.errors import Interrupted
from patchq.gate.queue.spool import create
from patchq.gate.service.serve import Control
from tests.helpers.command import block, drop, patchq, report
from tests.helpers.ending import line_of, running, until
from tests.helpers.gitrepo import make_repo, operators_file

HOOK = "version: 1\nhooks: [{id: slow, stage: pre-apply, run: %s, unconfined: true}]\n"


@pytest.fixture
def signals() -> Iterator[None]:
    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGHUP)
    before = [signal.getsignal(number) for number in numbers]
    yield
    for number, handler in zip(numbers, before, strict=True):
        signal.signal(number, handler)


@pytest.mark.parametrize(
    ("sent", "now"),
    [
        ([signal.SIGTERM], False),
        ([signal.SIGINT], False),
        ([signal.SIGINT, signal.SIGINT, signal.SIGINT], True),
        ([signal.SIGUSR1, signal.SIGUSR1], True),
        ([signal.SIGHUP, signal.SIGHUP], None),
    ],
)
def test_what_signals_ask_for(
    signals: None, tmp_path: Path, sent: list[signal.Signals], now: bool | None
) -> None:
    create(tmp_path)
    ended: list[int] = []
    control = Control(end_now=lambda: ended.append(1))
    control.install()
    for number in sent:
        signal.raise_signal(number)
    assert (control.stop, control.now, len(ended)) == (now is not None, bool(now), int(bool(now)))
    with pytest.raises(Interrupted) if now else nullcontext():
        control.pulse(tmp_path, lambda: None)


def test_a_stop_says_what_it_waits_for_and_may_leave_it(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo", {"a.txt": "one\n"})
    patchq("init", cwd=repo)
    configuration, queue = operators_file(repo), repo / ".patchq"
    configuration.write_text(HOOK % "sleep 60")
    drop(queue, {"x.md": block("a.txt", "one\n", "1\n")})
    words = [sys.executable, "-m", "patchq"]
    piped: dict[str, Any] = {"cwd": repo, "stderr": subprocess.PIPE, "text": True}
    with running([*words, "watch"], **piped) as daemon:
        until(lambda: "checking" in patchq("status", "x", cwd=repo).out)
        with running([*words, "stop"], **piped) as stop:
            said = line_of(stop.stderr)
            assert said.startswith("patchq: waiting for x checking by slow for ")
            assert "has stopped" in patchq("stop", "--now", cwd=repo).out
            assert stop.wait(60) == 0
        assert daemon.wait(60) == 0
        assert daemon.stderr
        assert "stopping after x checking by slow for " in daemon.stderr.read()
    assert patchq("status", "x", cwd=repo).out.startswith("claimed    x  in hand for ")
    configuration.write_text(HOOK % "'true'")
    assert patchq("run", cwd=repo).out.count("\n") == 1
    assert report(queue, "x")["state"] == "proposed"
    kinds = [line.split()[1] for line in patchq("events", cwd=repo).out.splitlines()]
    assert kinds == ["claimed", "proposed"]
