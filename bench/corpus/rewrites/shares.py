"""A run in several processes, and on another checkout's patchq.

Each process runs its share of the kinds and writes its results; what belongs to a kind depends on
the seed alone, so any number of processes finds the same.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from bench.corpus.rewrites.trial import Result
from bench.git import BenchError

_CHECKOUT = Path(__file__).resolve().parents[3]


def run_shares(words: Sequence[str], count: int, tree: Path, room: Path) -> list[Result]:
    """What `count` processes find, each with the words of the command line for its share of the
    kinds; `tree` is the checkout that has the patchq to judge."""
    if not (tree / "patchq/__init__.py").is_file():
        raise BenchError(f"no checkout of patchq: {tree}")
    home = room / "modules"
    home.mkdir()
    (home / "bench").symlink_to(_CHECKOUT / "bench")
    for entry in tree.resolve().iterdir():
        if entry.name != "bench" and not entry.name.startswith("."):
            (home / entry.name).symlink_to(entry)
    module = [sys.executable, "-m", "bench.corpus.rewrites", *words]
    found = [room / f"share-{number}.json" for number in range(count)]
    # The working directory is where `-m` looks first, so both come from there.
    running = [
        subprocess.Popen(
            [*module, "--share", f"{number}/{count}", "--json", str(out)],
            cwd=home,
            env={**os.environ, "PYTHONPATH": str(home)},
            stdout=subprocess.DEVNULL,
        )
        for number, out in enumerate(found)
    ]
    try:
        codes = [process.wait() for process in running]
    finally:
        for process in running:  # of one that was interrupted
            process.terminate()
    if any(code not in {0, 1} for code in codes):
        raise BenchError(f"a process of the run failed, exit {max(codes)}")
    return [result for out in found for result in _read(out)]


def _read(path: Path) -> list[Result]:
    records: list[dict[str, object]] = json.loads(path.read_text())
    return [Result.of(record) for record in records]
