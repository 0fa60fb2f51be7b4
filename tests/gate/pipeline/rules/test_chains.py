"""Hunks of one file stand in its order (docs/formats.md, V4A patches and unified diffs)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from tests.helpers.deciding import BASE, Bench, Row, check

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


DECLARED = f"---\nbase: {BASE}\n---\n"

NEIGHBOURS = [
    *both("each stands once", "a\nb\nc\n", ["-a\n+A\n", "-c\n+C\n"], "A\nb\nC\n"),
    *both("each stands once, in another order", "a\nb\nc\n", ["-c\n+C\n", "-a\n+A\n"], "A\nb\nC\n"),
    *both("context that both quote", "a\nb\nc\n", ["-a\n+A\n b\n", " b\n-c\n+C\n"], "A\nb\nC\n"),
    *both("the same twice", "a\nb\n", ["-a\n+A\n", "-a\n+A\n"], "A\nb\n"),
    *both("one chunk of three places", THREE, [ONCE], AMBIGUOUS),
    *both("two chunks of three places", THREE, [ONCE, TWICE], AMBIGUOUS * 2),
    one("a stated line on a declared base", THREE, numbered((6, ONCE), base=DECLARED),
        worked(0, 1, 0)),
    one("a stated line on any base", THREE, numbered((6, ONCE)), AMBIGUOUS),
    one("a scope", THREE, v4a([f"@@ third:\n{ONCE}"]).replace("@@\n@@", "@@"), worked(0, 0, 1)),
    one("the end of the file", "a\nb\na\n", v4a(["-a\n+A\n*** End of File\n"]), "a\nb\nA\n"),
    one("a bare CR", "x\ra\nb\n", v4a(["-x\n-a\n+A\n"]), "A\nb\n"),
]  # fmt: skip


@pytest.mark.parametrize("row", NEIGHBOURS, ids=lambda row: row.name)
def test_what_stays(bench: Bench, row: Row) -> None:
    check(bench, row)


FIRST, LAST = " first:\n" + ONCE, TWICE + " last\n"
LABEL = " second:\n"

CHAINS = [
    *both("as many as there are places", THREE, [ONCE, TWICE, WORK.format(3)], worked(1, 2, 3)),
    *both("between two that stand once", THREE, [FIRST, TWICE, WORK.format(3) + " last\n"],
          worked(1, 2, 3)),
    *both("behind one that stands once", THREE, [" second:\n" + ONCE, TWICE], worked(0, 1, 2)),
    *both("before one that stands once", THREE, [ONCE, " second:\n" + TWICE], worked(1, 2, 0)),
    *both("several behind the first", THREE, [FIRST, TWICE], AMBIGUOUS),
    *both("several before the last", THREE, [ONCE, LAST], AMBIGUOUS),
    *both("more than there are places", THREE, [ONCE] * 2 + [TWICE] * 2, AMBIGUOUS * 4),
    *both("a chunk of context is a place", THREE, [" third:\n", ONCE], worked(0, 0, 1)),
    *both("a chunk of context that stands thrice", THREE, [FIRST, "     begin()\n", TWICE, LAST],
          AMBIGUOUS),
    *both("chunks of context count", THREE, [UNIT.replace("    ", "     "), ONCE, TWICE],
          worked(0, 1, 2)),
    *both("a chunk of context behind the last", THREE, [ONCE, " second:\n"], worked(1, 0, 0)),
    *both("a place before the context above it", "x\nhere:\ny\n", [" here:\n", "-x\n+X\n"],
          ("match.none",)),
    *both("a chunk of context that stands nowhere", THREE, [" fourth:\n", LAST], ("match.none",)),
    *both("all chains give the same bytes", "a\na\na\nb\n", ["-a\n", "-a\n", "-b\n+B\n"],
          "a\nB\n"),
    *both("equal rows into equal rows", "top\nr\nr\nr\nend\n", [" top\n", " r\n+r\n", " end\n"],
          "top\nr\nr\nr\nr\nend\n"),
    *both("context that three places share", "-\nx\n-\nx\n-\nx\n-\n",
          [" -\n-x\n+1\n -\n", " -\n-x\n+2\n -\n"], AMBIGUOUS * 2),
    *both("as many as places that share context", "-\nx\n-\nx\n-\n",
          [" -\n-x\n+1\n -\n", " -\n-x\n+2\n -\n"], "-\n1\n-\n2\n-\n"),
    *both("dedented, behind one that stands once", THREE,
          [" second:\n" + ONCE, " begin()\n-work()\n+work(2)\n finish()\n"], worked(0, 1, 2)),
    *both("out of order, and in order if it is read loosely", "x = 1\nmid\n  x = 1\n",
          ["-mid\n+MID\n", "-x = 1\n+x = 2\n"], AMBIGUOUS),
    *both("between, one there already", THREE.replace("work()", "work(1)", 1),
          [FIRST, TWICE, WORK.format(3) + " last\n"], worked(1, 2, 3)),
    *both("there already, with the old text before", worked(0, 1, 2),
          [" second:\n" + ONCE, TWICE], AMBIGUOUS),
    *both("in part there already, with the old text before", worked(0, 0, 2),
          [" second:\n" + ONCE, TWICE], AMBIGUOUS),
    *both("there already, with the old text behind", worked(1, 2, 0),
          [ONCE, " second:\n" + TWICE], AMBIGUOUS),
    one("a stated number says otherwise", THREE,
        numbered((5, " second:\n" + ONCE), (2, TWICE)), AMBIGUOUS),
    one("a stated number names another place", THREE,
        numbered((1, "-first:\n+First:\n"), (2, " second:\n" + ONCE), (6, TWICE)), AMBIGUOUS),
    one("wrong numbers say nothing", THREE,
        numbered((70, " second:\n" + ONCE), (71, TWICE)), worked(0, 1, 2)),
    one("numbers that count the lines before", "a\nx\na\ny\na\n", DECLARED +
        "--- a/a.txt\n+++ b/a.txt\n@@ -2 +2,3 @@\n-x\n+X\n+X\n+X\n@@ -5 +7 @@\n-a\n+A\n",
        AMBIGUOUS),
    one("the scope line itself is quoted", THREE, v4a([" third:\n" + ONCE]).replace(
        "@@\n", "@@ third:\n"), worked(0, 0, 1)),
    one("lines added at one point", "a\nb\n", v4a(["+1\n", "+2\n"]).replace("@@\n", "@@ a\n"),
        "a\n1\n2\nb\n"),
    one("lines added between", THREE, v4a([FIRST, "+new\n", TWICE, LAST.replace("2", "3")])
        .replace("@@\n+new", "@@ second:\n+new"),
        worked(1, 2, 3).replace("second:\n", "second:\nnew\n")),
]  # fmt: skip


@pytest.mark.parametrize("row", CHAINS, ids=lambda row: row.name)
def test_chains(bench: Bench, row: Row) -> None:
    check(bench, row)


def test_sections_do_not_order_each_other(bench: Bench) -> None:
    """Two updates of one file, and two patches, are two sections."""
    update = f"*** Update File: a.txt\n@@\n second:\n{ONCE}"
    inner = f"*** Update File: a.txt\n@@\n{TWICE}"
    for response in (
        f"*** Begin Patch\n{update}{inner}*** End Patch\n",
        f"*** Begin Patch\n{update}*** End Patch\n\n*** Begin Patch\n{inner}*** End Patch\n",
    ):
        check(bench, one("two sections", THREE, response, AMBIGUOUS))
