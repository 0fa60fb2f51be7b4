"""Where characters stand in a text, at the rungs that a text of less than a line may use.

`exact`, `line_endings` and `typography`: each looks at the text through a projection that leaves
out what the rung ignores, and knows the way back to the text's own bytes.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from patchq.model.values import Hunk
from patchq.text.line_diff import line_diff
from patchq.text.lines import Text, plain_typography, split_lines
from patchq.text.search import Haystack, find

MOST_SPOTS = 200_000
"""More places than these are not counted, let alone replaced."""
_CHARACTER = re.compile(r"\r\n|.", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Spot:
    """The bytes `start:end` of `Text.whole` that were found."""

    start: int
    end: int


def spots(text: Text, sought: bytes, rungs: Collection[str]) -> Iterator[tuple[str, list[Spot]]]:
    """For each rung in order: every place of `sought`, overlapping ones too."""
    if not sought:
        return
    yield "exact", [spot for spot in _found(text.haystack, sought, ()) if _is_whole(text, spot)]
    if {"line_endings", "typography"}.isdisjoint(rungs):
        return
    flat, returns = text.flat
    wanted = sought.replace(b"\r\n", b"\n")
    if "line_endings" in rungs and (flat is not text.whole or wanted != sought):
        yield "line_endings", _found(text.flat_haystack, wanted, returns)
    if "typography" in rungs and not (text.flat_haystack.is_ascii and wanted.isascii()):
        chars, plain = text.plain
        needle = plain_typography(wanted)
        if plain != chars or needle != wanted:
            told = needle.decode("utf-8", "surrogateescape")
            yield "typography", _found_in_characters(plain, told, chars, returns)


def _is_whole(text: Text, spot: Spot) -> bool:
    """Whether the place neither begins nor ends inside a `\\r\\n`."""
    return all(text.whole[at - 1 : at + 1] != b"\r\n" for at in (spot.start, spot.end) if at)


def _found(hay: Haystack, needle: bytes, returns: Sequence[int]) -> list[Spot]:
    return [
        Spot(_back(at, returns), _back(at + len(needle), returns))
        for at in islice(hay.find(needle), MOST_SPOTS + 1)
    ]


def _found_in_characters(plain: str, needle: str, chars: str, returns: Sequence[int]) -> list[Spot]:
    """The same in text whose characters, not bytes, stand one for one for the text's."""
    found: list[Spot] = []
    counted = offset = 0
    for at in islice(find(plain, needle), MOST_SPOTS + 1):
        offset += len(chars[counted:at].encode("utf-8", "surrogateescape"))
        counted = at
        length = len(chars[at : at + len(needle)].encode("utf-8", "surrogateescape"))
        found.append(Spot(_back(offset, returns), _back(offset + length, returns)))
    return found


def _back(at: int, returns: Sequence[int]) -> int:
    """The text's own offset for one in its flat form; that before a line's end is before its
    `\\r` too."""
    return at + bisect_right(returns, at)


def within(text: Text, spot: Spot, before: bytes, after: bytes) -> Spot:
    """The place between what was found of `before` and of `after`, one at each of its ends."""
    front, behind = (len(_CHARACTER.findall(_told(half))) for half in (before, after))
    there = _CHARACTER.findall(_told(text.whole[spot.start : spot.end]))
    first, last = there[:front], there[len(there) - behind :]
    start = spot.start + len("".join(first).encode("utf-8", "surrogateescape"))
    return Spot(start, spot.end - len("".join(last).encode("utf-8", "surrogateescape")))


def _told(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def apart(found: list[Spot]) -> list[Spot]:
    """The places left to right without overlap."""
    kept: list[Spot] = []
    for spot in found:
        if not kept or spot.start >= kept[-1].end:
            kept.append(spot)
    return kept


def rewrite(text: Text, spot: Spot, old: bytes, new: bytes) -> tuple[Hunk, ...]:
    """The changes that put `new` where `old` was found.  Lines, or ends of lines, that the two
    share keep the text's bytes; new line ends are the text's most frequent."""
    there = split_lines(text.whole[spot.start : spot.end])
    ours, theirs = (split_lines(half.replace(b"\r\n", b"\n")) for half in (old, new))
    if ours == theirs:
        return ()
    if len(there) != len(ours) or len(ours) == 1 == len(theirs):
        return (Hunk(spot.start, spot.end, _ended(text, theirs)),)
    starts = [spot.start]
    for part in there:
        starts.append(starts[-1] + len(part))
    return tuple(
        Hunk(starts[a0], starts[a1], _ended(text, theirs[b0:b1]))
        for a0, a1, b0, b1 in line_diff(ours, theirs)
    )


def _ended(text: Text, lines: list[bytes]) -> bytes:
    return b"".join(
        line.removesuffix(b"\n") + text.line_end if line.endswith(b"\n") else line for line in lines
    )
