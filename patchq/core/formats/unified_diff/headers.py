"""The headers of one file in a unified diff: which file, and what becomes of it; and those of a
mail as `git format-patch` writes it: who wrote the change, and what it is about.

git's own headers, `---` and `+++` lines, or both.  What a diff can say and nobody here can do
(submodules, copies, binary files without their bytes) refuses it.  So does a symbolic link whose
target is told as lines, which no edit of text may change; one that is told by its bytes, with both
ids, is what the doors for commits make.  Paths are quoted as git quotes them, with prefixes and
dates, or not.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from msgspec import Struct

from patchq.core.formats.format import Document, UnreadableEdit
from patchq.core.formats.marks.lines import GIT, next_line
from patchq.core.formats.marks.paths import (
    PREFIXES,
    Known,
    as_meant,
    as_spelled,
    has_directory,
    is_path,
)
from patchq.core.text import binary_patch

HINT = "send a whole unified diff: `--- a/path`, `+++ b/path`, then `@@` and the hunk's lines"

_EXTENDED = re.compile(
    r"(old mode|new mode|deleted file mode|new file mode|copy from|copy to|rename from|rename to"
    r"|similarity index|dissimilarity index|index) (.*)",
    re.DOTALL,
)
_BINARY = re.compile(r"Binary files ")
LINK, _SUBMODULE = "120000", "160000"
_MODES = ("old mode", "new mode", "new file mode", "deleted file mode")
_EMPTY_BLOB = "e69de29"
HUNK = re.compile(r"@@(?=\s|-|\Z)(.*)", re.DOTALL)
"""A hunk's header."""
NOWHERE = "/dev/null"

_ESCAPE = re.compile(rb'\\([0-7]{3}|[abtnvfr"\\])')
_LETTERS = {
    b"a": b"\a", b"b": b"\b", b"t": b"\t", b"n": b"\n", b"v": b"\v", b"f": b"\f", b"r": b"\r",
}  # fmt: skip
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
_DATE = re.compile(r"[ \t]\d{4}-\d\d-\d\d[ T]\d\d:\d\d.*", re.DOTALL)
_PREFIX = re.compile(r"[abciow12]/(?=.)", re.DOTALL)

_OPENS_MAIL = re.compile(r"From [0-9a-f]{40}(?:[0-9a-f]{24})? \w{3} \w{3} ")
_MAIL_FIELD = re.compile(r"([A-Za-z][A-Za-z0-9-]*):[ \t]*(.*)", re.DOTALL)
_SUBJECT_TAGS = re.compile(r"(?:\s*(?:\[[^\]]*\]|[Rr][Ee]:))*\s*")
_ENCODED = ("base64", "quoted-printable")
_MAX_HEADERS = 40
_MAX_ENCODED = 10_000


class DiffRegion(Struct, frozen=True):
    """The lines that a diff is read from; the first is line `offset` (an index) of the document.

    `fenced` says that no prose can follow in them.
    """

    doc: Document
    lines: Sequence[str]
    offset: int
    fenced: bool

    def unreadable(self, i: int, message: str, hint: str = HINT) -> UnreadableEdit:
        return UnreadableEdit(self.offset + i, message, hint)

    def missing(self, i: int, message: str, end: int) -> UnreadableEdit:
        """Something is missing at `end`: a response that ends there was cut."""
        cut = UnreadableEdit.cut(self.offset + i, message)
        return cut if self.ends(end) else self.unreadable(i, message)

    def ends(self, i: int) -> bool:
        """Whether the response ends before line `i`."""
        return next_line(self.doc.lines, self.offset + i - 1) >= len(self.doc.lines)


