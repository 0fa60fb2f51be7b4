"""YAML that keeps its places and guesses nothing; the only module that imports yaml.

PyYAML's loaders turn `on`, `no`, `2024-01-01` and `1:30` into something else than was written,
let the last of two equal keys win, and recurse as deep as the text tells them to.  So this module
takes only their parser's events and builds a tree of nodes from them: every node knows its line
and column, a plain scalar keeps its text beside its value, and depth, size and aliases are
bounded while the tree grows.  `true`, `false`, `null` and plain numbers have values of their own;
every other plain scalar is the text that was written.
"""

from __future__ import annotations

import math
import re
from collections import abc
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import yaml

# libyaml when the wheel has it: an order of magnitude faster, with the same events.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

MAX_DEPTH = 50
MAX_NODES = 100_000
"""Nodes of one document, counting an alias as all that it stands for."""

_INT = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,17})")
_FLOAT = re.compile(
    r"[-+]?(?:0|[1-9][0-9]{0,40})(?=[.eE])(?:\.[0-9]{1,40})?(?:[eE][-+]?[0-9]{1,4})?"
)
_WORDS: dict[str, bool | None] = {
    "": None, "~": None, "null": None, "Null": None, "NULL": None,
    "true": True, "True": True, "TRUE": True,
    "false": False, "False": False, "FALSE": False,
}  # fmt: skip


class YamlError(ValueError):
    """The text is not YAML, or goes beyond what is read; `line` and `column` are 1-based."""

    def __init__(self, message: str, line: int, column: int) -> None:
        super().__init__(message)
        self.message = message
        self.line = line
        self.column = column


@dataclass(frozen=True, slots=True)
class Scalar:
    """`text` as written (quotes resolved) and the value that it has when nothing is known of it."""

    line: int
    column: int
    text: str
    value: str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Sequence:
    line: int
    column: int
    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Mapping:
    """`entries` in their order; a key that stands twice is there twice, see `duplicates`."""

    line: int
    column: int
    entries: tuple[tuple[Scalar, Node], ...]

    def get(self, key: str) -> Node | None:
        return next((value for name, value in self.entries if name.text == key), None)


Node = Scalar | Sequence | Mapping


def parse(text: str, *, first_line: int = 1) -> Node | None:
    """The text's one document, None if it is empty; raises `YamlError`.

    `first_line` is the line on which `text` begins in the file that the places are for.
    """
    builder = _Builder(first_line - 1)
    for event in _events(text, first_line):
        builder.take(event)
    return builder.root


def duplicates(node: Node | None) -> Iterator[tuple[Scalar, Scalar]]:
    """Every key that its mapping has already, with the first one, through the whole tree."""
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


class Misfit(Exception):
    """A value of the wrong kind; the argument says what was expected."""


@dataclass(frozen=True, slots=True)
class EntryFlaw:
    """An entry that cannot be used: its key stands in line `first` already, its value is not what
    was `expected`, or, without either, nobody knows the key."""

    key: Scalar
    value: Node
    first: int | None = None
    expected: str | None = None


def read_entries(
    root: Mapping, readers: abc.Mapping[str, Callable[[Node], Any]]
) -> tuple[dict[str, Any], list[EntryFlaw]]:
    """The values of the known keys, as their readers take them, and what is wrong with the other
    entries; a reader raises `Misfit`."""
    lines: dict[str, int] = {}
    values: dict[str, Any] = {}
    flaws: list[EntryFlaw] = []
    for key, node in root.entries:
        name = key.text
        if name not in readers:
            flaws.append(EntryFlaw(key, node))
        elif name in lines:
            flaws.append(EntryFlaw(key, node, first=lines[name]))
        else:
            lines[name] = key.line
            try:
                values[name] = readers[name](node)
            except Misfit as misfit:
                flaws.append(EntryFlaw(key, node, expected=str(misfit)))
    return values, flaws


def describe(node: Node) -> str:
    """The node in a few words, for "expected …, got …"."""
    if isinstance(node, Mapping):
        return "keys and values"
    if isinstance(node, Sequence):
        return "a list"
    if node.value is None or not node.text:
        return "nothing"
    shown = "".join(c if c.isprintable() and c != "`" else "?" for c in node.text[:60])
    return f"`{shown}…`" if len(node.text) > 60 else f"`{shown}`"


def syntax_error(text: str) -> YamlError | None:
    """What keeps the text from being a stream of YAML documents, or None.

    Tags, several documents and repeated keys are all right: whoever reads the file knows them.
    """
    depth = 0
    try:
        for event in _events(text, 1):
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            _check_depth(depth, *_place(event))
    except YamlError as error:
        return error
    return None


