"""Many objects in one file, and its index, as git keeps them (`git help format-pack`).

libgit2 compares all objects of a kind with each other to find out which could be told as the
difference of which; that took a third of a landing's time.  Whoever makes an object here knows what
it was made of, and what stays the same is at its beginning and at its end.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Mapping
from itertools import accumulate
from struct import pack as packed

from msgspec import Struct

_MOST_DEPTH = 50
"""Of differences of differences, as git has it: each has to be undone to read the last."""
_BY_OFFSET = 6
_LEVEL = 1
"""A higher one takes twice the time and saves a hundredth."""
_LEAST_WINDOW, _MOST_WINDOW = 9, 15
"""Of zlib, as powers of two."""
_MOST_COLLECTED = 8
"""Of zlib's `memLevel`: 64 symbols at 0, and twice as many with each step."""
_MOST_COPIED, _MOST_INSERTED = 1 << 16, 127
_FAR = 1 << 31


class New(Struct, frozen=True):
    """An object that is to be written: git's kind, content, and the id (hex) of what it was made
    of, if that is known; it need not be written too."""

    kind: int
    data: bytes
    origin: str | None = None


def pack(objects: Mapping[str, New]) -> tuple[bytes, bytes]:
    """The pack that holds the objects (by id in hex, each behind its origin), and its index."""
    body = bytearray(b"PACK" + packed(">II", 2, len(objects)))
    places: dict[str, tuple[int, int]] = {}  # where it begins, and its depth
    checks: dict[str, int] = {}
    for oid, new in objects.items():
        place = len(body)
        origin, depth = places.get(new.origin or "", (0, _MOST_DEPTH))
        change = delta(objects[new.origin].data, new.data) if new.origin in places else b""
        if change and depth < _MOST_DEPTH and len(change) < len(new.data) // 2:
            head = _head(_BY_OFFSET, len(change)) + _back(place - origin)
            entry = head + _deflated(change)
            places[oid] = place, depth + 1
        else:
            entry = _head(new.kind, len(new.data)) + _deflated(new.data)
            places[oid] = place, 0
        checks[oid] = zlib.crc32(entry)
        body += entry
    body += _digest(body)
    return bytes(body), index({oid: place for oid, (place, _) in places.items()}, checks, body)


def _deflated(data: bytes) -> bytes:
    """The data compressed, in a window of its own size: to set up the tables for the largest takes
    five times as long as to compress a commit.  What is collected before it is written holds all of
    a small object, as each part of one would get a code of its own: half the time of a tree."""
    bits = len(data).bit_length()
    window = min(max(bits + 1, _LEAST_WINDOW), _MOST_WINDOW)
    collected = min(max(bits - 6, 1), _MOST_COLLECTED)
    deflater = zlib.compressobj(_LEVEL, zlib.DEFLATED, window, collected)
    return deflater.compress(data) + deflater.flush()


def index(places: Mapping[str, int], checks: Mapping[str, int], body: bytes | bytearray) -> bytes:
    """The index of a pack: where the objects begin, by id, and the checksums of their entries."""
    oids = sorted(places)
    counts = [0] * 256
    for oid in oids:
        counts[int(oid[:2], 16)] += 1
    near, far = list[int](), list[int]()
    for oid in oids:
        place = places[oid]
        near.append(place if place < _FAR else _FAR + len(far))
        far += [place] if place >= _FAR else []
    data = b"".join(
        (
            b"\xfftOc" + packed(">I", 2),
            packed(">256I", *accumulate(counts)),
            bytes.fromhex("".join(oids)),
            packed(f">{len(oids)}I", *(checks[oid] for oid in oids)),
            packed(f">{len(oids)}I", *near),
            packed(f">{len(far)}Q", *far),
            body[-20:],
        )
    )
    return data + _digest(data)


def delta(old: bytes, new: bytes) -> bytes:
    """How `new` is made of `old`: by what both begin with, what is new, and what both end with."""
    first = _shared(old, new)
    last = _shared(old[first:][::-1], new[first:][::-1])
    inserted = new[first : len(new) - last]
    parts = [_length(len(old)), _length(len(new)), *_copies(0, first)]
    for at in range(0, len(inserted), _MOST_INSERTED):
        part = inserted[at : at + _MOST_INSERTED]
        parts.append(bytes([len(part)]) + part)
    return b"".join((*parts, *_copies(len(old) - last, last)))


def _shared(one: bytes, other: bytes) -> int:
    """How many bytes both begin with."""
    least, most = 0, min(len(one), len(other))
    while least < most:
        middle = (least + most + 1) // 2
        if one[least:middle] == other[least:middle]:
            least = middle
        else:
            most = middle - 1
    return least


def _copies(start: int, size: int) -> list[bytes]:
    """Instructions to take so many bytes from there on."""
    copies = []
    for place in range(start, start + size, _MOST_COPIED):
        length = min(_MOST_COPIED, start + size - place)
        values = place.to_bytes(4, "little") + (length % _MOST_COPIED).to_bytes(2, "little")
        flags = sum(1 << bit for bit, value in enumerate(values) if value)
        copies.append(bytes([0x80 | flags, *filter(None, values)]))
    return copies


def _head(kind: int, size: int) -> bytes:
    """What an entry begins with: its kind, and the length of what was compressed."""
    first, rest = kind << 4 | size & 15, size >> 4
    return bytes([first | 0x80]) + _length(rest) if rest else bytes([first])


def _length(number: int) -> bytes:
    """Seven bits in each byte, the low ones first."""
    parts = bytearray()
    while number > 127:
        parts.append(number & 127 | 0x80)
        number >>= 7
    return bytes((*parts, number))


def _back(distance: int) -> bytes:
    """How far back the origin begins: the high bits first, and no number in two spellings."""
    parts = [distance & 127]
    while distance := distance >> 7:
        distance -= 1
        parts.append(distance & 127 | 0x80)
    return bytes(reversed(parts))


def _digest(data: bytes | bytearray) -> bytes:
    return hashlib.sha1(data, usedforsecurity=False).digest()
