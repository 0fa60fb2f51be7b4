"""The files of a unified diff, and the edits that their hunks stand for: one edit for each hunk.

Only a new or deleted file's hunks are one edit together.

Models miscount, so a hunk's counts are hints: they are believed only if they lead to a place where
a hunk can end.  Otherwise the hunk goes on as long as its lines begin with a space, `+`, `-` or are
blank.

A removed `-- x` and an added `++ y` look like the next file's header.  They are one if both name
the same file; else they are lines of the hunk where the counts hold, and a header where `@@`
follows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

from patchq.core.formats.marks.lines import Signed, halves, is_blank, joined
from patchq.core.formats.marks.paths import Known
from patchq.core.formats.unified_diff.headers import (
    HUNK,
    LINK,
    DiffRegion,
    Headers,
    headers_at,
    is_hunk,
    is_pair,
    names_one_file,
)
from patchq.core.model.ops import (
    Create,
    DeleteFile,
    Delta,
    Op,
    PatchHunk,
    Rename,
    SetMode,
    WriteBytes,
)
from patchq.core.model.values import Edit, Problem
from patchq.core.text import binary_patch

_NUMBERS = re.compile(r"[ \t]*-(\d{1,9})(?:,(\d{1,9}))?[ \t]+\+(\d{1,9})(?:,(\d{1,9}))?(?=\D|\Z)")
_NO_NEWLINE = re.compile(r"\\ ?No newline at end of file\s*|\\ .{10,}", re.IGNORECASE | re.DOTALL)
_VERSION = re.compile(r"\d+(?:\.\w+)+.*", re.DOTALL)
_LISTED = re.compile(r"[-+*] +\S|-{3,}\s*\Z")
_BYTES = re.compile(r"(literal|delta) (\d{1,12})")
_MOST_BYTES = 256 << 20
"""What the binary files of a diff may hold together: they are written deflated."""
_IDS = re.compile(r"([0-9a-f]{40})\.\.([0-9a-f]{40})(?: (\d{6}))?")
_NO_ID = "0" * 40
_EXECUTABLE = "100755"
_MODES = ("100644", _EXECUTABLE)

NAME = "unified_diff"


class HunkNumbers(Struct, frozen=True):
    """A hunk header's numbers."""

    start: int
    old: int
    new: int


class HunkBody(Struct, frozen=True):
    """A hunk's lines, and the index behind them; `exact` says that its counts hold."""

    lines: tuple[Signed, ...]
    end: int
    exact: bool
    old_ends: bool
    """Whether the last old line ends in a newline; `new_ends` says it of the last new line."""
    new_ends: bool


def is_fence(line: str) -> bool:
    """Whether a line opens or closes a fence; behind a sign it is a line like any other."""
    return line.startswith(("```", "~~~"))


def numbers_of(line: str) -> HunkNumbers | None:
    """The numbers of a hunk header, if it has some."""
    match = _NUMBERS.match(line, 2)
    return match and HunkNumbers(int(match[1]), int(match[2] or 1), int(match[4] or 1))


def sign_of(line: str) -> str | None:
    """A body line's sign; a blank line is context, and `\\` says that the line above has no end."""
    if line[:1] in ("+", "-", " ") or not line.strip():
        return line[:1] if line[:1] in ("+", "-") else " "
    return "\\" if line[0] == "\\" and _NO_NEWLINE.fullmatch(line) else None


def _to_blank(lines: Sequence[str], i: int) -> int:
    """The index of the first blank line from line `i` on, or behind the last."""
    return next((k for k in range(i, len(lines)) if is_blank(lines[k])), len(lines))


def is_signature(lines: Sequence[str], i: int) -> bool:
    """Whether a mail ends on line `i`: `-- `, and git's version below it."""
    below = lines[i + 1] if i + 1 < len(lines) else ""
    return lines[i].rstrip() == "--" and _VERSION.fullmatch(below) is not None


def body_at(
    lines: Sequence[str], start: int, numbers: HunkNumbers | None, known: Known, *, fenced: bool
) -> HunkBody:
    """The body that begins on line `start`; `fenced` says that no prose can follow in `lines`."""
    if numbers is not None:
        # Behind the text's last newline stands no line.
        limit = len(lines) - (not fenced and lines[-1] == "")
        end = _counted(lines, start, limit, numbers, known)
        if end is not None and _can_end(lines, end, known, fenced):
            return _body(lines, start, end, end, exact=True)
    end = start
    while end < len(lines) and sign_of(lines[end]):
        # No hunk is empty: a pair on its first lines is a header only if it names a file.
        begins = _next_begins if end > start else names_one_file
        if begins(lines, end, known):
            break
        end += 1
    last = end
    if end == len(lines) or not HUNK.match(lines[end]):
        while last > start and is_blank(lines[last - 1]):
            last -= 1
    return _body(lines, start, last, end if fenced else last, exact=False)


