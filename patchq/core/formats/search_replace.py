"""SEARCH/REPLACE blocks, the form that aider made known.

    path/to/file.py
    <<<<<<< SEARCH
    exact lines
    =======
    new lines
    >>>>>>> REPLACE

A line-by-line state machine: prose until an opening marker, the old half until the divider, the new
half until the closing marker.  An empty old half creates the file.  `<<<<<<< RENAME` holds the new
path, `<<<<<<< DELETE` nothing.  Every line that looks like a marker and is none refuses the
response: read as prose it would be left out in silence.

The lines above name the path. They are read upwards from the opening marker, blank lines left out:

    path, or a sentence that names one        the outer line
    ```python path                            the fence; models open it twice at times
    path                                      the inner line
    <<<<<<< SEARCH

Each of them may be missing.  A sentence counts only where nothing else names one.  Two that name
different paths make the block unreadable, unless only one of the files has its old lines.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from patchq.core.formats.format import Document, Format, Opening, Piece, UnreadableEdit
from patchq.core.formats.marks.blocks import (
    Block,
    BlockMarker,
    block_at,
    is_suspect,
    may_mark,
    opening,
)
from patchq.core.formats.marks.fences import (
    USUAL_LENGTH,
    Fence,
    joined,
    line_above,
    next_line,
)
from patchq.core.formats.marks.paths import (
    KnownPaths,
    path_of_info,
    word_line,
)
from patchq.core.model.ops import Create, DeleteFile, Op, Rename, Replace
from patchq.core.model.values import Edit
from patchq.core.text.grammars import is_code

NAME = "search_replace"
INSTRUCTIONS = """\
Answer with one block for every change:

path/to/file.py
<<<<<<< SEARCH
the lines to change, copied exactly, with enough lines round them to occur only once
=======
the lines that take their place
>>>>>>> REPLACE

