"""SEARCH/REPLACE blocks and FIND/REPLACE halves, as the forms allow them to be written."""

from __future__ import annotations

import re
from collections.abc import Mapping

from bench.corpus.rewrites.kinds.beside import sample
from bench.corpus.rewrites.registry import Brief, Files, Rewrite, exact, kind, refuse
from bench.corpus.rewrites.tasks import Change, applied

LIST = "".join(f"{word}\n" for word in ("one", "two", "three", "four", "five", "six", "seven"))
PATH = "notes/list.txt"
FOUR = LIST.replace("four\n", "FOUR\n")
BLOCK = "<<<<<<< SEARCH\nthree\nfour\n=======\nthree\nFOUR\n>>>>>>> REPLACE\n"
RST = "The title\n=====\n\nSome words.\n\nAnother\n=======\n\nMore words.\n"


def _block(old: str, new: str, size: int = 7) -> str:
    return f"{'<' * size} SEARCH\n{old}{'=' * size}\n{new}{'>' * size} REPLACE\n"


def _at(path: str, old: str, new: str, size: int = 7) -> str:
    return f"{path}\n{_block(old, new, size)}"


for _size in (5, 6, 8, 9):
    sample(
        f"markers of {_size}",
        "blocks",
        {PATH: LIST},
        _at(PATH, "three\nfour\n", "three\nFOUR\n", _size),
        {PATH: FOUR},
    )
for _tag in ("source", "code", "pre", "codeblock", "sourcecode"):
    sample(
        f"a block in <{_tag}>",
        "blocks",
        {PATH: LIST},
        f"{PATH}\n<{_tag}>\n{BLOCK}</{_tag}>\n",
        {PATH: FOUR},
    )

_SIX = _block("six\n", "SIX\n")
_OTHER = "notes/other.txt"
_MERGE = "<<<<<<< HEAD\nours\n=======\ntheirs\n>>>>>>> topic\n"
_TITLE = "The title\n=====\n\nSome words.\n", "The title\n=====\n\nOther words.\n"
_LONG = "Another\n=======\n\nMore words.\n", "Another\n=======\n\nFewer words.\n"
_DELETE = f"{PATH}\n<<<<<<< DELETE\n>>>>>>> DELETE\n"
_RENAME = f"{PATH}\n<<<<<<< RENAME\n{_OTHER}\n>>>>>>> RENAME\n"
_UPDATED = BLOCK.replace("SEARCH", "ORIGINAL").replace("REPLACE", "UPDATED")

_READ: tuple[tuple[str, Files, str, Mapping[str, str | None]], ...] = (
    ("ORIGINAL and UPDATED", {PATH: LIST}, f"{PATH}\n{_UPDATED}", {PATH: FOUR}),
    ("an empty REPLACE", {PATH: LIST}, _at(PATH, "four\n", ""),
     {PATH: LIST.replace("four\n", "")}),
    ("an empty SEARCH over an empty file", {PATH: ""}, _at(PATH, "", LIST), {PATH: LIST}),
    ("a second divider before the end, in code", {"tools/a.py": "x = 1\ny = 2\n"},
     _at("tools/a.py", "x = 1\n", "x = 3\n=======\n"), {"tools/a.py": "x = 3\ny = 2\n"}),
    ("a heading of another length than the divider", {"notes/page.rst": RST},
     _at("notes/page.rst", *_TITLE),
     {"notes/page.rst": RST.replace("Some words", "Other words")}),
    ("longer markers round text with markers", {"notes/merge.txt": _MERGE},
     _at("notes/merge.txt", _MERGE, "both\n", 9), {"notes/merge.txt": "both\n"}),
    ("a fence that was opened twice", {PATH: LIST},
     f"{PATH}\n```text\n```text\n{BLOCK}```\n", {PATH: FOUR}),
    ("the path in the fence's info", {PATH: LIST}, f"```text {PATH}\n{BLOCK}```\n", {PATH: FOUR}),
    ("a word that the base has as path", {"Makefile": LIST}, f"Makefile\n{BLOCK}",
     {"Makefile": FOUR}),
    ("a bare word over an empty SEARCH", {}, _at("AUTHORS", "", LIST), {"AUTHORS": LIST}),
    ("a second block without a path", {PATH: LIST},
     f"{PATH}\n{BLOCK}\nand then\n\n{_SIX}", {PATH: FOUR.replace("six", "SIX")}),
    ("a DELETE block", {PATH: LIST}, _DELETE, {PATH: None}),
    ("a rename alone", {PATH: LIST}, _RENAME, {PATH: None, _OTHER: LIST}),
)  # fmt: skip
_REFUSED: tuple[tuple[str, Files, str], ...] = (
    ("an empty SEARCH over a file with text", {PATH: LIST}, _at(PATH, "", "other\n")),
    ("a SEARCH of blank lines", {PATH: LIST}, _at(PATH, "\n\n", "x\n")),
    ("two dividers", {PATH: LIST}, _at(PATH, "four\n", "FOUR\n=======\nx\n")),
    ("a heading as long as the divider", {"notes/page.rst": RST}, _at("notes/page.rst", *_LONG)),
    ("words between a block and its fence's end", {PATH: LIST},
     f"{PATH}\n```text\n{BLOCK}These words are none of it.\n```\n"),
    ("a stray closing marker", {PATH: LIST}, f"{PATH}\n{BLOCK}\n>>>>>>> REPLACE\n"),
    ("a stray opening marker", {PATH: LIST}, f"{PATH}\n{BLOCK}\n<<<<<<< SEARCH\n"),
    ("half a block in a fence", {PATH: LIST},
     f"{PATH}\n```text\n<<<<<<< SEARCH\nfour\n=======\nFOUR\n```\n"),
    ("a block that has lost its SEARCH marker", {PATH: LIST},
     f"{PATH}\n```text\nfour\n=======\nFOUR\n>>>>>>> REPLACE\n```\n"),
    ("a DELETE block for no file", {}, _DELETE),
    ("an edit and a deletion of one file", {PATH: LIST}, f"{PATH}\n{BLOCK}\n{_DELETE}"),
    ("two creations of one path", {}, _at(PATH, "", LIST) + "\n" + _at(PATH, "", FOUR)),
    ("a rename onto a file", {PATH: LIST, _OTHER: FOUR}, _RENAME),
)  # fmt: skip
for _name, _before, _edit, _after in _READ:
    sample(_name, "blocks", _before, _edit, _after)
