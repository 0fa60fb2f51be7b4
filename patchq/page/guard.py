"""Who may see the page: whoever opened the address that was printed at the start, in that browser.

The address holds a token, new at each start, which is exchanged for a cookie; the cookie's name
holds the port, since browsers keep cookies by host alone.  A request for another host's name
(rebinding) and a form from another site's page are refused, and so is a body that is too long.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Mapping
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from patchq.cli.loopback import NAMES

TOKEN = "token"
"""The parameter of the address that is printed."""
MOST_BYTES = 2 << 20
"""Of a request's body."""
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
_ASKS = ("GET", "HEAD")


class Admission:
    """An ASGI application for those who came by the printed address."""

    def __init__(self, app: ASGIApp, port: int) -> None:
        self._app = app
        self.token = secrets.token_urlsafe(32)
        self._cookie = secrets.token_urlsafe(32)
        self._name = f"patchq-{port}"
        self._hosts = {f"{name}:{port}" for name in NAMES}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        answer = self._refusal(scope)
        told = _with_headers(send)
        if answer is None:
            await self._app(scope, receive, told)
        else:
            await answer(scope, receive, told)

    def _refusal(self, scope: Scope) -> Response | None:
        """The answer to a request that goes no further."""
        headers = Headers(scope=scope)
        if headers.get("host") not in self._hosts or len(headers.getlist("host")) != 1:
            return _plain("this page answers to its own address alone", 421)
        if scope["method"] not in _ASKS:
            if not self._is_own(headers.get("origin")):
                return _plain("this was sent by a page of another site", 403)
            length = headers.get("content-length", "")
            if not length.isdigit():
                return _plain("the request does not say how long it is", 411)
            if int(length) > MOST_BYTES:
                return _plain(f"more than {MOST_BYTES} bytes were sent", 413)
        asked = parse_qs(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        if scope["method"] in _ASKS and TOKEN in asked:
            return self._exchange(scope, asked)
        if not self._has_cookie(headers):
            text = "open the address that `patchq review` printed: it holds the key to this page"
            return _plain(text, 403)
        return None

    def _is_own(self, origin: str | None) -> bool:
        return origin is not None and origin.removeprefix("http://") in self._hosts

    def _exchange(self, scope: Scope, asked: Mapping[str, list[str]]) -> Response:
        rest = {name: values for name, values in asked.items() if name != TOKEN}
        given = asked[TOKEN][0].encode()
        if not hmac.compare_digest(given, self.token.encode()):
            return _plain(
                "this address is of an earlier start: see what `patchq review` printed", 403
            )
        where = (
            "/" + scope["path"].lstrip("/\\") + (f"?{urlencode(rest, doseq=True)}" if rest else "")
        )
        answer = RedirectResponse(where, 303)
        answer.set_cookie(self._name, self._cookie, httponly=True, samesite="strict", path="/")
        return answer

    def _has_cookie(self, headers: Headers) -> bool:
        try:
            cookies = SimpleCookie(headers.get("cookie", ""))
        except CookieError:
            return False
        given = cookies.get(self._name)
        return given is not None and hmac.compare_digest(
            given.value.encode(), self._cookie.encode()
        )


def _with_headers(send: Send) -> Send:
    async def told(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return told


def _plain(text: str, code: int) -> Response:
    return PlainTextResponse(f"{text}\n", code)
