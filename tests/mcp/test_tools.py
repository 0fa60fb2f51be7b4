"""Each tool as a client meets it: what is wrong is an error at the door that leaves nothing behind,
and what is offered is no more than a model reads at every start."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from patchq.gate.api.location import Options
from patchq.gate.api.shared import SharedGate
from patchq.gate.api.submitting import FileEdit, response
from patchq.mcp.server import INSTRUCTIONS, Server
from patchq.mcp.tools import Tools
from tests.helpers.command import block, fresh, patchq, work
from tests.helpers.gitrepo import git, make_repo
from tests.mcp.clients import ERAS, NEVER, edit, said, shown

MOST_BYTES = 12_000
Use = Callable[[Client], Awaitable[None]]


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    repo = make_repo(tmp_path / "repo", {"a.txt": "one\ntwo\nthree\n"})
    patchq("init", cwd=repo)
    return repo


@pytest.fixture
def door(repo: Path) -> Iterator[SharedGate]:
    with closing(SharedGate(Options(repo))) as door:
        with door.gate():  # whose store has files beside it from now on
            pass
        yield door


def within(door: SharedGate, use: Use, *, read_only: bool = False, mode: str = ERAS[0]) -> None:
    """A client in this process, with a server of its own."""

    async def main() -> None:
        server = Server(Tools(door), read_only=read_only)
        async with Client(server, mode=mode) as client:
            await use(client)

    anyio.run(main)


def left(repo: Path) -> list[str]:
    """What stands in the queue and among the refs."""
    files = [str(path.relative_to(repo)) for path in (repo / ".patchq").rglob("*")]
    return sorted(files) + git("for-each-ref", cwd=repo).split("\n")


TOOLS = {"submit", "check", "report", "status", "wait", "how_to_answer", "withdraw"}
COMMAND_LINE = re.compile(r"`patchq|--\w|command line|patchq (?:submit|status|show|wait|watch|run)")


def test_definitions_are_few_words_that_speak_of_tools(door: SharedGate) -> None:
    async def use(client: Client) -> None:
        listed = await client.list_tools()
        wire = listed.model_dump_json(by_alias=True, exclude_none=True)
        assert len(wire.encode()) <= MOST_BYTES
        assert {tool.name for tool in listed.tools} == TOOLS
        for tool in listed.tools:
            assert tool.annotations
            assert None not in tool.annotations.model_dump(exclude={"title"}).values()
            assert tool.output_schema
            assert tool.input_schema["properties"].keys() & {"edits", "id", "files", "limit"}
            assert not COMMAND_LINE.search(tool.model_dump_json())
        assert not COMMAND_LINE.search(INSTRUCTIONS)

    within(door, use)


def test_read_only_offers_what_changes_nothing(door: SharedGate) -> None:
    async def use(client: Client) -> None:
        names = {tool.name for tool in (await client.list_tools()).tools}
        assert names == TOOLS - {"submit", "withdraw"}
        done = await client.call_tool("submit", {"response": "x"})
        assert (done.is_error, said(done)) == (True, "usage: Unknown tool: submit")

    within(door, use, read_only=True)


def test_http_is_for_this_machine(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for address in ("0.0.0.0:80", "::", "example.org", "-1", "65536", ""):
        # By itself: the SDK has the process log, and the shared one serves other tests.
        done = fresh("mcp", f"--http={address}", cwd=repo, code=2)
        assert "expected a port" in done.err
        assert "proxy that authenticates" in done.err
    monkeypatch.setenv("PATCHQ_MCP_TOKEN", "short")
    assert "fewer than 16 characters" in fresh("mcp", "--http", "0", cwd=repo, code=2).err


KINDS: list[tuple[list[dict[str, Any]], dict[str, str]]] = [
    ([{"old": "two\n", "new": "2\n"}], {"a.txt": "one\n2\nthree"}),
    ([{"old": "e", "new": "E", "replace_all": True}], {"a.txt": "onE\ntwo\nthrEE"}),
    ([{"new": "one\ntwo\n3\n"}], {"a.txt": "one\ntwo\n3"}),
    ([{"delete": True}], {}),
    ([{"old": "two", "new": "2", "rename_to": "b/c.txt"}, {"path": "new.txt", "new": "new\n"}],
     {"b/c.txt": "one\n2\nthree", "new.txt": "new"}),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "result"), KINDS)
def test_edits_are_read_as_meant(
    repo: Path, changes: list[dict[str, Any]], result: dict[str, str]
) -> None:
    base = git("rev-parse", "HEAD", cwd=repo)
    text = response([FileEdit(**{"path": "a.txt", **change}) for change in changes])
    patchq("apply", "-", cwd=repo, stdin=f"---\nid: x\nbase: {base}\n---\n{text}")
    names = git("ls-tree", "-r", "--name-only", "patchq/x", cwd=repo).split()
    assert {name: git("show", f"patchq/x:{name}", cwd=repo) for name in names} == result


GOOD = edit("a.txt", "two\n", "2\n")
WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("submit", {}, "expected one of `response` and `edits`"),
    ("submit", {"response": "x", "edits": [GOOD]}, "expected one of"),
    ("submit", {"edit": [GOOD]}, "did you mean `edits`?"),
    ("submit", {"edits": [{**GOOD, "file": "b"}]}, "no argument `edits.0.file`"),
    ("submit", {"edits": [{"path": "a.txt"}]}, "expected `new`, `delete` or `rename_to`"),
    ("submit", {"edits": [{**GOOD, "delete": True}]}, "`delete` goes with `path` alone"),
    ("submit", {"edits": [{"path": "a", "rename_to": "b\n*** Delete File: a.txt"}]}, "control"),
    ("submit", {"edits": [GOOD], "id": "../x"}, "no change has such an id"),
    ("submit", {"edits": [GOOD], "wait_seconds": -1}, "`wait_seconds`"),
    ("submit", {"edits": [GOOD], "base": "x\ny: z"}, "control"),
    ("submit", {"response": "x" * 3_000_000}, "response.too_large"),
    ("submit", {"response": "\ud800"}, "surrogate"),
    ("status", {"agent": ""}, "not empty"),
    ("check", {"response": "x", "message": "m"}, "no argument `message`"),
    ("report", {"id": "nobody"}, "there is no"),
    ("wait", {"id": "nobody", "wait_seconds": 0}, "there is no"),
    ("status", {"limit": 0}, "`limit`"),
    ("how_to_answer", {"files": ["../a"]}, "path.outside"),
    ("withdraw", {"id": "nobody", "token": "x"}, "nobody"),
]  # fmt: skip


@pytest.mark.parametrize("mode", ERAS)
def test_what_is_wrong_is_said_and_leaves_nothing(repo: Path, door: SharedGate, mode: str) -> None:
    patchq("run", cwd=repo)
    before = left(repo)

    async def use(client: Client) -> None:
        for name, given, why in WRONG:
            done = await client.call_tool(name, given)
            assert done.is_error, (name, given)
            assert why in said(done), (name, given, said(done))
            assert len(said(done)) < 2000
            assert "`patchq" not in json.dumps(done.structured_content)
        assert left(repo) == before
        for uri in ("patchq://reports/../x", "patchq://formats/none", "file:///etc/passwd"):
            with pytest.raises(MCPError, match="Unknown resource"):
                await client.read_resource(uri)
        with pytest.raises(MCPError, match="usage: there is no"):
            await client.read_resource("patchq://reports/nobody")

    within(door, use, mode=mode)


def test_check_foresees_what_submit_meets(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo", {"a.txt": "one\ntwo\nthree\nfour\nfive\n"})
    held = block("a.txt", "two\n", "2\n")
    patchq("apply", "-", cwd=repo, stdin=f"---\nagent: other\n---\n{held}")
    for text, others in (
        (block("a.txt", "three\n", "3\n"), ["other"]),  # borders on it
        (block("a.txt", "five\n", "5\n"), []),
    ):
        foreseen = patchq("--json", "check", "-", cwd=repo, stdin=text).json()["problems"]
        assert [one["conflicts_with"]["agent"] for one in foreseen] == others
        met = patchq("--json", "apply", "-", cwd=repo, stdin=text).json()
        assert met["problems"] == foreseen
        patchq("discard", met["id"], cwd=repo)


def test_submit_says_that_nobody_is_there(repo: Path, door: SharedGate) -> None:
    async def use(client: Client) -> None:
        said_all = {"id": "mine", "message": "a: b", "model": "m", "depends_on": ["x"]}
        done = await client.call_tool("submit", {"edits": [GOOD], **said_all})
        assert (done.is_error, done.structured_content["state"]) == (False, "waiting")
        assert "no daemon works on the queue" in said(done)
        assert len([*(repo / ".patchq/inbox").glob("[!.]*")]) == 1
        seen = await client.call_tool("wait", {"id": "mine", "wait_seconds": 0})
        assert seen.structured_content["state"] == "waiting"
        work(repo, x=block("b.txt", "", "new\n"))
        seen = await client.call_tool("wait", {"id": "mine"})
        assert seen.structured_content["state"] == "proposed"  # on top of `x`

    within(door, use)


def test_check_and_looks_write_nothing(repo: Path, door: SharedGate) -> None:
    work(repo, x=block("a.txt", "nowhere\n", "x\n"))
    before = left(repo)

    async def use(client: Client) -> None:
        assert not (await client.call_tool("check", {"edits": [GOOD]})).is_error
        bad = await client.call_tool("check", {"edits": [edit("a.txt", "tow\n", "2\n")]})
        assert bad.is_error
        assert bad.structured_content["problems"][0]["code"] == "match.none"
        assert said(bad).startswith("would be rejected")
        assert "retries" not in said(bad)  # there is no such change
        listed = await client.call_tool("status", {"state": "rejected"})
        assert [one["id"] for one in listed.structured_content["batches"]] == ["x"]
        full = await client.call_tool("report", {"id": "x", "full": True})
        assert full.structured_content["report"]["schema"] == "patchq.report/1"
        answer = await client.call_tool("how_to_answer", {"files": ["a.txt"]})
        assert not NEVER.search(said(answer))
        again = {**shown(said(answer)), "edits": [GOOD]}
        assert not (await client.call_tool("check", again)).is_error
        assert answer.structured_content["base"] == git("rev-parse", "HEAD", cwd=repo)
        prompt = await client.get_prompt("retry", {"id": "x"})
        assert "match.none" in str(prompt.messages[0].content)
        page = await client.read_resource("patchq://reports/x")
        assert "`x`: rejected" in str(page.contents[0])

    within(door, use)
    assert left(repo) == before
