"""What no longer parses (docs/formats.md, Guards): refused, or in doubt and proposed."""

from __future__ import annotations

import pytest

from patchq.core.text import grammars
from patchq.gate.config.schema import Config, Paths
from tests.helpers.deciding import Bench, Row, check

AUTO = Config(mode="auto", paths=Paths(review=("!*.yaml",)))
BROKEN = ("result.syntax",)
TYPES = "type Pair[T] = tuple[T, T]\n"
MACROS = "#define BEGIN {\n#define END }\n\nint one(void) BEGIN\n  return 1;\nEND\n"


def block(path: str, old: str, new: str) -> str:
    return f"{path}\n<<<<<<< SEARCH\n{old}=======\n{new}>>>>>>> REPLACE\n"


def patch(path: str, old: str, new: str) -> str:
    lines = ["-" + line for line in old.splitlines()] + ["+" + line for line in new.splitlines()]
    head = "Update" if old else "Add"
    return f"*** Begin Patch\n*** {head} File: {path}\n" + "\n".join([*lines, "*** End Patch", ""])


def rows(
    name: str,
    path: str,
    before: str | None,
    old: str,
    new: str,
    *,
    codes: tuple[str, ...] = (),
    state: str | None = "applied",
) -> list[Row]:
    """One replacement as a block and as a patch."""
    files = {} if before is None else {path: before}
    after = {path: (before or "").replace(old, new, 1) if old else new}
    return [
        Row(
            f"{name}, {write.__name__}",
            {"other.txt": "x\n", **files},
            write(path, old, new),
            None if codes else after,
            codes,
            warnings=("result.syntax",) if state == "proposed" else (),
            state=None if codes else state,
            config=AUTO,
        )
        for write in (block, patch)
    ]


RULES = [
    *rows("broken Python with braces in strings", "a.py", "x = '{{a}} {% b %} <%'\ny = 1\n",
          "y = 1\n", "def broken(:\n", codes=BROKEN),
    *rows("later Python and broken", "a.py", "x = 1\n", "x = 1\n", TYPES + "def broken(:\n",
          codes=BROKEN),
]  # fmt: skip
if grammars.knows("a.c"):
    RULES += [
        *rows("C with macros", "a.c", MACROS, "  return 1;\n", "  return 2;\n"),
        *rows("new C with macros", "b.c", None, "", MACROS + "TEST(a) b c END\n", state="proposed"),
        *rows("C without a bracket", "a.c", "int f() {\n  return 1;\n}\n", "}\n", "// end\n",
              codes=BROKEN),
    ]  # fmt: skip


@pytest.mark.parametrize("row", RULES, ids=lambda row: row.name)
def test_rules(bench: Bench, row: Row) -> None:
    check(bench, row)
