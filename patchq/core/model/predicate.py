"""The predicate of a contextual edit, which selects its paragraphs.

    contains('REST API') && (contains("version") || !contains('legacy'))

`!` binds before `&&`, `&&` before `||`, as Python's `not`, `and` and `or` do; so Python reads it,
with the number of its text in place of each `contains`.
"""

from __future__ import annotations

import ast
import re

from msgspec import Struct

_TOKEN = re.compile(
    r"(&&|\|\||!|\(|\))"
    r"|contains\s*\(\s*(?:'((?:[^'\\]|\\.)+)'|\"((?:[^\"\\]|\\.)+)\")\s*\)"
    r"|\s+",
    re.DOTALL,
)
_ESCAPE = re.compile(r"\\(['\"\\])")
_WORDS = {"&&": " and ", "||": " or ", "!": " not ", "(": "(", ")": ")"}


class PredicateError(ValueError):
    """Error in a predicate."""


class Predicate(Struct, frozen=True):
    """A predicate as an expression over the numbers of its texts."""

    texts: tuple[str, ...]
    root: ast.expr

    @property
    def literals(self) -> tuple[str, ...]:
        """The texts of its `contains`, each once, from left to right."""
        return tuple(dict.fromkeys(self.texts))

    def matches(self, text: str) -> bool:
        """Return whether `text` satisfies the predicate, with case."""
        return _holds(self.root, [one in text for one in self.texts])


def parse(text: str) -> Predicate:
    """Return the predicate in `text`.

    Raises `PredicateError`.
    """
    texts, words, end = list[str](), list[str](), 0
    for found in _TOKEN.finditer(text):
        sign, quoted = found[1], found[2] or found[3]
        if found.start() != end:
            break
        end = found.end()
        words.append(f" {len(texts)} " if quoted else _WORDS.get(sign, ""))
        texts += [_ESCAPE.sub(r"\1", quoted)] if quoted else []
    if end != len(text):
        raise PredicateError(f"nothing is known that begins as its column {end + 1} does")
    try:
        root = ast.parse("".join(words).strip(), mode="eval").body
        _holds(root, [False] * len(texts))
    except (SyntaxError, RecursionError, MemoryError, TypeError):
        raise PredicateError("its signs do not fit together") from None
    return Predicate(tuple(texts), root)


def _holds(node: ast.expr, known: list[bool]) -> bool:
    """Return the value of an expression.

    Raises `TypeError` if it is not one of a predicate.
    """
    match node:
        case ast.Constant(int(number)):
            return known[number]
        case ast.UnaryOp(ast.Not(), operand):
            return not _holds(operand, known)
        case ast.BoolOp(op, values):
            found = [_holds(value, known) for value in values]
            return all(found) if isinstance(op, ast.And) else any(found)
        case _:
            raise TypeError(node)
