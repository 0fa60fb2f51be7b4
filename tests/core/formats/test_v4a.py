"""What V4A patches parse to, and which of them refuse the response."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchq.core.model.ops import Create, DeleteFile, Op, PatchHunk, Rename
from tests.helpers.reading import read, refused, said


def patch(*lines: str) -> str:
    return "\n".join(("*** Begin Patch", *lines, "*** End Patch", ""))


def update(*lines: str, path: str = "a.py") -> str:
    return patch(f"*** Update File: {path}", *lines)


A_TO_B = ("a.py", PatchHunk("a\n", "b\n"))

PARSES: dict[str, tuple[str, list[tuple[str, Op]]]] = {
    "a chunk": (update("@@", " one", "-two", "+TWO", " three"),
        [("a.py", PatchHunk("one\ntwo\nthree\n", "one\nTWO\nthree\n"))]),
    "several chunks": (update("@@", "-a", "+b", "@@", "-c"),
        [A_TO_B, ("a.py", PatchHunk("c\n", ""))]),
    "blank lines before the first chunk": (update("", "@@", "-a", "+b"), [A_TO_B]),
    "stacked scopes": (update("@@ class A:", "@@     def f(self):", "-a", "+b"),
        [("a.py", PatchHunk("a\n", "b\n", scopes=("class A:", "def f(self):")))]),
    "a diff's numbers": (update("@@ -12,2 +12,3 @@ class A:", "-a", "+b"),
        [("a.py", PatchHunk("a\n", "b\n", line=12))]),
    "@@ @@ and dots say nothing": (update("@@ @@", "-a", "+b", "@@ ... @@", "-a", "+b"),
        [A_TO_B, A_TO_B]),
    "the end of the file": (update("@@", "-a", "+b", "*** End of File"),
        [("a.py", PatchHunk("a\n", "b\n", at_end=True))]),
    "a chunk behind the end of the file": (
        update("-a", "+b", "*** End of File", "", "@@", "-a", "+b"),
        [("a.py", PatchHunk("a\n", "b\n", at_end=True)), A_TO_B],
    ),
    "only added lines": (update("@@ def f():", "+b", ""),
        [("a.py", PatchHunk("", "b\n", scopes=("def f():",)))]),
    "a chunk without a change is a place, one of blanks is none": (
        update("@@", " a", "@@", "", "@@", "-a", "+b"),
        [("a.py", PatchHunk("a\n", "a\n")), A_TO_B],
    ),
    "some context lines lack their space": (
        update("@@", "one", " two", "-x", "@@", " three", "-y", "@@", "-z"),
        [
            (
                "a.py",
                PatchHunk("one\ntwo\nx\n", "one\ntwo\n", bare=("one\n two\nx\n", "one\n two\n")),
            ),
            ("a.py", PatchHunk("three\ny\n", "three\n", bare=(" three\ny\n", " three\n"))),
            ("a.py", PatchHunk("z\n", "")),
        ],
    ),
    "an indented marker is context": (update("@@", " *** End Patch", "-a", "+b"),
        [("a.py", PatchHunk("*** End Patch\na\n", "*** End Patch\nb\n"))]),
    "an indented marker without another": (
        "*** Begin Patch\n*** Update File: a.py\n-a\n+b\n *** End Patch\n",
        [A_TO_B],
    ),
    "indented markers without another": (
        "*** Begin Patch\n*** Update File: a.py\n-a\n+b\n *** Delete File: x\n *** End Patch\n",
        [A_TO_B, ("x", DeleteFile())],
    ),
    "an indented marker before the chunks": (
        "*** Begin Patch \n  *** Update File: a.py \n@@\n-a\n+b\n*** End Patch\t\n",
        [A_TO_B],
    ),
    "indented markers between files": (
        patch("*** Add File: n", "+x", "  *** Delete File: a.py", "  *** Update File: a.py", "-a"),
        [("n", Create("x\n")), ("a.py", DeleteFile()), ("a.py", PatchHunk("a\n", ""))],
    ),
    "a signed marker is text": (update("@@", "-*** End Patch", "+*** Begin Patch"),
        [("a.py", PatchHunk("*** End Patch\n", "*** Begin Patch\n"))]),
    "a new file": (patch("*** Add File: n/x.py", "+one", "+", "+  two"),
        [("n/x.py", Create("one\n\n  two\n"))]),
    "a new file with @@ and lost signs of blank lines": (
        patch("*** Add File: x", "@@", "+one", "", "+two", ""),
        [("x", Create("one\n\ntwo\n"))],
    ),
    "an empty new file": (patch("*** Add File: x/__init__.py"), [("x/__init__.py", Create(""))]),
    "a deletion": (patch("*** Delete File: a.py", ""), [("a.py", DeleteFile())]),
    "a deletion that quotes": (patch("*** Delete File: a.py", "-a", "-b"),
        [("a.py", DeleteFile("a\nb\n"))]),
    "a move": (update("*** Move to: src/new.py", "@@", "-a", "+b"),
        [("a.py", Rename("src/new.py")), A_TO_B]),
    "a move alone": (update("*** Move to: n.py"), [("a.py", Rename("n.py"))]),
    "a move to where it is": (update("*** Move to: a.py", "-a", "+b"), [A_TO_B]),
    "dressed paths": (
        patch(
            "*** Delete File: `a.py`", "*** Delete File: **src/b.py**", "*** Delete File: b/a.py"
        ),
        [("a.py", DeleteFile()), ("src/b.py", DeleteFile()), ("a.py", DeleteFile())],
    ),
    "a directory of that name": (patch("*** Delete File: a/own.py"), [("a/own.py", DeleteFile())]),
    "prose": ("**Add File:** `x.py`\n***\n@@count = 1\nuse *** Begin Patch\n", []),
}  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), PARSES.values(), ids=PARSES.keys())
def test_parses(text: str, expected: list[tuple[str, Op]]) -> None:
    assert said(text) == expected


UNREADABLE = "unreadable_edit"
MALFORMED = {
    "no edit": (patch(), UNREADABLE, 1),
    "not closed": ("x\n*** Begin Patch\n*** Update File: a.py\n-a\n", "truncated", 2),
    "unknown marker": (patch("*** Frobnicate File: foo"), UNREADABLE, 2),
    "unknown marker behind a chunk": (update("-a", "+b", "*** Rename File: a.py"), UNREADABLE, 5),
    "misspelt": ("**Begin Patch**\n", UNREADABLE, 1),
    "quoted": ("> *** Begin Patch\n", UNREADABLE, 1),
    "no path": (patch("*** Update File:", "-a"), UNREADABLE, 2),
    "text before the first file": (patch("Hi"), UNREADABLE, 2),
    "an update without a change": (update("@@", " a"), UNREADABLE, 2),
    "an update indented as a whole": (update("  @@", "  -a"), UNREADABLE, 2),
    "a new file's line without +": (patch("*** Add File: x", "+a", "b"), UNREADABLE, 4),
    "text under a deletion": (patch("*** Delete File: a.py", "gone"), UNREADABLE, 3),
    "a move behind a chunk": (update("-a", "*** Move to: b"), UNREADABLE, 4),
}  # fmt: skip


@pytest.mark.parametrize(("text", "code", "line"), MALFORMED.values(), ids=MALFORMED.keys())
def test_refuses(text: str, code: str, line: int) -> None:
    assert refused(text) == (code, line)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("apply_patch <<'EOF'\n", "EOF\n"),
        ("bash -lc \"apply_patch <<'PATCH'\n", 'PATCH"\n'),
        ("$ cat <<-EOF | apply_patch\n\n", "\nEOF\n)\n"),
    ],
)  # fmt: skip
def test_a_heredoc_is_taken_off(before: str, after: str) -> None:
    text = f"Now:\n{before}{update('-a', '+b')}{after}Done.\n"
    assert read(text).prose.split() == ["Now:", "Done."]


LINES = st.sampled_from(
    [
        "*** Begin Patch", "*** End Patch", " *** End Patch", "*** Update File: a.py",
        "*** End of File", "*** Add File: x", "  *** Delete File: a.py", "*** Move to: y",
        "*** Foo File: z", "@@", "@@ f", "+a", "-b", " c", "d", "", "\r", "```", "EOF",
        "apply_patch <<EOF", "@@ -1,2 +1,3 @@",
    ]
)  # fmt: skip


@given(st.lists(LINES, max_size=12))
def test_no_line_of_an_added_file_is_lost(lines: list[str]) -> None:
    text = patch("*** Add File: x", *("+" + line for line in lines))
    assert said(text) == [("x", Create("".join(line + "\n" for line in lines)))]
