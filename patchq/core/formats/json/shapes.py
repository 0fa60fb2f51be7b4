"""The shapes of the objects that are edits in JSON.

`SHAPES` has a row for each: the keys that identify it, its form, and what its members mean.  The
first row of which an object has a key counts.  Members are read as `members` has them; what narrows
an edit and is not understood would be ignored in silence, so it is unreadable.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NoReturn, get_args, get_type_hints

from msgspec import Struct

from patchq.core.formats.format import written_as
from patchq.core.formats.json.members import NEW, OLD, Members, holds_edit, whole
from patchq.core.model.ops import (
    CONTEXTUAL,
    INDEXED,
    Anchored,
    Create,
    InParagraph,
    InsertAt,
    Op,
    PredicateError,
    ReplaceText,
    parse_predicate,
)
from patchq.core.model.values import Edit

CALLS, SCRIPT = "edit_calls", "edit_script"

# ---------------------------------------------------------------- the names of tools

_LOOKS = frozenset({"view", "read", "open", "list", "ls", "glob", "grep", "find", "search"})
WRITES = frozenset({"write", "overwrite", "save"})
CREATES = frozenset({"create", "new"})
EDITS = frozenset({"edit", "multiedit", "replace", "patch"})
# A name with one of these words, too, is of no tool that merely looks.
_CHANGES = frozenset(
    {
        *WRITES, *CREATES, *EDITS, "add", "append", "apply", "change", "delete", "fix", "insert",
        "modify", "move", "prepend", "put", "remove", "rename", "rewrite", "set", "update",
    }
)  # fmt: skip
# The tools that delete a line with its end, where the quote has none.
_TAKE_LINE_ENDS = frozenset({"Edit", "MultiEdit"})
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
# What is before a tool's own name: the server or the namespace that offers it.
_SERVER = re.compile(r".*(?:__|[.:/])")


class Tool(Struct, frozen=True):
    """Meaning of a call's name."""

    words: frozenset[str] = frozenset()
    takes_line_end: bool = False

    @classmethod
    @lru_cache(64)
    def named(cls, name: str) -> Tool:
        words = frozenset(word.lower() for word in _WORD.findall(name))
        return cls(words, _SERVER.sub("", name) in _TAKE_LINE_ENDS)

    @property
    def looks(self) -> bool:
        return bool(self.words & _LOOKS) and not self.words & _CHANGES


NAMELESS = Tool()


# ---------------------------------------------------------------- calls

CONTENT = ("content", "contents")
# The commands of the text-editor tool, and the members that stand for one that is not named.
_COMMANDS = {"str_replace": OLD, "create": ("filetext",), "insert": ("insertline",)}
_NOT_READ = ("undo_edit",)
CALL_HINT = (
    "send `file_path`, `old_string` and `new_string`, or the change as a SEARCH/REPLACE block"
)


def is_call(members: Members) -> bool:
    """Return whether an object has members that only edit calls have."""
    command = members.get("command")
    named = command is not None and command.value in (*_COMMANDS, *_NOT_READ)
    return (named and members.names_path()) or not _CALL_KEYS.isdisjoint(members.written)


def _call(members: Members, tool: Tool) -> Op | None:
    command = members.text("command")
    if command == "view":
        return None
    implied = [c for c, keys in _COMMANDS.items() if any(key in members for key in keys)]
    if command is None and len(implied) > 1:
        _refuse(members, "expected one of the old text, `file_text` and `insert_line`")
    command = command or next(iter(implied), "str_replace")
    if command == "create":
        return Create(needed(members, "the file's text", "filetext", *CONTENT))
    if command == "insert":
        line = members.number("insertline", least=0)
        if line is None:
            _refuse(members, "expected `insert_line`, the line behind which the text goes")
        text = needed(members, "the text to insert", "inserttext", *NEW)
        return InsertAt(line, text if text.endswith("\n") else text + "\n")
    if command != "str_replace":
        known = ", ".join(f"`{name}`" for name in _COMMANDS)
        _refuse(members, f"expected one of the commands {known}, found {command!r}")
    if not implied and (new := members.text(*NEW)) is not None and tool.words & (WRITES | CREATES):
        return Create(new)
    old, new = needed(members, "the old text", *OLD), needed(members, "the new text", *NEW)
    every = members.flag("replaceall") or members.flag("allowmultiple")
    stated = members.number("expectedreplacements")
    if not old:
        return Create(new)
    count = stated or (None if every else 1)
    return ReplaceText(old, new, count, stated is not None, tool.takes_line_end and not new)


