"""One batch's questions to the model: each asked once, and what went wrong kept as warnings."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace
from typing import TypeVar

from patchq.llm import questions
from patchq.llm.cache import Cache
from patchq.llm.chat import AT_ONCE
from patchq.llm.client import Answer, Message, Model
from patchq.model.values import Problem
from patchq.queue.shelf import digest

_LOG = logging.getLogger("patchq")
_PULSE_SECONDS = 1.0
_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


class Questioner:
    """Asks about the edits of one batch, and remembers whether it did, and which answers it used:
    their keys in the cache.  `pulse` is called about every second of waiting, in the thread that
    waits."""

    def __init__(self, model: Model, cache: Cache, pulse: Callable[[], None]) -> None:
        self.used: list[str] = []
        self.tried = False
        self._model = model
        self._cache = cache
        self._pulse = pulse
        self._problems: dict[str, Problem] = {}

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What went wrong, each kind once, as warnings: the verdict without the model stands."""
        return tuple(self._problems.values())

    def each(self, ask: Callable[[_Item], _Result], items: Sequence[_Item]) -> list[_Result]:
        """What `ask` gives for each item; several are asked about at once."""
        with ThreadPoolExecutor(AT_ONCE) as pool:
            futures = [pool.submit(ask, item) for item in items]
            while wait(futures, timeout=_PULSE_SECONDS).not_done:
                self._pulse()
        return [future.result() for future in futures]

    def ask(self, key: str, messages: Sequence[Message], *about: str) -> str | None:
        """The text that the model gives under `key`; None if there is no answer in that form.

        `about` is what the answer depends on: the file's content and the text in question.
        """
        self.tried = True
        name = digest(key, self._model.name, *about)
        text = self._cache.get(name)
        if text is None:
            text = self._answer(key, messages)
            if text is None:
                return None
            self._cache.put(name, text)
        self.used.append(name)
        return text

    def _answer(self, key: str, messages: Sequence[Message]) -> str | None:
        answer = self._model.complete(messages)
        if isinstance(answer, Answer):
            text = questions.read(answer.text, key) if answer.whole else None
            if text is not None:
                return text
            flaw = "is not the JSON asked for" if answer.whole else f"was cut ({answer.stop})"
            answer = Problem(
                "llm.answer",
                f"the answer of the model {answer.model} {flaw}",
                "send the edit again with the lines that the file has",
            )
        _LOG.warning("%s: %s", answer.code, answer.message)
        self._problems.setdefault(answer.code, replace(answer, severity="warning"))
        return None
