"""What stands round edits (docs/formats.md, Envelopes): taken off, or left as it was."""

from __future__ import annotations

import pytest

from tests.helpers.deciding import Bench, Row, check

A = {"src/a.py": "x = 1\ny = 2\n"}
BLOCK = "<<<<<<< SEARCH\nx = 1\n=======\nx = 3\n>>>>>>> REPLACE\n"
DONE = {"src/a.py": "x = 3\ny = 2\n"}

SEARCH = f"src/a.py\n{BLOCK}"
V4A = "*** Begin Patch\n*** Update File: src/a.py\n@@\n-x = 1\n+x = 3\n y = 2\n*** End Patch\n"
DIFF = "--- a/src/a.py\n+++ b/src/a.py\n@@ -1,2 +1,2 @@\n-x = 1\n+x = 3\n y = 2\n"
FENCED_DIFF = f"```diff\n{DIFF}```\n"
PAIR = "FILE: src/a.py\n\nFIND:\n```\nx = 1\n```\nREPLACE WITH:\n```\nx = 3\n```\n"
CALL = '{"file_path": "src/a.py", "old_string": "x = 1", "new_string": "x = 3"}\n'
WHOLE = "```python:src/a.py\nx = 3\ny = 2\n```\n"
MARKED = "FILE: src/a.py\n```python\nx = 3\ny = 2\n```\n"
FORMS = {
    "block": SEARCH,
    "patch": V4A,
    "diff": DIFF,
    "fenced diff": FENCED_DIFF,
    "pair": PAIR,
    "call": CALL,
    "whole": WHOLE,
    "marked": MARKED,
}
UNREADABLE, TRUNCATED = ("response.unreadable_edit",), ("response.truncated",)


def in_every_form(*patterns: tuple[str, str], codes: tuple[str, ...] = ()) -> list[Row]:
    """A row for each form and each pattern, in which `{}` stands for the edit."""
    return [
        Row(
            f"{name}, {form}",
            A,
            pattern.replace("{}", FORMS[form]),
            None if codes else DONE,
            codes,
        )
        for name, pattern in patterns
        for form in FORMS
    ]


STAYS = in_every_form(
    ("all in unknown tags", "<patch_set>\n{}</patch_set>\n"),
    ("words about a tag", "I strip `</think>` and `<think>` now.\n\n{}\nSee `</think>`.\n"),
)
DRAFTS = in_every_form(
    ("two finals", "<|channel|>final<|message|>\n{}\n<|channel|>final<|message|>\n{}"),
    codes=UNREADABLE,
)


# ---------------------------------------------------------------- prefixes


def behind(prefix: str, text: str, first: str | None = None) -> str:
    """The text with a prefix before each line, another one before the first."""
    lines = [f"{prefix}{line}".rstrip() + "\n" for line in text.splitlines()]
    return (first or prefix) + text.splitlines()[0] + "\n" + "".join(lines[1:])


LINES = {
    "block": SEARCH,
    "whole": WHOLE,
    **{f"fenced {name}": f"```\n{FORMS[name]}```\n" for name in ("block", "patch", "call")},
}
PREFIXED = [
    *(
        Row(f"{name}, {form}", A, f"{above}{behind(prefix, text)}\nDone.\n", DONE)
        for form, text in LINES.items()
        for name, above, prefix in (
            ("quotation", "So:\n\n", "> "),
            ("list", "1. I change it:\n\n", "   "),
        )
    ),
    Row("a bullet", A, f"src/a.py\n{behind('  ', BLOCK, '- ')}", DONE),
    Row("a hash before each line", A, f"src/a.py\n{behind('# ', BLOCK)}", DONE),
]
DIVIDED = Row(
    "a second divider in Markdown",
    {"a.md": "x = 1\n"},
    f"a.md\n{BLOCK.replace('>>>>>>>', '=======' + chr(10) + '>>>>>>>')}",
    None,
    UNREADABLE,
)


# ---------------------------------------------------------------- a cut end

ENDS = [
    *in_every_form(
        ("a numbered list", "{}\nPlease add these files:\n\n1. `src/b.py`\n2. `src/c.py`\n"),
        ("a closed fence", "{}\nRun:\n\n```bash\npytest\n```"),
    ),
    *in_every_form(
        ("a path and a fence", "{}\nsrc/b.py\n```python"),
        ("a bare path", "{}\nsrc/b.py\n"),
        ("an open call", '{}\n{"file_path": "src/b.py", "old_string": "b", "new_s'),
        codes=TRUNCATED,
    ),
]


# ---------------------------------------------------------------- escaped on the way

HTML = BLOCK.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
ESCAPED = [
    Row("escaped beside edits", A, f"{SEARCH}\nsrc/a.py\n{HTML}", None, UNREADABLE),
    *in_every_form(
        ("words about entities", "Use &lt;b&gt; for <b> and \\n for a line's end.\n\n{}"),
        ("words about markers", "It begins with `&lt;&lt;&lt;&lt;&lt;&lt;&lt; SEARCH`.\n\n{}"),
    ),
]


# ---------------------------------------------------------------- notations of other tools

AB = A | {"src/b.py": "z = 1\n"}


CLINE = f"<replace_in_file>\n<path>src/a.py</path>\n<diff>\n{BLOCK}</diff>\n</replace_in_file>\n"
NOTED = [
    Row("a call that holds a block", AB, CLINE, DONE),
    *(
        Row(f"a path as {line}", AB, f"{line}\n{text}", DONE)
        for line, text in (
            ("src/a.py:1", BLOCK),
            ("`src/a.py:1-2`", f"```python\n{BLOCK}```\n"),
        )
    ),
    Row("two paths in words", AB, f"Not src/b.py but src/a.py:\n{BLOCK}", codes=UNREADABLE),
    Row("a path in tags", AB, f"<path>src/a.py</path>\n{BLOCK}", DONE),
]


ROWS = [*STAYS, *DRAFTS, *PREFIXED, DIVIDED, *ENDS, *ESCAPED, *NOTED]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_what_stands_round_edits(bench: Bench, row: Row) -> None:
    check(bench, row)
