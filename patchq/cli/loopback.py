"""Serving HTTP on this machine, and nowhere else."""

from __future__ import annotations

import os
import signal
import socket
from typing import Any

import uvicorn

from patchq.core.model.errors import UsageError

HOST = "127.0.0.1"
NAMES = (HOST, "localhost")
"""What a client on this machine may call it."""
_LAST_ANSWERS_SECONDS = 3
_MOST_AT_ONCE = 256


def port_of(text: str, flag: str) -> int:
    """What the flag says; `UsageError` for what is no port, such as another address."""
    if text.isascii() and text.isdigit() and int(text) < 1 << 16:
        return int(text)
    raise UsageError(
        f"{flag} {text}: expected a port; it is served on {HOST} and nowhere else",
        "to reach it from elsewhere, put a proxy that authenticates in front of it",
    )


def bound(port: int) -> socket.socket:
    """A socket of the port, or of a free one for 0; `UsageError` where it cannot be had."""
    own = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    own.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        own.bind((HOST, port))
        own.listen()  # who reads the address at once is waited for
    except OSError as error:
        own.close()
        raise UsageError(
            f"cannot listen at {HOST}:{port}: {os.strerror(error.errno or 0)}",
            "give another port, or 0 for any",
        ) from None
    return own


def server(app: Any) -> uvicorn.Server:
    """What serves the ASGI application; `listen` runs it."""
    config = uvicorn.Config(
        app,
        log_level="error",  # a client's mistakes are told to the client
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=_MOST_AT_ONCE,
        timeout_graceful_shutdown=_LAST_ANSWERS_SECONDS,
    )
    return uvicorn.Server(config)


def listen(serving: uvicorn.Server, own: socket.socket) -> None:
    """Serve until a signal ends it."""
    # The server raises the signal that ended it once more, when all is done.
    signal.signal(signal.SIGTERM, lambda *_: None)
    serving.run(sockets=[own])
