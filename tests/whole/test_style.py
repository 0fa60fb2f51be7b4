"""Docstrings and words of the old style, which may only become fewer."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tests.helpers.rooms import MODULES, tree

RELATIVE_CLAUSES = 9
"""Docstrings that begin so; a change that makes them fewer lowers this."""
OLD_WORDS = 16


def docstrings() -> Iterator[tuple[str, str]]:
    """Yield the place and text of each docstring."""
    for module in MODULES:
        for node in ast.walk(tree(module)):
            if isinstance(
                node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Module)
            ) and (text := ast.get_docstring(node)):
                yield f"{module}:{getattr(node, 'lineno', 1)}", text


def test_fewer_docstrings_begin_with_a_relative_clause() -> None:
    clause = re.compile(r"(?:What|Whether|How|Where|Who|Why|Whose)\b")
    begun = [where for where, text in docstrings() if clause.match(text)]
    assert len(begun) <= RELATIVE_CLAUSES, begun


def test_fewer_words_of_the_old_style() -> None:
    found = [
        f"{module}: {word}"
        for module, path in MODULES.items()
        for word in re.findall(
            r"\b(?:told|said|stands|nobody|somebody)\b", path.read_text("utf-8"), re.I
        )
    ]
    assert len(found) <= OLD_WORDS
