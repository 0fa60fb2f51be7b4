"""Responses that look like edits and cannot be read: each is refused as a whole, with its line."""

from __future__ import annotations

import pytest

from tests.helpers.reading import BLOCK, CREATION, DELETION, block, read

GOOD = f"src/a.py\n{BLOCK}\n"
"""Seven lines that can be read, so that every refusal shows that nothing of them lands."""


def bad(name: str, text: str, line: int, says: str) -> object:
    return pytest.param(text, line, says, id=name)


UNREADABLE = [
    # markers
    bad("no-divider", "src/b.py\n<<<<<<< SEARCH\nold\n>>>>>>> REPLACE\n", 2, "exactly one divider"),
    bad("conflict-in-text", "src/b.py\n" + block(new="=======\nx\n"), 5, "found 2"),
    bad("no-closing-then-a-block", f"src/b.py\n<<<<<<< SEARCH\nold\n=======\nnew\n\n{GOOD}", 8,
        "line 9 is closed"),
    bad("closed-twice", f"src/b.py\n{BLOCK}>>>>>>> REPLACE\n", 7, "outside a block"),
    bad("text-behind-opening", f"src/b.py\n{BLOCK.replace('SEARCH', 'SEARCH src/b.py')}", 2,
        "outside a block"),
    bad("no-break-space", "src/b.py\n" + BLOCK.replace(" S", "\u00a0S"), 2, "outside"),
    bad("invisible-in-front", f"src/b.py\n\u200b{BLOCK}", 2, "outside a block"),
    bad("indented", "1. src/b.py\n   " + BLOCK.replace("\nold", "\n   old"), 2, "at its start"),
    bad("of a table", f"src/b.py\n| {BLOCK}", 2, "outside a block"),
    bad("in-a-list", f"- {BLOCK}", 1, "outside a block"),
    bad("text-ambiguous", f"README.md\n{block(BLOCK)}", 3, "a block opens before"),
    bad("inner-fence-ambiguous",
        "README.md\n````\n" + block("```\n=======\n>>>>>>> REPLACE\n```\n") + "````\n", 3,
        "two ways"),
    # halves
    bad("blank-search", "src/b.py\n" + block("\n"), 3, "blank lines only"),
    bad("delete-with-text", "src/b.py\n<<<<<<< DELETE\n\nold\n>>>>>>> DELETE\n", 4, "nothing"),
    bad("rename-to-two", "src/b.py\n<<<<<<< RENAME\na.c\nb.c\n>>>>>>> RENAME\n", 2, "new path"),
    # paths
    bad("two-paths-in-prose", f"From `src/a.py` to `src/b.py`:\n{BLOCK}", 2, "expected a path"),
    bad("dressed-word-created", f"**Justfile**\n{CREATION}", 2, "expected a path"),
    bad("deletion-inherits", f"Next:\n{DELETION}", 2, "expected a path"),
    bad("fence-and-line-differ", f"src/a.py\n```python src/b.py\n{BLOCK}```\n", 3, "two"),
    # fences
    bad("text-behind-a-blank", f"src/b.py\n```\n{BLOCK}\nrest\n```\n", 9, "the fence's end"),
    bad("text-between-blocks", f"```\nsrc/b.py\n{BLOCK}rest\nsrc/a.py\n{BLOCK}```\n", 8, "end"),
    bad("text-in-second-fence", f"src/b.py\n```\n{BLOCK}```\n```\nsrc/a.py\n{BLOCK}rest\n```\n", 16,
        "the fence's end"),
    # other forms
    bad("v4a-without-frame", "*** Add File: src/b.py\n", 1, "`*** Begin Patch` first"),
    bad("v4a-opened-beside-words", "*** Begin Patch for b\n", 1, "a V4A patch"),
    bad("git-diff", "diff --git a/src/b.py b/src/b.py\n\nDone.\n", 1, "hunks"),
    bad("plain-diff", "--- a/src/b.py\n+++ b/src/b.py\n\nDone.\n", 2, "hunks"),
    bad("indented-hunk", "   @@ x @@\n", 1, "a unified diff"),
    bad("bare-hunk", "@@ ... @@\n-old\n", 1, "unified diff"),
    bad("diff-fence", "```diff\n-old\n+new\n```\n", 2, "unified diff"),
    bad("find-without-replace", "FIND:\n```\nold\n```\n\nDone.\n", 1, "REPLACE WITH"),
    bad("find-in-bold", "**Find:**\n", 1, "FIND/REPLACE"),
    bad("replace-with", "### Replace  with:\n", 1, "FIND/REPLACE"),
    bad("json-call", '{"path": "src/b.py", "old_str": "x"}\n', 1, "the new text"),
    bad("json-script", '{"edits": [\n {"anchor": {"selected": "x"}}]}\n', 2, "'type'"),
    bad("tool-tags", '<parameter name="old_string">x</parameter>\n', 1, "JSON"),
    bad("text-before-a-block", f"src/b.py\n```python\n# greet\n{BLOCK}```\n", 4, "the text of"),
    bad("file-label", "FILE: src/b.py\nx = 1\n", 1, "runs to the end"),
    # thinking blocks
    bad("thought-ends-behind-a-block", f"</think>\nsrc/b.py\n{BLOCK}", 1, "begins nowhere"),
]  # fmt: skip


def check(text: str, code: str, line: int, says: str) -> None:
    parsed = read(text)
    assert parsed.edits == ()
    (problem,) = parsed.problems
    assert (problem.code, problem.severity, problem.line) == (code, "error", line)
    assert problem.message.startswith(f"line {line}, column 1: ")
    assert says in f"{problem.message} {problem.hint}"
    assert problem.hint


@pytest.mark.parametrize(("text", "line", "says"), UNREADABLE)
def test_unreadable(text: str, line: int, says: str) -> None:
    check(GOOD + text, "response.unreadable_edit", line + 7, says)
