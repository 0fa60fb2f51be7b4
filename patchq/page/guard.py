"""The page's guard: it lets in the browser that opened the address printed at the start.

The address holds a token, new at each start, which is exchanged for a cookie.  Browsers send a
cookie to every port of a name, so the page has a name of its own, which is as new.
Requests to another name (rebinding), forms of another site's page, and long bodies are refused.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Mapping
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from patchq.gate.service.loopback import NAMES

TOKEN = "token"  # the parameter of the address that is printed
MOST_BYTES = 2 << 20  # of a request's body
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
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


class Admission:
    """An ASGI application for those who came by the printed address."""

    def __init__(self, app: ASGIApp, port: int) -> None:
        self._app = app
        self._host = f"{secrets.token_hex(8)}.localhost:{port}"
        self._plain_hosts = [f"{name}:{port}" for name in NAMES]
        self._token = secrets.token_urlsafe(32)
        self._cookie = secrets.token_urlsafe(32)
        self._origin = f"http://{self._host}"
        self.url = f"{self._origin}/?{TOKEN}={self._token}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        answer = self._refusal(scope)
        send_with_headers = _with_headers(send)
        if answer is None:
            await self._app(scope, receive, send_with_headers)
        else:
            await answer(scope, receive, send_with_headers)

    def _refusal(self, scope: Scope) -> Response | None:
        """The answer to a request that goes no further."""
        headers = Headers(scope=scope)
        asks = scope["method"] in _ASKS
        if headers.getlist("host") != [self._host]:
            if headers.get("host") not in self._plain_hosts:
                return _plain("this page answers to its own address alone", 421)
            link = f'<a href="{self._origin}/">{self._origin}/</a>'
            return HTMLResponse(f"<p>The review page is at {link}</p>", 200 if asks else 421)
        if not asks:
            if headers.getlist("origin") != [self._origin]:
                return _plain("this was sent by a page of another site", 403)
            length = headers.get("content-length", "")
            if not length.isdigit():
                return _plain("the request does not say how long it is", 411)
            if int(length) > MOST_BYTES:
                return _plain(f"more than {MOST_BYTES} bytes were sent", 413)
        asked = parse_qs(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        if asks and TOKEN in asked:
            return self._exchange(scope, asked)
        if not self._has_cookie(headers):
            text = "open the address that `patchq review` printed: it holds the key to this page"
            return _plain(text, 403)
        return None

    def _exchange(self, scope: Scope, asked: Mapping[str, list[str]]) -> Response:
        rest = {name: values for name, values in asked.items() if name != TOKEN}
        given = asked[TOKEN][0].encode()
        if not hmac.compare_digest(given, self._token.encode()):
            return _plain(
                "this address is of an earlier start: see what `patchq review` printed", 403
            )
        where = (
            "/" + scope["path"].lstrip("/\\") + (f"?{urlencode(rest, doseq=True)}" if rest else "")
        )
        answer = RedirectResponse(where, 303)
        # With "strict" no link leads here, such as the one of `127.0.0.1`.
        answer.set_cookie(_COOKIE, self._cookie, httponly=True, samesite="lax", path="/")
        return answer

    def _has_cookie(self, headers: Headers) -> bool:
        try:
            cookies = SimpleCookie(headers.get("cookie", ""))
        except CookieError:
            return False
        given = cookies.get(_COOKIE)
        return given is not None and hmac.compare_digest(
            given.value.encode(), self._cookie.encode()
        )


def _with_headers(send: Send) -> Send:
    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return send_with_headers


def _plain(text: str, code: int) -> Response:
    return PlainTextResponse(f"{text}\n", code)
