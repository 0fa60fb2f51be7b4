"""What no longer parses (docs/formats.md, Guards): refused, or in doubt and proposed."""

from __future__ import annotations

from typing import Any

import pytest

from patchq.core.text import grammars
from patchq.gate.config.schema import Config, Paths
from tests.helpers.deciding import Bench, Row, check

AUTO = Config(mode="auto", paths=Paths(review=("!*.yaml",)))
BROKEN = ("result.syntax",)
TYPES = "type Pair[T] = tuple[T, T]\n"
MACROS = "#define BEGIN {\n#define END }\n\nint one(void) BEGIN\n  return 1;\nEND\n"


def row(name: str, path: str, before: str | None, old: str, new: str, **outcome: Any) -> Row:
    files = {} if before is None else {path: before}
    text = f"{path}\n<<<<<<< SEARCH\n{old}=======\n{new}>>>>>>> REPLACE\n"
    return Row(name, {"other.txt": "x\n", **files}, text, config=AUTO, **outcome)


RULES = [
    row("broken Python with braces in strings", "a.py", "x = '{{a}} {% b %} <%'\ny = 1\n",
        "y = 1\n", "def broken(:\n", codes=BROKEN),
    row("later Python and broken", "a.py", "x = 1\n", "x = 1\n", TYPES + "def broken(:\n",
        codes=BROKEN),
]  # fmt: skip
if grammars.knows("a.c"):
    MADE = MACROS + "TEST(a) b c END\n"
    RULES += [
        row("C with macros", "a.c", MACROS, "  return 1;\n", "  return 2;\n",
            after={"a.c": MACROS.replace("1;", "2;")}, state="applied"),
        row("new C with macros", "b.c", None, "", MADE, after={"b.c": MADE}, state="proposed",
            warnings=BROKEN),
        row("C without a bracket", "a.c", "int f() {\n  return 1;\n}\n", "}\n", "// end\n",
            codes=BROKEN),
    ]  # fmt: skip


@pytest.mark.parametrize("row", RULES, ids=lambda row: row.name)
def test_rules(bench: Bench, row: Row) -> None:
    check(bench, row)
