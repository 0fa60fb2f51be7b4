"""The protocol's server over standard input and output, which a signal ends at once.

The SDK hands every line in and out to a thread, and a thread's read cannot be called off.  So the
loop itself waits for the wire here: it costs no thread, and `end` ends the input.  Meanwhile the
standard streams belong to nobody: what a child reads there has its end, and what is printed goes to
standard error.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, cast

import anyio
from anyio import to_thread
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from patchq.mcp.tools import Tools

if TYPE_CHECKING:
    TextFile = anyio.AsyncFile[str]

_LAST_ANSWERS_SECONDS = 0.3
_MOST = 64 << 10


def serve(server: Server, tools: Tools) -> int:
    """Serve until the client ends it, or a signal: who waits for a verdict is told then that there
    is none yet."""
    with ExitStack() as stack:
        own = [stack.enter_context(_taken(fd)) for fd in (0, 1)]
        return anyio.run(_serve, server, tools, _Input(own[0]), _Output(own[1]))


@contextmanager
def _taken(fd: int) -> Iterator[int]:
    """A standard stream for the protocol alone."""
    own = os.dup(fd)
    instead = os.open(os.devnull, os.O_RDONLY) if fd == 0 else os.dup(2)
    try:
        os.dup2(instead, fd)
        yield own
    finally:
        os.dup2(own, fd)
        os.close(own)
        os.close(instead)


class _Input:
    """The lines that come, until `end`."""

    def __init__(self, fd: int) -> None:
        self._fd, self._come, self._looked_at = fd, bytearray(), 0
        self._over = False
        self._waiting: anyio.CancelScope | None = None

    def __aiter__(self) -> _Input:
        return self

    async def __anext__(self) -> str:
        while (end := self._come.find(b"\n", self._looked_at) + 1) == 0 and not self._over:
            self._looked_at = len(self._come)
            data = await self._read()
            self._come += data
            self._over |= not data
        line = bytes(self._come[: end or None])
        del self._come[: len(line)]
        self._looked_at = 0
        if not line:
            raise StopAsyncIteration
        return line.decode("utf-8", "replace")

    async def _read(self) -> bytes:
        """What there is, of which there is none once it ended."""
        with anyio.CancelScope() as self._waiting:
            with suppress(PermissionError):  # a file is always ready, and nothing waits for it
                await anyio.wait_readable(self._fd)
            with suppress(OSError):
                return os.read(self._fd, _MOST)
        return b""

    def end(self) -> None:
        self._over = True
        if self._waiting is not None:
            self._waiting.cancel()


class _Output:
    """Where the answers go; a client that is gone hears nothing."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        kind = os.fstat(fd).st_mode
        self._socket = socket.socket(fileno=os.dup(fd)) if stat.S_ISSOCK(kind) else None
        self._is_pipe = stat.S_ISFIFO(kind)

    async def write(self, text: str) -> None:
        data = text.encode("utf-8", "replace")
        with suppress(BrokenPipeError, ConnectionResetError):
            if rest := data[self._at_once(data) :]:
                await to_thread.run_sync(_written, self._fd, rest)

    async def flush(self) -> None:
        pass

    def _at_once(self, data: bytes) -> int:
        """Write as much as nobody has to wait for; how much that was."""
        if self._socket is not None:
            with suppress(BlockingIOError):
                return self._socket.send(data, socket.MSG_DONTWAIT)
        elif self._is_pipe and len(data) <= select.PIPE_BUF:
            _, free, _ = select.select((), (self._fd,), (), 0)
            return os.write(self._fd, data) if free else 0  # one that is free takes so much
        return 0


def _written(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]


async def _serve(server: Server, tools: Tools, lines: _Input, answers: _Output) -> int:
    caught: list[int] = []
    async with anyio.create_task_group() as group:

        async def ended() -> None:
            with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
                async for number in signals:
                    caught.append(number)
                    tools.ending = lambda: True
                    await anyio.sleep(_LAST_ANSWERS_SECONDS)
                    lines.end()

        group.start_soon(ended)
        wire = cast("TextFile", lines), cast("TextFile", answers)
        async with stdio_server(*wire) as (read, write):
            await server.run(read, write, server.create_initialization_options())
        group.cancel_scope.cancel()
    return 130 if signal.SIGINT in caught else 0