for _name, _before, _edit in _REFUSED:
    sample(_name, "blocks", _before, _edit, None)


@kind("a first block without a path", "blocks")
def _pathless(brief: Brief) -> Rewrite | None:
    if brief.form.name not in {"search_replace", "search_replace_dashes"}:
        return None
    first, *_ = brief.changes
    if first.old is None or first.new is None:
        return None
    return refuse(brief.response([first]).partition("\n")[2])


@kind("the path in the front matter", "blocks")
def _front_path(brief: Brief) -> Rewrite | None:
    """Blocks without a path of their own, and FIND halves without `FILE:`."""
    if brief.form.family not in {"blocks", "find"} or not brief.replacements():
        return None
    c = brief.replacements()[0]
    text = re.sub(r"\A.*\n\n?", "", brief.response([c]))
    after = applied(brief.task.before, [c])
    return exact(f"---\nfile: {c.path}\n---\n{text}", after)


# ---------------------------------------------------------------- FIND/REPLACE

WORDS = (
    ("Find:", "Replace with:"), ("find:", "replace with:"), ("FIND :", "REPLACE  WITH :"),
    ("**FIND:**", "**REPLACE WITH:**"), ("Find:", "REPLACE WITH:"),
)  # fmt: skip


@kind("FIND: other case and blanks", "find")
def _find_words(brief: Brief) -> Rewrite | None:
    if brief.form.family != "find":
        return None
    find, put = brief.dice.choice(WORDS)
    return exact(brief.response().replace("FIND:\n", f"{find}\n").replace("REPLACE WITH:", put))


@kind("FIND: numbers that do not count", "find")
def _numbers(brief: Brief) -> Rewrite | None:
    if brief.form.family != "find":
        return None
    number = brief.dice.choice(["1", "7", "12"])
    return exact(re.sub(r"^### CHANGE \d+", f"### CHANGE {number}", brief.response(), flags=re.M))


@kind("FIND: without headings", "find")
def _no_headings(brief: Brief) -> Rewrite | None:
    if brief.form.family != "find":
        return None
    return exact(re.sub(r"^### CHANGE .*\n", "", brief.response(), flags=re.MULTILINE))


@kind("FIND: longer fences", "find")
def _longer(brief: Brief) -> Rewrite | None:
    if brief.form.family != "find":
        return None
    return exact(re.sub(r"^```", "`````", brief.response(), flags=re.MULTILINE))


@kind("FIND: a half is missing", "find")
def _half(brief: Brief) -> Rewrite | None:
    if brief.form.family != "find":
        return None
    head, found, _ = brief.response().rpartition("REPLACE WITH:")
    assert found
    lost = applied(brief.task.before, brief.changes[:-1])
    return refuse(head.rstrip() + "\n", losses=[lost])


@kind("a line that both halves elide", "damage")
def _same_dots(brief: Brief) -> Rewrite | None:
    """A `...` that the file itself has is a line like any other."""
    if brief.form.family not in {"blocks", "find"}:
        return None
    path, text = "notes/dots.txt", "first\n...\nsecond\nthird\n"
    change = Change(path, "...\nsecond\n", "...\nSECOND\n", 1)
    before = {**brief.task.before, path: text}
    return exact(brief.response([change]), applied(before, [change]), before=before)
