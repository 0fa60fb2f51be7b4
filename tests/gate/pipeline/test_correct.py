"""Correction on its way through the pipeline: commits, reports, and a daemon that is stopped."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from patchq.llm.corrections import NEW, OLD
from tests.helpers.chat_server import ChatServer, Reply, serving
from tests.helpers.command import block, patchq
from tests.helpers.gitrepo import git, make_repo, write_config

KEY = "sk-very-secret-0123456789"
FILE = "def total(items, tax):\n    value = sum(items)\n    return value * tax\n"
MISQUOTED = FILE.replace("items", "rows")
CHANGED = ("value * tax", "round(value * tax, 2)")
RESPONSE = block("a.py", MISQUOTED, MISQUOTED.replace(*CHANGED))
RIGHT = [json.dumps({OLD: FILE}), json.dumps({NEW: FILE.replace(*CHANGED)})]


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TEST_KEY", KEY)
    return make_repo(tmp_path / "project", {"a.py": FILE})


def configure(repo: Path, server: ChatServer, more: str = "") -> None:
    told = f"base_url: '{server.base_url}', model: m-1, api_key_env: TEST_KEY{more}"
    write_config(repo, f"version: 1\nmode: auto\nllm: {{{told}}}\n")


def apply(repo: Path, response: str = RESPONSE, code: int = 0) -> Any:
    return patchq("--json", "apply", "-", cwd=repo, stdin=response, code=code).json()


def test_corrected_edit_lands_and_says_so(repo: Path) -> None:
    with serving(RIGHT) as server:
        configure(repo, server)
        told = apply(repo)
    assert told["state"] == "applied"
    assert git("show", "main:a.py", cwd=repo) == FILE.replace(*CHANGED).removesuffix("\n")
    corrected = [(one["edit"], one["what"], one["by"]) for one in told["corrections"]]
    assert corrected == [("1", "old", "model"), ("1", "new", "model")]
    body = git("log", "-1", "--format=%b", "main", cwd=repo)
    assert "The new text of edit 1 was corrected by the model." in body


SECRET = "ghp_" + "a1B2c3D4e5F6" * 3


def test_unescaping_by_program_says_so(repo: Path) -> None:
    old, new = "sum(items)\\n    return value", "sum(items)\\n    return 2 * value"
    call = {"path": "a.py", "old_str": old, "new_str": new}
    told = apply(repo, json.dumps({"name": "edit_file", "arguments": call}))
    assert told["corrections"] == [
        {"edit": "1", "what": w, "by": "program"} for w in ("old", "new")
    ]
    body = git("log", "-1", "--format=%b", "patchq/response", cwd=repo)
    assert "The old text of edit 1 was corrected by the program." in body


def test_no_secret_is_sent(repo: Path) -> None:
    with serving(RIGHT) as server:
        configure(repo, server)
        told = apply(repo, RESPONSE.replace("2)", f"{SECRET!r})"), code=1)
    assert (told["state"], server.requests) == ("rejected", [])
    assert SECRET not in json.dumps(told)


def test_without_a_model_nothing_is_asked(repo: Path) -> None:
    with serving(RIGHT) as server:
        told = apply(repo, code=1)
        configure(repo, server, ", correct: false")
        again = apply(repo, code=1)
    assert server.requests == []
    for refused in (told, again):
        assert (refused["state"], refused["corrections"]) == ("rejected", [])


@pytest.mark.parametrize(
    ("reply", "code"),
    [("I cannot tell.", "llm.answer"), (Reply(f"not {KEY}", status=401), "llm.server")],
    ids=["prose", "key"],
)
def test_verdict_without_the_model_stands(repo: Path, reply: Reply | str, code: str) -> None:
    bare = apply(repo, code=1)
    with serving([reply]) as server:
        configure(repo, server)
        told = apply(repo, code=1)
    assert [p["code"] for p in told["problems"]] == [code, "match.none"]
    assert told["problems"][1:] == bare["problems"]
    assert told["corrections"] == []
    left = [path.read_bytes() for path in (repo / ".patchq").rglob("*") if path.is_file()]
    assert all(KEY.encode() not in data for data in left)
