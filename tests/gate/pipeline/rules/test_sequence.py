"""Order, dependence, overlap (docs/formats.md, Order): in every form that can say it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

import pytest

from bench.corpus.rewrites.forms import AS_IT_IS, FORMS
from bench.corpus.rewrites.tasks import Change
from patchq.gate.config.schema import Config
from tests.helpers.deciding import BASE, Bench, Row, check

PATH = "src/a.txt"
WRITERS = {form.name: form.write for form in FORMS}
BLOCKS = ("search_replace", "search_replace_fenced", "search_replace_dashes", "find_replace")
TEXT = (*BLOCKS, "indexed", "contextual")
CALLS = ("edit_list", "json_lines", "messages", "chat")
TEN = "".join(f"line {i}\n" for i in range(10))
AUTO = Config(mode="auto")
DECLARED = f"---\nbase: {BASE}\n---\n"

Pairs = Iterable[tuple[str, str]]


def said(form: str, pairs: Pairs, path: str = PATH) -> str:
    return WRITERS[form]([Change(path, old, new) for old, new in pairs], AS_IT_IS)


def rows(
    name: str,
    before: str,
    pairs: Pairs,
    after: str | None,
    forms: Iterable[str],
    codes: tuple[str, ...] = (),
    says: tuple[str, ...] = (),
) -> Iterator[Row]:
    """The same in several forms."""
    pairs = list(pairs)
    for form in forms:
        yield Row(
            f"{name}: {form}",
            {PATH: before},
            said(form, pairs),
            None if after is None else {PATH: after},
            codes,
            says=says,
        )


def lines(*words: str) -> str:
    return "".join(f"{word}\n" for word in words)


def tool(name: str, **arguments: object) -> dict[str, object]:
    return {"type": "tool_use", "id": "t", "name": name, "input": arguments}


def messages(*calls: Mapping[str, object]) -> str:
    content = [{**call, "id": f"t{number}"} for number, call in enumerate(calls)]
    return json.dumps({"type": "message", "role": "assistant", "model": "m", "content": content})


def edit(old: str, new: str, path: str = PATH) -> dict[str, object]:
    return tool("Edit", file_path=path, old_string=old, new_string=new)


def write(text: str, path: str = PATH) -> dict[str, object]:
    return tool("Write", file_path=path, content=text)


MOVED = lines("alpha", "def f", "  one", "omega")
TWICE = lines("top", "x = 1", "mid", "end")
CLAIM = lines("a", "b", "c", "d", "e")

NEIGHBOURS = [
    *rows("a chain", lines("a", "z"), [(lines("a"), lines("b")), (lines("b"), lines("c"))],
          lines("c", "z"), (*BLOCKS, *CALLS)),
    *rows("each on the base", lines("a", "b"),
          [(lines("a"), lines("b")), (lines("b"), lines("c"))], lines("b", "c"), (*TEXT, *CALLS)),
    *rows("a swap of lines", lines("a", "m", "b"),
          [(lines("a"), lines("b")), (lines("b"), lines("a"))], lines("b", "m", "a"), TEXT),
    *rows("overlapping quotes", CLAIM,
          [(lines("a", "b", "c"), lines("a", "B", "c")),
           (lines("b", "c", "d"), lines("b", "c", "D"))],
          lines("a", "B", "c", "D", "e"), (*TEXT, *CALLS)),
    *rows("two insertions keep their order", CLAIM,
          [(lines("a"), lines("a", "1")), (lines("b"), lines("2", "b"))],
          lines("a", "1", "2", "b", "c", "d", "e"), (*TEXT, *CALLS)),
    *rows("an unchanged quote beside a change", CLAIM,
          [(lines("a"), lines("A")), (lines("c", "d"), lines("c", "d"))],
          lines("A", "b", "c", "d", "e"), BLOCKS),
    *rows("an unchanged quote before its change", CLAIM,
          [(lines("c", "d"), lines("c", "d")), (lines("c"), lines("C"))],
          lines("a", "b", "C", "d", "e"), BLOCKS),
    *rows("an unchanged quote of what was written", CLAIM,
          [(lines("c"), lines("C")), (lines("b", "C"), lines("b", "C"))],
          lines("a", "b", "C", "d", "e"), BLOCKS),
    *rows("an unchanged quote round an insertion", CLAIM,
          [(lines("b"), lines("b", "n")), (lines("b", "c"), lines("b", "c"))],
          lines("a", "b", "n", "c", "d", "e"), BLOCKS),
    *rows("the same edit twice", CLAIM, [(lines("b"), lines("b", "n"))] * 2,
          lines("a", "b", "n", "c", "d", "e"), (*BLOCKS, *CALLS)),
    *rows("two results of one line", CLAIM, [(lines("b"), lines("B")), (lines("b"), lines("Q"))],
          None, (*TEXT, *CALLS), ("conflict.overlap",)),
    *rows("what is ambiguous on the base stays so", lines("a", "x", "a", "y"),
          [(lines("a", "x"), lines("b", "x")), (lines("a"), lines("c"))],
          None, TEXT, ("match.ambiguous",)),
]  # fmt: skip

READINGS = [
    *rows("a moved function is edited where it comes to stand", MOVED,
          [(lines("def f", "  one"), ""), (lines("omega"), lines("omega", "def f", "  one")),
           (lines("def f", "  one"), lines("def f", "  two"))],
          lines("alpha", "omega", "def f", "  two"), (*BLOCKS, "indexed", *CALLS)),
    *rows("two readings differ", TWICE,
          [(lines("top"), lines("TOP")), (lines("end"), lines("top", "x = 1", "end")),
           (lines("top", "x = 1"), lines("top", "x = 2"))],
          None, TEXT, ("conflict.order",), ("lines 1-2", "after")),
    *rows("calls are meant in sequence", TWICE,
          [(lines("top"), lines("TOP")), (lines("end"), lines("top", "x = 1", "end")),
           (lines("top", "x = 1"), lines("top", "x = 2"))],
          lines("TOP", "x = 1", "mid", "top", "x = 2", "end"), CALLS),
    *rows("the only place left, in calls", lines("a", "x", "a", "y"),
          [(lines("a", "x"), lines("b", "x")), (lines("a"), lines("c"))],
          lines("b", "x", "c", "y"), CALLS),
    *rows("between two changes, in calls", lines("a", "b", "c"),
          [(lines("a", "b", "c"), lines("A", "b", "C")), (lines("b"), lines("B"))],
          lines("A", "B", "C"), CALLS),
    *rows("between two changes, in text", lines("a", "b", "c"),
          [(lines("a", "b", "c"), lines("A", "b", "C")), (lines("b"), lines("B"))],
          None, TEXT, ("conflict.overlap",)),
    *rows("a deleted line is quoted unchanged", CLAIM,
          [(lines("b", "c"), lines("c")), (lines("b"), lines("b"))],
          None, BLOCKS, ("conflict.overlap",), ("stay as they are",)),
    *rows("a changed line is quoted unchanged, among others", CLAIM,
          [(lines("c"), lines("C")), (lines("b", "c", "d"), lines("b", "c", "d"))],
          None, BLOCKS, ("conflict.overlap",)),
    *rows("an unchanged quote of a moved line", CLAIM,
          [(lines("b"), ""), (lines("e"), lines("e", "b")), (lines("b"), lines("b"))],
          lines("a", "c", "d", "e", "b"), BLOCKS),
]  # fmt: skip

CALLED = [
    Row("write after edit", {PATH: TEN}, messages(edit("line 1\n", "one\n"), write(TEN + "end\n")),
        {PATH: TEN + "end\n"}, warnings=("base.unknown",), state="proposed"),
    Row("edit after write", {PATH: TEN},
        messages(write(TEN + "end\n"), edit("end\n", "END\n")), {PATH: TEN + "END\n"}),
    Row("edit of what the write took away", {PATH: TEN},
        messages(write(TEN[7:]), edit("line 0\n", "zero\n")), None, ("match.none",)),
    Row("write, write", {PATH: TEN}, messages(write(TEN + "a\n"), write(TEN + "b\n")),
        {PATH: TEN + "b\n"}),
    Row("the same write twice", {PATH: TEN}, messages(write(TEN + "a\n"), write(TEN + "a\n")),
        {PATH: TEN + "a\n"}),
    Row("written, changed, written again", {PATH: TEN},
        messages(write(TEN + "a\n"), write(TEN + "b\n"), write(TEN + "a\n")), None,
        ("conflict.order",)),
    Row("create, edit, write", {}, messages(write("a\n"), edit("a\n", "b\n"), write("c\n")),
        {PATH: "c\n"}, state="applied"),
    Row("write keeps CRLF, edits follow", {PATH: "a\r\nb\r\nc\r\n"},
        messages(write("a\nB\nc\n"), edit("c\n", "C\n")), {PATH: "a\r\nB\r\nC\r\n"}),
    Row("insertions by number, in their order", {PATH: lines("a", "b", "c", "d", "e")},
        messages(
            tool("str_replace_based_edit_tool", command="insert", path=PATH, insert_line=1,
                 insert_text="n\nm\n"),
            tool("str_replace_based_edit_tool", command="insert", path=PATH, insert_line=4,
                 insert_text="q\n")),
        {PATH: lines("a", "n", "m", "b", "q", "c", "d", "e")}, warnings=("base.unknown",),
        state="proposed"),
    Row("replace_all takes what a call before wrote", {PATH: lines("foo", "x")},
        messages(edit("x\n", "foo x\n"),
                 tool("Edit", file_path=PATH, old_string="foo", new_string="bar",
                      replace_all=True)),
        {PATH: lines("bar", "bar x")}),
    Row("replace_all cannot take what a call before wrote", {PATH: "dd b\n  k\n  dd\n"},
        messages(edit("  k\n", "  dd a\n    dd c\n  k\n"),
                 tool("Edit", file_path=PATH, old_string="dd", new_string="dd\nx",
                      replace_all=True)),
        codes=("match.none",)),
    Row("a call cannot be written where a call before puts its quote", {PATH: "ee d\nk\n"},
        messages(edit("ee d\nk", "    ee k"), edit("ee", "  new\nee")), codes=("match.none",)),
    Row("a repeated insertion inside a line", {PATH: "call(a)\n"},
        messages(edit("call(a)", "wrap(call(a))"), edit("call(a)", "wrap(call(a))")),
        {PATH: "wrap(call(a))\n"}),
    Row("written as it is", {PATH: TEN, "b.txt": "b\n"},
        messages(write(TEN), edit("b\n", "c\n", "b.txt")), {"b.txt": "c\n"}, state="applied"),
    Row("a write that leaves too little", {PATH: TEN},
        messages(edit("line 1\n", "one\n"), write("line 0\n")), None, ("edit.shrinks",)),
    Row("text beside calls is no call", {PATH: TEN},
        said("search_replace", [("line 1\n", "one\n")])
        + "\n" + json.dumps({"name": "Write", "input": {"file_path": PATH, "content": TEN + "e\n"}})
        + "\n", None, ("conflict.overlap",)),
]  # fmt: skip


def renamed(old: str, new: str) -> str:
    return f"{old}\n<<<<<<< RENAME\n{new}\n>>>>>>> RENAME\n\n"


def deleted(path: str) -> str:
    return f"{path}\n<<<<<<< DELETE\n>>>>>>> DELETE\n\n"


def created(path: str, text: str) -> str:
    return f"{path}\n<<<<<<< SEARCH\n=======\n{text}>>>>>>> REPLACE\n\n"


def changed(path: str, old: str, new: str) -> str:
    return f"{path}\n<<<<<<< SEARCH\n{old}=======\n{new}>>>>>>> REPLACE\n\n"


def v4a(*parts: str) -> str:
    return f"*** Begin Patch\n{''.join(parts)}*** End Patch\n"


def moved(old: str, new: str, body: str = "") -> str:
    return f"*** Update File: {old}\n*** Move to: {new}\n{body}"


def diff(old: str, new: str, body: str = "") -> str:
    head = f"diff --git a/{old} b/{new}\nsimilarity index {90 if body else 100}%\n"
    names = f"--- a/{old}\n+++ b/{new}\n" if body else ""
    return f"{head}rename from {old}\nrename to {new}\n{names}{body}"


ONE, TWO = lines("1", "same", "x"), lines("2", "same", "y")
FILES = {"a.txt": ONE, "b.txt": TWO}
NEW = TEN.replace("line 3", "line three")

WHOLE = [
    *(Row(f"deleted and created, {name}", {PATH: TEN}, text, {PATH: NEW},
          warnings=("base.unknown",), state="proposed")
      for name, text in {
          "blocks": deleted(PATH) + created(PATH, NEW),
          "blocks, the other way": created(PATH, NEW) + deleted(PATH),
          "v4a": v4a(f"*** Delete File: {PATH}\n*** Add File: {PATH}\n",
                     "".join(f"+{line}\n" for line in NEW.splitlines())),
          "a fence": f"{deleted(PATH)}````text:{PATH}\n{NEW}````\n",
      }.items()),
    Row("deleted and created on a declared base", {PATH: TEN},
        DECLARED + deleted(PATH) + created(PATH, NEW), {PATH: NEW}, state="applied"),
    Row("deleted with its text quoted, and created", {PATH: ONE},
        v4a(f"*** Delete File: {PATH}\n-1\n-same\n-x\n*** Add File: {PATH}\n+1\n+same\n+z\n"),
        {PATH: lines("1", "same", "z")}, state="applied"),
    Row("replaced by too little", {PATH: TEN}, deleted(PATH) + created(PATH, "line 0\n"), None,
        ("edit.shrinks",)),
    Row("replaced, with an elision", {"a.conf": TEN},
        deleted("a.conf") + created("a.conf", TEN + "# ... rest unchanged\n"), None,
        ("edit.elided",)),
    Row("replaced, its line ends kept", {PATH: "a\r\nb\r\n"},
        deleted(PATH) + created(PATH, "a\nB\n"), {PATH: "a\r\nB\r\n"}),
    Row("replaced and edited", {PATH: TEN},
        deleted(PATH) + created(PATH, NEW) + changed(PATH, "line 1\n", "one\n"), None,
        ("conflict.overlap",)),
    *(Row(f"a swap, {name}", FILES, text, {"a.txt": TWO, "b.txt": ONE},
          warnings=("base.unknown",), state="proposed")
      for name, text in {
          "blocks": renamed("a.txt", "b.txt") + renamed("b.txt", "a.txt"),
          "by a third name": renamed("a.txt", "t") + renamed("b.txt", "a.txt")
          + renamed("t", "b.txt"),
          "v4a": v4a(moved("a.txt", "b.txt"), moved("b.txt", "a.txt")),
          "diff": diff("a.txt", "b.txt") + diff("b.txt", "a.txt"),
      }.items()),
    Row("a swap on a declared base", FILES,
        DECLARED + renamed("a.txt", "b.txt") + renamed("b.txt", "a.txt"),
        {"a.txt": TWO, "b.txt": ONE}, state="applied"),
    *(Row(f"a chain, {name}", FILES, text, {"a.txt": None, "b.txt": ONE, "c.txt": TWO})
      for name, text in {
          "blocks": renamed("b.txt", "c.txt") + renamed("a.txt", "b.txt"),
          "blocks, the other way": renamed("a.txt", "b.txt") + renamed("b.txt", "c.txt"),
          "v4a": v4a(moved("a.txt", "b.txt"), moved("b.txt", "c.txt")),
          "diff": diff("a.txt", "b.txt") + diff("b.txt", "c.txt"),
      }.items()),
    Row("renamed twice, one name after the other", {"a.txt": ONE},
        renamed("a.txt", "b.txt") + renamed("b.txt", "c.txt"), {"a.txt": None, "c.txt": ONE},
        state="applied"),
    *(Row(f"created at the old name, {name}", FILES, text,
          {"a.txt": "new\n", "c.txt": ONE}, warnings=("base.unknown",))
      for name, text in {
          "blocks": renamed("a.txt", "c.txt") + created("a.txt", "new\n"),
          "blocks, the other way": created("a.txt", "new\n") + renamed("a.txt", "c.txt"),
          "v4a": v4a(moved("a.txt", "c.txt"), "*** Add File: a.txt\n+new\n"),
      }.items()),
    Row("written at the old name", FILES,
        renamed("a.txt", "c.txt") + "````text:a.txt\n1\nsame\nz\n````\n", None,
        ("conflict.order",)),
    Row("renamed onto a deleted file", FILES, renamed("a.txt", "b.txt") + deleted("b.txt"),
        {"a.txt": None, "b.txt": ONE}, warnings=("base.unknown",)),
    Row("renamed onto a deleted file that has much more", {"a.txt": "x\n", "b.txt": TEN},
        deleted("b.txt") + renamed("a.txt", "b.txt"), None, ("edit.shrinks",)),
    Row("renamed onto a file that stays", FILES, renamed("a.txt", "b.txt"), None, ("path.exists",)),
    Row("two files for one name", FILES, renamed("a.txt", "c.txt") + renamed("b.txt", "c.txt"),
        None, ("conflict.overlap",)),
    Row("two names for one file", FILES, renamed("a.txt", "c.txt") + renamed("a.txt", "d.txt"),
        None, ("conflict.overlap",)),
    *(Row(f"swapped, and edited where the quote stands once, under {path}", FILES,
          renamed("a.txt", "b.txt") + changed(path, "1\n", "I\n") + renamed("b.txt", "a.txt"),
          {"a.txt": TWO, "b.txt": "I\nsame\nx\n"})
      for path in ("a.txt", "b.txt")),
    Row("swapped, and edited where the quote stands in both", FILES,
        renamed("a.txt", "b.txt") + renamed("b.txt", "a.txt") + changed("a.txt", "same\n", "S\n"),
        None, ("conflict.order",), says=("two files", "renames")),
    Row("a chain, and edited where the quote stands in both", FILES,
        changed("b.txt", "same\n", "S\n") + renamed("b.txt", "c.txt") + renamed("a.txt", "b.txt"),
        None, ("conflict.order",)),
    Row("created at the old name, and edited where the quote stands in both", FILES,
        renamed("a.txt", "c.txt") + created("a.txt", "same\n") + changed("a.txt", "same\n", "S\n"),
        None, ("conflict.order",)),
    Row("a diff swaps and edits: its paths are the base's", FILES,
        diff("a.txt", "b.txt", "@@ -1,3 +1,3 @@\n 1\n-same\n+S\n x\n") + diff("b.txt", "a.txt"),
        {"a.txt": TWO, "b.txt": "1\nS\nx\n"}),
    *(Row(f"a binary file {name}", {"a.bin": b"\0a", "b.bin": b"\0b"}, text, after)
      for name, text, after in (
          ("in a swap", renamed("a.bin", "b.bin") + renamed("b.bin", "a.bin"),
           {"a.bin": b"\0b", "b.bin": b"\0a"}),
          ("in a chain", renamed("a.bin", "b.bin") + renamed("b.bin", "c.bin"),
           {"a.bin": None, "b.bin": b"\0a", "c.bin": b"\0b"}),
      )),
]  # fmt: skip

UNSEEN = [
    Row("a write of what is there", {PATH: TEN, "b.txt": "b\n"},
        f"````text:{PATH}\n{TEN}````\n\n````text:b.txt\nc\n````\n", {"b.txt": "c\n"},
        warnings=("base.unknown",), state="proposed", says=("b.txt is changed",)),
    Row("an insertion by number that is there", {PATH: lines("a", "b"), "b.txt": "b\n"},
        json.dumps([{"command": "insert", "path": PATH, "insert_line": 1, "insert_text": "b\n"},
                    {"path": "b.txt", "old_str": "b\n", "new_str": "c\n"}]),
        {"b.txt": "c\n"}, state="applied"),
    Row("a creation needs no base", {}, created(PATH, "a\n"), {PATH: "a\n"}, state="applied"),
    Row("a deletion", {PATH: TEN, "b.txt": "b\n"}, deleted(PATH), {PATH: None},
        warnings=("base.unknown",), state="proposed"),
    Row("a rename says what it means", {PATH: TEN}, renamed(PATH, "b.txt"),
        {PATH: None, "b.txt": TEN}, state="applied"),
]  # fmt: skip


@pytest.mark.parametrize("row", NEIGHBOURS, ids=lambda row: row.name)
def test_what_stays(bench: Bench, row: Row) -> None:
    check(bench, replace(row, config=AUTO))


@pytest.mark.parametrize("row", READINGS, ids=lambda row: row.name)
def test_two_readings(bench: Bench, row: Row) -> None:
    check(bench, replace(row, config=AUTO))


@pytest.mark.parametrize("row", CALLED, ids=lambda row: row.name)
def test_calls(bench: Bench, row: Row) -> None:
    check(bench, replace(row, config=AUTO))


@pytest.mark.parametrize("row", WHOLE, ids=lambda row: row.name)
def test_whole_files(bench: Bench, row: Row) -> None:
    check(bench, replace(row, config=AUTO))


@pytest.mark.parametrize("row", UNSEEN, ids=lambda row: row.name)
def test_what_says_nothing_of_its_base(bench: Bench, row: Row) -> None:
    check(bench, replace(row, config=AUTO))


def test_what_a_later_call_overwrites_is_skipped_and_named(bench: Bench) -> None:
    text = messages(edit("line 1\n", "one\n"), write(TEN + "a\n"), write(TEN + "b\n"))
    edits = bench.decide(Row("", {PATH: TEN}, text)).decision.edits
    assert [edit.state for edit in edits] == ["skipped", "skipped", "applied"]
    assert [edit.cancelled_by for edit in edits] == ["2", "3", None]
