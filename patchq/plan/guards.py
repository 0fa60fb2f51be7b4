"""What a model does not mean although it wrote it: lines left out and put in as a comment, a file
of escapes, text that would give a file two encodings.

A line that stands for others is refused only where neither the file nor the quote has it: a file
may well speak of "... the rest".
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from patchq.model.ops import Create, Write, halves
from patchq.model.values import Edit, Hunk, Problem
from patchq.plan.targets import Rules
from patchq.resolve.readings import is_escaped_line
from patchq.text.line_diff import line_diff
from patchq.text.lines import Text

_ELISION = re.compile(
    r"""
    (?: ^\s* (?: \#+ | //+ | /?\*+ | --+ | ;+ | <!-- | \{/\* | \(\* | \{- | %+
               | "(?!.*") | '(?!.*') )?       # a quote that is closed again is a string
      | \s (?: \#+ | //+ | /\*+ | <!-- | \{/\* ) )
    \s* (?: \.{3} | \u2026 ) (?!\w) .*
    \b (?: existing | rest | remaining | unchanged | other | same | omitted ) \b
    """,
    re.IGNORECASE | re.VERBOSE,
)


def elided(edit: Edit, rules: Rules, base: Text | None) -> Problem | None:
    """The first new line that stands for lines which were left out, as a problem, unless the rules
    let it pass."""
    if not rules.elision:
        return None
    old, new = halves(edit.op)
    if "..." not in new and "\u2026" not in new:
        return None
    suspects = [line.strip() for line in new.split("\n") if _ELISION.search(line)]
    if not suspects:
        return None
    known = {line.strip() for line in old.split("\n")}
    if base is not None:
        known.update(line.decode("utf-8", "surrogateescape").strip() for line in base.contents)
    line = next((line for line in suspects if line not in known), None)
    if line is None:
        return None
    return Problem(
        "edit.elided",
        f"edit {edit.id} would write a line into {edit.path} that stands for others: {line[:99]!r}",
        "write every line out, or leave unchanged lines out of both halves",
        edit=edit.id,
        path=edit.path,
    )


def escaped_file(edit: Edit, op: Create) -> Problem | None:
    """A new file whose line breaks are all written as escapes, as a problem."""
    if not is_escaped_line(op.text):
        return None
    return Problem(
        "response.unreadable_edit",
        f"edit {edit.id} would make {edit.path} of a single line with escaped line breaks",
        "write the new file's lines as lines, without backslash escapes",
        edit=edit.id,
        line=edit.at[0],
    )


def shrinks(edit: Edit, op: Write, rules: Rules, base: Text) -> Problem | None:
    """A whole file that would lose most of its lines, or may be a mere excerpt, as a problem."""
    before = [line.strip() for line in base.contents if line.strip()]
    after = [line.strip().encode() for line in op.text.split("\n") if line.strip()]
    if op.quoting and not _keeps(before, after):
        return Problem(
            "response.unreadable_edit",
            f"edit {edit.id} may be the new text of {edit.path}, or a mere excerpt of it",
            "to write the whole file, put its path into the fence's info: ```python:path/to/file",
            edit=edit.id,
            path=edit.path,
            line=edit.at[0],
        )
    if len(after) < len(before) * rules.shrink:
        return Problem(
            "edit.shrinks",
            f"edit {edit.id} would leave {len(after)} of the {len(before)} lines of {edit.path}",
            "send the whole file, or quote the lines to delete",
            edit=edit.id,
            path=edit.path,
        )
    return None


def _keeps(before: Sequence[bytes], after: Sequence[bytes]) -> bool:
    """Whether the new lines keep, in order, the first, the last and half of the others, or nine in
    ten of all."""
    if not before:
        return True
    changed = sum(a1 - a0 for a0, a1, _, _ in line_diff(before, after))
    kept = len(before) - changed
    if kept >= 0.9 * len(before):
        return True
    ends = bool(after) and before[0] == after[0] and before[-1] == after[-1]
    return ends and kept - min(2, len(before)) >= (len(before) - 2) / 2


def mixed_encoding(edit: Edit, text: Text, hunks: Sequence[Hunk]) -> Problem | None:
    """New text beyond ASCII for a file whose bytes are not UTF-8, as a problem."""
    if all(hunk.new.isascii() for hunk in hunks) or is_utf8(text.data):
        return None
    own = set(text.contents)
    lines = (line.removesuffix(b"\r") for hunk in hunks for line in hunk.new.split(b"\n"))
    if all(line.isascii() or line in own for line in lines):
        return None
    return Problem(
        "file.encoding",
        f"{edit.path} is not UTF-8, and edit {edit.id} would write letters beyond ASCII into it",
        "keep the new lines to ASCII, or leave this file out",
        edit=edit.id,
        path=edit.path,
    )


def is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
