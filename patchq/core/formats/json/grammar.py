"""The grammar of edits in JSON: objects, lists of edits, and calls of tools.

Their objects are in the table in `shapes`.
A value that holds an edit's key or a block's marker and yields no edit is refused; any other value
is prose.  The arguments of a call say what it does; the tool's name decides only where they do not:
whether a text is a file's whole content, and whether a call that names a path merely looks at it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from msgspec.structs import replace

from patchq.core.formats.envelope.api_json import ToolCall, call_of, calls_of
from patchq.core.formats.format import (
    Document,
    FenceOpening,
    Format,
    Opening,
    Piece,
    Reading,
    Sign,
    UnreadableEdit,
    written_as,
)
from patchq.core.formats.json.members import (
    HINT,
    PATH,
    QUOTE,
    REASON,
    JsonNotes,
    JsonPlace,
    JsonRun,
    Members,
    begins,
    check_broken,
    edits_of,
    holds_edit,
    plain_key,
    run_at,
    speaks_of_edits,
)
from patchq.core.formats.json.patches import PATCHES, commands, patch_of
from patchq.core.formats.json.shapes import (
    CALL_HINT,
    CALLS,
    CONTENT,
    CONTEXT,
    CREATES,
    EDITS,
    NAMELESS,
    SCRIPT,
    SHAPES,
    TYPES,
    WRITES,
    Tool,
    edit_of,
    edit_with,
    is_call,
    needed,
)
from patchq.core.formats.marks.fences import line_above, next_line
from patchq.core.formats.marks.paths import KnownPaths, is_path, path_of_info
from patchq.core.model.ops import CONTEXTUAL, INDEXED, Create, Write
from patchq.core.model.values import Edit
from patchq.core.text.jsonish import JsonError, Node

_CALL = SHAPES[2]
_TYPES = frozenset({*TYPES, "insert_before", "insert_after", "replace", "delete"})
_LONE = frozenset({"target", "aftertext", "anchor", "searchpattern"})
_LISTS = {"edits", "contextualedits"}
_TEXTS = (*CONTENT, "text", "codeedit", "diff", "patch", "source", "newsource")


def read(doc: Document, i: int) -> Piece | None:
    """Return the edits of the JSON that begins on line `i`, or None.

    It begins with a bracket, or in a fence.  None if there is none, or none with edits.  Raises
    `UnreadableEdit`.
    """
    notes = doc.notes(JsonNotes)
    mark, start = doc.fences.at(i), i
    if i < notes.end:
        return None
    if mark:
        start = next_line(doc.lines, i)
        if not doc.fences.opens(mark):
            return None
        if speaks_of_edits(mark.info):
            message = "expected JSON below the line that opens its fence, found it beside"
            raise UnreadableEdit(i, message, HINT)
        # A fence that names a path holds a file's text.
        found = start < len(doc.lines) and begins(doc.lines[start])
        if not found or path_of_info(mark.info, doc.known):
            return None
    try:
        run = run_at(doc, start, mark)
    except JsonError as broken:
        check_broken(notes, i, start, broken)
        return None
    piece = _piece(doc, i, run)
    if piece is None:
        notes.end = run.end
    elif run.behind is not None:
        where = " before its fence ends" if mark else ""
        raise UnreadableEdit(
            run.behind,
            f"expected nothing behind the JSON of the edits{where}",
            "close the fence right behind the JSON, and put all edits into one list",
        )
    elif mark:
        _check_heading(doc, i, piece)
    return piece


def read_call(doc: Document, call: ToolCall) -> Piece | None:
    """Return the edits of a tool call in an API's answer.

    `doc` only gives the paths.
    None if the call is no edit.  Raises `UnreadableEdit`.
    """
    reader = _JsonReader(alone=False)
    known = KnownPaths.of(doc.known, call.cwd)
    reader.call(call, JsonPlace(1, call.at, known, doc.default_path))
    return reader.piece(None, call.at[1])


def _check_heading(doc: Document, i: int, piece: Piece) -> None:
    """Refuse a fence under the path of a file that it does not edit.

    It may be that file's text.
    """
    above = line_above(doc.lines, i, doc.low)
    named = doc.known.on_line(doc.lines[above]) if above >= doc.low else None
    path = doc.known.meant(named) if named else ""
    edited = [f"/{edit.path}" for edit in piece.edits]
    if path and edited and not any(e.endswith(f"/{path}") or path.endswith(e) for e in edited):
        raise UnreadableEdit(
            i,
            f"this fence may hold edits of {piece.edits[0].path!r} or be the text of {path!r}, "
            f"whose path is on line {above + 1}",
            f"for the text of a file put its path into the fence's info (`json:{path}`)",
        )


def _piece(doc: Document, i: int, run: JsonRun) -> Piece | None:
    alone = line_above(doc.lines, i, 0) < 0 and next_line(doc.lines, run.end - 1) == len(doc.lines)
    reader = _JsonReader(alone)
    for start, node in run.values:
        reader.value(node, JsonPlace(start + 1, None, doc.known, doc.default_path))
    return reader.piece(i, run.end)


@dataclass
class _JsonReader:
    """Collects the edits of JSON values.

    `alone` is true if the values are all of the response.
    """

    alone: bool
    found: Reading = field(default_factory=Reading)

    def piece(self, top: int | None, end: int) -> Piece | None:
        edits, shown = tuple(self.found.edits), tuple(self.found.shown)
        return Piece(edits, end, top, self.found.summary, shown=shown) if edits or shown else None

    def value(self, node: Node, place: JsonPlace) -> None:
        """Read one value, an object or a list of objects."""
        if isinstance(node.value, list):
            for item in node.value:
                if isinstance(item.value, dict):
                    self.value(item, place)
                elif holds_edit(item):
                    raise place.error(item, "expected an object for every edit", HINT)
        elif isinstance(node.value, dict) and node.value:
            calls = calls_of(node) or [call for call in (call_of(node),) if call]
            for call in calls:
                self.call(call, place.inside(node))
            if not calls:
                self._object(node, place)

    def call(self, call: ToolCall, place: JsonPlace) -> None:
        """Read a named call with its arguments."""
        first, arguments, found = len(self.found.edits), call.arguments, self.found
        tool = Tool.named(call.name)
        if isinstance(arguments.value, dict):
            members = Members(arguments, place)
            if not (self._patch(arguments, place) or self._lists(members, tool)):
                with written_as(CALLS):
                    self._add(_called(members, call.name, tool))
                found.shown += () if found.edits[first:] else commands(arguments, place)
        elif not self._patch(arguments, place):
            text = arguments.value if isinstance(arguments.value, str) else ""
            speaks = speaks_of_edits(text) or holds_edit(arguments)
            if speaks or tool.words & (EDITS | WRITES | CREATES):
                message = "expected the call's arguments as a JSON object"
                error = place.error(arguments, message, CALL_HINT)
                raise error.written_as(CALLS)
        found.edits[first:] = [edit.but(called=True) for edit in found.edits[first:]]

    def _object(self, node: Node, place: JsonPlace) -> None:
        holds = holds_edit(node)
        keys = {plain_key(key) for key in node.value}
        if not holds and (len(keys) < len(node.value) or keys.isdisjoint(_MEANT)):
            return
        members = Members(node, place)
        if self._lists(members, NAMELESS) or self._patch(node, place):
            return
        if is_call(members):
            self._add(edit_of(members, shape=_CALL))
        elif _is_whole_file(members):
            if not self.alone:
                raise members.error(
                    "this may be a whole file; expected the name of the tool that writes it",
                    'send `{"name": "write_file", "arguments": {…}}`, or the file in a fence with '
                    "its path in the info",
                )
            op = Write(needed(members, "the file's text", *CONTENT))
            self._add(edit_with(members, op, _CALL))
        elif holds or _resembles(members):
            raise members.error("expected an edit in a form that is known", HINT)

    def _lists(self, members: Members, tool: Tool) -> bool:
        """Read the lists of edits in an object or a call of `tool`.

        Returns whether there are any.
        """
        several, contexts = edits_of(members), members.get("contextualedits")
        if several is None and contexts is None:
            return False
        if is_call(members) or (several is None and members.get("edits")):
            raise members.error("expected the edits in one form, found several", HINT)
        for key in members.keys() - _LISTS:
            message = f"expected no edit in {members.written[key]!r}"
            members.check(HINT, (holds_edit(members[key]), message))
        if contexts is not None and not isinstance(contexts.value, list):
            raise members.error("expected a list as `contextualEdits`", HINT)
        default = members.path() if members.names_path() else None
        before, (items, place) = len(self.found.edits), several or ([], members.place)
        further = contexts.value if contexts is not None else []
        rows = [*((node, place, None) for node in items)]
        for node, where, shape in (*rows, *((node, members.place, CONTEXT) for node in further)):
            if not isinstance(node.value, dict):
                raise where.error(node, "expected an object for every edit", HINT)
            item = Members(node, where)
            self._add(edit_of(item, tool, default, shape))
        if len(self.found.edits) == before:
            raise members.error("expected at least one edit, found none", HINT)
        summary = members.get("summary")
        if summary is not None and isinstance(summary.value, str):
            parts = self.found.summary, summary.value.strip()
            self.found.summary = "\n\n".join(filter(None, parts))
        return True

    def _patch(self, node: Node, place: JsonPlace) -> bool:
        edits = patch_of(node, place)
        self.found.add(Piece(tuple(edits), 0), place.at(node))
        return bool(edits)

    def _add(self, edit: Edit | None) -> None:
        if edit is not None:
            self.found.edits.append(edit.but(called=True) if edit.format == CALLS else edit)


# An object without an edit's key that is like an edit has one of these members.
_MEANT = frozenset(
    {*_LISTS, *PATCHES, *CONTENT, "insertline", "filetext", "inserttext", "type", "command"}
)


def _called(members: Members, name: str, tool: Tool) -> Edit | None:
    command = members.get("command")
    views = command is not None and command.value == "view"
    if is_call(members):
        if tool.looks and not views:
            message = f"{name!r} is the name of a tool that looks, and this is an edit"
            raise members.error(message, CALL_HINT)
        return edit_of(members, tool, shape=_CALL)
    if views or tool.looks:
        return None
    words, named = tool.words, members.names_path()
    texts = {key for key in _TEXTS if key in members}
    if named and texts and texts <= {*CONTENT} and words & (WRITES | CREATES):
        text = needed(members, "the file's text", *CONTENT)
        op = Write(text) if words & WRITES else Create(text)
        return edit_with(members, op, _CALL)
    if named or texts or words & EDITS or holds_edit(members.node):
        raise members.error("this call may change a file and cannot be read", CALL_HINT)
    return None


def _is_whole_file(members: Members) -> bool:
    """Return whether an object is a path and a text, with nothing else.

    A reason may be beside them.
    """
    paths = [members[key].value for key in PATH if key in members]
    texts = [members[key].value for key in CONTENT if key in members]
    return (
        len(paths) == len(texts) == 1
        and isinstance(texts[0], str)
        and isinstance(paths[0], str)
        and is_path(paths[0], members.place.known)
        and not members.keys() - {*PATH, *CONTENT, *REASON}
    )


def _resembles(members: Members) -> bool:
    kind, edits = members.get("type"), members.get("edits")
    if kind is not None and isinstance(kind.value, str) and not _LONE.isdisjoint(members):
        return kind.value in _TYPES
    items: Iterable[Node] = edits.value if edits is not None and edits.value else ()
    listed = isinstance(items, list) and any(isinstance(item.value, dict) for item in items)
    return members.names_path() and listed


# ---------------------------------------------------------------- the forms

SCRIPT_INSTRUCTIONS = """\
Answer with one JSON object for every file:

