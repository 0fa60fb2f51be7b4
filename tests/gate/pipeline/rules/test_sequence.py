"""Order, dependence, overlap (docs/formats.md, Order): in every form that can say it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import pytest

from bench.corpus.rewrites.forms import AS_IT_IS, FORMS
from bench.corpus.rewrites.tasks import Change
from patchq.gate.config.schema import Config
from tests.gate.pipeline.rules.test_calls import called
from tests.helpers.deciding import Bench, Row, check

PATH = "src/a.txt"
WRITERS = {form.name: form.write for form in FORMS}
BLOCKS = ("search_replace", "search_replace_fenced", "search_replace_dashes", "find_replace")
TEXT = (*BLOCKS, "indexed", "contextual")
CALLS = ("edit_list", "json_lines", "messages", "chat")
TEN = "".join(f"line {i}\n" for i in range(10))
AUTO = Config(mode="auto")

Pairs = Iterable[tuple[str, str]]


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
    changes = [Change(PATH, old, new) for old, new in pairs]
    files = None if after is None else {PATH: after}
    for form in forms:
        text = WRITERS[form](changes, AS_IT_IS)
        yield Row(f"{name}: {form}", {PATH: before}, text, files, codes, says=says)


def lines(*words: str) -> str:
    return "".join(f"{word}\n" for word in words)


def edit(old: str, new: str) -> tuple[str, dict[str, str]]:
    return "Edit", {"file_path": PATH, "old_string": old, "new_string": new}


def write(text: str) -> tuple[str, dict[str, str]]:
    return "Write", {"file_path": PATH, "content": text}


MOVED = lines("alpha", "def f", "  one", "omega")
TWICE = lines("top", "x = 1", "mid", "end")
CLAIM = lines("a", "b", "c", "d", "e")


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
    *rows("a deleted line is quoted unchanged", CLAIM,
          [(lines("b", "c"), lines("c")), (lines("b"), lines("b"))],
          None, BLOCKS, ("conflict.overlap",), ("stay as they are",)),
]  # fmt: skip

CALLED = [
    Row("write after edit", {PATH: TEN}, called(edit("line 1\n", "one\n"), write(TEN + "end\n")),
        {PATH: TEN + "end\n"}, warnings=("base.unknown",), state="proposed"),
    Row("edit after write", {PATH: TEN},
        called(write(TEN + "end\n"), edit("end\n", "END\n")), {PATH: TEN + "END\n"}),
]  # fmt: skip


def renamed(old: str, new: str) -> str:
    return f"{old}\n<<<<<<< RENAME\n{new}\n>>>>>>> RENAME\n\n"


def deleted(path: str) -> str:
    return f"{path}\n<<<<<<< DELETE\n>>>>>>> DELETE\n\n"


def changed(path: str, old: str, new: str) -> str:
    return f"{path}\n<<<<<<< SEARCH\n{old}=======\n{new}>>>>>>> REPLACE\n\n"


ONE, TWO = lines("1", "same", "x"), lines("2", "same", "y")
FILES = {"a.txt": ONE, "b.txt": TWO}
NEW = TEN.replace("line 3", "line three")

WHOLE = [
    *(Row(f"deleted and created, {name}", {PATH: TEN}, text, {PATH: NEW},
          warnings=("base.unknown",), state="proposed")
      for name, text in {
          "blocks": deleted(PATH) + changed(PATH, "", NEW),
          "blocks, the other way": changed(PATH, "", NEW) + deleted(PATH),
          "a fence": f"{deleted(PATH)}````text:{PATH}\n{NEW}````\n",
      }.items()),
    Row("a swap", FILES, renamed("a.txt", "b.txt") + renamed("b.txt", "a.txt"),
        {"a.txt": TWO, "b.txt": ONE}, warnings=("base.unknown",), state="proposed"),
    Row("a swap by a third name", FILES,
        renamed("a.txt", "t") + renamed("b.txt", "a.txt") + renamed("t", "b.txt"),
        {"a.txt": TWO, "b.txt": ONE}, state="proposed"),
    Row("a chain", FILES, renamed("b.txt", "c.txt") + renamed("a.txt", "b.txt"),
        {"a.txt": None, "b.txt": ONE, "c.txt": TWO}),
    Row("renamed onto a deleted file", FILES, renamed("a.txt", "b.txt") + deleted("b.txt"),
        {"a.txt": None, "b.txt": ONE}, warnings=("base.unknown",)),
    Row("swapped, and edited where the quote stands once", FILES,
        renamed("a.txt", "b.txt") + changed("a.txt", "1\n", "I\n") + renamed("b.txt", "a.txt"),
        {"a.txt": TWO, "b.txt": "I\nsame\nx\n"}),
    Row("swapped, and edited where the quote stands in both", FILES,
        renamed("a.txt", "b.txt") + renamed("b.txt", "a.txt") + changed("a.txt", "same\n", "S\n"),
        None, ("conflict.order",), says=("two files", "renames")),
]  # fmt: skip


def test_what_a_later_call_overwrites_is_skipped_and_named(bench: Bench) -> None:
    text = called(edit("line 1\n", "one\n"), write(TEN + "a\n"), write(TEN + "b\n"))
    edits = bench.decide(Row("", {PATH: TEN}, text)).decision.edits
    assert [edit.state for edit in edits] == ["skipped", "skipped", "applied"]
    assert [edit.cancelled_by for edit in edits] == ["2", "3", None]


ROWS = [*READINGS, *CALLED, *WHOLE]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_order(bench: Bench, row: Row) -> None:
    check(bench, replace(row, config=AUTO))
