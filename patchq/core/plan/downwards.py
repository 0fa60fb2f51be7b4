"""Edits that go down a file, each behind all before it and where its quote plainly stands: most of
those of a long response.

Nothing can keep such an edit from its place, and nothing else can be meant by it: no edit has
touched what it quotes, and what it changes borders on nothing that was changed.  So it is made
without the questions that others have to answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from patchq.core.model.frozen import frozen
from patchq.core.model.ops import CONTEXTUAL, INDEXED, Replace, halves
from patchq.core.model.values import Edit, EditOutcome
from patchq.core.plan import elision
from patchq.core.plan.files import File
from patchq.core.plan.patches import Footprint
from patchq.core.plan.targets import Rules
from patchq.core.resolve.ladder import Found
from patchq.core.resolve.plain import Plain, as_found, plain_places
from patchq.core.text.lines import SCANS, Text

_BACKING = frozenset({INDEXED, CONTEXTUAL})
"""The forms of which one edit may be another's backup."""


@frozen
class _PlainPlaces:
    """The places of a file's edits (by `id`) in its text on the base, and whether one of them may
    have a line that stands for others."""

    text: Text
    places: Mapping[int, Plain]
    may_leave_out: bool


class Downwards:
    """What is known of the edits of a batch, by their files."""

    def __init__(self, by_path: Mapping[str, Sequence[Edit]], rules: Rules) -> None:
        self._by_path = by_path
        self._rules = rules
        self._known: dict[int, _PlainPlaces] = {}

    def look(self, path: str, file: File) -> None:
        """Find the places of the edits that name a file by that path, if they are many."""
        edits = self._by_path[path]
        if len(edits) <= SCANS or file.stated_by is not None:
            return
        ops = {id(edit): edit.op for edit in edits if isinstance(edit.op, Replace)}
        found = plain_places(file.text, ops)
        written = b"".join([hunk.new for _, _, hunk in found.values()])
        may = self._rules.elision and elision.may_leave_out(
            "\n".join([ops[name].new for name in found]), written
        )
        self._known[id(file)] = _PlainPlaces(file.text, found, may)

    def _place(self, edit: Edit, file: File) -> Plain | None:
        known = self._known.get(id(file))
        return known.places.get(id(edit)) if known and known.text is file.text else None

    def found(self, edit: Edit, file: File) -> Found | None:
        """The place of an edit on the base, if it is plain."""
        place = self._place(edit, file)
        return as_found(place) if place else None

    def put(self, edit: Edit, file: File, meaning: int) -> EditOutcome | None:
        """Make an edit that stands plainly behind all that were made, and tell what became of it;
        None says nothing, and then nothing was done."""
        place = self._place(edit, file)
        if place is None or edit.called or edit.format in _BACKING:
            return None
        start, end, hunk = place
        new = halves(edit.op)[1]
        may_leave_out = self._known[id(file)].may_leave_out
        if (
            not file.overlay.is_behind_all(file.text.starts[start])
            or not hunk.new.isascii()
            or (may_leave_out and elision.may_leave_out(new, hunk.new))
        ):
            return None
        file.edits.append(edit.id)
        file.said.add(meaning)
        file.overlay.append(Footprint(edit.id, edit.format, (hunk,), meaning))
        done = "insert" if hunk.start == hunk.end else "replace" if new else "delete"
        return EditOutcome(
            edit.id, edit.format, edit.at, edit.path, done, "applied", "exact", (start + 1, end),
            (), None, edit.confidence, edit.description,
        )  # fmt: skip
