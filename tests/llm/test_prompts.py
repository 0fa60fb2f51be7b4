"""The prompt that asks for edits: its form, what it shows, and that quotations stay quotations."""

from __future__ import annotations

import re
from pathlib import Path
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from patchq.core.formats.registry import FORMATS
from patchq.llm.prompts import ShownFile, Task, build, is_large_file, quoted
from tests.helpers.command import block, drop, patchq, report
from tests.helpers.gitrepo import git, make_repo, write_config

BASE = "c0" * 20
SMALL = "def f():\n    return 1\n"
LARGE = "".join(f"def f{n}():\n    return {n}\n\n\n" for n in range(200))


def task(*files: ShownFile, **more: object) -> Task:
    return replace(Task("Do it", files, BASE), **more)


SIZES = {
    "500 lines": ("x\n" * 500, False),
    "501 lines": ("x\n" * 501, True),
    "15000 bytes": ("x" * 15_000, False),
    "15001 bytes": ("x" * 15_001, True),
}


@pytest.mark.parametrize(("text", "large"), SIZES.values(), ids=SIZES)
def test_large_files(text: str, large: bool) -> None:
    assert is_large_file(text) is large


NEW = ShownFile("new.py", None)
BIG, PART = ShownFile("a.py", LARGE), ShownFile("a.md", LARGE * 20, 9)
FORMS = {
    "new": ((NEW,), "auto", {"whole_file"}, "whole"),
    "large and new": ((BIG, NEW), "auto", {"find_replace", "whole_file"}, "diff"),
    "script": ((ShownFile("a.py", SMALL),), "edit-script", {"edit_script"}, "edit-script"),
    "indexed, of which a part is shown": ((PART,), "indexed", {"contextual"}, "contextual"),
}


@pytest.mark.parametrize(("files", "form", "formats", "kind"), FORMS.values(), ids=FORMS)
def test_the_form_follows_the_file(
    files: tuple[ShownFile, ...], form: str, formats: set[str], kind: str
) -> None:
    prompt = build(task(*files, form=form))
    told = {name for name, module in FORMATS.items() if module.instructions.rstrip() in prompt.text}
    assert told == formats
    assert prompt.form == kind
    assert f"---\nbase: {BASE}\n---\n" in prompt.text


def test_a_file_of_which_a_part_is_shown_is_never_asked_for_whole() -> None:
    prompt = build(task(ShownFile("a.py", "x = 1\n" * 400)), budget=600)
    assert prompt.form == "diff"
    assert "Left out here, and to stay as they are: lines 101-400." in prompt.text


@given(st.lists(st.sampled_from(["`", "```", "```json", "~~~", "\n", "text", " "])).map("".join))
def test_nothing_in_a_text_ends_its_quotation(text: str) -> None:
    fence, *lines, end = quoted(text).split("\n")
    assert fence == end
    assert set(fence) == {"`"}
    assert not any(fence in line for line in lines)
    assert "\n".join([*lines, ""]).removesuffix("\n") == text.removesuffix("\n")


def test_tests_are_shown_and_no_form_is_asked_for_them() -> None:
    text = build(task(ShownFile("a.py", SMALL), tests=(ShownFile("test_a.py", "import a\n"),))).text
    assert "do not change them\n\n### `test_a.py`, all of its 1 lines\n\n```\nimport a\n```" in text


def test_a_script_selects_from_the_ranked_candidates() -> None:
    prompt = build(task(ShownFile("big.py", LARGE, 401)), form="edit-script")
    (offered,) = prompt.candidates.values()
    assert offered[:2] == ("def f100():", "f100")
    assert '{"type": "function_definition", "selected": "def f100():"' in prompt.text
    assert "return 199" not in offered


PATCH = "--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-old\n+new\n"


def test_a_reference_patch_is_shown() -> None:
    text = build(task(ShownFile("a.py", SMALL), reference=PATCH)).text
    assert "## A patch for reference\n\n" in text
    assert f"```\n{PATCH}```" in text
    assert "for reference" not in build(task(ShownFile("a.py", SMALL), reference="\n")).text


FILES = MappingProxyType({"src/a.py": SMALL, "big.py": LARGE, "crlf.txt": "a\r\nb\r\n"})


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return make_repo(tmp_path, FILES)


def test_prompt_needs_no_queue_and_no_model(repo: Path) -> None:
    done = patchq("prompt", "src/a.py", "new.py", "--task", "Do it", cwd=repo)
    assert f"\n```\n{SMALL}```\n" in done.out
    assert "### `new.py`\n\nIt does not exist yet." in done.out
    assert not (repo / ".patchq").exists()


