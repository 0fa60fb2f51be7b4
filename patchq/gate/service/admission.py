"""Limits that every door keeps: seconds, connections, and bytes that a client may take."""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO

# From the start of a connection, or its last answer, to the whole head of the next request.
HEAD_SECONDS = 5.0
CONNECTIONS = 256  # above it the connection that waits longest for its client is closed
BACKLOG = 128  # connections that the system accepts ahead
_ESCAPES = 2
_ENVELOPE_BYTES = 64 << 10
_ENDS_BYTES = 200


def message_bytes(response_bytes: int) -> int:
    """Return the size above which no message holds an acceptable response.

    The text of a response may be twice as long in JSON.
    """
    return _ESCAPES * response_bytes + _ENVELOPE_BYTES


class OversizedLine(bytes):
    """The first and the last bytes of a line above the limit."""


class LineCutter:
    def __init__(self, limit: int) -> None:
        self._limit, self._line = limit, bytearray()

    def lines(self, chunk: bytes) -> Iterator[bytes]:
        """Yield the lines that end in the chunk; `OversizedLine` for one above the limit."""
        for part in BytesIO(chunk):
            self._line += part
            del self._line[self._limit + 1 : -_ENDS_BYTES]
            if part.endswith(b"\n"):
                line = bytes(self._line)
                self._line.clear()
                oversized = len(line) > self._limit
                yield OversizedLine(line[:_ENDS_BYTES] + line[-_ENDS_BYTES:]) if oversized else line
