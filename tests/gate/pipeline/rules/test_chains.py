"""Hunks of one file stand in its order (docs/formats.md, V4A patches and unified diffs)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from tests.helpers.deciding import Bench, Row, check

UNIT = "    begin()\n    work()\n    finish()\n"
THREE = f"first:\n{UNIT}second:\n{UNIT}third:\n{UNIT}last\n"
WORK = "     begin()\n-    work()\n+    work({})\n     finish()\n"
ONCE, TWICE = WORK.format(1), WORK.format(2)
AMBIGUOUS = ("match.ambiguous",)


def worked(*units: int) -> str:
    """The three units with what each was given, 0 for one that stays."""
    names = ("first", "second", "third")
    parts = [
        f"{name}:\n{UNIT.replace('work()', f'work({unit})') if unit else UNIT}"
        for name, unit in zip(names, units, strict=True)
    ]
    return "".join([*parts, "last\n"])


def v4a(chunks: Sequence[str], path: str = "a.txt") -> str:
    body = "".join("@@\n" + chunk for chunk in chunks)
    return f"*** Begin Patch\n*** Update File: {path}\n{body}*** End Patch\n"


def diff(chunks: Sequence[str], path: str = "a.txt") -> str:
    body = "".join("@@ ... @@\n" + chunk for chunk in chunks)
    return f"```diff\n--- a/{path}\n+++ b/{path}\n{body}```\n"


def numbered(*chunks: tuple[int, str], base: str = "") -> str:
    body = "".join(f"@@ -{line},3 +{line},3 @@\n{chunk}" for line, chunk in chunks)
    return f"{base}--- a/a.txt\n+++ b/a.txt\n{body}"


def both(name: str, before: str, chunks: Sequence[str], after: str | tuple[str, ...]) -> list[Row]:
    """The same chunks as a patch and as a diff."""
    return [
        Row(
            f"{name}, {form.__name__}",
            {"a.txt": before},
            form(chunks),
            {"a.txt": after} if isinstance(after, str) else None,
            () if isinstance(after, str) else after,
        )
        for form in (v4a, diff)
    ]


def one(name: str, before: str, response: str, after: str | tuple[str, ...]) -> Row:
    files: Mapping[str, str] = {"a.txt": before}
    if isinstance(after, str):
        return Row(name, files, response, {"a.txt": after})
    return Row(name, files, response, None, after)


FIRST, LAST = " first:\n" + ONCE, TWICE + " last\n"

CHAINS = [
    *both("between two that stand once", THREE, [FIRST, TWICE, WORK.format(3) + " last\n"],
          worked(1, 2, 3)),
    *both("behind one that stands once", THREE, [" second:\n" + ONCE, TWICE], worked(0, 1, 2)),
    *both("several behind the first", THREE, [FIRST, TWICE], AMBIGUOUS),
    *both("a chunk of context is a place", THREE, [" third:\n", ONCE], worked(0, 0, 1)),
    *both("a place before the context above it", "x\nhere:\ny\n", [" here:\n", "-x\n+X\n"],
          ("match.none",)),
    *both("a chunk of context that stands nowhere", THREE, [" fourth:\n", LAST], ("match.none",)),
    *both("all chains give the same bytes", "a\na\na\nb\n", ["-a\n", "-a\n", "-b\n+B\n"],
          "a\nB\n"),
    *both("there already, with the old text before", worked(0, 1, 2),
          [" second:\n" + ONCE, TWICE], AMBIGUOUS),
    one("a stated number says otherwise", THREE,
        numbered((5, " second:\n" + ONCE), (2, TWICE)), AMBIGUOUS),
    one("wrong numbers say nothing", THREE,
        numbered((70, " second:\n" + ONCE), (71, TWICE)), worked(0, 1, 2)),
    one("the scope line itself is quoted", THREE, v4a([" third:\n" + ONCE]).replace(
        "@@\n", "@@ third:\n"), worked(0, 0, 1)),
]  # fmt: skip


@pytest.mark.parametrize("row", CHAINS, ids=lambda row: row.name)
def test_chains(bench: Bench, row: Row) -> None:
    check(bench, row)
