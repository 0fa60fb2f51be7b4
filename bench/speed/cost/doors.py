"""The ways in beside files: a verdict by MCP against a dropped file's, and the oracle against
`status`."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

from bench.git import BenchError, environment
from bench.speed.cost.ground import Ground
from bench.speed.goal import Goal
from bench.speed.serving import watching

_EACH = 20
"""Verdicts, and looks, whose median is one measurement."""
_PATIENCE = 60.0


def doors(ground: Ground) -> Iterator[Goal]:
    """One daemon and one server; files and calls take turns, and so do checks and looks."""
    try:
        import anyio
        from mcp import Client
        from mcp.client.stdio import StdioServerParameters, stdio_client
    except ModuleNotFoundError as error:
        raise BenchError(f"the extra `mcp` is needed here: {error}") from None

    repo = ground.repository()
    waiting = 20 if ground.quick else 300
    ground.spent([*ground.command, "init"], repo)
    for number in range(waiting):
        text = f"d{number}/a.txt\n<<<<<<< SEARCH\n=======\nnew\n>>>>>>> REPLACE\n"
        (repo / f".patchq/inbox/w{number}.md").write_text(text)
    ground.spent([*ground.command, "run"], repo)
    program, words = ground.command[0], [*ground.command[1:], "-C", str(repo), "mcp"]
    server = StdioServerParameters(
        command=program, args=words, env=environment(ground.home) | {"PATH": os.environ["PATH"]}
    )
    told: list[float] = []
    asked: list[float] = []

    async def measure() -> None:
        with open(os.devnull, "w") as nobody:
            async with Client(stdio_client(server, nobody)) as client:
                await _verdicts(client, repo, "warm", 3)
                for number in range(ground.rounds):
                    told.append(await _verdicts(client, repo, f"r{number}", _EACH))
                    asked.append(await _looks(client, _EACH))

    with watching(ground.command, repo, environment(ground.home)):
        anyio.run(measure)
    yield Goal("submit by MCP / a dropped file, until the verdict is known", told, 1.3)
    yield Goal(f"check / status by MCP, {waiting} proposals", asked, 2.0)


async def _verdicts(client: Any, repo: Path, name: str, count: int) -> float:
    files, calls = [], []
    for number in range(count):
        path = f"{name}/{number}"
        files.append(await _timed(lambda path=path: _dropped(repo, path)))  # type: ignore[misc]
        edits = [{"path": f"{path}.called", "new": "new\n"}]
        calls.append(await _timed(lambda edits=edits: client.call_tool("submit", {"edits": edits})))  # type: ignore[misc]
    return median(calls) / median(files)


async def _looks(client: Any, count: int) -> float:
    check = {"edits": [{"path": "d0/b.txt", "new": "new\n"}]}
    checks, looks = [], []
    for _ in range(count):
        checks.append(await _timed(lambda: client.call_tool("check", check)))
        looks.append(await _timed(lambda: client.call_tool("status", {})))
    return median(checks) / median(looks)


async def _timed(work: Callable[[], Awaitable[Any]]) -> float:
    began = time.perf_counter()
    done = await work()
    if getattr(done, "is_error", False):
        raise BenchError(f"a tool refused: {done.content}")
    return time.perf_counter() - began


async def _dropped(repo: Path, path: str) -> None:
    """Drop a file that makes one, and wait for its verdict as a program does that looks for it: in
    both places where it may come, and it reads what the call gives, too."""
    import anyio

    name = path.replace("/", "-")
    inbox = repo / ".patchq/inbox"
    reports = [repo / f".patchq/{place}/{name}.report.json" for place in ("done", "rejected")]
    text = f"{path}.dropped\n<<<<<<< SEARCH\n=======\nnew\n>>>>>>> REPLACE\n"
    (inbox / f".{name}").write_text(text)
    (inbox / f".{name}").rename(inbox / f"{name}.md")
    until = time.monotonic() + _PATIENCE
    while not (there := [report for report in reports if report.exists()]):
        if time.monotonic() > until:
            raise BenchError(f"no verdict on {name}")
        await anyio.sleep(0.001)
    if (state := json.loads(there[0].read_bytes())["state"]) != "proposed":
        raise BenchError(f"{name} is {state}")
