"""Parsing and matching: how long one response takes, and how the time grows with its size.

    python -m bench.speed.matching [--only PART] [--steps 3]

Each figure is the best of three, in milliseconds of the processor, in this process; no repository
takes part.  From one column to the next the input doubles, so a time that is proportional to it
doubles too: `growth` is the largest ratio of two neighbours.  The parts:

    realistic   reading a response (`parse`) and finding its edits' places (`apply`)
    grammars    reading texts that are made to be slow, for each grammar, from 64 KiB on
    matching    finding places in files that are made to be slow
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise

from bench.console import command_line
from patchq.core import formats
from patchq.core.model.listing import Listing
from patchq.core.model.ops import Op, PatchHunk, Replace, ReplaceText
from patchq.core.model.values import Edit, Entry
from patchq.core.plan import batch
from patchq.core.plan.targets import PlanRules
from patchq.core.resolve.levels import LEVELS

RULES = PlanRules(LEVELS, lambda path: None, 64 << 20)
PATH = "src/big.py"
PARTS = ("realistic", "grammars", "matching")

BLOCK = f"{PATH}\n<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n"
GRAMMARS = {
    "prose": ("", "This line says why the change is right.\n"),
    "empty lines": ("", "\n"),
    "short lines": ("", "x\n"),
    "one line": ("", "x"),
    "blocks": ("", BLOCK),
    "markers": (f"{PATH}\n", "<<<<<<< SEARCH\n"),
    "dividers": (f"{PATH}\n<<<<<<< SEARCH\n", "=======\n"),
    "fences": ("", "```\n"),
    "fences that open": ("", "```python\n"),
    "fences of diffs": ("", "```diff\n"),
    "fences of diffs and text": ("", "```diff\nx\n"),
    "a fence of a diff": ("```diff\n", "x\n"),
    "fences under a path": ("a.py\n", "```\n"),
    "fences with JSON": ("", "```\n{}\n"),
    "tags in a block": (f"{PATH}\n````\n<<<<<<< SEARCH\n", "<source>\n"),
    "paths": ("", f"{PATH}\n"),
    "headings": ("", f"### `{PATH}`\n"),
    "FIND labels": ("", "Find\n"),
    "stars": ("", "**\n"),
    "FILE lines": ("", f"FILE: {PATH}\n"),
    "files of one line": ("", "x\nFILE: a\n"),
    "files without lines": ("", "```a.py\n```\n"),
    "heads of mails": ("", "From: a\nSubject: x\n"),
    "V4A markers": ("*** Begin Patch\n", "*** Update File: a.py\n@@\n-a\n+b\n"),
    "diff hunks": (f"--- a/{PATH}\n+++ b/{PATH}\n", "@@ -1,2 +1,2 @@\n a\n-b\n+c\n"),
    "diffs and prose": ("", "diff --git a/x.py b/x.py\n 1 line\nx\n"),
    "JSON objects": ("", '{"a": 1}\n'),
    "JSON openers": ("", "{\n"),
    "JSON values": ("", "{}\n"),
    "JSON of another kind": ("", "{ key: 1 }\n"),
    "JSON cut in a text": ("", '{"\n[]\n~~~~\n'),
    "JSON in fences of diffs": ("a.py\n", '```diff\n["\nFILE: a\n'),
    "JSON depth": ("", "["),
    "JSON depth in lines": ("", "[\n"),
    "JSON edits": ("", '{"path": "a.py", "old_str": "x", "new_str": "y"}\n'),
    "JSON string": ('{"a": "', "x\n"),
    "a command and one word": ("$ echo 'a'\n", "x"),
    "commands with quotes": ("", "$ echo 'a'b\n"),
    "tags on one line": ("", "<b>"),
    "pairs of tags on one line": ("", "<b>x</b>"),
    "pairs of tags in each other": ("", "<b a>" + "<i></i>" * 8 + "</b>\n"),
    "escaped lines": ("", "a &amp;lt; b \\n\n"),
    "thinking": ("", "<think>x</think>\n"),
    "mail heads": ("", "From: a\n"),
}
"""What a hostile text begins with, and what it repeats."""


class OneFile:
    """A tree that holds one file."""

    def __init__(self, text: str) -> None:
        self.data = text.encode()

    def entry(self, path: str) -> Entry | None:
        kind = {"src": "tree", PATH: "file"}.get(path)
        return Entry(kind, "0" * 40) if kind else None  # type: ignore[arg-type]

    def read(self, path: str) -> bytes:
        return self.data

    def names(self, directory: str) -> tuple[str, ...]:
        return {"": ("src",), "src": ("big.py",)}.get(directory, ())

    def paths(self) -> Iterator[str]:
        return iter((PATH,))

    def listing(self) -> Listing:
        return Listing.of(self.paths())

    def filtered(self, path: str) -> str | None:
        return None


def main() -> int:
    parser = command_line("bench.speed.matching", __doc__)
    parser.add_argument("--only", choices=PARTS)
    parser.add_argument("--steps", type=int, default=3, help="columns of a curve")
    args = parser.parse_args()
    for part in [args.only] if args.only else PARTS:
        if part == "realistic":
            realistic()
        elif part == "grammars":
            heading("bytes of the text", [1 << 16 + step for step in range(args.steps)])
            for name, (head, unit) in GRAMMARS.items():
                curve(name, [reading(head, unit, 1 << 16 + step) for step in range(args.steps)])
        else:
            heading("lines of the file", [10_000 << step for step in range(args.steps)])
            for name, make in HOSTILE.items():
                curve(name, [placing(make(10_000 << step)) for step in range(args.steps)])
    return 0


# ---------------------------------------------------------------- figures


def best(work: Callable[[], object]) -> float:
    times = []
    for _ in range(3):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times) * 1000


def heading(what: str, sizes: Iterable[int]) -> None:
    print(f"\n{what:<28}" + "".join(f"{size:>11}" for size in sizes) + f"{'growth':>9}")


def curve(name: str, works: Iterable[Callable[[], object]]) -> None:
    times = [best(work) for work in works]
    growth = max((b / a for a, b in pairwise(times)), default=0.0)
    print(f"{name:<28}" + "".join(f"{ms:>11.1f}" for ms in times) + f"{growth:>9.2f}")


def reading(head: str, unit: str, size: int) -> Callable[[], object]:
    text = head + unit * (size // len(unit))
    return lambda: formats.parse(text, {PATH}.__contains__)


def placing(case: tuple[list[Op], str]) -> Callable[[], object]:
    ops, text = case
    edits = [Edit(str(i), "bench", (i, i), PATH, op) for i, op in enumerate(ops, 1)]
    return lambda: batch.plan(edits, OneFile(text), RULES)


# ---------------------------------------------------------------- realistic


def source(lines: int) -> str:
    return "".join(f"    value_{i} = compute({i}, other[{i % 97}])\n" for i in range(lines))


def block(i: int, trailing: str = "", indent: str = "") -> str:
    old = [
        f"{indent}    value_{k} = compute({k}, other[{k % 97}]){trailing}" for k in range(i, i + 3)
    ]
    new = [old[0], f"{indent}    changed_{i} = True", old[2]]
    halves = "\n".join(old), "\n".join(new)
    return f"{PATH}\n<<<<<<< SEARCH\n{halves[0]}\n=======\n{halves[1]}\n>>>>>>> REPLACE\n\n"


def spread(lines: int, edits: int, **damage: str) -> str:
    """`edits` blocks, evenly over a file of so many lines."""
    step = max((lines - 10) // edits, 4)
    return "".join(block(i * step + 2, **damage) for i in range(edits))


def realistic() -> None:
    print(f"{'':<44} {'response':>10} {'parse ms':>9} {'apply ms':>9}")
    for lines in (1000, 10_000, 50_000):
        text = source(lines)
        measure(f"one edit, {lines} lines", text, spread(lines, 1))
        measure(
            f"the same with trailing blanks, {lines} lines", text, spread(lines, 1, trailing=" ")
        )
        measure(f"the same indented, {lines} lines", text, spread(lines, 1, indent="  "))
        missing = spread(lines, 1).replace("compute", "computed")
        measure(f"one edit that stands nowhere, {lines} lines", text, missing)
    for edits in (20, 200, 1000, 2000):
        measure(f"{edits} edits, {lines} lines", text, spread(lines, edits))
    half = "".join(text.splitlines(keepends=True)[:3000])
    quote = f"{PATH}\n<<<<<<< SEARCH\n{half}=======\n{half.replace('7', 'x')}>>>>>>> REPLACE\n"
    measure(f"a quote of 3000 lines, {lines} lines", text, quote)
    prose = "This sentence of prose says why the change is right, as models like to do.\n" * 3300
    measure(f"64 k tokens, 60 edits in prose, {lines} lines", text, spread(lines, 60) + prose)


def measure(name: str, text: str, response: str) -> None:
    tree = OneFile(text)
    parsed = formats.parse(response, {PATH}.__contains__)
    plan = batch.plan(parsed.edits, tree, RULES)
    state = "refused" if parsed.problems or plan.refused else f"{len(plan.edits)} edits"
    parse = best(lambda: formats.parse(response, {PATH}.__contains__))
    place = best(lambda: batch.plan(parsed.edits, tree, RULES))
    print(f"{name:<44} {len(response) // 1024:>6} KiB {parse:>9.1f} {place:>9.1f}  {state}")


# ---------------------------------------------------------------- hostile files


def each(lines: int, make: Callable[[int], Op], count: int = 200) -> tuple[list[Op], str]:
    """The same number of edits whatever the file's size."""
    step = lines // count
    return [make(i * step) for i in range(count)], source(lines)