The path is alone on the line before the block. An empty SEARCH part creates the file, an empty
REPLACE part deletes the lines. To rename a file, put `<<<<<<< RENAME`, the new path and
`>>>>>>> RENAME` under the old path; to delete one, `<<<<<<< DELETE` and `>>>>>>> DELETE` under its
path. Never leave lines out with `...`.
"""


def read(doc: Document, i: int) -> Piece | None:
    """Return the block that opens on line `i` (an index); see `formats.format`."""
    line = doc.lines[i]
    if marker := opening(line):
        blocks = doc.notes(Blocks)
        return blocks.read(i, marker)
    if is_suspect(line):
        raise UnreadableEdit(
            i,
            f"{line.strip()[:40]!r} is outside a block",
            "expected a whole block: `<<<<<<< SEARCH`, the old lines, `=======`, the new lines, "
            "`>>>>>>> REPLACE`, each marker alone on its line and at its start",
        )
    return None


class Blocks:
    """Blocks of one document, read one after the other."""

    def __init__(self, doc: Document) -> None:
        self.doc = doc
        # The open fence round the last block, and its line.
        self.own: tuple[int, Fence] | None = None
        self.end = 0  # the index of the line behind the last block

    def read(self, start: int, marker: BlockMarker) -> Piece:
        """Return the block that opens with `marker` on line `start` (an index)."""
        doc = self.doc
        if doc.low != self.end:  # an edit of another form is between
            self.own = None
        above = _look_above(doc, start)
        further = self.own is not None
        if above.fences:
            self.own = above.fences[0]
        own = self.own[1] if self.own and self.own[1].length > USUAL_LENGTH else None
        inside = doc.fences.inside(own, start) if own else ()
        block = block_at(doc.lines, start, marker, inside)
        heading = _heading_of(doc, above, block)
        if further:
            self._check_between(start, heading)
        path = self._path(heading, block)
        if block.unless_code and not is_code(path):
            raise block.unless_code
        edit = Edit("", NAME, (start + 1, block.end + 1), path, _op(block, doc.known, heading))
        self.end = self._behind(block.end)
        return Piece((edit,), self.end, heading.top)

    def _check_between(self, start: int, heading: Heading) -> None:
        for i in range(self.doc.low, start):
            line = self.doc.lines[i]
            if line.strip() and i not in heading.named_on and not self.doc.fences.at(i):
                raise _text_behind(i)

    def _path(self, heading: Heading, block: Block) -> str:
        if heading.path:
            return heading.path
        # A block that quotes nothing of the file has to name it.
        quotes = block.word == "SEARCH" and not block.creates
        between = self.doc.lines[self.doc.low : block.start]
        if (quotes or self.doc.path is None) and (path := self.doc.carried_path(between)):
            return path
        raise UnreadableEdit(
            block.start,
            "expected a path on the line before the block",
            "put the file's path, relative to the repository's root and without blanks, alone on "
            f"the line before `{self.doc.lines[block.start].strip()}`",
        )

    def _behind(self, end: int) -> int:
        if self.own is None:
            return end + 1
        (at, own), lines, text = self.own, self.doc.lines, -1
        for i in range(end + 1, len(lines)):
            if opening(lines[i]):
                return end + 1
            mark = self.doc.fences.at(i)
            if mark and own.closed_by(mark):
                below = next_line(lines, i)
                next_opens = below < len(lines) and opening(lines[below])
                if text < 0:
                    self.own = None
                    self.doc.fences.close(at, i)
                    # It may also be the fence of a block that follows at once.
                    return i if next_opens else i + 1
                if not next_opens:
                    raise _text_behind(text)
            if text < 0 and lines[i].strip():
                text = i
        self.own = None  # the last fence is missing
        return end + 1


def _text_behind(index: int) -> UnreadableEdit:
    return UnreadableEdit(
        index,
        "expected the fence's end or a further block with its path, found other text",
        "close the fence right behind `>>>>>>> REPLACE`; lines of the block stand before it",
    )


# ---------------------------------------------------------------- what a block says


def _op(block: Block, known: KnownPaths, heading: Heading) -> Op:
    if block.word == "RENAME":
        return Rename(_new_path(block, known))
    if block.word == "DELETE":
        return _deletion(block)
    if block.creates:
        return Create(joined(block.new), quoting=bool(heading.path) and not heading.stated)
    old = joined(block.old)
    if not old.strip():
        raise UnreadableEdit(
            block.start + 1,
            "the SEARCH part holds blank lines only",
            "leave it empty to create the file, or quote lines with text",
        )
    return Replace(old, joined(block.new))


def _new_path(block: Block, known: KnownPaths) -> str:
    named = [line for line in block.old if line.strip()]
    path = known.on_line(named[0]) or word_line(named[0]) if len(named) == 1 else None
    if path is None:
        raise UnreadableEdit(
            block.start,
            "expected one line with the new path, and nothing else, between the RENAME markers",
            "send `<<<<<<< RENAME`, the new path, `>>>>>>> RENAME`, each on a line of its own",
        )
    return path


def _deletion(block: Block) -> DeleteFile:
    for i, line in enumerate(block.old, block.start + 1):
        if line.strip():
            raise UnreadableEdit(
                i,
                "expected nothing between the DELETE markers",
                "to delete lines, use a SEARCH block with an empty REPLACE part",
            )
    return DeleteFile()


# ---------------------------------------------------------------- lines above a block


class LinesAbove(Struct, frozen=True):
    """The indices of the lines above a block.

    `fences` are at most two, from the marker upwards.
    """

    inner: int | None = None
    fences: tuple[tuple[int, Fence], ...] = ()
    outer: int | None = None


class Heading(Struct, frozen=True):
    """`path` is None if nothing above the block names one."""

    path: str | None
    top: int  # the index of the first line that belongs to the block
    named_on: frozenset[int] = frozenset()  # the indices of the lines that name the path
    # True if the fence's info names it behind a colon, so that no other can be meant.
    stated: bool = False


def _heading_of(doc: Document, above: LinesAbove, block: Block) -> Heading:
    """Return the heading of the block, with `above` over it.

    Raises `UnreadableEdit` where two paths are named, unless only one of the files has the lines
    that the block quotes.
    """
    lines, known = doc.lines, doc.known
    alone = above.inner if not above.fences else None
    if alone is not None and (path := known.on_line(lines[alone])):
        return Heading(known.meant(path), alone, frozenset((alone,)))
    over = tuple([i for i in (above.inner, above.outer) if i is not None])
    whole = [(i, known.on_line(lines[i])) for i in over]
    infos = [(i, path_of_info(mark.info, known)) for i, mark in above.fences if mark.info]
    named = [(i, known.meant(path)) for i, path in (*whole, *infos) if path]
    if not named and block.creates:  # a single word may be one that the base does not have
        words = [(i, word_line(lines[i])) for i in over]
        named = [(i, path) for i, path in words if path][:1]
    path = _one_path(doc, block, named)
    top = min([block.start, *[i for i, _ in above.fences], *[i for i, _ in named]])
    named_on = frozenset([i for i, _ in named])
    stated = any(":" in lines[i] for i, path in infos if path)
    return Heading(path, top, named_on, stated)


def _one_path(doc: Document, block: Block, named: Sequence[tuple[int, str]]) -> str | None:
    if len(named) < 2:
        return named[0][1] if named else None
    paths = {path for _, path in named}
    holders = {path for path in paths if _holds(doc.known.base.text(path), block.old)}
    # An edit before may have put the lines into a file that lacks them.
    certain = holders if len(paths) > 1 and doc.changed.isdisjoint(paths - holders) else paths
    if len(certain) == 1:
        return certain.pop()
    (one, first), (other, second) = named[0], next(n for n in named if n[1] != named[0][1])
    raise UnreadableEdit(
        block.start,
        f"expected one path for the block, found two: {first!r} on line {one + 1} and "
        f"{second!r} on line {other + 1}",
        "name the path once, alone on the line before the block",
    )


def _holds(text: str | None, quote: Sequence[str]) -> bool:
    """Return whether a file has the quoted lines, blanks at their edges aside."""
    lines = _stripped(quote).strip("\n")
    return bool(lines) and f"\n{lines}\n" in _stripped((text or "").split("\n"))


def _stripped(lines: Sequence[str]) -> str:
    return "\n".join(["", *map(str.strip, lines), ""])


def _look_above(doc: Document, start: int) -> LinesAbove:
    """Return the lines above line `start`, down to the last edit.

    A fence line right above the marker opens, whatever was left open before it; one above another
    line only if it was read so.
    """
    lines, low, fences = doc.lines, doc.low, list[tuple[int, Fence]]()
    i = line_above(lines, start, low)
    if i < low:
        return LinesAbove()
    inner = None if doc.fences.at(i) else i
    if inner is not None:
        i = line_above(lines, i, low)
    while len(fences) < 2 and i >= low and (mark := doc.fences.at(i)):
        if mark.closing or ((inner is not None or fences) and not doc.fences.opened(i)):
            break
        fences.append((i, mark))
        i = line_above(lines, i, low)
    outer = i if fences and i >= low and not doc.fences.at(i) else None
    return LinesAbove(inner, tuple(fences), outer)


FORMAT = Format(
    NAME,
    INSTRUCTIONS,
    openings=(
        Opening(
            read,
            (r"[<>*+\d\u200b-\u200d\ufeff•|#/;%│┃▏▌-]",),
            lambda line: may_mark(line) and (opening(line) or is_suspect(line)),
        ),
    ),
)
