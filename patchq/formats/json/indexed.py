"""Indexed edits: edits of a text by the numbers of its occurrences, and how edits depend.

    {"edits": [{"id": "edit-1", "type": "modification", "file": "README.md", "target": "v1.0",
                "replacement": "v2.0", "occurrences": [1, 3], "confidence": 0.9,
                "reason": "the new version", "cascades": ["edit-2"]}], "summary": "…"}

An id names an edit for its reviewer and for other edits.  `cascades` names those that depend on
this one, `dependsOn` those that this one depends on: an edit is cancelled when one that it depends
on is applied.  A contextual edit (see `contextual`) with the id of an indexed one is its backup.
"""

from __future__ import annotations

from patchq.formats.format import Format
from patchq.formats.json.contextual import kind_of, new_text
from patchq.formats.json.members import JsonPlace, Members, whole
from patchq.model.ops import INDEXED, Occurrences
from patchq.model.values import Edit
from patchq.text.jsonish import Node

NAME = INDEXED
INSTRUCTIONS = """\
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

`occurrences` counts where the target stands in the file as it is now, from 1; leave it out for a
target that stands there once. `type` is `modification`, `deletion` (no `replacement`) or `addition`
(`afterText`, `occurrence` and `insertion` instead). Copy all texts exactly. An edit that must not
be made when another one is names it as `"dependsOn": "edit-1"`.
"""

_HINT = "send `target`, `replacement` and `occurrences`; see `patchq formats indexed`"


def read_edit(node: Node, place: JsonPlace, default_path: str | None) -> Edit:
    """One indexed edit, without its relations to others.  Raises `UnreadableEdit`."""
    members = Members(node, place)
    kind = kind_of(members)
    key = "aftertext" if kind == "addition" else "target"
    if (other := "target" if kind == "addition" else "aftertext") in members:
        raise members.error(f"expected no {members.written[other]!r} with `{kind}`", _HINT)
    target = members.text(key)
    if not target:
        what = "the text that it goes behind as `afterText`" if kind == "addition" else "`target`"
        raise members.error(f"expected {what}, found none", _HINT)
    new = new_text(members, kind)
    op = Occurrences(target, new, _occurrences(members), insert=kind == "addition")
    return members.edit(NAME, op, default_path, members.id())


def _occurrences(members: Members) -> tuple[int, ...] | None:
    """The stated occurrences, each once, in the order of the text."""
    node = members.one("occurrences", "occurrence")
    if node is None:
        return None
    items = node.value if isinstance(node.value, list) else [node]
    numbers = [whole(item.value) or 0 for item in items]
    if not numbers or min(numbers) < 1:
        raise members.place.error(
            node, "expected occurrences as whole numbers from 1", "count from the file's start"
        )
    return tuple(sorted(set(numbers)))


FORMAT = Format(NAME, INSTRUCTIONS)
