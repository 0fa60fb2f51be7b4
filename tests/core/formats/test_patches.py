"""What unified diffs and V4A patches parse to, and which of them refuse the response."""

from __future__ import annotations

from textwrap import indent
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchq.core.model.ops import Create, DeleteFile, Op, PatchHunk, Rename, SetMode, WriteBytes
from patchq.core.text.binary_patch import HEADER, blob_id, encode
from tests.helpers.reading import read, refused, said

HEADS = "--- a/a.py\n+++ b/a.py\n"
HUNK = "@@ -1,3 +1,3 @@\n one\n-two\n+TWO\n three\n"
OP = PatchHunk("one\ntwo\nthree\n", "one\nTWO\nthree\n", line=1)
EDIT = ("a.py", OP)
SHA = "0123456789" * 4
MAIL = (
    f"From {SHA} Mon Sep 17 00:00:00 2001\nFrom: Ada <ada@example.org>\nDate: today\n"
    "Subject: [PATCH 1/2] Say\n two\n\nBecause.\n---\n a.py | 2 +-\n 1 file changed\n\n"
    f"diff --git a/a.py b/a.py\nindex 1..2 100644\n{HEADS}{HUNK}-- \n2.43.0\n\n"
)


def hunk(old: str, new: str, **more: Any) -> tuple[str, Op]:
    return "a.py", PatchHunk(old, new, **more)


def fence(text: str, info: str = "diff") -> str:
    return f"```{info}\n{text}```\n"


def of(*lines: str, heads: str = HEADS) -> str:
    return heads + "\n".join((*lines, ""))


def git(names: str, *lines: str) -> str:
    return "\n".join((f"diff --git {names}", *lines, ""))


def bytes_of(data: bytes, before: bytes = b"", ids: str | None = None) -> str:
    """A diff that gives `x` these bytes, with git's way back below them."""
    ids = ids or f"{blob_id(before)}..{blob_id(data)} 100644"
    return git("a/x b/x", f"index {ids}", HEADER) + encode(data) + encode(before)


RENAME = git("a/src/b.py b/n.py", "similarity index 100%", "rename from src/b.py", "rename to n.py")
MODE = git("a/src/b.py b/src/b.py", "old mode 100644", "new mode 100755")
EMPTY = git("a/n b/n", "new file mode 100644", "index 0000000..e69de29")
QUOTED = '"a/\\303\\244.txt" b/b.txt'
DIFFS: dict[str, tuple[str, list[tuple[str, Op]]]] = {
    "fenced as a patch": (fence(HEADS + HUNK, "patch"), [EDIT]),
    "a section": (HEADS + HUNK.replace("@@\n", "@@ def f():\n"), [EDIT]),
    "no counts": (HEADS + HUNK.replace("-1,3 +1,3", "..."), [hunk(OP.old, OP.new)]),
    "counts too small": (fence(HEADS + HUNK.replace("3 +1,3", "2 +1,1")), [EDIT]),
    "a rule behind": (HEADS + HUNK + "\n---\n\nDone.\n", [EDIT]),
    "a blank line of context": (of("@@ -1,3 +1,2 @@", " a", "", "-b"),
        [hunk("a\n\nb\n", "a\n\n", line=1)]),
    "a removed SQL comment": (
        fence(of("@@ -1,2 +1,2 @@", "--- x", "+++ y", " z", "@@ -9 +9 @@", "-a", "+b")),
        [hunk("-- x\nz\n", "++ y\nz\n", line=1), hunk("a\n", "b\n", line=9)]),
    "no newline at the end": (of("@@ -1 +1 @@", "-a", "+b", "\\ No newline at end of file"),
        [hunk("a\n", "b\n", line=1, final_newline=False)]),
    "a newline more at the end": (of("@@ -1 +1 @@", "-a", "\\ No newline at end of file", "+a"),
        [hunk("a\n", "a\n", line=1, at_end=True)]),
    "an insertion": (of("@@ -5,0 +6 @@", "+b"), [hunk("", "b\n", line=6)]),
    "a new file": (of("@@ -0,0 +1,2 @@", "+a", "+b", heads="--- /dev/null\n+++ b/n/x.py\n"),
        [("n/x.py", Create("a\nb\n"))]),
    "a deletion that quotes": (
        of("@@ -1,2 +0,0 @@", "-a", "-b", heads="--- a/a.py\n+++ /dev/null\n"),
        [("a.py", DeleteFile("a\nb\n"))]),
    "a rename with a change": (
        git("a/a.py b/n.py", "rename from a.py", "rename to n.py", "--- a/a.py", "+++ b/n.py")
        + HUNK,
        [("a.py", Rename("n.py")), EDIT],
    ),
    "dates": ("--- a.py\t2024-01-01 10:00:00.0 +0000\n+++ a.py 2024-01-01 10:00:00\n" + HUNK,
        [EDIT]),
    "a directory like a prefix": ("--- a/own.py\n+++ a/own.py\n" + HUNK, [("a/own.py", OP)]),
    "a copy's ending": ("--- a.py.orig\n+++ a.py\n" + HUNK, [EDIT]),
    "a path with a blank": (git("a/my file.md b/my file.md", "deleted file mode 100644"),
        [("my file.md", DeleteFile())]),
    "a quoted path": (git(QUOTED, 'rename from "\\303\\244.txt"', "rename to b.txt"),
        [("ä.txt", Rename("b.txt"))]),
    "a path above the fence": (f"**a.py**\n{fence(HUNK)}", [EDIT]),
    "a path in the info": (fence(HUNK, "diff a.py"), [EDIT]),
    "an indented fence": (indent(fence(HEADS + HUNK), "  "), [EDIT]),
    "the last fence is missing": ("```diff\n" + HEADS + HUNK, [EDIT]),
    "fence lines in a hunk": (fence(of("@@ -1,3 +1,3 @@", " ```py", "-a", "+b", " ```")),
        [hunk("```py\na\n```\n", "```py\nb\n```\n", line=1)]),
    "a diff in another fence": (fence(HEADS + HUNK, "text"), [EDIT]),
    "a mail": (MAIL, [EDIT]),
    "files without hunks": (
        RENAME + EMPTY + MODE + HEADS + HUNK,
        [("src/b.py", Rename("n.py")), ("n", Create("")), ("src/b.py", SetMode(executable=True)),
         EDIT]),
    "a file that holds a diff": (fence("", "diff x.patch"), []),
    "prose": ("---\n--- a.py\n\n- x\n+ y\n@@count = 1\n@@ to_tsquery('x')\n +1\nFrom: me\n", []),
}  # fmt: skip


