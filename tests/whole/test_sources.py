"""The test tables of the documents that patchq comes from, row by row; `docs/sources.md` says which
document each number is.  The id of a test is the row's."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from patchq.core import formats
from patchq.core.formats import find_replace
from patchq.core.formats.envelope.front_matter import open_response
from patchq.core.model.values import Edit, Envelope, Plan, Problem
from patchq.core.plan import batch
from patchq.core.resolve.levels import unescape
from patchq.llm.corrections import NEW, OLD
from patchq.llm.prompts import ShownFile, Task, build, is_large_file
from tests.helpers.chat_server import serving
from tests.helpers.command import block, drop, give, patchq
from tests.helpers.gitrepo import git, make_repo, write_config
from tests.helpers.trees import RULES, DictTree

Files = Mapping[str, str]


def parsed(response: str, known: Files) -> tuple[tuple[Edit, ...], tuple[Problem, ...]]:
    opened = open_response(response.encode())
    assert isinstance(opened, Envelope)
    told = formats.parse(opened.text, known.__contains__, opened.header, opened.first_line)
    return told.edits, told.problems


def planned(files: Files, response: str) -> Plan:
    edits, problems = parsed(response, files)
    assert not problems
    return batch.plan(edits, DictTree(files), RULES)


def made(files: Files, response: str) -> dict[str, str | None]:
    """What the response makes of the files that it changes."""
    plan = planned(files, response)
    assert not plan.refused, plan.problems
    return {c.path: c.after.decode() if c.after is not None else None for c in plan.changes}


def refused(files: Files, response: str) -> Problem:
    """Why it makes nothing of them."""
    plan = planned(files, response)
    (problem,) = plan.problems
    assert plan.changes == ()
    return problem


ORIGINAL = "import os\n\n\ndef one():\n    return 1\n\n\ndef two():\n    return 2\n"


def change(number: int, find: str, replace: str) -> str:
    return (
        f"### CHANGE {number}: change {number}\nFIND:\n```python\n{find}```\n\n"
        f"REPLACE WITH:\n```python\n{replace}```\n\n"
    )


def changes(*pairs: tuple[str, str]) -> str:
    return "FILE: a.py\n\n" + "".join(change(n, *pair) for n, pair in enumerate(pairs, 1))


THREE = (
    ("import os\n", "import sys\n"), ("    return 1\n", "    return 10\n"),
    ("    return 2\n", "    return 20\n"),
)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "large"),
    [("x\n" * 501, True), ("x" * 15_001, True), ("a line of some thirty letters.\n" * 100, False)],
    ids=["T010", "T020", "T030"],
)
def test_t010_large_by_lines(text: str, large: bool) -> None:
    assert is_large_file(text) == large


def test_t040_t050_parse() -> None:
    edits, problems = parsed(changes(*THREE), {"a.py": ORIGINAL})
    assert [edit.description for edit in edits] == ["change 1", "change 2", "change 3"]
    assert ({edit.path for edit in edits}, problems) == ({"a.py"}, ())


def test_t070_t080_apply_changes() -> None:
    wanted = ORIGINAL
    for find, replacement in THREE:
        wanted = wanted.replace(find, replacement)
    assert made({"a.py": ORIGINAL}, changes(*THREE)) == {"a.py": wanted}


MISSED = (
    (ORIGINAL + ORIGINAL, "    return 1\n", "match.ambiguous", (5, 14)),
    (ORIGINAL, "    return 7\n", "match.none", ()),
)


@pytest.mark.parametrize(("text", "find", "code", "lines"), MISSED, ids=["T090", "T100"])
def test_t090_t100_find(text: str, find: str, code: str, lines: tuple[int, ...]) -> None:
    problem = refused({"a.py": text}, changes((find, "    return 8\n")))
    assert problem.code == code
    assert tuple(candidate.line for candidate in problem.candidates) == lines
    assert lines or problem.excerpt


TEXT = {"type": "text", "text": changes(THREE[0])}
CUT = {"type": "message", "role": "assistant", "content": [TEXT], "stop_reason": "max_tokens"}
HALF = "FILE: a.py\n\n### CHANGE 1: x\nFIND:\n```python\nimport os\n```\n\nThat is all.\n"
UNREAD = ((HALF, "response.unreadable_edit"), (json.dumps(CUT), "response.truncated"))


@pytest.mark.parametrize(("answer", "code"), UNREAD, ids=["T060", "T110"])
def test_t060_t110_malformed_and_cut(answer: str, code: str) -> None:
    edits, (problem,) = parsed(answer, {"a.py": ORIGINAL})
    assert (edits, problem.code) == ((), code)


def test_t120_prompt_with_instructions() -> None:
    prompt = build(Task("Do it", (ShownFile("a.py", ORIGINAL * 100),), "c0" * 20))
    assert prompt.form == "diff"
    assert find_replace.INSTRUCTIONS.rstrip() in prompt.text
    assert "FIND:" in prompt.text
    assert "REPLACE WITH:" in prompt.text


def test_t130_whitespace_fallback() -> None:
    shifted = ("def one():\n  return 1\n", "def one():\n  return 10\n")
    assert refused({"a.py": ORIGINAL}, changes(shifted)).code == "match.none", "not uniform"
    bare = ("return 1\n", "return 10\n")
    assert made({"a.py": ORIGINAL}, changes(bare)) == {
        "a.py": ORIGINAL.replace("return 1", "return 10")
    }


def script(*edits: dict[str, Any]) -> str:
    return json.dumps({"file": "a.py", "edits": edits})


def edit(type: str, kind: str, selected: str, content: str | None = None) -> dict[str, Any]:
    said = {"type": type, "anchor": {"type": kind, "selected": selected}}
    return said if content is None else {**said, "content": content}


SCRIPTS = {
    "simple function replacement": (
        (edit("replace", "function_definition", "def one():", "def one():\n    return 10\n"),),
        ORIGINAL.replace("return 1\n", "return 10\n")),
    "line insertion after anchor": (
        (edit("insert_after", "import_statement", "import os", "import sys\n"),),
        ORIGINAL.replace("import os\n", "import os\nimport sys\n")),
    "multiple edits in sequence": (
        (
            edit("insert_before", "line_pattern", "    return 1", "    # one\n"),
            edit("delete", "line_pattern", "import os"),
            edit("replace", "line_pattern", "    return 2", "    return 20\n"),
        ),
        ORIGINAL.replace("    return 1", "    # one\n    return 1")
        .replace("import os\n", "")
        .replace("return 2", "return 20"),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("edits", "wanted"), SCRIPTS.values(), ids=SCRIPTS)
def test_001(edits: tuple[dict[str, Any], ...], wanted: str) -> None:
    wholly = [
        {**one, "scope": "definition"} if "def" in one["anchor"]["selected"] else one
        for one in edits
    ]
    assert made({"a.py": ORIGINAL}, script(*wholly)) == {"a.py": wanted}


def test_001_ambiguous_anchor() -> None:
    problem = refused(
        {"a.py": ORIGINAL + ORIGINAL}, script(edit("delete", "line_pattern", "    return 1"))
    )
    assert problem.code == "anchor.ambiguous"
    assert [candidate.line for candidate in problem.candidates] == [5, 14]


def test_001_f1_anchor_not_found() -> None:
    problem = refused({"a.py": ORIGINAL}, script(edit("delete", "line_pattern", "return 11")))
    assert problem.code == "anchor.none"
    assert "did you mean 'return 1'?" in (problem.hint or "")


def test_001_f2_anchor_is_decided_by_its_stated_line() -> None:
    stated = edit("delete", "line_pattern", "    return 1")
    stated["anchor"]["line"] = 14
    wanted = ORIGINAL + ORIGINAL.replace("    return 1\n", "")
    assert made({"a.py": ORIGINAL + ORIGINAL}, script(stated)) == {"a.py": wanted}


UNESCAPED = {
    "newline": (r"a\nb", "a\nb"),
    "tab": (r"a\tb", "a\tb"),
    "quote": (r"a\"b", 'a"b'),
    "backslash": (r"a\\b", r"a\b"),
    "mixed": ('a\n\\tb\\"c"', 'a\n\tb"c"'),
    "none": ("a b", "a b"),
    "empty": ("", ""),
}  # fmt: skip


@pytest.mark.parametrize(("text", "plain"), UNESCAPED.values(), ids=UNESCAPED)
def test_003_unescape(text: str, plain: str) -> None:
    assert unescape(text.encode()).decode() == plain


def call(path: str, old: str, new: str, expected: int | None = 1) -> str:
    said = {"path": path, "old_str": old, "new_str": new, "expected_replacements": expected}
    return json.dumps([{k: v for k, v in said.items() if v is not None}])


LONG = "".join(f"line {n} of many\n" for n in range(3000))
CALLS = {
    "baseline": ("a = 1\nb = 2\n", "a = 1\n", "a = 3\n", "a = 3\nb = 2\n"),
    "old_str is unescaped": ("a = 1\nb = 2\n", r"a = 1\nb = 2", "c = 3", "c = 3\n"),
    "new_str is unescaped": ("a = 1\nb = 2\n", r"a = 1\nb = 2", r"c = 3\nd = 4", "c = 3\nd = 4\n"),
    "multi-line": ("a\nb\nc\n", "a\nb\n", "x\ny\nz\n", "x\ny\nz\nc\n"),
    "very long": (LONG, LONG, LONG.replace("many", "few"), LONG.replace("many", "few")),
    "creation": (None, "", "fresh\n", "fresh\n"),
    "empty file": ("", "", "fresh\n", "fresh\n"),
}  # fmt: skip


@pytest.mark.parametrize(("there", "old", "new", "wanted"), CALLS.values(), ids=CALLS)
def test_003(there: str | None, old: str, new: str, wanted: str) -> None:
    files = {} if there is None else {"a.txt": there}
    assert made(files, call("a.txt", old, new)) == {"a.txt": wanted}


REFUSED_CALLS = {
    "old_str is not there": ("a\n", "b\n", "c\n", "match.none"),
    "expected_replacements": ("a = b + c\n" * 2, r"a = b + c\n".replace("\\n", ""), "x",
        "match.count"),
    "creation over a file": ("a\n", "", "c\n", "path.exists"),
}  # fmt: skip


@pytest.mark.parametrize(("there", "old", "new", "code"), REFUSED_CALLS.values(), ids=REFUSED_CALLS)
def test_003_refused(there: str, old: str, new: str, code: str) -> None:
    assert refused({"a.txt": there}, call("a.txt", old, new)).code == code


CONFIG_JS = """\
// Existing content in config.js
const API_URL = "https://old.api/v1" // Note: double quotes, missing semicolon
"""
OLD_STR, NEW_STR = (f"const API_URL = 'https://{name}';" for name in ("old.api/v1", "new.api/v2"))
THERE, FRESH = (f'const API_URL = "https://{name}"' for name in ("old.api/v1", "new.api/v2"))


def place(root: Path, files: Files, config: str = "") -> Path:
    """A repository in auto mode, with its queue."""
    make_repo(root, files)
    write_config(root, f"version: 1\nmode: auto\n{config}")
    patchq("init", cwd=root)
    return root


def landed(root: Path, path: str) -> str:
    return git("show", f"main:{path}", cwd=root) + "\n"


def test_003_example_1(tmp_path: Path) -> None:
    """Unescaping `old_str` by program."""
    at = place(tmp_path, {"my_file.txt": 'print("Hello\nWorld")\n'})
    told = give(
        at,
        "it",
        call("my_file.txt", 'print("Hello\\nWorld")', 'print("Hello New Session")'),
        code=None,
    )
    assert told["state"] == "applied"
    assert landed(at, "my_file.txt") == 'print("Hello New Session")\n'
    assert told["corrections"] == [{"edit": "1", "what": "old", "by": "program"}]


def test_003_example_2(tmp_path: Path) -> None:
    """`old_str` and `new_str` corrected by a model."""
    with serving([json.dumps({OLD: THERE}), json.dumps({NEW: FRESH})]) as server:
        llm = f"llm: {{base_url: {server.base_url}, model: m-1}}\n"
        at = place(tmp_path, {"config.js": CONFIG_JS}, llm)
        told = give(at, "it", call("config.js", OLD_STR, NEW_STR), code=None)
        assert told["state"] == "applied", told["problems"]
        assert landed(at, "config.js") == CONFIG_JS.replace(THERE, FRESH)
        assert [(one["what"], one["by"]) for one in told["corrections"]] == [
            ("old", "model"),
            ("new", "model"),
        ]
        assert len(server.requests) == 2


WRONG = {
    "not found": json.dumps({OLD: ""}),
    "not in the file": json.dumps({OLD: "const OTHER = 1"}),
    "several matches": json.dumps({OLD: "const"}),
    "prose": "I think it is the second line.",
}  # fmt: skip


@pytest.mark.parametrize("answer", WRONG.values(), ids=WRONG)
def test_003_correction_fails(answer: str, tmp_path: Path) -> None:
    with serving([answer]) as server:
        llm = f"llm: {{base_url: {server.base_url}, model: m-1}}\n"
        at = place(tmp_path, {"config.js": CONFIG_JS + "const X = 1\n"}, llm)
        told = give(at, "it", call("config.js", OLD_STR, NEW_STR), code=None)
        errors = [p["alias"] for p in told["problems"] if p["severity"] == "error"]
        assert errors == ["EDIT_NO_OCCURRENCE_FOUND"]
        assert landed(at, "config.js") == CONFIG_JS + "const X = 1\n"


ONE = block("a.py", "    return 1\n", "    return 10\n")
OTHER = block("b.py", "x = 1\n", "x = 2\n")
PAIR = {"a.py": ORIGINAL, "b.py": "x = 1\n"}
TEN: dict[str, str | None] = {"a.py": ORIGINAL.replace("return 1", "return 10")}
BLOCKS: dict[str, tuple[str, dict[str, str | None]]] = {
    "single edit": (ONE, TEN),
    "create": (block("new.py", "", "y = 1\n"), {"new.py": "y = 1\n"}),
    "delete": (block("a.py", "import os\n", ""), {"a.py": ORIGINAL.removeprefix("import os\n")}),
    "multi-edit same file": (ONE + block("a.py", "    return 2\n", "    return 20\n"),
        {"a.py": ORIGINAL.replace("return 1", "return 10").replace("return 2", "return 20")}),
    "multi-file": (ONE + "\n" + OTHER, {**TEN, "b.py": "x = 2\n"}),
    "prose mixed": (f"I change a.py first.\n\n{ONE}\nNow b.py:\n\n{OTHER}\nDone.\n",
        {**TEN, "b.py": "x = 2\n"}),
    "nested fences": (block("r.md", "", "Use it:\n\n```python\nimport a\n```\n"),
        {"r.md": "Use it:\n\n```python\nimport a\n```\n"}),
    "Windows line endings": (ONE.replace("\n", "\r\n"), TEN),
    "exact": (ONE, TEN),
    "whitespace-normalized": (block("a.py", "    return 1  \n", "    return 10\n"), TEN),
    "indent-normalized": (
        block("a.py", "  def one():\n      return 1\n", "  def one():\n      return 10\n"), TEN),
}  # fmt: skip


@pytest.mark.parametrize(("response", "wanted"), BLOCKS.values(), ids=BLOCKS)
def test_004(response: str, wanted: dict[str, str | None]) -> None:
    assert made(PAIR, response) == wanted


def test_004_incomplete_block() -> None:
    edits, (problem,) = parsed(ONE.removesuffix(">>>>>>> REPLACE\n"), PAIR)
    assert (edits, problem.code) == ((), "response.truncated")


def test_004_not_found_with_details() -> None:
    problem = refused(PAIR, block("a.py", "    return 9\n", "x\n"))
    assert problem.code == "match.none"
    assert problem.excerpt
    assert "    return 1" in problem.excerpt[1]


PATHS = {"traversal": "../a.py", "absolute": "/etc/passwd", "blocked": ".env", "key": "a.pem"}


@pytest.mark.parametrize("path", PATHS.values(), ids=PATHS)
def test_004_path_validation(path: str, tmp_path: Path) -> None:
    told = give(place(tmp_path, PAIR), "it", block(path, "", "x\n"), code=None)
    assert {problem["code"] for problem in told["problems"]} <= {"path.outside", "path.denied"}
    assert told["state"] == "rejected"


def test_004_backup(tmp_path: Path) -> None:
    at = place(tmp_path, PAIR, "worktree: {backup: true}\n")
    assert give(at, "it", ONE, code=None)["state"] == "applied"
    assert (at / "a.py").read_text() == TEN["a.py"]
    assert (at / "a.py.bak").read_text() == ORIGINAL


def test_004_dry_run(tmp_path: Path) -> None:
    at = place(tmp_path, PAIR)
    done = patchq("check", "-", cwd=at, stdin=ONE)
    assert "+    return 10" in done.out
    assert landed(at, "a.py") == ORIGINAL


def test_004_git_dirty(tmp_path: Path) -> None:
    at = place(tmp_path, PAIR)
    (at / "a.py").write_text(ORIGINAL + "# mine\n")
    told = give(at, "it", ONE, code=None)
    assert told["state"] == "proposed"
    assert [problem["code"] for problem in told["problems"]] == ["worktree.dirty"]
    assert (at / "a.py").read_text() == ORIGINAL + "# mine\n"


def test_004_success_message(tmp_path: Path) -> None:
    at = place(tmp_path, PAIR)
    drop(at / ".patchq", {"it.md": ONE + "\n" + OTHER})
    done = patchq("run", cwd=at)
    assert done.out.startswith("applied    it  main ")
    page = (at / ".patchq/done/it.report.md").read_text()
    assert "`a.py`" in page
    assert "`b.py`" in page


def test_004_failure_with_file_content(tmp_path: Path) -> None:
    told = give(place(tmp_path, PAIR), "it", block("a.py", "    return 9\n", "x\n"), code=None)
    assert "5 |     return 1" in told["retry"]["prompt"]
    assert "Send the whole response again" in told["retry"]["prompt"]


SECRET = "    key = 'gh' + 'ignored'  # " + "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a\n"


def test_004_mixed_results(tmp_path: Path) -> None:
    at = place(tmp_path, PAIR)
    told = give(at, "it", ONE + "\n" + block("b.py", "x = 9\n", "x = 2\n"), code=None)
    assert [one["state"] for one in told["edits"]] == ["ready", "failed"]
    assert "Good as they are, and to be repeated: `1`." in told["retry"]["prompt"]
    secret = give(at, "secret", block("a.py", "    return 1\n", SECRET), code=None)
    assert "Good as they are" not in secret["retry"]["prompt"]
    assert landed(at, "a.py") == ORIGINAL


def test_004_no_action(tmp_path: Path) -> None:
    told = give(place(tmp_path, PAIR), "it", "There is nothing to change here.\n", code=None)
    assert [problem["code"] for problem in told["problems"]] == ["response.no_edits"]


MAP = (Path(__file__).parents[2] / "docs/sources.md").read_text()


def test_the_map_names_tests_that_there_are() -> None:
    named = set(re.findall(r"`(test_\w+)`", MAP))
    assert named <= globals().keys()
    assert len(named) > 15
