"""Readers of logs: cases out of aider's chat history and of Claude Code's sessions.

The samples are written after what both write: their forms, not their words.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from bench.corpus.cases import Case
from bench.corpus.logs.aider import HISTORY
from bench.corpus.logs.claude import claude_cases
from tests.helpers.benches import bench
from tests.helpers.gitrepo import commit_files, git, make_repo

APP = "import sys\n\n\ndef main():\n    print('one')\n    return 0\n"
APP_2 = APP.replace("'one'", "'two'")
APP_3 = APP_2.replace("return 0", "return 1")


def block(path: str, old: str, new: str) -> str:
    return f"{path}\n```python\n<<<<<<< SEARCH\n{old}=======\n{new}>>>>>>> REPLACE\n```\n"


def said(*lines: str) -> str:
    return "".join(f"> {line}  \n" for line in lines)


def asked(*lines: str) -> str:
    return "\n" + "  \n".join(f"#### {line}" for line in lines) + "  \n\n"


# ---------------------------------------------------------------- aider


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """aider committed two answers there; the second one after a commit of the user's own."""
    place = make_repo(tmp_path / "repo", {"app.py": APP, "README": "Read me.\n"})
    hashes = []
    for files in ({"app.py": APP_2}, {"README": "Read it.\n"}, {"app.py": APP_3}):
        commit_files(place, files)
        hashes.append(git("rev-parse", "--short=7", "HEAD", cwd=place))
    first = "I change it.\n\n# Not a heading of aider's\n\n" + block(
        "app.py", "    print('one')\n", "    print('two')\n"
    )
    second = "> A quotation of mine.\n\n" + block(
        "app.py", "    return 0  # at the end\n", "    return 1\n"
    )
    history = (
        "\n# aider chat started at 2025-01-02 03:04:05\n\n"
        + said("/usr/bin/aider", "Model: m with diff edit format", "Git repo: .git with 2 files")
        + asked("say two", "in app.py")
        + f"{first}\n"
        + said("Tokens: 1k sent", "Applied edit to app.py", f"Commit {hashes[0]} feat: Say two")
        + asked("/help")
        + said("some help")
        + asked("what is it?")
        + "It is a program.\n\n"
        + said("Tokens: 1k sent")
        + asked("return 1")
        + f"{second}\n"
        + said(f"Commit {hashes[1]} docs: By hand", "Applied edit to app.py")
        + said(f"Commit {hashes[2]} feat: Return 1")
    )
    (place / HISTORY).write_text(history)
    return place


# ---------------------------------------------------------------- Claude Code

CWD = "/home/ada/project"


class Log:
    """A session's log, written as Claude Code writes it."""

    def __init__(self) -> None:
        self.lines: list[Mapping[str, Any]] = [
            {"type": "summary", "summary": "A session", "leafUuid": "u-0"},
            {"type": "user", "cwd": CWD, "message": {"role": "user", "content": "Do it"}},
        ]

    def call(self, name: str, words: Mapping[str, object], done: object, error: str = "") -> Log:
        id = f"toolu_{len(self.lines):03}"
        use = {"type": "tool_use", "id": id, "name": name, "input": words}
        message = {"model": "m", "role": "assistant", "content": [use], "stop_reason": None}
        self.lines.append({"type": "assistant", "cwd": CWD, "uuid": id, "message": message})
        result: dict[str, object] = {"tool_use_id": id, "type": "tool_result", "content": error}
        if error:
            result["is_error"] = True
        back = {"role": "user", "content": [result]}
        self.lines.append({"type": "user", "cwd": CWD, "message": back, "toolUseResult": done})
        return self

    def cases(self, folder: Path) -> list[Case]:
        path = folder / "session.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in self.lines) + '{"cut')
        return list(claude_cases(path))


def edit(old: str, new: str, path: str = f"{CWD}/app.py", **more: object) -> dict[str, object]:
    return {"file_path": path, "old_string": old, "new_string": new, **more}


def patch(at: int, *lines: str) -> list[dict[str, object]]:
    old = sum(line[0] in " -" for line in lines)
    new = sum(line[0] in " +" for line in lines)
    return [{"oldStart": at, "oldLines": old, "newStart": at, "newLines": new, "lines": [*lines]}]


def edited(original: str | None, hunks: object, **more: object) -> dict[str, object]:
    facts = {"filePath": f"{CWD}/app.py", "originalFile": original, "structuredPatch": hunks}
    return {**facts, "userModified": False, "replaceAll": False, **more}


TWO = patch(4, " def main():", "-    print('one')", "+    print('two')", "     return 0")


def test_a_call_that_no_reader_can_follow_has_to_be_refused(tmp_path: Path) -> None:
    error = "<tool_use_error>Found 2 matches of the string to replace, but replace_all is false."
    done = "Error: Found 2 matches"
    log = Log().call("Edit", edit("'one'", "'two'"), edited(APP, TWO))
    cases = log.call("Edit", edit("return", "yield"), done, error).cases(tmp_path)
    assert [case.expect for case in cases] == ["exact", "refuse"]
    assert cases[1].before["app.py"].decode() == APP_2


@pytest.mark.parametrize(
    ("words", "done", "error"),
    [
        (edit("'one'", "'two'"), "Error: denied", "The user doesn't want to proceed"),  # denied
        (edit("'one'", "'two'"), edited(APP, TWO, userModified=True), ""),  # changed by the user
        (edit("'one'", "'two'", path="/etc/app.py"), edited(APP, TWO), ""),  # outside
        (edit("'one'", "'two'"), edited(None, []), ""),  # unknown file
        (edit("'ten'", "'two'"), edited(APP, []), ""),  # no such text
    ],
)  # fmt: skip
def test_what_is_not_known_is_no_case(
    tmp_path: Path, words: Mapping[str, object], done: object, error: str
) -> None:
    assert not Log().call("Edit", words, done, error).cases(tmp_path)


def test_logs_are_run_like_a_corpus(repo: Path, tmp_path: Path) -> None:
    Log().call("Edit", edit("'one'", "'two'"), edited(APP, TWO)).cases(tmp_path)
    words = ("--aider-history", "repo", "--claude-log", "session.jsonl")
    ended = bench("corpus", *words, "--json", "out.json", cwd=tmp_path)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    results = json.loads((tmp_path / "out.json").read_text())
    assert [result["outcome"] for result in results] == ["exact", "refused", "exact"]
