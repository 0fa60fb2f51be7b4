"""Docstrings in plain words, and words of the old style, which may only become fewer."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tests.helpers.rooms import MODULES, tree

MOST_WORDS = 14
"""Of the first sentence of a docstring."""
OLD_WORDS = 11


def docstrings() -> Iterator[tuple[str, str]]:
    """Yield the place and text of each docstring."""
    for module in MODULES:
        for node in ast.walk(tree(module)):
            if isinstance(
                node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Module)
            ) and (text := ast.get_docstring(node)):
                yield f"{module}:{getattr(node, 'lineno', 1)}", text


def test_no_docstring_begins_with_a_relative_clause() -> None:
    clause = re.compile(r"(?:What|Whether|How|Where|Who|Why|Whose)\b")
    begun = [where for where, text in docstrings() if clause.match(text)]
    assert not begun, begun


def test_a_docstring_begins_with_a_short_sentence() -> None:
    def first(text: str) -> str:
        return re.split(r"(?<=[.:;]) ", text.split("\n\n")[0].replace("\n", " "))[0]

    long = [where for where, text in docstrings() if len(first(text).split()) > MOST_WORDS]
    assert not long, long


def test_fewer_words_of_the_old_style() -> None:
    found = [
        f"{module}: {word}"
        for module, path in MODULES.items()
        for word in re.findall(
            r"\b(?:told|said|stands|nobody|somebody)\b", path.read_text("utf-8"), re.I
        )
    ]
    assert len(found) <= OLD_WORDS
