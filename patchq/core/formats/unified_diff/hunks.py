"""The lines of a diff: its headers' paths, and its hunks.

Paths are quoted as git quotes them, with prefixes and dates, or not.

Models miscount, so a hunk's counts are hints: they are believed only if they lead to a place where
a hunk can end.  Otherwise the hunk goes on as long as its lines begin with a space, `+`, `-` or are
blank.  A removed `-- x` and an added `++ y` look like the next file's header.  They are one if both
name the same file; else they are lines of the hunk where the counts hold, and a header where `@@`
follows.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct

from patchq.core.formats.format import Document, UnreadableEdit
from patchq.core.formats.marks.fences import GIT, Signed, is_blank, next_line
from patchq.core.formats.marks.paths import PREFIXES, KnownPaths, is_path

HINT = "send a whole unified diff: `--- a/path`, `+++ b/path`, then `@@` and the hunk's lines"
HUNK = re.compile(r"@@(?=\s|-|\Z)(.*)", re.DOTALL)  # a hunk's header
NUMBERS = re.compile(r"[ \t]*-(\d{1,9})(?:,(\d{1,9}))?[ \t]+\+(\d{1,9})(?:,(\d{1,9}))?(?=\D|\Z)")
_NO_NEWLINE = re.compile(r"\\ ?No newline at end of file\s*|\\ .{10,}", re.IGNORECASE | re.DOTALL)
_LISTED = re.compile(r"[-+*] +\S|-{3,}\s*\Z")
_VERSION = re.compile(r"\d+(?:\.\w+)+.*", re.DOTALL)
NOWHERE = "/dev/null"
Sides = tuple[str, str]  # the old and the new name

_ESCAPE = re.compile(rb'\\([0-7]{3}|[abtnvfr"\\])')
_LETTERS = {
    b"a": b"\a", b"b": b"\b", b"t": b"\t", b"n": b"\n", b"v": b"\v", b"f": b"\f", b"r": b"\r",
}  # fmt: skip
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
_DATE = re.compile(r"[ \t]\d{4}-\d\d-\d\d[ T]\d\d:\d\d.*", re.DOTALL)
_PREFIX = re.compile(r"[abciow12]/(?=.)", re.DOTALL)


class DiffRegion(Struct, frozen=True):
    """The lines that a diff is read from.

    The first is line `offset` (an index) of the document.
    `fenced` says that no prose can follow in them.
    """

    doc: Document
    lines: Sequence[str]
    offset: int
    fenced: bool

    def unreadable(self, i: int, message: str, hint: str = HINT) -> UnreadableEdit:
        return UnreadableEdit(self.offset + i, message, hint)

    def missing(self, i: int, message: str, end: int) -> UnreadableEdit:
        """Return the refusal for something missing at `end`.

        A response that ends there was cut.
        """
        cut = UnreadableEdit.cut(self.offset + i, message)
        return cut if self.ends(end) else self.unreadable(i, message)

    def ends(self, i: int) -> bool:
        """Return whether the response ends before line `i`."""
        return next_line(self.doc.lines, self.offset + i - 1) >= len(self.doc.lines)


# ---------------------------------------------------------------- what begins on a line


def is_hunk(lines: Sequence[str], i: int) -> bool:
    """Return whether line `i` exists and is a hunk's header."""
    return i < len(lines) and HUNK.match(lines[i]) is not None


def is_pair(lines: Sequence[str], i: int) -> bool:
    """Return whether non-empty `---` and `+++` lines begin on line `i`."""
    below = lines[i + 1] if i + 1 < len(lines) else ""
    pair = lines[i].startswith("--- ") and below.startswith("+++ ")
    return pair and bool(lines[i][4:].strip() and below[4:].strip())


def begins_file(lines: Sequence[str], i: int) -> bool:
    """Return whether a file's headers begin on line `i`.

    One of `---` and `+++` may be missing.
    """
    line = lines[i]
    one = line.startswith(("--- ", "+++ ")) and bool(line[4:].strip())
    return line.startswith(GIT) or (one and (is_pair(lines, i) or is_hunk(lines, i + 1)))