def needed(members: Members, what: str, *keys: str) -> str:
    """Return the text under one of the keys.

    Raises `UnreadableEdit` if it is missing.
    """
    text = members.text(*keys)
    if text is None:
        _refuse(members, f"expected {what}, found none")
    return text


def _refuse(members: Members, message: str) -> NoReturn:
    raise members.error(message, CALL_HINT)


# ---------------------------------------------------------------- scripts

_HINTS = get_type_hints(Anchored)
_DEFINITIONS = ("function_definition", "class_definition")
_SCRIPT_HINT = (
    "send `type`, `anchor` with `type` and `selected`, and `content` as whole lines; see "
    "`patchq formats edit_script`"
)


def _anchored(members: Members, _: Tool) -> Op:
    anchor = members.inner("anchor", _SCRIPT_HINT)
    action = _one_of(members, "type", get_args(_HINTS["action"]))
    kind = _one_of(anchor, "type", get_args(_HINTS["kind"]))
    name = anchor.text("name") if kind in _DEFINITIONS else None
    selected = anchor.text("selected") if "selected" in anchor else anchor.text("pattern")
    content = members.text("content") or ""
    either = "`selected` or `name`" if kind in _DEFINITIONS else "`selected`"
    members.check(
        _SCRIPT_HINT,
        (
            selected is not None and not selected.strip(),
            "expected a line with text as the anchor, found a blank one",
        ),
        (
            selected is None and not (name and name.strip()),
            f"expected {either} in the anchor, found neither",
        ),
        (content and action == "delete", "expected no `content` in a `delete`"),
        (
            not content and action != "delete",
            f"expected the lines of the `{action}` as `content`, found none",
        ),
    )
    scoped = next((one for one in (members, anchor) if "scope" in one), None)
    return Anchored(
        action,
        kind,
        selected and selected.rstrip("\r\n"),
        name,
        content if content.endswith("\n") or not content else content + "\n",
        anchor.number("line", "lineno"),
        _one_of(scoped, "scope", ("line", "definition")) if scoped is not None else None,
        anchor.texts("candidates") or None,
    )


def _one_of(members: Members, key: str, allowed: tuple[str, ...]) -> Any:
    found = members.text(key)
    if found not in allowed:
        names = ", ".join(f"`{name}`" for name in allowed)
        message = f"expected {key!r} to be one of {names}, found {found!r}"
        raise members.error(message, _SCRIPT_HINT)
    return found


# ---------------------------------------------------------------- indexed and contextual edits

TYPES = ("modification", "deletion", "addition")
_PATTERN_KEYS = {"before", "target", "after", "paragraph", "maxdistance", "sentences"}
_LINES = re.compile(
    r"\D*(\d{1,9})(?:\s*(?:-|–|—|\.{2,3}|:|to|and|through|until)\s*(?:lines?\s*)?(\d{1,9}))?\D*",  # noqa: RUF001
    re.IGNORECASE,
)
_INDEXED_HINT = "send `target`, `replacement` and `occurrences`; see `patchq formats indexed`"
_PATTERN_HINT = (
    "send `searchPattern` with `before`, `target` and `after`; see `patchq formats contextual`"
)


def _occurrences(members: Members, _: Tool) -> Op:
    kind = _kind(members, _INDEXED_HINT)
    adds = kind == "addition"
    key, other = ("aftertext", "target") if adds else ("target", "aftertext")
    target = members.text(key) or ""
    node = members.one("occurrences", "occurrence")
    items = [] if node is None else node.value if isinstance(node.value, list) else [node]
    numbers = sorted({whole(item.value) or 0 for item in items})
    what = "the text that it goes behind as `afterText`" if adds else "`target`"
    members.check(
        _INDEXED_HINT,
        (other in members, f"expected no {members.written.get(other)!r} with `{kind}`"),
        (not target, f"expected {what}, found none"),
        (
            node and (not numbers or numbers[0] < 1),
            "expected occurrences as whole numbers, counted from 1",
        ),
    )
    at = tuple(numbers) if node else None
    old, before = ("", target) if adds else (target, "")
    return ReplaceText(old, _new_text(members, kind), at=at, before=before)


