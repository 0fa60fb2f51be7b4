"""The SDK's client, connected to `patchq mcp`."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import anyio
import httpx2
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from tests.helpers.ending import MOST_SECONDS, running

ERAS = ("2026-07-28", "legacy")
"""The newest protocol, and those that begin with a handshake."""
NEVER = re.compile(r"^---$|file_path|old_string|patchq (?:submit|show|wait)|`git ", re.M)
"""Words of other doors, which no text of a tool has."""
T = TypeVar("T")


async def over_stdio(
    place: Path, use: Callable[[Client], Awaitable[T]], mode: str = ERAS[0], **how: Any
) -> T:
    """What `use` makes of a client of a server that it starts, for the agent `robot`."""
    words = ["-m", "patchq", "mcp", "--agent", "robot"]
    server = {"command": sys.executable, "args": words, "env": {**os.environ}, "cwd": place}
    return await connected(server, use, mode, **how)


async def connected(
    server: dict[str, Any], use: Callable[[Client], Awaitable[T]], mode: str, **how: Any
) -> T:
    with Path(os.devnull).open("w") as nobody:
        ends = stdio_client(StdioServerParameters(**server), nobody)
        async with Client(ends, mode=mode, **how) as client:
            with anyio.fail_after(MOST_SECONDS):
                return await use(client)


def edit(path: str, old: str, new: str) -> dict[str, Any]:
    return {"path": path, "old": old, "new": new}


def said(result: Any) -> str:
    """The text of a tool's answer."""
    (part,) = result.content
    assert isinstance(part.text, str)
    return part.text


def shown(text: str) -> Any:
    """Return the arguments that a text shows."""
    (found,) = re.findall(r"^```json\n(.*?)^```$", text, re.M | re.S)
    return json.loads(found)


@contextmanager
def listening(repo: Path, *words: str) -> Iterator[tuple[str, dict[str, str]]]:
    """A server by HTTP: its address, and the header that lets one in.  It ends by SIGTERM."""
    command = [sys.executable, "-m", "patchq", "-C", str(repo), "--json", "mcp", "--http", "0"]
    pipe, none = subprocess.PIPE, subprocess.DEVNULL
    with running([*command, *words], stdout=pipe, stderr=none, text=True) as server:
        assert server.stdout
        told = json.loads("".join(iter(server.stdout.readline, "}\n")) + "}")
        yield told["url"], {"authorization": f"Bearer {told['token']}"}
        server.terminate()
        assert server.wait(MOST_SECONDS) == 0


async def over_http(
    url: str, headers: dict[str, str], use: Callable[[Client], Awaitable[T]], mode: str = ERAS[0]
) -> T:
    """What `use` makes of a client of the server at that address."""
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60) as http,
        Client(streamable_http_client(url, http_client=http), mode=mode) as client,
    ):
        with anyio.fail_after(MOST_SECONDS):
            return await use(client)
