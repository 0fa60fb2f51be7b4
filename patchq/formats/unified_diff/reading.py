"""Unified diffs, as `git diff` and `diff -u` write them and as models imitate them.

    --- a/path/to/file.py
    +++ b/path/to/file.py
    @@ -1,3 +1,3 @@
     context
    -old line
    +new line

A diff stands in a fence of its own language (`diff_fences`) or bare in the text, and then it ends
where the lines stop looking like one.  If a bare diff's counts do not hold, nothing behind that
point may look like the rest of it.
"""

from __future__ import annotations

from patchq.formats.document import Document, Piece
from patchq.formats.unified_diff import mails
from patchq.formats.unified_diff.fences import INDENTED, OTHER, fenced_diff, heading
from patchq.formats.unified_diff.files import FORM, FileReader
from patchq.formats.unified_diff.headers import HINT, HINT_CUT, Region, begins_file
from patchq.formats.unified_diff.hunks import (
    HEADER,
    is_fence,
    is_signature,
    names_one_file,
    numbers_of,
)
from patchq.formats.unreadable import Unreadable

NAME = FORM
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


def read(doc: Document, i: int) -> Piece | None:
    """The diff, or the head of a mail with one, that begins on line `i` (an index); see
    `formats.document`.  A mail's head is a piece without edits."""
    line = doc.lines[i]
    if line[:1] in ("`", "~", " ", "\t", ">"):
        if INDENTED.match(line):
            raise Unreadable(i, "a diff stands here, but not at the start of its lines", HINT)
        return fenced_diff(doc, i)
    if line.startswith("From") and (mail := mails.mail_at(doc.lines, i)):
        mails.refuse_several(doc.lines, i, mail)
        return Piece((), mail.end, summary=mail.subject, author=mail.author)
    if begins_file(doc.lines, i) or _is_hunk(doc, i):
        return _bare(doc, i)
    if line.startswith("+++ ") or OTHER.fullmatch(line):
        raise Unreadable(i, f"expected a unified diff's header, found {line.strip()[:60]!r}", HINT)
    return None


def may_begin(line: str) -> bool:
    """Whether a diff without a fence or a mail may begin on the line, by its text alone."""
    if line[:1] in (" ", "\t", ">"):
        return INDENTED.match(line) is not None
    if line.startswith("From"):
        return mails.may_begin(line)
    starts = line.startswith(("diff --git ", "--- ", "+++ ")) or HEADER.match(line)
    return bool(starts or OTHER.fullmatch(line))


def _is_hunk(doc: Document, i: int) -> bool:
    """Whether a hunk's header stands on the line, and no code that happens to begin with `@@`."""
    line = doc.lines[i]
    if not HEADER.match(line):
        return False
    below = doc.lines[i + 1] if i + 1 < len(doc.lines) else ""
    text = line[2:].strip()
    return bool(not text or text.endswith("@@") or numbers_of(line) or below[:1] in ("+", "-"))


def _bare(doc: Document, start: int) -> Piece:
    reader = FileReader(Region(doc, doc.lines, 0, fenced=False))
    i = start
    if not begins_file(doc.lines, i):
        i = reader.headless(i, heading(doc, i, None)[0])
    while (below := _next_line(doc, i)) is not None and begins_file(doc.lines, below):
        i = reader.file(below)
    if not reader.exact:
        _check_behind(doc, reader, i)
    if below is not None and is_signature(doc.lines, below):
        i = below + 2
    return Piece(tuple(reader.edits), i, _stat_above(doc, start), warnings=tuple(reader.warnings))


def _next_line(doc: Document, i: int) -> int | None:
    """The first line from `i` on that is not blank."""
    return next((n for n in range(i, len(doc.lines)) if doc.lines[n].strip()), None)


def _check_behind(doc: Document, reader: FileReader, end: int) -> None:
    """Refuse a diff that was cut, or whose lines go on behind its end."""
    first = _next_line(doc, end)
    if first is None:
        if (doc.lines[-1] and not reader.open_end) or reader.others_exact:
            message = "the diff ends here with fewer lines than its last hunk states"
            raise Unreadable(end - 1, message, HINT_CUT, "response.truncated")
        return
    if is_signature(doc.lines, first):
        return
    any_sign = first == end  # else only one that changes something goes on
    for n in range(max(first, doc.calm.get(any_sign, 0)), len(doc.lines)):
        line = doc.lines[n]
        if not line.strip() or is_fence(line) or names_one_file(doc.lines, n, doc.known):
            break
        doc.calm[any_sign] = n + 1
        if line[0] in "+-" and (any_sign or _is_change(line)):
            raise Unreadable(
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
