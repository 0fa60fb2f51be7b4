"""Edit calls: the arguments with which models call the tools that edit files.

    {"file_path": "path/to/file.py", "old_string": "exact text", "new_string": "new text"}

    {"name": "apply_patch", "arguments": {"input": "*** Begin Patch\\n…"}}
    {"name": "shell", "arguments": {"command": ["apply_patch", "*** Begin Patch\\n…"]}}
    {"name": "bash", "arguments": {"command": "apply_patch <<'EOF'\\n*** Begin Patch\\n…\\nEOF"}}

The arguments say what the call does; the tool's name decides only where they do not: whether a
text is a file's whole content, and whether a call that names a path merely looks at it.  A call
that is not understood and could change a file is unreadable.

A V4A patch, also one that a shell is told to apply, is read over the lines of the text that holds
it, and nothing but patches may stand there: what else a shell is told to do would be left out in
silence.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from functools import lru_cache
from typing import NoReturn

from msgspec import Struct
from msgspec.structs import replace

from patchq.core.formats import account, v4a
from patchq.core.formats.format import Document, Format, Sign, UnreadableEdit
from patchq.core.formats.json.members import (
    NEW,
    OLD,
    PATH,
    REASON,
    JsonPlace,
    Members,
    holds_edit,
    plain_key,
)
from patchq.core.formats.json.values import speaks_of_edits
from patchq.core.formats.marks.lines import BEGIN_PATCH
from patchq.core.formats.marks.paths import KnownPaths, is_path
from patchq.core.model.ops import Create, DeleteFile, InsertAt, Op, ReplaceText, Write
from patchq.core.model.values import Edit, ShownPlace
from patchq.core.text.jsonish import Node

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
_DELETES = frozenset({"delete", "remove", "rm", "unlink"})
_FILE = frozenset({"file", "path", "fs"})
_EDITS = frozenset({"edit", "multiedit", "replace", "patch"})
_CHANGES = frozenset(
    {
        *_WRITES, *_CREATES, *_EDITS, "add", "append", "apply", "change", "delete", "fix", "insert",
        "modify", "move", "prepend", "put", "remove", "rename", "rewrite", "set", "update",
    }
)  # fmt: skip
"""A name with one of these words, too, is of no tool that merely looks."""
_TAKE_LINE_ENDS = frozenset({"Edit", "MultiEdit"})
"""The tools that delete a line with its end, where the quote has none."""
_READ_COMMANDS = ("str_replace", "create", "insert")
_COMMANDS = (*_READ_COMMANDS, "undo_edit")
_CONTENT = ("content", "contents")
READ = frozenset({*OLD, *NEW, *_CONTENT, "filetext", "insertline", "inserttext"})
_TEXTS = (*_CONTENT, "text", "codeedit", "diff", "patch", "source", "newsource")
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_SERVER = re.compile(r".*(?:__|[.:/])")
"""What stands before a tool's own name: the server or the namespace that offers it."""
_HINT = "send `file_path`, `old_string` and `new_string`, or the change as a SEARCH/REPLACE block"
PATCHES = frozenset({"input", "patch", "command", "cmd", "commands", "script", "patchtext", "diff"})
_BESIDE_PATCH = frozenset({"timeout", "timeoutms", "description", "justification", "explanation"})
_SHELLS = ("bash", "sh", "zsh", "cmd", "powershell", "pwsh", "/bin/bash", "/bin/sh")
_BEGIN = re.compile(rf"^[ \t]*{re.escape(BEGIN_PATCH)}", re.MULTILINE)
_MOVES = re.compile(r"\b(?:cd|pushd)\s")
_HINT_PATCH = (
    "send the patch, from `*** Begin Patch` to `*** End Patch`, as the call's only argument, with "
    "paths relative to the repository's root"
)


class Tool(Struct, frozen=True):
    """What a call's name tells of it."""

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


