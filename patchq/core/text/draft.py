"""A text under way: what a replacement costs depends on what it changes, not on the text's size.

The lines are kept in blocks.  A replacement gives a new draft, which has new blocks where something
changed and shares all others.  A line is looked for in the blocks in which it may stand: those in
which it ever stood.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, chain, count
from operator import attrgetter
from typing import overload

from patchq.core.text.lines import BOM, SCANS, Haystack, Normalise, Text, View, is_utf8, split_lines

_SIZE = attrgetter("size")
_COUNT = attrgetter("count")
_LINES = 64
"""So many lines are a block; one of twice as many is cut."""
_FEW = 64
"""A line that may stand in more blocks is looked for in the whole text."""


class _LineBlock:
    """Whole lines that stand together; `home` is a number that stays when they change."""

    def __init__(self, data: bytes, home: int, counts: tuple[int, int] | None = None) -> None:
        self.data = data
        self.home = home
        self.size = len(data)
        self.count, self.returns = counts or (data.count(b"\n"), data.count(b"\r"))
        self.crlf = self.returns and data.count(b"\r\n")
        self._read: dict[Normalise, list[bytes]] = {}

    def spliced(self, start: int, end: int, new: bytes) -> _LineBlock:
        """The same with `new` in place of the bytes `start:end`."""
        gone = self.data[start:end]
        lines = self.count + new.count(b"\n") - gone.count(b"\n")
        returns = self.returns + new.count(b"\r") - gone.count(b"\r")
        own = memoryview(self.data)
        data = b"".join([own[:start], new, own[end:]])
        return _LineBlock(data, self.home, (lines, returns))

    @cached_property
    def lines(self) -> list[bytes]:
        return [self.data] if self.count == 1 else split_lines(self.data)

    @cached_property
    def starts(self) -> list[int]:
        return list(accumulate(map(len, self.lines), initial=0))

    def lines_at(self, start: int, end: int) -> list[bytes]:
        """The lines, without their `\\n`, that share a byte with `start:end`, or border on it."""
        first = self.data.rfind(b"\n", 0, start) + 1
        last = self.data.find(b"\n", end) + 1 or len(self.data)
        return _bare_lines(self.data[first:last])

    @cached_property
    def is_utf8(self) -> bool:
        return is_utf8(self.data)

    def read(self, normalise: Normalise | None) -> list[bytes]:
        """The lines without their `\\n`, as `normalise` reads them."""
        if normalise is None:
            return self._bare
        if normalise not in self._read:
            self._read[normalise] = normalise(self._bare)
        return self._read[normalise]

    @cached_property
    def _bare(self) -> list[bytes]:
        return _bare_lines(self.data)


def _joined(blocks: Sequence[_LineBlock]) -> _LineBlock:
    return _LineBlock(b"".join([block.data for block in blocks]), blocks[0].home)


def _bare_lines(data: bytes) -> list[bytes]:
    """The lines of a text whose every line is ended, without their `\\n`."""
    return data[:-1].split(b"\n") if data else []


class _Homes:
    """The blocks, by their homes, in which a line may stand as one reading sees it.  None is ever
    taken out, so that all drafts of one text share this."""

    def __init__(self, normalise: Normalise | None) -> None:
        self._normalise = normalise
        self._homes: dict[bytes, list[int]] = {}
        self._unread: list[tuple[int, list[bytes]]] = []
        self._searches = 0

    def is_worth_it(self, blocks: Iterable[_LineBlock]) -> bool:
        """Whether it is asked often enough; it reads all blocks then."""
        self._searches += 1
        if self._searches == SCANS:
            self._unread = [(block.home, block.read(None)) for block in blocks]
        return self._searches >= SCANS

    def note(self, home: int, bare: list[bytes]) -> None:
        """Lines that stand in a block now."""
        if self._searches >= SCANS:
            self._unread.append((home, bare))

    def of(self, line: bytes) -> list[int]:
        for home, bare in self._unread:
            for one in self._normalise(bare) if self._normalise else bare:
                homes = self._homes.get(one)
                if homes is None:
                    self._homes[one] = [home]
                elif homes[-1] != home:
                    homes.append(home)
        self._unread.clear()
        return self._homes.get(line, [])


@dataclass(slots=True)
class _Known:
    """What is known of a draft from the one before it, and of no use without."""

    homes: dict[Normalise | None, _Homes]
    next_home: int
    """A home that no block has had."""
    offsets: list[int]
    """The offset of each block, and of the end."""
    firsts: list[int]
    """How many lines stand before each block, and before the end."""
    places: dict[int, int]
    """The blocks by their homes."""
    line_ends: tuple[int, int]
    returns: int

    @classmethod
    def of(cls, blocks: Sequence[_LineBlock], offset: int) -> _Known:
        firsts = list(accumulate((block.count for block in blocks), initial=0))
        return cls(
            {},
            len(blocks),
            list(accumulate((len(block.data) for block in blocks), initial=offset)),
            firsts,
            {block.home: at for at, block in enumerate(blocks)},
            (sum(block.crlf for block in blocks), firsts[-1]),
            sum(block.returns for block in blocks),
        )

    def behind(
        self, blocks: Sequence[_LineBlock], first: int, here: Sequence[_LineBlock], count: int
    ) -> _Known:
        """What is known of the draft that has these `blocks`: `count` of them, from the `first` on,
        in place of those `here`."""
        rest, made = blocks[first:], blocks[first : first + count]
        sizes = accumulate(map(_SIZE, rest), initial=self.offsets[first])
        counts = accumulate(map(_COUNT, rest), initial=self.firsts[first])
        firsts = [*self.firsts[:first], *counts]
        same = count == len(here)
        crlf = self.line_ends[0] + sum(b.crlf for b in made) - sum(b.crlf for b in here)
        return _Known(
            self.homes,
            self.next_home + count - len(here),
            [*self.offsets[:first], *sizes],
            firsts,
            self.places if same else {block.home: at for at, block in enumerate(blocks)},
            (crlf, firsts[-1]),
            self.returns + sum(b.returns for b in made) - sum(b.returns for b in here),
        )


class Draft(Text):
    """A text whose every line is ended by `\\n`."""

    def __init__(self, bom: bytes, blocks: list[_LineBlock], known: _Known | None = None) -> None:
        self._bom, self.offset = bom, len(bom)
        self._returns, self._views = False, {}
        self._blocks = blocks
        self._known = known or _Known.of(blocks, self.offset)
        self._offsets, self._firsts = self._known.offsets, self._known.firsts
        self.line_end_counts = self._known.line_ends

    @classmethod
    def of(cls, text: Text) -> Draft | None:
        """The same text; None if its last line has no end, or a lone `\\r` ends lines."""
        if isinstance(text, cls):
            return text
        if text.data is not text.whole or text.ends_at_returns:
            return None
        lines = text.lines
        runs = range(0, max(len(lines), 1), _LINES)
        blocks = [_LineBlock(b"".join(lines[k : k + _LINES]), home) for home, k in enumerate(runs)]
        return cls(text.data[: text.offset], blocks)

    # ------------------------------------------------------------ where lines stand

    def block_of(self, line: int) -> tuple[_LineBlock, int]:
        """The block that has a line (0-based), or the end, and the line's place in it."""
        at = bisect_right(self._firsts, line, 0, len(self._blocks)) - 1
        return self._blocks[at], line - self._firsts[at]

    def start(self, line: int) -> int:
        """The offset of a line's start, or of the end."""
        at = bisect_right(self._firsts, line, 0, len(self._blocks)) - 1
        return self._offsets[at] + self._blocks[at].starts[line - self._firsts[at]]

    def line_at(self, position: int) -> int:
        at = self._at(position)
        inside = bisect_right(self._blocks[at].starts, position - self._offsets[at])
        return max(self._firsts[at] + inside, 1)

    def _at(self, position: int) -> int:
        return max(bisect_right(self._offsets, position, 0, len(self._blocks)) - 1, 0)

    def blocks(self, line: int = 0) -> Iterator[_LineBlock]:
        """All blocks from that of a line on."""
        at = bisect_right(self._firsts, line, 0, len(self._blocks)) - 1
        return (self._blocks[k] for k in range(at, len(self._blocks)))

    def with_line(self, lines: Sequence[bytes], normalise: Normalise | None) -> _Where | None:
        """Where the rarest of some lines may stand; None where that may be anywhere."""
        known = self._known.homes.setdefault(normalise, _Homes(normalise))
        if not known.is_worth_it(self._blocks):
            return None
        homes = [known.of(line) for line in lines[:_FEW]]
        rarest = min(range(len(homes)), key=lambda k: len(homes[k]))
        if len(homes[rarest]) > _FEW:
            return None
        places = sorted({self._known.places[home] for home in homes[rarest]})
        return rarest, (
            self._firsts[at] + k
            for at in places
            for k, one in enumerate(self._blocks[at].read(normalise))
            if one == lines[rarest]
        )

    # ------------------------------------------------------------ a replacement

    def spliced(self, start: int, end: int, new: bytes) -> Text:
        if start < self.offset:
            return super().spliced(start, end, new)
        first, last = self._at(start), self._at(end)
        at = self._offsets[first]
        if first < last and end == self._offsets[last]:
            # What stands behind it begins a line still?
            ended = (new or self.part(at, start))[-1:] in (b"", b"\n")
            last -= ended
        here = self._blocks[first : last + 1]
        whole = here[0] if len(here) == 1 else _joined(here)
        block = whole.spliced(start - at, end - at, new)
        if block.data[-1:] not in (b"", b"\n") or (not at and block.data.startswith(BOM)):
            return super().spliced(start, end, new)
        made = [block]
        if block.count >= 2 * _LINES or len(here) > 1:
            made = list(self._cut(block, here))
        blocks = self._blocks.copy()
        blocks[first : last + 1] = made
        for known in self._known.homes.values():
            if len(made) > 1:
                for block in made:
                    known.note(block.home, block.read(None))
            else:
                known.note(block.home, block.lines_at(start - at, start - at + len(new)))
        return Draft(self._bom, blocks, self._known.behind(blocks, first, here, len(made)))

    def _cut(self, block: _LineBlock, here: Sequence[_LineBlock]) -> Iterator[_LineBlock]:
        """The lines of a block in blocks of the usual size, as many as those `here` at least."""
        homes = chain((block.home for block in here), count(self._known.next_home))
        pieces = [b"".join(block.lines[k : k + _LINES]) for k in range(0, len(block.lines), _LINES)]
        pieces += [b""] * (len(here) - len(pieces))
        return map(_LineBlock, pieces, homes)

    # ------------------------------------------------------------ as any other text

    @cached_property
    def data(self) -> bytes:  # type: ignore[override]
        # One piece alone is not copied.
        bom = [self._bom] if self._bom else []
        return b"".join(bom + [block.data for block in self._blocks])

    @cached_property
    def whole(self) -> bytes:
        return self.data

    @property
    def lacks_final_newline(self) -> bool:
        return False

    @property
    def size(self) -> int:
        return self._offsets[-1]

    def part(self, start: int, end: int) -> bytes:
        if start < self.offset:
            return self.data[start:end]
        first, last = self._at(start), self._at(end)
        at = self._offsets[first]
        if first == last:
            return self._blocks[first].data[start - at : max(end - at, 0)]
        data = b"".join([block.data for block in self._blocks[first : last + 1]])
        return data[start - at : max(end - at, 0)]

    @cached_property
    def lines(self) -> Sequence[bytes]:  # type: ignore[override]
        return _Lines(self, None, ended=True)

    @cached_property
    def starts(self) -> Sequence[int]:  # type: ignore[override]
        return _Starts(self)

    @cached_property
    def is_utf8(self) -> bool:
        return all(block.is_utf8 for block in self._blocks)

    @property
    def has_crlf(self) -> bool:
        return self.line_end_counts[0] > 0

    @cached_property
    def is_ascii(self) -> bool:
        return not self._bom and all(block.data.isascii() for block in self._blocks)

    @cached_property
    def with_returns(self) -> Text | None:
        lone = self._known.returns > self.line_end_counts[0]
        return Text(self.data, returns=True) if lone else None

    @cached_property
    def haystack(self) -> Haystack:
        return _Straw(self)

    def view(self, normalise: Normalise | None = None) -> View:
        return _Blocks(self, normalise)