@dataclass(slots=True)
class Headers:
    """The headers from line `start` up to line `end` (indices), and the paths they name."""

    start: int
    old: str = ""
    new: str = ""
    creates: bool = False
    deletes: bool = False
    extended: dict[str, str] = field(default_factory=dict)
    """What git's own headers say, by their names."""
    end: int = 0

    @property
    def renames(self) -> bool:
        return self.old != self.new

    @property
    def mode(self) -> str | None:
        """The file mode that the change asks for, if it asks for one."""
        return self.extended.get("new mode") or self.extended.get("new file mode")

    @property
    def states_links(self) -> bool:
        """Whether one of its modes is a symbolic link's."""
        stated = {*(self.extended.get(key) for key in _MODES), self.extended.get("index", "")[-6:]}
        return LINK in stated

    @property
    def complete(self) -> bool:
        """Whether the headers say all, without a hunk."""
        return self.deletes or not {"rename to", "new mode", "new file mode"}.isdisjoint(
            self.extended
        )

    @property
    def promises(self) -> bool:
        """Whether the headers tell of lines that change, so that hunks should follow."""
        blob = self.extended.get("index", "").partition("..")[2][: len(_EMPTY_BLOB)]
        new = "new file mode" in self.extended and not _EMPTY_BLOB.startswith(blob)
        both = "new mode" in self.extended and "index" in self.extended
        return new or both or self.extended.get("similarity index", "100%") != "100%"


def begins_file(lines: Sequence[str], i: int) -> bool:
    """Whether a file's headers begin on line `i`; one of `---` and `+++` may be missing."""
    line = lines[i]
    side = line.startswith(("--- ", "+++ ")) and bool(line[4:].strip())
    return line.startswith(GIT) or (side and (is_pair(lines, i) or is_hunk(lines, i + 1)))


def is_hunk(lines: Sequence[str], i: int) -> bool:
    """Whether a hunk's header stands on line `i`, and that line is there."""
    return i < len(lines) and HUNK.match(lines[i]) is not None


def is_pair(lines: Sequence[str], i: int) -> bool:
    """Whether a `---` and a `+++` line with something behind them begin on line `i`."""
    return (
        lines[i].startswith("--- ")
        and i + 1 < len(lines)
        and lines[i + 1].startswith("+++ ")
        and bool(lines[i][4:].strip() and lines[i + 1][4:].strip())
    )


def names_one_file(lines: Sequence[str], i: int, known: Known) -> bool:
    """Whether a `---` and a `+++` line begin on line `i` that can only be those of one file: what
    removed and added lines that look like a diff's header are not."""
    old, new = (side(lines[i]), side(lines[i + 1])) if is_pair(lines, i) else (None, None)
    if old is None or new is None:
        return False
    if NOWHERE in (old, new):
        return old != new and is_path(_bare(new if old == NOWHERE else old), known)
    return _bare(old) == _bare(new) and is_path(_bare(new), known)


def headers_at(region: DiffRegion, start: int) -> Headers:
    """The headers that begin on line `start`; raises `UnreadableEdit`."""
    headers, lines, i, git = Headers(start), region.lines, start, None
    if lines[i].startswith(GIT):
        git = git_sides(lines[i][len(GIT) :])
        i += 1
        while i < len(lines) and (match := _EXTENDED.fullmatch(lines[i])):
            headers.extended[match[1]] = match[2].strip()
            i += 1
    sides, headers.end = _sides(region, i)
    if sides is None and git is None:
        raise region.unreadable(start, "the header's paths cannot be told apart")
    _name(region, headers, sides, git)
    _check(region, headers)
    return headers


def _sides(region: DiffRegion, i: int) -> tuple[tuple[str, str] | None, int]:
    """What the `---` and `+++` lines from line `i` on name, and the index behind them."""
    lines = region.lines
    if i >= len(lines) or lines[i].startswith(GIT) or not begins_file(lines, i):
        return None, i
    count = 2 if is_pair(lines, i) else 1
    old, new = side(lines[i]), side(lines[i + count - 1])
    if old is None or new is None or (old == NOWHERE and new == NOWHERE):
        raise region.unreadable(i, "expected a path in the diff's header")
    return (old, new), i + count


def _name(
    region: DiffRegion,
    headers: Headers,
    sides: tuple[str, str] | None,
    git: tuple[str, str] | None,
) -> None:
    """Find out what file the headers name, and what becomes of it."""
    known, extended = region.doc.known, headers.extended
    first, second = sides or git or ("", "")
    headers.creates = "new file mode" in extended or first == NOWHERE
    headers.deletes = "deleted file mode" in extended or second == NOWHERE
    old, new = _sides_named(git, first, second, known)
    if headers.creates or headers.deletes:
        old = new = new if headers.creates else old
    elif "rename from" in extended and "rename to" in extended:
        names = (unquoted(extended[key]) or "" for key in ("rename from", "rename to"))
        old, new = (as_spelled(name, known) for name in names)
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


