"""Parts of pages that are made from the code: they stand between two markers.

`<!-- NAME, made by COMMAND -->` begins a part, `<!-- end of NAME -->` ends it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path


def _expression(name: str) -> re.Pattern[str]:
    return re.compile(rf"(<!-- {name}, made by .* -->\n\n)(.*?)(\n\n<!-- end of {name} -->)", re.S)


def part(page: Path, name: str) -> str:
    """What stands between the markers; raises AssertionError where they are missing."""
    found = _expression(name).search(page.read_text(encoding="utf-8"))
    assert found, f"{page.name} has no part {name}"
    return found[2]


def rewrite(page: Path, parts: Mapping[str, str]) -> None:
    """Put each part between its markers."""
    for name, new in parts.items():
        old, text = part(page, name), page.read_text(encoding="utf-8")
        page.write_text(text.replace(old, new, 1), encoding="utf-8")
        print(f"{page.name}: {name} {'as it was' if old == new else 'written'}")
