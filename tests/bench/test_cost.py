"""The page of what may not grow has the parts of the bench."""

from __future__ import annotations

import re

from bench.speed.cost import page
from bench.speed.cost.__main__ import PARTS

README = page.CHECKOUT / "bench" / "README.md"
TEXT = page.PAGE.read_text(encoding="utf-8")


def test_the_page_tells_of_no_part_that_the_bench_has_not() -> None:
    assert page.parts(TEXT) == list(PARTS)


def test_the_readme_lists_the_parts() -> None:
    section = README.read_text(encoding="utf-8").partition("## bench.speed.cost")[2]
    section = section.partition("\n## ")[0]
    assert set(re.findall(r"(?m)^\| `([\w-]+)` \|", section)) == PARTS.keys()
