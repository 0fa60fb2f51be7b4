"""What a terminal shows while `watch` works, and what a pipe gets."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.command import block, drop, patchq
from tests.helpers.ending import running
from tests.helpers.gitrepo import make_repo, operators_file
from tests.helpers.terminal import WAIT_SECONDS, on_a_terminal, plain

ESCAPE = "\x1b"


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    repo = make_repo(tmp_path / "repo", {"a.txt": "one\ntwo\n"})
    patchq("init", cwd=repo)
    (repo / ".patchq.yaml").rename(operators_file(repo))
    monkeypatch.setenv("TERM", "xterm-256color")
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES"):
        monkeypatch.delenv(name, raising=False)
    return repo


def good(count: int) -> dict[str, str]:
    return {f"r{number}.md": block(f"new/{number}.txt", "", "x\n") for number in range(count)}


def test_interrupt_from_the_keyboard(repo: Path) -> None:
    with on_a_terminal(repo, "watch") as terminal:
        terminal.read_until(lambda text: "watching" in text)
        os.kill(terminal.process.pid, signal.SIGINT)
        text = terminal.read_all()
        assert terminal.process.wait(WAIT_SECONDS) == 130
    assert "Traceback" not in text


def test_submit_reads_what_is_typed_and_says_so(repo: Path) -> None:
    with on_a_terminal(repo, "submit", "-", "--id", "typed") as terminal:
        terminal.read_until(lambda text: "reading the response here; Ctrl-D ends it" in text)
        terminal.type(good(1)["r0.md"] + "\x04")
        lines = plain(terminal.read_all())
        assert terminal.process.wait(WAIT_SECONDS) == 0
    assert "typed" in lines
    assert (repo / ".patchq/inbox/typed.md").read_text().endswith(good(1)["r0.md"])


def test_a_pipe_gets_each_line_at_once(repo: Path) -> None:
    command = [sys.executable, "-m", "patchq", "watch"]
    with running(
        command, cwd=repo, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as watch:
        assert watch.stdout
        lines = []
        for name, text in good(3).items():
            drop(repo / ".patchq", {name: text})
            lines.append(watch.stdout.readline())
        watch.terminate()
        rest = watch.stdout.read()
    for name, line in zip(good(3), lines, strict=True):
        assert line.startswith(f"proposed   {name.removesuffix('.md')}  patchq/")
        assert ESCAPE not in line
    assert rest == ""
