"""Edits in JSON that stands in a response's text: which of its forms an object is.

The keys tell: an item of `edits` with an `anchor` belongs to an edit script, one with a
`searchPattern` is contextual, one with old and new text a call, one with a `target` indexed.  A
value that holds an edit's key or a block's marker and yields no edit is refused; any other value is
prose.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from patchq.core.formats.envelope.api_json import ToolCall, call_of, calls_of
from patchq.core.formats.format import (
    Document,
    FenceOpening,
    Opening,
    Piece,
    Stated,
    UnreadableEdit,
    written_as,
)
from patchq.core.formats.json import edit_calls, edit_script
from patchq.core.formats.json.members import JsonPlace, Members, edits_of, holds_edit, plain_key
from patchq.core.formats.json.text_edits import (
    CONTEXTUAL_FORMAT,
    INDEXED_FORMAT,
    TYPES,
    read_contextual,
    read_indexed,
)
from patchq.core.formats.json.values import (
    HINT,
    BrokenJson,
    JsonNotes,
    JsonRun,
    bare_run,
    begins,
    check_broken,
    fenced_run,
    is_member,
    is_vain,
    speaks_of_edits,
)
from patchq.core.formats.marks.lines import Fence, fence, line_above, next_line
from patchq.core.formats.marks.paths import as_meant, path_line, path_of_info
from patchq.core.model.values import Edit, ShownPlace
from patchq.core.text.jsonish import Node

_TYPES = frozenset({*TYPES, "insert_before", "insert_after", "replace", "delete"})
_MEANT = edit_calls.READ | edit_calls.PATCHES | {"edits", "contextualedits", "type", "command"}
"""An object that is an edit, or like one, has one of these members."""
_LONE = frozenset({"target", "aftertext", "anchor", "searchpattern"})


def read(doc: Document, i: int) -> Piece | None:
    """The edits of the JSON that begins with a bracket on line `i` (an index); None if there is
    none, or none with edits.  Raises `UnreadableEdit`."""
    notes: JsonNotes = doc.memory[JsonNotes]
    return _edits(notes, i, i, None) if i >= notes.end else None


def read_fenced(doc: Document, i: int) -> Piece | None:
    """As `read`, of the JSON in the fence that opens on line `i`."""
    notes: JsonNotes = doc.memory[JsonNotes]
    mark = fence(doc.lines[i]) if i >= notes.end else None
    start = _in_fence(doc, i, mark) if mark else None
    if start is None or is_vain(doc, start):
        return None
    return _edits(notes, i, start, mark)


def refuse_member(doc: Document, i: int) -> Piece | None:
    """Refuse a member of an edit outside of JSON that can be read."""
    notes: JsonNotes = doc.memory[JsonNotes]
    if i < notes.end:
        return None
    raise UnreadableEdit(i, "this looks like a part of an edit in JSON that cannot be read", HINT)


OPENINGS = (
    Opening(read, (r"[{\[]",), skips=is_vain),
    Opening(refuse_member, (r"[\\\"'\u201c\u201d\u2018\u2019]",), is_member),
)
JSON_FORMATS = tuple(
    replace(form, openings=OPENINGS, fences=(FenceOpening(read_fenced),))
    for form in (edit_script.FORMAT, INDEXED_FORMAT, CONTEXTUAL_FORMAT, edit_calls.FORMAT)
)
"""The forms of edits in JSON, which are read together: what an object says tells which it is."""


def _edits(notes: JsonNotes, i: int, start: int, mark: Fence | None) -> Piece | None:
    """The edits of what begins on line `start`: on line `i`, or in the fence that `mark` opens
    there."""
    doc = notes.doc
    if mark:
        run = fenced_run(doc.lines, start, mark, _may_be_edit)
    else:
        run = bare_run(doc.lines, start, _may_be_edit)
    if isinstance(run, BrokenJson):
        check_broken(notes, i, start, run)
        return None
    piece = _piece(doc, i, run) if run.values else None
    if piece is None:
        notes.end = max(notes.end, run.last + 1)
        if not run.values and run.last == start and _is_alone(doc.lines, start):
            notes.add_vain(start)
        return None
    if run.behind is not None:
        raise UnreadableEdit(
            run.behind,
            "expected nothing behind the JSON of the edits"
            + (" before its fence ends" if mark else ""),
            "close the fence right behind the JSON, and put all edits into one list",
        )
    if mark:
        _check_heading(doc, i, piece)
    return piece


def _is_alone(lines: Sequence[str], i: int) -> bool:
    """Whether the line under line `i` tells that no further value follows."""
    return i + 1 < len(lines) and bool(lines[i + 1].strip()) and not begins(lines[i + 1])


def read_call(doc: Document, call: ToolCall) -> Piece | None:
    """The edits of a tool call of an API's answer; `doc` tells of paths, its lines do not matter.

    None if the call is no edit.  Raises `UnreadableEdit`.
    """
    reader = _JsonReader(alone=False)
    reader.call(call, JsonPlace(1, call.at, doc.known, doc.default_path))
    return reader.piece(None, call.at[1])


def _in_fence(doc: Document, i: int, mark: Fence) -> int | None:
    """The line on which JSON begins in the fence that `mark` opens on line `i`, or None."""
    if not doc.open_fences.opens(mark):
        return None
    if speaks_of_edits(mark.info):
        raise UnreadableEdit(
            i, "expected JSON below the line that opens its fence, found it beside", HINT
        )
    start = next_line(doc.lines, i)
    found = start < len(doc.lines) and begins(doc.lines[start])
    # A fence that names a path holds a file's text.
    return start if found and not path_of_info(mark.info, doc.known) else None


def _check_heading(doc: Document, i: int, piece: Piece) -> None:
    """Refuse a fence under the path of another file than it edits: it may be that file's text."""
    above = line_above(doc.lines, i, doc.low)
    path = path_line(doc.lines[above], doc.known) if above >= doc.low else None
    path = path and as_meant(path, doc.known)
    if (
        path
        and piece.edits
        and not any(
            f"/{edit.path}".endswith(f"/{path}") or f"/{path}".endswith(f"/{edit.path}")
            for edit in piece.edits
        )
    ):
        raise UnreadableEdit(
            i,
            f"this fence may hold edits of {piece.edits[0].path!r} or be the text of {path!r}, "
            f"whose path stands on line {above + 1}",
            f"for the text of a file put its path into the fence's info (`json:{path}`)",
        )


