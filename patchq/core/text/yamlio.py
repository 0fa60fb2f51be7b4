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
from typing import TYPE_CHECKING, Any

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


NO_ENTRY = "this line is no `key: value`"  # what is wrong with a line of words among entries


class YamlError(ValueError):
    """The text is not YAML, or goes beyond what is read; `line` and `column` are 1-based."""

    def __init__(self, message: str, line: int, column: int) -> None:
        super().__init__(message)
        self.message = message
        self.line = line
        self.column = column


class Scalar(Struct, frozen=True):
    """`text` as written (quotes resolved) and the value that it has when nothing is known of it."""

    line: int
    column: int
    text: str
    value: str | int | float | bool | None


class Sequence(Struct, frozen=True):
    line: int
    column: int
    items: tuple[Node, ...]


class Mapping(Struct, frozen=True):
    """`entries` in their order; a repeated key is there twice, see `duplicates`."""

    line: int
    column: int
    entries: tuple[tuple[Scalar, Node], ...]


Node = Scalar | Sequence | Mapping


def parse(text: str, *, first_line: int = 1) -> Node | None:
    """The text's one document, None if it is empty; raises `YamlError`.

    `first_line` is the line on which `text` begins in the file that the places are for.
    """
    return _Composer(text, first_line).document()


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


class EntryFlaw(Struct, frozen=True):
    """An entry that cannot be used: its key is in line `first` already, its value is not what
    was `expected`, or, without either, the key is unknown."""

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
    """Return the error that keeps the text from being a stream of YAML documents, or None.

    Tags, several documents and repeated keys are all right: the readers of the file know them.
    """
    import yaml

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
    import yaml

    # libyaml when the wheel has it: an order of magnitude faster, with the same events.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        yield from yaml.parse(text, Loader=loader)
    except yaml.MarkedYAMLError as error:
        mark, problem = error.problem_mark or error.context_mark, error.problem or "unreadable"
        if problem == "could not find expected ':'" and error.context_mark:
            # The parser notices it where the next line begins.
            mark, problem = error.context_mark, NO_ENTRY
        line, column = (mark.line, mark.column) if mark else (0, 0)
        raise YamlError(problem, line + first_line, column + 1) from None
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


class _Composer:
    """Makes nodes of the parser's events; `offset` is added to the parser's lines.  It goes as deep
    as the text does, which `MAX_DEPTH` bounds."""

    def __init__(self, text: str, first_line: int) -> None:
        import yaml

        self._yaml = yaml
        self._events = _events(text, first_line)
        self._offset = first_line - 1
        self._anchors: dict[str, tuple[Node, int]] = {}
        self._event: Any = None  # the last one that was read; errors are in its place

    def document(self) -> Node | None:
        root: Node | None = None
        documents = 0
        for event in self._events:
            self._event = event
            if isinstance(event, self._yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    raise self._error("a second document; one is read")
            elif isinstance(event, self._yaml.NodeEvent):
                root, _ = self._node(1)
        return root

    def _node(self, depth: int, *, is_key: bool = False) -> tuple[Node, int]:
        """The node that begins at the event, and how many nodes it counts as."""
        event = self._event
        if isinstance(event, self._yaml.AliasEvent):
            if event.anchor not in self._anchors:
                raise self._error(f"`*{event.anchor}` has no `&{event.anchor}` before it")
            return self._anchors[event.anchor]
        if event.tag is not None:
            raise self._error(f"the tag `{event.tag}` is not read")
        found: tuple[Node, int]
        if isinstance(event, self._yaml.ScalarEvent):
            value = event.value if event.style else _value(event.value)
            found = Scalar(*self._place(), event.value, value), 1
        else:
            _check_depth(depth, *self._place())
            if is_key:
                raise self._error("a key must be a word")
            found = self._collection(depth)
        if event.anchor is not None:
            self._anchors[event.anchor] = found
        return found

    def _collection(self, depth: int) -> tuple[Node, int]:
        line, column = self._place()
        is_mapping = isinstance(self._event, self._yaml.MappingStartEvent)
        keys: list[Scalar] = []
        values: list[Node] = []
        total = 1
        for event in self._events:
            self._event = event
            if isinstance(event, self._yaml.CollectionEndEvent):
                break
            is_key = is_mapping and len(keys) == len(values)
            node, size = self._node(depth + 1, is_key=is_key)
            total += size
            if total > MAX_NODES:
                raise self._error(f"more than {MAX_NODES} values")
            if not is_key:
                values.append(node)
            elif isinstance(node, Scalar):
                keys.append(node)
            else:
                raise self._error("a key must be a word")
        if is_mapping:
            return Mapping(line, column, tuple(zip(keys, values, strict=True))), total
        return Sequence(line, column, tuple(values)), total

    def _place(self) -> tuple[int, int]:
        line, column = _place(self._event)
        return line + self._offset, column

    def _error(self, message: str) -> YamlError:
        return YamlError(message, *self._place())


def _value(text: str) -> str | int | float | bool | None:
    """Return the value of a plain scalar; its text in all but the clear cases."""
    if text in _WORDS:
        return _WORDS[text]
    if _INT.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text) and math.isfinite(number := float(text)):
        return number
    return text
