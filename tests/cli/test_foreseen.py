"""What a dry run says to do can be done: it names no batch that there is not."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.helpers.command import block, patchq
from tests.helpers.gitrepo import git, make_repo

FILES = {
    "a.py": "one\n",
    "b.py": "two\n",
    "Makefile": "all:\n",
    ".patchq.yaml": "mode: auto\ntarget: main\n",
}
_PROGRAM = "diff --git a/p b/p\nnew file mode 100755\n--- /dev/null\n+++ b/p\n@@ -0,0 +1 @@\n+x\n"


def _whole(path: str, text: str) -> str:
    return json.dumps([{"name": "write", "arguments": {"file_path": path, "content": f"{text}\n"}}])


def _dirty(repo: Path) -> None:
    (repo / "a.py").write_text("mine\n")


def _unseen(repo: Path) -> None:
    git("checkout", "-q", "-b", "side", cwd=repo)
    git("worktree", "add", "-q", str(repo.parent / "away"), "main", cwd=repo)
    (repo.parent / "away").rename(repo.parent / "moved")


def _busy(repo: Path) -> None:
    (repo / ".git/MERGE_HEAD").write_text(git("rev-parse", "HEAD", cwd=repo) + "\n")


def _waiting(repo: Path) -> None:
    patchq("apply", "-", cwd=repo, stdin="---\nid: w\n---\n" + _whole("a.py", "three"))


def _held(repo: Path) -> None:
    text = "---\nid: h\ndepends_on: [no]\n---\n" + block("a.py", "one\n", "3\n")
    patchq("apply", "-", cwd=repo, stdin=text)


def _nothing(repo: Path) -> None:
    pass


ASKS: Mapping[str, tuple[str, Callable[[Path], None], str]] = {
    "a path to look at": (block("Makefile", "all:\n", "all: x\n"), _nothing, "path.review"),
    "a program": (_PROGRAM, _nothing, "path.review"),
    "written blindly": (_whole("a.py", "x"), _nothing, "base.unknown"),
    "somebody's own changes": (block("a.py", "one\n", "1\n"), _dirty, "worktree.dirty"),
    "a work tree out of reach": (block("a.py", "one\n", "1\n"), _unseen, "worktree.unseen"),
    "a merge under way": (block("a.py", "one\n", "1\n"), _busy, "target.busy"),
    "what waits": (block("a.py", "one\n", "1\n"), _waiting, "conflict.pending"),
    "what is held": (block("a.py", "one\n", "1\n"), _held, "conflict.pending"),
    "a miss": (block("a.py", "none\n", "1\n"), _nothing, "match.none"),
    "an unknown base": (
        "---\nbase: 1234567\n---\n" + block("a.py", "one\n", "1\n"),
        _nothing,
        "frontmatter.base",
    ),
    "a retry of nothing": (
        "---\nretries: none\n---\n" + block("a.py", "one\n", "1\n"),
        _nothing,
        "",
    ),
}


@pytest.mark.parametrize(("text", "prepare", "code"), ASKS.values(), ids=ASKS)
def test_each_hint_of_a_dry_run_can_be_followed(
    tmp_path: Path, text: str, prepare: Callable[[Path], None], code: str
) -> None:
    repo = make_repo(tmp_path / "repo", FILES)
    patchq("init", cwd=repo)
    prepare(repo)
    report = patchq("--json", "check", "-", cwd=repo, stdin=text, code=None).json()
    codes = [problem["code"] for problem in report["problems"]]
    assert not code or code in codes, report["problems"]
    hints = [problem["hint"] or "" for problem in report["problems"]]
    page = patchq("check", "-", cwd=repo, stdin=text, code=None).out
    for hint in hints:
        assert not re.search(r"patchq (accept|retry|discard|send-back)\b", hint), hint
    for command in re.findall(r"`patchq ([^`]+)`", page):
        assert patchq(*shlex.split(command), cwd=repo, code=None).code != 2, command