UNREADABLE, TRUNCATED = "unreadable_edit", "truncated"
BROKEN = {
    "a bare context line, fenced": (fence(of("@@ -1,2 +1,2 @@", "x", "-a", "+b")), UNREADABLE, 4),
    "and behind a blank line": (of("@@ -1,3 +1,3 @@", "-a", "+b", "", "x", "-c", "+d"), UNREADABLE,
        7),
    "a mode and lost lines": (
        git("a/a.py b/a.py", "old mode 100644", "new mode 100755", "index 1..2"), TRUNCATED, 4),
    "a binary file": (
        git("a/x.png b/x.png", "index 1..2", "Binary files a/x.png and b/x.png differ"), UNREADABLE,
        1),
    "a binary patch without its bytes": (git("a/x b/x", "index 1..2", "GIT binary patch", "x"),
        UNREADABLE, 3),
    "a binary patch of other bytes": (bytes_of(b"\0", ids=f"{SHA}..{SHA}"), UNREADABLE, 3),
    "bytes that are cut": (
        git("a/x b/x", f"index {SHA}..{SHA}", "GIT binary patch", "literal 1", "IcmZP"), TRUNCATED,
        3),
    "a copy": (git("a/a.py b/n", "copy from a.py", "copy to n"), UNREADABLE, 1),
    "a link": (git("a/n b/n", "new file mode 120000") + HEADS + HUNK, UNREADABLE, 1),
    "two names": ("--- a/a.py\n+++ b/src/b.py\n" + HUNK, UNREADABLE, 1),
    "no name": ("--- /dev/null\n+++ /dev/null\n" + HUNK, UNREADABLE, 1),
    "a broken quote": ('--- "a/\\377"\n+++ "b/\\377"\n' + HUNK, UNREADABLE, 1),
    "context in a new file": ("--- /dev/null\n+++ b/x\n" + HUNK, UNREADABLE, 4),
    "an empty hunk": (HEADS + "@@ -1 +1 @@\n@@ -2 +2 @@\n-a\n+b\n", UNREADABLE, 3),
    "indented": ("  diff --git a/a.py b/a.py\n", UNREADABLE, 1),
    "a merge's diff": ("@@@ -1,2 -1,2 +1,3 @@@\n", UNREADABLE, 1),
    "a context diff": ("*** 1,3 ****\n", UNREADABLE, 1),
    "a normal diff": (fence("3c3\n< a\n---\n> b\n"), UNREADABLE, 2),
    "two mails": (MAIL + MAIL, UNREADABLE, 24),
    "an encoded mail": (MAIL.replace("Date:", "Content-Transfer-Encoding: base64\nDate:"),
        UNREADABLE, 1),
    "cut in the names": (git("a/a.py b/n"), TRUNCATED, 1),
    "cut in the new name": (git("a/a.py b/n.py", "rename from a.py", "rename to n"), TRUNCATED, 1),
    "cut before the hunks of a renamed file": (
        git("a/a.py b/n.py", "similarity index 90%", "rename from a.py", "rename to n.py"),
        TRUNCATED, 4),
    "cut before the hunks of a new file": (
        git("a/n.py b/n.py", "new file mode 100644", "index 000..123"), TRUNCATED, 3),
    "cut behind @@": (HEADS + "@@ -1 +1 @@\n", TRUNCATED, 3),
    "cut in the last hunk": (HEADS + HUNK + "@@ -9,3 +9,3 @@\n-a\n", TRUNCATED, 9),
    "cut in the fence": (fence(HEADS + HUNK)[:-15], TRUNCATED, 1),
}  # fmt: skip


