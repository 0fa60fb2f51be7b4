"""The plan of a batch: its files' new bytes, and each edit's outcome.

Every edit is first resolved on the base, so that the order of disjoint edits does not matter.
One that has no place there is resolved on the text as the earlier edits leave it, and says which of
them it needs.  Nothing is written; all problems are found, not only the first.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, partial

from msgspec.structs import replace

from patchq.core.model.ops import (
    DIFF,
    INDEXED,
    WHOLE,
    Create,
    DeleteFile,
    InsertAt,
    Op,
    PatchHunk,
    Rename,
    SetMode,
    Write,
    WriteBytes,
    halves,
)
from patchq.core.model.values import (  # fmt: skip
    Edit,
    EditOutcome,
    EditState,
    ErrorProblem,
    Hunk,
    Plan,
    Tree,
    refusal,
)
from patchq.core.plan import files, guards, selection
from patchq.core.plan.edited_text import changed_ranges
from patchq.core.plan.file_operations import FileOperations
from patchq.core.plan.files import File, Files, clash, collision, outcome
from patchq.core.plan.readings import BatchReading, Order, may_follow, means_all, meant
from patchq.core.plan.targets import EditRefused, PlanRules, check_text
from patchq.core.resolve import hunks, refusals
from patchq.core.resolve.ladder import Found, Missed
from patchq.core.resolve.match import Hints, PartOp, match, present
from patchq.core.resolve.nearest import Effort, Elsewhere
from patchq.core.text.lines import Text

_MOST_SUGGESTED = 50  # for so many wrong paths of a batch a better one is looked for
_MOST_THOROUGH = 10  # so many missed quotes of a batch are looked into with all means
_NOWHERE = Missed("none")
# With more missed quotes than these, later edits are looked for on the base alone.
_MOST_MISSED = 50


def plan(
    edits: Sequence[Edit],
    tree: Tree,
    rules: PlanRules,
    *,
    declared: bool = False,
    diagnosed: bool = True,
) -> Plan:
    """Return what the edits do to `tree`; a plan with errors changes nothing.

    `declared` says that the response names the tree's commit as its base, so that the line numbers
    it states may be believed.  Without `diagnosed` the reason of a miss is not sought.
    """

    def read(some: Sequence[Edit], order: Order, first: bool) -> BatchReading:
        # A refusal in the second order is not reported.
        return _Batch(some, tree, rules, order, diagnosed and first, declared=declared).run()

    return guards.settled(edits, lambda some: meant(some, partial(read, some)), rules.judged)


class _Batch:
    def __init__(
        self,
        edits: Sequence[Edit],
        tree: Tree,
        rules: PlanRules,
        order: Order,
        diagnosed: bool,
        *,
        declared: bool,
    ) -> None:
        self.edits = edits
        self.order = order
        self.declared = declared
        self.diagnosed = diagnosed
        self.rules = rules
        self.files = Files(edits, tree, rules, _MOST_SUGGESTED if diagnosed else 0)
        self.operations = FileOperations(tree, rules, self.files)
        self.effort = Effort()
        self.elsewhere = Elsewhere(tree, self.effort)
        self.seen: dict[tuple[str, object], EditOutcome] = {}
        meanings: dict[Op, int] = {}
        # What is equal for edits (by `id`) that mean one: a number, which is quick to compare.
        self.meaning = {id(e): meanings.setdefault(e.op, len(meanings)) for e in edits}
        self.sections: dict[object, list[tuple[Edit, PatchHunk]]] = {}
        self.in_order: dict[tuple[int, int], Found | Missed] = {}
        for edit in edits:
            if isinstance(edit.op, PatchHunk):
                self.sections.setdefault(_section(edit), []).append((edit, edit.op))
        self.missed = 0
        self.meets = self.barred = False
        self.followed: dict[str, str] = {}
        # By path: why the edit was refused that was to make, or to take away, its file.
        self.unmade: dict[str, ErrorProblem] = {}

    def run(self) -> BatchReading:
        cascade = selection.Cascade(self.edits, self.rules.confidence, self._followed_up)
        outcomes = [self._final(outcome) for outcome in cascade.run()]
        changes = tuple(self.files.changes())
        errors = list(cascade.errors)
        errors += [] if errors else files.void(outcomes, changes)
        errors += files.there_already(outcomes, changes, declared=self.declared)
        errors += guards.shown(self.edits, outcomes, self.files.tree)
        if errors:
            outcomes = [replace(o, state="ready") if o.state == "applied" else o for o in outcomes]
        changed = {path for change in changes for path in change.paths}
        plan = Plan(
            () if errors else changes,
            tuple(outcomes),
            tuple(errors),
            tuple(cascade.warnings),
            tuple(path for path in dict.fromkeys(self.operations.blind) if path in changed),
        )
        return BatchReading(plan, self.meets, self.followed, self.barred)

    def _final(self, outcome: EditOutcome) -> EditOutcome:
        by = self.operations.overwritten.get(outcome.id)
        if by is None or outcome.state not in ("applied", "already_applied"):
            return outcome
        return replace(outcome, state="skipped", cancelled_by=by, needs=())

    def _followed_up(self, edit: Edit) -> EditOutcome:
        """Return an edit's outcome; a refusal names the edit that its file depends on."""
        try:
            return self._edit(edit)
        except EditRefused as refused:
            cause = self.unmade.get(edit.path)
            if isinstance(edit.op, WHOLE):
                paths = (edit.path, edit.op.to) if isinstance(edit.op, Rename) else (edit.path,)
                error = cause or replace(refused.problem, edit=edit.id)
                self.unmade.update({path: error for path in paths if path not in self.unmade})
            if cause is None:
                raise
            raise files.unmade(edit, cause, refused.problem) from None

    def _edit(self, edit: Edit) -> EditOutcome:
        """Return the outcome of one edit; equal edits of a whole file count once.

        Raises `EditRefused`.
        """
        if not isinstance(edit.op, WHOLE):
            return self._part(edit, edit.op)
        key = edit.path, edit.op
        if key not in self.seen:
            self.seen[key] = outcome(
                edit, "applied" if self._whole_file(edit, edit.op) else "already_applied"
            )
        first = self.seen[key]
        if first.id in self.operations.overwritten:
            between = self.operations.overwritten[first.id]
            raise collision(edit, "what another one makes of the file", between, "conflict.order")
        return outcome(edit, first.state)

    def _whole_file(self, edit: Edit, op: Op) -> bool:
        match op:
            case WriteBytes():
                return self.operations.put(edit, op)
            case SetMode():
                return self.operations.set_mode(edit, op)
            case Create():
                return self.operations.create(edit, op)
            case Write():
                return self.operations.write(edit, op)
            case DeleteFile():
                self.operations.delete(edit, op)
            case Rename(to):
                self.operations.rename(edit, to)
        return True

    def _part(self, edit: Edit, op: PartOp) -> EditOutcome:
        """Return the outcome of an edit of part of a file; raises `EditRefused`."""
        file, missed = self._file(edit, op), _NOWHERE
        self._check_file(edit, file)
        hints = Hints(self.rules.levels, edit.path, self._lines_hold)
        if file.stated_by is None:
            found = self._on_base(edit, op, file, hints)
            if now := self._in_sequence(edit, op, file, found, hints):
                return self._make(edit, file, file.edited.now(), now, on_base=False)
            if isinstance(found, Found):
                return self._make(edit, file, file.text, found, on_base=True)
            missed = found
        follows = bool(file.edited.patches) and self.missed < _MOST_MISSED
        if missed.why == "none" and (file.stated_by is not None or follows):
            text = file.edited.now()
            found = match(text, op, hints)
            if isinstance(found, Found):
                return self._make(edit, file, text, found, on_base=False)
            if found.why != "none":
                raise self._missed(edit, file, text, found)
            if there := file.folded.get(self.meaning[id(edit)]):
                file.edits.append(edit.id)
                return replace(there, id=edit.id, format=edit.format, at=edit.at)
        if file.stated_by is not None:  # the batch's own text shows nothing
            raise self._missed(edit, file, file.edited.now(), missed)
        if missed.why == "none" and (there_already := present(file.text, op, hints)):
            return _placed(edit, there_already, True, "already_applied")
        raise self._missed(edit, file, file.text, missed)

    def _check_file(self, edit: Edit, file: File) -> None:
        """Raise `EditRefused` unless parts of the file may be edited."""
        written = "written" in file.by and not self.files.in_order
        if "deleted" in file.by or written or file.stated is not None:
            raise clash(edit, file, "what another edit does to the file that this one edits")
        if "edited" not in file.by:
            check_text(edit.path, file.text.data, self.rules)
            file.by["edited"] = edit.id
        guards.check_elision(edit, self.rules, file.text)

    def _file(self, edit: Edit, op: PartOp) -> File:
        """Return the file that an edit means; raises `EditRefused`."""
        named = self.files.named(edit.path)
        if len(named) == 1 or edit.format == DIFF:
            return named[0]
        hints = Hints(self.rules.levels, edit.path)

        def holds(file: File) -> bool:
            found = (match(text, op, hints) for text in {file.text, file.edited.now()})
            return any(isinstance(one, Found) or one.why != "none" for one in found)

        standing = [file for file in named if holds(file)]
        if len(standing) > 1:
            raise files.in_both(edit, standing[1], self.files.renamed.get(edit.path))
        return (standing or named)[0]

    def _in_sequence(
        self, edit: Edit, op: PartOp, file: File, base: Found | Missed, hints: Hints
    ) -> Found | None:
        """Return the edit's place in the text that earlier edits leave.

        None if only its place on the base can be meant, or the order is `base`.
        """
        if not may_follow(edit, op, file, base, self.meaning[id(edit)]):
            return None
        self.meets = True
        if self.order == "base":
            return None
        text = file.edited.now()
        now = match(text, op, hints)
        if edit.called and isinstance(now, Missed) and now.why == "unwritable":
            self.barred = True
            raise self._missed(edit, file, text, now)
        if isinstance(now, Missed) or now.already:
            return None
        writer = file.edited.last_writer(*text.span(now.start, now.end))
        asserts = isinstance(base, Found) and base.level == now.level and not now.hunks
        literal = edit.called and now.level == "exact" and not self._keeps_places(op, file, base)
        if not (writer or asserts or literal):
            return None
        self.followed[edit.id] = writer or file.edits[-1]
        return now

    def _keeps_places(self, op: PartOp, file: File, base: Found | Missed) -> bool:
        """Return True if an edit of all places finds its base lines undisturbed."""
        if not means_all(op) or isinstance(base, Missed):
            return False
        return not file.edited.disturbs(*file.text.span(base.start, base.end))

    @cached_property
    def _lines_hold(self) -> bool:
        """Return True if stated lines may decide between equal places.

        The response names the base, and no hunk with a single place contradicts its own number.
        """
        if not self.declared:
            return False
        for section in self.sections.values():
            if all(op.line is None or not op.old for _, op in section):
                continue
            try:
                text = self.files.named(section[0][0].path)[0].text
            except EditRefused:
                return False
            ops = [op for _, op in section]
            found = hunks.resolve(text, ops, self.rules.levels)
            for (_, op), one, lines in zip(section, found, hunks.stated(ops), strict=True):
                if op.old and lines and isinstance(one, Found) and one.start + 1 not in lines:
                    return False
        return True

    def _on_base(self, edit: Edit, op: PartOp, file: File, hints: Hints) -> Found | Missed:
        """Return the place of an edit on the base; hunks of one file are placed in order."""
        if not isinstance(op, PatchHunk):
            return match(file.text, op, hints)
        key = id(edit), id(file.text)
        if key not in self.in_order:
            section = self.sections[_section(edit)]
            ops = [op for _, op in section]
            found = hunks.resolve(file.text, ops, hints.levels, lines_hold=hints.lines_hold)
            self.in_order.update(
                ((id(one), id(file.text)), place)
                for (one, _), place in zip(section, found, strict=True)
            )
        place = self.in_order[key]
        nowhere = isinstance(place, Missed) and place.why == "none"
        return match(file.text, op, hints) if nowhere and file.text.with_returns else place

    def _make(
        self, edit: Edit, file: File, text: Text, found: Found, *, on_base: bool
    ) -> EditOutcome:
        if found.already:
            return _placed(edit, found, on_base, "already_applied")
        changes = found.hunks
        guards.check_encoding(edit, text, changes)
        guards.check_elided_changes(edit, self.rules, text, changes)
        if isinstance(edit.op, PatchHunk) and _reaches_end(text, edit.op, found):
            file.final_newline = edit.op.final_newline
        file.edits.append(edit.id)
        by_number = isinstance(edit.op, InsertAt) or found.by_number
        if (by_number or selection.is_by_number(text, edit.op)) and file.stated_by is None:
            self.operations.blind.append(edit.path)
        done = _placed(edit, found, on_base)
        inserts = changes and changes[0].start == changes[0].end
        if inserts and done.op != "insert" and all(hunk.start == hunk.end for hunk in changes):
            done = replace(done, op="insert")
        if on_base:
            return self._put(edit, file, found, done)
        quoted = Hunk(*text.span(found.start, found.end), b"")
        needs = file.edited.fold(edit.id, edit.format, changes, quoted)
        if file.stated_by is not None and file.stated_by not in needs:
            needs = (file.stated_by, *needs)
        done = replace(done, needs=needs)
        file.folded[self.meaning[id(edit)]] = done
        return done

    def _put(self, edit: Edit, file: File, found: Found, done: EditOutcome) -> EditOutcome:
        if backed := selection.backed(edit, file, found):
            return outcome(edit, "skipped", backed)
        old, new = halves(edit.op)
        if old == new and (patch := file.edited.changed(*file.text.span(found.start, found.end))):
            raise files.contradiction(edit, file, found, patch)
        if other := file.edited.add(changed_ranges(edit, found, self.meaning[id(edit)])):
            raise files.overlap(edit, file, found, other)
        file.placed.add(self.meaning[id(edit)])
        if edit.format == INDEXED:
            file.indexed[edit.id] = tuple(run for run in found.runs if run)
        return done

    def _missed(self, edit: Edit, file: File, text: Text, missed: Missed) -> EditRefused:
        self.missed += 1
        if not self.diagnosed:
            return EditRefused(ErrorProblem("match.none", f"edit {edit.id} has no certain place"))

        def search(lines: bytes) -> str | None:
            own = (other.origin or other.path for other in self.files)
            return self.elsewhere.search(lines, file.origin or file.path, own)

        scene = refusals.Scene(
            edit.path,
            text,
            self.rules.levels,
            self.effort,
            search if self.missed <= _MOST_THOROUGH else None,
            earlier=text is not file.text or file.stated_by is not None,
        )
        return EditRefused(refusal(refusals.problem(edit, scene, missed)))


def _placed(edit: Edit, found: Found, on_base: bool, state: EditState = "applied") -> EditOutcome:
    lines = (found.start + 1, found.end) if on_base else None
    return outcome(edit, state, match=found.level, lines=lines)


def _section(edit: Edit) -> object:
    return edit.section or id(edit)


def _reaches_end(text: Text, op: PatchHunk, found: Found) -> bool:
    if not found.hunks:
        return op.at_end and op.old == op.new and found.end == len(text.lines)
    return found.hunks[-1].end == len(text.whole)
