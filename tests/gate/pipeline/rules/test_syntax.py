"""What no longer parses (docs/formats.md, Guards): refused, or in doubt and proposed."""

from __future__ import annotations

from typing import Any

import pytest

from patchq.core.text import grammars
from patchq.gate.config.schema import Config, Paths
from tests.helpers.deciding import Bench, Row, check

AUTO = Config(mode="auto", paths=Paths(review=("!*.yaml",)))
BROKEN = ("result.syntax",)
MACROS = "#define BEGIN {\n#define END }\n\nint one(void) BEGIN\n  return 1;\nEND\n"
MADE = MACROS + "TEST(a) b c END\n"


def row(name: str, path: str, before: str | None, old: str, new: str, **outcome: Any) -> Row:
    files = {} if before is None else {path: before}
    text = f"{path}\n<<<<<<< SEARCH\n{old}=======\n{new}>>>>>>> REPLACE\n"
    return Row(name, {"other.txt": "x\n", **files}, text, config=AUTO, **outcome)


@pytest.mark.skipif(not grammars.knows("a.c"), reason="needs the grammar of C")
@pytest.mark.parametrize("row", [
    row("C with macros", "a.c", MACROS, "  return 1;\n", "  return 2;\n",
        after={"a.c": MACROS.replace("1;", "2;")}, state="applied"),
    row("new C with macros", "b.c", None, "", MADE, after={"b.c": MADE}, state="proposed",
        warnings=BROKEN),
    row("C without a bracket", "a.c", "int f() {\n  return 1;\n}\n", "}\n", "// end\n",
        codes=BROKEN),
], ids=lambda row: row.name)  # fmt: skip
def test_rules(bench: Bench, row: Row) -> None:
    check(bench, row)