def _events(text: str, first_line: int) -> Iterator[yaml.Event]:
    """The parser's events; its errors come as `YamlError` with a place."""
    try:
        yield from yaml.parse(text, Loader=_LOADER)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line, mark.column) if mark else (0, 0)
        raise YamlError(error.problem or "unreadable", line + first_line, column + 1) from None
    except yaml.reader.ReaderError as error:
        before = text[: error.position]
        column = len(before) - (before.rfind("\n") + 1)
        message = f"the character U+{ord(text[error.position]):04X} is not allowed"
        raise YamlError(message, before.count("\n") + first_line, column + 1) from None


def _check_depth(depth: int, line: int, column: int) -> None:
    if depth > MAX_DEPTH:
        raise YamlError(f"nested deeper than {MAX_DEPTH} levels", line, column)


def _place(event: yaml.Event) -> tuple[int, int]:
    mark = event.start_mark
    return (mark.line + 1, mark.column + 1) if mark else (1, 1)


@dataclass(slots=True)
class _Open:
    """A collection whose end has not come yet; `key` is a mapping's key that waits for a value."""

    line: int
    column: int
    is_mapping: bool
    anchor: str | None
    items: list[Node]
    entries: list[tuple[Scalar, Node]]
    key: Scalar | None
    size: int


class _Builder:
    """Builds nodes from events without recursion; `offset` is added to the parser's lines."""

    def __init__(self, offset: int) -> None:
        self.root: Node | None = None
        self._offset = offset
        self._open: list[_Open] = []
        self._anchors: dict[str, tuple[Node, int]] = {}
        self._documents = 0

    def take(self, event: yaml.Event) -> None:
        if isinstance(event, yaml.DocumentStartEvent):
            self._documents += 1
            if self._documents > 1:
                raise self._error(event, "a second document; one is read")
        elif isinstance(event, yaml.ScalarEvent):
            self._refuse_tag(event)
            scalar = self._scalar(event)
            self._remember(event.anchor, scalar, 1)
            self._put(event, scalar, 1)
        elif isinstance(event, yaml.AliasEvent):
            if event.anchor not in self._anchors:
                raise self._error(event, f"`*{event.anchor}` has no `&{event.anchor}` before it")
            self._put(event, *self._anchors[event.anchor])
        elif isinstance(event, yaml.CollectionStartEvent):
            self._start(event)
        elif isinstance(event, yaml.CollectionEndEvent):
            self._end(event)

    def _start(self, event: yaml.CollectionStartEvent) -> None:
        self._refuse_tag(event)
        _check_depth(len(self._open) + 1, *self._place(event))
        is_mapping = isinstance(event, yaml.MappingStartEvent)
        if self._open and self._open[-1].is_mapping and self._open[-1].key is None:
            raise self._error(event, "a key must be a word")
        line, column = self._place(event)
        self._open.append(_Open(line, column, is_mapping, event.anchor, [], [], None, 1))

    def _end(self, event: yaml.CollectionEndEvent) -> None:
        done = self._open.pop()
        node: Node
        if done.is_mapping:
            node = Mapping(done.line, done.column, tuple(done.entries))
        else:
            node = Sequence(done.line, done.column, tuple(done.items))
        self._remember(done.anchor, node, done.size)
        self._put(event, node, done.size)

    def _put(self, event: yaml.Event, node: Node, size: int) -> None:
        """Give the node, which stands for `size` nodes, to the collection that is open."""
        if not self._open:
            self.root = node
            return
        into = self._open[-1]
        into.size += size
        if into.size > MAX_NODES:
            raise self._error(event, f"more than {MAX_NODES} values")
        if not into.is_mapping:
            into.items.append(node)
        elif into.key is not None:
            into.entries.append((into.key, node))
            into.key = None
        elif isinstance(node, Scalar):
            into.key = node
        else:
            raise self._error(event, "a key must be a word")

    def _scalar(self, event: yaml.ScalarEvent) -> Scalar:
        value = event.value if event.style else _value(event.value)
        return Scalar(*self._place(event), event.value, value)

    def _remember(self, anchor: str | None, node: Node, size: int) -> None:
        if anchor is not None:
            self._anchors[anchor] = (node, size)

    def _refuse_tag(self, event: yaml.ScalarEvent | yaml.CollectionStartEvent) -> None:
        if event.tag is not None:
            raise self._error(event, f"the tag `{event.tag}` is not read")

    def _place(self, event: yaml.Event) -> tuple[int, int]:
        line, column = _place(event)
        return line + self._offset, column

    def _error(self, event: yaml.Event, message: str) -> YamlError:
        return YamlError(message, *self._place(event))


def _value(text: str) -> str | int | float | bool | None:
    """What a plain scalar means; anything but the clear cases is its text."""
    if text in _WORDS:
        return _WORDS[text]
    if _INT.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text) and math.isfinite(number := float(text)):
        return number
    return text
