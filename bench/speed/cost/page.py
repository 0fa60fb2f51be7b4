"""The tables of docs/performance.md: written by `--write`, each between two marks of its own."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import median

from bench.git import BenchError
from bench.speed.goal import Goal

CHECKOUT = Path(__file__).resolve().parents[3]
PAGE = CHECKOUT / "docs" / "performance.md"
RATES = {
    "patchq": "`patchq run`, responses/s",
    "checked-out": "the same, the target checked out",
    "floor": "libgit2 alone, with flushes, commits/s",
    "floor-none": "libgit2 alone, without",
    "am": "`git am`, patches/s",
}
"""What of `bench.speed` stands beside git's own tools."""
_ROW = re.compile(r"\| `([\w-]+)` \|.*")


def parts(page: str) -> list[str]:
    """The parts that the page has a row of, in their order."""
    return list(dict.fromkeys(found[1] for found in map(_ROW.fullmatch, _rows(page)) if found))


def written(
    page: str, found: Mapping[str, Sequence[Goal]], order: Iterable[str], rates: Path | None
) -> str:
    """The page with these goals; rows of parts that were not measured stay as they are.

    Raises BenchError where the page has no place for a table.
    """
    kept = defaultdict(list)
    for row in _rows(page):
        if part := _ROW.fullmatch(row):
            kept[part[1]].append(row)
    rows = [row for name in order for row in (_goals(name, found) or kept[name])]
    head = ["| part | what | ratio | rounds | goal | |", "|---|---|---:|---|---:|---|"]
    page = _replaced(page, "costs", "\n".join([_machine(), "", *head, *rows]))
    return _replaced(page, "rates", _rates(rates)) if rates else page


def _goals(part: str, found: Mapping[str, Sequence[Goal]]) -> list[str]:
    return [
        f"| `{part}` | {goal.name} | {median(goal.values):.3g} "
        f"| {' '.join(f'{value:.3g}' for value in goal.values)} "
        f"| {'≥' if goal.at_least else '≤'} {goal.limit:g} "
        f"| {'met' if goal.met else '**missed**'} |"
        for goal in found.get(part, ())
    ]


def _rates(file: Path) -> str:
    figures = {(row["name"], row["files"]): row["rounds"] for row in json.loads(file.read_text())}
    sizes = sorted({size for name, size in figures if name in RATES})
    lines = [
        _machine(),
        "",
        f"| files in the repository | {' | '.join(f'{size:,}' for size in sizes)} |",
        f"|---|{'---:|' * len(sizes)}",
    ]
    for name, title in RATES.items():
        cells = [figures.get((name, size)) for size in sizes]
        shown = " | ".join(f"{median(cell):,.0f}" if cell else "" for cell in cells)
        lines.append(f"| {title} | {shown} |")
    return "\n".join(lines)


def _rows(page: str) -> list[str]:
    return page.partition(_begin("costs"))[2].partition(_end("costs"))[0].splitlines()


def _replaced(page: str, table: str, text: str) -> str:
    head, begin, rest = page.partition(_begin(table))
    _, end, tail = rest.partition(_end(table))
    if not begin or not end:
        raise BenchError(f"the page has no place for the table of {table}")
    return f"{head}{begin}\n{text}\n\n{end}{tail}"


def _begin(table: str) -> str:
    return f"<!-- {table}: the table begins -->\n"


def _end(table: str) -> str:
    return f"<!-- {table}: the table ends -->\n"


def _machine() -> str:
    """On what it was measured."""
    model = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    cores = len(os.sched_getaffinity(0))
    commit = _said("git", "-C", str(CHECKOUT), "log", "-1", "--format=%h of %cs")
    return (
        f"patchq {commit or 'without a commit'}; {cores} cores of {model[1] if model else 'a'} "
        f"processor, Linux {platform.release().split('-')[0]}, Python {platform.python_version()}, "
        f"{_said('git', '--version')}."
    )


def _said(*words: str) -> str:
    return subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip()
