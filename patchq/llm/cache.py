"""Answers that are known already, by the model, the file's content and the text in question.

All are kept in memory.  Those that an edit was corrected by are kept on disk too, a bounded number
of them: a batch that is decided again, after a crash or on a moved branch, is corrected as before.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
from hashlib import sha256
from pathlib import Path
from threading import Lock

_LOG = logging.getLogger("patchq")
_MOST_IN_MEMORY = 1000
_MOST_ON_DISK = 256
_MOST_BYTES = 256 * 1024
_NAME = re.compile(r"[0-9a-f]{64}")


def key_of(*parts: str) -> str:
    """A name for a question; no two of different parts share it."""
    told = "\0".join(f"{len(part)}:{part}" for part in parts)
    return sha256(told.encode("utf-8", "surrogatepass")).hexdigest()


class Cache:
    """Answers by their keys; without a directory, in memory only."""

    def __init__(self, directory: Path | None = None) -> None:
        self._directory = directory
        self._known: dict[str, str] = {}
        self._lock = Lock()

    def get(self, key: str) -> str | None:
        with self._lock:
            if key in self._known or self._directory is None:
                return self._known.get(key)
        try:
            data = (self._directory / key).read_bytes()
            told, _, text = data.decode().partition("\n")
        except (OSError, UnicodeDecodeError):
            return None
        if told != sha256(text.encode()).hexdigest():
            return None  # a crash left half of it
        self.put(key, text)
        return text

    def put(self, key: str, text: str) -> None:
        with self._lock:
            self._known[key] = text
            while len(self._known) > _MOST_IN_MEMORY:
                del self._known[next(iter(self._known))]

    def keep(self, key: str) -> None:
        """Write a known answer to disk; a disk that is full loses nothing but the answer."""
        text = self._known.get(key)
        if self._directory is None or text is None or len(text) > _MOST_BYTES:
            return
        scratch = self._directory / f".{key}.{os.getpid()}"
        try:
            self._directory.mkdir(exist_ok=True)
            scratch.write_bytes(f"{sha256(text.encode()).hexdigest()}\n{text}".encode())
            scratch.replace(self._directory / key)
            self._forget_the_oldest(self._directory)
        except OSError as error:
            _LOG.warning("an answer of the model could not be kept: %s", error.strerror)
            with contextlib.suppress(OSError):
                scratch.unlink(missing_ok=True)

    def _forget_the_oldest(self, directory: Path) -> None:
        kept = [entry for entry in os.scandir(directory) if _NAME.fullmatch(entry.name)]
        if len(kept) <= _MOST_ON_DISK:
            return
        kept.sort(key=lambda entry: entry.stat().st_mtime_ns)
        for entry in kept[: len(kept) - _MOST_ON_DISK]:
            Path(entry.path).unlink(missing_ok=True)
