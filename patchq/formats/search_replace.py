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

from patchq.envelope.wrappers import (
    blank_thought,
    closes_thought,
    opens_thought,
    without_close,
)
from patchq.formats import foreign
from patchq.formats.blocks import (
    Block,
    Inner,
    Marker,
    Unreadable,
    block_at,
    is_cut,
    is_suspect,
    opening,
)
from patchq.formats.fences import Fence, FenceLines, OpenFences, fence
from patchq.formats.headings import Heading, heading_of, line_above, look_above
from patchq.formats.ops import op_of
from patchq.formats.paths import Known, mentions_other, path_line
from patchq.model import Edit, Parsed
from patchq.ops import Create, Rename

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


def parse(text: str, known: Known, default_path: str | None = None) -> Parsed:
    """The edits of `text`, in order; a text with a block that cannot be read gives problems only.

    `known` tells whether the base has a path; `default_path` stands in for a first block without
    one.  Lines are counted from 1 at the text's first line.
    """
    reader = _Reader(text.split("\n"), known, default_path)
    try:
        reader.read()
    except Unreadable as error:
        return Parsed(problems=(error.problem,))
    wrappers = reader.fences.wrappers
    prose = [(number, line) for number, line in reader.prose if number - 1 not in wrappers]
    if left_out := foreign.find(prose, reader.known):
        return Parsed(problems=(left_out,))
    return Parsed(tuple(reader.edits), "\n".join(line for _, line in prose).strip())