def names_one_file(lines: Sequence[str], i: int, known: KnownPaths) -> bool:
    """Return whether the `---` and `+++` lines at `i` name one file.

    Removed and added lines that look like a diff's header do not.
    """
    old, new = (side(lines[i]), side(lines[i + 1])) if is_pair(lines, i) else (None, None)
    if old is None or new is None or (old == new == NOWHERE):
        return False
    names = {bare(name) for name in (old, new) if name != NOWHERE}
    return len(names) == 1 and is_path(names.pop(), known)


def is_signature(lines: Sequence[str], i: int) -> bool:
    """Return whether a mail's signature is on line `i`.

    It is `-- `, with git's version below it.
    """
    below = lines[i + 1] if i + 1 < len(lines) else ""
    return lines[i].rstrip() == "--" and _VERSION.fullmatch(below) is not None


def _next_begins(lines: Sequence[str], i: int, known: KnownPaths) -> bool:
    pair = is_pair(lines, i) and (is_hunk(lines, i + 2) or names_one_file(lines, i, known))
    return pair or is_signature(lines, i)


def filled(lines: Sequence[str], i: int) -> int:
    """Return the index of the first line from `i` on that is not empty.

    A line of blanks is not empty.
    """
    return next((k for k in range(i, len(lines)) if not is_blank(lines[k])), len(lines))


# ---------------------------------------------------------------- hunks


class DiffHunk(Struct, frozen=True):
    """The lines of a hunk.

    `first` is the index of the first, its header if it has one.
    Its body is `start:end`; `exact` says that its counts hold, `old_ends` and `new_ends` whether
    the last old and new line end in a newline.
    """

    first: int
    start: int
    end: int
    numbers: tuple[int, int, int] | None  # the first old line, and the counts of both sides
    lines: tuple[Signed, ...]
    exact: bool
    old_ends: bool
    new_ends: bool


def sign_of(line: str) -> str | None:
    """Return the sign of a line in a hunk's body, or None.

    A blank line is context; `\\` says that the line above has no newline.
    """
    if line[:1] in ("+", "-", " ") or not line.strip():
        return line[:1] if line[:1] in ("+", "-") else " "
    return "\\" if line[0] == "\\" and _NO_NEWLINE.fullmatch(line) else None


def hunk_at(region: DiffRegion, i: int) -> DiffHunk:
    """Return the hunk that begins on line `i`, with its header or without."""
    lines, known, headed = region.lines, region.doc.known, is_hunk(region.lines, i)
    match = NUMBERS.match(lines[i], 2) if headed else None
    numbers = (int(match[1]), int(match[2] or 1), int(match[4] or 1)) if match else None
    start = i + headed
    counted = _counted(region, start, numbers) if numbers else None
    end = last = counted or start
    if counted is None:
        # No hunk is empty: a pair on its first lines is a header only if it names a file.
        while end < len(lines) and sign_of(lines[end]):
            begins = _next_begins if end > start else names_one_file
            if begins(lines, end, known):
                break
            end += 1
        last = end
        while not is_hunk(lines, end) and last > start and is_blank(lines[last - 1]):
            last -= 1
        end = end if region.fenced else last
    signed: list[Signed] = []
    ends = {"-": True, "+": True}
    for line in lines[start:last]:
        sign = sign_of(line)
        if sign == "\\":
            above = signed[-1][0] if signed else " "
            ends.update((s, False) for s in ("-", "+") if above in (s, " "))
        else:
            signed.append((sign or " ", line[1:] if line[:1] in ("+", "-", " ") else line))
    exact = counted is not None
    return DiffHunk(i, start, end, numbers, tuple(signed), exact, ends["-"], ends["+"])


