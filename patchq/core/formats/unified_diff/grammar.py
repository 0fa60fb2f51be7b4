"""Unified diffs, as written by `git diff` and `diff -u`, and by models.

    --- a/path/to/file.py
    +++ b/path/to/file.py
    @@ -1,3 +1,3 @@
     context
    -old line
    +new line

A diff is in a fence of its own language or bare in the text, and then it ends where the lines
stop looking like one.  If a bare diff's counts do not hold, nothing behind that point may look like
the rest of it.

Once a fenced diff's first header is read, everything in the fence is diff: any other line refuses
it.  Hunks without a header are those of the file that the fence's info, the line above it or the
front matter names.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct

from patchq.core.formats.format import (
    Document,
    FenceOpening,
    Format,
    Opening,
    Piece,
    Sign,
    UnreadableEdit,
)
from patchq.core.formats.marks.blocks import opening
from patchq.core.formats.marks.fences import (
    DIFF_ENDINGS,
    DIFF_LANGUAGES,
    GIT,
    Fence,
    line_above,
    next_line,
)
from patchq.core.formats.marks.paths import path_of_info
from patchq.core.formats.unified_diff.files import FileReader
from patchq.core.formats.unified_diff.hunks import (
    HINT,
    HUNK,
    NUMBERS,
    DiffRegion,
    begins_file,
    is_signature,
)
from patchq.core.formats.v4a import opens
from patchq.core.model.ops import DIFF, Rename

INSTRUCTIONS = """\
Answer with one unified diff in a fence:

```diff
--- a/path/to/file.py
+++ b/path/to/file.py
@@ -10,3 +10,3 @@
 an unchanged line, led by one space
-a line to remove
+a line to add
 an unchanged line
```

