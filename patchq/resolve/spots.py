"""Where characters stand in a text, at the rungs that a text of less than a line may use.

`exact`, `line_endings` and `typography`: each looks at the text through a projection that leaves out
what the rung ignores, and knows the way back to the text's own bytes.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from patchq.lcs import line_diff
from patchq.model import Hunk
from patchq.text import Text, plain_typography, split_lines

MOST_SPOTS = 20_000
"""More places than these are not counted, let alone replaced."""


@dataclass(frozen=True, slots=True)
class Spot:
    """The bytes `start:end` of `Text.whole` that were found."""

    start: int
    end: int


def spots(text: Text, sought: bytes, rungs: Collection[str]) -> Iterator[tuple[str, list[Spot]]]:
    """For each rung in order: every place of `sought`, overlapping ones too."""
    if not sought:
        return
    yield "exact", _found(text.whole, sought, Back([]))
    if not {"line_endings", "typography"}.isdisjoint(rungs):
        flat, back = _without_returns(text.whole)
        wanted = sought.replace(b"\r\n", b"\n")
        if "line_endings" in rungs and (flat is not text.whole or wanted != sought):
            yield "line_endings", _found(flat, wanted, back)
        if "typography" in rungs and not (flat.isascii() and wanted.isascii()):
            plain, chars = plain_typography(flat), flat.decode("utf-8", "surrogateescape")
            if plain != flat or plain_typography(wanted) != wanted:
                told = plain.decode("utf-8", "surrogateescape")
                needle = plain_typography(wanted).decode("utf-8", "surrogateescape")
                yield "typography", _found_in_characters(told, needle, chars, back)


def _found(hay: bytes, needle: bytes, back: Back) -> list[Spot]:
    found: list[Spot] = []
    at = hay.find(needle)
    while at >= 0 and len(found) <= MOST_SPOTS:
        found.append(Spot(back(at), back(at + len(needle))))
        at = hay.find(needle, at + 1)
    return found


def _found_in_characters(plain: str, needle: str, chars: str, back: Back) -> list[Spot]:
    """The same in text whose characters, not bytes, stand one for one for the text's."""
    found: list[Spot] = []
    at, counted, offset = plain.find(needle), 0, 0
    while at >= 0 and len(found) <= MOST_SPOTS:
        offset += len(chars[counted:at].encode("utf-8", "surrogateescape"))
        counted = at
        length = len(chars[at : at + len(needle)].encode("utf-8", "surrogateescape"))
        found.append(Spot(back(offset), back(offset + length)))
        at = plain.find(needle, at + 1)
    return found


class Back:
    """The way from an offset in a projection to the text's own."""

    def __init__(self, removed: list[int]) -> None:
        self._removed = removed

    def __call__(self, at: int) -> int:
        return at + bisect_right(self._removed, at)


def _without_returns(data: bytes) -> tuple[bytes, Back]:
    """The data with every `\\r\\n` as `\\n`; a match that ends before one leaves its `\\r` out."""
    if b"\r\n" not in data:
        return data, Back([])
    parts = data.split(b"\r\n")
    removed, at = [], 0
    for part in parts[:-1]:
        at += len(part)
        removed.append(at + 1)
        at += 1
    return b"\n".join(parts), Back(removed)


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
    if len(there) != len(ours):
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