_Where = tuple[int, Iterator[int]]
"""The place of one line among others, and where in a text it stands."""


class _Lines(Sequence[bytes]):
    """The lines of a draft, with their ends or as a reading sees them."""

    def __init__(self, draft: Draft, normalise: Normalise | None, *, ended: bool) -> None:
        self._draft = draft
        self._normalise = normalise
        self._ended = ended

    def _of(self, block: _LineBlock) -> list[bytes]:
        return block.lines if self._ended else block.read(self._normalise)

    def __len__(self) -> int:
        return self._draft.line_end_counts[1]

    def __iter__(self) -> Iterator[bytes]:
        return chain.from_iterable(map(self._of, self._draft.blocks()))

    @overload
    def __getitem__(self, key: int) -> bytes: ...

    @overload
    def __getitem__(self, key: slice) -> list[bytes]: ...

    def __getitem__(self, key: int | slice) -> bytes | list[bytes]:
        if isinstance(key, slice):
            start, end, step = key.indices(len(self))
            return self._run(start, end) if step == 1 else list(self)[key]
        if not -len(self) <= key < len(self):
            raise IndexError(key)
        block, at = self._draft.block_of(key % len(self))
        return self._of(block)[at]

    def _run(self, start: int, end: int) -> list[bytes]:
        run: list[bytes] = []
        if start < end:
            block, ahead = self._draft.block_of(start)
            run = self._of(block)[ahead : ahead + end - start]
            if len(run) == end - start:
                return run
            run = []
            for block in self._draft.blocks(start):
                run += self._of(block)[ahead : ahead + end - start - len(run)]
                ahead = 0
                if len(run) == end - start:
                    break
        return run


