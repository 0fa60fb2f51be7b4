"""A response that looks like an edit and cannot be read as one, with the place."""

from __future__ import annotations

from dataclasses import replace

from patchq.model.values import Problem

SEND_AGAIN = "send the whole response again; if it was cut, send fewer changes at once"


class UnreadableEdit(Exception):
    """The response cannot be read; `index` is the line's, counted from 0, `column` from 1."""

    def __init__(
        self,
        index: int,
        message: str,
        hint: str,
        code: str = "response.unreadable_edit",
        column: int = 1,
    ) -> None:
        super().__init__(message)
        place = f"line {index + 1}, column {column}: "
        self.problem = Problem(code, place + message, hint, line=index + 1)

    @classmethod
    def of(cls, problem: Problem) -> UnreadableEdit:
        """The same for a problem that is known already."""
        error = cls((problem.line or 1) - 1, problem.message, problem.hint or "", problem.code)
        error.problem = problem
        return error

    @classmethod
    def cut(cls, index: int, message: str, hint: str = SEND_AGAIN) -> UnreadableEdit:
        """A response that ends too early: what begins on line `index` is not all there."""
        return cls(index, message, hint, "response.truncated")

    def moved(self, line: int) -> UnreadableEdit:
        """The same for a text that stands inside JSON, on line `line` of the response."""
        return UnreadableEdit.of(replace(self.problem, line=line))
