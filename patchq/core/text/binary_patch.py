"""Git's binary patches: a file's bytes, deflated, in lines of base 85.

    GIT binary patch
    literal 1234
    zcmV...

The first letter of a line says how many bytes it holds, `A` one and `z` fifty-two.
"""

from __future__ import annotations

import hashlib
import zlib
from base64 import b85decode, b85encode
from collections.abc import Sequence

HEADER = "GIT binary patch"
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_MOST = len(_LETTERS)


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
