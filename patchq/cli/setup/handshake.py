"""The proof that a client can start a server: a handshake from an almost empty environment."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from signal import SIGKILL
from threading import Timer
from typing import Any

from patchq import __version__

SECONDS = 15.0
_CLIENT_SECONDS = 30.0  # some clients start every server that they know
_WHO = {"clientInfo": {"name": "patchq-setup", "version": __version__}, "capabilities": {}}
_ASKED = (
    {"id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18", **_WHO}},
    {"method": "notifications/initialized"},
    {"id": 2, "method": "tools/list"},
)


def failure(words: Sequence[str], directory: Path) -> str:
    """Return the reason for which these words start no MCP server there; empty if they do."""
    program = shutil.which(words[0]) if words else None
    if program is None:
        return f"there is no program {words[0]}" if words else "no entry `patchq` with a command"
    near = os.path.dirname(program)
    with tempfile.TemporaryFile() as log:
        server = subprocess.Popen(
            [program, *words[1:]], cwd=directory, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            env={"HOME": os.environ.get("HOME", "/"), "PATH": f"{near}:/usr/bin:/bin"}, stderr=log,
            start_new_session=True, text=True,
        )  # fmt: skip
        clock, began = Timer(SECONDS, _end, [server]), time.monotonic()
        clock.start()
        try:
            if _tools(server):
                return ""
            if time.monotonic() - began >= SECONDS:
                return f"no answer within {SECONDS:g} s"
        finally:
            clock.cancel()
            _end(server)
            server.communicate()
        log.seek(0)
        lines = log.read().decode("utf-8", "replace").strip().splitlines()
    return lines[-1] if lines else "it ends without an answer"


def _tools(server: subprocess.Popen[str]) -> list[str]:
    """Return the names of the server's tools; none where it speaks no MCP."""
    assert server.stdin
    assert server.stdout
    with suppress(OSError, ValueError, LookupError, TypeError, AttributeError):
        for message in _ASKED:
            print(json.dumps({"jsonrpc": "2.0", **message}), file=server.stdin, flush=True)
            answer: dict[str, Any] = {"id": None} if "id" in message else {**message}
            while answer.get("id") != message.get("id"):
                answer = json.loads(server.stdout.readline())
        return [tool["name"] for tool in answer["result"]["tools"]]
    return []


def _end(server: subprocess.Popen[str]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(server.pid, SIGKILL)


def answer_of(verb: Sequence[str], name: str, directory: Path) -> str:
    """Return the client's own answer in one line; empty where it is not installed."""
    if not verb or not shutil.which(verb[0]):
        return ""
    try:
        done = subprocess.run(
            verb, cwd=directory, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, timeout=_CLIENT_SECONDS, start_new_session=True, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"no answer: {error}"
    text = re.sub(r"\x1b\[[0-?]*[ -/]*[@-~]", "", done.stdout.decode("utf-8", "replace"))
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    chosen = [line for line in lines if re.match("status|enabled", line, re.IGNORECASE)]
    return next(iter(chosen or [line for line in lines if name in line] or lines), "no answer")
