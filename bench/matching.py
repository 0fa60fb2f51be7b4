"""Parsing and matching: how long one response takes, and how the time grows with its size.

    python bench/matching.py [--sizes 1000,5000,20000,50000]

Each figure is the best of three, in milliseconds, in this process: reading the response (`parse`)
and finding every edit's place (`apply`).  No repository takes part.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator

from patchq import apply, formats
from patchq.model import Entry
from patchq.resolve.readings import RUNGS
from patchq.resolve.targets import Rules

RULES = Rules(RUNGS, lambda path: None, 64 << 20)
PATH = "src/big.py"


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

    def filtered(self, path: str) -> str | None:
        return None


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


def best(work: Callable[[], object]) -> float:
    times = []
    for _ in range(3):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times) * 1000


def measure(name: str, text: str, response: str) -> None:
    tree = OneFile(text)
    parsed = formats.parse(response, {PATH}.__contains__)
    plan = apply.plan(parsed.edits, tree, RULES)
    state = "refused" if parsed.problems or plan.refused else f"{len(plan.edits)} edits"
    parse = best(lambda: formats.parse(response, {PATH}.__contains__))
    place = best(lambda: apply.plan(parsed.edits, tree, RULES))
    print(f"{name:<44} {len(response) // 1024:>6} KiB {parse:>9.1f} {place:>9.1f}  {state}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="1000,5000,20000,50000")
    sizes = [int(size) for size in parser.parse_args().sizes.split(",")]
    print(f"{'':<44} {'response':>10} {'parse ms':>9} {'apply ms':>9}")
    for lines in sizes:
        text = source(lines)
        measure(f"one edit, {lines} lines", text, spread(lines, 1))
        blanks = spread(lines, 1, trailing="  ")
        measure(f"one edit with trailing blanks, {lines} lines", text, blanks)
        measure(f"one shifted edit, {lines} lines", text, spread(lines, 1, indent="  "))
    lines = sizes[-1]
    text = source(lines)
    missing = spread(lines, 1).replace("compute", "computed")
    measure(f"one edit that stands nowhere, {lines} lines", text, missing)
    for edits in (20, 200, 500, 1000, 2000):
        if edits * 4 < lines:
            measure(f"{edits} edits, {lines} lines", text, spread(lines, edits))
    prose = "This sentence of prose says why the change is right, as models like to do.\n" * 3300
    measure("64 k tokens (256 KiB), 60 edits in prose", text, spread(lines, 60) + prose)
    for count in (1000, 10_000):
        measure(f"repetitive text, {count} lines", "    same\n" * count, repetitive(count))
    return 0


def repetitive(count: int) -> str:
    """A quote of half the file, which stands almost everywhere."""
    half = "same\n" * (count // 2)
    return f"{PATH}\n<<<<<<< SEARCH\n{half}other\n=======\n{half}\n>>>>>>> REPLACE\n"


if __name__ == "__main__":
    sys.exit(main())
