"""The configured model behind a Chat Completions server, and its earlier answers.

One number bounds a question: `llm.timeout_seconds` holds for all of it, tries and pauses and the
wait for a free place included.  The key is read from the environment, sent to the server, and
written nowhere.

Answers are known by the model, the file's content and the text in question.  All are kept in
memory.  Those that an edit was corrected by are kept in the store too, a bounded number: a batch
that is decided again, after a crash or on a moved branch, is corrected as before.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from threading import BoundedSemaphore
from time import monotonic

from patchq.core.model.values import Problem
from patchq.gate.config.schema import Llm
from patchq.gate.queue.shelf import Shelf
from patchq.llm.client import Answer, Message, Stop

AT_ONCE = 4  # calls that may run at the same time
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


_MOST_IN_MEMORY = 1000
_MOST_KEPT = 256
_MOST_BYTES = 256 * 1024


class Cache:
    """Answers by their names (`spool.digest`), in memory and in the store of a queue."""

    def __init__(self, root: Path | None = None) -> None:
        self._shelf = Shelf(root, "answer", _MOST_KEPT) if root else None
        self._known: dict[str, str] = {}

    def get(self, name: str) -> str | None:
        if name not in self._known and self._shelf and (kept := self._shelf.get(name)):
            self.put(name, kept.decode())
        return self._known.get(name)

    def put(self, name: str, text: str) -> None:
        if len(self._known) >= _MOST_IN_MEMORY:
            self._known.clear()
        self._known[name] = text

    def keep(self, name: str) -> None:
        text = self._known.get(name)
        if self._shelf and text is not None and len(text) <= _MOST_BYTES:
            self._shelf.put(name, text.encode())
