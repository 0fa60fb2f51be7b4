"""Reading the members of the JSON objects in which edits are written.

Models spell a key as `old_str`, `oldStr` or `old-str`; keys are compared without case and signs.
A member of the wrong kind is never passed over: what looks like an edit is read or refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache
from typing import Any

from msgspec import Struct

from patchq.core.formats.format import Document, UnreadableEdit
from patchq.core.formats.marks.fences import (
    BEGIN_PATCH,
    Fence,
    fence,
    next_line,
)
from patchq.core.formats.marks.paths import KnownPaths, is_path, undress
from patchq.core.model.ops import Op
from patchq.core.model.values import Edit
from patchq.core.text import jsonish
from patchq.core.text.jsonish import JsonError, Node

OLD = ("oldstr", "oldstring", "oldtext")
NEW = ("newstr", "newstring", "newtext")
PATH = ("path", "filepath", "file", "filename", "targetfile", "relativepath", "absolutepath")
REASON = ("description", "reason", "explanation", "instruction")
EDIT_KEYS = frozenset({*OLD, *NEW, "filetext", "insertline", "contextualedits", "searchpattern"})
_ITEM_KEYS = EDIT_KEYS | {"anchor", "target", "aftertext"}

_MARKER = re.compile(
    rf"^[ \t]*(?:<{{5,9}} ?(?:SEARCH|ORIGINAL|RENAME|DELETE)\b|{re.escape(BEGIN_PATCH)})",
    re.MULTILINE,
)
_SIGNS = re.compile(r"[^a-z0-9]")
_SHORT = 40


SEND_LIST = "send `edits` as a list of objects, one for every edit"


class JsonPlace(Struct, frozen=True):
    """Place of a value, for edits and errors.

    `first` is the line of the response that the value's line 1 is; `fixed` are its lines where it
    has none of its own (an API's call).
    """

    first: int
    fixed: tuple[int, int] | None
    known: KnownPaths
    default_path: str | None = None

    def at(self, node: Node) -> tuple[int, int]:
        """Return the first and last line (1-based) of a value in the response."""
        return self.fixed or (self.first + node.line - 1, self.first + node.last - 1)

    def inside(self, node: Node) -> JsonPlace:
        """Return the place for a value's content, parsed as a text of its own."""
        return JsonPlace(1, self.at(node), self.known, self.default_path)

    def error(self, node: Node, message: str, hint: str) -> UnreadableEdit:
        return UnreadableEdit(self.at(node)[0] - 1, message, hint)


class Members(dict[str, Node]):
    """An object's members by their plain keys, without null ones."""

    def __init__(self, node: Node, place: JsonPlace) -> None:
        super().__init__()
        self.node = node
        self.place = place
        # The keys as they are written, by their plain form; also of members that are null.
        self.written: dict[str, str] = {}
        for key, value in node.value.items():
            plain = plain_key(key)
            if plain in self.written:
                raise self.error(
                    f"expected one of {self.written[plain]!r} and {key!r}, found both",
                    "give every member once",
                )
            self.written[plain] = key
            if value.value is not None:
                self[plain] = value

    def error(self, message: str, hint: str) -> UnreadableEdit:
        return self.place.error(self.node, message, hint)

    def inner(self, name: str, hint: str) -> Members:
        """Return the members of a member that must be an object."""
        found = self.get(plain_key(name))
        if found is None or not isinstance(found.value, dict):
            raise self.error(f"expected an object as `{name}`", hint)
        return Members(found, self.place)

    def check(self, hint: str, *flaws: tuple[object, str]) -> None:
        """Raise `UnreadableEdit` for the first flaw that is there.

        A flaw is a condition and a message.
        """
        for wrong, message in flaws:
            if wrong:
                raise self.error(message, hint)

    def one(self, *keys: str) -> Node | None:
        """Return the member under one of the keys.

        Members under several of them must be equal.
        """
        found = [key for key in keys if key in self]
        if len(found) > 1 and len({str(self[key].plain()) for key in found}) > 1:
            names = " and ".join(repr(self.written[key]) for key in found)
            raise self.error(f"expected one value, found {names}", "give one of them")
        return self[found[0]] if found else None

    def _value(self, keys: tuple[str, ...], expected: str, fits: Callable[[Any], bool]) -> Any:
        """Return the value under one of the keys, or None if it is missing.

        Raises `UnreadableEdit` if it does not fit.
        """
        node = self.one(*keys)
        if node is None:
            return None
        if not fits(node.value):
            name = next(self.written[key] for key in keys if key in self)
            message = f"expected {expected} as {name!r}"
            raise self.place.error(node, message, "correct this member")
        return node.value

    def text(self, *keys: str) -> str | None:
        """Return the member as text, or None if it is missing."""
        text: str | None = self._value(keys, "a text", lambda value: isinstance(value, str))
        return text

    def number(self, *keys: str, least: int = 1) -> int | None:
        """Return the member as a whole number, or None if it is missing."""

        def fits(value: Any) -> bool:
            number = whole(value)
            return number is not None and number >= least

        return whole(self._value(keys, f"a whole number from {least}", fits))

    def flag(self, *keys: str) -> bool:
        """Return a boolean member, or False if it is missing."""
        return bool(self._value(keys, "true or false", lambda value: isinstance(value, bool)))

    def texts(self, *keys: str) -> tuple[str, ...]:
        """Return a list of texts.

        A single text is read as a list of it.
        """
        value = self._value(
            keys,
            "a list of texts",
            lambda value: (
                isinstance(value, str)
                or (isinstance(value, list) and all(isinstance(item.value, str) for item in value))
            ),
        )
        return (value,) if isinstance(value, str) else tuple(item.value for item in value or ())

    def reason(self) -> str | None:
        """Return the response's reason for the edit."""
        found = (self[key].value for key in REASON if key in self)
        return next((value for value in found if isinstance(value, str) and value.strip()), None)

    def confidence(self) -> float | None:
        """Return the confidence that the response states, from 0 to 1, or None."""
        value = self._value(
            ("confidence",),
            "a number from 0 to 1",
            lambda value: type(value) in (int, float) and 0 <= value <= 1,
        )
        return None if value is None else float(value)

    def path(self, default: str | None = None) -> str:
        """Return the path of the file, without decoration.

        `default` is the path given further out.
        """
        path, written = default or self.place.default_path, self.text(*PATH)
        if written is not None:
            path = _undressed(written, self.place.known)
        if not path:
            raise self.error(
                "expected the path of the file that is edited",
                'add `"file": "path/to/file.py"`, relative to the repository\'s root',
            )
        return path

    def id(self) -> str:
        """Return the id in the response, or ""."""
        node = self.one("id")
        number = whole(node.value) if node else None
        return (self.text("id") or "").strip() if number is None else str(number)

    def names_path(self) -> bool:
        """Return whether one of the members is a path, by its key."""
        return any(key in PATH or key.endswith("path") for key in self)

    def edit(self, format: str, op: Op, default_path: str | None, id: str = "") -> Edit:
        """Return the edit in an object, with the given format and operation.

        `default_path` is the path given further out.
        """
        return Edit(
            id,
            format,
            self.place.at(self.node),
            self.path(default_path),
            op,
            self.reason(),
            self.confidence(),
            self.texts("dependson"),
            self.texts("cascades"),
        )


def edits_of(members: Members) -> tuple[list[Node], JsonPlace] | None:
    """Return the items of `edits` and their place, or None.

    None if they are not edits.
    Some models give the list as a text that holds it.
    """
    node, place = members.get("edits"), members.place
    if node is not None and isinstance(node.value, str) and node.value.lstrip()[:1] == "[":
        place = place.inside(node)
        try:
            node = jsonish.parse(node.value)
        except JsonError as error:
            if not speaks_of_edits(node.value):
                return None
            raise place.error(
                node, f"expected a list as `edits`; its text cannot be read: {error}", SEND_LIST
            ) from None
    return (node.value, place) if node is not None and _is_edits(node) else None


def whole(value: Any) -> int | None:
    """Return a value as a whole number, or None.

    Some APIs write one as `3.0`.
    """
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def plain_key(key: str) -> str:
    """Return a key in lower case, without signs."""
    return (_recent if len(key) < _SHORT else _plain)(key)


def _plain(key: str) -> str:
    return _SIGNS.sub("", key.lower())


_recent = lru_cache(256)(_plain)  # calls have few different keys, and many of each


def holds_edit(node: Node) -> bool:
    """Return whether a value contains an edit's key or a block's marker.

    Values inside are searched too, at any depth.
    """
    nodes = [node]
    while nodes:
        value = nodes.pop().value
        if isinstance(value, str) and _MARKER.search(value):
            return True
        if isinstance(value, dict):
            for key, member in value.items():
                plain = plain_key(key)
                if plain in EDIT_KEYS or (plain == "edits" and _is_edits(member)):
                    return True
                nodes.append(member)
        elif isinstance(value, list):
            nodes += value
    return False


def _is_edits(node: Node) -> bool:
    return isinstance(node.value, list) and any(
        isinstance(item.value, dict) and not _ITEM_KEYS.isdisjoint(map(plain_key, item.value))
        for item in node.value
    )


def _undressed(written: str, known: KnownPaths) -> str | None:
    """Return a path without decoration, or None if it cannot be one.

    Blanks round it are data in JSON.
    """
    path = written
    if not known(path) and path == path.strip():
        plain = undress(path)[0]
        if known.has(known.meant(plain)) or (path[:1] in "`*\"'" and is_path(plain, known)):
            path = plain
    path = known.meant(path)
    return path if path and not path.endswith("/") and "\n" not in path else None


# ---------------------------------------------------------------- where JSON is in a text

_KEY = (
    r"(?:(?:old|new)[_-]?(?:string|str|text)|file_?text|insert_?line|contextualEdits|searchPattern)"
)
QUOTE = r"(?<!\\)\\*[\"'\u201c\u201d\u2018\u2019]"
_ANY_KEY = re.compile(
    rf"{QUOTE}{_KEY}{QUOTE}\s*:|(?<![\w\"'-]){_KEY}\s*:",
    re.IGNORECASE,
)
_EDITS = re.compile(
    rf"(?:{QUOTE}|\b)edits(?:{QUOTE})?\s*:\s*\[.*?"
    rf"(?:{QUOTE}|\b)(?:anchor|target|afterText)(?:{QUOTE})?\s*:",
    re.IGNORECASE | re.DOTALL,
)
_UNQUOTED_LINES = 20  # so far behind its error an object of JavaScript may name its keys
HINT = "send one JSON object or list in a form that `patchq formats` lists, and nothing else in it"


def speaks_of_edits(text: str) -> bool:
    """Return whether text that is not JSON contains an edit's key."""
    return ":" in text and bool(_ANY_KEY.search(text) or _EDITS.search(text))


def begins(line: str) -> bool:
    """Return whether a line may begin with an object or a list."""
    return line.lstrip()[:1] in ("{", "[")


class JsonNotes:
    """Notes on the JSON in a document.

    `end` is the line (index) behind what was read.
    """

    def __init__(self, doc: Document) -> None:
        self.doc = doc
        self.end = 0

    @cached_property
    def speak_of_edits(self) -> bool:
        """Return whether an edit's key in JSON is anywhere in the text."""
        return speaks_of_edits("\n".join(self.doc.lines))


class JsonRun(Struct, frozen=True):
    """Values one behind the other, with blank lines and commas between them at most."""

    values: tuple[tuple[int, Node], ...]  # they, with the indices of the lines on which they begin
    end: int  # the index of the first line behind the run, and behind its fence
    # The index of the line with text that goes on with the last value, or ends its fence late.
    behind: int | None


def run_at(doc: Document, start: int, mark: Fence | None) -> JsonRun:
    """Return the JSON values from line `start` on, bare or in a fence.

    `mark` opens the fence; None if they are bare.  Raises `JsonError` for a first value that cannot
    be read.
    """
    lines = doc.lines
    node, last, rest = _value(lines, start)
    values = [(start, node)]
    while rest in ("", ","):
        below = next_line(lines, last)
        if below == len(lines) or not begins(lines[below]):
            break
        try:
            node, last, rest = _value(lines, below)
        except JsonError:
            break
        values.append((below, node))
    end, behind = last + 1, last if rest else None
    tail = fence(rest)
    if mark and tail and mark.closed_by(tail):
        return JsonRun(tuple(values), end, None)
    if mark is None:
        below = next_line(lines, last)
        if behind is None and below < len(lines) and lines[below].strip()[:1] in (",", "]", "}"):
            behind = below
        return JsonRun(tuple(values), end, behind)
    closing, other = next(doc.fences.behind(last), (0, None))
    if other is None or not mark.closed_by(other):  # the fence's end is missing
        return JsonRun(tuple(values), end, behind)
    text = next_line(lines, last)
    behind = behind if rest not in ("", ",") else text if text < closing else None
    return JsonRun(tuple(values), closing + 1, behind)


def _value(lines: Sequence[str], index: int) -> tuple[Node, int, str]:
    """Return the value that begins on a line, its last line, and the rest.

    The last line is an index; the rest is what follows on it.  One line is parsed first, more only
    if the value needs them.
    """
    count = 1
    while True:
        text = "\n".join(lines[index : index + count])
        try:
            node, end = jsonish.parse_at(text, 0)
        except JsonError as error:
            if not error.cut or index + count >= len(lines):
                raise
            count *= 4
            continue
        return node, index + text.count("\n", 0, end), text[end:].partition("\n")[0].strip()


def check_broken(notes: JsonNotes, i: int, start: int, broken: JsonError) -> None:
    """Raise `UnreadableEdit` if unreadable JSON may be an edit or ends the response.

    It begins on line `start`: on line `i`, or in the fence that opens there.
    """
    lines, at = notes.doc.lines, start + broken.line - 1
    # A string may hide where another value begins; brackets alone do not.
    read = i + 1 if any('"' in line for line in lines[start:at]) else at
    notes.end = max(notes.end, i + 1, len(lines) if broken.cut else read)
    if not (broken.cut or notes.speak_of_edits):
        return
    end = at + (at == i or not begins(lines[at]))  # one that begins there is looked at for itself
    limit = min(len(lines), at + _UNQUOTED_LINES)
    while end > at and end < limit and lines[end].strip() and not begins(lines[end]):
        end += 1
    speaks = speaks_of_edits("\n".join(lines[i:end]))
    closed = any(at < end for at, _ in notes.doc.fences.behind(i))
    text = lines[start].lstrip()
    opens = text[1:].lstrip()[:1] in (("", '"') if text[:1] == "{" else ("", "{"))
    if broken.cut and (speaks or (opens and not closed)):
        raise UnreadableEdit.cut(i, "the response ends inside the JSON that begins here")
    if speaks:
        message = f"this looks like an edit in JSON that cannot be read: {broken}"
        raise UnreadableEdit(at, message, HINT, column=broken.column)
