"""A gate on loopback between a process and what it talks to, which may stop what passes.

A `Trap` lies in wait in several gates for one thing that is said, a statement to the database or a
part of a push.  Whoever says it first is caught: what was said, or its answer, waits in the gate
until `go`.  Meanwhile the process can be killed or stopped at exactly that point, and it holds no
hook for that.  A gate can also be cut: then nothing passes any more, either way.
"""

from __future__ import annotations

import re
import socket
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Event, Lock, Thread
from typing import Literal, Protocol

_CHUNK = 65536
_LONGEST, _PATIENCE = 300.0, 5.0
When = Literal["before", "behind"]


@dataclass
class Trap:
    """`before`: what is said is kept from the other side; `behind`: its answer from who said it."""

    what: re.Pattern[bytes]
    when: When
    met: Event = field(default_factory=Event)
    who: str = ""
    line: Line | None = None
    _passes: bool = True
    _open: Event = field(default_factory=Event)
    _first: Lock = field(default_factory=Lock)

    def catches(self, said: bytes) -> bool:
        return bool(self.what.search(said)) and self._first.acquire(blocking=False)

    def hold(self, line: Line) -> bool:
        """Keep the line here until `go`; whether what was caught passes then."""
        self.who, self.line = line.gate.who, line
        self.met.set()
        self._open.wait(_LONGEST)
        return self._passes

    def go(self, passes: bool = True) -> None:
        self._passes = passes
        self._open.set()


class Language(Protocol):
    """What a connection says: `up` to the other side, `down` back from there; in pieces, each with
    what a trap is compared with (nothing: it only passes) and, of `down`, whether it is all of the
    answer."""

    def up(self, data: bytes) -> Iterator[tuple[bytes, bytes]]: ...

    def down(self, data: bytes) -> Iterator[tuple[bytes, bool]]: ...


class Statements:
    """PostgreSQL's protocol without encryption.  What is compared is the text of a statement when
    it is carried out, also where it was prepared before."""

    def __init__(self) -> None:
        self._up = self._down = b""
        self._begun = False
        self._texts: dict[bytes, bytes] = {}

    def up(self, data: bytes) -> Iterator[tuple[bytes, bytes]]:
        self._up += data
        if not self._begun:
            if len(self._up) < 4 or len(self._up) < struct.unpack("!i", self._up[:4])[0]:
                return
            self._begun = True
            size = struct.unpack("!i", self._up[:4])[0]
            first, self._up = self._up[:size], self._up[size:]
            yield first, b""
        messages, self._up = _messages(self._up)
        for message in messages:
            yield message, self._text(message)

    def _text(self, message: bytes) -> bytes:
        kind, body = message[:1], message[5:]
        if kind == b"P":
            name, text, _ = body.split(b"\0", 2)
            self._texts[name] = text
        elif kind == b"B":
            _, name, _ = body.split(b"\0", 2)
            return self._texts.get(name, b"")
        return body if kind == b"Q" else b""

    def down(self, data: bytes) -> Iterator[tuple[bytes, bool]]:
        messages, self._down = _messages(self._down + data)
        for message in messages:
            yield message, message[:1] in b"CEZ"  # in a pipeline no `Z` follows each statement


def _messages(data: bytes) -> tuple[list[bytes], bytes]:
    """The whole ones, and what is left."""
    found = []
    while len(data) >= 5 and len(data) > (size := struct.unpack("!i", data[1:5])[0]):
        found.append(data[: size + 1])
        data = data[size + 1 :]
    return found, data


class Push:
    """Git's own protocol; only what is pushed is looked at: `asked` as the connection begins,
    `half` of the objects, `all` of them."""

    def __init__(self) -> None:
        self._begun = self._pushes = self._packs = False
        self._first = b""

    def up(self, data: bytes) -> Iterator[tuple[bytes, bytes]]:
        if not self._begun:
            data = self._first = self._first + data  # its length may come apart
            self._begun = len(data) > 20
            self._pushes = data[4:20] == b"git-receive-pack"
            if self._begun:
                yield data, b"push: asked" if self._pushes else b""
        elif self._pushes and not self._packs and (start := data.find(b"PACK")) >= 0:
            self._packs = True
            middle = (start + len(data)) // 2
            yield data[:middle], b""
            yield data[middle:], b"push: half, all"
        else:
            yield data, b""

    def down(self, data: bytes) -> Iterator[tuple[bytes, bool]]:
        yield data, self._packs and b"unpack " in data