def _sides_named(
    git: tuple[str, str] | None, first: str, second: str, known: Known
) -> tuple[str, str]:
    """The paths of the two sides; what git's own line tells of their prefixes holds."""
    if git is not None and git[0] == git[1]:
        return as_spelled(first, known), as_spelled(second, known)
    if git is not None and _prefixed(*git):
        bare = {side: _bare(side) for side in git} | {NOWHERE: NOWHERE}
        if first in bare and second in bare:
            return as_spelled(bare[first], known), as_spelled(bare[second], known)
    return plain(first, second, known)


def _check(region: DiffRegion, headers: Headers) -> None:
    """Refuse what is no change of text."""
    extended, end, what = headers.extended, headers.end, None
    hint = "send a text file's whole text in another form; see `patchq formats`"
    below = region.lines[end] if end < len(region.lines) else ""
    if _BINARY.match(below) and headers.deletes and below.endswith(f" and {NOWHERE} differ"):
        headers.end += 1  # that says all
    elif _BINARY.match(below):
        what = "a binary file's change without its bytes (`git diff --binary` shows them)"
    elif "copy to" in extended:
        what = "a copy"
    elif _SUBMODULE in {extended.get(key) for key in _MODES}:
        what = "a submodule"
    elif headers.states_links and below != binary_patch.HEADER:
        what, hint = "a symbolic link", "hand the commit in: `patchq submit --branch NAME`"
    if what:
        raise region.unreadable(headers.start, f"{what} cannot be read", hint)


# ---------------------------------------------------------------- the paths


def unquoted(text: str) -> str | None:
    """The text without git's quotes and escapes; None if they cannot be read."""
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
    """The path of a `--- ` or `+++ ` line, with its prefix; None if it has none."""
    text = line[4:].partition("\t")[0].strip()
    if not text.startswith('"') and " " in text:
        text = _DATE.sub("", text, count=1).rstrip()
    for wrap in ("**", "`"):
        if text.startswith(wrap) and text.endswith(wrap):
            text = text.removeprefix(wrap).removesuffix(wrap)
    return unquoted(text) or None


def git_sides(rest: str) -> tuple[str, str] | None:
    """The two paths, with their prefixes, of what stands behind `diff --git `.

    Paths with blanks are told apart only if both sides agree, as they do where nothing is renamed.
    """
    rest = rest.strip()
    if rest.startswith('"') or rest.endswith('"'):
        return _quoted_sides(rest)
    half = len(rest) // 2
    if len(rest) % 2 and rest[half] == " " and _bare(rest[:half]) == _bare(rest[half + 1 :]):
        return rest[:half], rest[half + 1 :]
    words = rest.split(" ")
    if len(words) == 2:
        return words[0], words[1]
    halves = rest.split(" b/")
    return (halves[0], "b/" + halves[1]) if len(halves) == 2 else None


def _quoted_sides(rest: str) -> tuple[str, str] | None:
    if match := _QUOTED.match(rest):
        first, second = match[0], rest[match.end() :].strip()
    else:
        first, _, second = rest.partition(' "')
        second = '"' + second
    old, new = unquoted(first), unquoted(second)
    return (old, new) if old and new else None


def _bare(path: str) -> str:
    return _PREFIX.sub("", path, count=1)


def plain(old: str, new: str, known: Known) -> tuple[str, str]:
    """The two sides as paths of the repository: without the prefixes, if those are some.

    They are where both sides have them; else where the base, or the other side, has the rest.  A
    side that is nowhere has none of its own.
    """
    if old == NOWHERE:
        return old, _alone(new, "b/", known)
    if new == NOWHERE:
        return _alone(old, "a/", known), new
    if _prefixed(old, new) or (old != new and (_bare(old) == new or old == _bare(new))):
        return as_spelled(_bare(old), known), as_spelled(_bare(new), known)
    return as_meant(old, known), as_meant(new, known)


