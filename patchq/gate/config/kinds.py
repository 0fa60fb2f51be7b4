"""What a value of the configuration may be: how it is read from YAML, and its JSON Schema.

Each kind decides by itself how a plain scalar is read: text takes what was written, be it `no` or
`2024`; numbers and flags take the value, and nothing is converted from one into another.  What does
not fit is a flaw, and the rest is read on, so that everything that is wrong is told at once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from msgspec import Struct

from patchq.core.text import yamlio
from patchq.core.text.yamlio import Misfit, Node, Scalar

Flaw = tuple[int, int, str, str]
"""Line, column and key (`hooks[0].run`), and what was expected there."""


class Kind(Protocol):
    """What may stand at a key."""

    def read(self, node: Node, at: str, flaws: list[Flaw]) -> Any:
        """The value; what is wrong with it is added to `flaws`, and the value is void then."""
        ...

    def schema(self) -> dict[str, Any]:
        """Its JSON Schema."""
        ...


def wrong(node: Node, at: str, expected: str) -> Flaw:
    """The flaw of a value that is not what was expected."""
    got = yamlio.describe(node)
    return node.line, node.column, at or "the file", f"expected {expected}, got {got}"


class Plain(Struct, frozen=True):
    """One value: `take` gives it or raises `Misfit` with what was expected."""

    take: Callable[[Node], Any]
    told: Mapping[str, Any]

    def read(self, node: Node, at: str, flaws: list[Flaw]) -> Any:
        try:
            return self.take(node)
        except Misfit as misfit:
            flaws.append(wrong(node, at, str(misfit)))

    def schema(self) -> dict[str, Any]:
        return dict(self.told)


class ListOf(Struct, frozen=True):
    """A list, as a tuple; one whose items are all commented out is an empty one.  `check` says what
    is expected of it as a whole, where it is not that."""

    item: Kind
    check: Callable[[Any], str | None] = lambda items: None

    def read(self, node: Node, at: str, flaws: list[Flaw]) -> Any:
        nodes: tuple[Node, ...] | None = () if _is_nothing(node) else None
        if isinstance(node, yamlio.Sequence):
            nodes = node.items
        if nodes is None:
            flaws.append(wrong(node, at, "a list"))
            return ()
        before = len(flaws)
        items = tuple(self.item.read(one, f"{at}[{i}]", flaws) for i, one in enumerate(nodes))
        if len(flaws) == before and (expected := self.check(items)):
            flaws.append(wrong(node, at, expected))
        return items

    def schema(self) -> dict[str, Any]:
        return {"type": "array", "items": self.item.schema()}


def _is_nothing(node: Node) -> bool:
    return isinstance(node, Scalar) and node.value is None


def _text(node: Node) -> str:
    if not isinstance(node, Scalar) or node.value is None:
        raise Misfit("text")
    return node.text


def _value(node: Node) -> Any:
    """What a scalar means by itself; a list or a mapping means nothing."""
    return node.value if isinstance(node, Scalar) else None


def matching(pattern: str, expected: str) -> Plain:
    """Text that the expression matches from end to end."""

    def take(node: Node) -> str:
        text = _text(node)
        if re.fullmatch(r"(?s).*\S.*", text) is None:
            raise Misfit("text")
        if re.fullmatch(pattern, text) is None:
            raise Misfit(expected)
        return text

    return Plain(take, {"type": "string"})


def checked(error: Callable[[str], object], expected: str) -> Plain:
    """Text that the check finds no error in."""

    def take(node: Node) -> str:
        text = TEXT.take(node)
        if error(text):
            raise Misfit(expected)
        return str(text)

    return Plain(take, {"type": "string"})


def maybe(kind: Plain) -> Plain:
    """The same, or nothing."""
    either = [{**kind.told}, {"type": "null"}]
    return Plain(lambda node: None if _is_nothing(node) else kind.take(node), {"anyOf": either})


def one_of(*words: str) -> Plain:
    """One of these words."""
    quoted = [f"`{word}`" for word in words]
    expected = " or ".join(filter(None, (", ".join(quoted[:-1]), quoted[-1])))

    def take(node: Node) -> str:
        if _is_nothing(node) or not isinstance(node, Scalar) or node.text not in words:
            raise Misfit(expected)
        return node.text

    return Plain(take, {"type": "string", "enum": list(words)})


def values(expected: str, *known: object) -> Plain:
    """One of these values; `true` is not 1."""

    def take(node: Node) -> object:
        value = _value(node)
        if not any(type(value) is type(one) and value == one for one in known):
            raise Misfit(expected)
        return value

    return Plain(take, {"enum": list(known)})


def whole(least: int, expected: str, most: int | None = None) -> Plain:
    """A whole number from `least` to `most`."""

    def take(node: Node) -> int:
        value = _value(node)
        if type(value) is not int:
            raise Misfit("a whole number")
        if value < least or (most is not None and value > most):
            raise Misfit(expected)
        return value

    bounds = {"minimum": least} if most is None else {"minimum": least, "maximum": most}
    return Plain(take, {"type": "integer", **bounds})


def number(least: float, most: float, *, above: bool = False) -> Plain:
    """A number from `least`, or `above` it, to `most`."""

    def take(node: Node) -> float:
        value = _value(node)
        if type(value) not in (int, float):
            raise Misfit("a number")
        if value > most:
            raise Misfit(f"{most:.0f} or less")
        if value < least or (above and value == least):
            raise Misfit(f"more than {least:.0f}" if above else f"{least:.0f} or more")
        return float(value)

    low = "exclusiveMinimum" if above else "minimum"
    return Plain(take, {"type": "number", low: least, "maximum": most})


def _flag(node: Node) -> bool:
    value = _value(node)
    if not isinstance(value, bool):
        raise Misfit("true or false")
    return value


TEXT = matching(r"(?s).*\S.*", "text")
FLAG = Plain(_flag, {"type": "boolean"})
COUNT = whole(1, "more than 0")
NUMBER = whole(0, "0 or more")
PORT = whole(0, "a port from 0 to 65535", 65535)
SECONDS = number(0, 10**9, above=True)
SHARE = number(0, 1)
