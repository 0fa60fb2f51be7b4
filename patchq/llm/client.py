"""One question to a model, whatever serves it.

What goes wrong is a value, a `Problem` with one of the `llm.*` codes: a model may be slow, wrong or
away at any time, and no verdict depends on its being there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Literal, Protocol

from msgspec import Struct

from patchq.core.model.values import Problem

# The stop reasons of an answer that is whole.
NORMAL_ENDS = frozenset({"stop", "end_turn", "stop_sequence"})


class Message(Struct, frozen=True):
    role: Literal["system", "user", "assistant"]
    text: str


class Answer(Struct, frozen=True):
    """Text of the model, the reason why it stopped, and its name.

    `stop` is the reason as the server names it.
    """

    text: str
    stop: str
    model: str

    @property
    def whole(self) -> bool:
        return self.stop in NORMAL_ENDS


class Model(Protocol):
    """A model that can be asked, from several threads at once."""

    @property
    def name(self) -> str:
        """Return the name that the configuration has for it."""

    def complete(self, messages: Sequence[Message]) -> Answer | Problem:
        """Return the answer, or why there is none (`llm.*`), within a bounded time."""


class Stop:
    """Signal to ask no more.

    `set` may be called from a signal handler, so it takes no lock; it calls all listeners.
    """

    def __init__(self) -> None:
        self.is_set = False
        self._listeners: dict[object, Callable[[], object]] = {}

    def set(self) -> None:
        self.is_set = True
        for cut_short in tuple(self._listeners.values()):
            cut_short()

    @contextmanager
    def listening(self, cut_short: Callable[[], object]) -> Iterator[None]:
        """Have `cut_short` called if it comes to that, at once if it has."""
        key = object()
        self._listeners[key] = cut_short
        try:
            if self.is_set:
                cut_short()
            yield
        finally:
            del self._listeners[key]
