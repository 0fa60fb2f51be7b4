"""A batch's changes, file by file, carried from the commit that it was made for to a branch's tip.

Row I2 of the requirements is the rule: a batch lands when no line that it changes, nor the line on
either side, was touched since, and wherever an edit has a place on the tip by itself, it is the
carried one; what it only quotes may have changed.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import PurePosixPath

from patchq.git.hunks import line_hunks
from patchq.model.ops import InContext, InsertAt, Occurrences, ReplaceText, Write, halves
from patchq.model.report import USABLE
from patchq.model.values import Edit, EditOutcome, Entry, FileChange, LineHunk, Plan, Problem
from patchq.pipeline.rebase.drift import Move
from patchq.pipeline.rebase.lines import Carried, Lines, Touch, carry_lines, image
from patchq.text.lines import content, split_lines


def carry(edits: Sequence[Edit], plan: Plan, on_tip: Plan, move: Move) -> tuple[Plan, bool]:
    """The plan of the edits with its changes made on the tip, and whether some stand right beside
    what was changed since; `on_tip` is what the same edits are there by themselves.

    A plan that is refused says why, one problem for each place.
    """
    placed = [_Placed(*it) for it in zip(edits, plan.edits, on_tip.edits, strict=True)]
    changes: list[FileChange] = []
    problems: list[Problem] = []
    beside = False
    report = {change.path: change for change in on_tip.changes}
    made_before: set[str] = set()
    for change in plan.changes:
        file = _File(change, placed, move)
        result, wrong = file.carried()
        problems += wrong
        beside |= file.beside
        made_before |= file.made_before
        if result is None:
            continue
        if not wrong and file.all_quote and report.get(result.path, result).after != result.after:
            problems.append(file.differs())
        else:
            changes.append(result)
    failed = {problem.edit for problem in problems}
    outcomes = tuple(_now(edit, failed, made_before) for edit in plan.edits)
    return Plan(() if problems else tuple(changes), outcomes, tuple(problems)), beside


def _now(edit: EditOutcome, failed: Collection[str | None], result: Collection[str]) -> EditOutcome:
    """What has become of an edit on the tip."""
    if edit.id in failed:
        return replace(edit, state="failed")
    return replace(edit, state="already_applied") if edit.id in result else edit


@dataclass(frozen=True, slots=True)
class _Placed:
    """An edit, with what became of it on its base and what would by itself on the tip."""

    edit: Edit
    was: EditOutcome
    now: EditOutcome

    @property
    def id(self) -> str:
        return self.was.id

    @property
    def quotes(self) -> bool:
        """Whether it quotes what it means: otherwise it has a place on any text."""
        op = self.edit.op
        by_number = isinstance(op, Occurrences) and op.at is not None
        return not (by_number or isinstance(op, Write | InsertAt))

    def has_there(self, lines: Sequence[bytes]) -> Lines | None:
        """The tip's `lines` that it quotes as a whole, from their first character to the last."""
        if self.now.lines is None or self.now.state not in USABLE:
            return None
        first, end = self.now.lines[0] - 1, self.now.lines[1]
        if isinstance(self.edit.op, ReplaceText | Occurrences | InContext):
            quote = halves(self.edit.op)[0].encode("utf-8", "surrogateescape").split(b"\n")
            first += content(lines[first]) != quote[0]
            end -= bool(quote[-1]) and content(lines[end - 1]) != quote[-1]
        return first, end


