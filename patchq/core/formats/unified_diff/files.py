"""The files of a unified diff, with one edit for each hunk.

Only a new or deleted file's hunks are one edit together.  A file has git's own headers, `---` and
`+++` lines, or both.  What a diff can say and patchq cannot do (submodules, copies, binary files
without their bytes) refuses it.  So does a symbolic link whose target is shown as lines; commits
that are handed in show it by its bytes, with both ids.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from patchq.core.formats.marks.fences import GIT, halves, is_blank, joined
from patchq.core.formats.unified_diff.hunks import (
    NOWHERE,
    DiffHunk,
    DiffRegion,
    Sides,
    bare,
    begins_file,
    filled,
    git_sides,
    hunk_at,
    is_hunk,
    is_pair,
    named,
    side,
    sign_of,
    unquoted,
)
from patchq.core.model.ops import (
    DIFF,
    Create,
    DeleteFile,
    Op,
    PatchHunk,
    Rename,
    SetMode,
    WriteBytes,
)
from patchq.core.model.values import Edit, Problem
from patchq.core.text import binary_patch

_EXTENDED = re.compile(
    r"(old mode|new mode|deleted file mode|new file mode|copy from|copy to|rename from|rename to"
    r"|similarity index|dissimilarity index|index) (.*)",
    re.DOTALL,
)
_BINARY = re.compile(r"Binary files ")
_BYTES = re.compile(r"(literal|delta) (\d{1,12})")
# What the binary files of a diff may hold together: they are written deflated.
_MOST_BYTES = 256 << 20
_IDS = re.compile(r"([0-9a-f]{40})\.\.([0-9a-f]{40})(?: (\d{6}))?")
_NO_ID, _EMPTY_BLOB = "0" * 40, "e69de29"
_LINK, _SUBMODULE, _EXECUTABLE = "120000", "160000", "100755"
_MODES = ("100644", _EXECUTABLE)
_MODE_KEYS = ("old mode", "new mode", "new file mode", "deleted file mode")


# ---------------------------------------------------------------- headers


@dataclass(slots=True)
class FileHeaders:
    """The headers of one file in a diff, and the paths they name.

    They are the lines `start:end` (indices).
    """

    start: int
    old: str = ""
    new: str = ""
    # What git's own headers say, by their names.
    extended: dict[str, str] = field(default_factory=dict)
    end: int = 0
    sided: bool = True  # true if `---` and `+++` lines are among them
    creates: bool = False
    deletes: bool = False

    @property
    def renames(self) -> bool:
        return self.old != self.new

    @property
    def mode(self) -> str | None:
        """The file mode that the change asks for, if it asks for one."""
        return self.extended.get("new mode") or self.extended.get("new file mode")

    @property
    def complete(self) -> bool:
        """Return whether the headers are a whole change, without a hunk."""
        changes = {"rename to", "new mode", "new file mode"} & self.extended.keys()
        return self.deletes or bool(changes)

    @property
    def promises(self) -> bool:
        """Return whether the headers announce changed lines, so that hunks should follow."""
        blob = self.extended.get("index", "").partition("..")[2][: len(_EMPTY_BLOB)]
        new = "new file mode" in self.extended and not _EMPTY_BLOB.startswith(blob)
        both = "new mode" in self.extended and "index" in self.extended
        return new or both or self.extended.get("similarity index", "100%") != "100%"


def headers_at(region: DiffRegion, start: int) -> FileHeaders:
    """Return the headers that begin on line `start`.

    Raises `UnreadableEdit`.
    """
    headers, lines, i, git = FileHeaders(start), region.lines, start, None
    if lines[i].startswith(GIT):
        git = git_sides(lines[i][len(GIT) :])
        i += 1
        while i < len(lines) and (match := _EXTENDED.fullmatch(lines[i])):
            headers.extended[match[1]] = match[2].strip()
            i += 1
    headers.sided = i < len(lines) and not lines[i].startswith(GIT) and begins_file(lines, i)
    sides: Sides | None = git
    headers.end = i
    if headers.sided:
        last = i + is_pair(lines, i)
        old, new = side(lines[i]), side(lines[last])
        if old is None or new is None or old == new == NOWHERE:
            raise region.unreadable(i, "expected a path in the diff's header")
        # FileHeaders that say all may stand above those of another file.
        others = git is not None and {*map(bare, git)}.isdisjoint((bare(old), bare(new)))
        headers.sided = not (others and headers.complete)
        headers.end, sides = (last + 1, (old, new)) if headers.sided else (i, git)
    if sides is None:
        raise region.unreadable(start, "the header's paths have no certain border")
    extended = headers.extended
    headers.creates = "new file mode" in extended or sides[0] == NOWHERE
    headers.deletes = "deleted file mode" in extended or sides[1] == NOWHERE
    headers.old, headers.new = _files(region, headers, git, sides)
    if not headers.old or not headers.new:
        raise region.unreadable(start, "expected a path in the diff's header")
    _check(region, headers)
    return headers


def _files(region: DiffRegion, headers: FileHeaders, git: Sides | None, sides: Sides) -> Sides:
    known, extended = region.doc.known, headers.extended
    old, new = named(git, *sides, known)
    if headers.creates or headers.deletes:
        return (new, new) if headers.creates else (old, old)
    if "rename from" in extended and "rename to" in extended:
        names = (unquoted(extended[key]) or "" for key in ("rename from", "rename to"))
        old, new = map(known.spelled, names)
        if git is not None and not f"/{git[1]}".endswith(f"/{new}"):
            message = f"expected one new name, found {git[1]!r} and {new!r}"
            raise region.missing(headers.start, message, headers.end)
    elif old != new and git is None:
        if known(old) or not known(new):
            raise region.unreadable(
                headers.start,
                f"expected one file, found {old!r} and {new!r}",
                "name the same file twice; to rename it, begin with `diff --git a/old b/new`, "
                "`rename from old` and `rename to new`",
            )
        old = new
    return old, new


def _check(region: DiffRegion, headers: FileHeaders) -> None:
    extended, end, what = headers.extended, headers.end, None
    hint = "send a text file's whole text in another form; see `patchq formats`"
    below = region.lines[end] if end < len(region.lines) else ""
    modes = {*(extended.get(key) for key in _MODE_KEYS), extended.get("index", "")[-6:]}
    if _BINARY.match(below) and headers.deletes and below.endswith(f" and {NOWHERE} differ"):
        headers.end += 1  # that says all
    elif _BINARY.match(below):
        what = "a binary file's change without its bytes (`git diff --binary` shows them)"
    elif "copy to" in extended:
        what = "a copy"
    elif _SUBMODULE in modes:
        what = "a submodule"
    elif _LINK in modes and below != binary_patch.HEADER:
        what, hint = "a symbolic link", "hand the commit in: `patchq submit --branch NAME`"
    if what:
        raise region.unreadable(headers.start, f"{what} cannot be read", hint)


# ---------------------------------------------------------------- files


class FileReader:
    """Reads the files of one diff; raises `UnreadableEdit`."""

    def __init__(self, region: DiffRegion) -> None:
        self.region = region
        self.edits: list[Edit] = []
        self.warnings: list[Problem] = []
        self.hunks: list[DiffHunk] = []  # all of them, of every file
        self._unpacked = 0

    @property
    def exact(self) -> bool:
        """Return whether the last hunk's counts hold, so that nothing of it is missing."""
        return all(hunk.exact for hunk in self.hunks[-1:])

    @property
    def is_cut(self) -> bool:
        """Return whether the last hunk, which ends the response, is incomplete."""
        last, others = self.hunks[-1], self.hunks[:-1]
        open_end = last.numbers is None and last.lines[-1][0] == " "
        in_line = self.region.lines[-1] != "" and not open_end
        return in_line or bool(others and all(hunk.exact for hunk in others))

    def file(self, start: int) -> int:
        """Read the file whose headers begin on line `start`.

        Returns the index behind it.
        """
        headers, region = headers_at(self.region, start), self.region
        if region.lines[headers.end : headers.end + 1] == [binary_patch.HEADER]:
            return self._bytes(headers)
        hunks, end = self._hunks(headers)
        if not hunks and (not headers.complete or (headers.promises and region.ends(end))):
            message = "expected the hunks of the change, found none"
            raise region.missing(headers.end - 1, message, end)
        self._add(headers, hunks, end)
        return end

    def headless(self, start: int, path: str | None) -> int:
        """Read hunks without a header, from line `start` on, as those of `path`.

        Returns the index behind them.
        """
        if path is None:
            raise self.region.unreadable(start, "expected a file's header before the hunk")
        headers = FileHeaders(start, path, path, end=start)
        hunks, end = self._hunks(headers)
        self._add(headers, hunks, end)
        return end

    def _hunks(self, headers: FileHeaders) -> tuple[list[DiffHunk], int]:
        region, lines, end = self.region, self.region.lines, headers.end
        hunks: list[DiffHunk] = []
        while (i := filled(lines, end)) < len(lines):
            signed = headers.sided and not hunks and lines[i][:1] in ("+", "-", " ")
            if not (is_hunk(lines, i) or signed):
                break
            hunk = hunk_at(region, i)
            if not hunk.lines:
                message = "expected the hunk's lines behind its header"
                raise region.missing(min(i, len(lines) - 1), message, hunk.end)
            hunks.append(hunk)
            end = hunk.end
        self.hunks += hunks
        return hunks, end

    def _add(self, headers: FileHeaders, hunks: Sequence[DiffHunk], end: int) -> None:
        if headers.creates or headers.deletes:
            self._edit(headers, headers.start, end, self._whole(headers, hunks))
            return
        if headers.renames:
            self._edit(headers, headers.start, headers.end, Rename(headers.new))
        for hunk in hunks:
            old, new = halves(hunk.lines)
            op = PatchHunk(
                old,
                new,
                # Where nothing is quoted, a diff states the line before.
                line=(hunk.numbers[0] + (not old) or None) if hunk.numbers else None,
                # What differs in the final newline alone changes the file's end.
                at_end=old == new and hunk.old_ends != hunk.new_ends,
                final_newline=hunk.new_ends,
            )
            section = self.region.offset + headers.start + 1
            self._edit(headers, hunk.first, hunk.end, op, section)
        self._set_mode(headers)

    def _whole(self, headers: FileHeaders, hunks: Sequence[DiffHunk]) -> Op:
        sign, what = ("-", "deleted") if headers.deletes else ("+", "new")
        for i in (i for hunk in hunks for i in range(hunk.start, hunk.end)):
            line = self.region.lines[i]
            if not is_blank(line) and sign_of(line) not in (sign, "\\"):
                message = f"a {what} file's lines are led by `{sign}`, all of them"
                raise self.region.unreadable(i, f"{message}; found {line[:60]!r}")
        lines = [line for hunk in hunks for line in hunk.lines]
        while lines and lines[-1][0] == " ":  # a blank line behind the file
            lines.pop()
        text = joined(text for _, text in lines)
        if headers.deletes:
            return DeleteFile(text if hunks else None)
        self._warn_of_mode(headers)
        ended = not hunks or hunks[-1].new_ends
        text = text if ended else text.removesuffix("\n")
        return Create(text, executable=headers.mode == _EXECUTABLE)

    def _edit(self, headers: FileHeaders, first: int, end: int, op: Op, section: int = 0) -> None:
        while end > first + 1 and is_blank(self.region.lines[end - 1]):
            end -= 1
        at = (self.region.offset + first + 1, self.region.offset + end)
        self.edits.append(Edit("", DIFF, at, headers.old, op, section=section))

    def _set_mode(self, headers: FileHeaders) -> None:
        if headers.mode in _MODES:
            op = SetMode(headers.mode == _EXECUTABLE)
            self._edit(headers, headers.start, headers.end, op)
        self._warn_of_mode(headers)

    def _warn_of_mode(self, headers: FileHeaders) -> None:
        line = self.region.offset + headers.start + 1
        message = f"line {line}, column 1: the mode {headers.mode} of {headers.new} is left out"
        hint = "a person has to change the file's mode"
        if headers.mode and headers.mode not in _MODES:
            path = headers.new
            warning = Problem("path.review", message, hint, "warning", path=path, line=line)
            self.warnings.append(warning)

    # ------------------------------------------------------------ bytes

    def _bytes(self, headers: FileHeaders) -> int:
        """Read a file's bytes, and return the index behind them.

        What git writes below them for the way back says nothing.
        """
        region, lines, first = self.region, self.region.lines, headers.end + 1
        stated = _BYTES.fullmatch(lines[first]) if first < len(lines) else None
        ids = _IDS.fullmatch(headers.extended.get("index", ""))
        if stated is None or ids is None or stated[1] == "delta":
            raise region.unreadable(
                headers.end,
                "expected a binary file as a `literal` below an `index` line with two whole ids",
                "hand the commit in with `patchq submit --branch` or `--range`",
            )
        end = _to_blank(lines, first + 1)
        self._unpacked += int(stated[2])
        if self._unpacked > _MOST_BYTES:
            raise region.unreadable(headers.end, f"more than {_MOST_BYTES} bytes of binary files")
        data = binary_patch.decode(lines[first + 1 : end], int(stated[2]))
        found = _NO_ID if headers.deletes and not data else binary_patch.blob_id(data or b"")
        if data is None or found != ids[2]:
            raise region.missing(headers.end, "these are not the bytes that `index` names", end)
        if end + 1 < len(lines) and _BYTES.fullmatch(lines[end + 1]):
            end = _to_blank(lines, end + 2)
        self._add_bytes(headers, data, ids, end)
        return end

    def _add_bytes(self, headers: FileHeaders, data: bytes, ids: re.Match[str], end: int) -> None:
        mode, extended = headers.mode or ids[3], headers.extended
        link, was_link = (one == _LINK for one in (mode, extended.get("old mode") or ids[3]))
        if headers.deletes:
            gone = DeleteFile(before=ids[1], link=extended.get("deleted file mode") == _LINK)
            self._edit(headers, headers.start, end, gone)
            return
        if headers.renames:
            self._edit(headers, headers.start, headers.end, Rename(headers.new))
        before, turned = (None, False) if headers.creates else (ids[1], link != was_link)
        op = WriteBytes(data, before, headers.mode == _EXECUTABLE, link, turned)
        self._edit(headers, headers.start, end, op)
        if not (headers.creates or link or turned):
            self._set_mode(headers)


def _to_blank(lines: Sequence[str], i: int) -> int:
    return next((k for k in range(i, len(lines)) if is_blank(lines[k])), len(lines))
