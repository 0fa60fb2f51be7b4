"""Edit calls: the arguments with which models call the tools that edit files.

    {"file_path": "path/to/file.py", "old_string": "exact text", "new_string": "new text"}

The arguments say what the call does; the tool's name decides only where they do not: whether a
text is a file's whole content, and whether a call that names a path merely looks at it.  A call
that is not understood and could change a file is unreadable.
"""

from __future__ import annotations

import re
from typing import NoReturn

from patchq.formats.json.members import NEW, OLD, PATH, REASON, Members, Place, edits_of, holds_edit
from patchq.formats.marks.json_keys import speaks_of_edits
from patchq.formats.marks.paths import is_path
from patchq.model.ops import Create, InsertAt, Op, ReplaceText, Write
from patchq.model.values import Edit
from patchq.text.jsonish import Node

NAME = "edit_calls"
INSTRUCTIONS = """\
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

_LOOKS = frozenset({"view", "read", "open", "list", "ls", "glob", "grep", "find", "search"})
_WRITES = frozenset({"write", "overwrite", "save"})
_CREATES = frozenset({"create", "new"})
_EDITS = frozenset({"edit", "multiedit", "replace", "patch"})
_READ_COMMANDS = ("str_replace", "create", "insert")
_COMMANDS = (*_READ_COMMANDS, "undo_edit")
_CONTENT = ("content", "contents")
READ = frozenset({*OLD, *NEW, *_CONTENT, "filetext", "insertline", "inserttext"})
_TEXTS = (*_CONTENT, "text", "codeedit", "diff", "patch", "source", "newsource")
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_HINT = "send `file_path`, `old_string` and `new_string`, or the change as a SEARCH/REPLACE block"


def from_call(name: str | None, arguments: Node, at: tuple[int, int]) -> list[Edit] | None:
    """The edits of one tool call that stands on the lines `at` of the response; None if it is
    none.  Raises `Unreadable`."""
    return of_call(name, arguments, Place(fixed=at))


def of_call(name: str | None, arguments: Node, place: Place) -> list[Edit] | None:
    """As `from_call`, with what `place` knows of paths.  Without a `name` an object is a call only
    if it has the keys of one."""
    words = frozenset(word.lower() for word in _WORD.findall(name or ""))
    if not isinstance(arguments.value, dict):
        _check_text(words, arguments, place)
        return None
    members = Members(arguments, place)
    if several := edits_of(members):
        return _several(members, *several)
    if is_call(members):
        op = _op(members, words)
        return None if op is None else [_edit(members, op)]
    return _unknown(members, words) if name is not None else None


def read_edit(node: Node, place: Place, default_path: str | None) -> Edit | None:
    """One edit of the list `edits`; `default_path` is the file of all of them."""
    if not isinstance(node.value, dict):
        raise place.error(node, "expected an object for every edit", _HINT)
    members = Members(node, place)
    op = _op(members, frozenset())
    return None if op is None else _edit(members, op, default_path)


def is_call(members: Members) -> bool:
    """Whether an object has what only edit calls have."""
    command = members.get("command")
    if command is not None and command.value in _COMMANDS and members.names_path():
        return True
    return any(key in members.written for key in (*OLD, *NEW, "filetext", "insertline"))


def whole_file(members: Members) -> Edit:
    """The edit of an object that holds a path and a text, and is all that a response says."""
    return _edit(members, Write(_needed(members, "the file's text", *_CONTENT)))


def is_whole_file(members: Members) -> bool:
    """Whether an object without a tool's name may be meant as a file: a path, a text, no more."""
    paths = [members[key].value for key in PATH if key in members]
    texts = [members[key].value for key in _CONTENT if key in members]
    return (
        len(paths) == len(texts) == 1
        and isinstance(texts[0], str)
        and isinstance(paths[0], str)
        and is_path(paths[0], members.place.known)
        and not members.keys() - {*PATH, *_CONTENT, *REASON}
    )