def _piece(doc: Document, i: int, run: JsonRun) -> Piece | None:
    alone = line_above(doc.lines, i, 0) < 0 and next_line(doc.lines, run.end - 1) == len(doc.lines)
    reader = _JsonReader(alone)
    for start, value in run.values:
        reader.value(value.node, JsonPlace(start + 1, None, doc.known, doc.default_path))
    return reader.piece(i, run.end)


@dataclass
class _JsonReader:
    """Collects the edits of JSON values; `alone` tells whether they are all of the response."""

    alone: bool
    edits: list[Edit] = field(default_factory=list)
    stated: dict[int, Stated] = field(default_factory=dict)
    first_of_object: int = 0
    summary: str | None = None
    shown: list[ShownPlace] = field(default_factory=list)

    def piece(self, top: int | None, end: int) -> Piece | None:
        if not (self.edits or self.shown):
            return None
        edits, shown = tuple(self.edits), tuple(self.shown)
        return Piece(edits, end, top, self.summary, stated=self.stated, shown=shown)

    def value(self, node: Node, place: JsonPlace) -> None:
        """One value: an object, or a list of them."""
        if isinstance(node.value, list):
            for item in node.value:
                if isinstance(item.value, dict):
                    self.value(item, place)
                elif holds_edit(item):
                    raise place.error(item, "expected an object for every edit", HINT)
        elif isinstance(node.value, dict) and node.value:
            if calls := calls_of(node) or [call for call in (call_of(node),) if call]:
                for call in calls:
                    self.call(call, place.inside(node))
            else:
                self.object(node, place)

    def call(self, call: ToolCall, place: JsonPlace) -> None:
        """A named call with its arguments."""
        first = len(self.edits)
        self._call(call, place)
        for k, edit in enumerate(self.edits[first:], first):
            if not edit.called:
                self.edits[k] = edit.but(called=True)

    def _call(self, call: ToolCall, place: JsonPlace) -> None:
        arguments = call.arguments
        is_object = isinstance(arguments.value, dict)
        tool = edit_calls.Tool.named(call.name)
        if self.patch(arguments, place) or (
            is_object and self.lists(Members(arguments, place), tool)
        ):
            return
        with written_as(edit_calls.NAME):
            edits = edit_calls.of_call(call.name, arguments, place)
        if is_object:
            self.add(edits, arguments, place)
            self.shown += () if edits else edit_calls.commands(arguments, place)

    def object(self, node: Node, place: JsonPlace) -> None:
        """An object that is no named call."""
        keys = {plain_key(key) for key in node.value}
        holds = holds_edit(node)
        if not holds and (len(keys) < len(node.value) or keys.isdisjoint(_MEANT)):
            return
        members = Members(node, place)
        if self.lists(members) or self.patch(node, place):
            return
        if edit_calls.is_call(members):
            with written_as(edit_calls.NAME):
                edits = edit_calls.of_call(None, node, place)
            self.add(edits, node, place)
        elif edit_calls.is_whole_file(members):
            if not self.alone:
                raise members.error(
                    "this may be a whole file; expected the name of the tool that writes it",
                    'send `{"name": "write_file", "arguments": {…}}`, or the file in a fence with '
                    "its path in the info",
                )
            self.add([edit_calls.whole_file(members)], node, place)
        elif holds or _resembles(members):
            raise members.error("expected an edit in a form that is known", HINT)

    def lists(self, members: Members, tool: edit_calls.Tool = edit_calls.NAMELESS) -> bool:
        """Read the lists of edits that an object, or a call of `tool`, holds; False if it holds
        none."""
        several = edits_of(members)
        contexts = members.get("contextualedits")
        if several is None and contexts is None:
            return False
        if edit_calls.is_call(members) or (several is None and members.get("edits")):
            raise members.error("expected the edits in one form, found several", HINT)
        for key in members.keys() - {"edits", "contextualedits"}:
            message = f"expected no edit in {members.written[key]!r}"
            members.check(HINT, (holds_edit(members[key]), message))
        default = members.path() if members.names_path() else None
        self.first_of_object = before = len(self.edits)
        if several is not None:
            items, place = several
            for item in items:
                self.add([_item(item, place, default, tool)], item, place)
        if contexts is not None:
            if not isinstance(contexts.value, list):
                raise members.error("expected a list as `contextualEdits`", HINT)
            for item in contexts.value:
                _check_object(item, members.place)
                self.add([_contextual(item, members.place, default)], item, members.place)
        if len(self.edits) == before:
            raise members.error("expected at least one edit, found none", HINT)
        summary = members.get("summary")
        if summary is not None and isinstance(summary.value, str):
            self.summary = "\n\n".join(filter(None, (self.summary, summary.value.strip())))
        return True

    def patch(self, node: Node, place: JsonPlace) -> bool:
        """Read the patch that a call's arguments hold; False if they hold none."""
        edits = edit_calls.patch_of(node, place)
        self.add(edits, Node({}, node.line, node.last), place)
        return bool(edits)

    def add(
        self, edits: list[Edit] | list[Edit | None] | None, node: Node, place: JsonPlace
    ) -> None:
        members = Members(node, place)
        relations = members.texts("cascades"), members.texts("dependson")
        for edit in filter(None, edits or ()):
            self.stated[len(self.edits)] = Stated(*relations, self.first_of_object)
            called = edit.format == edit_calls.NAME
            self.edits.append(edit.but(called=True) if called else edit)