def _counted(
    lines: Sequence[str], start: int, limit: int, numbers: HunkNumbers, known: Known
) -> int | None:
    """Where the counts end the hunk, before line `limit`; None if they are wrong."""
    old, new, i = numbers.old, numbers.new, start
    while old or new:
        sign = sign_of(lines[i]) if i < limit else None
        if sign is None or names_one_file(lines, i, known):
            return None
        old -= sign in " -"
        new -= sign in " +"
        i += 1
        if min(old, new) < 0:
            return None
    while i < len(lines) and sign_of(lines[i]) == "\\":
        i += 1
    return i if i > start else None


def _can_end(lines: Sequence[str], i: int, known: Known, fenced: bool) -> bool:
    """Whether a hunk can end before line `i`."""
    below = _next_filled(lines, i)
    if below == len(lines) or sign_of(lines[below]) is None or _next_begins(lines, below, known):
        return True
    return below > i and not fenced and _LISTED.match(lines[below]) is not None


def _next_filled(lines: Sequence[str], i: int) -> int:
    """The index of the first line from `i` on that holds something, be it a blank."""
    return next((k for k in range(i, len(lines)) if not is_blank(lines[k])), len(lines))


def _next_begins(lines: Sequence[str], i: int, known: Known) -> bool:
    """Whether the next file's header, or a mail's end, begins on line `i`."""
    return is_signature(lines, i) or (
        is_pair(lines, i) and (is_hunk(lines, i + 2) or names_one_file(lines, i, known))
    )


def _body(lines: Sequence[str], start: int, last: int, end: int, *, exact: bool) -> HunkBody:
    signed: list[Signed] = []
    ends = {"-": True, "+": True}
    for line in lines[start:last]:
        sign = sign_of(line)
        if sign == "\\":
            above = signed[-1][0] if signed else " "
            ends.update((s, False) for s in ("-", "+") if above in (s, " "))
        else:
            signed.append((sign or " ", line[1:] if line[:1] in ("+", "-", " ") else line))
    return HunkBody(tuple(signed), end, exact, ends["-"], ends["+"])


# ---------------------------------------------------------------- files


def _id_of(data: bytes, headers: Headers) -> str:
    """What the `index` line calls these bytes: nothing is left of a file that goes."""
    return _NO_ID if headers.deletes and not data else binary_patch.blob_id(data)


