"""The page of what may not grow has the parts of the bench, and keeps what was not measured."""

from __future__ import annotations

import json
import re
from pathlib import Path

from bench.speed.cost import page
from bench.speed.cost.__main__ import PARTS
from bench.speed.goal import Goal

README = page.CHECKOUT / "bench" / "README.md"
TEXT = page.PAGE.read_text(encoding="utf-8")


def test_the_page_tells_of_no_part_that_the_bench_has_not() -> None:
    assert page.parts(TEXT) == list(PARTS)


def test_the_readme_lists_the_parts() -> None:
    section = README.read_text(encoding="utf-8").partition("## bench.speed.cost")[2]
    section = section.partition("\n## ")[0]
    assert set(re.findall(r"(?m)^\| `([\w-]+)` \|", section)) == PARTS.keys()


def test_each_part_has_its_rows(tmp_path: Path) -> None:
    one = {"a": [Goal("cold / warm", [1.0, 3.0, 2.0], 2.5)], "b": [Goal("of b", [1.0], 2, True)]}
    rates = tmp_path / "rates.json"
    row = {"name": "am", "files": 1000, "rounds": [79.4, 80.2, 100.0]}
    rates.write_text(json.dumps([row, {**row, "name": "rss"}]))
    text = page.written(TEXT, one, ["a", "b"], rates)
    assert "| `a` | cold / warm | 2 | 1 3 2 | ≤ 2.5 | met |\n" in text
    assert "| `b` | of b | 1 | 1 | ≥ 2 | **missed** |\n" in text
    assert "| `git am`, patches/s | 80 |\n" in text
    assert page.parts(text) == ["a", "b"]
    later = page.written(text, {"b": [Goal("of b", [2.0], 2, True)]}, ["a", "b", "c"], None)
    assert "| `a` | cold / warm | 2 |" in later
    assert "| `b` | of b | 2 | 2 | ≥ 2 | met |\n" in later
    assert page.parts(later) == ["a", "b"]
    assert "| `git am`, patches/s | 80 |\n" in later
    assert page.parts(page.written(later, {}, ["b"], None)) == ["b"]