def _item(
    node: Node, place: JsonPlace, default_path: str | None, tool: edit_calls.Tool
) -> Edit | None:
    """One item of `edits`, in the form that its keys tell."""
    _check_object(node, place)
    members = Members(node, place)
    if "anchor" in members:
        with written_as(edit_script.NAME):
            return edit_script.read_edit(node, place, default_path)
    if "searchpattern" in members:
        return _contextual(node, place, default_path)
    if edit_calls.is_call(members):
        with written_as(edit_calls.NAME):
            return edit_calls.read_edit(node, place, default_path, tool)
    with written_as(INDEXED_FORMAT.name):
        return read_indexed(node, place, default_path)


def _contextual(node: Node, place: JsonPlace, default_path: str | None) -> Edit:
    with written_as(CONTEXTUAL_FORMAT.name):
        return read_contextual(node, place, default_path)


def _may_be_edit(node: Node) -> bool:
    """Whether a value is anything but prose to every form: one that is not is read in vain."""
    if isinstance(node.value, list):
        return any(map(_may_be_edit, node.value))
    if not isinstance(node.value, dict):
        return holds_edit(node)
    if not node.value or holds_edit(node) or calls_of(node) or call_of(node):
        return bool(node.value)
    keys = {plain_key(key) for key in node.value}
    return len(keys) == len(node.value) and not keys.isdisjoint(_MEANT)


def _resembles(members: Members) -> bool:
    """Whether an object without an edit's key is like an edit, or a list of them, all the same."""
    kind, edits = members.get("type"), members.get("edits")
    if kind is not None and isinstance(kind.value, str) and not _LONE.isdisjoint(members):
        return kind.value in _TYPES
    items = edits.value if edits is not None and isinstance(edits.value, list) else []
    return members.names_path() and any(isinstance(item.value, dict) for item in items)


def _check_object(node: Node, place: JsonPlace) -> None:
    if not isinstance(node.value, dict):
        raise place.error(node, "expected an object for every edit", HINT)
