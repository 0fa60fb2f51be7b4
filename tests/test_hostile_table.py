"""`docs/hostile-input.md` speaks of every row, and of tests that there are."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).parent
TABLE = (TESTS.parent / "docs/hostile-input.md").read_text(encoding="utf-8")
LAST = {"F": 18, "P": 10, "T": 13, "G": 17, "H": 12}


def test_every_row_is_there_once() -> None:
    found = []
    for letter, first, last in re.findall(r"^\| ([FPTGH])(\d\d)(?:-[G](\d\d))? \|", TABLE, re.M):
        found += [f"{letter}{number:02}" for number in range(int(first), int(last or first) + 1)]
    assert found == [f"{x}{number:02}" for x, last in LAST.items() for number in range(1, last + 1)]


def test_every_test_that_it_names_is_there() -> None:
    named = re.findall(r"`(test_\w+\.py)::(test_\w+)`", TABLE)
    assert len(named) > 70
    missing = [
        f"{file}::{name}"
        for file, name in named
        if not re.search(rf"^def {name}\(", (TESTS / file).read_text(encoding="utf-8"), re.M)
    ]
    assert missing == []


def test_every_hostile_test_is_named() -> None:
    for file in [*TESTS.glob("test_hostile_[!t]*.py"), TESTS / "test_hostile_text.py"]:
        for name in re.findall(r"^def (test_\w+)\(", file.read_text(encoding="utf-8"), re.M):
            ids = [part.upper() for part in re.findall(r"(?<=_)[fptgh]\d\d(?=_)", name)]
            assert ids, f"{name} has no row's id"
            rows = [line for line in TABLE.split("\n") if line[2:5] in ids]
            assert rows, name