class _File:
    """One file of the batch."""

    def __init__(self, change: FileChange, placed: Sequence[_Placed], move: Move) -> None:
        self.change, self.move = change, move
        self.source = change.renamed_from or change.path
        self.placed = [it for it in placed if it.was.path in (self.source, change.path)]
        self.beside = False
        self.made_before: set[str] = set()

    @property
    def all_quote(self) -> bool:
        """Whether every edit of the file quotes what it means."""
        return all(it.quotes for it in self.placed)

    @cached_property
    def _tip(self) -> Entry | None:
        return self.move.repo.tree(self.move.tip).entry(self.source)

    def carried(self) -> tuple[FileChange | None, list[Problem]]:
        """The change on the tip, None when it is there already, and what stands against it."""
        change = self.change
        if change.before is None or change.renamed_from:
            wrong = self._new_path()
            if wrong or change.before is None:
                return (None, []) if wrong and self._is_there() else (change, wrong)
        base = self.move.repo.tree(self.move.base).entry(self.source)
        if self._tip is None or base is None or self._tip.kind != base.kind:
            return change, [self._problem("was deleted or renamed", self.source)]
        executable = self._tip.executable
        if self._tip.oid == base.oid:
            return replace(change, executable=executable), []
        if change.after is None:
            return change, [self._problem("was changed", self.source)]
        assert change.before is not None
        now = self.move.repo.tree(self.move.tip).read(self.source)
        theirs = line_hunks(change.before, now)
        ours = line_hunks(change.before, change.after)
        carried = carry_lines(change.before, change.after, now, ours, theirs)
        self.beside = any(touch.beside for touch in carried.touches)
        result = {touch.ours for touch in carried.touches if touch.same}
        self.made_before = self._editing(result) - self._editing({b[:2] for b in ours} - result)
        wrong = self._touched(carried, now, theirs) or self._elsewhere(theirs)
        if carried.text == now and not change.renamed_from and not wrong:
            return None, []
        return replace(
            change, before=now, after=carried.text, executable=executable, hunks=carried.hunks
        ), wrong

    def _new_path(self) -> list[Problem]:
        """What stands on the tip where the batch wants to put a file."""
        path, tree = self.change.path, self.move.repo.tree(self.move.tip)
        if tree.entry(path) is not None:
            return [self._problem("was made", path)]
        for parent in list(PurePosixPath(path).parents)[:-1]:
            there = tree.entry(str(parent))
            if there is not None and there.kind != "tree":
                return [self._problem("was made", str(parent))]
        return []

    def _is_there(self) -> bool:
        """Whether the file that the batch makes is on the tip, byte for byte."""
        path, tree = self.change.path, self.move.repo.tree(self.move.tip)
        entry = tree.entry(path)
        if self.change.renamed_from or entry is None or entry.kind != "file":
            return False
        self.made_before |= {it.id for it in self.placed}
        return tree.read(path) == self.change.after

    def _touched(self, carried: Carried, now: bytes, theirs: Sequence[LineHunk]) -> list[Problem]:
        lines = split_lines(now)
        problems = []
        for touch in carried.touches:
            it = self._at(touch.ours)
            if touch.same or (touch.beside and it and _has_seen(it, touch, lines, theirs)):
                continue
            problems.append(self.move.collision(touch, self.source, now, it.id if it else None))
        return problems

    def _at(self, lines: Lines) -> _Placed | None:
        """The edit that quotes these lines of the base."""
        for it in self.placed:
            quoted = it.was.lines
            if quoted and quoted[0] - 1 <= lines[0] and lines[1] <= quoted[1]:
                return it
        return self.placed[0] if len(self.placed) == 1 else None

    def _editing(self, runs: Collection[Lines]) -> set[str]:
        """The edits that change these runs of the base's lines."""
        return {it.id for run in runs if (it := self._at(run))}

    def _elsewhere(self, theirs: Sequence[LineHunk]) -> list[Problem]:
        """A problem for each edit that the tip by itself gives another place than the carried."""
        problems = []
        for it in self.placed:
            was, now = it.was.lines, it.now.lines
            if not (it.quotes and was and now and it.now.state in USABLE):
                continue
            first, end = image((was[0] - 1, was[1]), theirs)
            if not (now[0] - 1 < max(end, first + 1) and first < now[1]):
                there = first + 1, end
                problems.append(self.move.elsewhere(self.source, it.id, was, there, now))
        return problems

    def differs(self) -> Problem:
        """The edits, taken for ones of the tip, do something else than the carried ones."""
        return self._problem("was changed so that these edits mean something else", self.source)

    def _problem(self, what: str, path: str) -> Problem:
        return self.move.problem(what, path, self.placed[0].id if self.placed else None)


def _has_seen(
    it: _Placed, touch: Touch, lines: Sequence[bytes], theirs: Sequence[LineHunk]
) -> bool:
    """Whether the edit has its carried place on the tip (its `lines`) by itself, and in its quote
    the line beside it that was changed."""
    quoted = it.has_there(lines)
    first, end = image(touch.ours, theirs)
    if touch.theirs[0] >= touch.ours[1]:
        end += 1
    else:
        first -= 1
    return quoted is not None and quoted[0] <= first and end <= quoted[1]
