"""Hostile paths in every format that can carry one (T01-T03, T09, T10): whichever way a path is
written, and whatever is to become of the file, the same spellings are refused."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.helpers.command import block, call, given, patchq
from tests.helpers.gitrepo import git, make_repo
from tests.hostile import paths_of

Way = Callable[[str], str]
GONE, MOVED = "{}\n<<<<<<< DELETE\n>>>>>>> DELETE\n", "{}\n<<<<<<< RENAME\n{}\n>>>>>>> RENAME\n"
FOUND = "FIND:\n```\none\n```\n\nREPLACE WITH:\n```\ntwo\n```\n"


def patch(*lines: str) -> str:
    return "\n".join(("*** Begin Patch", *lines, "*** End Patch\n"))


def diff(old: str, new: str, hunk: str) -> str:
    return f"--- {old}\n+++ {new}\n{hunk}\n"


def headed(path: str, text: str) -> str:
    return f"---\nfile: {json.dumps(path)}\n---\n{text}"


def indexed(**more: str) -> str:
    edit = {"id": "1", "type": "modification", "target": "one", "replacement": "two"}
    return json.dumps({"edits": [edit], **more})


LINES: dict[str, Way] = {
    "block": lambda path: block(path, "", "x\n"),
    "block-edit": lambda path: block(path, "one\n", "two\n"),
    "block-delete": GONE.format,
    "block-rename": lambda path: MOVED.format(path, "z.txt"),
    "block-rename-to": lambda path: MOVED.format("here.txt", path),
    "find": lambda path: f"FILE: {path}\n\n{FOUND}",
    "diff-create": lambda path: diff("/dev/null", f"b/{path}", "@@ -0,0 +1 @@\n+x"),
    "diff-delete": lambda path: diff(f"a/{path}", "/dev/null", "@@ -1 +0,0 @@\n-one"),
    "diff-rename-to": lambda path: (
        f"diff --git a/here.txt b/{path}\nrename from here.txt\nrename to {path}\n"),
    "v4a-create": lambda path: patch(f"*** Add File: {path}", "+x"),
    "v4a-edit": lambda path: patch(f"*** Update File: {path}", "-one", "+two"),
    "v4a-delete": lambda path: patch(f"*** Delete File: {path}"),
    "v4a-rename-to": lambda path: patch("*** Update File: here.txt", f"*** Move to: {path}"),
    "whole": lambda path: f"FILE: {path}\n```\ntwo\n```\n",
    "whole-in-info": lambda path: f"```python:{path}\ntwo\n```\n",
    "whole-below": lambda path: f"{path}\n```\ntwo\n```\n",
}  # fmt: skip
"""Where a path ends with its line, or with what stands round it."""
DATA: dict[str, Way] = {
    "call-create": lambda path: json.dumps({"path": path, "old_str": "", "new_str": "x\n"}),
    "call-edit": lambda path: json.dumps({"path": path, "old_str": "one", "new_str": "two"}),
    "script": lambda path: json.dumps(
        {"file": path, "edits": [
            {"type": "delete", "anchor": {"type": "line_pattern", "selected": "one"}}]}
    ),
    "indexed": lambda path: indexed(file=path),
    "contextual": lambda path: json.dumps(
        {"contextualEdits": [{
            "id": "1", "type": "modification", "file": path, "replacement": "two",
            "searchPattern": {"before": "", "target": "one", "after": "\n"}}]}
    ),
    "header-block": lambda path: headed(path, block("", "", "x\n").lstrip("\n")),
    "header-indexed": lambda path: headed(path, indexed()),
}  # fmt: skip
"""Where a path is a text in quotes."""
NEVER = {
    "t01": ("../x", "a/../b", "/abs", "src//app.py", "a.txt/", ".//a.txt", "./../x", "./.git/x",
        "src/./app.py", "~/x", "C:\\x", "\\\\srv\\x", "/a.txt"),
    "t02": (".git/config", ".GIT/x", ".git./x", ".git /x", "git~1/x", "GIT~2/x",
        ".git::$INDEX_ALLOCATION/x", ".git\\config", "a\\..\\.git\\config"),
    "t03": (".g\u200cit/x", "\uff0e\uff47\uff49\uff54/x", ".g\u0131t/x", ".G\u0130T/x"),
    "t09": ("CON", "d/aux.txt", "COM\u00b9", "d /x.txt", "d./x.txt", "a:b.txt", "a<b.txt"),
    "t10": ("a\rb.txt", "a\x07.txt", "a\u202e.txt", "a\u200b.txt", "a\x85.txt"),
}  # fmt: skip
EDGES = ("a.txt ", " a.txt", "a.txt\t", "\ta.txt", "a.txt\u00a0", "new.txt ", "new.txt\u3000")


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    files = dict.fromkeys(("a.txt", "src/app.py", "here.txt", "new"), "one\n")
    repo = make_repo(tmp_path / "repo", files)
    patchq("init", cwd=repo)
    return repo


def written(ways: dict[str, Way], paths: Sequence[str]) -> dict[str, str]:
    """A response for each way and path, by the way and the number of the path."""
    return {
        f"{way}.{number}": write(path)
        for way, write in ways.items()
        for number, path in enumerate(paths)
    }


def landed(repo: Path, responses: dict[str, str]) -> dict[str, list[str]]:
    """The paths that each response would change, for those that are not refused."""
    reports = given(repo, responses)
    assert len(reports) == len(responses)
    return {
        name: [path for _, path in paths_of(repo, told["commit"])] if told["commit"] else []
        for name, told in reports.items()
        if told["state"] != "rejected"
    }


@pytest.mark.parametrize("row", NEVER)
def test_t01_t02_t03_t09_t10_no_format_carries_a_path_that_is_refused(repo: Path, row: str) -> None:
    assert landed(repo, written({**LINES, **DATA}, NEVER[row])) == {}


def test_t09_a_blank_at_the_edge_of_a_quoted_path_is_part_of_it(repo: Path) -> None:
    assert landed(repo, written(DATA, EDGES)) == {}


def test_t09_a_blank_at_a_lines_end_is_none_of_the_path(repo: Path) -> None:
    found = landed(repo, {way: LINES[way]("a.txt ") for way in ("block-edit", "v4a-edit", "find")})
    assert set(map(tuple, found.values())) == {("a.txt",)}
    assert len(found) == 3


@pytest.mark.parametrize(
    ("path", "likely"),
    [("src/./app.py", "src/app.py"), ("src//app.py", "src/app.py"),
     ("new.txt ", "new.txt"), ("../a.txt", None), ("/a.txt", None), ("./.git/x", None)],
)  # fmt: skip
def test_t01_t09_the_hint_names_the_path_that_was_meant(
    repo: Path, path: str, likely: str | None
) -> None:
    told = patchq("--json", "check", "-", cwd=repo, stdin=call(path), code=1).json()
    (problem,) = told["problems"]
    assert problem["code"] in ("path.invalid", "path.outside")
    assert problem["hint"].startswith("write it as ") == (likely is not None)
    assert likely is None or problem["hint"] == f"write it as {likely}"


def test_t01_a_diffs_first_component_may_be_a_dot(repo: Path) -> None:
    text = diff("./src/app.py", "./src/app.py", "@@ -1 +1 @@\n-one\n+two")
    assert landed(repo, {"dot": text}) == {"dot": ["src/app.py"]}
    git("apply", "--check", "-", cwd=repo, stdin=text)


def test_t01_a_backtick_belongs_to_the_path_unless_there_are_two(repo: Path) -> None:
    found = landed(repo, {"tick": LINES["diff-create"]("`x`")})
    assert found == {"tick": ["`x`"]}