{
  "file": "path/to/file.py",
  "edits": [
    {
      "type": "insert_after",
      "anchor": {"type": "line_pattern", "selected": "import os"},
      "content": "import re\\n",
      "description": "what this edit is for"
    }
  ]
}

`type` is `insert_before`, `insert_after`, `replace` or `delete` (without `content`). The anchor's
type is `line_pattern`, `import_statement` or `decorator` with the whole line as `selected`, or
`function_definition` or `class_definition` with the header line as `selected` or with its `name`.
The anchor must occur once; if it does not, add its `line`. For `replace`, `"scope": "line"` or
`"scope": "definition"` says what of a definition is replaced. Edits apply in order. `content` is
whole lines with their indentation.
"""

INDEXED_INSTRUCTIONS = """\
Answer with one JSON object:

{
  "edits": [
    {
      "id": "edit-1",
      "type": "modification",
      "file": "path/to/file.md",
      "target": "the text to change",
      "replacement": "the text that takes its place",
      "occurrences": [1, 3],
      "confidence": 0.95,
      "reason": "what this edit is for"
    }
  ],
  "summary": "what all of them are for"
}

`occurrences` counts where the target is in the file as it is now, from 1; leave it out for a
target that is there once. `type` is `modification`, `deletion` (no `replacement`) or `addition`
(`afterText`, `occurrence` and `insertion` instead). Copy all texts exactly.

