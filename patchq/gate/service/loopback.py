"""HTTP on this machine alone, with bounded connections and waits."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from patchq.gate.errors import UsageError

HOST = "127.0.0.1"
NAMES = (HOST, "localhost")  # names of this machine that need no look-up
# From the start of a connection, or its last answer, to the whole head of the next request.
_HEAD_SECONDS = 5.0
_CONNECTIONS = 256  # above it the connection that waits longest for its client is closed
_BACKLOG = 128  # connections that the system accepts ahead
_LAST_ANSWERS_SECONDS = 3


def port_of(text: str, flag: str) -> int:
    """Return the flag's port; `UsageError` for anything else, such as another address."""
    if text.isascii() and text.isdigit() and int(text) < 1 << 16:
        return int(text)
    raise UsageError(
        f"{flag} {text}: expected a port; it is served on {HOST} and nowhere else",
        "to reach it from elsewhere, put a proxy that authenticates in front of it",
    )


def bound(port: int) -> socket.socket:
    """Return a socket of the port, or of a free one for 0.

    Raises `UsageError` if the port is taken.
    """
    own = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    own.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        own.bind((HOST, port))
        own.listen(_BACKLOG)  # who reads the address at once is waited for
    except OSError as error:
        own.close()
        raise UsageError(
            f"cannot listen at {HOST}:{port}: {os.strerror(error.errno or 0)}",
            "give another port, or 0 for any",
        ) from None
    return own


class _Connection(H11Protocol):
    """A client's connection, closed where its requests are too long in coming."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        waiting = [one for one in self.connections if isinstance(one, _Connection) and one.waits]
        if len(self.connections) >= _CONNECTIONS and waiting:
            min(waiting, key=lambda one: one.since).transport.abort()
        super().connection_made(transport)
        self._await_request()

    def on_response_complete(self) -> None:
        self._await_request()
        super().on_response_complete()

    @property
    def waits(self) -> bool:
        """True while the client has to send a request, or to read an answer."""
        return not self.transport.is_closing() and (self._is_idle() or self.flow.write_paused)

    def _is_idle(self) -> bool:
        cycle: RequestResponseCycle | None = self.cycle
        return cycle is None or cycle.response_complete

    def _await_request(self) -> None:
        self.since = self.loop.time()
        self.loop.call_later(_HEAD_SECONDS, self._close_late, self.since)

    def _close_late(self, since: float) -> None:
        if self.since == since and self._is_idle():
            self.transport.abort()


def server(app: Any) -> uvicorn.Server:
    """Return a server of the ASGI application; `listen` runs it."""
    config = uvicorn.Config(
        app,
        http=_Connection,
        ws="none",
        log_level="error",  # a client's mistakes are for the client
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        backlog=_BACKLOG,
        limit_concurrency=_CONNECTIONS + 1,  # 503 where every client is being answered
        timeout_graceful_shutdown=_LAST_ANSWERS_SECONDS,
    )
    return uvicorn.Server(config)


def listen(serving: uvicorn.Server, own: socket.socket) -> None:
    # The server raises the signal that ended it once more, when all is done.
    signal.signal(signal.SIGTERM, lambda *_: None)
    serving.run(sockets=[own])
