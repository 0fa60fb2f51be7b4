"""The files of a unified diff, and the edits that their hunks stand for: one edit for each hunk.

Only a new or deleted file's hunks are one edit together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from patchq.formats.marks.lines import halves, is_blank, joined
from patchq.formats.unified_diff.headers import DiffRegion, Headers, headers_at
from patchq.formats.unified_diff.hunks import HunkBody, HunkNumbers, body_at, numbers_of, sign_of
from patchq.model.ops import Create, DeleteFile, Op, PatchHunk, Rename
from patchq.model.values import Edit, Problem

NAME = "unified_diff"


@dataclass(frozen=True, slots=True)
class _Hunk:
    """`first` is the index of its first line, the header if it has one; `start` of its body."""

    first: int
    start: int
    numbers: HunkNumbers | None
    body: HunkBody


class FileReader:
    """Reads the files of one diff; raises `UnreadableEdit`."""

    def __init__(self, region: DiffRegion) -> None:
        self.region = region
        self.edits: list[Edit] = []
        self.warnings: list[Problem] = []
        self._read: list[_Hunk] = []

    @property
    def exact(self) -> bool:
        """Whether the last hunk's counts hold, so that nothing of it is missing."""
        return all(hunk.body.exact for hunk in self._read[-1:])

    @property
    def open_end(self) -> bool:
        """Whether the last hunk states no counts and ends in context, so that it may be whole."""
        last = self._read[-1] if self._read else None
        return last is not None and last.numbers is None and last.body.lines[-1][0] == " "

    @property
    def others_exact(self) -> bool:
        """Whether there are other hunks, and the counts of all of them hold."""
        return len(self._read) > 1 and all(hunk.body.exact for hunk in self._read[:-1])

    def file(self, start: int) -> int:
        """Read the file whose headers begin on line `start`; returns the index behind it."""
        headers = headers_at(self.region, start)
        hunks, end = self._hunks(headers.end)
        if not hunks and (not headers.complete or (headers.promises and self.region.ends(end))):
            message = "expected the hunks of the change, found none"
            raise self.region.missing(headers.end - 1, message, end)
        self._add(headers, hunks, end)
        return end

    def headless(self, start: int, path: str | None) -> int:
        """Read the hunks from line `start` on, which stand under no header, as those of `path`."""
        if path is None:
            raise self.region.unreadable(start, "expected a file's header before the hunk")
        hunks, end = self._hunks(start)
        self._add(Headers(start, path, path), hunks, end)
        return end

    # ------------------------------------------------------------ hunks

    def _hunks(self, start: int) -> tuple[list[_Hunk], int]:
        """The hunks from line `start` on, and the index behind them."""
        region, hunks, end = self.region, list[_Hunk](), start
        while True:
            i = end
            while i < len(region.lines) and is_blank(region.lines[i]):
                i += 1
            headed = region.is_hunk(i)
            if not headed and (hunks or not self._is_body(i)):
                return hunks, end
            numbers = numbers_of(region.lines[i]) if headed else None
            known = region.doc.known
            body = body_at(region.lines, i + headed, numbers, known, fenced=region.fenced)
            if not body.lines:
                message = "expected the hunk's lines behind its header"
                raise region.missing(min(i, len(region.lines) - 1), message, body.end)
            hunks.append(_Hunk(i, i + headed, numbers, body))
            self._read.append(hunks[-1])
            end = body.end

    def _is_body(self, i: int) -> bool:
        """Whether a hunk's lines begin on line `i`, without a header."""
        return i < len(self.region.lines) and self.region.lines[i][:1] in ("+", "-", " ")

    # ------------------------------------------------------------ edits

    def _add(self, headers: Headers, hunks: Sequence[_Hunk], end: int) -> None:
        if headers.mode:
            self._warn(headers)
        if whole := self._creation(headers, hunks) or self._deletion(headers, hunks):
            self.edits.append(self._edit(headers, headers.start, end, whole))
            return
        if headers.renames:
            op = Rename(headers.new)
            self.edits.append(self._edit(headers, headers.start, headers.end, op))
        self.edits += self._changes(headers, hunks)

    def _edit(self, headers: Headers, first: int, end: int, op: Op) -> Edit:
        while end > first + 1 and is_blank(self.region.lines[end - 1]):
            end -= 1
        at = (self.region.offset + first + 1, self.region.offset + end)
        return Edit("", NAME, at, headers.old, op)

    def _creation(self, headers: Headers, hunks: Sequence[_Hunk]) -> Create | None:
        """The new file; so is one that the base does not have, if its only hunk states no line."""
        if not headers.creates:
            stated = len(hunks) == 1 and hunks[0].numbers is not None and not hunks[0].numbers.old
            added = stated and all(sign == "+" for sign, _ in hunks[0].body.lines)
            if not added or headers.renames or self.region.doc.known(headers.new):
                return None
        self._only(hunks, "+", "a new file's lines are led by `+`, all of them")
        lines = [line for hunk in hunks for line in hunk.body.lines]
        while lines and lines[-1][0] == " ":  # a blank line behind the file
            lines.pop()
        text = joined(text for _, text in lines)
        ended = not hunks or hunks[-1].body.new_ends
        return Create(text if ended else text.removesuffix("\n"))

    def _deletion(self, headers: Headers, hunks: Sequence[_Hunk]) -> DeleteFile | None:
        if not headers.deletes:
            return None
        self._only(hunks, "-", "a deleted file's lines are led by `-`, all of them")
        old = joined(text for hunk in hunks for _, text in hunk.body.lines)
        return DeleteFile(old if hunks else None)

    def _only(self, hunks: Sequence[_Hunk], sign: str, message: str) -> None:
        for hunk in hunks:
            for i in range(hunk.start, hunk.body.end):
                line = self.region.lines[i]
                if not is_blank(line) and sign_of(line) not in (sign, "\\"):
                    raise self.region.unreadable(i, f"{message}; found {line[:60]!r}")

    def _changes(self, headers: Headers, hunks: Sequence[_Hunk]) -> Iterator[Edit]:
        for hunk in hunks:
            body = hunk.body
            old, new = halves(body.lines)
            op = PatchHunk(
                old,
                new,
                line=_line(hunk.numbers, bool(old)),
                # What differs in the final newline alone changes the file's end.
                at_end=old == new and body.old_ends != body.new_ends,
                final_newline=body.new_ends,
            )
            yield self._edit(headers, hunk.first, body.end, op)

    def _warn(self, headers: Headers) -> None:
        line = self.region.offset + headers.start + 1
        message = f"line {line}, column 1: the mode {headers.mode} of {headers.new} is left out"
        hint = "a person has to change the file's mode"
        warning = Problem("path.review", message, hint, "warning", path=headers.new, line=line)
        self.warnings.append(warning)


def _line(numbers: HunkNumbers | None, quotes: bool) -> int | None:
    """The first old line as stated; where nothing is quoted, a diff states the line before it."""
    if numbers is None:
        return None
    return (numbers.start if quotes else numbers.start + 1) or None