def _counted(region: DiffRegion, start: int, numbers: tuple[int, int, int]) -> int | None:
    """Return the hunk's end by its counts, or None if they are wrong."""
    lines, known = region.lines, region.doc.known
    # Behind the text's last newline is no line.
    limit = len(lines) - (not region.fenced and lines[-1] == "")
    (_, old, new), i = numbers, start
    while old > 0 or new > 0:
        sign = sign_of(lines[i]) if i < limit else None
        if sign is None or names_one_file(lines, i, known):
            return None
        old, new, i = old - (sign in " -"), new - (sign in " +"), i + 1
    while i < len(lines) and sign_of(lines[i]) == "\\":
        i += 1
    if old or new or i == start:
        return None
    below = filled(lines, i)
    if below == len(lines) or sign_of(lines[below]) is None or _next_begins(lines, below, known):
        return i
    listed = below > i and not region.fenced and _LISTED.match(lines[below])
    return i if listed else None


# ---------------------------------------------------------------- paths


def unquoted(text: str) -> str | None:
    """Return the text without git's quotes and escapes, or None.

    None if they cannot be read.
    """
    match = _QUOTED.fullmatch(text)
    if match is None:
        return None if text.startswith('"') else text
    data = _ESCAPE.sub(_character, match[1].encode("utf-8", "surrogatepass"))
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def _character(match: re.Match[bytes]) -> bytes:
    code = match[1]
    return bytes([int(code, 8) & 255]) if code.isdigit() else _LETTERS.get(code, code)


def side(line: str) -> str | None:
    """Return the prefixed path of a `--- ` or `+++ ` line, or None."""
    text = line[4:].partition("\t")[0].strip()
    if not text.startswith('"') and " " in text:
        text = _DATE.sub("", text, count=1).rstrip()
    return unquoted(text) or None


def git_sides(rest: str) -> Sides | None:
    """Return the two prefixed paths of a `diff --git` line, or None.

    `rest` is the line behind `diff --git `.
    Paths with blanks are known only if both sides agree, as they do where nothing is renamed.
    """
    rest = rest.strip()
    if '"' in rest:
        words = re.findall(r'"(?:[^"\\]|\\.)*"|[^"]+', rest)
        found = [unquoted(word.strip()) for word in words if word.strip()]
        return (found[0] or "", found[1] or "") if len(found) == 2 else None
    half = len(rest) // 2
    if len(rest) % 2 and rest[half] == " " and bare(rest[:half]) == bare(rest[half + 1 :]):
        return rest[:half], rest[half + 1 :]
    halves = rest.split(" ") if rest.count(" ") == 1 else rest.split(" b/")
    if len(halves) != 2:
        return None
    return halves[0], halves[1] if rest.count(" ") == 1 else f"b/{halves[1]}"


def bare(path: str) -> str:
    """Return the path without a diff's prefix."""
    return _PREFIX.sub("", path, count=1)


def named(git: Sides | None, old: str, new: str, known: KnownPaths) -> Sides:
    """Return the two sides as paths of the repository.

    They are without prefixes, if they have any.
    What git's own line tells of them holds.  They are some where both sides have them; else where
    the base, or the other side, has the rest.  A side that is nowhere has none of its own.
    """
    if git is not None and git[0] == git[1]:
        return known.spelled(old), known.spelled(new)
    alike = old != new and (bare(old) == new or old == bare(new))
    if NOWHERE in (old, new):
        if git is None or not _prefixed(*git):
            return (
                old if old == NOWHERE else _alone(old, "a/", known),
                new if new == NOWHERE else _alone(new, "b/", known),
            )
    elif not (_prefixed(old, new) or alike):
        return known.meant(old), known.meant(new)
    plain = (one if one == NOWHERE else known.spelled(bare(one)) for one in (old, new))
    return next(plain), next(plain)


def _prefixed(old: str, new: str) -> bool:
    return bool(_PREFIX.match(old) and _PREFIX.match(new)) and old[0] != new[0]


def _alone(path: str, prefix: str, known: KnownPaths) -> str:
    """Return the path of a diff's only side, without its prefix.

    In a reversed diff it has the other side's prefix.
    """
    own = known(path) and not known(path[2:])
    other = path[:2] in PREFIXES and not known.base.has_directory(path[0])
    if own or not (path.startswith(prefix) or other):
        return known.meant(path)
    return known.spelled(path[2:] or path)
