"""How the edits of a response depend on each other, in whichever lists, fences or calls they stand.

`cascades` names the edits that depend on this one, `dependsOn` those that this one depends on: an
edit is cancelled when one that it depends on is applied.  A contextual edit with the id of an
indexed one is its backup.  An id may be used again, as lists do that begin to count anew, as long
as nothing refers to it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from graphlib import CycleError, TopologicalSorter

from msgspec.structs import replace

from patchq.core.formats.format import Stated, UnreadableEdit
from patchq.core.model.ops import CONTEXTUAL, INDEXED
from patchq.core.model.values import Edit, Problem

CODE = "edit.dependency"
_CORRECT = "correct the id, or leave the relation out"


def related(
    edits: Sequence[Edit], stated: Mapping[int, Stated]
) -> tuple[tuple[Edit, ...], tuple[Problem, ...]]:
    """The edits with an id each, their own or their place in the response, and their relations;
    and warnings.  `stated` is by the edit's index.  Raises `UnreadableEdit`."""
    if not stated and not any(edit.id for edit in edits):
        return _numbered(edits), ()
    edits = _with_own_ids(edits, stated)
    indexed = {edit.id for edit in edits if edit.id and edit.format == INDEXED}
    known = indexed | {edit.id for edit in edits if edit.id and edit.format == CONTEXTUAL}
    needs: dict[str, list[str]] = {}
    warnings: list[Problem] = []
    for i, relation in stated.items():
        for other in relation.cascades:
            needs.setdefault(other, []).append(edits[i].id)
            if other not in known:
                warnings.append(
                    Problem(
                        CODE,
                        f"`cascades` of edit {edits[i].id!r} names {other!r}, which no edit of the "
                        "response is",
                        _CORRECT,
                        "warning",
                        edit=edits[i].id or None,
                        line=edits[i].at[0],
                    )
                )
        for other in relation.depends_on:
            if other not in known:
                message = f"expected the id of another edit in `dependsOn`, found {other!r}"
                raise UnreadableEdit(edits[i].at[0] - 1, message, _CORRECT, CODE)
    for i, edit in enumerate(edits):
        own = stated[i].depends_on if i in stated else ()
        depends_on = (*own, *needs.get(edit.id or "\0", ()))
        backs = edit.id if edit.format == CONTEXTUAL and edit.id in indexed else None
        if depends_on or backs:
            depends_on = tuple(dict.fromkeys(depends_on))
            edits[i] = replace(edit, depends_on=depends_on, fallback_of=backs)
    if any(edit.depends_on for edit in edits):
        _check_cycles(edits)
    return _numbered(edits), tuple(warnings)


def _with_own_ids(edits: Sequence[Edit], stated: Mapping[int, Stated]) -> list[Edit]:
    """The edits; one whose id an earlier one has, and nothing refers to, loses it."""
    named = {id for one in stated.values() for id in (*one.cascades, *one.depends_on)}
    own: list[Edit] = []
    met: set[tuple[str, str]] = set()
    forms: dict[str, set[str]] = {}
    for edit in edits:
        forms.setdefault(edit.id, set()).add(edit.format)
    for edit in edits:
        again = edit.id and (edit.format, edit.id) in met
        if again and (edit.id in named or len(forms[edit.id]) > 1):
            raise UnreadableEdit(
                edit.at[0] - 1,
                f"expected an id of its own for every edit, found {edit.id!r} twice",
                "give every edit another id",
            )
        met.add((edit.format, edit.id))
        own.append(replace(edit, id="") if again else edit)
    return own


def _check_cycles(edits: Sequence[Edit]) -> None:
    graph: dict[str, set[str]] = {}
    for edit in edits:
        graph.setdefault(edit.id, set()).update(edit.depends_on)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        cycle: list[str] = error.args[1]
        raise UnreadableEdit(
            next(edit.at[0] for edit in edits if edit.id in cycle) - 1,
            f"expected no circle of dependent edits, found {' → '.join(cycle[::-1])}",
            "leave out one of the relations",
            CODE,
        ) from None


def _numbered(edits: Sequence[Edit]) -> tuple[Edit, ...]:
    used = {edit.id for edit in edits}
    numbered = []
    for number, edit in enumerate(edits, 1):
        id = edit.id or str(number)
        while not edit.id and id in used:
            id += "'"
        numbered.append(edit.but(id))
    return tuple(numbered)