Quote three unchanged lines before and after every change, exactly. `--- /dev/null` creates the
file, `+++ /dev/null` deletes it; `diff --git a/old b/new`, `rename from old` and `rename to new`
rename it. Never leave lines out with `...`.
"""

_INDENTED = re.compile(
    r"[\s>]++(?:diff --git \S|@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@|\+{3} (?:[ab]/|/dev/null))"
)
# Lines of diffs of another kind: context diffs, those of merges and of binary files.
_OTHER = re.compile(
    r"\*{3} \d+(?:,\d+)? \*{4}\s*|@@@+ -\d.*|(?:Binary f|F)iles \S.* differ\s*", re.DOTALL
)
_FOREIGN = re.compile(rf"{_OTHER.pattern}|{_INDENTED.pattern}|\d+(?:,\d+)?[acd]\d+(?:,\d+)?\s*$")
_LANGUAGE = re.compile(rf"(?:{'|'.join(DIFF_LANGUAGES)})(?![\w+-])", re.IGNORECASE)
_BETWEEN = re.compile(r"(?:\s*$|diff -|Index: |={20,}|Only in )")
_OPENS = re.compile(r"From [0-9a-f]{40}(?:[0-9a-f]{24})? \w{3} \w{3} ")
_FIELD = re.compile(r"[A-Za-z][A-Za-z0-9-]*:|[ \t]+\S")
_SUBJECT_TAGS = re.compile(r"(?:\s*(?:\[[^\]]*\]|[Rr][Ee]:))*\s*")
_ENCODED = ("base64", "quoted-printable")
_MAX_HEADERS = 40
_MAX_ENCODED = 10_000


def read(doc: Document, i: int) -> Piece | None:
    """Return the diff or mail head that begins on line `i`, or None.

    `i` is an index.  A mail's head is a piece without edits.  Raises `UnreadableEdit`.
    """
    line = doc.lines[i]
    if line[:1] in ("`", "~", " ", "\t", ">"):
        if _INDENTED.match(line):
            raise UnreadableEdit(i, "a diff is here, but not at the start of its lines", HINT)
        return _fenced(doc, i)
    if line.startswith("From") and (mail := mail_at(doc.lines, i)):
        refuse_further_mails(doc.lines, i, mail)
        return Piece((), mail.end, summary=mail.subject, author=mail.author)
    if begins_file(doc.lines, i) or _is_hunk(doc, i):
        return _bare(doc, i)
    if line.startswith("+++ ") or _OTHER.fullmatch(line):
        raise UnreadableEdit(
            i, f"expected a unified diff's header, found {line.strip()[:60]!r}", HINT
        )
    return None


def may_begin(line: str) -> bool:
    """Return whether an unfenced diff or a mail may begin on the line."""
    if line[:1] in (" ", "\t", ">"):
        return _INDENTED.match(line) is not None
    starts = line.startswith((GIT, "--- ", "+++ ")) or HUNK.match(line)
    return bool(starts or may_open_mail(line) or _OTHER.fullmatch(line))


def _is_hunk(doc: Document, i: int) -> bool:
    line = doc.lines[i]
    if not HUNK.match(line):
        return False
    below = doc.lines[i + 1] if i + 1 < len(doc.lines) else ""
    text = line[2:].strip()
    return not text or text.endswith("@@") or bool(NUMBERS.match(line, 2)) or below[:1] in "+-"


def _bare(doc: Document, start: int) -> Piece:
    lines, reader = doc.lines, FileReader(DiffRegion(doc, doc.lines, 0, fenced=False))
    headed = begins_file(lines, start)
    i = start if headed else reader.headless(start, _heading(doc, start, None)[0])
    while (below := next_line(lines, i - 1)) < len(lines) and begins_file(lines, below):
        i = reader.file(below)
    signed_off = below < len(lines) and is_signature(lines, below)
    if signed_off:
        i = below + 2
    elif not reader.exact:
        _check_behind(doc, reader, i)
    return Piece(tuple(reader.edits), i, _stat_above(doc, start), warnings=tuple(reader.warnings))


def _check_behind(doc: Document, reader: FileReader, end: int) -> None:
    """Refuse a diff that was cut, or that continues behind its end."""
    lines, first = doc.lines, next_line(doc.lines, end - 1)
    if first >= len(lines):
        if reader.is_cut:
            message = "the diff ends here with fewer lines than its last hunk states"
            raise UnreadableEdit.cut(end - 1, message)
        return
    for n in range(first, len(lines)):
        line = lines[n]
        if not line.strip() or doc.fences.at(n) or begins_file(lines, n) or HUNK.match(line):
            return
        text = line[1:2].strip(" +-\r") or line[1:3] == "  "
        if line[0] in "+-" and (first == end or text):
            raise UnreadableEdit(
                first,
                f"expected a line led by a space, `+` or `-`, found {lines[first][:60]!r}",
                "lead every line of a hunk by its sign; put a blank line, or the fence's end, "
                "between a diff and other text",
            )


def _stat_above(doc: Document, start: int) -> int | None:
    i = start - 1
    while i >= doc.low and doc.lines[i].strip() != "---":
        if doc.lines[i].strip() and doc.lines[i][:1] != " ":
            return None
        i -= 1
    stat = doc.lines[i + 1 : start] if i >= doc.low else ()
    return i if any(" changed" in line for line in stat) else None


# ---------------------------------------------------------------- in a fence


def _fenced(doc: Document, start: int) -> Piece | None:
    """Return the diff in the fence that opens on line `start`, or None.

    `start` is an index.
    Raises `UnreadableEdit`.
    """
    line, mark = doc.lines[start], doc.fences.at(start)
    if mark is None or not is_of_diff(mark):
        return None
    if "." in mark.info and (path_of_info(mark.info, doc.known) or "").endswith(DIFF_ENDINGS):
        return None  # a file that holds a diff
    indent = line[: len(line) - len(line.lstrip(" "))]
    end, closed = _end(doc, start, mark, len(indent))
    lines = [line.removeprefix(indent) for line in doc.lines[start + 1 : end]]
    if not _holds_diff(lines):
        return None
    path, top = _heading(doc, start, mark)
    reader = FileReader(DiffRegion(doc, lines, start + 1, fenced=True))
    _read(reader, path)
    if not reader.edits:
        raise UnreadableEdit(
            start, "the fence holds lines of a diff, and no header of a file", HINT
        )
    if not closed and not (end == len(doc.lines) and reader.exact):
        raise UnreadableEdit.cut(start, "the fence that opens here is not closed behind its diff")
    named = {edit.path for edit in reader.edits}
    named |= {edit.op.to for edit in reader.edits if isinstance(edit.op, Rename)}
    top = top if path in named else None
    return Piece(tuple(reader.edits), end + closed, top, warnings=tuple(reader.warnings))


def is_of_diff(mark: Fence) -> bool:
    """Return whether a fence line opens a fence of a diff's language."""
    return not mark.closing and _LANGUAGE.match(mark.info) is not None


def _heading(doc: Document, i: int, mark: Fence | None) -> tuple[str | None, int | None]:
    """Return the path for hunks without a header, and the line naming it.

    The hunks begin on line `i`.  The line (an index) is one above that holds nothing else, or None
    if the path is from elsewhere.
    """
    if mark and (path := path_of_info(mark.info, doc.known)):
        return doc.known.meant(path), None
    above = line_above(doc.lines, i, doc.low)
    if mark is None and above >= doc.low and doc.fences.at(above):
        above = line_above(doc.lines, above, doc.low)
    if above >= doc.low and (path := doc.known.on_line(doc.lines[above])):
        return doc.known.meant(path), above
    return doc.default_path, None


