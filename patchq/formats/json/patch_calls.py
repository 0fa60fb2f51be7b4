"""Calls whose argument is a V4A patch: `apply_patch`, and shells that are told to run it.

    {"name": "apply_patch", "arguments": {"input": "*** Begin Patch\\n…"}}
    {"name": "shell", "arguments": {"command": ["apply_patch", "*** Begin Patch\\n…"]}}
    {"name": "bash", "arguments": {"command": "apply_patch <<'EOF'\\n*** Begin Patch\\n…\\nEOF"}}

The patch is read over the lines of the text that holds it, and nothing but patches may stand there:
what else a shell is told to do would be left out in silence.
"""

from __future__ import annotations

import re
from dataclasses import replace

from patchq.formats.document import Document
from patchq.formats.json.members import Place, plain_key
from patchq.formats.unreadable import Unreadable
from patchq.formats.v4a import reading as v4a
from patchq.model.values import Edit
from patchq.text.jsonish import Node

TEXTS = frozenset({"input", "patch", "command", "cmd", "commands", "script", "patchtext", "diff"})
_BESIDE = frozenset({"timeout", "timeoutms", "description", "justification", "explanation"})
_BEGIN = re.compile(r"^[ \t]*\*\*\* Begin Patch", re.MULTILINE)
_MOVES = re.compile(r"\b(?:cd|pushd)\s")
_HINT = (
    "send the patch, from `*** Begin Patch` to `*** End Patch`, as the call's only argument, with "
    "paths relative to the repository's root"
)


def patch_text(arguments: Node) -> str | None:
    """The text with a V4A patch that a call has as its argument, or None."""
    found = [text for text in _texts(arguments) if _BEGIN.search(text)]
    return found[0] if len(found) == 1 else None


def read(arguments: Node, place: Place) -> list[Edit] | None:
    """The edits of a call whose argument is a patch; None if it is none.  Raises `Unreadable`."""
    text = patch_text(arguments)
    if text is None:
        return None
    at = place.at(arguments)
    try:
        return [replace(edit, at=at) for edit in _edits(text, place)]
    except Unreadable as error:
        message = f"the patch in this call cannot be read: {error.problem.message}"
        raise place.error(arguments, message, error.problem.hint or _HINT) from None


def _texts(arguments: Node) -> list[str]:
    """The texts that may be a patch; none if the arguments say anything else."""
    nodes = [arguments]
    if isinstance(arguments.value, dict):
        members = {plain_key(key): node for key, node in arguments.value.items()}
        if not members.keys() <= TEXTS | _BESIDE:
            return []
        nodes = [node for key, node in members.items() if key in TEXTS]
    values = [item.value for node in nodes for item in _items(node)]
    return [value for value in values if isinstance(value, str)]


def _items(node: Node) -> list[Node]:
    return node.value if isinstance(node.value, list) else [node]


def _edits(text: str, place: Place) -> list[Edit]:
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
        raise Unreadable(rest[0], message, _HINT)
    return edits
