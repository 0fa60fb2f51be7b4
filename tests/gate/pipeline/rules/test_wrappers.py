"""What stands round edits (docs/formats.md, Envelopes): taken off, or left as it was."""

from __future__ import annotations

import pytest

from tests.helpers.deciding import Bench, Row, check

A = {"src/a.py": "x = 1\ny = 2\n"}
AB = A | {"src/b.py": "z = 1\n"}
DONE = {"src/a.py": "x = 3\ny = 2\n"}
BLOCK = "<<<<<<< SEARCH\nx = 1\n=======\nx = 3\n>>>>>>> REPLACE\n"
HUNK = "-x = 1\n+x = 3\n y = 2\n"
DIFF = f"--- a/src/a.py\n+++ b/src/a.py\n@@ -1,2 +1,2 @@\n{HUNK}"
FORMS = {
    "block": f"src/a.py\n{BLOCK}",
    "patch": f"*** Begin Patch\n*** Update File: src/a.py\n@@\n{HUNK}*** End Patch\n",
    "diff": DIFF,
    "fenced diff": f"```diff\n{DIFF}```\n",
    "pair": "FILE: src/a.py\n\nFIND:\n```\nx = 1\n```\nREPLACE WITH:\n```\nx = 3\n```\n",
    "call": '{"file_path": "src/a.py", "old_string": "x = 1", "new_string": "x = 3"}\n',
    "whole": "```python:src/a.py\nx = 3\ny = 2\n```\n",
    "marked": "FILE: src/a.py\n```python\nx = 3\ny = 2\n```\n",
}
STAYS = {
    "all in unknown tags": "<patch_set>\n{}</patch_set>\n",
    "words about a tag": "I strip `</think>` and `<think>` now.\n\n{}\nSee `</think>`.\n",
    "a numbered list": "{}\nPlease add these files:\n\n1. `src/b.py`\n2. `src/c.py`\n",
    "a closed fence": "{}\nRun:\n\n```bash\npytest\n```",
    "words about entities": "Use &lt;b&gt; for <b> and \\n for a line's end.\n\n{}",
    "words about markers": "It begins with `&lt;&lt;&lt;&lt;&lt;&lt;&lt; SEARCH`.\n\n{}",
}
UNREADABLE = ("response.unreadable_edit",)
FINALS = "<|channel|>final<|message|>\n{}\n<|channel|>final<|message|>\n{}"
CUT = {
    "a path and a fence": "{}\nsrc/b.py\n```python",
    "a bare path": "{}\nsrc/b.py\n",
    "an open call": '{}\n{"file_path": "src/b.py", "old_string": "b", "new_s',
}
IN_EVERY_FORM = [
    *((name, pattern, ()) for name, pattern in STAYS.items()),
    ("two finals", FINALS, UNREADABLE),
    *((name, pattern, ("response.truncated",)) for name, pattern in CUT.items()),
]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("name", "pattern", "codes"), IN_EVERY_FORM)
def test_in_every_form(
    bench: Bench, name: str, pattern: str, codes: tuple[str, ...], form: str
) -> None:
    text = pattern.replace("{}", FORMS[form])
    check(bench, Row(name, A, text, None if codes else DONE, codes))


def behind(prefix: str, text: str, first: str | None = None) -> str:
    """The text with a prefix before each line, another one before the first."""
    lines = [f"{prefix}{line}".rstrip() + "\n" for line in text.splitlines()]
    return (first or prefix) + text.splitlines()[0] + "\n" + "".join(lines[1:])


LINES = (
    FORMS["block"],
    FORMS["whole"],
    f"```\n{FORMS['patch']}```\n",
    f"```\n{FORMS['call']}```\n",
)
DIVIDED = BLOCK.replace(">>>>>>>", "=======\n>>>>>>>")
HTML = BLOCK.replace("<", "&lt;").replace(">", "&gt;")
CLINE = f"<replace_in_file>\n<path>src/a.py</path>\n<diff>\n{BLOCK}</diff>\n</replace_in_file>\n"
ROWS = [
    *(Row("a quotation", A, f"So:\n\n{behind('> ', text)}\nDone.\n", DONE) for text in LINES),
    *(Row("a list", A, f"1. So:\n\n{behind('   ', text)}\nDone.\n", DONE) for text in LINES),
    Row("a bullet", A, f"src/a.py\n{behind('  ', BLOCK, '- ')}", DONE),
    Row("a hash before each line", A, f"src/a.py\n{behind('# ', BLOCK)}", DONE),
    Row("two dividers in Markdown", {"a.md": "x = 1\n"}, f"a.md\n{DIVIDED}", codes=UNREADABLE),
    Row("escaped beside edits", A, f"{FORMS['block']}\nsrc/a.py\n{HTML}", codes=UNREADABLE),
    Row("a call that holds a block", AB, CLINE, DONE),
    Row("a line behind the path", AB, f"src/a.py:1\n{BLOCK}", DONE),
    Row("lines behind the path", AB, f"`src/a.py:1-2`\n```python\n{BLOCK}```\n", DONE),
    Row("two paths in words", AB, f"Not src/b.py but src/a.py:\n{BLOCK}", codes=UNREADABLE),
    Row("a path in tags", AB, f"<path>src/a.py</path>\n{BLOCK}", DONE),
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_what_stands_round_edits(bench: Bench, row: Row) -> None:
    check(bench, row)
