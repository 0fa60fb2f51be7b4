"""Words that a person has written on a change, and has not sent yet."""

from __future__ import annotations

from msgspec import Struct, ValidationError, convert, field, json

from patchq.gate.api import Gate
from patchq.gate.errors import UsageError
from patchq.gate.review.send_back import DraftComment

_KIND = "draft"  # of marks


class DraftPlace(Struct, frozen=True):
    """The lines, or the thread, that words are about; by default the whole change."""

    path: str = ""
    side: str = ""
    first: str = field(default="", name="from")
    line: str = ""
    thread: str = ""

    @property
    def lines(self) -> str:
        """The line, or the first and the last one."""
        return self.line if self.first in ("", self.line) else f"{self.first} to {self.line}"

    def comment(self, text: str) -> DraftComment:
        """Return the words as a comment on the lines; raises `UsageError` for none."""
        lines = [self.first or self.line, self.line]
        values = {"text": text, "path": self.path, "side": self.side, "line": self.line}
        try:
            return convert(values | {"lines": lines}, DraftComment, strict=False)
        except ValidationError:
            message = f"{self.path} has no line {self.lines}"
            raise UsageError(message, "comment on a line that is shown") from None


WHOLE = DraftPlace()


def of(gate: Gate, id: str) -> dict[DraftPlace, str]:
    """Return the words on a change, each with its place."""
    kept = gate.marks(_KIND).of(id)
    return {json.decode(key, type=DraftPlace): words for key, words in kept.items()}


def keep(gate: Gate, id: str, about: DraftPlace, words: str) -> None:
    """Keep words until they are sent; empty ones are taken away."""
    gate.marks(_KIND).put(json.encode(about).decode(), words, id)


def clear(gate: Gate, id: str) -> None:
    """Take away all words on a change."""
    gate.marks(_KIND).clear(id)
