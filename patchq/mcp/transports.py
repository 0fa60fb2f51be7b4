"""The protocol's server over standard input and output, and by HTTP.

The SDK reads lines of any length, in a thread that no signal ends; so it is given a reader that
bounds a line and that a signal calls off.

HTTP is for this machine only, and for those who have the token: whoever could reach it could drop
responses.  So it listens on the loopback address, takes no request for another host's name or from
another site's page, and asks for a bearer token.  Who wants more puts a proxy in front that
authenticates.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import os
import re
import secrets
import signal
from argparse import Namespace
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from io import BytesIO
from typing import Any, cast

import anyio
import mcp_types as types
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage

from patchq.gate.errors import UsageError
from patchq.gate.report.document import printed
from patchq.mcp.server import Server

_LAST_ANSWERS_SECONDS = 10.0
_WRITING_SECONDS = 0.2
_UNREAD_SECONDS = 2.0  # after a signal the client has so long to read what blocks the output
_CHUNK_BYTES = 64 << 10
_ENDS_BYTES = 200
_VALUE = rb'(-?\d{1,18}|"[\w.:-]{1,100}")'
# A request's id at its start or its end, where SDKs write it.
_ID = re.compile(
    rb'\A\s*{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*%b\s*,|,\s*"id"\s*:\s*%b\s*}\s*\Z'
    % (_VALUE, _VALUE)
)


class _LongLine(bytes):
    """The first and the last bytes of a line above the limit."""


class _LineCutter:
    def __init__(self, limit: int) -> None:
        self._limit, self._line = limit, bytearray()

    def lines(self, chunk: bytes) -> Iterator[bytes]:
        """Yield the lines that end in the chunk; `_LongLine` for one above the limit."""
        for part in BytesIO(chunk):
            self._line += part
            del self._line[self._limit + 1 : -_ENDS_BYTES]
            if part.endswith(b"\n"):
                line = bytes(self._line)
                self._line.clear()
                oversized = len(line) > self._limit
                yield (_LongLine(line[:_ENDS_BYTES] + line[-_ENDS_BYTES:]) if oversized else line)


def serve_stdio(server: Server, line_bytes: int) -> int:
    """Serve until the client or a signal ends it; waiting calls are answered first."""
    source = os.dup(0)
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)  # a child never reads the client's words
    code = 0
    try:
        code = anyio.run(_serve, server, source, line_bytes)
    except* BrokenPipeError:  # the client is gone
        pass
    return code


async def _serve(server: Server, source: int, line_bytes: int) -> int:
    code = 0
    async with anyio.create_task_group() as group:

        async def end_by_signal() -> None:
            nonlocal code
            with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
                code = 130 if await anext(signals) == signal.SIGINT else 0
                server.queue.stop.set()
                with anyio.move_on_after(_LAST_ANSWERS_SECONDS):
                    await server.answered()
                await anyio.sleep(_WRITING_SECONDS)
            # An unread answer blocks a thread, which nothing calls off.
            asyncio.get_running_loop().call_later(_UNREAD_SECONDS, os._exit, code)
            group.cancel_scope.cancel()

        async def refuse(line: _LongLine) -> None:
            await write.send(SessionMessage(_refusal(line, line_bytes)))

        group.start_soon(end_by_signal)
        async with stdio_server(cast("Any", _lines(source, line_bytes, refuse))) as (read, write):
            await server.serve(read, write)
        group.cancel_scope.cancel()
    return code


async def _lines(
    source: int, limit: int, refuse: Callable[[_LongLine], Awaitable[None]]
) -> AsyncIterator[str]:
    cutter, chunk = _LineCutter(limit), b"\n"
    while chunk:
        with suppress(PermissionError):  # a file is always ready
            await anyio.wait_readable(source)
        chunk = b""
        with suppress(OSError):
            chunk = os.read(source, _CHUNK_BYTES)
        for line in cutter.lines(chunk or b"\n"):
            if isinstance(line, _LongLine):
                await refuse(line)
            else:
                yield line.decode("utf-8", "replace")


def _refusal(line: _LongLine, limit: int) -> types.JSONRPCError:
    found = _ID.search(line)
    return types.JSONRPCError(
        jsonrpc="2.0",
        id=json.loads(found[1] or found[2]) if found else None,
        error=types.ErrorData(
            code=types.INVALID_REQUEST,
            message=f"the line is longer than {limit} bytes, so it was not read; send less at once",
        ),
    )


# ---------------------------------------------------------------- HTTP


TOKEN = "PATCHQ_MCP_TOKEN"
PATH = "/mcp"
_LEAST_TOKEN = 16

Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Mapping[str, Any]], Awaitable[None]]


def serve_http(args: Namespace, server: Server, body_bytes: int) -> int:
    """Listen until a signal ends it; what waits for a verdict then hears that there is none."""
    from mcp.server.transport_security import TransportSecuritySettings

    from patchq.gate.service import loopback  # stdio has no use for either

    token, made = _token()
    with loopback.bound(loopback.port_of(args.http, "--http")) as own:
        port = own.getsockname()[1]
        app = server.streamable_http_app(
            streamable_http_path=PATH,
            max_request_body_size=body_bytes,
            transport_security=TransportSecuritySettings(
                allowed_hosts=[f"{name}:{port}" for name in loopback.NAMES],
                allowed_origins=[f"http://{name}:{port}" for name in loopback.NAMES],
            ),
        )
        listening = loopback.server(Guarded(app, token))
        server.queue.stop.also = lambda: listening.should_exit
        url = f"http://{loopback.HOST}:{port}{PATH}"
        answer = {"url": url, **({"token": token} if made else {})}
        lines = [f"patchq serves MCP at {url}", *([f"token: {token}"] if made else [])]
        print(printed(answer, indent=1) if args.json else "\n".join(lines), flush=True)
        loopback.listen(listening, own)
    return 0


class Guarded:
    def __init__(self, app: Any, token: str) -> None:
        self._app, self._right = app, f"bearer {token}".encode()

    async def __call__(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and not self._may(scope["headers"]):
            headers = [(b"www-authenticate", b"Bearer"), (b"content-type", b"text/plain")]
            await send({"type": "http.response.start", "status": 401, "headers": headers})
            body = b"the bearer token is missing or wrong: see what `patchq mcp --http` printed\n"
            await send({"type": "http.response.body", "body": body})
            return
        await self._app(scope, receive, send)

    def _may(self, headers: list[tuple[bytes, bytes]]) -> bool:
        given = [value for name, value in headers if name == b"authorization"]
        if len(given) != 1:
            return False
        scheme, _, token = given[0].partition(b" ")
        return hmac.compare_digest(scheme.lower() + b" " + token, self._right)


def _token() -> tuple[str, bool]:
    given = os.environ.get(TOKEN, "")
    if not given:
        return secrets.token_urlsafe(32), True
    if len(given) < _LEAST_TOKEN or not given.isascii() or not given.isprintable() or " " in given:
        raise UsageError(
            f"{TOKEN}: expected at least {_LEAST_TOKEN} plain characters without blanks",
            f"leave it out, and one is made: unset {TOKEN}",
        )
    return given, False
