"""What stands round edits (docs/formats.md, Envelopes): taken off, or left as it was."""

from __future__ import annotations

import pytest

from tests.helpers.deciding import Bench, Row, check

A = {"src/a.py": "x = 1\ny = 2\n"}
BLOCK = "<<<<<<< SEARCH\nx = 1\n=======\nx = 3\n>>>>>>> REPLACE\n"
DONE = {"src/a.py": "x = 3\ny = 2\n"}

NEIGHBOURS = [
    Row("fence of four under its path", A, f"src/a.py\n````python\n{BLOCK}````\n", DONE),
    Row("info with the path over a block", A, f"```python:src/a.py\n{BLOCK}```\n", DONE),
    Row("a rule of dashes round prose", A, f"---\nSome words.\n---\n\nsrc/a.py\n{BLOCK}", DONE),
    Row(
        "details",
        A,
        f"<details>\n<summary>Why</summary>\n\nIt was asked.\n\n</details>\n\nsrc/a.py\n{BLOCK}",
        DONE,
    ),
    Row(
        "a command that is run",
        A,
        f"```sh\nmkdir -p out\npytest > out.log\n```\n\nsrc/a.py\n{BLOCK}",
        DONE,
    ),
]

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


def draft(form: str) -> str:
    """The edit of a form with another result."""
    return FORMS[form].replace("x = 3", "x = 9")


def in_every_form(*patterns: tuple[str, str], codes: tuple[str, ...] = ()) -> list[Row]:
    """A row for each form and each pattern, in which `{}` stands for the edit and `{draft}` for
    one with another result."""
    return [
        Row(
            f"{name}, {form}",
            A,
            pattern.replace("{}", FORMS[form]).replace("{draft}", draft(form)),
            None if codes else DONE,
            codes,
        )
        for name, pattern in patterns
        for form in FORMS
    ]


STAYS = [
    *NEIGHBOURS,
    *in_every_form(
        ("known tags", "<answer>\n{}</answer>\n"),
        ("known tags by turns", "<edits>\n\n{}\n</edits>\n\n<summary>\nDone.\n</summary>\n"),
        ("all in unknown tags", "<patch_set>\n{}</patch_set>\n"),
        ("unknown tags beside", "<note>\nIt is late.\n</note>\n\n{}"),
        ("a tag that does not close", "<draft>\n\n{}"),
        ("words about a tag", "I strip `</think>` and `<think>` now.\n\n{}\nSee `</think>`.\n"),
        ("a shown template", "```\n<draft>\n```\n\n{}\n```\n</draft>\n```\n"),
        ("markup in a sentence", "A <b>bold</b> move, List<String> too.\n\n{}"),
        ("a link at the start", "[Analysis](https://x.org) says so.\n\n{}"),
        ("a plain thought", "<think>\nHm.\n</think>\n\n{}"),
        ("a draft in a thought", "<thinking>\n{draft}\nNo.\n</thinking>\n\n{}"),
    ),
    Row(
        "an edit of a file with tags",
        {"t.txt": "<think>\na\n</think>\n"},
        "t.txt\n<<<<<<< SEARCH\n<think>\na\n=======\n<think>\nb\n>>>>>>> REPLACE\n",
        {"t.txt": "<think>\nb\n</think>\n"},
    ),
    Row(
        "a new file with a lone tag, under its path",
        A,
        "t/new.txt\n```\na\n</think>\n<reasoning>\n```\n",
        {"t/new.txt": "a\n</think>\n<reasoning>\n"},
    ),
]
THOUGHTS = in_every_form(
    ("another case", "<Think>\n{draft}\n</Think>\n\n{}"),
    ("prefix with a colon", "<seed:think>\n{draft}\n</seed:think>\n\n{}"),
    ("prefix with a hyphen", "<deep-thought>\n{draft}\n</deep-thought>\n\n{}"),
    ("brackets", "[THINK]\n{draft}\n[/THINK]\n\n{}"),
    ("triangles", "◁think▷\n{draft}\n◁/think▷\n\n{}"),
    ("scratchpad", "<scratchpad>\n{draft}\n</scratchpad>\n\n{}"),
    ("analysis, with words behind", "<analysis>So.\n{draft}\nOr not.</analysis>\n\n{}"),
    ("nested", "<think>\n<think>\n{draft}\n</think>\n{draft}\n</think>\n\n{}"),
    ("another thought inside", "<reflection>\n<think>\n{draft}\n</reflection>\n\n{}"),
    ("twice", "<think>\n{draft}\n</think>\nSo:\n<think>\n{draft}\n</think>\n\n{}"),
    ("indented", "  <think>\n{draft}\n  </think>\n\n{}"),
    (
        "channels",
        "<|channel|>analysis<|message|>Hm.\n{draft}<|end|><|start|>assistant<|channel|>final"
        "<|message|>\n{}",
    ),
    (
        "channels to the end",
        "<|start|>assistant<|channel|>analysis<|message|>\n{draft}\n<|end|>\n<|start|>assistant"
        "<|channel|>final<|message|>So:\n\n{}\n<|return|>",
    ),
)
DRAFTS = [
    *in_every_form(
        ("closed only", "Hm.\n\n{draft}\n</think>\n\n{}"),
        ("closed only, no draft", "Hm.\n[/THINK]\n\n{}"),
        ("closed at a line's end", "{draft}\nThat is it.</think>\n\n{}"),
        ("unknown tags", "<draft>\n{draft}</draft>\n\n{}"),
        ("unknown tags in brackets", "[attempt]\n{draft}[/attempt]\n\n{}"),
        ("unknown tags with attributes", '<option n="1">\n{draft}</option>\n\n{}'),
        ("unknown tags behind", "{}\n<old_version>\n{draft}</old_version>\n"),
        ("unknown tags in known ones", "<answer>\n<v1>\n{draft}</v1>\n\n{}</answer>\n"),
        ("a thought in a sentence", "Well, <think> so\n\n{draft}\nor not </think> so\n\n{}"),
        ("a comment", "<!--\n{draft}\nOr not. -->\n\n{}"),
        ("two finals", "<|channel|>final<|message|>\n{draft}\n<|channel|>final<|message|>\n{}"),
        codes=UNREADABLE,
    ),
    *in_every_form(
        ("open to the end", "<reasoning>\nHm.\n\n{}"),
        ("open to the end in brackets", "[THINK]\nHm.\n\n{}"),
        ("no final channel", "<|channel|>analysis<|message|>Hm.\n\n{}"),
        codes=TRUNCATED,
    ),
]


@pytest.mark.parametrize("row", [*STAYS, *THOUGHTS, *DRAFTS], ids=lambda row: row.name)
def test_what_stands_round_edits(bench: Bench, row: Row) -> None:
    check(bench, row)
