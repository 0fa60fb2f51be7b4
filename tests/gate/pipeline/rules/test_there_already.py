"""Edits that are there already (docs/formats.md, the ladder): recognised, or meant once more."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from bench.corpus.rewrites.forms import AS_IT_IS, FORMS, Form
from bench.corpus.rewrites.tasks import Change
from tests.helpers.deciding import BASE, Bench, Row, check

DECLARED = f"---\nbase: {BASE}\n---\n"


def _forms(*changes: Change, but: tuple[str, ...] = ()) -> Iterator[tuple[Form, str]]:
    """Every form that says these changes by parts of the file."""
    for form in FORMS:
        if form.family != "files" and form.name not in but and all(map(form.expresses, changes)):
            yield form, form.write(changes, AS_IT_IS)


def _replaced(
    name: str,
    before: str,
    *pairs: tuple[str, str],
    after: str | None = None,
    codes: tuple[str, ...] = (),
    head: str = "",
    since: str | None = None,
    but: tuple[str, ...] = (),
) -> list[Row]:
    """Replacements of lines of `a.txt`, in every form; without `after` and codes a duplicate."""
    changes = [Change("a.txt", old, new, _line(before, old)) for old, new in pairs]
    return [
        Row(
            f"{name}, {form.name}",
            {"a.txt": before},
            head + text,
            None if after is None else {"a.txt": after},
            codes,
            state="duplicate" if after is None and not codes else None,
            since=None if since is None else {"a.txt": since},
        )
        for form, text in _forms(*changes, but=but)
    ]


def _line(text: str, lines: str) -> int:
    at = text.find(lines)
    return text.count("\n", 0, max(at, 0))


LIST = "head\nitems:\none\ntwo\nend\n"
THERE = [
    *_replaced("lines behind", LIST, ("one\n", "one\ntwo\n")),
    *_replaced("a changed line", LIST, ("one\nzwei\nend\n", "one\ntwo\nend\n")),
]
MEANT = [
    *_replaced("a row, on a base that has it", "a\nrow\nrow\nb\n", ("a\nrow\n", "a\nrow\nrow\n"),
               head=DECLARED, codes=("match.none",)),
]  # fmt: skip
UNKNOWN = [
    *_replaced("nothing kept", LIST, ("zwei\n", "two\n"), codes=("match.none",)),
]  # fmt: skip


TAKEN = [
    *_replaced("what another edit removes, and the quote is there", "a\nrow\nb\nc\n",
               ("a\n", "a\nrow\n"), ("row\nb\n", "b\nrow\n"), codes=("match.none",),
               but=("v4a", "unified_diff", "diff_fence", "mail")),
]  # fmt: skip

_IN_ORDER = ("v4a", "unified_diff", "diff_fence", "mail")
"""Forms whose parts stand in the file's order, so that none builds on another."""
CHAINS = [
    *_replaced("a chain that is not there", "x\na\ny\n", ("a\n", "a\nold\n"), ("old\n", "new\n"),
               after="x\na\nnew\ny\n", but=_IN_ORDER),
]  # fmt: skip

LONG = "".join(f"line {n}\n" for n in range(20))
MOVED = [
    *_replaced("a second delivery", f"{LONG}a\nb\n", ("a\n", "a\nrow\n"), head=DECLARED,
               since=f"{LONG}a\nrow\nb\n"),
]  # fmt: skip


def _call(before: str, old: str, new: str, name: str, **more: object) -> Row:
    text = json.dumps({"file_path": "a.txt", "old_string": old, "new_string": new})
    return Row(name, {"a.txt": before}, text, **more)  # type: ignore[arg-type]


PARTS = [
    _call("f:\n        a()\n", "a()", "    a()", "further in",
          after={"a.txt": "f:\n            a()\n"}),
    _call("if x:\n    y()\n", "y()", "if x:\n    y()", "a wrapping", state="duplicate"),
    _call("import a\nimport b\nc\n", "import a", "import a\nimport b", "the added line",
          state="duplicate"),
]  # fmt: skip


WHOLE = [
    Row("a creation", {"a.txt": "one\n"}, "a.txt\n<<<<<<< SEARCH\n=======\none\n>>>>>>> REPLACE\n",
        state="duplicate"),
    Row("a whole file", {"a.txt": "one\n"}, "```text:a.txt\none\n```\n", state="duplicate"),
]  # fmt: skip


@pytest.mark.parametrize(
    "row",
    [*THERE, *MEANT, *UNKNOWN, *TAKEN, *CHAINS, *MOVED, *PARTS, *WHOLE],
    ids=lambda row: row.name,
)
def test_there_already(bench: Bench, row: Row) -> None:
    check(bench, row)
