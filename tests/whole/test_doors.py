"""Limits of the doors by HTTP: the page, and MCP."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import anyio
import pytest

from patchq.gate.service.loopback import HOST
from tests.helpers.command import patchq
from tests.helpers.gitrepo import make_repo
from tests.mcp.clients import listening, over_http
from tests.page.people import Person, edits, proposals, served

IDLE = 400
HALF_A_HEAD = b"GET / HTTP/1.1\r\nhost: "


def by_page(stack: ExitStack, repo: Path) -> tuple[int, Callable[[], None]]:
    url = stack.enter_context(served(repo))

    def visit() -> None:
        assert "for you" in Person(url).look("/")

    return urlsplit(url).port or 0, visit


def by_mcp(stack: ExitStack, repo: Path) -> tuple[int, Callable[[], None]]:
    url, right = stack.enter_context(listening(repo))

    async def use(client: Any) -> None:
        assert (await client.list_tools()).tools

    return urlsplit(url).port or 0, lambda: anyio.run(over_http, url, right, use)


@contextmanager
def crowd(port: int) -> Iterator[list[socket.socket]]:
    """Clients that ask nothing, and as many that begin to."""
    with ExitStack() as stack:
        clients = []
        for number in range(IDLE):
            client = stack.enter_context(socket.create_connection((HOST, port), 60))
            client.sendall(HALF_A_HEAD * (number % 2))
            clients.append(client)
        yield clients


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    repo = make_repo(tmp_path / "repo", {"a.txt": "one\n"})
    patchq("init", cwd=repo)
    return repo


@pytest.mark.parametrize("door", [by_page, by_mcp])
def test_idle_clients_lock_nobody_out(door: Any, repo: Path) -> None:
    with ExitStack() as stack:
        port, visit = door(stack, repo)
        clients = stack.enter_context(crowd(port))
        visit()
        assert clients[0].recv(1) == b""  # the oldest gave way


ANSWERED = b"GET / HTTP/1.1\r\n\r\n"


@pytest.mark.parametrize(
    ("words", "drop"),
    [(b"", b""), (HALF_A_HEAD, b"x"), (ANSWERED, b""), (ANSWERED + HALF_A_HEAD, b"x")],
    ids=["silent", "drop by drop", "silent after an answer", "drop by drop after an answer"],
)
def test_a_request_that_does_not_come_is_not_awaited(words: bytes, drop: bytes, repo: Path) -> None:
    with served(repo) as url, socket.create_connection((HOST, urlsplit(url).port or 0)) as client:
        client.settimeout(0.1)
        client.sendall(words)
        for _ in range(600):
            try:
                if not client.recv(1 << 16):
                    break
            except TimeoutError:
                with suppress(ConnectionError):
                    client.sendall(drop)
            except ConnectionError:
                break
        else:
            pytest.fail("the connection stays open")


def test_who_is_being_answered_does_not_give_way(tmp_path: Path) -> None:
    repo = proposals(tmp_path, {"fix.md": edits(("one\n", "1\n"))})
    with served(repo) as url, ExitStack() as stack:
        person = Person(url)
        version = person.look("/").split('data-version="')[1].split('"')[0]
        stream = stack.enter_context(socket.create_connection((HOST, person.port), 60))
        asked = f"GET /changes?since={version} HTTP/1.1\r\nhost: {person.host}\r\n"
        stream.sendall(f"{asked}cookie: {person.cookie}\r\n\r\n".encode())
        heard = stream.recv(4096)
        stack.enter_context(crowd(person.port))
        patchq("discard", "fix", cwd=repo)
        late = time.monotonic() + 60
        while b"data:" not in heard:
            assert time.monotonic() < late, heard
            more = stream.recv(4096)
            assert more, heard
            heard += more
