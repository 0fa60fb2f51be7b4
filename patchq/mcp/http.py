"""The protocol's server by HTTP: on this machine only, for those who have the token.

Whoever could reach it could drop responses, so it listens on the loopback address, takes no request
for another host's name or from another site's page, and asks for a bearer token.  Who wants more
puts a proxy in front that authenticates.
"""

from __future__ import annotations

import hmac
import os
import secrets
from argparse import Namespace
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from mcp.server.transport_security import TransportSecuritySettings

from patchq.gate.errors import UsageError
from patchq.gate.report.document import printed
from patchq.gate.service import loopback
from patchq.mcp.server import Server

TOKEN = "PATCHQ_MCP_TOKEN"
PATH = "/mcp"
_LEAST_TOKEN = 16

Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Mapping[str, Any]], Awaitable[None]]


def serve(args: Namespace, server: Server, body_bytes: int) -> int:
    """Listen until a signal ends it; what waits for a verdict then hears that there is none."""
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
    """An ASGI application for those who have the token."""

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
    """Return the token, and true if it was made here and has to be shown."""
    given = os.environ.get(TOKEN, "")
    if not given:
        return secrets.token_urlsafe(32), True
    if len(given) < _LEAST_TOKEN or not given.isascii() or not given.isprintable() or " " in given:
        raise UsageError(
            f"{TOKEN}: expected at least {_LEAST_TOKEN} plain characters without blanks",
            f"leave it out, and one is made: unset {TOKEN}",
        )
    return given, False
