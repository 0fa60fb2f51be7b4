"""FIND/REPLACE blocks: two fences under labels.

    FILE: path/to/file.py

    ### CHANGE 1: what this change does
    FIND:
    ```python
    exact lines
    ```

    REPLACE WITH:
    ```python
    new lines
    ```

A block begins at its `FIND:`; the lines above name the file and tell what the change does.  Its
two halves belong together, so a half alone refuses the response.  An empty old half creates the
file.

`FILE:` counts anywhere behind the last edit.  Any other path has to stand right above the block, or
above its CHANGE line.  The last edit's path counts only if the lines between name no other.
"""

from __future__ import annotations

import re

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
from patchq.core.formats.marks.fences import next_line
from patchq.core.formats.marks.parts import (
    LONGER_FENCE,
    Fenced,
    change_line,
    check_end,
    fenced_at,
    file_line,
    half_at,
    is_file_end,
    is_markdown,
    may_label,
    path_behind,
)
from patchq.core.model.ops import Create, Replace
from patchq.core.model.values import Edit

NAME = "find_replace"
INSTRUCTIONS = """\
Answer with the file's path, and under it one block for every change:

FILE: path/to/file.py

### CHANGE 1: what this change does
FIND:
```python
the lines to change, copied exactly, with enough lines round them to occur only once
```

REPLACE WITH:
```python
the lines that take their place
```

An empty fence under FIND: creates the file, one under REPLACE WITH: deletes the lines. Where the
lines hold fences themselves, use longer ones. Never leave lines out with `...`.
"""

SEND_BOTH = (
    "send both halves of the change, `FIND:` and `REPLACE WITH:`, each with a fence under it"
)
_LISTED = re.compile(r"\s*[-*+>]\s")
_IN_A_FENCE = "put the lines of each half into a fence right under its label"


def read(doc: Document, i: int) -> Piece | None:
    """Return the block whose `FIND:` is on line `i` (an index), or None."""
    half = half_at(doc, i)
    if half is None:
        change = change_line(doc.lines[i])
        if change and change.shouted and next_line(doc.lines, i) == len(doc.lines):
            raise UnreadableEdit.cut(i, "the response ends here, where a change begins")
        return None
    if half != "FIND":
        raise UnreadableEdit(i, "expected a `FIND:` half before this one, found none", SEND_BOTH)
    heading = _heading_of(doc, i)
    old = _fenced_half(doc, i, half)
    label = next_line(doc.lines, old.end)
    if label == len(doc.lines):
        raise UnreadableEdit.cut(i, "the response ends before the `REPLACE WITH:` half")
    if half_at(doc, label) != "REPLACE WITH":
        raise UnreadableEdit(
            i,
            f"expected `REPLACE WITH:` after the FIND half that ends on line {old.end + 1}, found "
            f"{doc.lines[label].strip()[:40]!r} on line {label + 1}",
            LONGER_FENCE if old.nests or is_markdown(heading.path, old.mark.info) else SEND_BOTH,
        )
    new = _fenced_half(doc, label, "REPLACE WITH")
    check_end(doc, new, heading.path)
    op = _op(doc, i, heading, old.text if old.lines else "", new.text if new.lines else "")
    at = heading.start + 1, new.end + 1
    edit = Edit("", NAME, at, heading.path, op, heading.description)
    below = next_line(doc.lines, new.end)
    closed = below < len(doc.lines) and is_file_end(doc.lines[below])
    return Piece((edit,), (below if closed else new.end) + 1, heading.top)


def _op(doc: Document, i: int, heading: BlockHeading, old: str, new: str) -> Create | Replace:
    if old.strip():
        return Replace(old, new)
    if old:
        raise UnreadableEdit(
            i,
            "the FIND half holds blank lines only",
            "leave its fence empty to create the file, or quote lines with text",
        )
    if doc.known(heading.path):
        raise UnreadableEdit(
            i,
            f"the FIND half is empty, which creates a file, but {heading.path!r} exists",
            "quote under FIND: the lines to change, or the one to insert at",
        )
    return Create(new, quoting=heading.quoting)


def _fenced_half(doc: Document, i: int, name: str) -> Fenced:
    below = next_line(doc.lines, i)
    if below == len(doc.lines):
        raise UnreadableEdit.cut(i, f"the response ends before the {name} half")
    mark = doc.fences.at(below)
    if mark is None or mark.closing:
        raise UnreadableEdit(i, f"expected the {name} half in a fence, found none", _IN_A_FENCE)
    return fenced_at(doc, below, mark)


# ---------------------------------------------------------------- what is above


class BlockHeading(Struct, frozen=True):
    """The lines above a block."""

    path: str
    description: str | None
    start: int
    top: int
    # True if the path is in a form that names files that there are as well.
    quoting: bool = False


def _heading_of(doc: Document, i: int) -> BlockHeading:
    """Return the heading of the block whose `FIND:` is on line `i`.

    Above it count the lines behind the last edit.  Raises `UnreadableEdit`.
    """
    description: str | None = None
    between: list[str] = []
    start = i
    for j in range(i - 1, doc.low - 1, -1):
        line = doc.lines[j]
        change, label, path = change_line(line), file_line(line), None
        if change and description is None:
            description, start = change.description, j
        elif change and change.shouted:
            message = "expected `FIND:` and `REPLACE WITH:` under this"
            raise UnreadableEdit(j, message, SEND_BOTH)
        elif label:
            path = path_behind(label, doc.known)
            if path is None:
                message = "expected one path behind `FILE:`"
                raise UnreadableEdit(j, message, "write `FILE: path`, and no more")
        elif line.strip():
            above = not (between or doc.fences.at(j) or _LISTED.match(line))
            path = doc.known.on_line(line) if above else None
            between.append(line)
        if path:
            return BlockHeading(doc.known.meant(path), description or None, start, j, not label)
    if path := doc.carried_path(between):
        return BlockHeading(doc.known.meant(path), description or None, start, start)
    raise UnreadableEdit(
        i,
        "expected the path of the file that this block changes",
        "put `FILE: path`, relative to the repository's root, on a line above the block",
    )


FORMAT = Format(
    NAME,
    INSTRUCTIONS,
    openings=(
        Opening(read, (r"[\d#*_`>+-]", "[Cc][Hh]", "[Ff][Ii`*_]", "[Rr][Ee`*_]"), may_label),
    ),
    fences=(FenceOpening(read, lambda mark: may_label(mark.kind * mark.length + mark.info), 2),),
    signs=(
        Sign(
            "a part of a FIND/REPLACE pair",
            r"(?i:[\s#*_>-]*(?:FIND|REPLACE\s+WITH)\s*:[\s*_]*$)|[\s#*_>-]*REPLACE WITH\s*:",
        ),
    ),
)
