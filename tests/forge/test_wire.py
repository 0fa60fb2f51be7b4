"""Addresses, rights, rests and the token, on the way to the forge."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx2
import pytest

from patchq.forge.wire import Absent, Away, Denied, Rejected, Wire

SECRET = "ghp_secret"


def _wire(answer: Callable[[httpx2.Request], httpx2.Response], base: str = "https://x.org") -> Wire:
    transport = httpx2.MockTransport(answer)
    return Wire(base, lambda: SECRET, 0, transport, lambda seconds: None)


def test_addresses_of_the_api() -> None:
    asked: list[str] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        asked.append(str(request.url))
        return httpx2.Response(200, json={"data": {}})

    for base in ("https://api.github.com/", "https://ghe/api/v3/"):
        wire = _wire(answer, base)
        wire.get("user")
        wire.query("query { viewer { login } }")
    github = ["https://api.github.com/user", "https://api.github.com/graphql"]
    assert asked == [*github, "https://ghe/api/v3/user", "https://ghe/api/graphql"]


@pytest.mark.parametrize(
    ("status", "headers", "fault", "seconds"),
    [
        (401, {}, Denied, 0),
        (403, {"x-accepted-github-permissions": "pull_requests=write"}, Denied, 0),
        (403, {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "99999999999"}, Away, 3600),
        (403, {"retry-after": "7"}, Away, 7),
        (502, {}, Away, 0),
        (404, {}, Absent, 0),
        (422, {}, Rejected, 0),
    ],
    ids=["token", "right", "limit", "after", "down", "absent", "rejected"],
)
def test_answers_become_faults_without_the_token(
    status: int, headers: dict[str, str], fault: type[Exception], seconds: float
) -> None:
    def answer(request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(status, headers=headers, json={"message": f"no: {SECRET}"})

    with pytest.raises(fault) as raised:
        _wire(answer).get("user")
    assert SECRET not in str(raised.value)
    assert getattr(raised.value, "seconds", 0) == seconds
    if right := headers.get("x-accepted-github-permissions"):
        assert right in str(raised.value)


def test_reads_are_retried_and_writes_never() -> None:
    asked: list[str] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        asked.append(request.method)
        raise httpx2.ReadError(f"reset {SECRET}")

    with pytest.raises(Away):
        _wire(answer).get("user")
    with pytest.raises(Away):
        _wire(answer).write("POST", "x", {})
    assert asked == ["GET"] * 3 + ["POST"]


def test_writes_rest_in_between() -> None:
    rests: list[float] = []
    answer: Any = lambda request: httpx2.Response(201, json={})  # noqa: E731
    wire = Wire("https://x.org", lambda: SECRET, 1.0, httpx2.MockTransport(answer), rests.append)
    for _ in range(3):
        wire.write("POST", "x", {})
    assert rests[0] == 0
    assert all(0 < rest <= 1 for rest in rests[1:])
