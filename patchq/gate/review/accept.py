"""Accepting proposals: each boards the train of its target, and the train lands by few runs.

The mark `refs/patchq/boarded/<id>` is the decision; it is made before anything lands, and lasts
until the proposal has landed, was refused, or says something else than the person saw.  Whoever
starts first goes on from the marks:

    marks | join | hooks | flush | the target | flush | reports, each with its mark
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import inf
from time import sleep, time

from msgspec import Struct
from msgspec.structs import replace

from patchq.core.model.values import EditOutcome, HookRun, Problem
from patchq.gate.errors import Declined, Fault
from patchq.gate.git import records, refs
from patchq.gate.git.branches import BranchMove
from patchq.gate.land import landing, presubmit, reports, running
from patchq.gate.land.presubmit import Search, Trial
from patchq.gate.pipeline import depends
from patchq.gate.pipeline.context import flush
from patchq.gate.pipeline.session import Session, Tips, brought_back, select, taken_along
from patchq.gate.report import document
from patchq.gate.report.schema import (
    BoardedEntry,
    CommittedReport,
    Report,
    has_commit,
    waits_for_its_agent,
)
from patchq.gate.review import decide, restack
from patchq.gate.review.candidates import (
    Member,
    changed_by_person,
    changes_of,
    choice_of,
    decision_on,
    is_same,
    lands_whole,
    lower_first,
    obstacles,
    refusal_of,
)
from patchq.gate.review.decide import Decided

TRIES = 5  # times that a train is joined anew since its target moved, before it is left for later
_LOOK_SECONDS = 0.2
_LOG = logging.getLogger("patchq")
# Called after each run of a train's hooks with its target, its length, and the trial.
Watch = Callable[[str, int, Trial], None]


def unwatched(target: str, size: int, trial: Trial) -> None: ...


class Accept(Struct, frozen=True, omit_defaults=True, tag_field="verb", tag="accept"):
    """Have proposals of one target board, and land their train.

    `only` and `without` choose edits of a single proposal.  `stack` takes what it is on top of
    along.  Without `wait` the train is not waited for.  `seen` has the commits of their branches
    that the person has looked at; one that is at another stays.  `by` is who accepts, by default
    the repository's identity.
    """

    ids: tuple[str, ...]
    only: frozenset[str] | None = None
    without: frozenset[str] = frozenset()
    stack: bool = False
    seen: dict[str, str] = {}
    fail_fast: bool = False
    wait: bool = True
    by: str = ""

    @property
    def id(self) -> str:
        return self.ids[-1]

    def carry_out(self, session: Session, watch: Watch = unwatched) -> Decided:
        """Return what became of the last one, with the `others` beside it.

        `watch` sees each run of the hooks.
        """
        decide.refresh(session)
        last = decide.proposal(session, self.id) if self.stack else None
        branch = session.branches.tip(records.branch(self.id))
        if last and self.seen.get(last.id) not in (None, branch):
            return Decided(last, (decide.unseen(last.id),))  # its history has those below it
        below = depends.under(session, last) if last else depends.Stack()
        asked = [one.id for one in below.below if waits_for_its_agent(one.report)]
        if last and asked:
            message = f"a person asked for changes of {asked[-1]}, which it is on top of"
            return Decided(last, (Problem("review.changes", message),))
        order = list(dict.fromkeys((*reversed(below.ids), *lower_first(session, self.ids))))
        boards, done = self._board(session, order)
        waits = self.wait or session.serves  # in a cluster the command outlives its worker
        if session.config.merges_there or not waits:
            done |= {
                id: Decided(session.queue.load(id) or one.report) for id, one in boards.items()
            }
        elif boards:
            done |= _landed(session, boards, watch, self.fail_fast)
        results = [done[id] for id in order if id in done]
        own = next((one for one in results if one.report.id == self.id), results[-1])
        return replace(own, others=tuple(one for one in results if one is not own))

    def _board(
        self, session: Session, ids: Sequence[str]
    ) -> tuple[dict[str, Decided], dict[str, Decided]]:
        """Mark proposals as accepted; return those that board, and those that cannot."""
        boards: dict[str, Decided] = {}
        refused: dict[str, Decided] = {}
        for id in ids:
            try:
                decided = self._ready(session, id, boards)
            except Fault as fault:
                report = session.queue.load(id)
                if len(ids) == 1 or report is None:
                    raise
                decided = Decided(report, (Problem(fault.code, fault.message, fault.hint),))
            (refused if decided.problems else boards)[id] = decided
            if refused and self.fail_fast:
                break
        # From above, so that a crash leaves no lower part of a stack that lands by itself.
        now = session.clock()
        changes = {
            id: partial(self._marked, session, now + number / 1000)
            for number, id in enumerate(boards)
        }
        made = reports.amend(session, dict(reversed(changes.items())))
        for id in boards.keys() - made.keys():
            raise decide.decided_already(id, "gone")
        return boards, refused

    def _marked(self, session: Session, at: float, report: Report) -> Report | None:
        id, who = report.id, session.identity()
        branch = session.branches.tip(records.branch(id))
        if report.state != "proposed" or branch is None:
            raise decide.decided_already(id, report.state)
        refs.put(session.repo, records.BOARDED + id, branch, f"{id} accepted", who)
        entry = BoardedEntry(by=self.by or who.name, at=document.moment(at), commit=branch)
        problems = [one for one in report.problems if not one.code.startswith("hook.")]
        return replace(report, boarded=entry, problems=problems)

    def _ready(self, session: Session, id: str, before: Collection[str]) -> Decided:
        """Return the proposal with the chosen edits, or why it cannot board behind those."""
        report = decide.proposal(session, id)
        branch = decide.branch_of(session, id)
        if self.seen.get(id) not in (None, branch):
            return Decided(report, (decide.unseen(id),))
        problem, stack = depends.why_not_alone(session, report), depends.under(session, report)
        aboard = {*before, *boarded(session)}
        if problem and (stack.why or not aboard.issuperset(stack.ids)):
            return Decided(report, (problem,))
        if self.only is None and not self.without:
            return Decided(report)
        if branch != report.commit:
            return Decided(report, (_only_whole(session, report),))
        choice = select(choice_of(report), report.edits, self.only, self.without)
        made = restack.with_edits(session, report, choice)
        if isinstance(made, tuple):
            return Decided(report, made)
        return _with_choice(made, report.edits, made.edits)


def boarded(session: Session) -> list[str]:
    """Return the ids of all proposals that have boarded."""
    return [name.removeprefix(records.BOARDED) for name in session.repo.refs(records.BOARDED)]


def _only_whole(session: Session, report: CommittedReport) -> Problem:
    return changed_by_person(session, report, "only whole branches can land")


def _with_choice(
    report: Report, before: Sequence[EditOutcome], after: Sequence[EditOutcome]
) -> Decided:
    back, along = brought_back(before, after), taken_along(before, after)
    return Decided(report, back=tuple(back), along=tuple(along))


def _landed(
    session: Session, boards: Mapping[str, Decided], watch: Watch, fail_fast: bool
) -> dict[str, Decided]:
    target = next(iter(boards.values())).report.target or ""
    while (ended := run(session, target, boards, watch, fail_fast=fail_fast)) is None:
        session.pulse()
        sleep(_LOOK_SECONDS)
    return {
        id: replace(decided, back=before.back, along=before.along)
        for id, before in boards.items()
        if (decided := ended.get(id) or elsewhere(session, id))
    }


def elsewhere(session: Session, id: str) -> Decided | None:
    """Return what another process made of a proposal that had boarded; None if it waits."""
    report = session.queue.load(id)
    if report is None or report.boarded:
        return None
    if report.state == "accepted":
        return Decided(report)
    from_hooks = [one for one in report.problems if one.code.startswith("hook.")]
    why = tuple(Problem(one.code, one.message, one.hint) for one in from_hooks)
    over = decide.decided_already(id, report.state)
    return Decided(report, why or (Problem(over.code, over.message, over.hint),))


def resume(session: Session, watch: Watch = unwatched) -> list[Decided]:
    """Land what has boarded and no process lands; return what became of it."""
    if session.config.merges_there:
        return []
    waiting = [report for id in boarded(session) if (report := session.queue.load(id))]
    decided: list[Decided] = []
    for target in dict.fromkeys(report.target for report in waiting if report.target):
        decided += (run(session, target, (), watch) or {}).values()
    return decided


def run(
    session: Session,
    target: str,
    own: Collection[str],
    watch: Watch = unwatched,
    *,
    fail_fast: bool = False,
) -> dict[str, Decided] | None:
    """Land what has boarded for a target, and return the outcomes.

    None if another process does.  With `fail_fast`, the first of `own` that is left out takes the
    others with it.
    """
    fd = running.hold(session.queue_root, target)
    if fd is None:
        return None
    try:
        train = Train(session, target, watch, own if fail_fast else ())
        train.run()
    finally:
        os.close(fd)
        if train.landed:
            let_follow(session)
    return train.done


def let_follow(session: Session) -> None:
    """Have what else waits follow its target; the next run does what is left."""
    try:
        restack.settle(session)
    except Fault as fault:
        _LOG.warning("%s; the next `patchq run` has the other proposals follow", fault.message)


@dataclass
class Train:
    """The proposals boarded for a target, until each landed or was left out."""

    session: Session
    target: str
    watch: Watch
    together: Collection[str] = ()
    """Those that go on only as long as none of them is left out."""
    done: dict[str, Decided] = field(default_factory=dict)
    landed: int = 0
    lost: int = 0
    """Times in a row that the target moved meanwhile."""
    runs: int = 0
    """Runs of the hooks."""

    def run(self) -> None:
        """Join, check and land, until nothing waits."""
        reports.reconcile(self.session, boarded(self.session))
        most = window = self.session.config.train.batches
        waiting = self._waiting()
        alone = len(waiting) == 1
        while waiting and self.lost < TRIES:
            chain, before = self.join(waiting[:window]), self.landed
            whole = not chain or self.clear(chain, alone)
            size = self.landed - before
            window = min(most, max(window, 2 * size) if whole else 2 * (size + 1))
            if self.lost:  # a hook of the remote may have refused the push for one of several
                window = 1
            waiting = self._waiting()

    def _waiting(self) -> list[CommittedReport]:
        session, found = self.session, list[CommittedReport]()
        for id in boarded(session):
            report = session.queue.load(id)
            if report is None or report.state != "proposed":
                reports.unboard(session, id)
            elif has_commit(report) and report.target == self.target and id not in self.done:
                found.append(report)
        found.sort(key=lambda report: report.boarded.at.unix if report.boarded else inf)
        return depends.in_order(found)

    def clear(self, chain: list[Member], alone: bool) -> bool:
        """Land what passes of the chain; True if that is all of it."""
        begins, ends = (partial(call, len(chain)) for call in (self._run_begins, self._run_ended))
        search, start = Search([one.decision for one in chain], self.session, begins, ends), 0
        for group in search.cleared(alone=alone):
            members = [
                replace(member, decision=decision)
                for member, decision in zip(chain[start:], group, strict=False)
            ]
            start += len(group)
            if not group[0].lands:
                self._leave_out(members[0].report, refusal_of(members[0]))
                return False
            try:
                landed = self.land(members)
            except Declined as fault:
                refused = members[0].decision.declined(fault)
                self._leave_out(members[0].report, tuple(refused.errors))
                return False
            if not landed:
                self.lost += 1
                if self.lost == TRIES:
                    self._give_up(chain)
                return False
            self.lost = 0
        return start == len(chain)

    def _run_begins(self, joined: int, first: int) -> None:
        hooks = [step.hook.id for step in self.session.hooks.joined]
        train = running.RunningTrain(self.target, self.runs + 1, first, joined, hooks, time())
        running.note(self.session.queue_root, train)

    def _run_ended(self, joined: int, trial: Trial) -> None:
        self.runs += trial.asked
        self.watch(self.target, joined, trial)

    def _give_up(self, chain: Sequence[Member]) -> None:
        message = f"{self.target} moved {TRIES} times while the change was to land"
        for one in chain:
            problem = Problem("target.moved", message, f"run `patchq accept {one.id}` again")
            self.done[one.id] = Decided(one.report, (problem,))

    # ------------------------------------------------------------ joining

    def join(self, waiting: Sequence[CommittedReport]) -> list[Member]:
        """Return the members, each built on the one before; others are left out."""
        tips, chain = Tips(self.session), list[Member]()
        for report in waiting:
            found = self._member(report, tips, [one.id for one in chain])
            if isinstance(found, Member):
                chain.append(found)
                tips.move(report.target, found.decision.commit or "")
            else:
                self._leave_out(report, found)
        return chain

    def _member(
        self, report: CommittedReport, tips: Tips, before: Sequence[str]
    ) -> Member | tuple[Problem, ...]:
        session, id, target = self.session, report.id, report.target
        tip, branch = tips.of(target), session.branches.tip(records.branch(id))
        seen = session.repo.ref_target(records.BOARDED + id)
        if tip is None or branch is None:
            gone = records.branch(id) if tip else target
            return (Problem("target.moved", f"the branch {gone} is gone", "see `patchq status`"),)
        if seen != branch and not (seen and is_same(session, report, seen, branch)):
            return (decide.unseen(id),)
        on = depends.under(session, report).on
        if on and on not in before:
            return (Problem("depends.failed", f"{id} is on top of {on}, which was left out"),)
        decision = decision_on(session, report, tips, branch)
        (decision,) = presubmit.check(
            [decision],
            session,
            session.hooks.without_joined,
            unchanged=lands_whole(session, report, branch),
        )
        problems = obstacles(decision, f"run `patchq accept {id}` again")
        return problems or Member(report, branch, decision)

    # ------------------------------------------------------------ what becomes of them

    def land(self, members: Sequence[Member]) -> bool:
        """Move the target over the members; return False if a branch has moved."""
        session, who = self.session, self.session.identity()
        first, last = members[0].decision, members[-1].decision
        # The target moves before the reports say so, and a crash in between would lose the runs.
        reports.amend(session, {one.id: partial(_judged, one.decision.hooks) for one in members})
        flush(session)
        with reports.locked(session):
            if not all(map(self._is_as_before, members)):
                return False
            go = [
                BranchMove(records.branch(one.id), one.branch, None, one.decision.log, who)
                for one in members
            ]
            through = [(one.decision.commit, one.decision.log) for one in members[:-1]]
            backup = session.config.worktree.backup
            move = BranchMove(
                self.target, first.tip, last.commit, last.log, who, through=through, backup=backup
            )
            if not landing.move_target(session, move, go):
                return False
        flush(session)
        for one in members:
            changes = changes_of(session, one)
            made = reports.close(session, one.report, "accepted", one.branch, "", **changes)
            self.landed += 1
            self.done[one.id] = Decided(made)
        return True

    def _is_as_before(self, member: Member) -> bool:
        boarded = self.session.repo.ref_target(records.BOARDED + member.id)
        return bool(boarded) and reports.is_as_before(self.session, member.id, member.branch)

    def _leave_out(self, report: CommittedReport, problems: tuple[Problem, ...]) -> None:
        from_hooks = [problem for problem in problems if problem.code.startswith("hook.")]
        kept = [replace(problem, severity="warning") for problem in from_hooks]
        now = reports.unboard(self.session, report.id, *kept)
        self.done[report.id] = Decided(now or report, problems)
        if report.id in self.together:
            for id in set(self.together) - self.done.keys():
                reports.unboard(self.session, id)


def _judged(runs: Sequence[HookRun], report: Report) -> Report | None:
    is_open = report.state == "proposed" and report.boarded
    return document.fitted(replace(report, hooks=runs)) if runs and is_open else None


def preview(session: Session, id: str, only: frozenset[str]) -> Decided:
    """Return what `accept` of these edits would land now.

    Nothing is written, and no hook runs.
    """
    decide.refresh(session, decides=False)
    report = decide.waits(session, id)
    branch = decide.branch_of(session, id)
    if branch != report.commit:
        return Decided(report, (_only_whole(session, report),))
    choice = select(choice_of(report), report.edits, only, frozenset())
    decision = decision_on(session, report, Tips(session), branch, choice)
    if problems := obstacles(decision, "try again"):
        return Decided(report, problems)
    made = decision.report
    shown = replace(report, edits=made.edits, diff=made.diff)
    return _with_choice(shown, report.edits, made.edits)
