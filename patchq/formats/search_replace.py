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

from patchq.formats import foreign
from patchq.formats.blocks import Block, Marker, Unreadable, block_at, is_suspect, opening
from patchq.formats.fences import Fence, fence
from patchq.formats.paths import Known, mentions_other, path_of_info, path_of_line, undress
from patchq.model import Create, DeleteFile, Edit, Op, Parsed, Rename, Replace

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
    if left_out := foreign.find(reader.prose):
        return Parsed(problems=(left_out,))
    return Parsed(tuple(reader.edits), "\n".join(line for _, line in reader.prose).strip())


class _Reader:
    def __init__(self, lines: list[str], known: Known, default_path: str | None) -> None:
        self.lines = lines
        self.base_has = known
        self.path = default_path
        self.edits: list[Edit] = []
        self.prose: list[tuple[int, str]] = []
        """The lines outside blocks, with their numbers."""
        self.made: set[str] = set()
        self.open: Fence | None = None
        self.open_at = -1
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
                continue
            if is_suspect(line):
                raise Unreadable(
                    i,
                    f"line {i + 1}, column 1: {line.strip()[:40]!r} stands outside a block",
                    "expected a whole block: `<<<<<<< SEARCH`, the old lines, `=======`, the new "
                    "lines, `>>>>>>> REPLACE`, each marker alone at the start of its line",
                )
            self._fence_line(i)
            self.prose.append((i + 1, line))
            i += 1

    def _fence_line(self, i: int) -> None:
        mark = fence(self.lines[i])
        if mark is None:
            return
        if self.open is not None and self.open.closed_by(mark):
            self.open = None
        elif not mark.closing:
            self.open, self.open_at = mark, i

    # ------------------------------------------------------------ one block

    def _block(self, start: int, marker: Marker) -> int:
        found = self._heading_fence(start)
        block = block_at(self.lines, start, marker, found)
        path = self._path(block)
        self.made.add(path)
        op = self._op(block, path)
        if isinstance(op, Rename):
            self.made.add(op.to)
        at = (block.start + 1, block.end + 1)
        self.edits.append(Edit(str(len(self.edits) + 1), NAME, at, path, op))
        self.path = path
        self.low = self._behind(block.end, found)
        return self.low

    def _heading_fence(self, start: int) -> Fence | None:
        """The fence that the block stands in, if nothing but its heading stands between."""
        if self.open is None:
            return None
        heading = self._above(start)
        above = self._above(heading) if heading > self.open_at else heading
        return self.open if above <= self.open_at or self.open_at < self.low else None

    def _op(self, block: Block, path: str) -> Op:
        if block.word == "RENAME":
            named = [line for line in block.old if line.strip()]
            if len(named) != 1:
                raise Unreadable(
                    block.start,
                    f"line {block.start + 1}, column 1: expected one line with the new path "
                    f"between the RENAME markers, found {len(named)}",
                    "`<<<<<<< RENAME`, the new path, `>>>>>>> RENAME`",
                )
            return Rename(undress(named[0])[0].removeprefix("./"))
        if block.word == "DELETE":
            if any(line.strip() for line in block.old):
                raise Unreadable(
                    block.start + 1,
                    f"line {block.start + 2}, column 1: expected nothing between the DELETE "
                    "markers",
                    "to delete lines, use SEARCH with an empty REPLACE part",
                )
            return DeleteFile()
        if not block.old:
            return Create(_joined(block.new))
        if not any(line.strip() for line in block.old):
            raise Unreadable(
                block.start,
                f"line {block.start + 1}, column 1: the SEARCH part holds blank lines only",
                "leave it empty to create the file, or quote lines with text",
            )
        return Replace(_joined(block.old), _joined(block.new))

    # ------------------------------------------------------------ what surrounds a block

    def _path(self, block: Block) -> str:
        word = block.word == "SEARCH" and not block.old
        i = self._above(block.start)
        for _ in range(2):
            mark = fence(self.lines[i]) if i >= self.low else None
            if mark is None:
                break
            if path := path_of_info(mark.info, self.known):
                self._forget(i)
                return self._read_as_meant(path)
            i = self._above(i)
        path = path_of_line(self.lines[i], self.known, word=word) if i >= self.low else None
        if path:
            self._forget(i)
            return self._read_as_meant(path)
        between = self.lines[self.low : block.start]
        if self.path and not any(mentions_other(line, self.path, self.known) for line in between):
            return self.path
        raise Unreadable(
            block.start,
            f"line {block.start + 1}, column 1: expected a path on the line before the block",
            "put the file's path, relative to the repository's root, alone on the line before "
            f"`{self.lines[block.start].strip()}`",
        )

    def _above(self, i: int) -> int:
        i -= 1
        while i >= self.low and not self.lines[i].strip():
            i -= 1
        return i

    def _forget(self, heading: int) -> None:
        """The lines from a block's heading on are no prose, unless the heading is a sentence."""
        sentence = fence(self.lines[heading]) is None and " " in undress(self.lines[heading])[0]
        while self.prose and self.prose[-1][0] > heading + sentence:
            self.prose.pop()

    def _read_as_meant(self, path: str) -> str:
        path = path.removeprefix("./")
        if not self.known(path) and path[:2] in ("a/", "b/") and self.known(path[2:]):
            return path[2:]
        return path

    def _behind(self, end: int, inside: Fence | None) -> int:
        """The line behind a block; where it stands in a fence, the fence's end is looked for."""
        if inside is None:
            return end + 1
        text: list[int] = []
        for i in range(end + 1, len(self.lines)):
            line = self.lines[i]
            if not line.strip():
                continue
            if opening(line):
                text = text[:-1]  # without the heading of the next block
                break
            mark = fence(line)
            if mark is not None and inside.closed_by(mark):
                if not text:
                    self.open = None
                    return i + 1
                if not self._opens_block(i):
                    raise Unreadable(
                        text[0],
                        f"line {text[0] + 1}, column 1: expected the fence's end or a further "
                        "block",
                        "close the fence right behind `>>>>>>> REPLACE`",
                    )
            text.append(i)
        if text:
            self.open = None
        return end + 1

    def _opens_block(self, i: int) -> bool:
        """Whether the next line that is not blank opens a block."""
        following = (line for line in self.lines[i + 1 : i + 20] if line.strip())
        return opening(next(following, "")) is not None


def _joined(lines: list[str]) -> str:
    return "".join(line + "\n" for line in lines)
