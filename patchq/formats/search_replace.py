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
"""

from __future__ import annotations

from functools import partial

from patchq.formats.document import Document, Piece
from patchq.formats.format import Format, Opening
from patchq.formats.marks.blocks import (
    Block,
    BlockMarker,
    FenceSkip,
    block_at,
    is_suspect,
    opening,
)
from patchq.formats.marks.fences import Fence, FenceLines, fence
from patchq.formats.marks.headings import Heading, heading_of, look_above
from patchq.formats.marks.lines import joined, next_line
from patchq.formats.marks.paths import Known, mentions_other, path_line, word_line
from patchq.formats.unreadable import Unreadable
from patchq.model.ops import Create, DeleteFile, Op, Rename, Replace
from patchq.model.values import Edit

NAME = "search_replace"
INSTRUCTIONS = """\
Answer with one block for every change:

path/to/file.py
<<<<<<< SEARCH
the lines to change, copied exactly, with enough lines round them to occur only once
=======
the lines that take their place
>>>>>>> REPLACE

The path stands alone on the line before the block. An empty SEARCH part creates the file, an empty
REPLACE part deletes the lines. To rename a file, put `<<<<<<< RENAME`, the new path and
`>>>>>>> RENAME` under the old path; to delete one, `<<<<<<< DELETE` and `>>>>>>> DELETE` under its
path. Never leave lines out with `...`.
"""


def read(doc: Document, i: int) -> Piece | None:
    """The block that opens on line `i` (an index); see `formats.format`."""
    line = doc.lines[i]
    if marker := opening(line):
        blocks: Blocks = doc.memory[Blocks]
        return blocks.read(i, marker)
    if is_suspect(line):
        raise Unreadable(
            i,
            f"{line.strip()[:40]!r} stands outside a block",
            "expected a whole block: `<<<<<<< SEARCH`, the old lines, `=======`, the new lines, "
            "`>>>>>>> REPLACE`, each marker alone on its line and at its start",
        )
    return None


class Blocks:
    """The blocks of one document, read one after the other; `doc` has what stands around them."""

    def __init__(self, doc: Document) -> None:
        self.doc = doc
        self.fence_lines: FenceLines | None = None
        self.own: tuple[int, Fence] | None = None
        """The fence that the last block stands in, as long as it is open, and its line."""
        self.end = 0
        """The index of the line behind the last block."""

    def read(self, start: int, marker: BlockMarker) -> Piece:
        """The block that opens with `marker` on line `start` (an index)."""
        if self.doc.low != self.end:  # an edit of another form stands between
            self.own = None
        above = look_above(self.doc.lines, start, self.doc.low, self.doc.open_fences.opened)
        further = self.own is not None
        if above.fences:
            self.own = above.fences[0]
        block = block_at(self.doc.lines, start, marker, self._inner())
        heading = heading_of(self.doc.lines, start, above, self.doc.known, word=block.creates)
        if further:
            self._check_between(start, heading)
        path = self._path(heading, block)
        at = (block.start + 1, block.end + 1)
        edit = Edit("", NAME, at, path, _op(block, self.doc.known))
        self.doc.open_fences.hold_block()
        self.end = self._behind(block.end)
        return Piece((edit,), self.end, heading.top, kept=heading.kept)

    def _inner(self) -> FenceSkip | None:
        """Finds the fences inside the block's own, if that one is longer than usual."""
        if self.own is None or self.own[1].length < 4:
            return None
        self.fence_lines = self.fence_lines or FenceLines(self.doc.lines)
        return partial(self.fence_lines.end_of_inner, outer=self.own[1])

    def _check_between(self, start: int, heading: Heading) -> None:
        """Between two blocks of one fence stand blank lines and the path of the second."""
        for i in range(self.doc.low, start):
            line = self.doc.lines[i]
            if line.strip() and i not in heading.named_on and not fence(line):
                raise _text_behind(i)

    def _path(self, heading: Heading, block: Block) -> str:
        if heading.path:
            return heading.path
        between = self.doc.lines[self.doc.low : block.start]
        # What quotes nothing of the file has to name it.
        quotes = block.word == "SEARCH" and not block.creates
        path = self.doc.path or self.doc.default_path
        if (
            path
            and (quotes or self.doc.path is None)
            and not any(mentions_other(line, path, self.doc.known) for line in between)
        ):
            return path
        raise Unreadable(
            block.start,
            "expected a path on the line before the block",
            "put the file's path, relative to the repository's root and without blanks, alone on "
            f"the line before `{self.doc.lines[block.start].strip()}`",
        )

    def _behind(self, end: int) -> int:
        """The line behind a block; where it stands in a fence, the one behind the fence's end."""
        if self.own is None:
            return end + 1
        at, own = self.own
        text = -1
        for i in range(end + 1, len(self.doc.lines)):
            line = self.doc.lines[i]
            if opening(line):
                return end + 1
            if not line.strip():
                continue
            mark = fence(line)
            if mark and own.closed_by(mark):
                next_opens = self._opens_block(i)
                if text < 0:
                    self.own = None
                    self.doc.open_fences.close(at)
                    # It may also be the fence of a block that follows at once.
                    return i if next_opens else i + 1
                if not next_opens:
                    raise _text_behind(text)
            text = i if text < 0 else text
        self.own = None  # the last fence is missing
        return end + 1

    def _opens_block(self, i: int) -> bool:
        """Whether the next line that is not blank opens a block."""
        below = next_line(self.doc.lines, i)
        return below < len(self.doc.lines) and opening(self.doc.lines[below]) is not None


def _text_behind(index: int) -> Unreadable:
    return Unreadable(
        index,
        "expected the fence's end or a further block with its path, found other text",
        "close the fence right behind `>>>>>>> REPLACE`; lines of the block stand before it",
    )


# ---------------------------------------------------------------- what a block says


def _op(block: Block, known: Known) -> Op:
    """The operation of a block; raises `Unreadable` if its halves say nothing certain."""
    if block.word == "RENAME":
        return Rename(_new_path(block, known))
    if block.word == "DELETE":
        return _deletion(block)
    if block.creates:
        return Create(joined(block.new))
    if not any(line.strip() for line in block.old):
        raise Unreadable(
            block.start + 1,
            "the SEARCH part holds blank lines only",
            "leave it empty to create the file, or quote lines with text",
        )
    return Replace(joined(block.old), joined(block.new))


def _new_path(block: Block, known: Known) -> str:
    named = [line for line in block.old if line.strip()]
    path = None
    if len(named) == 1:
        path = path_line(named[0], known) or word_line(named[0])
    if path is None:
        raise Unreadable(
            block.start,
            "expected one line with the new path, and nothing else, between the RENAME markers",
            "send `<<<<<<< RENAME`, the new path, `>>>>>>> RENAME`, each on a line of its own",
        )
    return path


def _deletion(block: Block) -> DeleteFile:
    for i, line in enumerate(block.old, block.start + 1):
        if line.strip():
            raise Unreadable(
                i,
                "expected nothing between the DELETE markers",
                "to delete lines, use a SEARCH block with an empty REPLACE part",
            )
    return DeleteFile()


def _may_begin(line: str) -> bool:
    return opening(line) is not None or is_suspect(line)


FORMAT = Format(
    NAME,
    INSTRUCTIONS,
    openings=(Opening(read, (r"[<>*+\d\u200b-\u200d\ufeff-]",), _may_begin),),
)