def _prefixed(old: str, new: str) -> bool:
    """Whether both sides have a diff's prefixes."""
    return bool(_PREFIX.match(old) and _PREFIX.match(new)) and old[0] != new[0]


def _alone(path: str, prefix: str, known: Known) -> str:
    """The path of the only side there is; in a reversed diff it has the other side's prefix."""
    own = known(path) and not known(path[2:])
    other = path[:2] in PREFIXES and not has_directory(path[0], known)
    if own or not (path.startswith(prefix) or other):
        return as_meant(path, known)
    return as_spelled(path[2:] or path, known)


# ---------------------------------------------------------------- mails


class Mail(Struct, frozen=True):
    """`author` is `Name <address>`; `end` is the index of the first line behind the headers."""

    author: str | None
    subject: str | None
    end: int


def opens_mail(line: str) -> bool:
    """Whether a line is one that opens a mail."""
    return _OPENS_MAIL.match(line) is not None


def may_open_mail(line: str) -> bool:
    """Whether the line may be the first of a mail's head."""
    return line.startswith("From: ") or opens_mail(line)


def mail_at(lines: Sequence[str], start: int) -> Mail | None:
    """The mail whose headers begin on line `start` (an index), or None.

    Without git's first line (`From <oid> …`) it takes `From:`, `Date:` and `Subject:` to make one.
    Raises `UnreadableEdit` where its text is encoded.
    """
    opened = opens_mail(lines[start])
    if not may_open_mail(lines[start]):
        return None
    below = "" if opened else "\n".join(lines[start : start + _MAX_HEADERS]).lower()
    if not opened and not ("\nsubject:" in below and "\ndate:" in below):
        return None
    fields, end = _fields(lines, start + opened)
    if not opened and not {"from", "date", "subject"} <= fields.keys():
        return None
    if fields.get("content-transfer-encoding", "").lower() in _ENCODED:
        raise UnreadableEdit(
            start,
            "the mail's text is encoded, so its diff cannot be read",
            "send the output of `git format-patch` itself, not a mail that was on its way",
        )
    author = fields.get("from")
    body = end + 1
    if body < len(lines) and lines[body].startswith("From: "):  # the sender is not the author
        author, end = _decoded(lines[body][len("From: ") :]), body + 1
    subject = _SUBJECT_TAGS.sub("", fields.get("subject", ""), count=1)
    return Mail(author or None, subject or None, min(end + 1, len(lines)))


def refuse_further_mails(lines: Sequence[str], start: int, mail: Mail) -> None:
    """Raise `UnreadableEdit` if another mail begins behind `mail`, which begins on line `start`."""
    for i in range(mail.end, len(lines)):
        if opens_mail(lines[i]) or mail_at(lines, i):
            raise UnreadableEdit(
                i,
                f"a second mail begins here; the first one begins on line {start + 1}",
                "send every mail as a response of its own: `git mailsplit -o. FILE` splits them, "
                "and `depends_on` in the front matter keeps their order",
            )


def _fields(lines: Sequence[str], start: int) -> tuple[dict[str, str], int]:
    """The header fields by their lower-case names, and the index of the line that ends them."""
    fields: dict[str, str] = {}
    name, i = "", start
    while i < min(len(lines), start + _MAX_HEADERS):
        line = lines[i].rstrip("\r")
        if name and line[:1] in (" ", "\t") and line.strip():
            fields[name] += " " + line.strip()
        elif match := _MAIL_FIELD.fullmatch(line):
            name = match[1].lower()
            fields[name] = match[2].strip()
        else:
            break
        i += 1
    return {name: _decoded(value) for name, value in fields.items()}, i


def _decoded(value: str) -> str:
    if "=?" not in value or len(value) > _MAX_ENCODED:
        return value.strip()
    from email.errors import HeaderParseError  # few mails need it, and most responses are none
    from email.header import decode_header, make_header

    try:
        return " ".join(str(make_header(decode_header(value))).split())
    except (HeaderParseError, LookupError, UnicodeError, ValueError):
        return value.strip()
