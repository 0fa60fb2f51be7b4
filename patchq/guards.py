"""What a model does not mean although it wrote it: lines left out, and put in as a comment.

The line is refused only where neither the file nor the quote has it: a file may well speak of
"... the rest".
"""

from __future__ import annotations

import re

from patchq.model import Create, Edit, Problem, Replace
from patchq.text import Text

_ELISION = re.compile(
    r"^\s*(?:\#+|//+|/\*+|\*+|--+|;+|<!--|\{/\*|%+|\"|')?\s*(?:\.{3}|…)(?!\w).*"
    r"\b(?:existing|rest|remaining|unchanged|other|same|omitted)\b",
    re.IGNORECASE,
)


def elided(edit: Edit, path: str, base: Text | None) -> Problem | None:
    """The first new line that stands for lines which were left out, as a problem."""
    if isinstance(edit.op, Create):
        old, new = "", edit.op.text
    elif isinstance(edit.op, Replace):
        old, new = edit.op.old, edit.op.new
    else:
        return None
    suspects = [line.strip() for line in new.split("\n") if _ELISION.match(line)]
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
        f"edit {edit.id} would write a line into {path} that stands for others: {line[:120]!r}",
        "write every line out, or leave unchanged lines out of both halves",
        edit=edit.id,
        path=path,
    )