@pytest.mark.parametrize("data", [b"", b"\0", bytes(range(256)) * 9, b"caf\xe9\n"])
def test_bytes(data: bytes) -> None:
    (known, found) = said(bytes_of(data, before=b"old") + HEADS + HUNK)[0]
    assert (known, found) == ("x", WriteBytes(data, blob_id(b"old")))


def test_an_edit_knows_its_lines() -> None:
    new = "\n--- /dev/null\n+++ b/n\n@@ @@\n+x\n\n"
    parsed = read("Hi\n" + fence(HEADS + HUNK + new))
    assert [edit.at for edit in parsed.edits] == [(5, 9), (11, 14)]
    assert parsed.prose == "Hi"


@pytest.mark.parametrize(
    ("sender", "author"),
    [("", "Ada <ada@example.org>"), ("From: =?utf-8?q?J=C3=B6?= <j@x.org>\n\n", "Jö <j@x.org>")],
)
def test_a_mail_says_what_and_who(sender: str, author: str) -> None:
    parsed = read(MAIL.replace("\nBecause", f"\n{sender}Because"))
    assert (parsed.summary, parsed.author, parsed.prose) == ("Say two", author, "Because.")


def test_a_mode_that_no_file_has_is_told() -> None:
    text = git("a/a.py b/a.py", "old mode 100644", "new mode 100664") + HEADS + HUNK
    parsed = read(text)
    (warning,) = parsed.problems
    assert [edit.path for edit in parsed.edits] == ["a.py"]
    assert (warning.severity, warning.line) == ("warning", 1)
    assert "100664" in warning.message


def patch(*lines: str) -> str:
    return "\n".join(("*** Begin Patch", *lines, "*** End Patch", ""))


def update(*lines: str, path: str = "a.py") -> str:
    return patch(f"*** Update File: {path}", *lines)


A_TO_B = hunk("a\n", "b\n")