Group related changes under one id: the same change at several places is one edit with all its
`occurrences`, which people accept or leave out as one. `confidence`, from 0 to 1, says how clear
the context makes the change; edits below the threshold are left out. An edit that must not be made
when another one is names it as `"dependsOn": "edit-1"`. For a complex change, whose places are
hard to count, give both forms: beside the indexed edit, in the same object, a contextual one with
the same id as its backup, which is taken where the indexed one has no place:

  "contextualEdits": [
    {
      "id": "edit-1",
      "type": "modification",
      "file": "path/to/file.md",
      "searchPattern": {
        "before": "the text right before it",
        "target": "the text to change",
        "after": "the text right behind it"
      },
      "replacement": "the text that takes its place"
    }
  ]
"""

CONTEXTUAL_INSTRUCTIONS = """\
Answer with one JSON object:

{
  "contextualEdits": [
    {
      "id": "ctx-1",
      "type": "modification",
      "file": "path/to/file.md",
      "searchPattern": {
        "before": "the text right before it",
        "target": "the text to change",
        "after": "the text right behind it"
      },
      "replacement": "the text that takes its place",
      "confidence": 0.95,
      "reason": "what this edit is for",
      "lineHint": "line 45-50"
    }
  ]
}

`type` is `modification`, `deletion` (no `replacement`) or `addition` (no `target`; the text is the
`insertion`). Copy all texts exactly. Instead of `before` and `after`, `"paragraph": "contains('x')
&& !contains('y')"` seeks the target in such paragraphs, `maxDistance` characters from `x` at most;
without a target, `"sentences": 2` names the two sentences that hold `x`. `"all": true` changes
every match, so that related changes stand under one id; otherwise there must be one. `confidence`,
from 0 to 1, says how clear the context makes the change; edits below the threshold are left out.
"""

CALL_INSTRUCTIONS = """\
Answer with one JSON list, an object for every change:

