"""The tools by HTTP: who is let in, and who is told of changes."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import anyio
import httpx2
from mcp import Client
from mcp.shared.subscriptions import ResourceUpdated

from tests.helpers.command import patchq
from tests.mcp.clients import ERAS, edit, listening, over_http

JSON = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


def test_tools_by_http(served: Path) -> None:
    with listening(served) as (url, right):

        async def main() -> None:
            await _who_is_let_in(url, right)
            async with anyio.create_task_group() as group:
                for number, mode in enumerate(ERAS * 3):
                    use = partial(_submit, f"f{number}.txt")
                    group.start_soon(over_http, url, right, use, mode)
            await over_http(url, right, partial(_listen, served), ERAS[0])

        anyio.run(main)


async def _who_is_let_in(url: str, right: dict[str, str]) -> None:
    doors = [
        ({}, 401, "token"),
        ({"authorization": "Bearer wrong"}, 401, "token"),
        ({"authorization": right["authorization"][:-1]}, 401, "token"),
        ({**right, "host": "example.org"}, 421, "Host"),
        ({**right, "origin": "http://example.org"}, 403, "Origin"),
    ]
    async with httpx2.AsyncClient(timeout=60) as http:
        for headers, status, why in doors:
            answer = await http.post(url, json=PING, headers={**JSON, **headers})
            assert (answer.status_code, why in answer.text) == (status, True), headers
        large = await http.post(url, content=b" " * (5 << 20), headers={**JSON, **right})
        assert large.status_code == 413


async def _submit(path: str, client: Client) -> str:
    done = await client.call_tool("submit", {"edits": [edit(path, "two\n", "2\n")]})
    assert done.structured_content["state"] == "proposed"
    assert [one["path"] for one in done.structured_content["edits"]] == [path]
    return str(done.structured_content["id"])


async def _listen(repo: Path, client: Client) -> None:
    """The newest protocol's way to be told that a report changed."""
    id = await _submit("f6.txt", client)
    async with client.listen(resource_subscriptions=[f"patchq://reports/{id}"]) as heard:
        patchq("discard", id, cwd=repo)
        with anyio.fail_after(60):
            async for event in heard:
                assert event == ResourceUpdated(f"patchq://reports/{id}")
                break
    seen = await client.call_tool("wait", {"id": id, "known": "proposed"})
    assert seen.structured_content["state"] == "discarded"
