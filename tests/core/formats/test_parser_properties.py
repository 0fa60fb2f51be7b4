"""What holds for every text: no fault, no cost beyond its length, and no edit lost or changed."""

from __future__ import annotations

import re
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from patchq.core.model.ops import Create, DeleteFile, Op, Rename, Replace
from tests.helpers.reading import BLOCK, read

MARKER_LIKE = [
    "<<<<<<< SEARCH", "<<<<< SEARCH", "------- SEARCH", "<<<<<<< RENAME", "<<<<<<< DELETE",
    "=======", "=====", ">>>>>>> REPLACE", ">>>>> REPLACE", "+++++++ REPLACE", ">>>>>>> RENAME",
    ">>>>>>> DELETE", "<<<<<<<", "<<<<<<< HEAD", "   <<<<<<< SEARCH",
]  # fmt: skip
WRAPPER_LIKE = [
    "```", "````", "~~~", "```python", "```python:src/a.py", "````md", "<source>", "</source>",
    "<think>", "</think>", "---",
]  # fmt: skip
FORM_LIKE = [
    "FILE: src/b.py", "FILE:", "END FILE", "### CHANGE 1: x", "FIND:", "FIND: old",
    "REPLACE WITH:", "Replace with: new", "FILE: " + "(" * 60, "```a:" + "`" * 60, "*" * 60,
    "*** Begin Patch", "*** Update File: src/a.py", "*** Add File: x.py", "*** Move to: y.py",
    "*** Delete File: src/a.py", "*** End of File", "*** End Patch", "@@", "@@ def f():", "EOF",
    "apply_patch <<'EOF'", "diff --git a/src/a.py b/src/a.py", "--- a/src/a.py", "+++ b/src/a.py",
    "--- /dev/null", "+++ /dev/null", "@@ -1 +1 @@", "@@ ... @@", "-old", "+new", " old", "+",
    "\\ No newline at end of file", "rename from src/a.py", "rename to x.py", "```diff", "-- ",
    f"From {'0' * 40} Mon Sep 17 00:00:00 2001", "From: A <a@b.c>", "Date: x", "Subject: [PATCH] x",
    '{"old_str": 1}', '{"path": "src/a.py", "old_str": "old", "new_str": "new"}', "```json",
    '{"file": "src/a.py", "edits": [', '{"type": "delete", "anchor": {"type": "line_pattern",',
    '"selected": "x"}}', "]}", "[", "{", "}", '"', '{"contextualEdits": [', '"searchPattern": {',
    '{"id": 1, "type": "deletion", "target": "x"},', '{"edits": [', '{"choices": [{"message":',
    '{"name": "apply_patch", "arguments": "*** Begin Patch\\n*** End Patch"}', "// x", "/*",
    '{"role": "assistant", "content": "src/a.py"}', '"old_string": "', "\\\"",
]  # fmt: skip
PATH_LIKE = ["src/a.py", "`src/b.py`:", "## Makefile", "new.txt", "In `src/a.py`, `src/b.py`:"]
PLAIN = ["", " ", "\r", "old", "    new", "\t", "\u00a0", "\u200b", "\0", "\ud7ff", "é"]

any_line = st.one_of(
    st.sampled_from(MARKER_LIKE + WRAPPER_LIKE + FORM_LIKE + PATH_LIKE + PLAIN),
    st.text(max_size=12),
    st.text(alphabet="<>=-+`~ #*:./aS\r", max_size=20),
)
any_text = st.one_of(st.text(), st.lists(any_line, max_size=40).map("\n".join))


@given(any_text, st.sampled_from([None, "src/a.py"]))
def test_every_text_is_read_or_refused(text: str, default_path: str | None) -> None:
    parsed = read(text, default_path)
    count = text.count("\n") + 1
    for problem in parsed.problems:
        assert problem.code in ("response.unreadable_edit", "response.truncated", "edit.dependency")
        assert problem.line is not None
        assert 1 <= problem.line <= count
        assert problem.message.startswith(f"line {problem.line}, column ")
        assert problem.hint
    assert not (parsed.edits and parsed.problems)
    spans = [edit.at for edit in parsed.edits]
    assert all(first <= last <= count for first, last in spans)
    assert all(one[0] <= other[0] for one, other in pairwise(spans))


