"""YAML with the places of its values, and without guesses.

No other module imports yaml.
PyYAML's loaders turn `on`, `no`, `2024-01-01` and `1:30` into something else than was written,
let the last of two equal keys win, and recurse as deep as the text tells them to.  So this module
takes only the tree that PyYAML composes, without a type of any scalar: every node knows its line
and column, a plain scalar keeps its text beside its value, and depth, size and aliases are
bounded.  `true`, `false`, `null` and plain numbers have values of their own;
every other plain scalar is the text that was written.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import Struct

if TYPE_CHECKING:  # most responses hold no YAML, so it is imported with the first text of it
    import yaml

MAX_DEPTH = 50
MAX_NODES = 100_000  # nodes of one document, counting an alias as all that it repeats

_INT = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,17})")
_FLOAT = re.compile(
    r"[-+]?(?:0|[1-9][0-9]{0,40})(?=[.eE])(?:\.[0-9]{1,40})?(?:[eE][-+]?[0-9]{1,4})?"
)
_WORDS: dict[str, bool | None] = {
    "": None, "~": None, "null": None, "Null": None, "NULL": None,
    "true": True, "True": True, "TRUE": True,
    "false": False, "False": False, "FALSE": False,
}  # fmt: skip


# The tags of nodes that have none of their own.
_TAGS = frozenset(f"tag:yaml.org,2002:{kind}" for kind in ("str", "seq", "map"))
T = TypeVar("T")


class YamlError(ValueError):
    """The text is not YAML, or exceeds the limits.

    `line` and `column` are 1-based.
    """

    def __init__(self, message: str, line: int, column: int) -> None:
        super().__init__(message)
        self.message = message
        self.line = line
        self.column = column


class Scalar(Struct, frozen=True):
    """A scalar as written, with quotes resolved, and its value.

    `value` is the one that `text` has when nothing else is known of it.
    """

    line: int
    column: int
    text: str
    value: str | int | float | bool | None


class Sequence(Struct, frozen=True):
    line: int
    column: int
    items: tuple[Node, ...]


class Mapping(Struct, frozen=True):
    """A mapping's `entries` in their order.

    A repeated key is there twice, see `duplicates`.
    """

    line: int
    column: int
    entries: tuple[tuple[Scalar, Node], ...]


Node = Scalar | Sequence | Mapping


def parse(text: str, *, first_line: int = 1) -> Node | None:
    """Return the text's one document, or None if it is empty.

    Raises `YamlError`.
    `first_line` is the line on which `text` begins in the file that the places are for.
    """
    import yaml

    if error := syntax_error(text, first_line):
        raise error
    composed = _read(partial(yaml.compose, text, _loader("BaseLoader")), text, first_line)
    return _Nodes(first_line).of(composed, 1) if composed else None


def duplicates(node: Node | None) -> Iterator[tuple[Scalar, Scalar]]:
    """Yield each repeated key of a mapping, with the first one.

    Mappings inside are searched too.
    """
    if isinstance(node, Mapping):
        first: dict[str, Scalar] = {}
        for key, value in node.entries:
            if key.text in first:
                yield key, first[key.text]
            first.setdefault(key.text, key)
            yield from duplicates(value)
    elif isinstance(node, Sequence):
        for item in node.items:
            yield from duplicates(item)


def describe(node: Node) -> str:
    """Return the node in a few words, for "expected …, got …"."""
    if isinstance(node, Mapping):
        return "keys and values"
    if isinstance(node, Sequence):
        return "a list"
    if node.value is None or not node.text:
        return "nothing"
    shown = "".join(c if c.isprintable() and c != "`" else "?" for c in node.text[:60])
    return f"`{shown}…`" if len(node.text) > 60 else f"`{shown}`"


def syntax_error(text: str, first_line: int = 1) -> YamlError | None:
    """Return the first error in the text's YAML syntax, or None.

    Tags, several documents and repeated keys are all right: the readers of the file know them.
    """
    import yaml

    depth = 0
    events = yaml.parse(text, Loader=_loader("SafeLoader"))
    try:
        while event := _read(partial(next, events, None), text, first_line):
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            _check_depth(depth, *_place(event.start_mark, first_line))
    except YamlError as error:
        return error
    return None


def _loader(name: str) -> Any:
    """Return libyaml's loader when the wheel has it.

    It is an order of magnitude faster, and alike.
    """
    import yaml

    return getattr(yaml, f"C{name}", None) or getattr(yaml, name)


def _read(read: Callable[[], T], text: str, first_line: int) -> T:
    import yaml

    try:
        return read()
    except yaml.MarkedYAMLError as error:
        problem = error.problem or "unreadable"
        # A line of words among keys is noticed only where the next line begins.
        late = problem == "could not find expected ':'"
        mark = (None if late else error.problem_mark) or error.context_mark
        raise YamlError(problem, *_place(mark, first_line)) from None
    except yaml.reader.ReaderError as error:
        at = text.find(chr(error.character))  # the position is one of bytes, or of characters
        message = f"the character U+{error.character:04X} is not allowed"
        line = text.count("\n", 0, at) + first_line
        raise YamlError(message, line, at - text.rfind("\n", 0, at)) from None


def _check_depth(depth: int, line: int, column: int) -> None:
    if depth > MAX_DEPTH:
        raise YamlError(f"nested deeper than {MAX_DEPTH} levels", line, column)


def _place(mark: yaml.Mark | None, first_line: int) -> tuple[int, int]:
    return (mark.line + first_line, mark.column + 1) if mark else (first_line, 1)


class _Nodes:
    """Converts the parser's nodes, whose lines begin at `first_line`.

    An alias may hold itself, so the depth is counted again.
    """

    def __init__(self, first_line: int) -> None:
        self._first_line, self._count = first_line, 0

    def of(self, node: Any, depth: int) -> Node:
        """Return the node with all its children."""
        place = _place(node.start_mark, self._first_line)
        _check_depth(depth, *place)
        self._count += 1
        if self._count > MAX_NODES:
            raise YamlError(f"more than {MAX_NODES} values", *place)
        if node.tag not in _TAGS:
            raise YamlError(f"the tag `{node.tag}` is not read", *place)
        if node.id == "scalar":
            return Scalar(*place, node.value, node.value if node.style else _value(node.value))
        if node.id == "sequence":
            return Sequence(*place, tuple(self.of(item, depth + 1) for item in node.value))
        return Mapping(*place, tuple(self._entry(k, v, depth + 1) for k, v in node.value))

    def _entry(self, key: Any, value: Any, depth: int) -> tuple[Scalar, Node]:
        name = self.of(key, depth)
        if not isinstance(name, Scalar):
            raise YamlError("a key must be a word", name.line, name.column)
        return name, self.of(value, depth)


def _value(text: str) -> str | int | float | bool | None:
    """Return the value of a plain scalar, or its text if unclear."""
    if text in _WORDS:
        return _WORDS[text]
    if _INT.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text) and math.isfinite(number := float(text)):
        return number
    return text
