"""Pages of `docs/` as tests read them, and their parts that are made from the code.

`<!-- NAME, made by COMMAND -->` begins a part, `<!-- end of NAME -->` ends it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]
ARCHITECTURE = ROOT / "docs/architecture.md"


def _expression(name: str) -> re.Pattern[str]:
    return re.compile(rf"(<!-- {name}, made by [^>]* -->\n)(.*?)(<!-- end of {name} -->)", re.S)


def part(page: Path, name: str) -> str:
    """What stands between the markers; raises AssertionError where they are missing."""
    found = _expression(name).search(page.read_text(encoding="utf-8"))
    assert found, f"{page.name} has no part {name}"
    return found[2].strip("\n")


def rewrite(page: Path, parts: Mapping[str, str]) -> None:
    """Put each part between its markers."""
    for name, new in parts.items():
        known = part(page, name)
        text = page.read_text(encoding="utf-8")
        between = f"\n{new}\n\n".replace("\\", r"\\")
        page.write_text(_expression(name).sub(rf"\1{between}\3", text), encoding="utf-8")
        print(f"{page.name}: {name} {'as it was' if known == new else 'written'}")


def table(page: Path, heading: str) -> list[list[str]]:
    """The cells of the rows of the table whose first heading is this."""
    rows = page.read_text(encoding="utf-8").split(f"\n| {heading} |", 1)[1].split("\n\n", 1)[0]
    return [[cell.strip() for cell in row.strip("| ").split(" | ")] for row in rows.split("\n")[2:]]


def names(text: str) -> list[str]:
    """What stands in backticks."""
    return re.findall(r"`([^`]+)`", text)
