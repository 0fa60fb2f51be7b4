"""The configured model, behind a server that speaks Chat Completions, and what it answered before.

One number bounds a question: `llm.timeout_seconds` holds for all of it, tries and pauses and the
wait for a free place included.  The key is read from the environment, sent to the server, and
written nowhere.

Answers are known by the model, the file's content and the text in question.  All are kept in
memory.  Those that an edit was corrected by are kept on disk too, a bounded number of them: a batch
that is decided again, after a crash or on a moved branch, is corrected as before.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from threading import BoundedSemaphore, Lock
from time import monotonic

from patchq.core.model.values import Problem
from patchq.gate.config.schema import Llm
from patchq.gate.queue.spool import Shelf
from patchq.gate.queue.troubles import Troubles
from patchq.llm.client import Answer, Message, Stop

AT_ONCE = 4
"""Calls that may run at the same time."""
_NO_KEY = "none"


class Chat:
    """The model that `config` names; see `client.Model`."""

    def __init__(self, config: Llm, stop: Stop | None = None) -> None:
        self.name = config.model or ""
        self._config, self._stop = config, stop or Stop()
        self._places = BoundedSemaphore(AT_ONCE)

    def complete(self, messages: Sequence[Message]) -> Answer | Problem:
        config = self._config
        if not config.model or not config.base_url:
            missing = "model" if not config.model else "base_url"
            return _not_configured(f"`llm.{missing}` is not set", f"set `llm.{missing}`")
        try:
            from patchq.llm import completions
        except ImportError as error:
            return _not_configured(
                f"the package {error.name!r} is not installed", "pip install 'patchq[llm]'"
            )
        # The package's import is none of the model's time.
        deadline, variable = monotonic() + config.timeout_seconds, config.api_key_env
        key = _NO_KEY if variable is None else os.environ.get(variable, "").strip()
        if not key or not key.isascii() or not key.isprintable():
            return _not_configured(
                f"the variable {variable}, which `llm.api_key_env` names, holds no key",
                f"start patchq with {variable} in its environment",
            )
        if not self._places.acquire(timeout=config.timeout_seconds):
            return completions.too_late(config)
        try:
            return completions.complete(config, key, messages, deadline, self._stop)
        finally:
            self._places.release()


def _not_configured(what: str, hint: str) -> Problem:
    return Problem("llm.not_configured", f"no model can be asked: {what}", hint)


_LOG = logging.getLogger("patchq")
_MOST_IN_MEMORY = 1000
_MOST_ON_DISK = 256
_MOST_BYTES = 256 * 1024


class Cache:
    """Answers by their names (`spool.digest`); without a directory, in memory only."""

    def __init__(self, directory: Path | None = None) -> None:
        self._shelf = Shelf(directory, _MOST_ON_DISK, _MOST_ON_DISK) if directory else None
        self._troubles = Troubles(directory.parent) if directory else None
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
        if self._shelf is None or self._troubles is None:
            return
        if text is None or len(text) > _MOST_BYTES:
            return
        try:
            self._shelf.put(name, f"{_check(text)}\n{text}".encode())
        except OSError as error:
            _LOG.warning("an answer of the model could not be kept: %s", error.strerror)
            message = f"answers of the model cannot be kept in {self._shelf.root}: {error.strerror}"
            self._troubles.note(
                "cache.answers",
                message,
                f"rm -r '{self._shelf.root}' (a cache), or make room; batches are corrected anyway",
            )
        else:
            self._troubles.over("cache.answers")


def _check(text: str) -> str:
    return sha256(text.encode()).hexdigest()
