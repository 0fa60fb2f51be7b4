"""Unified diffs, as `git diff` and `diff -u` write them and as models imitate them.

    --- a/path/to/file.py
    +++ b/path/to/file.py
    @@ -1,3 +1,3 @@
     context
    -old line
    +new line

A diff stands in a fence of its own language or bare in the text, and then it ends where the lines
stop looking like one.  If a bare diff's counts do not hold, nothing behind that point may look like
the rest of it.

Once a fenced diff's first header is read, everything in the fence is diff: any other line refuses
it.  Hunks without a header are those of the file that the fence's info, the line above it or the
front matter names.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

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
from patchq.core.formats.marks.lines import (
    DIFF_ENDINGS,
    DIFF_LANGUAGES,
    GIT,
    Fence,
    fence,
    line_above,
    next_line,
)
from patchq.core.formats.marks.paths import as_meant, path_line, path_of_info
from patchq.core.formats.unified_diff.files import (
    NAME,
    FileReader,
    is_fence,
    is_signature,
    numbers_of,
)
from patchq.core.formats.unified_diff.headers import (
    HINT,
    HUNK,
    DiffRegion,
    begins_file,
    mail_at,
    may_open_mail,
    names_one_file,
    opens_mail,
    refuse_further_mails,
)
from patchq.core.formats.v4a import opens
from patchq.core.model.ops import Rename

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
_OTHER = re.compile(
    r"\*{3} \d+(?:,\d+)? \*{4}\s*|@@@+ -\d.*|(?:Binary f|F)iles \S.* differ\s*", re.DOTALL
)
"""Lines of diffs of another kind: context diffs, those of merges and of binary files."""

_LANGUAGE = re.compile(rf"(?:{'|'.join(DIFF_LANGUAGES)})(?![\w+-])", re.IGNORECASE)
_OF_TEXT = re.compile(r"[^\s<>@*+\dBFd-]|\Z")
"""A line that is none of any diff, nor of another form."""
_NORMAL = re.compile(r"\d+(?:,\d+)?[acd]\d+(?:,\d+)?\s*")
_BETWEEN = re.compile(r"(?:diff -|Index: |={20,}|Only in )")


def read(doc: Document, i: int) -> Piece | None:
    """The diff, or the head of a mail with one, that begins on line `i` (an index); see
    `formats.format`.  A mail's head is a piece without edits."""
    line = doc.lines[i]
    if line[:1] in ("`", "~", " ", "\t", ">"):
        if _INDENTED.match(line):
            raise UnreadableEdit(i, "a diff stands here, but not at the start of its lines", HINT)
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
    """Whether a diff without a fence or a mail may begin on the line, by its text alone."""
    if line[:1] in (" ", "\t", ">"):
        return _INDENTED.match(line) is not None
    if line.startswith("From"):
        return may_open_mail(line)
    if line[:1] in ("-", "+"):
        return line[:4] in ("--- ", "+++ ")
    starts = line.startswith(GIT) or HUNK.match(line)
    return bool(starts or _OTHER.fullmatch(line))


def _is_hunk(doc: Document, i: int) -> bool:
    """Whether a hunk's header stands on the line, and no code that happens to begin with `@@`."""
    line = doc.lines[i]
    if not HUNK.match(line):
        return False
    below = doc.lines[i + 1] if i + 1 < len(doc.lines) else ""
    text = line[2:].strip()
    return bool(not text or text.endswith("@@") or numbers_of(line) or below[:1] in ("+", "-"))


def _bare(doc: Document, start: int) -> Piece:
    reader = FileReader(DiffRegion(doc, doc.lines, 0, fenced=False))
    headed = begins_file(doc.lines, start)
    i = start if headed else reader.headless(start, _heading(doc, start, None)[0])
    while (below := next_line(doc.lines, i - 1)) < len(doc.lines) and begins_file(doc.lines, below):
        i = reader.file(below)
    if not reader.exact:
        _check_behind(doc, reader, i)
    if below < len(doc.lines) and is_signature(doc.lines, below):
        i = below + 2
    return Piece(tuple(reader.edits), i, _stat_above(doc, start), warnings=tuple(reader.warnings))


class _CalmLines:
    """How far a document was searched for further lines of a diff in vain."""

    def __init__(self, _: Document) -> None:
        self.ends: dict[bool, int] = {}
        """The first line (index) behind those without any: none that changes something, and (True)
        none that is led by a sign."""


def _check_behind(doc: Document, reader: FileReader, end: int) -> None:
    """Refuse a diff that was cut, or whose lines go on behind its end."""
    first, calm = next_line(doc.lines, end - 1), doc.memory[_CalmLines]
    if first >= len(doc.lines):
        if (doc.lines[-1] and not reader.open_end) or reader.others_exact:
            raise UnreadableEdit.cut(
                end - 1, "the diff ends here with fewer lines than its last hunk states"
            )
        return
    if is_signature(doc.lines, first):
        return
    any_sign = first == end  # else only one that changes something goes on
    for n in range(max(first, calm.ends.get(any_sign, 0)), len(doc.lines)):
        line = doc.lines[n]
        if not line.strip() or is_fence(line) or names_one_file(doc.lines, n, doc.known):
            break
        calm.ends[any_sign] = n + 1
        if line[0] in "+-" and (any_sign or _is_change(line)):
            raise UnreadableEdit(
                first,
                f"expected a line led by a space, `+` or `-`, found {doc.lines[first][:60]!r}",
                "lead every line of a hunk by its sign; put a blank line, or the fence's end, "
                "between a diff and other text",
            )


