r"""New text that is escaped although its quote is not: told from whether the result parses."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from patchq.core.model.ops import Occurrences, Op, Replace, ReplaceText
from patchq.core.model.values import Edit
from patchq.core.plan import batch
from tests.helpers.trees import RULES, DictTree

BASE = "def f():\n    return 1\n\n\ndef g():\n    return 2\n"
ONE = "    return 1\n"
LOST = ReplaceText(ONE, '    x = \\"one\\"\\n    return x\\n')
MADE = BASE.replace(ONE, '    x = "one"\n    return x\n')


def planned(*ops: Op, path: str = "f.py", base: str = BASE, judged: bool = True) -> str:
    """The file's new text; none where the edits are refused."""
    edits = [Edit(str(i), "edit_calls", (1, 1), path, op) for i, op in enumerate(ops, 1)]
    rules = replace(RULES, judged=lambda path: judged)
    (change,) = batch.plan(edits, DictTree({path: base}), rules).changes
    assert change.after is not None
    return change.after.decode()


@pytest.mark.parametrize(
    ("op", "result"),
    [
        (LOST, MADE),
        (Occurrences(LOST.old, LOST.new, (1,)), MADE),
        (Replace(LOST.old, LOST.new + "\n"), MADE),
        (ReplaceText(ONE, '    x = \\"a\\\\n\\"\\n    return x\\n'),
            BASE.replace(ONE, '    x = "a\\n"\n    return x\n')),
        (ReplaceText(ONE, "    return '\\n'\n"), BASE.replace("1", "'\\n'")),
        (ReplaceText(ONE, '    return ("\\n"\n'), BASE.replace("1", '("\\n"')),
        (ReplaceText(ONE, '    x = \\"a\\"\\n    return "\\t"\n'),
            BASE.replace(ONE, '    x = \\"a\\"\\n    return "\\t"\n')),
    ],
)  # fmt: skip
def test_new_text_is_unescaped_where_only_that_parses(op: Op, result: str) -> None:
    assert planned(op) == result


def test_only_the_edit_that_breaks_the_file_is_unescaped() -> None:
    kept = ReplaceText("    return 2\n", "    return '\\t'\n")
    result = MADE.replace("2", "'\\t'")
    assert planned(LOST, kept) == planned(kept, LOST) == result


@pytest.mark.parametrize(
    ("path", "judged"), [("f.txt", True), ("f.py", False)], ids=["no language", "not to be judged"]
)
def test_nothing_is_unescaped_where_nobody_judges(path: str, judged: bool) -> None:
    assert planned(LOST, path=path, judged=judged) == BASE.replace(ONE, LOST.new)
