"""What is shipped to run a cluster: the compose file's services, as their commands say, and the
service manager's units."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from patchq.cli import command
from patchq.gate.service.cluster import DATABASE
from tests.helpers.pages import ROOT

UNITS = sorted((ROOT / "contrib/systemd").rglob("*.service"))


def words_of(line: str) -> list[str]:
    """What follows `patchq` in a shell's line, up to its end or to a redirection."""
    words = shlex.split(line, comments=True)
    words = words[words.index("patchq") + 1 :]
    ends = (place for place, word in enumerate(words) if word in ("<", "&&", "|"))
    return words[: next(ends, len(words))]


def accepted(words: list[str]) -> str:
    """The verb; raises `UsageError` unless the words are a command of patchq."""
    return str(command.parse(*command.sort(words)).verb)


@pytest.mark.parametrize("unit", UNITS, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_unit_calls_commands_that_there_are(unit: Path) -> None:
    text = unit.read_text()
    lines = [line.partition("=")[2] for line in text.splitlines() if line.startswith("ExecStart")]
    verbs = [accepted(words_of(line)) for line in lines]
    assert verbs[-1] == ("worker" if "worker" in unit.name else "watch")
    assert DATABASE in text or "worker" not in unit.name
    if tool := shutil.which("systemd-analyze"):
        words = [tool, "verify", str(unit)]
        done = subprocess.run(words, capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stderr) == (0, "")