def _is_change(line: str) -> bool:
    """Whether a line that begins with a sign is an added or removed one, not a list's item."""
    return bool(line[1:2].strip(" +-\r") or (line[1:3] == "  " and line.strip()))


def _stat_above(doc: Document, start: int) -> int | None:
    """The index of the `---` line above a mail's diff, if the diffstat stands between them."""
    i = start - 1
    while i >= doc.low and doc.lines[i].strip() != "---":
        if doc.lines[i].strip() and doc.lines[i][:1] != " ":
            return None
        i -= 1
    stat = doc.lines[i + 1 : start] if i >= doc.low else ()
    return i if any(" changed" in line for line in stat) else None


# ---------------------------------------------------------------- in a fence


def _fenced(doc: Document, start: int) -> Piece | None:
    """The diff in the fence that opens on line `start` (an index); None if none does, or it holds
    none.  Raises `UnreadableEdit`."""
    mark = fence(doc.lines[start])
    if mark is None or not is_of_diff(mark):
        return None
    if "." in mark.info and (path_of_info(mark.info, doc.known) or "").endswith(DIFF_ENDINGS):
        return None  # a file that holds a diff
    line = doc.lines[start]
    indent = line[: len(line) - len(line.lstrip(" "))]
    end, closed = _end(doc.lines, start, mark, len(indent))
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
    return Piece(
        tuple(reader.edits),
        end + closed,
        top if path in named else None,
        warnings=tuple(reader.warnings),
    )


def is_of_diff(mark: Fence) -> bool:
    """Whether a fence line opens a fence of a diff's language."""
    return not mark.closing and _LANGUAGE.match(mark.info) is not None


def _heading(doc: Document, i: int, mark: Fence | None) -> tuple[str | None, int | None]:
    """The path for hunks without a header on line `i`, and the index of the line above that names
    it and holds nothing else."""
    if mark and (path := path_of_info(mark.info, doc.known)):
        return as_meant(path, doc.known), None
    above = line_above(doc.lines, i, doc.low)
    if mark is None and above >= doc.low and is_fence(doc.lines[above]):
        above = line_above(doc.lines, above, doc.low)
    if above >= doc.low and (path := path_line(doc.lines[above], doc.known)):
        return as_meant(path, doc.known), above
    return doc.default_path, None


def _end(lines: Sequence[str], start: int, mark: Fence, indent: int) -> tuple[int, bool]:
    """Where the fence's lines end, and whether a fence line closes it there.

    A fence line of a file's text stands behind a sign, so one with info opens another fence.
    """
    for i in range(start + 1, len(lines)):
        line = lines[i]
        if is_fence(line) or (not line[:indent].strip() and is_fence(line[indent:])):
            other = fence(line)
            if other and mark.closed_by(other):
                return i, True
            if other and other.info:
                return i, False
    return len(lines), False


def _holds_diff(lines: Sequence[str]) -> bool:
    """Whether there are lines of a diff, and no edit of another form before them."""
    others: set[str] = set()
    for i, line in enumerate(lines):
        if line in others or _OF_TEXT.match(line):
            continue
        if opening(line) or opens(line) or opens_mail(line):
            return False
        if begins_file(lines, i) or HUNK.match(line) or _is_foreign(line):
            return True
        if line[:1] not in ("+", "-"):
            others.add(line)
        elif line.strip("+- \t\r"):
            return True
    return False


def _read(reader: FileReader, path: str | None) -> None:
    lines, i = reader.region.lines, 0
    while i < len(lines):
        line = lines[i]
        if begins_file(lines, i):
            i = reader.file(i)
        elif HUNK.match(line) and not reader.edits:
            i = reader.headless(i, path)
        elif not line.strip() or _BETWEEN.match(line):
            i += 1
        elif is_signature(lines, i):
            i += 2
        elif not reader.edits and line[0] not in "+-" and not _is_foreign(line):
            i += 1
        else:
            raise reader.region.unreadable(
                i,
                f"expected a line of a unified diff, found {line.strip()[:60]!r}",
                f"{HINT}, each led by a space, `+` or `-`",
            )


def _is_foreign(line: str) -> bool:
    return bool(_OTHER.fullmatch(line) or _INDENTED.match(line) or _NORMAL.fullmatch(line))


FORMAT = Format(
    NAME,
    INSTRUCTIONS,
    openings=(Opening(read, ("[>@*+-]", "diff", "From", "Binary", "Files"), may_begin),),
    fences=(FenceOpening(read, is_of_diff, turn=0),),
    signs=(
        Sign("a unified diff", r"[+-]", languages=frozenset({"diff", "patch", "udiff"})),
        Sign("a unified diff", r"\s*(?:@@ .*@@|\+{3} \S)"),
    ),
)
