"""What commands do where a standard stream is closed, nobody reads, or the locale is not UTF-8."""

from __future__ import annotations

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
