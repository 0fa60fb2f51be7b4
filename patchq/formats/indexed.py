"""Indexed edits: edits of a text by the numbers of its occurrences, and how edits depend.

    {"edits": [{"id": "edit-1", "type": "modification", "file": "README.md", "target": "v1.0",
                "replacement": "v2.0", "occurrences": [1, 3], "confidence": 0.9,
                "reason": "the new version", "cascades": ["edit-2"]}], "summary": "…"}

An id names an edit for its reviewer and for other edits.  `cascades` names those that depend on
this one, `dependsOn` those that this one depends on: an edit is cancelled when one that it depends
on is applied.  A contextual edit (see `contextual`) with the id of an indexed one is its backup.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from graphlib import CycleError, TopologicalSorter

from patchq.formats import contextual
from patchq.formats.members import Members, Place, whole
from patchq.jsonish import Node
from patchq.model import Edit, Problem
from patchq.ops import Occurrences

NAME = "indexed"
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

CODE = "edit.dependency"
_HINT = "send `target`, `replacement` and `occurrences`; see `patchq formats indexed`"


@dataclass(frozen=True, slots=True)
class Entry:
    """An edit with what the response says of its relations, before they are put together."""

    edit: Edit
    node: Node
    place: Place
    cascades: tuple[str, ...]
    depends_on: tuple[str, ...]


def read_edit(node: Node, place: Place, default_path: str | None) -> Edit:
    """One indexed edit, without its relations to others.  Raises `Unreadable`."""
    members = Members(node, place)
    kind = contextual.kind_of(members)
    key = "aftertext" if kind == "addition" else "target"
    if (other := "target" if kind == "addition" else "aftertext") in members:
        raise members.error(f"expected no {members.written[other]!r} with `{kind}`", _HINT)
    target = members.text(key)
    if not target:
        what = "the text that it goes behind as `afterText`" if kind == "addition" else "`target`"
        raise members.error(f"expected {what}, found none", _HINT)
    new = contextual.new_text(members, kind)
    op = Occurrences(target, new, _occurrences(members), insert=kind == "addition")
    return Edit(
        members.id(),
        NAME,
        place.at(node),
        members.path(default_path),
        op,
        members.reason(),
        members.confidence(),
    )


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


def entry(edit: Edit, node: Node, place: Place) -> Entry:
    """An edit with the relations that its object states."""
    members = Members(node, place)
    return Entry(edit, node, place, members.texts("cascades"), members.texts("dependson"))


def related(entries: Sequence[Entry]) -> tuple[tuple[Edit, ...], tuple[Problem, ...]]:
    """The edits of one response with their relations, and warnings; raises `Unreadable`."""
    indexed = _ids(entries, NAME)
    known = indexed | _ids(entries, contextual.NAME)
    needs: dict[str, list[str]] = {}
    warnings: list[Problem] = []
    for found in entries:
        for other in found.cascades:
            needs.setdefault(other, []).append(found.edit.id)
            if other not in known:
                warnings.append(_unknown(found, other))
        for other in found.depends_on:
            if other not in known:
                raise found.place.error(
                    found.node,
                    f"expected the id of another edit in `dependsOn`, found {other!r}",
                    "correct the id, or leave the relation out",
                    CODE,
                )
    edits: list[Edit] = []
    for found in entries:
        edit = found.edit
        depends_on = dict.fromkeys([*found.depends_on, *needs.get(edit.id or "\0", ())])
        backs = edit.format == contextual.NAME and edit.id in indexed
        edits.append(
            replace(
                edit,
                depends_on=tuple(depends_on),
                fallback_of=edit.id if backs else None,
            )
        )
    _check_cycles(entries, edits)
    return tuple(edits), tuple(warnings)


def _ids(entries: Sequence[Entry], form: str) -> set[str]:
    """The ids of the edits of one form; each may stand once."""
    ids: set[str] = set()
    for found in entries:
        if found.edit.format != form or not found.edit.id:
            continue
        if found.edit.id in ids:
            raise found.place.error(
                found.node,
                f"expected an id of its own for every edit, found {found.edit.id!r} twice",
                "give every edit another id",
            )
        ids.add(found.edit.id)
    return ids


def _check_cycles(entries: Sequence[Entry], edits: Sequence[Edit]) -> None:
    graph: dict[str, set[str]] = {}
    for edit in edits:
        graph.setdefault(edit.id, set()).update(edit.depends_on)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        cycle: list[str] = error.args[1]
        found = next(found for found in entries if found.edit.id in cycle)
        raise found.place.error(
            found.node,
            f"expected no circle of dependent edits, found {' → '.join(cycle[::-1])}",
            "leave out one of the relations",
            CODE,
        ) from None


def _unknown(found: Entry, other: str) -> Problem:
    return Problem(
        CODE,
        f"`cascades` of edit {found.edit.id!r} names {other!r}, which no edit of the response is",
        "correct the id, or leave the relation out",
        "warning",
        edit=found.edit.id or None,
        line=found.place.at(found.node)[0],
    )
