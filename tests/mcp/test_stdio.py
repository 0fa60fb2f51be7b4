"""The tools over stdio, by the SDK's client, in both eras of the protocol."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from patchq.gate.hooks.sandbox import NO_SANDBOX
from tests.helpers.command import patchq
from tests.helpers.ending import running
from tests.helpers.gitrepo import git, make_repo, write_config
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
        assert wrong.is_error
        refused = wrong.structured_content
        assert refused["state"] == "rejected"
        assert [one["code"] for one in refused["problems"]] == ["match.none"]
        assert "2 | two" in said(wrong)

        change = {"edits": [edit(path, "two\n", "2\n")], "retries": refused["id"]}
        done = await client.call_tool("submit", change)
        assert not done.is_error
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
        nobody = await client.call_tool("wait", {"id": "nobody", "wait_seconds": 20})
        assert nobody.is_error
        assert "there is no change nobody" in said(nobody)
        given = {key: held.structured_content[key] for key in ("id", "token")}
        assert not (await client.call_tool("withdraw", given)).is_error

        given = {"id": verdict["id"], "token": verdict["token"]}
        gone = await client.call_tool("withdraw", given)
        assert gone.structured_content["state"] == "discarded"

    return use


def test_a_signal_ends_it_and_what_was_submitted_gets_its_verdict(tmp_path: Path) -> None:
    """Nobody closes its standard input, and a call waits for a verdict."""
    repo = make_repo(tmp_path / "repo", {"a.txt": "one\n"})
    patchq("init", cwd=repo)
    go = tmp_path / "go"
    wait = f"until test -e {go}; do sleep 0.05; done"
    write_config(
        repo,
        f"version: 1\nhooks: [{{id: slow, stage: pre-apply, run: '{wait}', unconfined: true}}]\n",
    )
    free = {**os.environ, NO_SANDBOX: "1"}  # the hook is to see the file come
    call = {"name": "submit", "arguments": {"edits": [edit("a.txt", "one\n", "1\n")]}}
    hello: dict[str, Any] = {"protocolVersion": "2025-06-18", "capabilities": {}}
    hello["clientInfo"] = {"name": "t", "version": "0"}
    words = [sys.executable, "-m", "patchq"]
    piped: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with (
        running([*words, "watch", "-q"], cwd=repo, env=free) as daemon,
        running([*words, "mcp"], cwd=repo, **piped) as server,
    ):
        assert server.stdin
        assert server.stdout
        asked: tuple[Any, ...] = ((1, "initialize", hello), (None, "notifications/initialized", {}))
        for id, method, params in (*asked, (2, "tools/call", call)):
            message = {"jsonrpc": "2.0", "method": method, "params": params}
            server.stdin.write(json.dumps(message | ({"id": id} if id else {})) + "\n")
            server.stdin.flush()
        queue = repo / ".patchq"
        until = time.monotonic() + 60
        while not [*queue.glob("active/*.md"), *queue.glob("inbox/*.md")]:
            assert time.monotonic() < until
            time.sleep(0.01)
        server.terminate()
        said = [json.loads(line) for line in server.stdout]
        assert server.wait(60) == 0
        (answer,) = [one["result"] for one in said if one.get("id") == 2]
        id = answer["structuredContent"]["id"]
        assert answer["structuredContent"]["state"] == "waiting"
        go.touch()
        done = patchq("wait", id, "--timeout", "60", cwd=repo)
        assert done.out.startswith(f"proposed   {id}")
        daemon.terminate()
        assert daemon.wait(60) == 0
    assert len([*queue.glob("*/*.report.json")]) == 1


def test_the_repository_is_that_of_the_clients_roots_else_of_the_directory(
    tmp_path: Path,
) -> None:
    """Without either, the server starts all the same and each tool says what is missing."""
    outside, repo = tmp_path / "outside", make_repo(tmp_path / "a repo", {"a.txt": "one\n"})
    outside.mkdir()
    git("init", "-q", str(tmp_path / "other"), cwd=tmp_path)
    calls: dict[str, dict[str, Any]] = {
        "status": {},
        "report": {"id": "x"},
        "how_to_answer": {"files": ["a.txt"]},
    }

    async def ask(directory: Path, *roots: Path) -> list[tuple[bool, str]]:
        async def named(context: Any) -> types.ListRootsResult:
            return types.ListRootsResult(
                roots=[types.Root.model_validate({"uri": root.as_uri()}) for root in roots]
            )

        server = StdioServerParameters(
            command=sys.executable, args=["-m", "patchq", "mcp"], env={**os.environ}, cwd=directory
        )
        with Path(os.devnull).open("w") as nobody:
            client = Client(
                stdio_client(server, nobody),
                mode="legacy",
                list_roots_callback=named if roots else None,
            )
            async with client:
                answers = [await client.call_tool(*call) for call in calls.items()]
        return [(bool(answer.is_error), said(answer)) for answer in answers]

    for roots, missing in (
        ((), "the client names no roots"),
        ((tmp_path,), f"none of the client's roots ({tmp_path}) is in one"),
    ):
        for refused, text in anyio.run(ask, outside, *roots):
            assert refused
            assert f"{outside} is in no git repository, and {missing}" in text
    for directory, *named in ((repo,), (outside, tmp_path, repo), (tmp_path / "other", repo)):
        *_, (refused, text) = anyio.run(ask, directory, *named)
        assert not refused
        assert "one\n" in text
