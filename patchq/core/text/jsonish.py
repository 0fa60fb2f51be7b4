"""JSON with comments, trailing commas and raw line ends, as models write it.

Nothing is repaired that could be meant in two ways: a value that is cut, a key that comes twice, a
number that is none (`NaN`) are errors with their place.  Every value knows its lines, so that an
edit can say where in the response it is.  Reading is linear in the text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

from msgspec import Struct

MAX_DEPTH = 100

_SPACE = re.compile(r"(?:[ \t\r\n]+|//[^\n]*|/\*(?:[^*]|\*(?!/))*\*/)*")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.])")
_WORD = re.compile(r"[A-Za-z]+")
_CUT_WORD = re.compile(r"[\w.+-]+\s*\Z")
_WORDS = {"true": True, "false": False, "null": None}
_MAX_DIGITS = 400
_BLANK = frozenset(" \t\r\n/")
_unescaped = json.JSONDecoder(strict=False).decode


class JsonError(ValueError):
    """Flaw with its 1-based line and column in the text.

    `cut` is true if the text ends there.
    """

    def __init__(self, text: str, position: int, message: str) -> None:
        self.line = text.count("\n", 0, position) + 1
        self.column = position - text.rfind("\n", 0, position)
        self.cut = position >= len(text.rstrip())
        super().__init__(message)


class Node(Struct, frozen=True):
    """A JSON value with its lines and its place in the text.

    `line` and `last` are its first and last line (1-based).  `value` is a dict of nodes, a list of
    nodes, or a plain str, int, float, bool or None.
    """

    value: Any
    line: int
    last: int
    start: int
    end: int

    def get(self, *keys: str) -> Node | None:
        """Return the member under the first of the keys in an object."""
        members: dict[str, Node] = self.value if isinstance(self.value, dict) else {}
        return next((members[key] for key in keys if key in members), None)

    def text(self, *keys: str) -> str | None:
        """Return the member as text, or None if it is no text."""
        node = self.get(*keys)
        return node.value if node is not None and isinstance(node.value, str) else None

    def plain(self) -> Any:
        """Return the value without its lines."""
        if isinstance(self.value, dict):
            return {key: node.plain() for key, node in self.value.items()}
        if isinstance(self.value, list):
            return [node.plain() for node in self.value]
        return self.value


def parse(text: str) -> Node:
    """Return the one value in `text`.

    Raises `JsonError`.
    """
    node, end = parse_at(text, 0)
    end = _Reader(text).skip(end)
    if end < len(text):
        raise JsonError(text, end, "expected nothing behind the JSON value")
    return node


def parse_each(text: str) -> Iterator[Node]:
    """Yield the values in `text`, one behind the other (JSON Lines).

    Raises `JsonError`.
    """
    reader = _Reader(text)
    position = reader.skip(0)
    while position < len(text):
        node, end = reader.value(position)
        yield node
        position = reader.skip(end)


def parse_at(text: str, position: int) -> tuple[Node, int]:
    """Return the value that begins at `position`, and its end.

    Blanks and comments before it are skipped.
    """
    reader = _Reader(text)
    return reader.value(reader.skip(position))


def skip(text: str, position: int) -> int:
    """Return the place behind the blanks and comments that begin at `position`."""
    return _Reader(text).skip(position)


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self._counted = (0, 1)
        self._depth = 0

    def skip(self, position: int) -> int:
        if self.text[position : position + 1] not in _BLANK:
            return position
        match = _SPACE.match(self.text, position)
        assert match is not None
        if self.text.startswith("/*", match.end()):
            raise JsonError(self.text, len(self.text), "expected the end of a comment, `*/`")
        return match.end()

    def line(self, position: int) -> int:
        """Return the line of a position.

        Positions mostly grow, so each line end is counted once.
        """
        at, line = self._counted
        if position < at:
            return line - self.text.count("\n", position, at)
        line += self.text.count("\n", at, position)
        self._counted = position, line
        return line

    def value(self, start: int) -> tuple[Node, int]:
        if self._depth > MAX_DEPTH:
            raise JsonError(self.text, start, f"expected at most {MAX_DEPTH} levels of nesting")
        first = self.line(start)
        read = self._READERS.get(self.text[start : start + 1])
        self._depth += 1
        value, end = read(self, start) if read else self._scalar(start)
        self._depth -= 1
        return Node(value, first, self.line(end), start, end), end

    def _object(self, start: int) -> tuple[dict[str, Node], int]:
        members: dict[str, Node] = {}
        position = self.skip(start + 1)
        while self.text[position : position + 1] != "}":
            if self.text[position : position + 1] != '"':
                raise JsonError(self.text, position, 'expected `"` before a key, or `}`')
            key, end = self._string(position)
            if key in members:
                raise JsonError(self.text, position, f"the key {key!r} is twice in one object")
            end = self.skip(end)
            if self.text[end : end + 1] != ":":
                raise JsonError(self.text, end, f"expected `:` behind the key {key!r}")
            members[key], end = self.value(self.skip(end + 1))
            position = self._next(end, "}")
        return members, position + 1

    def _array(self, start: int) -> tuple[list[Node], int]:
        items: list[Node] = []
        position = self.skip(start + 1)
        while self.text[position : position + 1] != "]":
            item, end = self.value(position)
            items.append(item)
            position = self._next(end, "]")
        return items, position + 1

    def _next(self, end: int, closing: str) -> int:
        position = self.skip(end)
        head = self.text[position : position + 1]
        if head == ",":
            return self.skip(position + 1)
        if head != closing:
            raise JsonError(self.text, position, f"expected `,` or `{closing}`")
        return position

    def _string(self, start: int) -> tuple[str, int]:
        match = _STRING.match(self.text, start)
        if match is None:
            raise JsonError(self.text, len(self.text), "expected the end of a string")
        try:
            value: str = _unescaped(match[0]) if "\\" in match[0] else match[0][1:-1]
            value.encode()
        except ValueError as error:
            at = start + getattr(error, "pos", 0)
            raise JsonError(self.text, at, f"a string cannot be read: {error}") from None
        return value, match.end()

    def _scalar(self, start: int) -> tuple[int | float | bool | None, int]:
        if match := _NUMBER.match(self.text, start):
            if len(match[0]) > _MAX_DIGITS:
                raise JsonError(self.text, start, f"expected at most {_MAX_DIGITS} digits")
            digits = match[0].removeprefix("-")
            return (int if digits.isdecimal() else float)(match[0]), match.end()
        word = _WORD.match(self.text, start)
        if word and word[0] in _WORDS:
            return _WORDS[word[0]], word.end()
        at = len(self.text) if _CUT_WORD.match(self.text, start) else start
        raise JsonError(self.text, at, "expected a JSON value")

    # What reads a value, by its first character; all others are scalars.
    _READERS: ClassVar[dict[str, Callable[[_Reader, int], tuple[Any, int]]]] = {
        "{": _object,
        "[": _array,
        '"': _string,
    }


# ---------------------------------------------------------------- one value put or taken out

_BLANKS = " \t\r\n"


def value_at(text: str, keys: Sequence[str]) -> Any:
    """Return the plain value under a path of keys, or None."""
    node = parse(text)
    for key in keys:
        if key not in _members(text, node):
            return None
        node = node.value[key]
    return node.plain()


def put(text: str, keys: Sequence[str], value: object) -> str:
    """Return the text with a value set under a path of keys.

    Missing objects are created.
    """
    node = parse(text)
    for depth, key in enumerate(keys, 1):
        if key not in _members(text, node):
            member = json.dumps(value)
            for name in reversed(keys[depth:]):
                member = f"{{ {json.dumps(name)}: {member} }}"
            member = f"{json.dumps(key)}: {member}"
            start = node.start + 1
            rest = text[start:]
            lead = rest[: len(rest) - len(rest.lstrip(_BLANKS))]
            return text[:start] + (f"{lead}{member}," if node.value else member) + rest
        node = node.value[key]
    return text[: node.start] + json.dumps(value) + text[node.end :]


def take_out(text: str, keys: Sequence[str]) -> str | None:
    """Return the text without the value and the objects made for it.

    None if nothing is left.
    Members whose names begin with `$` do not keep a text that was made as a whole, over several
    lines: programs add them.
    """
    root = node = parse(text)
    cut = None
    for key in keys:
        outer, node = node, _members(text, node)[key]
        names = list(outer.value)
        before = outer.value[names[names.index(key) - 1]] if names[0] != key else None
        at = skip(text, before.end) if before else outer.start
        begin, end = skip(text, at + 1), skip(text, node.end)
        others = text[outer.start + 1 : begin] + text[node.end : outer.end - 1]
        stays = bool(others.strip(_BLANKS))
        if outer is root and text[node.start + 1] in "\r\n":
            stays = any(name[:1] != "$" for name in names if name != key)
        if stays or text[outer.start + 1] not in _BLANKS:
            first = len(text[:begin].rstrip(_BLANKS))
            cut = text[:first] + text[node.end :]
            if text[end] == ",":
                cut = text[:first] + text[end + 1 :]
            elif before:
                cut = text[:at] + text[at + 1 : first] + text[node.end :]
    return cut


def _members(text: str, node: Node) -> dict[str, Node]:
    if not isinstance(node.value, dict):
        raise JsonError(text, node.start, "expected an object")
    return node.value