class _Reader:
    def __init__(self, lines: list[str], known: Known, default_path: str | None) -> None:
        self.lines = lines
        self.base_has = known
        self.path = default_path
        self.edits: list[Edit] = []
        self.prose: list[tuple[int, str]] = []
        """The lines outside blocks, with their numbers."""
        self.made: set[str] = set()
        self.fences = OpenFences()
        self.fence_lines: FenceLines | None = None
        self.own: tuple[int, Fence] | None = None
        """The fence that the last block stands in, as long as it is open, and its line."""
        self.low = 0
        """The first line behind the last block: headings are not sought before it."""

    def known(self, path: str) -> bool:
        return path in self.made or self.base_has(path)

    def read(self) -> None:
        i = 0
        while i < len(self.lines):
            line = self.lines[i]
            if marker := opening(line):
                i = self._block(i, marker)
            elif opens_thought(line):
                i = self._thought(i)
            elif closes_thought(line):
                self._end_of_thought(i)
            else:
                self._prose(i)
                i += 1
        self._check_end()

    # ------------------------------------------------------------ outside of blocks

    def _prose(self, i: int) -> None:
        line = self.lines[i]
        if is_suspect(line):
            raise Unreadable(
                i,
                f"{line.strip()[:40]!r} stands outside a block",
                "expected a whole block: `<<<<<<< SEARCH`, the old lines, `=======`, the new "
                "lines, `>>>>>>> REPLACE`, each marker alone on its line and at its start",
            )
        if mark := fence(line):
            self.fences.read(i, mark)
        self.prose.append((i + 1, line))

    def _thought(self, i: int) -> int:
        end = blank_thought(self.lines, i)
        if end is None:
            raise Unreadable(
                i,
                "the thinking block that opens here is not closed before the response ends",
                "send the answer alone, without the thinking before it",
                "response.truncated",
            )
        return end

    def _end_of_thought(self, i: int) -> None:
        """A model that is made to think may leave out the tag that opens."""
        if self.edits:
            raise Unreadable(
                i,
                "a thinking block ends here that begins nowhere, so the edits before it may be "
                "drafts",
                "send the answer alone, without the thinking before it",
            )
        self.prose.clear()
        self.lines[i] = without_close(self.lines[i])

    def _check_end(self) -> None:
        """Refuse a response that ends where a block begins: it was cut."""
        end = line_above(self.lines, len(self.lines), self.low)
        if end < self.low:
            return
        line, mark = self.lines[end], fence(self.lines[end])
        above = line_above(self.lines, end, self.low)
        headed = above >= self.low and self._is_heading(self.lines[above])
        if mark is None:
            cut = is_cut(line, headed) or (bool(self.edits) and self._is_heading(line))
        else:
            cut = self.fences.opened(end) and (bool(mark.info) or headed)
        if cut:
            raise Unreadable(
                end,
                "the response ends here, where a block begins",
                "send the whole response again; if it was cut, send fewer changes at once",
                "response.truncated",
            )

    def _is_heading(self, line: str) -> bool:
        """Whether the line is a path and nothing else, and no item of a list."""
        listed = line.lstrip().startswith(("- ", "* ", "+ ", "> "))
        return not listed and path_line(line, self.known) is not None

    # ------------------------------------------------------------ one block

    def _block(self, start: int, marker: Marker) -> int:
        above = look_above(self.lines, start, self.low, self.fences.opened)
        further = self.own is not None
        if above.fences:
            self.own = above.fences[0]
        block = block_at(self.lines, start, marker, self._inner())
        heading = heading_of(self.lines, start, above, self.known, word=block.creates)
        if further:
            self._check_between(start, heading)
        self.path = self._path(heading, block)
        op = op_of(block, self.known)
        if isinstance(op, Create):
            self.made.add(self.path)
        elif isinstance(op, Rename):
            self.made.add(op.to)
        at = (block.start + 1, block.end + 1)
        self.edits.append(Edit(str(len(self.edits) + 1), NAME, at, self.path, op))
        self._forget(heading)
        self.fences.hold_block()
        self.low = self._behind(block.end)
        return self.low

    def _inner(self) -> Inner | None:
        """Finds the fences inside the block's own, if that one is longer than usual."""
        if self.own is None or self.own[1].length < 4:
            return None
        self.fence_lines = self.fence_lines or FenceLines(self.lines)
        return partial(self.fence_lines.end_of_inner, outer=self.own[1])

    def _check_between(self, start: int, heading: Heading) -> None:
        """Between two blocks of one fence stand blank lines and the path of the second."""
        for i in range(self.low, start):
            line = self.lines[i]
            if line.strip() and i not in heading.named_on and not fence(line):
                raise _text_behind(i)

    def _path(self, heading: Heading, block: Block) -> str:
        if heading.path:
            return heading.path
        between = self.lines[self.low : block.start]
        # What quotes nothing of the file has to name it.
        quotes = block.word == "SEARCH" and not block.creates
        if (
            self.path
            and (quotes or not self.edits)
            and not any(mentions_other(line, self.path, self.known) for line in between)
        ):
            return self.path
        raise Unreadable(
            block.start,
            "expected a path on the line before the block",
            "put the file's path, relative to the repository's root and without blanks, alone on "
            f"the line before `{self.lines[block.start].strip()}`",
        )

    def _forget(self, heading: Heading) -> None:
        """The lines from a block's heading on are no prose, but for those that it keeps."""
        while self.prose and self.prose[-1][0] > heading.top:
            self.prose.pop()
        self.prose += [(i + 1, self.lines[i]) for i in heading.kept]

    def _behind(self, end: int) -> int:
        """The line behind a block; where it stands in a fence, the one behind the fence's end."""
        if self.own is None:
            return end + 1
        at, own = self.own
        text = -1
        for i in range(end + 1, len(self.lines)):
            line = self.lines[i]
            if opening(line):
                return end + 1
            if not line.strip():
                continue
            mark = fence(line)
            if mark and own.closed_by(mark):
                next_opens = self._opens_block(i)
                if text < 0:
                    self.own = None
                    self.fences.close(at)
                    # It may also be the fence of a block that follows at once.
                    return i if next_opens else i + 1
                if not next_opens:
                    raise _text_behind(text)
            text = i if text < 0 else text
        self.own = None  # the last fence is missing
        return end + 1

    def _opens_block(self, i: int) -> bool:
        """Whether the next line that is not blank opens a block."""
        i += 1
        while i < len(self.lines) and not self.lines[i].strip():
            i += 1
        return i < len(self.lines) and opening(self.lines[i]) is not None


def _text_behind(index: int) -> Unreadable:
    return Unreadable(
        index,
        "expected the fence's end or a further block with its path, found other text",
        "close the fence right behind `>>>>>>> REPLACE`; lines of the block stand before it",
    )
