"""A batch of edits becomes one plan: the files' new bytes, and what became of each edit.

Every edit is first resolved on the base, so that the order in which disjoint edits stand does not
matter.  One that has no place there is resolved on the text as the earlier edits leave it, and says
which of them it needs.  Nothing is written; all problems are found, not only the first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property

from patchq.model.ops import INDEXED, Create, DeleteFile, InsertAt, Op, PatchHunk, Rename, Write
from patchq.model.values import (  # fmt: skip
    Collision,
    Edit,
    EditOutcome,
    EditState,
    FileChange,
    Hunk,
    Plan,
    Problem,
    Tree,
)
from patchq.plan import guards, selection
from patchq.plan.files import File, Files, clash, outcome
from patchq.plan.overlay import Footprint
from patchq.plan.targets import Refused, Rules, check_text
from patchq.resolve import hunks, refusals
from patchq.resolve.ladder import Found, Missed
from patchq.resolve.match import Hints, PartOp, match, present
from patchq.text.lines import Text

_MOST_THOROUGH = 10
"""So many missed quotes of a batch are looked into with all means."""
_MOST_MISSED = 50
"""With more missed quotes than these, later edits are looked for on the base alone."""


def plan(
    edits: Sequence[Edit],
    tree: Tree,
    rules: Rules,
    *,
    declared: bool = False,
    diagnosed: bool = True,
) -> Plan:
    """What the edits do to `tree`; a plan with errors changes nothing (`Plan.refused`).

    `declared` says that the response names the tree's commit as its base, so that the line numbers
    it states may be believed.  Without `diagnosed` nobody will read why an edit was missed.
    """
    return guards.settled(
        edits, lambda some: _Batch(some, tree, rules, declared, diagnosed).run(), rules.judged
    )


class _Batch:
    def __init__(
        self,
        edits: Sequence[Edit],
        tree: Tree,
        rules: Rules,
        declared: bool,
        diagnosed: bool,
    ) -> None:
        self.edits = edits
        self.declared = declared
        self.diagnosed = diagnosed
        self.rules = rules
        self.files = Files(edits, tree, rules)
        self.elsewhere = refusals.Elsewhere(tree)
        self.seen: dict[tuple[str, object], EditState] = {}
        self.meanings: dict[Op, int] = {}
        self.sections: dict[object, list[tuple[Edit, PatchHunk]]] = {}
        self.in_order: dict[int, Found | Missed] = {}
        for edit in edits:
            if isinstance(edit.op, PatchHunk):
                self.sections.setdefault(_section(edit), []).append((edit, edit.op))
        self.missed = 0
        self.blind: list[str] = []

    def run(self) -> Plan:
        cascade = selection.Cascade(self.edits, self.rules.confidence, self._edit)
        outcomes, problems = cascade.run()
        changes = tuple(change for file in self.files if (change := file.change()))
        problems += _void(outcomes, changes, problems)
        refused = any(p.severity == "error" for p in problems)
        if refused:
            outcomes = [replace(o, state="ready") if o.state == "applied" else o for o in outcomes]
        return Plan(
            () if refused else changes,
            tuple(outcomes),
            tuple(problems),
            tuple(dict.fromkeys(self.blind)),
        )

    def _edit(self, edit: Edit) -> EditOutcome:
        """What becomes of one edit; raises `Refused`.  Who says it of a whole file twice says it
        once."""
        if not isinstance(edit.op, Create | DeleteFile | Rename | Write):
            return self._part(edit, edit.op)
        key = edit.path, edit.op
        if key not in self.seen:
            self.seen[key] = "applied" if self._whole_file(edit, edit.op) else "already_applied"
        return outcome(edit, self.seen[key])

    def _whole_file(self, edit: Edit, op: Create | DeleteFile | Rename | Write) -> bool:
        """Create, delete, rename or write a file; whether that changes anything."""
        match op:
            case Create():
                return self.files.create(edit, op)
            case DeleteFile(old):
                self.files.delete(edit, op)
                if old is None:
                    self.blind.append(edit.path)
            case Rename(to):
                self.files.rename(edit, to)
            case Write():
                found = self.files.write(edit, op)
                if found is not None:
                    self.blind.append(edit.path)
                    file = self.files.named(edit.path)
                    self._make(edit, file, file.text, found)
                    return file.change() is not None
        return True

    def _part(self, edit: Edit, op: PartOp) -> EditOutcome:
        file = self.files.named(edit.path)
        hints = Hints(self.rules.rungs, edit.path, self._lines_hold)
        if file.by.keys() & {"deleted", "written"}:
            raise clash(edit, file, "what another edit does to the file that this one edits")
        if "edited" not in file.by:
            check_text(edit.path, file.text.data, self.rules)
            file.by["edited"] = edit.id
        if problem := guards.elided(edit, self.rules, file.text):
            raise Refused(problem)
        missed, texts = Missed("none"), list[Text]()
        for text in self._texts(file):
            texts.append(text)
            result = self._match(edit, file, text, hints)
            if isinstance(result, Found):
                return self._make(edit, file, text, result)
            if result.why != "none":
                raise self._missed(edit, file, text, result)
            if file.has_base(text):
                missed = result
            elif op in file.folded:
                return replace(file.folded[op], id=edit.id, format=edit.format, at=edit.at)
        for text in texts:
            if found := present(text, op, hints):
                return _placed(edit, found, file.has_base(text), "already_applied")
        raise self._missed(edit, file, texts[0], missed)

    def _texts(self, file: File) -> Iterator[Text]:
        """The base's text, and that which the edits so far leave; in a batch that misses much only
        the first."""
        if "made" not in file.by:
            yield file.text
            if self.missed >= _MOST_MISSED:
                return
        now = file.now()
        if not file.has_base(now):
            yield now

    @cached_property
    def _lines_hold(self) -> bool:
        """Whether stated lines may tell equal places apart: the base is the one that the response
        names, and no hunk that has one place only contradicts its own number."""
        if not self.declared:
            return False
        for section in self.sections.values():
            if all(op.line is None or not op.old for _, op in section):
                continue
            try:
                text = self.files.named(section[0][0].path).text
            except Refused:
                return False
            ops = [op for _, op in section]
            found = hunks.resolve(text, ops, self.rules.rungs)
            for (_, op), one, lines in zip(section, found, hunks.stated(ops), strict=True):
                if op.old and lines and isinstance(one, Found) and one.start + 1 not in lines:
                    return False
        return True

    def _match(self, edit: Edit, file: File, text: Text, hints: Hints) -> Found | Missed:
        """Where a part of the file belongs in one of its texts; hunks of one file in its order."""
        assert not isinstance(edit.op, Create | DeleteFile | Rename | Write)
        if isinstance(edit.op, PatchHunk) and file.has_base(text):
            if id(edit) not in self.in_order:
                section = self.sections[_section(edit)]
                ops = [op for _, op in section]
                found = hunks.resolve(text, ops, hints.rungs, lines_hold=hints.lines_hold)
                for (other, _), one in zip(section, found, strict=True):
                    self.in_order[id(other)] = one
            result = self.in_order[id(edit)]
            if isinstance(result, Found) or result.why != "none" or not text.with_returns:
                return result
        return match(text, edit.op, hints)

    def _make(self, edit: Edit, file: File, text: Text, found: Found) -> EditOutcome:
        """Change what was found on the base, or on what earlier edits left of it."""
        on_base = file.has_base(text)
        if found.already:
            return _placed(edit, found, on_base, "already_applied")
        if problem := guards.mixed_encoding(edit, text, found.hunks):
            raise Refused(problem)
        if isinstance(edit.op, PatchHunk) and _reaches_end(text, edit.op, found):
            file.final_newline = edit.op.final_newline
        done = _placed(edit, found, on_base)
        if found.hunks and all(hunk.start == hunk.end for hunk in found.hunks):
            done = replace(done, op="insert")
        if on_base:
            return self._put(edit, file, found, done)
        quoted = Hunk(text.starts[found.start], text.starts[found.end], b"")
        needs = file.overlay.fold(edit.id, edit.format, found.hunks, quoted)
        if "made" in file.by and file.by["made"] not in needs:
            needs = (file.by["made"], *needs)
        file.folded[edit.op] = replace(done, needs=needs)
        return file.folded[edit.op]

    def _put(self, edit: Edit, file: File, found: Found, done: EditOutcome) -> EditOutcome:
        if isinstance(edit.op, InsertAt) or selection.is_by_number(file.text, edit.op):
            self.blind.append(edit.path)
        if backed := selection.backed(edit, file, found):
            return outcome(edit, "skipped", backed)
        # A number is quicker to compare.
        meaning = self.meanings.setdefault(edit.op, len(self.meanings))
        footprints = [Footprint(edit.id, edit.format, run, meaning) for run in found.runs if run]
        if other := file.overlay.add(footprints):
            raise self._overlap(edit, file, found, other)
        if edit.format == INDEXED:
            file.indexed += [(one.start, one.end, edit.id) for one in footprints]
        return done

    def _overlap(self, edit: Edit, file: File, found: Found, other: Footprint) -> Refused:
        here = _changed_lines(file.text, Footprint(edit.id, edit.format, found.hunks))
        there = _changed_lines(file.text, other)
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

    def _missed(self, edit: Edit, file: File, text: Text, missed: Missed) -> Refused:
        self.missed += 1
        if not self.diagnosed:
            return Refused(Problem("match.none", f"edit {edit.id} has no certain place"))

        def search(lines: bytes) -> tuple[str | None, bool]:
            own = (other.renamed_from or other.path for other in self.files)
            return self.elsewhere.search(lines, file.renamed_from or file.path, own)

        scene = refusals.Scene(
            edit.path,
            text,
            self.rules.rungs,
            search if self.missed <= _MOST_THOROUGH else None,
            earlier=not file.has_base(text),
        )
        return Refused(refusals.problem(edit, scene, missed))


def _void(
    outcomes: Sequence[EditOutcome], changes: Sequence[FileChange], problems: Sequence[Problem]
) -> list[Problem]:
    """The problem with a batch that only says what is there already, unless it was delivered
    before: it has to say something new."""
    if (
        changes
        or not outcomes
        or any(p.severity == "error" for p in problems)
        or any(o.state in ("failed", "already_applied") for o in outcomes)
    ):
        return []
    return [
        Problem(
            "match.identical",
            "the old and the new text of every edit are the same: nothing would change",
            "write the changed lines into the second half",
            edit=outcomes[0].id,
            path=outcomes[0].path,
        )
    ]


def _placed(edit: Edit, found: Found, on_base: bool, state: EditState = "applied") -> EditOutcome:
    """An edit that counts, or is there already, where it was found; only lines of the base are
    told."""
    lines = (found.start + 1, found.end) if on_base else None
    return outcome(edit, state, match=found.rung, lines=lines)


def _section(edit: Edit) -> object:
    """What is equal for the hunks of one file that stand in its order."""
    return edit.section or id(edit)


def _reaches_end(text: Text, op: PatchHunk, found: Found) -> bool:
    """Whether the hunk changes the file's last line, be it by its newline alone."""
    if not found.hunks:
        return op.at_end and op.old == op.new and found.end == len(text.lines)
    return found.hunks[-1].end == len(text.whole)


def _changed_lines(text: Text, footprint: Footprint) -> tuple[int, int]:
    return text.line_at(footprint.start), text.line_at(max(footprint.start, footprint.end - 1))
