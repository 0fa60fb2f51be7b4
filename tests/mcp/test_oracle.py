"""What an agent is told before it submits: in one answer, the same by each way, at no cost."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import anyio
from mcp import Client

from patchq.gate.api.location import Options
from patchq.gate.api.shared import SharedGate
from patchq.mcp.server import Server
from patchq.mcp.tools import Tools
from tests.helpers.command import block, patchq
from tests.helpers.gitrepo import git, make_repo, write_config
from tests.mcp.clients import said

CODE = (
    "def one():\n    return 1\n\ndef two():\n    x = 1\n    return x\n\ndef three():\n    x = 1\n"
)
FILES = {
    "a.py": CODE,
    "b.py": CODE,
    "c.py": CODE,
    "secret/key.py": CODE,
    ".github/workflows/ci.yml": "on: push\n",
}
OTHERS = (
    block("b.py", "    return 1\n", "    return 11\n"),
    "---\nid: later\nagent: bob\ndepends_on: [schema]\n---\n"
    + block("c.py", "    return 1\n", "    return 11\n")
    + block("lib/new.py", "", "new = 1\n"),
)
TOKEN = "ghp_" + "0123456789abcdefghijABCDEFGHIJ012345"
TOLD = (
    # the response, its state, and of each problem the code, with whom, and what the message says
    (block("a.py", "    return 1\n", "    return 2\n"), "proposed", ()),
    (
        block("a.py", "    x = 1\n", "    x = 2\n"),
        "rejected",
        (("match.ambiguous", None, "lines 5, 9"),),
    ),
    (
        block("b.py", "    return 1\n", "    return 2\n"),
        "proposed",
        (("conflict.pending", "response", "line 2 by change response, which waits for review"),),
    ),
    (
        block("c.py", "    return 1\n", "    return 2\n"),
        "proposed",
        (("conflict.pending", "later", "line 2 by change later, which is held"),),
    ),
    (block("c.py", "def two():\n", "def second():\n"), "proposed", ()),
    (
        block("lib/new.py", "", "other = 1\n"),
        "proposed",
        (("conflict.pending", "later", "creates lib/new.py, and change later, which is held"),),
    ),
    (
        block("a.py", "    return 1\n", "    return (1\n"),
        "rejected",
        (("result.syntax", None, "never closed"),),
    ),
    (
        block("secret/key.py", "    return 1\n", "    return 2\n"),
        "rejected",
        (("path.denied", None, "secret/"),),
    ),
    (
        block(".github/workflows/ci.yml", "on: push\n", "on: [push]\n"),
        "proposed",
        (("path.review", None, "a tool may run it by itself: it is hidden"),),
    ),
    (
        block("a.py", "    return 1\n", f'    return "{TOKEN}"\n'),
        "rejected",
        (("edit.secret", None, "a.py:2"),),
    ),
)


def trees(repo: Path) -> dict[str, bytes | None]:
    """Every file and directory of the repository, git's and the queue's own among them."""
    return {str(path): path.read_bytes() if path.is_file() else None for path in repo.rglob("*")}


def told(value: Any) -> list[tuple[str, str | None]]:
    """Codes, and with whom they say that the batch collides."""
    return [
        (problem["code"], (problem["conflicts_with"] or {}).get("batch"))
        for problem in value["problems"]
    ]


def test_one_answer_by_each_way_that_writes_nothing(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo", FILES)
    patchq("init", cwd=repo)
    write_config(repo, "version: 1\npaths: {deny: [secret/]}\n")
    for text in OTHERS:
        patchq("apply", "-", cwd=repo, stdin=text)
    before = trees(repo)

    async def use(client: Client) -> None:
        for text, state, problems in TOLD:
            code = int(state == "rejected")
            value = patchq("--json", "check", "-", cwd=repo, stdin=text, code=code).json()
            page = patchq("check", "-", cwd=repo, stdin=text, code=code).out
            called = await client.call_tool("check", {"response": text})
            expected = [(name, other) for name, other, _ in problems]
            assert value["state"] == state, page
            assert told(value) == expected, page
            assert called.is_error == bool(code)
            seen = called.structured_content
            assert [problem["code"] for problem in seen["problems"]] == [n for n, _ in expected]
            for _, _, words in problems:
                assert words in page
                assert words in said(called)
            for shown in (page, said(called)):
                assert "would be" in shown
                assert "retries:" not in shown  # there is no such batch
                assert "was refused" not in shown

    with ExitStack() as opened:
        door = SharedGate(Options(repo))
        opened.callback(door.close)

        async def main() -> None:
            async with Client(Server(Tools(door), door)) as client:
                await use(client)

        anyio.run(main)
    assert trees(repo) == before
    assert git("for-each-ref", "--format=%(refname)", cwd=repo).count("refs/patchq/waiting") == 1
