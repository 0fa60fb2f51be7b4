"""Values of a forge (pull requests, conversations, checks), and the HTTP that brings them.

An adapter has the methods of `github.GitHub`; each makes requests, one after another, and may raise
a `Fault`.  Reads are retried, writes never are.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Any, Literal
from urllib.parse import parse_qsl, urlencode, urlsplit

import httpx2
from msgspec import Struct
from msgspec.structs import replace

from patchq import __version__
from patchq.core.text.quote import clip, visible
from patchq.gate.errors import Busy, Fault

Stance = Literal["approved", "changes", "comment", "dismissed"]
StatusState = Literal["pending", "success", "failure"]
CheckState = Literal["pending", "success", "failure", "skipped"]
CONTEXT = "patchq/reviewed"
COMMAND = "/patchq "
_VERBS = ("accept", "send-back")


class PullRequest(Struct, frozen=True):
    number: int
    url: str
    branch: str
    base: str
    head: str
    is_open: bool
    merged: bool
    title: str
    body: str
    author: str
    updated: str


class Remark(Struct, frozen=True):
    """A comment or a review; `id` is its address, `review` the review that it belongs to.

    A decision names its `commit`; `command` is True where it is a comment that begins with
    `/patchq`.
    """

    id: str
    by: str
    text: str
    bot: bool = False
    review: str = ""
    what: Stance = "comment"
    commit: str = ""
    at: str = ""
    command: bool = False


class Thread(Struct, frozen=True):
    """Comments on lines `first` to `line` of a commit; without lines on a file.

    `id` is empty where the forge cannot resolve it.
    """

    id: str
    reply_to: str
    resolved: bool
    path: str
    line: int | None
    first: int | None
    side: Literal["base", "new"]
    commit: str
    texts: tuple[Remark, ...]


class Conversation(Struct, frozen=True):
    """Comments and reviews of a request; `remarks` are those outside its lines.

    The oldest remark comes first.
    """

    threads: tuple[Thread, ...] = ()
    remarks: tuple[Remark, ...] = ()
    conflicts: bool = False


class Rights(Struct, frozen=True):
    """The rights of the token, and the checks that a target's protection requires."""

    login: str
    can_write: bool
    required: Sequence[str] | None


class CommitCheck(Struct, frozen=True):
    name: str
    state: CheckState
    url: str


def as_decision(remark: Remark) -> Remark:
    """Return a comment that begins with `/patchq` as a decision, others unchanged."""
    first, _, rest = remark.text.strip().partition("\n")
    verb, _, commit = first.strip().removeprefix(COMMAND).strip().partition(" ")
    if not first.startswith(COMMAND) or verb not in _VERBS:
        return remark
    if verb == "accept":
        return replace(remark, what="approved", commit=commit.strip(), text=rest, command=True)
    return replace(remark, what="changes", text=f"{commit}\n{rest}".strip(), command=True)


def seconds(moment: str) -> float:
    """Return a time of the forge in seconds since 1970, 0 without one."""
    plain = moment.replace(" UTC", "Z").replace(" +", "+").replace(" -", "-")
    try:
        return datetime.fromisoformat(plain).timestamp()
    except ValueError:
        return 0.0


# ---------------------------------------------------------------- HTTP


_TRIES = 3
_TIMEOUT_SECONDS = 30.0
_LONGEST_REST = 3600.0
_MOST_CACHED = 512  # answers that are kept with their tags
_MOST_PAGES = 100
_MOST_WORDS = 500
_NO_HEADERS: Mapping[str, str] = MappingProxyType({})
_NOT_MODIFIED = 304


class Away(Busy):
    """The forge does not answer, or asks to be left alone for `seconds`."""

    def __init__(self, message: str, seconds: float = 0.0) -> None:
        super().__init__(message, "it is asked again by itself; everything else goes on")
        self.seconds = seconds


class Denied(Fault):
    """The token is not known, or lacks a right."""

    def __init__(self, message: str) -> None:
        super().__init__(message, "set a token with that right; see `patchq forge check`")


class Absent(Fault):
    """The forge does not have it, or does not show it to this token."""


