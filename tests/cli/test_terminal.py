"""What a terminal shows while `run` and `watch` work, and what a pipe gets instead."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.command import block, drop, fresh, patchq
from tests.helpers.gitrepo import git, make_repo, operators_file, write_config
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


def test_run_shows_a_bar(repo: Path) -> None:
    drop(repo / ".patchq", good(100))
    with on_a_terminal(repo, "run") as terminal:
        text = terminal.read_all()
        assert terminal.process.wait(WAIT_SECONDS) == 0
    lines = plain(text)
    bars = [re.search(r"responses .* (\d+)/(\d+)", line) for line in lines]
    counts = [(int(bar[1]), int(bar[2])) for bar in bars if bar]
    assert counts[-1] == (100, 100)
    assert any(done < total == 100 for done, total in counts), counts
    assert sum(line.startswith("proposed   r") for line in lines) == 100
    assert text.endswith(("\r\n", "\x1b[?25h"))  # the cursor is back


def test_watch_shows_one_line_that_lives(repo: Path) -> None:
    with on_a_terminal(repo, "watch") as terminal:
        terminal.read_until(lambda text: "watching .patchq/inbox for main: …" in text)
        drop(repo / ".patchq", {**good(2), "bad.md": block("a.txt", "three\n", "3\n")})
        terminal.read_until(lambda text: re.search(r"for main: 2 proposed, 1 rejected", text))
        terminal.process.send_signal(signal.SIGTERM)
        text = terminal.read_all()
        assert terminal.process.wait(WAIT_SECONDS) == 0
    lines = plain(text)
    assert sum(line.startswith("proposed   r") for line in lines) == 2
    assert sum(line.startswith("rejected   bad  match.none") for line in lines) == 1
    assert "\x1b[?25h" in text.rpartition("\x1b[?25l")[2]  # the cursor is back


def test_live_line_is_one_line_however_long_the_names_are(repo: Path) -> None:
    git("branch", "long/" + "x" * 150, cwd=repo)
    patchq("init", "--target", "long/" + "x" * 150, cwd=repo)
    with on_a_terminal(repo, "watch") as terminal:
        text = terminal.read_until(lambda text: "x…" in text)
    assert max(len(line) for line in plain(text)) == 100
    assert "\n" not in text


def test_interrupt_from_the_keyboard(repo: Path) -> None:
    with on_a_terminal(repo, "watch") as terminal:
        terminal.read_until(lambda text: "watching" in text)
        os.kill(terminal.process.pid, signal.SIGINT)
        text = terminal.read_all()
        assert terminal.process.wait(WAIT_SECONDS) == 130
    assert "Traceback" not in text


@pytest.mark.parametrize("words", [("--json", "run"), ("-q", "run")], ids=["json", "quiet"])
def test_who_wants_no_bar_gets_none(repo: Path, words: tuple[str, ...]) -> None:
    drop(repo / ".patchq", good(3))
    with on_a_terminal(repo, *words) as terminal:
        text = terminal.read_all()
        assert terminal.process.wait(WAIT_SECONDS) == 0
    assert ESCAPE not in text
    assert len(text.splitlines()) == (3 if "--json" in words else 0)


def test_log_lines_stand_above_the_live_line(repo: Path) -> None:
    with on_a_terminal(repo, "watch") as terminal:
        terminal.read_until(lambda text: "watching" in text)
        write_config(repo, "version: 1\nmode: sideways\n")
        terminal.process.send_signal(signal.SIGHUP)
        terminal.read_until(lambda text: "sideways" in text)
        terminal.process.send_signal(signal.SIGTERM)
        text = terminal.read_all()
    assert any(re.match(r"[-+:.T\d]+ ERROR the configuration", line) for line in plain(text))


def test_submit_reads_what_is_typed_and_says_so(repo: Path) -> None:
    with on_a_terminal(repo, "submit", "-", "--id", "typed") as terminal:
        terminal.read_until(lambda text: "reading the response here; Ctrl-D ends it" in text)
        terminal.type(good(1)["r0.md"] + "\x04")
        lines = plain(terminal.read_all())
        assert terminal.process.wait(WAIT_SECONDS) == 0
    assert "typed" in lines
    assert (repo / ".patchq/inbox/typed.md").read_text().endswith(good(1)["r0.md"])


def test_a_pipe_gets_plain_lines(repo: Path) -> None:
    drop(repo / ".patchq", {**good(3), "bad.md": block("a.txt", "three\n", "3\n")})
    done = fresh("run", cwd=repo, code=1)
    assert ESCAPE not in done.out + done.err
    assert "\r" not in done.out + done.err
    assert sorted(line.split()[1] for line in done.out.splitlines()) == ["bad", "r0", "r1", "r2"]


def test_a_pipe_gets_each_line_at_once(repo: Path) -> None:
    command = [sys.executable, "-m", "patchq", "watch"]
    with subprocess.Popen(
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
