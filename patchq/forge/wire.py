"""HTTP to a forge, one request after another: reads are retried, writes never are."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

import httpx2

from patchq import __version__
from patchq.core.text.quote import clip, visible
from patchq.gate.errors import Busy, Fault

_TRIES = 3
_TIMEOUT_SECONDS = 30.0
_MOST_CACHED = 512  # answers that are kept with their tags
_MOST_PAGES = 100
_MOST_WORDS = 300
_NO_HEADERS: Mapping[str, str] = MappingProxyType({})


class Away(Busy):
    """The forge does not answer, or asks to be left alone for `seconds`."""

    def __init__(self, message: str, seconds: float = 0.0) -> None:
        super().__init__(message, "it is asked again by itself; everything else goes on")
        self.seconds = seconds


class Denied(Fault):
    """The token is not known, or lacks a right."""


class Absent(Fault):
    """The forge does not have it, or does not show it to this token."""


class Rejected(Fault):
    """The forge does not take what was sent; `status` is its answer."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class Wire:
    """A client of one API; `token` is asked for at the first request, and after a 401."""

    def __init__(
        self,
        base: str,
        token: Callable[[], str],
        write_seconds: float,
        transport: httpx2.BaseTransport | None = None,
        sleep: Callable[[float], None] = time.sleep,
        headers: Mapping[str, str] = _NO_HEADERS,
    ) -> None:
        self._base, self._find_token, self._token = base.rstrip("/"), token, ""
        self._host = urlsplit(base).netloc
        # It is beside REST, as GitHub and its servers have it.
        self._graphql = re.sub("(?<=/api)/v3$", "", self._base) + "/graphql"
        self._write_seconds, self._sleep = write_seconds, sleep
        self._wrote = -write_seconds
        self._cached: dict[str, tuple[str, Any, str]] = {}
        agent = {"User-Agent": f"patchq/{__version__}", **headers}
        self._client = httpx2.Client(
            transport=transport, timeout=_TIMEOUT_SECONDS, headers=agent, follow_redirects=False
        )
        self.expires: str | None = None
        self.left = ""

    def close(self) -> None:
        self._client.close()

    def get(self, path: str, **params: str | int) -> Any:
        """Return the answer to a read; `Absent` where there is nothing."""
        return self._read(self._url(path), params)[0]

    def find(self, path: str) -> Any:
        """Return the answer to a read; an empty one where there is nothing."""
        try:
            return self.get(path)
        except Absent:
            return {}

    def pages(self, path: str, **params: str | int) -> Iterator[Any]:
        """Yield the answers to a read, page by page."""
        url, given = self._url(path), {**params, "per_page": 100}
        for _ in range(_MOST_PAGES):
            answer, link = self._read(url, given)
            yield answer
            following = re.search(r'<([^>]+)>;\s*rel="next"', link)
            if not following:
                return
            url, given = following[1], {}
            if urlsplit(url)[:2] != urlsplit(self._base)[:2]:
                raise Rejected("the forge names a next page on another host", 0)

    def every(self, path: str, **params: str | int) -> list[Any]:
        return [one for page in self.pages(path, **params) for one in page]

    def write(self, method: str, path: str, body: Mapping[str, Any]) -> Any:
        """Send a change once; return its answer."""
        rest = self._wrote + self._write_seconds - time.monotonic()
        self._sleep(max(rest, 0.0))
        try:
            return self._checked(self._send(method, self._url(path), json=body)).json()
        except ValueError:
            return None
        finally:
            self._wrote = time.monotonic()

    def query(self, text: str, **variables: Any) -> Any:
        asked = {"query": text, "variables": variables}
        return self._data(self._again(lambda: self._send("POST", self._graphql, asked)).json())

    def mutate(self, text: str, **variables: Any) -> Any:
        return self._data(
            self.write("POST", self._graphql, {"query": text, "variables": variables})
        )

    # ------------------------------------------------------------ one request

    def _url(self, path: str) -> str:
        return path if "://" in path else f"{self._base}/{path}"

    def _read(self, url: str, params: Mapping[str, str | int]) -> tuple[Any, str]:
        """Return an answer and its `Link`, from the cache where the forge says 304."""
        key = str(httpx2.URL(url, params=params)) if params else url
        tag, known, link = self._cached.get(key, ("", None, ""))
        headers = {"If-None-Match": tag} if tag else {}
        answer = self._again(lambda: self._send("GET", key, headers=headers))
        if answer.status_code == httpx2.codes.NOT_MODIFIED:
            return known, link
        found, link = answer.json(), answer.headers.get("link", "")
        if tag := answer.headers.get("etag", ""):
            self._cached.pop(key, None)
            self._cached[key] = tag, found, link
            if len(self._cached) > _MOST_CACHED:
                self._cached.pop(next(iter(self._cached)))
        return found, link

    def _again(self, send: Callable[[], httpx2.Response]) -> httpx2.Response:
        for attempt in range(_TRIES):
            try:
                return self._checked(send())
            except Away as away:
                if away.seconds or attempt == _TRIES - 1:
                    raise
                self._sleep(2.0**attempt * bool(self._write_seconds))
        raise AssertionError

    def _send(
        self, method: str, url: str, json: Any = None, headers: Mapping[str, str] = _NO_HEADERS
    ) -> httpx2.Response:
        self._token = self._token or self._find_token()
        for fresh in (False, True):
            sent = {"Authorization": f"Bearer {self._token}", **headers}
            try:
                answer = self._client.request(method, url, headers=sent, json=json)
            except (httpx2.HTTPError, httpx2.InvalidURL) as error:
                raise Away(self._plain(f"{self._host} does not answer: {error}")) from None
            if answer.status_code != httpx2.codes.UNAUTHORIZED or fresh:
                break
            before, self._token = self._token, self._find_token()
            if self._token == before:
                break
        self.expires = answer.headers.get("github-authentication-token-expiration", self.expires)
        self.left = answer.headers.get("x-ratelimit-remaining", self.left)
        return answer

    def _plain(self, text: str) -> str:
        """Return words of the forge for people, without the token."""
        return visible(clip(text.replace(self._token, "***") if self._token else text, _MOST_WORDS))

    def _checked(self, answer: httpx2.Response) -> httpx2.Response:
        status = answer.status_code
        if status < 300 or status == httpx2.codes.NOT_MODIFIED:
            return answer
        words, what = self._words(answer), f"{answer.request.method} {answer.request.url.path}"
        if rest := _rest(answer):
            raise Away(f"{self._host} limits requests: {words}", min(rest, 3600.0))
        if status >= 500 or status == httpx2.codes.REQUEST_TIMEOUT:
            raise Away(f"{self._host} answers {status} to {what}: {words}")
        if status == httpx2.codes.UNAUTHORIZED:
            raise Denied(
                f"{self._host} does not know the token: {words}",
                "set a valid token, then see `patchq forge check`",
            )
        if status == httpx2.codes.FORBIDDEN:
            right = answer.headers.get("x-accepted-github-permissions", "")
            needs = f" (needs {self._plain(right)})" if right else ""
            raise Denied(
                f"{self._host} does not allow {what}{needs}: {words}",
                "give the token that right; see `patchq forge check`",
            )
        if status in (httpx2.codes.NOT_FOUND, httpx2.codes.GONE):
            raise Absent(f"{self._host} has nothing at {what}: {words}")
        raise Rejected(f"{self._host} answers {status} to {what}: {words}", status)

    def _words(self, answer: httpx2.Response) -> str:
        try:
            found = answer.json()
            reason = found.get("message") or found.get("error_description") or found["error"]
            words = [reason, *(_detail(one) for one in found.get("errors") or ())]
            text = "; ".join(filter(None, map(str, words)))
        except (ValueError, KeyError, TypeError, AttributeError):
            text = answer.text.strip().split("\n", 1)[0]
        return self._plain(text) or "no reason"

    def _data(self, answer: Any) -> Any:
        if errors := answer.get("errors"):
            raise Rejected(self._plain(f"{self._host}: {errors[0].get('message')}"), 200)
        return answer["data"]


def _detail(error: Any) -> str:
    return str(error.get("message") or "") if isinstance(error, dict) else str(error)


def _rest(answer: httpx2.Response) -> float:
    """Return the seconds for which the forge wants no request."""
    headers, status = answer.headers, answer.status_code
    if status not in (httpx2.codes.FORBIDDEN, httpx2.codes.TOO_MANY_REQUESTS, 503):
        return 0.0
    if (after := headers.get("retry-after", "")).isdigit():
        return float(after) or 1.0
    reset = headers.get("x-ratelimit-reset", "")
    if headers.get("x-ratelimit-remaining") == "0" and reset.isdigit():
        return max(float(reset) - time.time(), 1.0)
    limited = status == httpx2.codes.TOO_MANY_REQUESTS or "secondary rate" in answer.text.lower()
    return 60.0 if limited else 0.0
