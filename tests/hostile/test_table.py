"""`docs/hostile-input.md` speaks of every row, and of tests that there are and carry its id."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).parents[1]
TABLE = (TESTS.parent / "docs/hostile-input.md").read_text(encoding="utf-8")
LAST = {"F": 18, "P": 10, "T": 13, "G": 17, "H": 13}
ROWS = re.findall(r"^\| ([FPTGH]\d\d) \|(.*)", TABLE, re.M)
OUT_OF_SCOPE = "H11"


def ids_in(name: str) -> set[str]:
    """The rows that a test's name carries; `_t05_to_t12_` stands for those between, too."""
    found = set(re.findall(r"(?<=_)[fptgh]\d\d(?=_)", name))
    for letter, first, last in re.findall(r"_([fptgh])(\d\d)_to_\1(\d\d)_", name):
        found |= {f"{letter}{number:02}" for number in range(int(first), int(last) + 1)}
    return {id.upper() for id in found}


def test_every_row_is_there_once() -> None:
    assert [id for id, _ in ROWS] == [
        f"{letter}{number:02}" for letter, last in LAST.items() for number in range(1, last + 1)
    ]


def test_every_row_has_a_test_that_carries_its_id() -> None:
    bare = [
        id
        for id, row in ROWS
        if not any(id in ids_in(name) for name in re.findall(r"::(test_\w+)`", row))
    ]
    assert bare == [OUT_OF_SCOPE]


def test_every_test_that_it_names_is_there() -> None:
    named = re.findall(r"`([\w/]+/test_\w+\.py)::(test_\w+)`", TABLE)
    assert len(named) > 70
    missing = [
        f"{file}::{name}"
        for file, name in named
        if not re.search(rf"^def {name}\(", (TESTS / file).read_text(encoding="utf-8"), re.M)
    ]
    assert missing == []


def test_every_hostile_test_is_named() -> None:
    for file in Path(__file__).parent.glob("test_*.py"):
        if file == Path(__file__):
            continue
        for name in re.findall(r"^def (test_\w+)\(", file.read_text(encoding="utf-8"), re.M):
            ids = ids_in(name)
            assert ids, f"{name} has no row's id"
            assert ids <= {id for id, _ in ROWS}, name