class Rejected(Fault):
    """The forge does not take what was sent."""


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
        # It is beside REST, as GitHub and its servers have it.
        self._graphql = re.sub("(?<=/api)/v3$", "", self._base) + "/graphql"
        self._write_seconds, self._sleep = write_seconds, sleep
        self._wrote = -write_seconds
        self._cached: dict[str, tuple[str, Any, str]] = {}
        agent = {"User-Agent": f"patchq/{__version__}", **headers}
        self._client = httpx2.Client(transport=transport, timeout=_TIMEOUT_SECONDS, headers=agent)
        self.expires: str | None = None
        self.left = ""

    def get(self, path: str, **params: str | int) -> Any:
        """Return the answer to a read; `Absent` where there is nothing."""
        return self._read(path, params)[0]

    def find(self, path: str) -> Any:
        """Return the answer to a read; an empty one where there is nothing."""
        try:
            return self.get(path)
        except Absent:
            return {}

    def pages(self, path: str, **params: str | int) -> Iterator[Any]:
        """Yield the answers to a read, page by page."""
        given: Mapping[str, str | int] = {**params, "per_page": 100}
        for _ in range(_MOST_PAGES):
            answer, link = self._read(path, given)
            yield answer
            following = re.search(r'<[^>]*\?([^>]*)>;\s*rel="next"', link)
            if not following:
                return
            given = dict(parse_qsl(following[1]))

    def every(self, path: str, **params: str | int) -> list[Any]:
        return [one for page in self.pages(path, **params) for one in page]

    def write(self, method: str, path: str, body: Mapping[str, Any]) -> Any:
        """Send a change once; return its answer."""
        rest = self._wrote + self._write_seconds - time.monotonic()
        self._sleep(max(rest, 0.0))
        try:
            return self._send(method, path, json=body).json()
        except ValueError:
            return None
        finally:
            self._wrote = time.monotonic()

    def query(self, text: str, **variables: Any) -> Any:
        asked = {"query": text, "variables": variables}
        return _data(self._again("POST", self._graphql, json=asked).json())

    def mutate(self, text: str, **variables: Any) -> Any:
        return _data(self.write("POST", self._graphql, {"query": text, "variables": variables}))

    # ------------------------------------------------------------ one request

    def _read(self, path: str, params: Mapping[str, str | int]) -> tuple[Any, str]:
        """Return an answer and its `Link`, from the cache where the forge says 304."""
        key = f"{path}?{urlencode(params)}" if params else path
        tag, known, link = self._cached.get(key, ("", None, ""))
        answer = self._again("GET", key, headers={"If-None-Match": tag} if tag else _NO_HEADERS)
        if answer.status_code == _NOT_MODIFIED:
            return known, link
        found, link = answer.json(), answer.headers.get("link", "")
        if tag := answer.headers.get("etag", ""):
            if len(self._cached) >= _MOST_CACHED:
                self._cached.clear()
            self._cached[key] = tag, found, link
        return found, link

    def _again(self, *request: Any, left: int = _TRIES - 1, **more: Any) -> httpx2.Response:
        """Return the answer to a request that may be repeated."""
        try:
            return self._send(*request, **more)
        except Away as away:
            if away.seconds or not left:
                raise
            self._sleep(self._write_seconds)
            return self._again(*request, left=left - 1, **more)

    def _send(
        self, method: str, path: str, json: Any = None, headers: Mapping[str, str] = _NO_HEADERS
    ) -> httpx2.Response:
        """Return the answer; raises a fault for one that is not what was asked for."""
        self._token = self._token or self._find_token()
        url = path if "://" in path else f"{self._base}/{path}"
        sent = {"Authorization": f"Bearer {self._token}", **headers}
        place = urlsplit(url)
        try:
            answer = self._client.request(method, url, headers=sent, json=json)
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise Away(self._plain(f"{place.netloc} does not answer: {error}")) from None
        self.expires = answer.headers.get("github-authentication-token-expiration", self.expires)
        self.left = answer.headers.get("x-ratelimit-remaining", self.left)
        status, rest = answer.status_code, _rest(answer)
        if status < 300 or status == _NOT_MODIFIED:
            return answer
        right = answer.headers.get("x-accepted-github-permissions", "")
        needs = f" (needs {right})" if right else ""
        message = self._plain(
            f"{place.netloc} answers {status} to {method} {place.path}{needs}: {answer.text}"
        )
        if rest or status >= 500 or status == httpx2.codes.REQUEST_TIMEOUT:
            raise Away(message, min(rest, _LONGEST_REST))
        if status == httpx2.codes.UNAUTHORIZED:
            self._token = ""  # the next request asks for a new one
        raise _FAULTS.get(status, Rejected)(message)

    def _plain(self, text: str) -> str:
        """Return words of the forge for people, without the token."""
        shown = " ".join(text.split()).replace(self._token, "***")
        return visible(clip(shown, _MOST_WORDS))


_FAULTS: Mapping[int, Callable[[str], Fault]] = {
    401: Denied, 403: Denied, 404: Absent, 410: Absent,
}  # fmt: skip


def _data(answer: Any) -> Any:
    if errors := answer.get("errors"):
        raise Rejected(visible(clip(str(errors[0].get("message")), _MOST_WORDS)))
    return answer["data"]


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