def _end(doc: Document, start: int, mark: Fence, indent: int) -> tuple[int, bool]:
    """Return where the fence's lines end, and whether a fence line closes it there.

    A fence line of a file's text is behind a sign, so one with info opens another fence.
    """
    for i, other in doc.fences.behind(start):
        line = doc.lines[i]
        at_margin = line[:1] in ("`", "~") or line[: indent + 1].lstrip(" ")[:1] in ("`", "~")
        if at_margin and (mark.closed_by(other) or other.info):
            return i, mark.closed_by(other)
    return len(doc.lines), False


def _holds_diff(lines: Sequence[str]) -> bool:
    for i, line in enumerate(lines):
        if line[:1].isalpha() and line[:1] not in "BFId":
            continue
        if opening(line) or opens(line) or opens_mail(line):
            return False
        if begins_file(lines, i) or HUNK.match(line) or (_is_of_diff(line) and line.strip("+- \t")):
            return True
    return False


def _is_of_diff(line: str) -> bool:
    return line[:1] in ("+", "-") or _FOREIGN.match(line) is not None


def _read(reader: FileReader, path: str | None) -> None:
    lines, i = reader.region.lines, 0
    while i < len(lines):
        line = lines[i]
        if begins_file(lines, i):
            i = reader.file(i)
        elif HUNK.match(line) and not reader.edits:
            i = reader.headless(i, path)
        elif is_signature(lines, i):
            i += 2
        elif _BETWEEN.match(line) or not (reader.edits or _is_of_diff(line)):
            i += 1
        else:
            message = f"expected a line of a unified diff, found {line.strip()[:60]!r}"
            raise reader.region.unreadable(i, message, f"{HINT}, each led by a space, `+` or `-`")


# ---------------------------------------------------------------- mails


class Mail(Struct, frozen=True):
    """The headers of a mail that holds a patch.

    `author` is `Name <address>`; `end` is the index of the first line behind the headers.
    """

    author: str | None
    subject: str | None
    end: int


def opens_mail(line: str) -> bool:
    """Return whether a line opens a mail."""
    return _OPENS.match(line) is not None


def may_open_mail(line: str) -> bool:
    """Return whether the line may be the first of a mail's head."""
    return line.startswith("From: ") or opens_mail(line)


def mail_at(lines: Sequence[str], start: int) -> Mail | None:
    """Return the mail whose headers begin on line `start` (an index), or None.

    Without git's first line (`From <oid> …`) it takes `From:`, `Date:` and `Subject:` to make one.
    Raises `UnreadableEdit` where its text is encoded.
    """
    opened = opens_mail(lines[start])
    first = start + opened
    if not may_open_mail(lines[start]):
        return None
    end, limit = first, min(len(lines), first + _MAX_HEADERS)
    while end < limit and _FIELD.match(lines[end]):
        end += 1
    head = "\n".join(lines[first:end])
    if not opened and not all(f"\n{name}:" in head.lower() for name in ("date", "subject")):
        return None
    from email import message_from_string  # few responses are mails

    fields = message_from_string(head)
    if fields.get("content-transfer-encoding", "").lower() in _ENCODED:
        raise UnreadableEdit(
            start,
            "the mail's text is encoded, so its diff cannot be read",
            "send the output of `git format-patch` itself, not a mail that was on its way",
        )
    author = _decoded(fields.get("from", ""))
    if end + 1 < len(lines) and lines[end + 1].startswith("From: "):  # the sender is not the author
        author, end = _decoded(lines[end + 1][len("From: ") :]), end + 2
    subject = _SUBJECT_TAGS.sub("", _decoded(fields.get("subject", "")), count=1)
    return Mail(author or None, subject or None, min(end + 1, len(lines)))


def refuse_further_mails(lines: Sequence[str], start: int, mail: Mail) -> None:
    """Raise `UnreadableEdit` if another mail begins behind `mail`.

    `mail` begins on line `start`.
    """
    for i in range(mail.end, len(lines)):
        if opens_mail(lines[i]) or mail_at(lines, i):
            raise UnreadableEdit(
                i,
                f"a second mail begins here; the first one begins on line {start + 1}",
                "send every mail as a response of its own: `git mailsplit -o. FILE` splits them, "
                "and `depends_on` in the front matter keeps their order",
            )


def _decoded(value: str) -> str:
    value = " ".join(value.split())
    if "=?" not in value or len(value) > _MAX_ENCODED:
        return value
    from email.errors import HeaderParseError
    from email.header import decode_header, make_header

    try:
        return " ".join(str(make_header(decode_header(value))).split())
    except (HeaderParseError, LookupError, UnicodeError, ValueError):
        return value


FORMAT = Format(
    DIFF,
    INSTRUCTIONS,
    openings=(Opening(read, ("[>@*+-]", "diff", "From", "Binary", "Files"), may_begin),),
    fences=(FenceOpening(read, is_of_diff, turn=0),),
    signs=(
        Sign("a unified diff", r"[+-]", languages=frozenset({"diff", "patch", "udiff"})),
        Sign("a unified diff", r"\s*(?:@@ .*@@|\+{3} \S)"),
    ),
)
