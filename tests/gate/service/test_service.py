"""The daemon as a service: what its manager is told, what its log says, what it writes beside."""

from __future__ import annotations

import json
import logging
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from patchq.gate.api import Gate
from patchq.gate.report import logs
from patchq.gate.service.upkeep import Manager, Upkeep
from tests.gate.service.test_daemon import BAD, EDIT, WAIT_SECONDS, configure, repo, wait_for
from tests.helpers.command import drop, patchq
from tests.helpers.ending import running
from tests.helpers.gitrepo import operators_file

__all__ = ["repo"]


@pytest.fixture
def heard(tmp_path: Path) -> Iterator[Callable[[], list[str]]]:
    """Returns the lines that a service manager was told so far."""
    lines: list[str] = []
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.setblocking(False)

        def listen() -> list[str]:
            with suppress(BlockingIOError):
                while True:
                    lines.extend(manager.recv(4096).decode().splitlines())
            return lines

        yield listen


@contextmanager
def daemon(repo: Path, **env: str) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "patchq", "-C", str(repo), "watch"]
    with (
        (repo / "../log").open("ab") as out,
        running(command, stdout=out, stderr=out, env={**os.environ, **env}) as process,
    ):
        yield process


def test_watchdog_hears_of_hooks_and_nothing_of_a_loop_that_hangs(
    repo: Path, heard: Callable[[], list[str]], tmp_path: Path
) -> None:
    """While hooks run, the main loop looks after them.  A stopped process pings no more."""
    go = tmp_path / "go"
    wait = f"while ! test -e {go}; do sleep 0.05; done"
    configure(repo, f"hooks:\n- {{id: slow, stage: pre-commit, run: '{wait}', unconfined: true}}\n")
    env = {"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "900000"}
    env["PATCHQ_NO_SANDBOX"] = "1"  # the hook is to see the file come
    with daemon(repo, **env) as process:
        wait_for(lambda: "READY=1" in heard())
        assert json.loads((repo / ".patchq/lock").read_text())["pid"] == process.pid
        drop(repo / ".patchq", {"x.md": EDIT})
        wait_for(lambda: not list((repo / ".patchq/inbox").iterdir()))
        before = heard().count("WATCHDOG=1")
        wait_for(lambda: heard().count("WATCHDOG=1") > before + 2)
        assert not list((repo / ".patchq/done").iterdir())
        go.touch()
        wait_for((repo / ".patchq/done/x.report.json").exists)
        # The loop hangs: it waits for ever to read this configuration, as a pipe is nobody's.
        operators_file(repo).unlink()
        os.mkfifo(operators_file(repo))
        process.send_signal(signal.SIGHUP)
        time.sleep(1.0)
        before = len(heard())
        time.sleep(1.5)
        assert heard()[before:] == []
        assert process.poll() is None


def test_json_lines_have_the_batch(repo: Path, tmp_path: Path) -> None:
    hook = "{id: told, stage: post-commit, run: 'echo no; exit 3'}"
    configure(repo, f"log: {{format: json}}\nhooks:\n- {hook}\n")
    with daemon(repo) as process:
        drop(repo / ".patchq", {"good.md": EDIT, "bad.md": BAD})
        log = tmp_path / "log"
        wait_for(lambda: log.read_text().count("told") and log.read_text().count("rejected"), log)
        process.terminate()
        assert process.wait(WAIT_SECONDS) == 0
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    verdicts = {line["batch"]: line for line in lines if "state" in line}
    assert verdicts["good"]["state"] == "proposed"
    assert (verdicts["bad"]["level"], verdicts["bad"]["codes"]) == ("warning", ["match.none"])
    (hook_line,) = [line for line in lines if "the hook told" in line["message"]]
    assert hook_line["batch"] == "good"
    assert all(line["time"].endswith("+00:00") for line in lines)


KEY = "AKIA" + "IOSFODNN7" + "ABCDEFG"


def test_text_hides_what_nobody_is_to_read(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    logger = logging.getLogger("patchq")
    monkeypatch.setattr(logger, "handlers", [])
    monkeypatch.setattr(logger, "level", logging.INFO)
    logs.setup("info", "text", ["hunter2hunter2"])
    with logs.about("b1"):
        logger.info("evil \x1b[2J \u202e %s", "two\nlines")
        logger.warning("the key is hunter2hunter2")
        logger.warning("aws %s", KEY)
        logger.info("b1 itself")
    logger.debug("unseen")
    try:
        raise ValueError("bad \x1b thing")
    except ValueError:
        logger.exception("crashed")
    evil, key, token, own, crashed, *trace = capsys.readouterr().err.splitlines()
    assert evil.endswith(r" INFO b1: evil \x1b[2J \u202e two\nlines")
    assert key.endswith(" WARNING b1: (the text holds a key)")
    assert token.endswith(" WARNING b1: (the text holds an AWS access key id)")
    assert own.endswith(" INFO b1 itself")
    assert crashed.endswith(" ERROR crashed")
    assert trace[-1] == r"  ValueError: bad \x1b thing"


def test_log_file_is_bounded(repo: Path) -> None:
    log = repo / ".patchq/daemon.log"
    log.write_bytes(b"old\n" * (logs.FILE_BYTES // 4 + 1))
    patchq("watch", "--detach", cwd=repo)
    try:
        wait_for((repo / ".patchq/daemon.log.1").exists)
        drop(repo / ".patchq", {"x.md": EDIT})
        wait_for(lambda: "proposed   x" in log.read_text())
    finally:
        patchq("stop", cwd=repo)
    assert log.stat().st_size < 10_000
    assert (repo / ".patchq/daemon.log.1").read_bytes().startswith(b"old\n")


def numbers(path: Path) -> dict[str, float]:
    lines = (line for line in path.read_text().splitlines() if not line.startswith("#"))
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}


def test_prometheus_file(repo: Path, tmp_path: Path) -> None:
    file = tmp_path / "metrics/patchq.prom"
    file.parent.mkdir()
    configure(repo, f"mode: auto\nstats: {{prometheus: {file}}}\n")
    held = f"---\ndepends_on: [later]\n---\n{EDIT}"
    drop(repo / ".patchq", {"good.md": EDIT, "bad.md": BAD, "held.md": held})
    patchq("run", cwd=repo, code=1)
    told = numbers(file)
    assert told['patchq_verdicts_total{state="applied"}'] == 1
    assert told['patchq_verdicts_total{state="rejected"}'] == 1
    assert told['patchq_refusals_total{code="match.none"}'] == 1
    assert (told["patchq_inbox"], told["patchq_held"], told["patchq_waiting"]) == (0, 1, 0)
    assert told["patchq_decide_seconds_count"] == 2
    assert told["patchq_decide_seconds_sum"] > 0
    assert os.listdir(file.parent) == ["patchq.prom"]
    assert oct(file.stat().st_mode & 0o777) == "0o644"


def test_prometheus_file_is_replaced_by_other_numbers_only(repo: Path, tmp_path: Path) -> None:
    file = tmp_path / "metrics/patchq.prom"
    configure(repo, f"stats: {{prometheus: {file}}}\n")
    with Gate.open(repo) as gate:
        session = gate.session()
        upkeep = Upkeep(session.repo, repo, Manager({}))
        upkeep.idle(session, last=True)  # there is no directory
        file.parent.mkdir()
        upkeep.idle(session, last=True)
        first = file.stat().st_ino
        upkeep.idle(session, last=True)
        assert file.stat().st_ino == first
        drop(repo / ".patchq", {"x.md": EDIT})
        upkeep.idle(session, last=True)
        assert numbers(file)["patchq_inbox"] == 1
