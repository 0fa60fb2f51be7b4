"""Which hooks passed on which trees: a file without content for each, its name a digest.

Only passes are remembered: a refusal may come from what is outside of the tree, and the next try
shall find out.  What is forgotten, or lost with the machine's power, costs one more run.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

MOST = 8192
"""Passes that are kept; then the older half is forgotten."""


@dataclass(frozen=True, slots=True)
class Passes:
    """The passes in the directory `root`."""

    root: Path

    def has(self, *key: str) -> bool:
        return self._file(key).exists()

    def add(self, *key: str) -> None:
        with suppress(OSError):
            self.root.mkdir(parents=True, exist_ok=True)
            self._file(key).touch()
            if len(os.listdir(self.root)) > MOST:
                self._forget()

    def _file(self, key: tuple[str, ...]) -> Path:
        return self.root / sha256("\0".join(key).encode("utf-8", "surrogateescape")).hexdigest()

    def _forget(self) -> None:
        with os.scandir(self.root) as entries:
            aged = sorted((entry.stat().st_mtime, entry.path) for entry in entries)
        for _, path in aged[: len(aged) // 2]:
            os.unlink(path)