def of_call(name: str | None, arguments: Node, place: JsonPlace) -> list[Edit] | None:
    """The edits of one tool call; None if it is none.  Raises `UnreadableEdit`.

    Without a `name` an object is a call only if it has the keys of one."""
    tool = Tool.named(name or "")
    if not isinstance(arguments.value, dict):
        _check_text(tool, arguments, place)
        return None
    members = Members(arguments, place)
    if is_call(members):
        if tool.looks and not _views(members):
            _refuse(members, f"{name!r} is the name of a tool that looks, and this is an edit")
        op = _op(members, tool)
        return None if op is None else [_edit(members, op)]
    return _unknown(members, tool) if name is not None else None


def read_edit(
    node: Node, place: JsonPlace, default_path: str | None, tool: Tool = NAMELESS
) -> Edit | None:
    """One edit of the list `edits`; `default_path` is the file of all of them."""
    if not isinstance(node.value, dict):
        raise place.error(node, "expected an object for every edit", _HINT)
    members = Members(node, place)
    op = _op(members, tool)
    return None if op is None else _edit(members, op, default_path)


def is_call(members: Members) -> bool:
    """Whether an object has what only edit calls have."""
    command = members.get("command")
    named = command is not None and command.value in _COMMANDS and members.names_path()
    return named or any(key in members.written for key in (*OLD, *NEW, "filetext", "insertline"))


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
    return members.edit(NAME, op, default)


def _views(members: Members) -> bool:
    command = members.get("command")
    return command is not None and command.value == "view"


def _op(members: Members, tool: Tool) -> Op | None:
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
        if new is not None and tool.words & (_WRITES | _CREATES):
            return Create(new)
        _refuse(members, "expected the old text, which says where the change goes; found none")
    return _replacement(members, tool)


def _command(members: Members) -> str:
    """The command that the other members stand for."""
    commands = [
        command
        for command, has in (
            ("str_replace", any(key in members for key in OLD)),
            ("create", "filetext" in members),
            ("insert", "insertline" in members),
        )
        if has
    ]
    if len(commands) > 1:
        _refuse(members, "expected one of the old text, `file_text` and `insert_line`")
    return commands[0] if commands else "str_replace"


def _replacement(members: Members, tool: Tool) -> Op:
    old = _needed(members, "the old text", *OLD)
    new = _needed(members, "the new text", *NEW)
    if not old:
        return Create(new)
    every = members.flag("replaceall") or members.flag("allowmultiple")
    stated = members.number("expectedreplacements")
    count = stated or (None if every else 1)
    return ReplaceText(old, new, count, stated is not None, tool.takes_line_end and not new)


def _insertion(members: Members) -> InsertAt:
    line = members.number("insertline", least=0)
    if line is None:
        _refuse(members, "expected `insert_line`, the line behind which the text goes; found none")
    text = _needed(members, "the text to insert", "inserttext", *NEW)
    return InsertAt(line, text if text.endswith("\n") else text + "\n")


def _unknown(members: Members, tool: Tool) -> list[Edit] | None:
    """A named call without the keys of an edit: a whole file, a look, or something else."""
    if _views(members) or tool.looks:
        return None
    words = tool.words
    named, texts = members.names_path(), [key for key in _TEXTS if key in members]
    if named and texts and not {*texts} - {*_CONTENT} and words & (_WRITES | _CREATES):
        text = _needed(members, "the file's text", *_CONTENT)
        return [_edit(members, Write(text) if words & _WRITES else Create(text))]
    if words & _DELETES and not members.keys() - {*PATH, *REASON} and words <= _DELETES | _FILE:
        return [_edit(members, DeleteFile())]
    if named or texts or words & _EDITS or holds_edit(members.node):
        _refuse(members, "this call may change a file and cannot be read")
    return None


def _check_text(tool: Tool, arguments: Node, place: JsonPlace) -> None:
    """Refuse a call whose arguments are no object, unless it has nothing to do with files."""
    speaks = isinstance(arguments.value, str) and speaks_of_edits(arguments.value)
    if speaks or holds_edit(arguments) or tool.words & (_EDITS | _WRITES | _CREATES):
        raise place.error(arguments, "expected the call's arguments as a JSON object", _HINT)


