"""The tools over stdio, by the SDK's client, in both eras of the protocol."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from signal import SIGTERM
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp import Client

from tests.helpers.ending import MOST_SECONDS, running, until
from tests.helpers.gitrepo import git, make_repo
from tests.mcp.clients import ERAS, edit, over_stdio, said


def test_tools_over_stdio(served: Path) -> None:
    async def main() -> None:
        async with anyio.create_task_group() as group:
            for mode, path in zip(ERAS, ("f0.txt", "f1.txt"), strict=True):
                use = partial(_whole_round, served, path)
                group.start_soon(over_stdio, served, use, mode)

    anyio.run(main)


async def _whole_round(served: Path, path: str, client: Client) -> None:
    wrong = await client.call_tool("submit", {"edits": [edit(path, "tow\n", "2\n")]})
    refused = wrong.structured_content
    assert refused["state"] == "rejected"
    assert [one["code"] for one in refused["problems"]] == ["match.none"]
    assert "2 | two" in said(wrong)
    change = {"edits": [edit(path, "two\n", "2\n")], "retries": refused["id"]}
    done = await client.call_tool("submit", change)
    verdict = done.structured_content
    assert verdict["state"] == "proposed"
    commit = git("show", f"patchq/{verdict['id']}", cwd=served)
    assert "Assisted-by: robot" in commit
    assert "\n-two\n+2\n" in commit
    again = (await client.call_tool("submit", change)).structured_content
    assert (again["state"], again["duplicate_of"]) == ("duplicate", verdict["id"])
    assert again["token"] == verdict["token"]
    stolen = await client.call_tool("withdraw", {"id": verdict["id"], "token": "0" * 32})
    assert stolen.is_error
    waits = {"edits": [edit(path, "one\n", "1\n")], "depends_on": ["nobody"]}
    held = await client.call_tool("submit", {**waits, "wait_seconds": 2})
    assert held.structured_content["state"] == "held"
    assert held.structured_content["problems"][0]["code"] == "depends.failed"
    assert "is held after 2 s" in said(held)
    for mine in (held.structured_content, verdict):
        given = {key: mine[key] for key in ("id", "token")}
        gone = await client.call_tool("withdraw", given)
        assert gone.structured_content["state"] == "discarded"


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
    id = f"left-{version}"
    waits = {"edits": [edit("f15.txt", "one\n", f"{id}\n")], "id": id, "depends_on": ["nobody"]}
    with _greeted(served, version) as server:
        server.stdin.write(_line(id=2, method="tools/call", params=_call("submit", waits)))
        server.stdin.flush()
        until((served / f".patchq/active/{id}.report.json").exists)
        server.terminate()
        assert server.wait(MOST_SECONDS) == -SIGTERM


@pytest.mark.parametrize(
    ("line", "id"),
    [
        ('{"params":"%s","jsonrpc":"2.0","id":"a-7"}', "a-7"),
        ('{"params":{"id":7,"x":"%s","id":7},"method":"x"}', None),
        ("%s", None),
    ],
    ids=["id last", "id of another", "no JSON"],
)
def test_a_line_that_is_too_long_is_refused_and_the_next_is_read(
    served: Path, line: str, id: object
) -> None:
    with _greeted(served) as server:
        server.stdin.write(line % ("x" * 50_000_000) + "\n")
        server.stdin.write(_line(id=1, method="ping").rstrip())  # the last has no line end
        server.stdin.flush()
        refusal = json.loads(server.stdout.readline())
        status = Path(f"/proc/{server.pid}/status").read_text()  # it lives as long as its input
        server.stdin.close()
        answer = json.loads(server.stdout.readline())
        assert (refusal["id"], refusal["error"]["code"], answer["id"]) == (id, -32600, 1)
        assert int(re.findall(r"VmHWM:\s+(\d+)", status)[0]) < _PEAK_KB


def test_an_unknown_prompt_is_the_clients_to_mend(served: Path) -> None:
    with _greeted(served) as server:
        server.stdin.write(_line(id=1, method="prompts/get", params={"name": "none"}))
        server.stdin.flush()
        assert json.loads(server.stdout.readline())["error"]["message"] == "Unknown prompt: none"
        server.stdin.close()
        assert server.wait(MOST_SECONDS) == 0
        assert server.stderr.read() == ""


def test_nothing_is_said_of_a_client_that_is_gone(served: Path) -> None:
    with _greeted(served) as server:
        server.stdout.close()
        check = {"edits": [edit("f15.txt", "one\n", "1\n")]}
        server.stdin.write(_line(id=1, method="tools/call", params=_call("check", check)))
        server.stdin.close()
        assert server.wait(MOST_SECONDS) == 0
        assert server.stderr.read() == ""


def test_the_repository_is_that_of_the_clients_roots_else_the_directory(tmp_path: Path) -> None:
    outside, repo = tmp_path / "outside", make_repo(tmp_path / "a repo", {"a.txt": "one\n"})
    outside.mkdir()
    git("init", "-q", str(tmp_path / "other"), cwd=tmp_path)

    async def use(client: Client) -> list[tuple[bool, str]]:
        answers = [
            await client.call_tool("status"),
            await client.call_tool("report", {"id": "x"}),
            await client.call_tool("how_to_answer", {"files": ["a.txt"]}),
        ]
        return [(bool(answer.is_error), said(answer)) for answer in answers]

    def ask(directory: Path, *roots: Path) -> list[tuple[bool, str]]:
        async def named(context: Any) -> types.ListRootsResult:
            uris = [{"uri": root.as_uri()} for root in roots]
            return types.ListRootsResult.model_validate({"roots": uris})

        how = {"list_roots_callback": named if roots else None}
        return anyio.run(partial(over_stdio, directory, use, "legacy", **how))

    for roots, missing in (
        ((), "the client names no roots"),
        ((tmp_path,), f"none of the client's roots ({tmp_path}) is in one"),
    ):
        for refused, text in ask(outside, *roots):
            assert refused
            assert f"{outside} is in no git repository, and {missing}" in text
    for directory, *named in ((repo,), (outside, tmp_path, repo), (tmp_path / "other", repo)):
        *_, (refused, text) = ask(directory, *named)
        assert not refused
        assert "one\n" in text
