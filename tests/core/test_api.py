"""`import patchq`: what an answer makes of a mapping of files."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
import rapidfuzz

import patchq
from tests.helpers.pages import ROOT

FILES = {"a.py": "one = 1\ntwo = 2\n", "b.py": "three = 3\n"}


def block(old: str, new: str, path: str = "a.py") -> str:
    return f"{path}\n<<<<<<< SEARCH\n{old}=======\n{new}>>>>>>> REPLACE\n"


EDIT = block("two = 2\n", "two = 22\n")
AFTER: dict[str, bytes | None] = {"a.py": b"one = 1\ntwo = 22\n"}


BY_FORMAT = {
    "search_replace": EDIT,
    "find_replace": "FILE: a.py\n\n### CHANGE 1: more\nFIND:\n```python\ntwo = 2\n```\n\n"
    "REPLACE WITH:\n```python\ntwo = 22\n```\n",
    "edit_script": '{"file": "a.py", "edits": [{"type": "replace", "content": "two = 22\\n", '
    '"anchor": {"type": "line_pattern", "selected": "two = 2"}}]}',
    "indexed": '{"edits": [{"id": "edit-1", "type": "modification", "file": "a.py", '
    '"target": "two = 2", "replacement": "two = 22"}]}',
    "contextual": '{"contextualEdits": [{"id": "ctx-1", "type": "modification", "file": "a.py", '
    '"searchPattern": {"before": "two = ", "target": "2"}, "replacement": "22"}]}',
    "edit_calls": '{"name": "Edit", "input": {"file_path": "a.py", "old_string": "two = 2", '
    '"new_string": "two = 22"}}',
    "v4a": "*** Begin Patch\n*** Update File: a.py\n@@\n-two = 2\n+two = 22\n*** End Patch\n",
    "unified_diff": "--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,2 @@\n one = 1\n-two = 2\n+two = 22\n",
    "whole_file": "```python:a.py\none = 1\ntwo = 22\n```\n",
}  # fmt: skip
"""The same change in each format."""


class Unreadable(dict[str, str]):
    """Files of which `a.py` cannot be read."""

    def __getitem__(self, path: str) -> str:
        if path == "a.py":
            raise PermissionError(13, "Permission denied", path)
        return super().__getitem__(path)


@pytest.mark.parametrize(
    ("answer", "files"),
    [
        *(pytest.param(answer, AFTER, id=name) for name, answer in BY_FORMAT.items()),
        (block("", "four = 4\n", "c.py"), {"c.py": b"four = 4\n"}),  # create
        ("b.py\n<<<<<<< DELETE\n>>>>>>> DELETE\n", {"b.py": None}),  # delete
        ("b.py\n<<<<<<< RENAME\nc.py\n>>>>>>> RENAME\n", {"b.py": None, "c.py": b"three = 3\n"}),
    ],
)  # fmt: skip
@pytest.mark.parametrize("kind", [str, bytes])
def test_new_contents(answer: str, files: dict[str, bytes | None], kind: type) -> None:
    result = patchq.apply(answer if kind is str else answer.encode(), FILES)
    assert result.raise_for_refusal() is result
    assert result.files == files
    assert result.diff.startswith("diff --git a/")
    assert result.retry_prompt() == ""


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (b"\xff", "response.not_text"),
        ("\ud800", "response.not_text"),
        ("a.py\n<<<<<<< SEARCH\nx\n", "response.truncated"),
        (EDIT + block("gone = 0\n", "x = 1\n", "b.py"), "match.none"),
        (block("x\n", "y\n", "c.py"), "path.not_found"),
        (block("", "KEY=1\n", ".env"), "path.denied"),
        (block("two = 2\n", "two = (\n"), "result.syntax"),
    ],
)  # fmt: skip
def test_a_refusal_is_a_value(answer: str | bytes, code: str) -> None:
    result = patchq.apply(answer, FILES)
    assert (result.ok, result.files, result.changes, result.diff) == (False, {}, (), "")
    assert code in [problem.code for problem in result.errors]
    assert all(edit.state != "applied" for edit in result.edits)
    with pytest.raises(patchq.Refused) as raised:
        result.raise_for_refusal()
    assert raised.value.result is result


def test_a_file_that_cannot_be_read_refuses() -> None:
    (problem,) = patchq.apply(EDIT, Unreadable(FILES)).errors
    assert problem.code == "file.unreadable"
    assert "Permission denied" in problem.message
    assert patchq.apply(block("three = 3\n", "three = 33\n", "b.py"), Unreadable(FILES)).ok


@pytest.mark.parametrize(
    ("key", "error"), [("/a.py", ValueError), ("a/../b", ValueError), (Path("a.py"), TypeError)]
)
def test_a_key_that_is_no_path_raises(key: str, error: type[Exception]) -> None:
    with pytest.raises(error, match="files: expected each key"):
        patchq.apply(EDIT, {key: ""})


def test_a_change_shown_beside_the_edits_is_a_warning() -> None:
    shown = "And the limit:\n\n```python\nLIMIT = 9\n```\n"
    result = patchq.apply(f"{EDIT}\n{shown}", FILES)
    assert (result.ok, result.files) == (True, AFTER)
    assert [problem.code for problem in result.problems] == ["response.beside"]


ELIDED = block("two = 2\n", "# ... rest unchanged ...\n")
UNSURE = BY_FORMAT["indexed"].replace('"id"', '"confidence": 0.6, "id"')


@pytest.mark.parametrize(
    ("answer", "strict", "lax"),
    [
        (block("two = 2  \n", "two = 22\n"), patchq.Rules(levels=("exact",)), patchq.Rules()),
        (EDIT, patchq.Rules(deny=lambda path: "no"), patchq.Rules()),  # deny
        (EDIT, patchq.Rules(max_file_bytes=8), patchq.Rules()),  # max_file_bytes
        (ELIDED, patchq.Rules(), patchq.Rules(elision=False)),  # elision
        ("```python:a.py\none = 1\n```\n", patchq.Rules(min_kept=0.6), patchq.Rules()),  # min_kept
        (UNSURE, patchq.Rules(), patchq.Rules(min_confidence=0.5)),  # min_confidence
        (block("two = 2\n", "two = (\n"), patchq.Rules(), patchq.Rules(syntax=False)),  # syntax
    ],
)  # fmt: skip
def test_rules(answer: str, strict: patchq.Rules, lax: patchq.Rules) -> None:
    outcomes = [patchq.apply(answer, FILES, rules).ok for rules in (strict, lax)]
    assert outcomes == [False, True]


def test_rules_that_mean_nothing_raise() -> None:
    with pytest.raises(ValueError, match="levels: expected 'exact'"):
        patchq.Rules(levels=("fuzzy",))
    with pytest.raises(ValueError, match="min_kept: expected 0 to 1"):
        patchq.Rules(min_kept=50)


def test_each_format_has_its_row() -> None:
    assert tuple(BY_FORMAT) == patchq.formats()


def test_the_page_runs_as_it_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs/library.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```$", text, re.M | re.S)
    assert len(blocks) >= 8
    names: dict[str, object] = {"__name__": "page"}
    for code in blocks:
        exec(compile(code, "docs/library.md", "exec"), names)


ALONE = f"""
import sys
import patchq
result = patchq.apply({EDIT!r}, {FILES!r})
assert result.files == {AFTER!r}
assert patchq.apply({EDIT!r}, {{"a.py": "one = 1"}}).retry_prompt()
never = {{"pygit2", "watchdog", "subprocess", "logging", "rich", "argparse", "pathspec", "yaml"}}
print(sorted(never & sys.modules.keys()))
"""


def test_it_works_with_its_own_dependencies_alone(tmp_path: Path) -> None:
    for package in (patchq, msgspec, rapidfuzz):
        (tmp_path / package.__name__).symlink_to(Path(str(package.__file__)).parent)
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n{ALONE}"
    run = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, timeout=60
    )
    assert (run.stdout, run.stderr) == ("[]\n", "")
