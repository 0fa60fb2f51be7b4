"""What commands do where a standard stream is closed, nobody reads, or the locale is not UTF-8."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.command import block, drop, report
from tests.helpers.ending import MOST_SECONDS

EDIT = block("a.txt", "two\n", "2\n")
BAD = block("a.txt", "nowhere\n", "x\n")


def started(repo: Path, words: str, redirected: str) -> tuple[int, bytes]:
    """Exit code and errors of a command that a shell starts."""
    done = subprocess.run(
        ["/bin/sh", "-c", f'exec "$0" -m patchq {words} {redirected}', sys.executable],
        cwd=repo,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=MOST_SECONDS,
    )
    return done.returncode, done.stderr


@pytest.mark.parametrize("closed", [">&-", "<&- >&- 2>&-"])
def test_a_closed_stream_is_an_empty_one(repo: Path, closed: str) -> None:
    drop(repo / ".patchq", {"good.md": EDIT, "bad.md": BAD})
    assert started(repo, "run", closed) == (1, b"")
    assert [report(repo / ".patchq", id)["state"] for id in ("good", "bad")] == [
        "proposed", "rejected",
    ]  # fmt: skip


def unread(repo: Path, *words: str) -> tuple[int, bytes]:
    """Exit code and errors of a command whose output has no reader."""
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "patchq", *words]
    pipe = subprocess.PIPE
    done = subprocess.run(command, cwd=repo, stdout=writing, stderr=pipe, timeout=MOST_SECONDS)
    os.close(writing)
    return done.returncode, done.stderr


def test_work_goes_on_when_nobody_reads(repo: Path) -> None:
    drop(repo / ".patchq", {f"{n}.md": block(f"gone-{n}.txt", "x\n", "y\n") for n in range(3)})
    assert unread(repo, "run") == (1, b"")
    assert [report(repo / ".patchq", str(n))["state"] for n in range(3)] == ["rejected"] * 3
