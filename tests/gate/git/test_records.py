"""Names of refs and groups of states are spelled in one place each."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import get_args

import pytest

from patchq.core.model.values import State
from patchq.gate.git import records
from tests.helpers.rooms import MODULES, PACKAGE, tree

SPELLED = re.compile(r"refs/(?:heads/|notes/)?patchq|^patchq/$|patchq/(?=\{)")
STATES = {*get_args(State)}


def docstrings(module: str) -> set[ast.Constant]:
    """The strings that stand as statements of their own."""
    return {
        node.value
        for node in ast.walk(tree(module))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }


def spelled(module: str) -> Iterator[str]:
    """The texts in which the module names a ref or a branch; what is put in stands as `{`."""
    parts = set[ast.AST](docstrings(module))
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.JoinedStr):
            parts.update(node.values)
            text = "".join(
                str(v.value) if isinstance(v, ast.Constant) else "{" for v in node.values
            )
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in parts:
            text = node.value
        else:
            continue
        if SPELLED.search(text):
            yield text


@pytest.mark.parametrize("module", sorted(MODULES.keys() - {"patchq.gate.git.records"}))
def test_refs_and_branches_are_named_in_one_place(module: str) -> None:
    assert list(spelled(module)) == []


@pytest.mark.parametrize(
    "module", sorted(MODULES.keys() - {"patchq.gate.report.schema", "patchq.core.model.values"})
)
def test_states_are_grouped_in_one_place(module: str) -> None:
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.Tuple | ast.List | ast.Set) and len(node.elts) > 1:
            values = {part.value if isinstance(part, ast.Constant) else None for part in node.elts}
            assert not values <= STATES, f"{module}:{node.lineno} groups {sorted(map(str, values))}"


def test_the_shipped_hook_records_what_it_pushed_under_that_name() -> None:
    assert f'f"{records.PUBLISHED}{{' in (PACKAGE.parent / "hooks/publish").read_text()


def test_what_the_names_are() -> None:
    assert (records.branch("x"), records.BRANCHES + "x") == ("patchq/x", "refs/heads/patchq/x")
    names = records.WAITING + "x", records.DISCARDED + "x"
    assert names == ("refs/patchq/waiting/x", "refs/patchq/discarded/x")
    assert {name.removesuffix("x") for name in (*names, records.BRANCHES + "x")} == {*records.BY_ID}