def test_the_thresholds_are_the_configuration_s_and_the_base_may_be_earlier(repo: Path) -> None:
    words = ("--json", "prompt", "src/a.py", "--task", "x")
    first = git("rev-parse", "HEAD", cwd=repo)
    assert patchq(*words, cwd=repo).json()["form"] == "whole"
    (repo / "src/a.py").write_text("other\nlines\n")
    write_config(repo, "version: 1\nlarge_file: {lines: 1}\n")
    git("commit", "-aqm", "x", cwd=repo)
    assert patchq(*words, cwd=repo).json()["form"] == "diff"
    done = patchq("prompt", "src/a.py", "--task", "x", "--base", first, cwd=repo)
    assert SMALL in done.out
    assert f"base: {first}\n" in done.out


WRONG = {
    "outside": (["../x.py"], "path.outside"),
    "denied": ([".env"], "path.denied"),
    "line of no file": (["src/a.py", "--line", "b.py:3"], "is not one of the files"),
    "line of two": (["src/a.py", "big.py", "--line", "3"], "which file?"),
}


@pytest.mark.parametrize(("words", "said"), WRONG.values(), ids=WRONG)
def test_usage(words: list[str], said: str, repo: Path) -> None:
    done = patchq("prompt", *words, "--task", "x", cwd=repo, code=2)
    assert said in done.err


ANSWERS = {
    "whole": "```python:src/a.py\ndef f():\n    return 2\n```\n",
    "diff": "FILE: src/a.py\n\n### CHANGE 1: two\nFIND:\n```python\n    return 1\n```\n\n"
    "REPLACE WITH:\n```python\n    return 2\n```\n",
    "edit-script": '{"file": "src/a.py", "edits": [{"type": "replace", "anchor": {"type": '
    '"line_pattern", "selected": "return 1"}, "content": "    return 2\\n"}]}\n',
    "indexed": '{"edits": [{"id": "edit-1", "type": "modification", "file": "src/a.py", "target": '
    '"return 1", "replacement": "return 2", "occurrences": [1], "confidence": 0.9}]}\n',
    "contextual": '{"contextualEdits": [{"id": "1", "type": "modification", "file": "src/a.py", '
    '"searchPattern": {"before": "return ", "target": "1", "after": "\\n"}, '
    '"replacement": "2"}]}\n',
}


@pytest.mark.parametrize("form", ANSWERS)
def test_an_answer_in_the_form_asked_for_is_applied(form: str, repo: Path) -> None:
    write_config(repo, "version: 1\nmode: auto\n")
    patchq("init", cwd=repo)
    prompt = patchq("prompt", "src/a.py", "--form", form, "--task", "x", cwd=repo).out
    header = re.search(r"^---\nbase: \w+\n---\n", prompt, re.MULTILINE)
    assert header
    drop(repo / ".patchq", {"hand.md": f"{header[0]}\n{ANSWERS[form]}"})
    patchq("run", cwd=repo)
    told = report(repo / ".patchq", "hand")
    assert (told["state"], told["base"]["how"]) == ("applied", "declared")
    assert git("show", "main:src/a.py", cwd=repo) == "def f():\n    return 2"


def test_stats(repo: Path) -> None:
    patchq("init", cwd=repo)
    header = "---\nagent: coder\nmodel: m-1\n---\n"
    good, bad = block("src/a.py", "    return 1\n", "    return 2\n"), "FILE: a.py\n\nFIND:\n```\n"
    missed = block("src/a.py", "    return 8\n", "    return 9\n")
    shifted = block("src/a.py", "return 1\n", "return 3\n")
    sent = {"1.md": header + good, "2.md": missed, "3.md": header + bad, "4.md": shifted}
    drop(repo / ".patchq", sent)
    patchq("run", cwd=repo, code=1)
    (row,) = patchq("--json", "stats", cwd=repo).json()["rows"]
    assert row["responses"] == 4
    assert row["verdicts"] == {"proposed": 2, "rejected": 2}
    assert row["matches"] == {"exact": 1, "indentation": 1}
    assert row["refusals"] == {"match.none": 1, "response.truncated": 1}
    patchq("accept", "1", cwd=repo)
    (row,) = patchq("--json", "stats", cwd=repo).json()["rows"]
    assert row["decisions"] == {"accepted": 1}
    rows = patchq("--json", "stats", "--by", "agent", cwd=repo).json()["rows"]
    each = {"proposed": 1, "rejected": 1}
    assert {row["name"]: row["verdicts"] for row in rows} == {"coder": each, None: each}
    (row,) = patchq("--json", "stats", "--by", "format", cwd=repo).json()["rows"]
    assert (row["name"], row["matches"]) == ("search_replace", {"exact": 1, "indentation": 1})
    table = patchq("stats", "--by", "model", cwd=repo).out
    assert "model m-1: 2 responses, 1 edit\n  verdicts    proposed 1, rejected 1\n" in table
