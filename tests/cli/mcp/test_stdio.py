"""The tools over stdio, by the SDK's client, in both eras of the protocol."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio
from mcp import Client

from tests.cli.mcp.clients import ERAS, edit, over_stdio, said
from tests.helpers.gitrepo import git


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
        given = {"id": verdict["id"], "token": verdict["token"]}
        gone = await client.call_tool("withdraw", given)
        assert gone.structured_content["state"] == "discarded"

    return use
