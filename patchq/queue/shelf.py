"""Small files beside the queue, each named by a digest of what it is about, a bounded number.

They are caches: what is forgotten, or lost with the machine's power, is found out once more.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from threading import get_native_id

from patchq.git import files


def digest(*parts: str) -> str:
    """A name for texts in their order, 64 hexadecimal digits; no two lists of texts share it."""
    text = "\0".join(f"{len(part)}:{part}" for part in parts)
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True, slots=True)
class Shelf:
    """The directory `root`, made when it is needed.  Where it holds more than `most` files, the
    oldest go, until `rest` are left."""

    root: Path
    most: int
    rest: int

    def get(self, name: str) -> bytes | None:
        """The file's content; None if it cannot be read."""
        try:
            return (self.root / name).read_bytes()
        except OSError:
            return None

    def put(self, name: str, data: bytes) -> None:
        """Write the file, whole or not at all; raises `OSError`."""
        scratch = self.root / f".{name}.{get_native_id()}"
        self.root.mkdir(parents=True, exist_ok=True)
        try:
            files.replace(self.root / name, data, via=scratch)
        finally:
            scratch.unlink(missing_ok=True)
        if len(os.listdir(self.root)) > self.most:
            self._forget()

    def _forget(self) -> None:
        with os.scandir(self.root) as entries:
            named = [entry for entry in entries if not entry.name.startswith(".")]
            aged = sorted((entry.stat().st_mtime_ns, entry.path) for entry in named)
        for _, path in aged[: -self.rest]:
            Path(path).unlink(missing_ok=True)
