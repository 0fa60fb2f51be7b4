"""The tools over stdio, by the SDK's client, in both eras of the protocol."""

from __future__ import annotations

from pathlib import Path

import pytest
from mcp import Client

from tests.cli.mcp.clients import ERAS, edit, over_stdio, said
from tests.helpers.gitrepo import git


@pytest.mark.parametrize(("mode", "path"), [(ERAS[0], "f0.txt"), (ERAS[1], "f1.txt")])
def test_submit_is_decided_and_withdrawn(served: Path, mode: str, path: str) -> None:
    async def use(client: Client) -> None:
        change = {"edits": [edit(path, "two\n", "2\n")], "message": f"Count {path}"}
        done = await client.call_tool("submit", change)
        assert not done.is_error
        verdict = done.structured_content
        assert verdict["state"] == "proposed"
        shown = git("show", f"patchq/{verdict['id']}:{path}", cwd=served)
        assert shown == "one\n2\nthree"
        assert "Assisted-by: robot" in git(
            "log", "-1", "--format=%B", verdict["commit"], cwd=served
        )

        again = await client.call_tool("submit", change)
        assert again.structured_content["state"] == "duplicate"
        assert again.structured_content["duplicate_of"] == verdict["id"]
        assert again.structured_content["token"] == verdict["token"]

        stolen = await client.call_tool("withdraw", {"id": verdict["id"], "token": "0" * 32})
        assert stolen.is_error
        given = {"id": verdict["id"], "token": verdict["token"]}
        gone = await client.call_tool("withdraw", given)
        assert gone.structured_content["state"] == "discarded"

    over_stdio(served, use, "--agent", "robot", mode=mode)


def test_refusal_teaches(served: Path) -> None:
    async def use(client: Client) -> None:
        wrong = await client.call_tool("submit", {"edits": [edit("f2.txt", "tow\n", "2\n")]})
        assert wrong.is_error
        verdict = wrong.structured_content
        assert verdict["state"] == "rejected"
        assert [one["code"] for one in verdict["problems"]] == ["match.none"]
        assert "2 | two" in said(wrong)
        again = {"edits": [edit("f2.txt", "two\n", "2\n")], "retries": verdict["id"]}
        assert not (await client.call_tool("submit", again)).is_error

    over_stdio(served, use)
