"""The service manager's unit of a worker, as it is shipped."""

from __future__ import annotations

import shlex
import shutil
import subprocess

from patchq.cli import command
from patchq.gate.service.cluster import DATABASE
from tests.helpers.pages import ROOT


def test_a_unit_calls_a_command_that_there_is() -> None:
    unit = ROOT / "contrib/systemd/patchq-worker@.service"
    text = unit.read_text()
    (line,) = [line for line in text.splitlines() if line.startswith("ExecStart=")]
    words = shlex.split(line.partition(" patchq ")[2])
    assert command.parse(*command.sort(words)).verb == "worker"
    assert DATABASE in text
    if tool := shutil.which("systemd-analyze"):
        verify = [tool, "verify", str(unit)]
        done = subprocess.run(verify, capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stderr) == (0, "")
