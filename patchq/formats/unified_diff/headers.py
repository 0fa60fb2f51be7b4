"""The headers of one file in a unified diff: which file, and what becomes of it.

git's own headers, `---` and `+++` lines, or both.  What a diff can say and nobody here can do (a
mode alone, links, copies, binary files) refuses it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from patchq.formats.document import Document
from patchq.formats.unified_diff.hunks import HEADER, is_pair
from patchq.formats.unified_diff.paths import NOWHERE, git_sides, plain, side, unquoted
from patchq.formats.unreadable import Unreadable

HINT = "send a whole unified diff: `--- a/path`, `+++ b/path`, then `@@` and the hunk's lines"

_GIT = "diff --git "
_EXTENDED = re.compile(
    r"(old mode|new mode|deleted file mode|new file mode|copy from|copy to|rename from|rename to"
    r"|similarity index|dissimilarity index|index) (.*)",
    re.DOTALL,
)
_BINARY = re.compile(r"GIT binary patch|Binary files ")
_SPECIAL_MODES = ("120000", "160000")
_EMPTY_BLOB = "e69de29"
HINT_CUT = "send the whole response again; if it was cut, send fewer changes at once"


@dataclass(frozen=True, slots=True)
class Region:
    """The lines that a diff is read from; the first is line `offset` (an index) of the document.

    `fenced` says that no prose can follow in them.
    """

    doc: Document
    lines: Sequence[str]
    offset: int
    fenced: bool

    def unreadable(self, i: int, message: str, hint: str = HINT) -> Unreadable:
        return Unreadable(self.offset + i, message, hint)

    def missing(self, i: int, message: str, end: int) -> Unreadable:
        """Something is missing at `end`: a response that ends there was cut."""
        if not self.ends(end):
            return self.unreadable(i, message)
        return Unreadable(self.offset + i, message, HINT_CUT, "response.truncated")

    def ends(self, i: int) -> bool:
        """Whether the response ends before line `i`."""
        lines = self.doc.lines
        return not any(lines[k].strip() for k in range(self.offset + i, len(lines)))

    def is_hunk(self, i: int) -> bool:
        return i < len(self.lines) and HEADER.match(self.lines[i]) is not None


@dataclass(slots=True)
class Headers:
    """The headers from line `start` up to line `end` (indices), and the paths they name."""

    start: int
    old: str = ""
    new: str = ""
    creates: bool = False
    deletes: bool = False
    said: dict[str, str] = field(default_factory=dict)
    """What git's own headers say, by their names."""
    end: int = 0

    @property
    def renames(self) -> bool:
        return self.old != self.new

    @property
    def mode(self) -> str | None:
        """The file mode that the change asks for, if it is not a plain file's or a changed one."""
        mode = self.said.get("new mode") or self.said.get("new file mode")
        return mode if "old mode" in self.said or mode != "100644" else None

    @property
    def complete(self) -> bool:
        """Whether the headers say all, without a hunk."""
        return self.deletes or "rename to" in self.said or "new file mode" in self.said

    @property
    def promises(self) -> bool:
        """Whether the headers tell of lines that change, so that hunks should follow."""
        made = self.said.get("index", "").partition("..")[2][: len(_EMPTY_BLOB)]
        new = "new file mode" in self.said and not _EMPTY_BLOB.startswith(made)
        return new or self.said.get("similarity index", "100%") != "100%"


def begins_file(lines: Sequence[str], i: int) -> bool:
    """Whether a file's headers begin on line `i`; one of `---` and `+++` may be missing."""
    line = lines[i]
    if line.startswith(_GIT) or is_pair(lines, i):
        return True
    if not line.startswith(("--- ", "+++ ")) or not line[4:].strip():
        return False
    return i + 1 < len(lines) and HEADER.match(lines[i + 1]) is not None


def headers_at(region: Region, start: int) -> Headers:
    """The headers that begin on line `start`; raises `Unreadable`."""
    headers, lines, i, git = Headers(start), region.lines, start, None
    if lines[i].startswith(_GIT):
        git = git_sides(lines[i][len(_GIT) :])
        i += 1
        while i < len(lines) and (match := _EXTENDED.fullmatch(lines[i])):
            headers.said[match[1]] = match[2].strip()
            i += 1
    sides, headers.end = _sides(region, i)
    if sides is None and git is None:
        raise region.unreadable(start, "the header's paths cannot be told apart")
    _name(region, headers, sides, git)
    _check(region, headers)
    return headers


def _sides(region: Region, i: int) -> tuple[tuple[str, str] | None, int]:
    """What the `---` and `+++` lines from line `i` on name, and the index behind them."""
    lines = region.lines
    if i >= len(lines) or lines[i].startswith(_GIT) or not begins_file(lines, i):
        return None, i
    count = 2 if is_pair(lines, i) else 1
    old, new = side(lines[i]), side(lines[i + count - 1])
    if old is None or new is None or (old == NOWHERE and new == NOWHERE):
        raise region.unreadable(i, "expected a path in the diff's header")
    return (old, new), i + count


def _name(
    region: Region,
    headers: Headers,
    sides: tuple[str, str] | None,
    git: tuple[str, str] | None,
) -> None:
    """Find out what file the headers name, and what becomes of it."""
    known, said = region.doc.known, headers.said
    first, second = sides or git or ("", "")
    headers.creates = "new file mode" in said or first == NOWHERE
    headers.deletes = "deleted file mode" in said or second == NOWHERE
    bare = git is not None and git[0] == git[1]
    old, new = (first, second) if bare else plain(first, second, known)
    if headers.creates or headers.deletes:
        old = new = new if headers.creates else old
    elif "rename from" in said and "rename to" in said:
        old, new = unquoted(said["rename from"]) or "", unquoted(said["rename to"]) or ""
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
    if not old or not new:
        raise region.unreadable(headers.start, "expected a path in the diff's header")
    headers.old, headers.new = old, new


def _check(region: Region, headers: Headers) -> None:
    """Refuse what is no change of text."""
    said, end, what = headers.said, headers.end, None
    if end < len(region.lines) and _BINARY.match(region.lines[end]):
        what = "a binary file's patch"
    elif "copy to" in said:
        what = "a copy"
    elif {said.get("new file mode"), said.get("new mode")}.intersection(_SPECIAL_MODES):
        what = "a symbolic link or submodule"
    if what:
        hint = "send a text file's whole text in another form; see `patchq formats`"
        raise region.unreadable(headers.start, f"{what} cannot be read", hint)
    if "old mode" in said and not headers.renames and not region.is_hunk(end):
        raise region.unreadable(
            headers.start,
            "a change of the file's mode alone cannot be made",
            "leave the file out of the diff; a person has to change its mode",
        )