class _Starts(Sequence[int]):
    """The offset of each line's start, and of the end."""

    def __init__(self, draft: Draft) -> None:
        self._draft = draft

    def __len__(self) -> int:
        return self._draft.line_end_counts[1] + 1

    @overload
    def __getitem__(self, key: int) -> int: ...

    @overload
    def __getitem__(self, key: slice) -> list[int]: ...

    def __getitem__(self, key: int | slice) -> int | list[int]:
        if isinstance(key, slice):
            return [self._draft.start(line) for line in range(*key.indices(len(self)))]
        if not -len(self) <= key < len(self):
            raise IndexError(key)
        return self._draft.start(key % len(self))


class _Blocks(View):
    """The lines of a draft as a reading sees them."""

    def __init__(self, draft: Draft, normalise: Normalise | None) -> None:
        self._draft = draft
        self._normalise = normalise

    @cached_property
    def lines(self) -> Sequence[bytes]:  # type: ignore[override]
        return _Lines(self._draft, self._normalise, ended=False)

    @property
    def is_indexed(self) -> bool:
        return False

    def where(self, line: bytes) -> Sequence[int]:
        return list(self.find([line]))

    def find(self, quote: list[bytes]) -> Iterator[int]:
        there = self._draft.with_line(quote, self._normalise)
        if there is None:
            return View.of_lines(list(self.lines)).find(quote)
        rarest, at = there
        starts = (line - rarest for line in at if line >= rarest)
        return (line for line in starts if self.lines[line : line + len(quote)] == quote)


class _Straw(Haystack):
    """The bytes of a draft, to be searched: what holds a whole line is looked for by it."""

    def __init__(self, draft: Draft) -> None:
        self._draft = draft

    @cached_property
    def data(self) -> bytes:  # type: ignore[override]
        return self._draft.whole

    def find(self, needle: bytes) -> Iterator[int]:
        head, *inner = needle.split(b"\n")
        there = self._draft.with_line(inner[:-1], None) if len(inner) > 1 else None
        if there is None:
            return Haystack(self.data).find(needle)
        rarest, at = there
        starts = (self._draft.start(line - rarest) - 1 - len(head) for line in at if line >= rarest)
        return (
            start
            for start in starts
            if start >= 0 and self._draft.part(start, start + len(needle)) == needle
        )
