"""One question to a model, whatever serves it: the protocol, and its twin in memory.

What goes wrong is a value, a `Problem` with one of the `llm.*` codes: a model may be slow, wrong or
away at any time, and no verdict depends on its being there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal, Protocol

from msgspec import Struct

from patchq.core.model.values import Problem

NORMAL_ENDS = frozenset({"stop", "end_turn", "stop_sequence"})
"""The stop reasons of an answer that is whole."""


class Message(Struct, frozen=True):
    """One turn of a conversation."""

    role: Literal["system", "user", "assistant"]
    text: str


class Answer(Struct, frozen=True):
    """What the model said, why it stopped (as the server names it), and which model it was."""

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
        """What the configuration calls it."""

    def complete(self, messages: Sequence[Message]) -> Answer | Problem:
        """The answer, or why there is none (`llm.*`); returns within a bounded time."""


@dataclass
class Scripted:
    """The twin in memory: answers what its script says, in order or as a function of the question,
    and keeps the questions."""

    script: Sequence[str | Answer | Problem] | Callable[[str], str | Answer | Problem]
    name: str = "scripted"
    questions: list[tuple[Message, ...]] = field(default_factory=list)

    def complete(self, messages: Sequence[Message]) -> Answer | Problem:
        self.questions.append(tuple(messages))
        if callable(self.script):
            answer = self.script(messages[-1].text)
        elif len(self.questions) <= len(self.script):
            answer = self.script[len(self.questions) - 1]
        else:
            answer = Problem("llm.server", "the script has no further answer")
        return Answer(answer, "stop", self.name) if isinstance(answer, str) else answer


class Stop:
    """Whether to ask no more.  `set` may be called from a signal handler, so it takes no lock; it
    calls whoever listens at that moment."""

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