@dataclass
class Upstream:
    """The other side of a connection, how it dies at once, and what to wait for at the end."""

    socket: socket.socket
    kill: Callable[[], object] = lambda: None
    wait: Callable[[], object] = lambda: None


class Line:
    """One connection through a gate."""

    def __init__(self, gate: Gate, client: socket.socket, upstream: Upstream) -> None:
        self.gate, self.upstream = gate, upstream
        self._client, self._server = client, upstream.socket
        self._language = gate.language()
        self._caught: Trap | None = None
        self._ended = 0
        self._last = Lock()
        for run in (self._up, self._down):
            Thread(target=self._run, args=(run,), daemon=True).start()

    @property
    def ended(self) -> bool:
        return self._ended == 2

    def _run(self, passes: Callable[[], None]) -> None:
        passes()
        with self._last:
            if self._ended == 1:
                self._client.close()
                self._server.close()
                self.upstream.wait()
            self._ended += 1

    def close(self) -> None:
        for end in (self._client, self._server):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def _up(self) -> None:
        with suppress(OSError):
            while data := self._client.recv(_CHUNK):
                for piece, said in self._language.up(data):
                    trap = self.gate.trap
                    if said and trap and trap.catches(said):
                        if trap.when == "behind":
                            self._caught = trap
                        elif not trap.hold(self):
                            self.close()
                            return
                    self.gate.passes.wait(_LONGEST)
                    self._server.sendall(piece)
        self._end(self._client, self._server)

    def _down(self) -> None:
        kept = b""
        with suppress(OSError):
            while data := self._server.recv(_CHUNK):
                for piece, whole in self._language.down(data):
                    kept += piece
                    if self._caught and not whole:
                        continue
                    if self._caught and not self._caught.hold(self):
                        self.close()
                        return
                    self._caught = None
                    self.gate.passes.wait(_LONGEST)
                    self._client.sendall(kept)
                    kept = b""
        self._end(self._server, self._client)

    def _end(self, one: socket.socket, other: socket.socket) -> None:
        """Pass on that one side has ended, once it may pass."""
        self.gate.passes.wait(_LONGEST)
        with suppress(OSError):
            other.shutdown(socket.SHUT_WR)
        with suppress(OSError):
            one.shutdown(socket.SHUT_RD)


class Gate:
    """The gate of `who`, at `port` on loopback; `trap` lies in it."""

    def __init__(
        self, who: str, reach: Callable[[], Upstream], language: Callable[[], Language]
    ) -> None:
        self.who, self.language, self._reach = who, language, reach
        self.trap: Trap | None = None
        self.passes = Event()
        self.passes.set()
        self._lines: list[Line] = []
        self._listens = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port: int = self._listens.getsockname()[1]
        self._accepts = Thread(target=self._accept, daemon=True)
        self._accepts.start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listens.accept()
                self.passes.wait(_LONGEST)
                try:
                    upstream = self._reach()
                except OSError:
                    client.close()
                    continue
                with suppress(OSError):  # it may have gone already
                    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                open = [line for line in self._lines if not line.ended]
                self._lines = [*open, Line(self, client, upstream)]

    def cut(self) -> None:
        """Nothing passes any more, and nobody is told of it."""
        self.passes.clear()

    def mend(self) -> None:
        """New connections pass; both sides of the old ones have noticed by now, and end."""
        for line in self._lines:
            line.close()
        self.passes.set()

    def close(self) -> None:
        with suppress(OSError):
            self._listens.shutdown(socket.SHUT_RDWR)  # which ends `accept`
        self._accepts.join()
        self._listens.close()
        self.mend()
        until = time.monotonic() + _PATIENCE
        while not all(line.ended for line in self._lines) and time.monotonic() < until:
            time.sleep(0.01)
