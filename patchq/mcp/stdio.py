"""The SDK's server over standard input and output.

The SDK reads lines of any length, in a thread that no signal ends; so it is given a reader that
bounds a line and that a signal calls off.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import Any, cast

import anyio
import mcp_types as types
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage

from patchq.gate.service.admission import LineCutter, OversizedLine
from patchq.mcp.server import Server

_LAST_ANSWERS_SECONDS = 10.0
_WRITING_SECONDS = 0.2
_UNREAD_SECONDS = 2.0  # after a signal the client has so long to read what blocks the output
_CHUNK_BYTES = 64 << 10
_VALUE = rb'(-?\d{1,18}|"[\w.:-]{1,100}")'
# A request's id at its start or its end, where SDKs write it.
_ID = re.compile(
    rb'\A\s*{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*%b\s*,|,\s*"id"\s*:\s*%b\s*}\s*\Z'
    % (_VALUE, _VALUE)
)


def serve(server: Server, line_bytes: int) -> int:
    """Serve until the client, or a signal, ends it; calls that wait are answered by then."""
    source = os.dup(0)
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)  # a child never reads the client's words
    code = 0
    try:
        code = anyio.run(_serve, server, source, line_bytes)
    except* BrokenPipeError:  # the client is gone
        pass
    return code


async def _serve(server: Server, source: int, line_bytes: int) -> int:
    code = 0
    async with anyio.create_task_group() as group:

        async def end_by_signal() -> None:
            nonlocal code
            with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
                code = 130 if await anext(signals) == signal.SIGINT else 0
                server.queue.stop.set()
                with anyio.move_on_after(_LAST_ANSWERS_SECONDS):
                    await server.answered()
                await anyio.sleep(_WRITING_SECONDS)
            # An unread answer blocks a thread, which nothing calls off.
            asyncio.get_running_loop().call_later(_UNREAD_SECONDS, os._exit, code)
            group.cancel_scope.cancel()

        async def refuse(line: OversizedLine) -> None:
            await write.send(SessionMessage(_refusal(line, line_bytes)))

        group.start_soon(end_by_signal)
        async with stdio_server(cast("Any", _lines(source, line_bytes, refuse))) as (read, write):
            await server.serve(read, write)
        group.cancel_scope.cancel()
    return code


async def _lines(
    source: int, limit: int, refuse: Callable[[OversizedLine], Awaitable[None]]
) -> AsyncIterator[str]:
    """Yield the client's lines up to the limit."""
    cutter, chunk = LineCutter(limit), b"\n"
    while chunk:
        with suppress(PermissionError):  # a file is always ready
            await anyio.wait_readable(source)
        chunk = b""
        with suppress(OSError):
            chunk = os.read(source, _CHUNK_BYTES)
        for line in cutter.lines(chunk or b"\n"):
            if isinstance(line, OversizedLine):
                await refuse(line)
            else:
                yield line.decode("utf-8", "replace")


def _refusal(line: OversizedLine, limit: int) -> types.JSONRPCError:
    found = _ID.search(line)
    return types.JSONRPCError(
        jsonrpc="2.0",
        id=json.loads(found[1] or found[2]) if found else None,
        error=types.ErrorData(
            code=types.INVALID_REQUEST,
            message=f"the line is longer than {limit} bytes, so it was not read; send less at once",
        ),
    )