PARSES: dict[str, tuple[str, list[tuple[str, Op]]]] = {
    "a chunk": (update("@@", " one", "-two", "+TWO", " three"),
        [hunk("one\ntwo\nthree\n", "one\nTWO\nthree\n")]),
    "in a diff's fence": (fence(update("@@", "-a", "+b")), [A_TO_B]),
    "stacked scopes": (update("@@ class A:", "@@     def f(self):", "-a", "+b"),
        [hunk("a\n", "b\n", scopes=("class A:", "def f(self):"))]),
    "a diff's numbers": (update("@@ -12,2 +12,3 @@ class A:", "-a", "+b"),
        [hunk("a\n", "b\n", line=12)]),
    "@@ @@ and dots say nothing": (update("@@ @@", "-a", "+b", "@@ ... @@", "-a", "+b"),
        [A_TO_B, A_TO_B]),
    "a chunk behind the end of the file": (
        update("-a", "+b", "*** End of File", "", "@@", "-a", "+b"),
        [hunk("a\n", "b\n", at_end=True), A_TO_B]),
    "only added lines": (update("@@ def f():", "+b", ""), [hunk("", "b\n", scopes=("def f():",))]),
    "a chunk without a change is a place": (update("@@", " a", "@@", "", "@@", "-a", "+b"),
        [hunk("a\n", "a\n"), A_TO_B]),
    "some context lines lack their space": (
        update("@@", "one", " two", "-x", "@@", " three", "-y", "@@", "-z"),
        [hunk("one\ntwo\nx\n", "one\ntwo\n", bare=("one\n two\nx\n", "one\n two\n")),
         hunk("three\ny\n", "three\n", bare=(" three\ny\n", " three\n")), hunk("z\n", "")]),
    "an indented marker is context": (update("@@", " *** End Patch", "-a", "+b"),
        [hunk("*** End Patch\na\n", "*** End Patch\nb\n")]),
    "indented markers without another": (
        "*** Begin Patch\n*** Update File: a.py\n-a\n+b\n *** Delete File: x\n *** End Patch\n",
        [A_TO_B, ("x", DeleteFile())]),
    "an indented marker first": (
        "*** Begin Patch \n  *** Update File: a.py \n@@\n-a\n+b\n*** End Patch\t\n", [A_TO_B]),
    "indented markers between files": (
        patch("*** Add File: n", "+x", "  *** Delete File: a.py", "  *** Update File: a.py", "-a"),
        [("n", Create("x\n")), ("a.py", DeleteFile()), hunk("a\n", "")]),
    "a signed marker is text": (update("@@", "-*** End Patch", "+*** Begin Patch"),
        [hunk("*** End Patch\n", "*** Begin Patch\n")]),
    "a new file with @@ and blank lines": (patch("*** Add File: x", "@@", "+one", "", "+two", ""),
        [("x", Create("one\n\ntwo\n"))]),
    "a deletion that quotes": (patch("*** Delete File: a.py", "-a", "-b"),
        [("a.py", DeleteFile("a\nb\n"))]),
    "a move": (update("*** Move to: src/new.py", "@@", "-a", "+b"),
        [("a.py", Rename("src/new.py")), A_TO_B]),
    "a move alone": (update("*** Move to: n.py"), [("a.py", Rename("n.py"))]),
    "a move to where it is": (update("*** Move to: a.py", "-a", "+b"), [A_TO_B]),
    "dressed paths": (
        patch(*(f"*** Delete File: {path}" for path in ("`a.py`", "**src/b.py**", "b/a.py"))),
        [("a.py", DeleteFile()), ("src/b.py", DeleteFile()), ("a.py", DeleteFile())]),
    "prose": ("**Add File:** `x.py`\n***\n@@count = 1\nuse *** Begin Patch\n", []),
}  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), [*DIFFS.values(), *PARSES.values()])
def test_parses(text: str, expected: list[tuple[str, Op]]) -> None:
    assert said(text) == expected


MALFORMED = {
    "no edit": (patch(), UNREADABLE, 1),
    "not closed": ("x\n*** Begin Patch\n*** Update File: a.py\n-a\n", TRUNCATED, 2),
    "unknown marker": (patch("*** Frobnicate File: foo"), UNREADABLE, 2),
    "unknown marker behind a chunk": (update("-a", "+b", "*** Rename File: a.py"), UNREADABLE, 5),
    "misspelt": ("**Begin Patch**\n", UNREADABLE, 1),
    "quoted": ("> *** Begin Patch\n", UNREADABLE, 1),
    "no path": (patch("*** Update File:", "-a"), UNREADABLE, 2),
    "an update without a change": (update("@@", " a"), UNREADABLE, 2),
    "a new file's line without +": (patch("*** Add File: x", "+a", "b"), UNREADABLE, 4),
    "text under a deletion": (patch("*** Delete File: a.py", "gone"), UNREADABLE, 3),
}  # fmt: skip


@pytest.mark.parametrize(("text", "code", "line"), [*BROKEN.values(), *MALFORMED.values()])
def test_refuses(text: str, code: str, line: int) -> None:
    assert refused(text) == (code, line)


LINES = st.sampled_from(
    [
        "*** Begin Patch", "*** End Patch", " *** End Patch", "*** Update File: a.py", "EOF", "\r",
        "*** End of File", "*** Move to: y", "@@ f", "+a", "-b", " c", "", "```", "@@ -1 +1 @@",
    ]
)  # fmt: skip


@given(st.lists(LINES, max_size=12))
def test_no_line_of_an_added_file_is_lost(lines: list[str]) -> None:
    text = patch("*** Add File: x", *("+" + line for line in lines))
    assert said(text) == [("x", Create("".join(line + "\n" for line in lines)))]
