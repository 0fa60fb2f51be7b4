"""A batch of edits becomes one plan: the files' new bytes, and what became of each edit.

Every edit is first resolved on the base, so that the order in which disjoint edits stand does not
matter.  One that has no place there is resolved on the text as the earlier edits leave it, and says
which of them it needs.  Nothing is written; all problems are found, not only the first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from patchq import guards
from patchq.conflicts import Claimed, Overlay
from patchq.model import (
    Collision,
    Create,
    DeleteFile,
    Edit,
    EditOutcome,
    EditState,
    FileChange,
    Hunk,
    Plan,
    Problem,
    Rename,
    Replace,
    Tree,
)
from patchq.resolve import diagnose, targets
from patchq.resolve.ladder import Found, Missed, resolve
from patchq.resolve.targets import Refused, Rules
from patchq.text import Text


def plan(edits: Sequence[Edit], tree: Tree, rules: Rules) -> Plan:
    """What the edits do to `tree`; a plan with errors changes nothing (`Plan.refused`)."""
    return _Batch(tree, rules).run(edits)


@dataclass(slots=True)
class _File:
    """One file of the batch: where it stood, where it will, and what is made of it."""

    path: str
    overlay: Overlay
    base: Text | None
    """The text on the base; None for a file that the batch creates."""
    executable: bool = False
    origin: str | None = None
    made_by: str | None = None
    renamed_by: str | None = None
    deleted_by: str | None = None
    edited_by: str | None = None


class _Batch:
    def __init__(self, tree: Tree, rules: Rules) -> None:
        self.tree = tree
        self.rules = rules
        self.files: dict[str, _File] = {}
        """By every path under which an edit may name the file."""
        self.problems: list[Problem] = []
        self.seen: dict[tuple[str, object], EditOutcome] = {}
        self.aliases: dict[str, str] = {}

    def run(self, edits: Sequence[Edit]) -> Plan:
        self.aliases = {e.op.to: e.path for e in edits if isinstance(e.op, Rename)}
        outcomes = [self._edit(edit) for edit in edits]
        changes = tuple(self._changes())
        self._check_effect(outcomes, changes)
        refused = any(p.severity == "error" for p in self.problems)
        done: EditState = "ready" if refused else "applied"
        return Plan(
            () if refused else changes,
            tuple(replace(o, state=done) if o.state == "ready" else o for o in outcomes),
            tuple(self.problems),
        )

    def _edit(self, edit: Edit) -> EditOutcome:
        outcome = EditOutcome(
            edit.id, edit.format, edit.at, edit.path, _op_name(edit), "ready",
            confidence=edit.confidence, description=edit.description,
        )  # fmt: skip
        before = self.seen.get((edit.path, edit.op))
        if before is not None:
            return replace(before, id=edit.id, at=edit.at)
        try:
            match edit.op:
                case Create(text):
                    outcome = self._create(edit, text, outcome)
                case DeleteFile():
                    outcome = self._delete(edit, outcome)
                case Rename(to):
                    outcome = self._rename(edit, to, outcome)
                case Replace():
                    outcome = self._replace(edit, edit.op, outcome)
        except Refused as refusal:
            self.problems.append(replace(refusal.problem, edit=edit.id))
            outcome = replace(outcome, state="failed")
        self.seen[edit.path, edit.op] = outcome
        return outcome

    # ------------------------------------------------------------ files

    def _file(self, path: str) -> _File:
        """The file that an edit names, by the path that it has or will have."""
        origin = path if path in self.files else self.aliases.get(path, path)
        if origin not in self.files:
            data, executable = targets.existing(self.tree, origin, self.rules)
            self.files[origin] = _File(origin, Overlay(data), Text(data), executable, origin)
        return self.files[origin]

    def _create(self, edit: Edit, text: str, outcome: EditOutcome) -> EditOutcome:
        if edit.path in self.files or edit.path in self.aliases:
            raise self._clash(edit, self.files.get(edit.path), "another edit of the batch")
        there = targets.check_new(self.tree, edit.path, self.rules)
        data = text.encode("utf-8", "surrogateescape")
        if there == data:
            return replace(outcome, state="already_applied")
        if there:
            raise Refused(
                Problem(
                    "path.exists",
                    f"{edit.path} exists and is not empty",
                    "quote the lines to change in the SEARCH part, or choose another path",
                    path=edit.path,
                )
            )
        if problem := self.rules.elision and guards.elided(edit, edit.path, None):
            raise Refused(problem)
        origin = None if there is None else edit.path
        file = _File(edit.path, Overlay(data), None, origin=origin, made_by=edit.id)
        self.files[edit.path] = file
        return outcome

    def _delete(self, edit: Edit, outcome: EditOutcome) -> EditOutcome:
        file = self._file(edit.path)
        if file.edited_by or file.renamed_by or file.made_by:
            raise self._clash(edit, file, "an edit of the file that this one deletes")
        file.deleted_by = edit.id
        return outcome

    def _rename(self, edit: Edit, to: str, outcome: EditOutcome) -> EditOutcome:
        file = self._file(edit.path)
        if file.deleted_by or file.renamed_by or file.made_by or to in self.files:
            raise self._clash(edit, file, "another edit of the batch")
        if targets.check_new(self.tree, to, self.rules) is not None:
            raise Refused(
                Problem(
                    "path.exists",
                    f"{edit.path} cannot be renamed: {to} exists",
                    "choose a path that is free",
                    path=to,
                )
            )
        file.path, file.renamed_by = to, edit.id
        self.files[to] = file
        return outcome

    def _clash(self, edit: Edit, file: _File | None, what: str) -> Refused:
        other = file and (file.deleted_by or file.renamed_by or file.made_by or file.edited_by)
        return Refused(
            Problem(
                "conflict.overlap",
                f"edit {edit.id} ({_op_name(edit)} {edit.path}) collides with {what}"
                + (f": edit {other}" if other else ""),
                "say once what shall become of the file",
                path=edit.path,
                conflicts_with=Collision(edit=other, path=edit.path),
            )
        )

    # ------------------------------------------------------------ text

    def _replace(self, edit: Edit, op: Replace, outcome: EditOutcome) -> EditOutcome:
        file = self._file(edit.path)
        if file.deleted_by:
            raise self._clash(edit, file, "the deletion of the file that this one edits")
        if problem := self.rules.elision and guards.elided(edit, file.path, file.base):
            raise Refused(problem)
        file.edited_by = file.edited_by or edit.id
        result: Found | Missed = Missed("none")
        if file.base is not None:
            result = resolve(file.base, op, self.rules.rungs)
            if isinstance(result, Found):
                return self._claim(edit, file, result, outcome)
        if result.why == "none" and (file.made_by or file.overlay.changed):
            now = Text(file.overlay.text())
            result = resolve(now, op, self.rules.rungs)
            if isinstance(result, Found):
                return self._fold(edit, file, now, result, outcome)
        text = file.base or Text(file.overlay.text())
        raise Refused(diagnose.problem(edit, file.path, text, result, self._others(file)))

    def _claim(self, edit: Edit, file: _File, found: Found, outcome: EditOutcome) -> EditOutcome:
        outcome = replace(outcome, match=found.rung, lines=(found.start + 1, found.end))
        if found.already:
            return replace(outcome, state="already_applied")
        other = file.overlay.add(Claimed(edit.id, edit.format, found.hunks))
        if other is not None:
            raise self._overlap(edit, file, found, other)
        return _named_by(outcome, found.hunks)

    def _overlap(self, edit: Edit, file: _File, found: Found, other: Claimed) -> Refused:
        assert file.base is not None
        ours = Claimed(edit.id, edit.format, found.hunks)
        here, there = (_changed_lines(file.base, c) for c in (ours, other))
        return Refused(
            Problem(
                "conflict.overlap",
                f"edits {other.edit} and {edit.id} both change {file.path}: lines "
                f"{there[0]}-{there[1]} and {here[0]}-{here[1]}",
                "join the two edits into one that quotes all these lines",
                path=file.path,
                line=here[0],
                conflicts_with=Collision(edit=other.edit, path=file.path, lines=there),
            )
        )

    def _fold(
        self, edit: Edit, file: _File, now: Text, found: Found, outcome: EditOutcome
    ) -> EditOutcome:
        if found.already:
            return replace(outcome, state="already_applied", match=found.rung)
        quoted = Hunk(now.starts[found.start], now.starts[found.end], b"")
        needs = file.overlay.fold(edit.id, edit.format, found.hunks, quoted)
        if file.made_by and file.made_by not in needs:
            needs = (file.made_by, *needs)
        return replace(_named_by(outcome, found.hunks), match=found.rung, needs=needs)

    def _others(self, file: _File) -> Iterator[tuple[str, bytes]]:
        """The batch's other files, where a quote under a wrong path is most likely from."""
        others = {id(f): f for f in self.files.values() if f is not file and f.base is not None}
        return ((f.path, f.base.data) for f in others.values() if f.base is not None)

    # ------------------------------------------------------------ the whole

    def _changes(self) -> Iterator[FileChange]:
        for file in {id(f): f for f in self.files.values()}.values():
            before = file.base.data if file.base else (b"" if file.origin else None)
            after = None if file.deleted_by else file.overlay.text()
            moved = file.origin if file.renamed_by else None
            if before != after or moved:
                yield FileChange(file.path, before, after, file.executable, moved)

    def _check_effect(self, outcomes: Sequence[EditOutcome], changes: Sequence[FileChange]) -> None:
        """A batch that only says what is there already has to say something new, unless it was
        delivered before."""
        if (
            changes
            or not outcomes
            or any(o.state in ("failed", "already_applied") for o in outcomes)
        ):
            return
        self.problems.append(
            Problem(
                "match.identical",
                "the old and the new text of every edit are the same: nothing would change",
                "write the changed lines into the second half",
                edit=outcomes[0].id,
                path=outcomes[0].path,
            )
        )


def _op_name(edit: Edit) -> str:
    match edit.op:
        case Create():
            return "create"
        case DeleteFile():
            return "delete_file"
        case Rename():
            return "rename"
        case Replace(new=new):
            return "replace" if new else "delete"


def _named_by(outcome: EditOutcome, hunks: Sequence[Hunk]) -> EditOutcome:
    """An edit that only adds is an insertion."""
    only_adds = hunks and all(hunk.start == hunk.end for hunk in hunks)
    return replace(outcome, op="insert") if only_adds else outcome


def _changed_lines(text: Text, claim: Claimed) -> tuple[int, int]:
    first = text.line_at(claim.start)
    return first, max(first, text.line_at(max(claim.start, claim.end - 1)))
