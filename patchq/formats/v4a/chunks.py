"""The chunks of a file in a V4A patch: `@@` lines, then lines led by a space, `-` or `+`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from patchq.formats.marks.signed_lines import halves, is_blank
from patchq.formats.unreadable import Unreadable
from patchq.model.ops import PatchHunk

SCOPE = re.compile(r"@@(?=[ \t\r]|\Z)(.*)", re.DOTALL)
_NUMBERS = re.compile(r"-(\d{1,9})(?:,\d+)? +\+\d+(?:,\d+)?(?: *@@.*)?\Z", re.DOTALL)
_UNKNOWN = re.compile(r"\*{3}[ \t]*\w+(?: \w+)? ?(?:File|Patch|Path|to)\b", re.IGNORECASE)

Line = tuple[int, str, str]
"""A line's index, the line, and the word of the marker that it is, or ""."""


@dataclass(slots=True)
class Chunk:
    """`first` and `last` are indices of the response's lines; `lines` are pairs of a sign and the
    line with it.  The sign is "" for a blank line, and `?` for one that lacks its own."""

    first: int
    last: int
    scopes: list[str] = field(default_factory=list)
    stated: int | None = None
    lines: list[tuple[str, str]] = field(default_factory=list)
    at_end: bool = False

    @property
    def changes(self) -> bool:
        return any(sign in ("+", "-") for sign, _ in self.lines)

    @property
    def lacks_space(self) -> bool:
        return any(sign == "?" for sign, _ in self.lines)

    def hunk(self, *, bare: bool) -> PatchHunk:
        """What the chunk says; with `bare` also as read with context lines as they stand."""
        lines = self._quoting()
        old, new = halves((s, x[1:] if s in ("+", "-", " ") else x) for s, x in lines)
        stand = halves((s, x[1:] if s in ("+", "-") else x) for s, x in lines)
        return PatchHunk(
            old,
            new,
            line=self.stated,
            scopes=tuple(self.scopes),
            at_end=self.at_end,
            bare=stand if bare and stand != (old, new) else None,
        )

    def _quoting(self) -> list[tuple[str, str]]:
        """The lines; without the blank ones behind lines that are only added, since those set the
        chunk apart from the next and say nothing of its place."""
        end = len(self.lines)
        if all(sign in ("", "+") for sign, _ in self.lines):
            while end and not self.lines[end - 1][0]:
                end -= 1
        return self.lines[:end]


def chunks_of(body: Sequence[Line]) -> list[Chunk]:
    """The chunks of an update's lines; raises `Unreadable`."""
    chunks: list[Chunk] = []
    open_ = False
    for i, line, word in body:
        if word == "move to" and not chunks:
            continue
        if word == "end of file" and open_ and chunks[-1].lines:
            chunks[-1].at_end, chunks[-1].last, open_ = True, i, False
            continue
        if word or _UNKNOWN.match(line):
            raise Unreadable(
                i,
                f"expected a line of a chunk, found the marker {line.strip()[:60]!r}",
                "put `*** Move to:` right under `*** Update File:` and `*** End of File` under a "
                "chunk's lines; lead lines of the file by a space, `-` or `+`",
            )
        scope = SCOPE.match(line)
        if not open_ and is_blank(line):
            continue
        if not open_ or (scope and chunks[-1].lines):
            chunks.append(Chunk(i, i))
            open_ = True
        if scope:
            _take_scope(chunks[-1], scope[1].strip())
        else:
            chunks[-1].lines.append((_sign(line), line))
        if not is_blank(line):
            chunks[-1].last = i
    return chunks


def _take_scope(chunk: Chunk, text: str) -> None:
    """Read what stands behind `@@`: a line, the numbers of a diff, or nothing."""
    if numbers := _NUMBERS.match(text):
        chunk.stated = int(numbers[1]) or None
        return
    text = text.removesuffix("@@").rstrip()
    if text.strip(".…"):
        chunk.scopes.append(text)


def _sign(line: str) -> str:
    if line[:1] in ("+", "-", " "):
        return line[0]
    return "?" if line.strip() else ""
