"""The predicate of a contextual edit: which paragraphs it speaks of.

    contains('REST API') && (contains("version") || !contains('legacy'))

`!` binds before `&&`, `&&` before `||`.  The text is turned into postfix order once, so that
neither reading nor asking recurses, however deep the parentheses are.
"""

from __future__ import annotations

import re

from msgspec import Struct

_TOKEN = re.compile(
    r"(?P<sign>&&|\|\||!|\(|\))"
    r"|contains\s*\(\s*(?:'(?P<single>(?:[^'\\]|\\.)*)'|\"(?P<double>(?:[^\"\\]|\\.)*)\")\s*\)",
    re.DOTALL,
)
_TEXT = re.compile(r"\S")
_ESCAPE = re.compile(r"\\(['\"\\])")
_BINDS = {"!": 3, "&&": 2, "||": 1, "(": 0}


class PredicateError(ValueError):
    """Error in a predicate; `column` (from 1) is where."""

    def __init__(self, column: int, message: str) -> None:
        super().__init__(message)
        self.column = column


class Literal(str):
    """The text of a `contains('text')`."""

    __slots__ = ()


class Predicate(Struct, frozen=True):
    """A predicate in postfix order: literals, and the signs `!`, `&&` and `||`."""

    steps: tuple[str, ...]

    @property
    def literals(self) -> tuple[str, ...]:
        """The texts of its `contains`, each once, as they stand from left to right."""
        return tuple(dict.fromkeys(step for step in self.steps if isinstance(step, Literal)))

    def matches(self, text: str) -> bool:
        """Return whether `text` satisfies the predicate; case counts."""
        stack: list[bool] = []
        for step in self.steps:
            if isinstance(step, Literal):
                stack.append(step in text)
            elif step == "!":
                stack.append(not stack.pop())
            else:
                right, left = stack.pop(), stack.pop()
                stack.append(left and right if step == "&&" else left or right)
        return stack[0]


def parse(text: str) -> Predicate:
    """The predicate that `text` states; raises `PredicateError`."""
    steps: list[str] = []
    signs: list[str] = []
    complete = False
    position, end = 0, len(text.rstrip())
    while found := _TEXT.search(text, position):
        match = _TOKEN.match(text, found.start())
        column = found.start() + 1
        if match is None:
            raise PredicateError(column, "expected `contains('…')`, `&&`, `||`, `!` or `(`")
        sign = match["sign"]
        opens = sign is None or sign in ("!", "(")
        if opens == complete:
            expected = "`&&`, `||` or `)`" if complete else "`contains('…')`, `!` or `(`"
            raise PredicateError(column, f"expected {expected}")
        if sign is None:
            quoted = match["single"] or match["double"]
            if not quoted:
                raise PredicateError(column, "expected a text between the quotes")
            steps.append(Literal(_ESCAPE.sub(r"\1", quoted)))
        elif opens:
            signs.append(sign)
        elif sign == ")":
            _settle(signs, steps, 1)
            if not signs:
                raise PredicateError(column, "expected no `)`: nothing is open")
            signs.pop()
        else:
            _settle(signs, steps, _BINDS[sign])
            signs.append(sign)
        complete = sign is None or sign == ")"
        position = match.end()
    if not complete:
        raise PredicateError(end + 1, "expected `contains('…')`, `!` or `(`")
    _settle(signs, steps, 1)
    if signs:
        raise PredicateError(end + 1, "expected `)`")
    return Predicate(tuple(steps))


def _settle(signs: list[str], steps: list[str], least: int) -> None:
    """Move the signs that bind at least so much behind what they join."""
    while signs and _BINDS[signs[-1]] >= least:
        steps.append(signs.pop())
