"""What commands do where a standard stream is closed, nobody reads, or the locale is not UTF-8."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import BAD, EDIT
from tests.helpers.command import drop, report
from tests.helpers.ending import MOST_SECONDS


@pytest.mark.parametrize("closed", [">&-", "<&- >&- 2>&-"])
def test_a_closed_stream_is_an_empty_one(repo: Path, closed: str) -> None:
    drop(repo / ".patchq", {"good.md": EDIT, "bad.md": BAD})
    words = ["/bin/sh", "-c", f'exec "$0" -m patchq run {closed}', sys.executable]
    done = subprocess.run(words, cwd=repo, capture_output=True, timeout=MOST_SECONDS)
    assert (done.returncode, done.stderr) == (1, b"")
    assert report(repo / ".patchq", "good")["state"] == "proposed"
    assert report(repo / ".patchq", "bad")["state"] == "rejected"