[
  {
    "file_path": "path/to/file.py",
    "old_string": "the text to change, copied exactly, with enough round it to occur only once",
    "new_string": "the text that takes its place"
  }
]

Add `"expected_replacements": 3` to change exactly so many places, or `"replace_all": true` to
change all of them. An empty `old_string` creates the file. Escape line ends as `\\n` once.
"""

_OLD_NEW = r"(?:old|new)[_-]?(?:string|str|text)"
_KEY = rf"(?i:{_OLD_NEW}|file_?text|insert_?line|contextualEdits|searchPattern)"
_SIGNS = (
    Sign(
        "an edit in another notation",
        rf"\s*(?:- +)?[\"']?{_KEY}[\"']?\s*[:=]",
        languages=frozenset({"yaml", "yml", "toml", "json", "json5", "jsonc"}),
    ),
    Sign("an edit in JSON", rf"{QUOTE}{_KEY}{QUOTE}\s*[:>]", anywhere=True),
)
FORMS = (
    Format(SCRIPT, SCRIPT_INSTRUCTIONS),
    Format(INDEXED, INDEXED_INSTRUCTIONS),
    Format(CONTEXTUAL, CONTEXTUAL_INSTRUCTIONS),
    Format(CALLS, CALL_INSTRUCTIONS, signs=_SIGNS),
)
OPENINGS = (Opening(read, (r"[{\[]",)),)
# The forms of edits in JSON, which are read together: what an object says tells which it is.
JSON_FORMATS = tuple(
    replace(form, openings=OPENINGS, fences=(FenceOpening(read),)) for form in FORMS
)
