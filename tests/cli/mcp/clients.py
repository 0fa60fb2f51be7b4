"""The SDK's client, connected to `patchq mcp`."""

from __future__ import annotations

import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import anyio
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

ERAS = ("2026-07-28", "legacy")
"""The newest protocol, and those that begin with a handshake."""
T = TypeVar("T")


def over_stdio(
    repo: Path, use: Callable[[Client], Awaitable[T]], *words: str, mode: str = ERAS[0]
) -> T:
    """What `use` makes of a client of a server that it starts."""

    async def main() -> T:
        server = StdioServerParameters(
            command=sys.executable,
            args=["-m", "patchq", "-C", str(repo), "mcp", *words],
            env={**os.environ},
        )
        with open(os.devnull, "w") as nobody:
            async with Client(stdio_client(server, nobody), mode=mode) as client:
                return await use(client)

    return anyio.run(main)


def edit(path: str, old: str, new: str) -> dict[str, Any]:
    return {"path": path, "old": old, "new": new}


def said(result: Any) -> str:
    """The text of a tool's answer."""
    (part,) = result.content
    assert isinstance(part.text, str)
    return part.text
