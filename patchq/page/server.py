"""Start of the page, and its guard, which requires the printed address.

The address holds a token, new at each start, which is exchanged for a cookie.  Browsers send a
cookie to every port of a name, so the page has a name of its own, which is as new. Requests to
another name (rebinding), forms of another site's page, and long bodies are refused.
"""

from __future__ import annotations

import hmac
import secrets
import webbrowser
from argparse import Namespace
from threading import Thread

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from patchq.gate.api.location import Options
from patchq.gate.api.shared import SharedGate
from patchq.gate.report.document import printed
from patchq.gate.service import loopback
from patchq.gate.service.loopback import NAMES
from patchq.page.app import make
from patchq.page.live import News

TOKEN = "token"  # the parameter of the address that is printed
MOST_BYTES = 2 << 20  # of a request's body
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "content-security-policy": POLICY,
    # With `no-referrer`, browsers send `Origin: null` with the page's own forms.
    "referrer-policy": "same-origin",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
_COOKIE = "patchq"
_ASKS = ("GET", "HEAD")


def run(args: Namespace, options: Options) -> int:
    """Listen until a signal ends it."""
    doors = SharedGate(options), SharedGate(options)
    for door in doors:
        args.opened.callback(door.close)
    with doors[1].gate(writes=True) as gate:  # what is to be watched has to be there
        news = News(gate, doors[0])
        port = gate.context().config.review.port
    if args.port is not None:
        port = loopback.port_of(args.port, "--port")
    with loopback.bound(port) as own:
        guarded = Admission(make(*doors, news), own.getsockname()[1])
        serving = loopback.server(guarded)
        news.ending = lambda: serving.should_exit
        lines = f"patchq review: {guarded.url}\nCtrl-C ends it."
        print(printed({"url": guarded.url}, indent=1) if args.json else lines, flush=True)
        if not args.no_open:
            Thread(target=webbrowser.open, args=(guarded.url,), daemon=True).start()
        loopback.listen(serving, own)
    return 0


# ---------------------------------------------------------------- the guard


class Admission:
    """An ASGI application that admits only browsers that opened the printed address."""

    def __init__(self, app: ASGIApp, port: int) -> None:
        self._app = app
        self._host = f"{secrets.token_hex(8)}.localhost:{port}"
        self._plain_hosts = [f"{name}:{port}" for name in NAMES]
        self._token = secrets.token_urlsafe(32)
        self._cookie = secrets.token_urlsafe(32)
        self._origin = f"http://{self._host}"
        self.url = f"{self._origin}/?{TOKEN}={self._token}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        is_request = scope["type"] == "http"
        refusal = self._refusal(Request(scope)) if is_request else None
        await (refusal or self._app)(scope, receive, send_with_headers)

    def _refusal(self, request: Request) -> Response | None:
        headers, asks = request.headers, request.method in _ASKS
        if headers.getlist("host") != [self._host]:
            if headers.get("host") not in self._plain_hosts:
                return _plain("this page answers to its own address alone", 421)
            link = f'<a href="{self._origin}/">{self._origin}/</a>'
            return HTMLResponse(f"<p>The review page is at {link}</p>", 200 if asks else 421)
        if not asks:
            if headers.getlist("origin") != [self._origin]:
                return _plain("this was sent by a page of another site", 403)
            length = headers.get("content-length", "")
            if not length.isdigit() or int(length) > MOST_BYTES:
                return _plain(f"the request has to say that it has at most {MOST_BYTES} bytes", 413)
        if asks and TOKEN in request.query_params:
            return self._exchange(request)
        if not _is(self._cookie, request.cookies.get(_COOKIE, "")):
            text = "open the address that `patchq review` printed: it holds the key to this page"
            return _plain(text, 403)
        return None

    def _exchange(self, request: Request) -> Response:
        if not _is(self._token, request.query_params[TOKEN]):
            return _plain(
                "this address is of an earlier start: see what `patchq review` printed", 403
            )
        answer = RedirectResponse(request.url.remove_query_params(TOKEN), 303)
        # With "strict" no link leads here, such as the one of `127.0.0.1`.
        answer.set_cookie(_COOKIE, self._cookie, httponly=True, samesite="lax", path="/")
        return answer


def _is(secret: str, given: str) -> bool:
    return hmac.compare_digest(given.encode(), secret.encode())


def _plain(text: str, code: int) -> Response:
    return PlainTextResponse(f"{text}\n", code)
