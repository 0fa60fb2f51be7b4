"""The benches, as they are started from a checkout."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

_CHECKOUT = Path(__file__).parents[2]


def python(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """A Python that finds the checkout's packages, wherever it is started."""
    environment = os.environ | {"PYTHONPATH": str(_CHECKOUT)}
    command = [sys.executable, *words]
    return subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=560
    )


def bench(name: str, *words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """`python -m bench.NAME WORDS`."""
    return python("-m", f"bench.{name}", *words, cwd=cwd)
