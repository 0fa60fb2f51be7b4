"""The tools over stdio, by the SDK's client, in both eras of the protocol."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from signal import SIGTERM
from typing import Any

import anyio
import pytest
from mcp import Client

from tests.helpers.ending import MOST_SECONDS, running, until
from tests.helpers.gitrepo import git
from tests.mcp.clients import ERAS, edit, over_stdio, said


def test_tools_over_stdio(served: Path) -> None:
    async def main() -> None:
        async with anyio.create_task_group() as group:
            for mode, path in zip(ERAS, ("f0.txt", "f1.txt"), strict=True):
                group.start_soon(over_stdio, served, _whole_round(served, path), mode)

    anyio.run(main)


def _whole_round(served: Path, path: str) -> Callable[[Client], Awaitable[None]]:
    async def use(client: Client) -> None:
        wrong = await client.call_tool("submit", {"edits": [edit(path, "tow\n", "2\n")]})
        refused = wrong.structured_content
        assert refused["state"] == "rejected"
        assert [one["code"] for one in refused["problems"]] == ["match.none"]
        assert "2 | two" in said(wrong)

        change = {"edits": [edit(path, "two\n", "2\n")], "retries": refused["id"]}
        done = await client.call_tool("submit", change)
        verdict = done.structured_content
        assert verdict["state"] == "proposed"
        shown = git("show", f"patchq/{verdict['id']}:{path}", cwd=served)
        assert shown == "one\n2\nthree"
        message = git("log", "-1", "--format=%B", verdict["commit"], cwd=served)
        assert "Assisted-by: robot" in message

        again = await client.call_tool("submit", change)
        assert again.structured_content["state"] == "duplicate"
        assert again.structured_content["duplicate_of"] == verdict["id"]
        assert again.structured_content["token"] == verdict["token"]

        stolen = await client.call_tool("withdraw", {"id": verdict["id"], "token": "0" * 32})
        assert stolen.is_error
        waits = {"edits": [edit(path, "one\n", "1\n")], "depends_on": ["nobody"]}
        held = await client.call_tool("submit", {**waits, "wait_seconds": 2})
        assert held.structured_content["state"] == "held"
        assert held.structured_content["problems"][0]["code"] == "depends.failed"
        assert "is held after 2 s" in said(held)
        given = {key: held.structured_content[key] for key in ("id", "token")}
        assert not (await client.call_tool("withdraw", given)).is_error

        given = {key: verdict[key] for key in ("id", "token")}
        gone = await client.call_tool("withdraw", given)
        assert gone.structured_content["state"] == "discarded"

    return use


_PEAK_KB = 250_000
_HELLO = {"capabilities": {}, "clientInfo": {"name": "t", "version": "0"}}


def _line(**message: Any) -> str:
    return json.dumps({"jsonrpc": "2.0", **message}) + "\n"


def _call(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "arguments": arguments}


@contextmanager
def _greeted(repo: Path, version: str = "2025-06-18") -> Iterator[Any]:
    """A server that was greeted in this version of the protocol, and has answered."""
    words = [sys.executable, "-m", "patchq", "mcp"]
    pipe = subprocess.PIPE
    with running(words, cwd=repo, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as server:
        assert server.stdin
        assert server.stdout
        hello = _line(id=0, method="initialize", params=_HELLO | {"protocolVersion": version})
        server.stdin.write(hello + _line(method="notifications/initialized"))
        server.stdin.flush()
        told = json.loads(server.stdout.readline())["result"]
        assert told["protocolVersion"] == version
        yield server


@pytest.mark.parametrize("version", ["2025-06-18", "2025-11-25"])
def test_a_signal_ends_it_and_what_was_submitted_is_not_lost(served: Path, version: str) -> None:
    """Its input stays open, and a call waits for a verdict."""
    id = f"left-{version}"
    waits = {"edits": [edit("f15.txt", "one\n", f"{id}\n")], "id": id, "depends_on": ["nobody"]}
    with _greeted(served, version) as server:
        server.stdin.write(_line(id=2, method="tools/call", params=_call("submit", waits)))
        server.stdin.flush()
        until((served / f".patchq/active/{id}.report.json").exists)
        server.terminate()
        assert server.wait(MOST_SECONDS) == -SIGTERM


def test_a_line_that_is_too_long_is_refused_and_the_next_is_read(served: Path) -> None:
    with _greeted(served) as server:
        server.stdin.write("x" * 50_000_000 + "\n")
        server.stdin.write(_line(id=1, method="ping"))
        server.stdin.flush()
        refusal, answer = (json.loads(server.stdout.readline()) for _ in range(2))
        assert (refusal["error"]["code"], answer["id"]) == (-32600, 1)
        status = Path(f"/proc/{server.pid}/status").read_text()
        assert int(re.findall(r"VmHWM:\s+(\d+)", status)[0]) < _PEAK_KB


def test_nothing_is_said_of_a_client_that_is_gone(served: Path) -> None:
    """It closes both of its ends while an answer is due."""
    with _greeted(served) as server:
        server.stdout.close()
        check = {"edits": [edit("f15.txt", "one\n", "1\n")]}
        server.stdin.write(_line(id=1, method="tools/call", params=_call("check", check)))
        server.stdin.close()
        assert server.wait(MOST_SECONDS) == 0
        assert server.stderr.read() == ""


def test_outside_of_a_repository_each_tool_tells_what_is_missing(tmp_path: Path) -> None:
    async def use(client: Client) -> None:
        for name, given in {"status": {}, "report": {"id": "x"}}.items():
            answer = await client.call_tool(name, given)
            assert answer.is_error
            assert f"{tmp_path} is not in a git repository" in said(answer)

    anyio.run(over_stdio, tmp_path, use)
