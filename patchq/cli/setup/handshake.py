"""The check that a client can start a server.

It is a handshake from an almost empty environment.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import subprocess
import tempfile
from asyncio.subprocess import PIPE
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from signal import SIGKILL
from typing import Any

from patchq import __version__

SECONDS = 15.0
_CLIENT_SECONDS = 30.0  # some clients start every server that they know
_WHO = {"name": "patchq-setup", "version": __version__}
_HELLO = {"protocolVersion": "2025-06-18", "clientInfo": _WHO, "capabilities": {}}
_ASKED = (
    {"id": 1, "method": "initialize", "params": _HELLO},
    {"method": "notifications/initialized"},
    {"id": 2, "method": "tools/list"},
)


def failure(words: Sequence[str], directory: Path) -> str:
    """Return the reason why a command starts no MCP server, or ""."""
    program = shutil.which(words[0]) if words else None
    if program is None:
        return f"there is no program {words[0]}" if words else "no entry `patchq` with a command"
    with tempfile.TemporaryFile() as log:
        try:
            asyncio.run(_shake_hands([program, *words[1:]], directory, log.fileno()))
            return ""
        except TimeoutError:
            return f"no answer within {SECONDS:g} s"
        except (OSError, ValueError, LookupError, TypeError, AttributeError):  # it speaks no MCP
            log.seek(0)
            lines = log.read().decode("utf-8", "replace").strip().splitlines()
    return lines[-1] if lines else "it ends without an answer"


async def _shake_hands(words: Sequence[str], directory: Path, log: int) -> None:
    path = f"{os.path.dirname(words[0])}:/usr/bin:/bin"
    environment = {"HOME": os.environ.get("HOME", "/"), "PATH": path}
    server = await asyncio.create_subprocess_exec(
        *words, cwd=directory, env=environment, stdin=PIPE, stdout=PIPE, stderr=log,
        start_new_session=True, limit=1 << 20,
    )  # fmt: skip
    assert server.stdin
    assert server.stdout
    try:
        async with asyncio.timeout(SECONDS):
            for message in _ASKED:
                server.stdin.write(f"{json.dumps({'jsonrpc': '2.0', **message})}\n".encode())
                answer: dict[str, Any] = {}
                while answer.get("id") != message.get("id"):
                    answer = json.loads(await server.stdout.readline())
            assert answer["result"]["tools"][0]["name"]
    finally:
        with suppress(ProcessLookupError):
            os.killpg(server.pid, SIGKILL)
        await server.wait()


def answer_of(verb: str, name: str, directory: Path) -> str:
    """Return the client's own answer in one line.

    It is "" if the client is not installed.
    """
    if not shutil.which(verb.partition(" ")[0]):
        return ""
    try:
        done = subprocess.run(
            verb.split(), cwd=directory, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, timeout=_CLIENT_SECONDS, start_new_session=True,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"no answer: {error}"
    text = re.sub(r"\x1b\[[0-?]*[ -/]*[@-~]", "", done.stdout.decode("utf-8", "replace"))
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    chosen = [line for line in lines if re.match("status|enabled", line, re.IGNORECASE)]
    return next(iter(chosen or [line for line in lines if name in line] or lines), "no answer")
