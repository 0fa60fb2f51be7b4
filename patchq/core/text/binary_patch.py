"""Git's binary patches: a file's bytes, deflated, in lines of base 85.

    GIT binary patch
    literal 1234
    zcmV...

The first letter of a line says how many bytes it holds, `A` one and `z` fifty-two.  Behind `delta`
they hold a delta as git's packs do: both sizes, then pieces of the
other object to copy and bytes to insert (`git help format-pack`, "Deltified representation").
"""

from __future__ import annotations

import hashlib
import zlib
from base64 import b85decode, b85encode
from collections.abc import Sequence

HEADER = "GIT binary patch"
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_MOST = len(_LETTERS)
_MOST_BITS = 63
# Very small pieces by the million would take long, and little room where they are deflated.
_MOST_PIECES = 100_000


def encode(data: bytes) -> str:
    """Return the lines of a whole file, without the header.

    An empty line ends them.
    """
    packed = zlib.compress(data)
    rows = (packed[at : at + _MOST] for at in range(0, len(packed), _MOST))
    lines = (_LETTERS[len(row) - 1] + b85encode(row, pad=True).decode() for row in rows)
    return f"literal {len(data)}\n" + "".join(f"{line}\n" for line in lines) + "\n"


def blob_id(data: bytes) -> str:
    """Return the id that git gives a file with these bytes, in hex."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def decode(lines: Sequence[str], size: int) -> bytes | None:
    """Return the `size` bytes in the lines, or None.

    None if the lines are damaged or hold another number of bytes.
    """
    packed = b""
    for line in lines:
        count = _LETTERS.find(line[:1]) + 1
        if not count or len(line) != 1 + (count + 3) // 4 * 5:
            return None
        try:
            packed += b85decode(line[1:])[:count]
        except ValueError:
            return None
    inflated = zlib.decompressobj()
    try:
        data = inflated.decompress(packed, size + 1)
    except zlib.error:
        return None
    return data if len(data) == size and inflated.eof else None


class BadDelta(ValueError):
    """A delta that cannot be read, or is made for another file."""


def patched(base: bytes, delta: bytes, most: int) -> bytes:
    """Return the bytes that the delta makes of `base`.

    They are at most `most`.  Raises `BadDelta`.
    """
    at = _Instructions(delta)
    if at.size() != len(base):
        raise BadDelta("it is made for a file of another size")
    size = at.size()
    if size > most:
        raise BadDelta(f"it makes a file of {size} bytes, more than {most}")
    made, parts = 0, list[bytes]()
    while at.rest:
        if len(parts) == _MOST_PIECES:
            raise BadDelta(f"it has more than {_MOST_PIECES} pieces")
        part = _piece(at, base)
        made += len(part)
        if not part or made > size:
            raise BadDelta("it does not make what it says")
        parts.append(part)
    if made != size:
        raise BadDelta("it does not make what it says")
    return b"".join(parts)


def _piece(at: _Instructions, base: bytes) -> bytes:
    code = at.byte()
    if not code & 0x80:
        return at.take(code)
    first, count = at.packed(code, 4), at.packed(code >> 4, 3) or 0x10000
    if first + count > len(base):
        raise BadDelta("it copies from behind the end of the file")
    return base[first : first + count]


class _Instructions:
    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    @property
    def rest(self) -> int:
        return len(self._data) - self._at

    def take(self, count: int) -> bytes:
        if count > self.rest:
            raise BadDelta("it is cut off")
        self._at += count
        return self._data[self._at - count : self._at]

    def byte(self) -> int:
        return self.take(1)[0]

    def size(self) -> int:
        """Return a number of any length, seven bits a byte, the lowest first."""
        value = shift = 0
        while shift <= _MOST_BITS:
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7
        raise BadDelta("it states a size that no file has")

    def packed(self, mask: int, count: int) -> int:
        """Return an integer read from `count` bytes, the lowest first.

        Only the bytes whose bit is set in `mask` are there; the others are zero.
        """
        return sum(self.byte() << 8 * i for i in range(count) if mask >> i & 1)
