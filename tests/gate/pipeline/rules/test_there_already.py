"""Edits that are there already (docs/formats.md, the ladder): recognised, or meant once more."""

from __future__ import annotations

import pytest

from bench.corpus.rewrites.forms import AS_IT_IS, FORMS
from bench.corpus.rewrites.tasks import Change
from tests.helpers.deciding import BASE, Bench, Row, check

DECLARED = f"---\nbase: {BASE}\n---\n"


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
    changes = [
        Change("a.txt", old, new, before[: max(before.find(old), 0)].count("\n"))
        for old, new in pairs
    ]
    return [
        Row(
            f"{name}, {form.name}",
            {"a.txt": before},
            head + form.write(changes, AS_IT_IS),
            None if after is None else {"a.txt": after},
            codes,
            state="duplicate" if after is None and not codes else None,
            since=None if since is None else {"a.txt": since},
        )
        for form in FORMS
        if form.family != "files" and form.name not in but and all(map(form.expresses, changes))
    ]


LIST = "head\nitems:\none\ntwo\nend\n"
LONG = "".join(f"line {n}\n" for n in range(20))
IN_ORDER = ("v4a", "unified_diff", "diff_fence", "mail")
"""Forms whose parts stand in the file's order, so that none builds on another."""
ROWS = [
    *_replaced("lines behind", LIST, ("one\n", "one\ntwo\n")),
    *_replaced("a changed line", LIST, ("one\nzwei\nend\n", "one\ntwo\nend\n")),
    *_replaced("a row, on a base that has it", "a\nrow\nrow\nb\n", ("a\nrow\n", "a\nrow\nrow\n"),
               head=DECLARED, codes=("match.none",)),
    *_replaced("what another edit removes, and the quote is there", "a\nrow\nb\nc\n",
               ("a\n", "a\nrow\n"), ("row\nb\n", "b\nrow\n"), codes=("match.none",),
               but=IN_ORDER),
    *_replaced("a chain that is not there", "x\na\ny\n", ("a\n", "a\nold\n"), ("old\n", "new\n"),
               after="x\na\nnew\ny\n", but=IN_ORDER),
    *_replaced("a second delivery", f"{LONG}a\nb\n", ("a\n", "a\nrow\n"), head=DECLARED,
               since=f"{LONG}a\nrow\nb\n"),
    Row("a whole file", {"a.txt": "one\n"}, "```text:a.txt\none\n```\n", state="duplicate"),
]  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_there_already(bench: Bench, row: Row) -> None:
    check(bench, row)
