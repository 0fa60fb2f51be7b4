"""A model behind a server that speaks Chat Completions.

One number bounds a question: `llm.timeout_seconds` holds for all of it, tries and pauses and the
wait for a free place included.  The key is read from the environment, sent to the server, and
written nowhere.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from threading import BoundedSemaphore
from time import monotonic

from patchq.config.schema import Llm
from patchq.llm.client import Answer, Message, Stop
from patchq.model.values import Problem

AT_ONCE = 4
"""Calls that may run at the same time."""
_NO_KEY = "none"


class Chat:
    """The model that `config` names; see `client.Model`."""

    def __init__(self, config: Llm, stop: Stop | None = None) -> None:
        self.name = config.model or ""
        self._config = config
        self._stop = stop or Stop()
        self._places = BoundedSemaphore(AT_ONCE)

    def complete(self, messages: Sequence[Message]) -> Answer | Problem:
        config, deadline = self._config, monotonic() + self._config.timeout_seconds
        if not config.model or not config.base_url:
            missing = "model" if not config.model else "base_url"
            return _not_configured(f"`llm.{missing}` is not set", f"set `llm.{missing}`")
        try:
            from patchq.llm import completions
        except ImportError as error:
            return _not_configured(
                f"the package {error.name!r} is not installed", "pip install 'patchq[llm]'"
            )
        key = _NO_KEY
        if config.api_key_env is not None:
            key = os.environ.get(config.api_key_env, "").strip()
        if not key or not key.isascii() or not key.isprintable():
            return _not_configured(
                f"the variable {config.api_key_env}, which `llm.api_key_env` names, holds no key",
                f"start patchq with {config.api_key_env} in its environment",
            )
        if not self._places.acquire(timeout=config.timeout_seconds):
            return completions.too_late(config)
        try:
            return completions.complete(config, key, messages, deadline, self._stop)
        finally:
            self._places.release()


def _not_configured(what: str, hint: str) -> Problem:
    return Problem("llm.not_configured", f"no model can be asked: {what}", hint)
