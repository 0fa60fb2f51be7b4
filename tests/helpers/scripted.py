"""A model without a server."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from patchq.core.model.values import Problem
from patchq.llm.chat import Answer, Chat, Message


@dataclass
class Scripted(Chat):
    """A model that answers by its script and keeps the questions."""

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
