"""A command to which something happens before a step that others can see.

    python -m tests.helpers.stepping STEP LINE WORDS…

A step is the move or deletion of a ref, a report, a flush, the move of a target, or a run of a
train's hooks; `STEP` is the number of one, or `NUMBER@ID` for the steps of one change.  The shell
runs the line then; without one the process ends, as if it was killed.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from patchq.cli import main
from patchq.gate.git import files, refs
from patchq.gate.land import landing, reports, running

DIED = 9
_MOST_SECONDS = 3.0
_STEPS = (
    (refs, "move"), (refs, "delete"), (reports, "put"), (files, "barrier"),
    (landing, "move_target"), (running, "note"),
)  # fmt: skip


def die(repo: Path, step: int | str, *words: str) -> None:
    """End a command before that step."""
    died = run(repo, step, "", *words)
    assert died.returncode == DIED, died.stderr


def run(repo: Path, step: int | str, line: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a command to which the line happens before that step."""
    command = [sys.executable, "-m", __name__, str(step), line, *words]
    env = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.run(command, cwd=repo, env=env, capture_output=True, text=True, timeout=120)


def _stepped(call: Callable[..., Any], left: list[int], only: str, line: str) -> Callable[..., Any]:
    def step(*args: Any, **more: Any) -> Any:
        name = str(getattr(args[1], "id", args[1]) if len(args) > 1 else "")
        left[0] -= name.rpartition("/")[2].endswith(only)
        if left[0] == -1:
            if not line:
                os._exit(DIED)
            left[0] -= 1
            process = subprocess.Popen(line, shell=True, stdout=subprocess.DEVNULL)
            with suppress(subprocess.TimeoutExpired):  # it may wait for a lock that is held here
                process.wait(_MOST_SECONDS)
        return call(*args, **more)

    return step


if __name__ == "__main__":
    number, _, only = sys.argv[1].partition("@")
    left = [int(number)]
    for room, name in _STEPS:
        setattr(room, name, _stepped(getattr(room, name), left, only, sys.argv[2]))
    sys.exit(main(sys.argv[3:]))
