"""A refusal over MCP holds the arguments to send instead, in whatever form the edits came."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client

from tests.helpers.command import block, patchq
from tests.mcp.clients import NEVER, edit, over_stdio, said, shown

TOKEN = "ghp_" + "0123456789abcdefghijABCDEFGHIJ012345"
ONE, TWO = "    return 1\n", "def two():\n    x = compute(1)\n    return x\n"


def _changed(old: str, new: str) -> str:
    lines = [f"-{line}" for line in old.splitlines()] + [f"+{line}" for line in new.splitlines()]
    return "\n".join(lines) + "\n"


def _patch(path: str, old: str, new: str) -> str:
    return f"*** Begin Patch\n*** Update File: {path}\n@@\n{_changed(old, new)}*** End Patch"


def _diff(path: str, old: str, new: str) -> str:
    counts = f"@@ -1,{old.count(chr(10))} +1,{new.count(chr(10))} @@"
    return f"--- a/{path}\n+++ b/{path}\n{counts}\n{_changed(old, new)}"


def _replace(path: str, old: str, new: str, **more: int) -> dict[str, Any]:
    arguments = {"file_path": path, "old_string": old, "new_string": new, **more}
    return {"name": "replace", "arguments": arguments}


FORMS: dict[str, Callable[[str, str, str], dict[str, Any]]] = {
    "edits": lambda *one: {"edits": [edit(*one)]},
    "blocks": lambda *one: {"response": block(*one)},
    "a diff": lambda *one: {"response": _diff(*one)},
    "a patch": lambda *one: {"response": _patch(*one)},
    "calls": lambda *one: {"response": json.dumps([_replace(*one)])},
}
KINDS = {
    "a slip": ("def tow(self):\n    y = compte(1)\n", "def two():\n    y = 2\n"),
    "stale lines": (TWO.replace("(1)", "(0)\n    print(x)"), "def two():\n    return 2\n"),
    "a lost line": (TWO.replace("    x = compute(1)\n", "    pass\n"), "def two():\n    pass\n"),
    "two places": ("    x = compute(1)\n", "    x = 2\n"),
    "no place": ("qqq zzz\n", "www\n"),
    "no syntax": (ONE, "    return (1\n"),
    "a gap": (TWO, "def two():\n    # ... rest of the code unchanged ...\n"),
    "a secret": (ONE, f'    return "{TOKEN}"\n'),
    "another file": (ONE, "    return 2\n"),
    "another base": (ONE, "    return 2\n"),
}


def test_what_a_refusal_asks_for_is_accepted(served: Path) -> None:
    cases = [(kind, form) for kind in KINDS for form in FORMS]
    assert len(cases) == 50

    async def use(client: Client) -> None:
        for number, (kind, form) in enumerate(cases):
            path = f"nowhere/{number}.py" if kind == "another file" else f"code/{number}.py"
            given = FORMS[form](path, *KINDS[kind])
            if kind == "another base":
                given["base"] = "c0ffee" * 6
            refused = await client.call_tool("submit", given)
            text = said(refused)
            assert refused.is_error, (kind, form, text)
            assert not NEVER.search(text), (kind, form, text)
            again = shown(text)
            assert again["retries"] == refused.structured_content["id"]
            unchanged = await client.call_tool("submit", again)
            assert unchanged.is_error, (kind, form, text, said(unchanged))
            for one in again["edits"]:
                one["new"] = one.get("old", "") + f"# mended {number}\n"
            done = await client.call_tool("submit", again)
            state = done.structured_content["state"]
            assert state == "proposed", (kind, form, text, said(done))

    anyio.run(over_stdio, served, use)


SOUND = edit("f11.txt", "two\n", "2\n")
OFFERED: dict[str, tuple[Any, list[dict[str, Any]]]] = {
    "one of two places": (
        [edit("code/11.py", "    x = compute(1)\n", "    x = 2\n"), SOUND],
        [{"path": "code/11.py", "old": "def two():\n    x = compute(1)\n    return x\n"}, SOUND],
    ),
    "a file that nobody says to have read": (
        [
            {"path": "f12.txt", "new": "other\n"},
            {"path": "f13.txt", "delete": True},
            edit("f11.txt", "four\n", "4\n"),
        ],
        [{"path": f"f{number}.txt", "old": "one\n"} for number in (12, 13, 11)],
    ),
    "no file": (
        [edit("f99.txt", "two\n", "2\n"), {"path": "f98.txt", "new": "new\n"}],
        [{"path": "f99.txt"}, {"path": "f98.txt", "new": "new\n"}],
    ),
    "lines that are found in another indentation": (
        block("code/11.py", "  x = compute(1)\n  return x\n", "  x = 2\n")
        + block("f11.txt", "two\n", "2\n")
        + block("f11.txt", "four\n", "4\n"),
        [
            {"path": "code/11.py", "old": "    x = compute(1)\n    return x\n"},
            SOUND,
            {"path": "f11.txt", "old": "one\n"},
        ],
    ),
    "a counted replacement beside a lost one": (
        json.dumps(
            [
                _replace("code/11.py", "compute(1)", "compute(2)", expected_replacements=2),
                _replace("f99.txt", "two", "2"),
            ]
        ),
        [
            {**edit("code/11.py", "compute(1)", "compute(2)"), "replace_all": True},
            {"path": "f99.txt"},
        ],
    ),
}


@pytest.mark.parametrize(("given", "offered"), OFFERED.values(), ids=OFFERED)
def test_only_what_is_certain_is_offered_with_a_new(
    served: Path, given: Any, offered: list[dict[str, Any]]
) -> None:
    async def use(client: Client) -> None:
        key = "response" if isinstance(given, str) else "edits"
        refused = await client.call_tool("submit", {key: given})
        assert refused.is_error
        assert shown(said(refused))["edits"] == offered, said(refused)

    anyio.run(over_stdio, served, use)


def test_a_comment_is_answered_by_arguments(served: Path) -> None:
    async def use(client: Client) -> None:
        done = await client.call_tool("submit", {"edits": [edit("f10.txt", "two\n", "2\n")]})
        id = done.structured_content["id"]
        patchq("send-back", id, "-m", "Say two, please", cwd=served)
        text = said(await client.call_tool("report", {"id": id}))
        assert not NEVER.search(text)
        again = shown(text)
        assert again["edits"] == [{"path": "f10.txt", "old": "two\n", "new": "2\n"}]
        listed = await client.call_tool("status", {"agent": "me", "limit": 200})
        (row,) = (one for one in listed.structured_content["batches"] if one["id"] == id)
        assert (row["waits_for"], row["open_comments"], row["agent"]) == ("agent", 1, "robot")
        assert row.keys() >= {"subject", "age_seconds", "size", "risk", "paths"}
        again["edits"][0]["new"] = "deux\n"
        assert again["answers"] == [{"comment": "c1", "text": "YOUR WORDS"}]
        again["answers"][0]["text"] = "It is two now"
        answer = await client.call_tool("submit", again)
        assert answer.structured_content["state"] == "proposed"
        told = patchq("--json", "show", answer.structured_content["id"], cwd=served).json()
        (comment,) = told["review"]["comments"]
        assert (comment["state"], comment["replies"][0]["text"]) == ("answered", "It is two now")

    anyio.run(over_stdio, served, use)