def _needed(members: Members, what: str, *keys: str) -> str:
    text = members.text(*keys)
    if text is None:
        _refuse(members, f"expected {what}, found none")
    return text


def _refuse(members: Members, message: str) -> NoReturn:
    raise members.error(message, _HINT)


# ---------------------------------------------------------------- patches


def patch_of(arguments: Node, place: JsonPlace) -> list[Edit] | None:
    """The edits of a call whose argument is a patch; None if it is none.

    Raises `UnreadableEdit`."""
    patches = [text for text in _patch_texts(arguments) if _BEGIN.search(text)]
    if len(patches) != 1:
        return None
    try:
        return [replace(edit, at=place.at(arguments)) for edit in _patch_edits(patches[0], place)]
    except UnreadableEdit as error:
        message = f"the patch in this call cannot be read: {error.problem.message}"
        raise place.error(arguments, message, error.problem.hint or _HINT_PATCH) from None


def commands(arguments: Node, place: JsonPlace) -> Iterator[ShownPlace]:
    """Yield the lines that change files of the shell's command that a call holds."""
    for key, node in arguments.value.items():
        words = node.plain()
        if plain_key(key) not in PATCHES or not words:
            continue
        if isinstance(words, list) and all(isinstance(word, str) for word in words):
            words = words[-1] if words[0] in _SHELLS else shlex.join(words)
        if isinstance(words, str):
            yield from account.commands(words, place.at(node)[0], KnownPaths.of(place.known))


def _patch_texts(arguments: Node) -> list[str]:
    """The texts that may be a patch; none if the arguments say anything else."""
    members = {"input": arguments}
    if isinstance(arguments.value, dict):
        members = {plain_key(key): node for key, node in arguments.value.items()}
        if not members.keys() <= PATCHES | _BESIDE_PATCH:
            return []
    items = [
        item
        for key, node in members.items()
        if key in PATCHES
        for item in (node.value if isinstance(node.value, list) else [node])
    ]
    return [item.value for item in items if isinstance(item.value, str)]


def _patch_edits(text: str, place: JsonPlace) -> list[Edit]:
    doc = Document(text.split("\n"), place.known, place.default_path)
    edits: list[Edit] = []
    rest: list[int] = []
    i = 0
    while i < len(doc.lines):
        piece = v4a.read(doc, i)
        if piece is None:
            rest += [i] if doc.lines[i].strip() else []
            i += 1
            continue
        if piece.top is not None and not _MOVES.search(doc.lines[piece.top]):
            rest = [index for index in rest if index != piece.top]
        edits += piece.edits
        i = doc.low = piece.end
    if rest:
        message = f"expected a patch and nothing else, found {doc.lines[rest[0]].strip()[:60]!r}"
        raise UnreadableEdit(rest[0], message, _HINT_PATCH)
    return edits


FORMAT = Format(
    NAME,
    INSTRUCTIONS,
    signs=(
        Sign(
            "an edit in another notation",
            r"\s*(?:- +)?[\"']?(?i:(?:old|new)[_-]?(?:string|str|text)|file_?text|insert_?line|"
            r"contextualEdits|searchPattern)[\"']?\s*[:=]",
            languages=frozenset({"yaml", "yml", "toml", "json", "json5", "jsonc"}),
        ),
        Sign(
            "an edit in JSON",
            r"[\"'](?i:(?:old_?str(?:ing)?|new_?str(?:ing)?|file_text|insert_line|contextualEdits|"
            r"searchPattern)[\"']\s*[:>])",
            anywhere=True,
        ),
        Sign(
            "an edit in JSON",
            r"[\"'](?:anchor|target|afterText)[\"']\s*:",
            anywhere=True,
            behind=r"[\"']edits[\"']\s*:",
        ),
    ),
)