def _edit(members: Members, op: Op, default: str | None = None) -> Edit:
    for key in members.keys() - READ:
        if holds_edit(members[key]):
            _refuse(members, f"expected no edit inside of {members.written[key]!r}")
    path, at = members.path(default), members.place.at(members.node)
    return Edit("", NAME, at, path, op, members.reason(), members.confidence())


def _op(members: Members, words: frozenset[str]) -> Op | None:
    """What the arguments of one call do; None for one that only looks."""
    command = members.text("command")
    if command == "view":
        return None
    if command not in (None, *_READ_COMMANDS):
        known = ", ".join(f"`{name}`" for name in _READ_COMMANDS)
        _refuse(members, f"expected one of the commands {known}, found {command!r}")
    if command is None:
        command = _command(members)
    if command == "insert":
        return _insertion(members)
    if command == "create":
        return Create(_needed(members, "the file's text", "filetext", *_CONTENT))
    if not any(key in members for key in OLD):
        new = members.text(*NEW)
        if new is not None and words & (_WRITES | _CREATES):
            return Create(new)
        _refuse(members, "expected the old text, which says where the change goes; found none")
    return _replacement(members)


def _command(members: Members) -> str:
    """The command that the other members stand for."""
    said = {
        "str_replace": any(key in members for key in OLD),
        "create": "filetext" in members,
        "insert": "insertline" in members,
    }
    if sum(said.values()) > 1:
        _refuse(members, "expected one of the old text, `file_text` and `insert_line`")
    return next((command for command in said if said[command]), "str_replace")


def _replacement(members: Members) -> Op:
    old = _needed(members, "the old text", *OLD)
    new = _needed(members, "the new text", *NEW)
    if not old:
        return Create(new)
    every = members.flag("replaceall") or members.flag("allowmultiple")
    stated = members.number("expectedreplacements")
    if stated is not None:
        return ReplaceText(old, new, stated, stated=True)
    return ReplaceText(old, new, None if every else 1)


def _insertion(members: Members) -> InsertAt:
    line = members.number("insertline", least=0)
    if line is None:
        _refuse(members, "expected `insert_line`, the line behind which the text goes; found none")
    text = _needed(members, "the text to insert", "inserttext", *NEW)
    return InsertAt(line, text if text.endswith("\n") else text + "\n")


def _several(members: Members, items: list[Node], place: Place) -> list[Edit] | None:
    """Several edits of one file."""
    if is_call(members):
        _refuse(members, "expected either `edits` or one old and one new text, found both")
    default = members.path() if members.names_path() else None
    edits = [read_edit(item, place, default) for item in items]
    return [edit for edit in edits if edit is not None] or None


def _unknown(members: Members, words: frozenset[str]) -> list[Edit] | None:
    """A named call without the keys of an edit: a whole file, a look, or something else."""
    command = members.get("command")
    if command is not None and command.value == "view":
        return None
    named, texts = members.names_path(), [key for key in _TEXTS if key in members]
    if named and texts and not {*texts} - {*_CONTENT} and words & (_WRITES | _CREATES):
        text = _needed(members, "the file's text", *_CONTENT)
        return [_edit(members, Write(text) if words & _WRITES else Create(text))]
    if words & _LOOKS and not texts and not words & (_EDITS | _WRITES):
        return None
    if named or texts or words & _EDITS or holds_edit(members.node):
        _refuse(members, "this call may change a file and cannot be read")
    return None


def _check_text(words: frozenset[str], arguments: Node, place: Place) -> None:
    """Refuse a call whose arguments are no object, unless it has nothing to do with files."""
    looks = words & _LOOKS and not words & (_EDITS | _WRITES)
    told = isinstance(arguments.value, str) and speaks_of_edits(arguments.value)
    if told or holds_edit(arguments) or (not looks and words & (_EDITS | _WRITES | _CREATES)):
        raise place.error(arguments, "expected the call's arguments as a JSON object", _HINT)


def _needed(members: Members, what: str, *keys: str) -> str:
    text = members.text(*keys)
    if text is None:
        _refuse(members, f"expected {what}, found none")
    return text


def _refuse(members: Members, message: str) -> NoReturn:
    raise members.error(message, _HINT)