def test_cut_responses_never_lose_a_begun_block() -> None:
    text = f"Hi.\n\nsrc/a.py\n{BLOCK}\nsrc/b.py\n```python\n{BLOCK}```\nDone.\n"
    first = text.index("REPLACE") + len("REPLACE")
    heading = text.index("src/b.py") + len("src/b")
    second = text.rindex("REPLACE") + len("REPLACE")
    for length in range(text.index("<<<") + 3, len(text)):
        parsed = read(text[:length])
        complete = 2 if length >= second else 1 if first <= length < heading else 0
        if text[:length].endswith(("\n`", "\n``")):
            complete = 0
        assert len(parsed.edits) == complete, text[:length]


# ---------------------------------------------------------------- written and read again

LENGTHS = range(5, 10)
half = st.lists(any_line.map(lambda line: line.replace("\n", "")), max_size=8).map(
    lambda lines: "".join(f"{line}\n" for line in lines)
)
paths = st.sampled_from(
    ["src/a.py", "src/b.py", "Makefile", "docs/my file.md", "new/x.txt", ".env"]
)
ops = st.one_of(
    st.builds(Replace, half.filter(str.strip), half),
    st.builds(Create, half),
    st.just(DeleteFile()),
    st.builds(Rename, st.sampled_from(["src/c.py", "d.txt", "new/x.txt"])),
)
proses = st.lists(
    st.sampled_from(
        ["", "Some words, e.g. these.", "=====", "-----", "<<<<<<< HEAD", "1. First", "- `f()`",
         "```bash\nls\n```", "~~~\nx\n~~~", "> quoted", "---", "<think>\nsrc/b.py\n</think>"]
    ),
    max_size=3,
)  # fmt: skip


def free_length(text: str) -> int | None:
    """A marker length that no line of the text has."""
    runs = re.findall(r"^([<>=+-]{5,9})(?![<>=+-])", text, re.MULTILINE)
    return next((n for n in LENGTHS if n not in map(len, runs)), None)


def rendered(op: Op) -> str | None:
    match op:
        case Create(new):
            halves = ("SEARCH", "", "REPLACE", new)
        case Replace(old, new):
            halves = ("SEARCH", old, "REPLACE", new)
        case Rename(to):
            return f"<<<<<<< RENAME\n{to}\n>>>>>>> RENAME\n"
        case DeleteFile():
            return "<<<<<<< DELETE\n>>>>>>> DELETE\n"
    opening, old, closing, new = halves
    n = free_length(old + new)
    if n is None:
        return None
    return f"{'<' * n} {opening}\n{old}{'=' * n}\n{new}{'>' * n} {closing}\n"


def fenced(block: str, path: str, style: int) -> str:
    """The block under its path, bare or in a fence longer than every one in its text."""
    runs = re.findall(r"^ {0,3}(`+)", block, re.MULTILINE)
    fence = "`" * max([3, *(len(run) + 1 for run in runs)])
    return [
        f"{path}\n{block}",
        f"**{path}**\n\n{fence}python\n{block}{fence}\n",
        f"{fence}\n`{path}`\n{block}\n{fence}\n",
        f"{fence}text:{path}\n{block}{fence}\n" if " " not in path else f"{path}\n{block}",
    ][style]


@given(st.lists(st.tuples(paths, ops, st.integers(0, 3), proses), min_size=1, max_size=5))
def test_rendered_edits_are_read_back(
    edits: list[tuple[str, Op, int, list[str]]],
) -> None:
    text, wanted = "", []
    for path, op, style, prose in edits:
        block = rendered(op)
        if block is None or (path == "docs/my file.md" and isinstance(op, Create)):
            continue
        text += "\n".join([*prose, "", fenced(block, path, style), ""])
        wanted.append((path, op))
    parsed = read(text + "That is all.\n")
    assert parsed.problems == ()
    assert [(edit.path, edit.op) for edit in parsed.edits] == wanted