def _in_context(members: Members, _: Tool) -> Op:
    pattern = members.inner("searchPattern", _PATTERN_HINT)
    kind = _kind(members, _PATTERN_HINT)
    before, target, after = (pattern.text(key) or "" for key in ("before", "target", "after"))
    paragraph, sentences = pattern.text("paragraph"), pattern.number("sentences")
    distance = pattern.number("maxdistance", least=0)
    adds = kind == "addition"
    unknown = sorted(pattern.written[key] for key in pattern.keys() - _PATTERN_KEYS)
    pattern.check(
        _PATTERN_HINT,
        (unknown, f"expected nothing else in `searchPattern`, found {', '.join(unknown)}"),
        (
            {"occurrence", "occurrences"} & members.keys(),
            "expected no occurrences in a contextual edit",
        ),
        (
            paragraph is None and (distance is not None or sentences),
            "expected `paragraph` beside `maxDistance` and `sentences`",
        ),
        (
            paragraph is not None and (adds or "before" in pattern or "after" in pattern),
            "expected either `paragraph` or `before` and `after`",
        ),
        (adds and target, "expected no `target` in an addition"),
        (adds and not before + after, "expected the text before or after the addition"),
        (
            not (adds or target or sentences),
            "expected the text to change as `target`, or the number of `sentences`",
        ),
        (target and sentences, "expected either `target` or `sentences`, found both"),
    )
    new, every, window = _new_text(members, kind), members.flag("all"), _window(members)
    if paragraph is None:
        count = None if every else 1
        return ReplaceText(target, new, count, before=before, after=after, window=window)
    try:
        parse_predicate(paragraph)
    except PredicateError as error:
        raise pattern.place.error(
            pattern["paragraph"],
            f"the predicate cannot be read: {error}",
            "write it like `contains('x') && !contains('y')`",
        ) from None
    return InParagraph(paragraph, target or None, new, distance, sentences, every, window)


def _kind(members: Members, hint: str) -> str:
    kind = members.text("type")
    if kind not in TYPES:
        names = ", ".join(f"`{name}`" for name in TYPES)
        raise members.error(f"expected `type` to be one of {names}, found {kind!r}", hint)
    return kind


def _new_text(members: Members, kind: str) -> str:
    adds = kind == "addition"
    key, other = ("insertion", "replacement") if adds else ("replacement", "insertion")
    text = members.text(key)
    members.check(
        f"send `{key}`, and for a deletion none",
        (other in members, f"expected no `{other}` with `{kind}`"),
        (text and kind == "deletion", "expected no `replacement` in a deletion"),
        (text is None and kind != "deletion", f"expected `{key}` with `{kind}`, found none"),
    )
    return text or ""


def _window(members: Members) -> tuple[int, int] | None:
    """Return the lines (first, last) that a hint states, or None.

    It is a number, or a text like "approximately line 45-50".
    """
    node = members.one("linehint")
    value = node.value if node is not None else None
    number = whole(value)
    match = _LINES.fullmatch(str(number) if number is not None else str(value or ""))
    if match is None:
        return None
    first, last = int(match[1]), int(match[2] or match[1])
    return (first, last) if 1 <= first <= last else None


# ---------------------------------------------------------------- the table

_CALL_KEYS = frozenset({*OLD, *NEW, "filetext", "insertline"})


class Shape(Struct, frozen=True):
    """A row of the table of objects.

    `tells` is true for its objects; `read` returns None for one that only looks.
    """

    form: str
    tells: Callable[[Members], object]
    read: Callable[[Members, Tool], Op | None]
    own: frozenset[str] = frozenset()  # members of which the text may be an edit's, as it is data


SHAPES = (
    Shape(SCRIPT, lambda members: "anchor" in members, _anchored),
    Shape(CONTEXTUAL, lambda members: "searchpattern" in members, _in_context),
    Shape(CALLS, is_call, _call, frozenset({*_CALL_KEYS, *CONTENT, "inserttext"})),
    Shape(INDEXED, lambda members: True, _occurrences),
)
CONTEXT = SHAPES[1]


def edit_of(
    members: Members, tool: Tool = NAMELESS, default: str | None = None, shape: Shape | None = None
) -> Edit | None:
    """Return the edit in an object, or None if the object only looks.

    Its keys decide its shape.  `default` is the path given further out.  Raises `UnreadableEdit`.
    """
    shape = shape or next(shape for shape in SHAPES if shape.tells(members))
    with written_as(shape.form):
        op = shape.read(members, tool)
        return None if op is None else edit_with(members, op, shape, default)


def edit_with(members: Members, op: Op, shape: Shape, default: str | None = None) -> Edit:
    """Return the edit of an object whose operation is known."""
    if shape.own:
        for key in members.keys() - shape.own:
            if holds_edit(members[key]):
                _refuse(members, f"expected no edit inside of {members.written[key]!r}")
    id = members.id() if shape.form in (INDEXED, CONTEXTUAL) else ""
    return members.edit(shape.form, op, default, id)
