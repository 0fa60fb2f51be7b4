"""Patches, and commands of a shell, in the arguments of a call.

    {"name": "apply_patch", "arguments": {"input": "*** Begin Patch\\n…"}}
    {"name": "shell", "arguments": {"command": ["apply_patch", "*** Begin Patch\\n…"]}}
    {"name": "bash", "arguments": {"command": "apply_patch <<'EOF'\\n*** Begin Patch\\n…\\nEOF"}}

A V4A patch is read over the lines of the text that holds it, and nothing but patches may stand
there: what else a shell does would be left out in silence.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from patchq.core.formats import account, v4a
from patchq.core.formats.format import Document, UnreadableEdit
from patchq.core.formats.json.members import JsonPlace, plain_key
from patchq.core.formats.marks.fences import BEGIN_PATCH
from patchq.core.model.values import Edit, ShownPlace
from patchq.core.text.jsonish import Node

PATCHES = frozenset({"input", "patch", "command", "cmd", "commands", "script", "patchtext", "diff"})
_BESIDE_PATCH = frozenset({"timeout", "timeoutms", "description", "justification", "explanation"})
_SHELLS = ("bash", "sh", "zsh", "cmd", "powershell", "pwsh", "/bin/bash", "/bin/sh")
_BEGIN = re.compile(rf"^[ \t]*{re.escape(BEGIN_PATCH)}", re.MULTILINE)
_MOVES = re.compile(r"\b(?:cd|pushd)\s")
_HINT = (
    "send the patch, from `*** Begin Patch` to `*** End Patch`, as the call's only argument, with "
    "paths relative to the repository's root"
)


def patch_of(arguments: Node, place: JsonPlace) -> list[Edit]:
    """Return the edits of a call whose argument is a patch.

    The list is empty if it is none.
    Raises `UnreadableEdit`.
    """
    patches = [text for text in _texts(arguments) if _BEGIN.search(text)]
    try:
        return _edits(patches[0], place) if len(patches) == 1 else []
    except UnreadableEdit as error:
        message = f"the patch in this call cannot be read: {error.problem.message}"
        raise place.error(arguments, message, error.problem.hint or _HINT) from None


def commands(arguments: Node, place: JsonPlace) -> Iterator[ShownPlace]:
    """Yield the lines that change files of the shell's command that a call holds."""
    for key, node in arguments.value.items():
        words = node.plain()
        if plain_key(key) not in PATCHES or not words:
            continue
        if isinstance(words, list) and all(isinstance(word, str) for word in words):
            words = words[-1] if words[0] in _SHELLS else shlex.join(words)
        if isinstance(words, str):
            yield from account.commands(words, place.at(node)[0], place.known)


def _texts(arguments: Node) -> list[str]:
    """Return the texts in the arguments that may be a patch.

    The list is empty if the arguments have other members.
    """
    members = {"input": arguments}
    if isinstance(arguments.value, dict):
        members = {plain_key(key): node for key, node in arguments.value.items()}
    if not members.keys() <= PATCHES | _BESIDE_PATCH:
        return []
    values = [node.value for key, node in members.items() if key in PATCHES]
    items = [item.value for value in values if isinstance(value, list) for item in value]
    return [value for value in (*values, *items) if isinstance(value, str)]


def _edits(text: str, place: JsonPlace) -> list[Edit]:
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
        raise UnreadableEdit(rest[0], message, _HINT)
    return edits