HOSTILE: dict[str, Callable[[int], tuple[list[Op], str]]] = {
    "200 quotes of characters": lambda n: each(
        n, lambda i: ReplaceText(f"value_{i} = compute", f"valued_{i} = compute")
    ),
    "200 targets": lambda n: each(n, lambda i: ReplaceText(f"value_{i} ", f"w_{i} ", at=(1,))),
    "200 targets in context": lambda n: each(
        n, lambda i: ReplaceText("compute", "c", before=f"value_{i} = ", after="(")
    ),
    "200 hunks": lambda n: each(
        n, lambda i: PatchHunk(f"    value_{i} = compute({i}, other[{i % 97}])\n", "x\n", i + 1)
    ),
    "200 quotes that stand nowhere": lambda n: each(n, lambda i: Replace(f"walue_{i}\n", "x\n")),
    "one line, repeated": lambda n: ([Replace("same\n", "x\n")], "same\n" * n),
    "half of the lines": lambda n: ([Replace("same\n" * (n // 2), "x\n")], "same\n" * n),
    "half of them, and another": lambda n: (
        [Replace("same\n" * (n // 2) + "other\n", "x\n")], "    same\n" * n,
    ),
    "half of the characters": lambda n: ([ReplaceText("a" * (n // 2), "b")], "a" * n),
    "two lines in turn": lambda n: (
        [Replace("a\nb\n" * (n // 4) + "a\na\n", "x\n")], "a\nb\n" * (n // 2),
    ),
    "every character": lambda n: ([ReplaceText("a", "bb", None)], "a" * n),
    "indentation in steps": lambda n: (
        [Replace("x\n" * 50, "z\n")], "".join(" " * (i % 50) + "x\n" for i in range(n)),
    ),
    "lines left out, many ways": lambda n: (
        [Replace("a\n" + "...\na\n" * 30, "a\n" + "...\na\n" * 29 + "...\nb\n")],
        "a\nc\n" * (n // 2),
    ),
    "blank lines": lambda n: (
        [Replace("\n" * 8 + "a\n" + "\n" * 8, "\n" * 8 + "b\n" + "\n" * 8)], "\n" * n,
    ),
    "long lines that differ": lambda n: ([Replace("x" * n + "q\n", "x\n")], "x" * n + "\n"),
    "new lines that stand there": lambda n: (
        [Replace("a\nq\n" * (n // 4), "a\nb\n" * (n // 4))], "a\nb\n" * (n // 2),
    ),
}  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
