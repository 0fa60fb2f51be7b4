"""What commands do where a standard stream is closed, nobody reads, or the locale is not UTF-8."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from patchq.gate.config import config_file
from tests.helpers.command import block, drop, patchq, report
from tests.helpers.gitrepo import make_repo, operators_file

EDIT = block("a.txt", "two\n", "2\n")
BAD = block("a.txt", "nowhere\n", "x\n")


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    repo = make_repo(tmp_path / "repo", {"a.txt": "one\ntwo\n"})
    patchq("init", cwd=repo)
    (repo / ".patchq.yaml").rename(operators_file(repo))
    return repo


def started(repo: Path, words: str, redirected: str = "", **env: str) -> tuple[int, bytes, bytes]:
    """Exit code, output and errors of a command that a shell starts."""
    done = subprocess.run(
        ["/bin/sh", "-c", f'exec "$0" -m patchq {words} {redirected}', sys.executable],
        cwd=repo,
        env={**os.environ, **env},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("closed", [">&-", "<&- >&- 2>&-"])
def test_a_closed_stream_is_an_empty_one(repo: Path, closed: str) -> None:
    drop(repo / ".patchq", {"good.md": EDIT, "bad.md": BAD})
    code, _, err = started(repo, "run", closed)
    assert (code, err) == (1, b"")
    assert [report(repo / ".patchq", id)["state"] for id in ("good", "bad")] == [
        "proposed", "rejected",
    ]  # fmt: skip


@pytest.mark.parametrize("locale", ["ascii", "utf-16"])
def test_what_is_printed_is_utf_8(repo: Path, locale: str) -> None:
    code, out, err = started(repo, "config sample", PYTHONIOENCODING=locale)
    assert (code, out, err) == (0, config_file.sample().encode(), b"")


def unread(repo: Path, *words: str) -> tuple[int, bytes]:
    """Exit code and errors of a command whose output has no reader."""
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "patchq", *words]
    done = subprocess.run(command, cwd=repo, stdout=writing, stderr=subprocess.PIPE, check=False)
    os.close(writing)
    return done.returncode, done.stderr


def test_work_goes_on_when_nobody_reads(repo: Path) -> None:
    drop(repo / ".patchq", {f"{n}.md": block(f"gone-{n}.txt", "x\n", "y\n") for n in range(3)})
    assert unread(repo, "run") == (1, b"")
    assert [report(repo / ".patchq", str(n))["state"] for n in range(3)] == ["rejected"] * 3
