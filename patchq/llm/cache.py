"""Answers that are known already, by the model, the file's content and the text in question.

All are kept in memory.  Those that an edit was corrected by are kept on disk too, a bounded number
of them: a batch that is decided again, after a crash or on a moved branch, is corrected as before.
"""

from __future__ import annotations

import logging
from hashlib import sha256
from pathlib import Path
from threading import Lock

from patchq.queue.shelf import Shelf

_LOG = logging.getLogger("patchq")
_MOST_IN_MEMORY = 1000
_MOST_ON_DISK = 256
_MOST_BYTES = 256 * 1024


class Cache:
    """Answers by their names (`shelf.digest`); without a directory, in memory only."""

    def __init__(self, directory: Path | None = None) -> None:
        self._shelf = Shelf(directory, _MOST_ON_DISK, _MOST_ON_DISK) if directory else None
        self._known: dict[str, str] = {}
        self._lock = Lock()

    def get(self, name: str) -> str | None:
        with self._lock:
            if name in self._known or self._shelf is None:
                return self._known.get(name)
        try:
            check, _, text = (self._shelf.get(name) or b"").decode().partition("\n")
        except UnicodeDecodeError:
            return None
        if check != _check(text):
            return None  # a crash left half of it
        self.put(name, text)
        return text

    def put(self, name: str, text: str) -> None:
        with self._lock:
            self._known[name] = text
            while len(self._known) > _MOST_IN_MEMORY:
                del self._known[next(iter(self._known))]

    def keep(self, name: str) -> None:
        """Write a known answer to disk; a disk that is full loses nothing but the answer."""
        text = self._known.get(name)
        if self._shelf is None or text is None or len(text) > _MOST_BYTES:
            return
        try:
            self._shelf.put(name, f"{_check(text)}\n{text}".encode())
        except OSError as error:
            _LOG.warning("an answer of the model could not be kept: %s", error.strerror)


def _check(text: str) -> str:
    return sha256(text.encode()).hexdigest()