class _Hunk(Struct, frozen=True):
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
        self._unpacked = 0

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
        if self.region.lines[headers.end : headers.end + 1] == [binary_patch.HEADER]:
            return self._bytes(headers)
        hunks, end = self._hunks(headers.end)
        if not hunks and (not headers.complete or (headers.promises and self.region.ends(end))):
            raise self.region.missing(
                headers.end - 1, "expected the hunks of the change, found none", end
            )
        self._add(headers, hunks, end)
        return end

    def headless(self, start: int, path: str | None) -> int:
        """Read the hunks from line `start` on, which stand under no header, as those of `path`."""
        if path is None:
            raise self.region.unreadable(start, "expected a file's header before the hunk")
        hunks, end = self._hunks(start)
        self._add(Headers(start, path, path), hunks, end)
        return end

    def _bytes(self, headers: Headers) -> int:
        """Read a file's bytes, `literal` or by `delta`, and what git writes below them for the way
        back, which says nothing; returns the index behind them."""
        region, lines, first = self.region, self.region.lines, headers.end + 1
        stated = _BYTES.fullmatch(lines[first]) if first < len(lines) else None
        ids = _IDS.fullmatch(headers.extended.get("index", ""))
        if stated is None or ids is None:
            raise region.unreadable(
                headers.end,
                "expected a binary file as a `literal` or `delta` below an `index` line with two "
                "whole ids",
                "hand the commit in with `patchq submit --branch` or `--range`",
            )
        end = _to_blank(lines, first + 1)
        self._unpacked += int(stated[2])
        if self._unpacked > _MOST_BYTES:
            raise region.unreadable(headers.end, f"more than {_MOST_BYTES} bytes of binary files")
        data = binary_patch.decode(lines[first + 1 : end], int(stated[2]))
        told = data if data is None or stated[1] == "literal" else Delta(data, ids[2])
        if told is None or (isinstance(told, bytes) and _id_of(told, headers) != ids[2]):
            raise region.missing(headers.end, "these are not the bytes that `index` names", end)
        if end + 1 < len(lines) and _BYTES.fullmatch(lines[end + 1]):
            end = _to_blank(lines, end + 2)
        self._add_bytes(headers, told, ids, end)
        return end

    def _add_bytes(
        self, headers: Headers, told: bytes | Delta, ids: re.Match[str], end: int
    ) -> None:
        """The edits of a file that is told by its bytes."""
        mode, said = headers.mode or ids[3], headers.extended
        link, was_link = (one == LINK for one in (mode, said.get("old mode") or ids[3]))
        if headers.deletes:
            op: Op = DeleteFile(before=ids[1], link=said.get("deleted file mode") == LINK)
            self.edits.append(self._edit(headers, headers.start, end, op))
            return
        if headers.renames:
            self.edits.append(self._edit(headers, headers.start, headers.end, Rename(headers.new)))
        before, turned = (None, False) if headers.creates else (ids[1], link != was_link)
        op = WriteBytes(told, before, headers.mode == _EXECUTABLE, link, turned)
        self.edits.append(self._edit(headers, headers.start, end, op))
        if not (headers.creates or link or turned):
            self._set_mode(headers)

    # ------------------------------------------------------------ hunks

    def _hunks(self, start: int) -> tuple[list[_Hunk], int]:
        """The hunks from line `start` on, and the index behind them."""
        region, lines, hunks, end = self.region, self.region.lines, list[_Hunk](), start
        while True:
            i = _next_filled(lines, end)
            headed = is_hunk(lines, i)
            begins = headed or (not hunks and i < len(lines) and lines[i][:1] in ("+", "-", " "))
            if not begins:
                return hunks, end
            numbers = numbers_of(lines[i]) if headed else None
            body = body_at(lines, i + headed, numbers, region.doc.known, fenced=region.fenced)
            if not body.lines:
                message = "expected the hunk's lines behind its header"
                raise region.missing(min(i, len(lines) - 1), message, body.end)
            hunks.append(_Hunk(i, i + headed, numbers, body))
            self._read.append(hunks[-1])
            end = body.end

    # ------------------------------------------------------------ edits

    def _add(self, headers: Headers, hunks: Sequence[_Hunk], end: int) -> None:
        if whole := self._creation(headers, hunks) or self._deletion(headers, hunks):
            self.edits.append(self._edit(headers, headers.start, end, whole))
            return
        if headers.renames:
            self.edits.append(self._edit(headers, headers.start, headers.end, Rename(headers.new)))
        self.edits += self._changes(headers, hunks)
        self._set_mode(headers)

    def _set_mode(self, headers: Headers) -> None:
        """The change of a file's mode, if it is one of the two that a file may have."""
        if headers.mode in _MODES:
            op = SetMode(headers.mode == _EXECUTABLE)
            self.edits.append(self._edit(headers, headers.start, headers.end, op))
        elif headers.mode:
            self._warn(headers)

    def _edit(self, headers: Headers, first: int, end: int, op: Op, section: int = 0) -> Edit:
        while end > first + 1 and is_blank(self.region.lines[end - 1]):
            end -= 1
        at = (self.region.offset + first + 1, self.region.offset + end)
        return Edit("", NAME, at, headers.old, op, section=section)

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
        if headers.mode and headers.mode not in _MODES:
            self._warn(headers)
        text = text if ended else text.removesuffix("\n")
        return Create(text, executable=headers.mode == _EXECUTABLE)

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
                # Where nothing is quoted, a diff states the line before.
                line=(hunk.numbers.start + (not old) or None) if hunk.numbers else None,
                # What differs in the final newline alone changes the file's end.
                at_end=old == new and body.old_ends != body.new_ends,
                final_newline=body.new_ends,
            )
            section = self.region.offset + headers.start + 1
            yield self._edit(headers, hunk.first, body.end, op, section)

    def _warn(self, headers: Headers) -> None:
        line = self.region.offset + headers.start + 1
        message = f"line {line}, column 1: the mode {headers.mode} of {headers.new} is left out"
        hint = "a person has to change the file's mode"
        self.warnings.append(
            Problem("path.review", message, hint, "warning", path=headers.new, line=line)
        )
