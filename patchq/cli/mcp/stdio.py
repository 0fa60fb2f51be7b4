"""The protocol's server over standard input and output, which a signal ends at once.

A read of standard input cannot be called off, so the SDK reads what a thread of ours passes on; the
end of that line is to it as the end of the client's, and whatever then has to be done is done.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
from contextlib import suppress

import anyio
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from patchq.cli.mcp.tools import Tools

_LAST_ANSWERS_SECONDS = 0.3
_MOST = 64 << 10


def serve(server: Server, tools: Tools) -> int:
    """Serve until the client ends it, or a signal: who waits for a verdict is told then that there
    is none yet."""
    return anyio.run(_serve, server, tools, _Wire())


class _Wire:
    """What comes by standard input, until `end`."""

    def __init__(self) -> None:
        with suppress(
            OSError, ValueError
        ):  # a caller in this process may have given another stream
            source = os.dup(sys.stdin.fileno())
            ours, theirs = socket.socketpair()
            os.dup2(theirs.fileno(), sys.stdin.fileno())
            theirs.close()
            self._socket = ours
            threading.Thread(target=self._pass_on, args=(source, ours), daemon=True).start()

    def _pass_on(self, source: int, line: socket.socket) -> None:
        with suppress(OSError):
            while data := os.read(source, _MOST):
                line.sendall(data)
        self.end()

    def end(self) -> None:
        if self._socket is not None:
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_WR)


async def _serve(server: Server, tools: Tools, line: _Wire) -> int:
    caught: list[int] = []
    async with anyio.create_task_group() as group:

        async def ended() -> None:
            with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
                async for number in signals:
                    caught.append(number)
                    tools.ending = lambda: True
                    await anyio.sleep(_LAST_ANSWERS_SECONDS)
                    line.end()

        group.start_soon(ended)
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())
        group.cancel_scope.cancel()
    return 130 if signal.SIGINT in caught else 0
