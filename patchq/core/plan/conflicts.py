"""Refusals of edits that contradict each other, or change nothing."""

from __future__ import annotations

from collections.abc import Sequence

from patchq.core.model.values import (
    Collision,
    Edit,
    EditOutcome,
    ErrorProblem,
    FileChange,
    WarningProblem,
)
from patchq.core.plan.edited_text import ChangedRange, Patch
from patchq.core.plan.files import File
from patchq.core.plan.targets import EditRefused
from patchq.core.resolve.ladder import Found
from patchq.core.text.lines import Text


def unmade(edit: Edit, cause: ErrorProblem, problem: ErrorProblem) -> EditRefused:
    """Return the refusal of an edit of a file that a refused edit was to make or to move."""
    return EditRefused(
        cause,
        WarningProblem(
            problem.code,
            f"edit {edit.id} is of {edit.path} as edit {cause.edit} was to leave it, and edit "
            f"{cause.edit} was refused",
            f"correct edit {cause.edit}; this one may be right as it is",
            edit=edit.id,
            path=edit.path,
        ),
    )


def in_both(edit: Edit, coming: File, rename: Edit | None) -> EditRefused:
    """A quote that stands in the file that leaves a path and in the one that comes."""
    return EditRefused(
        ErrorProblem(
            "conflict.order",
            f"edit {edit.id} quotes what stands in two files of the name {edit.path}: read "
            "before the files move, it changes the one that "
            + (f"edit {rename.id} renames" if rename else "leaves")
            + "; read after that, the one that comes from "
            + (coming.origin or f"edit {coming.by.get('made')}"),
            "name the file by a path that only one of them has, or quote what only one holds",
            path=edit.path,
            conflicts_with=Collision(edit=rename.id if rename else None, path=edit.path),
        )
    )


def there_already(
    outcomes: Sequence[EditOutcome], changes: Sequence[FileChange], *, declared: bool
) -> list[ErrorProblem]:
    """Return the problems of edits that are there in lines which the batch itself changes.

    On a declared base, of a batch that changes nothing, those of all: it has seen these lines.
    """
    changed = {change.path: change.hunks or () for change in changes}
    return [
        ErrorProblem(
            "match.none",
            f"edit {one.id} of {one.path} is already there, line {one.lines[0]}",
            "leave this edit out; if a second one is meant, quote the lines round it",
            edit=one.id,
            path=one.path,
            line=one.lines[0],
        )
        for one in outcomes
        if one.state == "already_applied" and one.lines
        if (declared and not changes)
        or any(a < one.lines[1] and b >= one.lines[0] for a, b, *_ in changed.get(one.path, ()))
    ]


def contradiction(edit: Edit, file: File, found: Found, patch: Patch) -> EditRefused:
    """A claim of lines that an edit before it changes."""
    there = file.text.line_at(patch.start)
    return EditRefused(
        ErrorProblem(
            "conflict.overlap",
            f"edit {edit.id} says that lines {found.start + 1}-{found.end} of {file.path} stay "
            f"as they are, and edit {patch.edits[0]} before it changes line {there}",
            "leave one of the two out; what shall stay need not be quoted",
            path=file.path,
            line=found.start + 1,
            conflicts_with=Collision(edit=patch.edits[0], path=file.path, lines=(there, there)),
        )
    )


def overlap(edit: Edit, file: File, found: Found, other: ChangedRange) -> EditRefused:
    """Two edits of the same bytes."""
    here = _changed_lines(file.text, ChangedRange(edit.id, edit.format, found.hunks))
    there = _changed_lines(file.text, other)
    return EditRefused(
        ErrorProblem(
            "conflict.overlap",
            f"edits {other.edit} and {edit.id} both change {file.path}: lines "
            f"{there[0]}-{there[1]} and {here[0]}-{here[1]}",
            "join the two edits into one that quotes all these lines",
            path=file.path,
            line=here[0],
            conflicts_with=Collision(edit=other.edit, path=file.path, lines=there),
        )
    )


def void(outcomes: Sequence[EditOutcome], changes: Sequence[FileChange]) -> list[ErrorProblem]:
    """The problem with a batch that only says what is there already, unless it was delivered
    before: it has to say something new."""
    if changes or not outcomes or any(o.state in ("failed", "already_applied") for o in outcomes):
        return []
    return [
        ErrorProblem(
            "match.identical",
            "all edits together leave every file as it is: nothing would change",
            "send what the files shall become, once, and different from what they are",
            edit=outcomes[0].id,
            path=outcomes[0].path,
        )
    ]


def _changed_lines(text: Text, changed: ChangedRange) -> tuple[int, int]:
    return text.line_at(changed.start), text.line_at(max(changed.start, changed.end - 1))
