"""Landing: verdicts come true, many at once, each by one compare-and-swap of one ref.

The order is what makes a crash harmless, and two flushes pay for a whole group:

    write every report beside its claim, every ref's value beside its ref | flush |
    move the refs, put the verdicts into their register | flush | `publish` every report

The intended report is there before any ref moves, so whoever recovers the claim knows which commit
to look for; no report appears before what it speaks of is durable, and publishing only renames.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

from patchq.git import files, records, refs, worktree
from patchq.git.checkout import busy, checkouts
from patchq.git.linklock import WAIT_SECONDS
from patchq.git.objects import Identity
from patchq.git.refs import Staged
from patchq.model.errors import Busy, CannotFollow, Fault, ObjectDamaged
from patchq.model.report import Report
from patchq.pipeline.ground import flush
from patchq.pipeline.progress import CandidateCommit, Decision
from patchq.pipeline.world import Tips, World
from patchq.report import document, page

_LOG = logging.getLogger("patchq")


@dataclass(frozen=True, slots=True)
class Publication:
    """A decision with the report on it, as JSON and as a page."""

    decision: Decision
    report: Report
    page: str


@dataclass(frozen=True, slots=True)
class Landed:
    """What became of a group: the verdicts that are true now and wait for `publish`, and those to
    decide again since their branch, their work tree or a batch before them was changed by somebody
    else."""

    done: list[Publication] = field(default_factory=list)
    again: list[Decision] = field(default_factory=list)


def publication(decision: Decision) -> Publication:
    report = document.to_json(decision.outcome())
    if decision.review:
        report = document.with_state(report, report["state"], review=decision.review)
    return Publication(decision, report, page.to_markdown(report))


def land(decisions: Sequence[Decision], world: World, tips: Tips) -> Landed:
    """Make the verdicts true, in order.  `tips` are read anew where one was lost."""
    if not decisions:
        return Landed()
    written = list(map(publication, decisions))
    left = [one.decision for one in written if _intended(one, world)]
    if len(left) < len(written):
        tips.forget()
        return Landed(again=left)
    with ExitStack() as staged:
        moves = _moves(decisions, world, tips, staged)
        if not moves:
            _enlist(written, world)
        flush(world)
        for move in moves:
            move.make()
        not_made = {
            landing.decision.id: move for move in moves if not move.made for landing in move.row
        }
        landed = _sorted(written, not_made)
        if moves:
            _record(moves, world)
            _enlist(landed.done, world)
            flush(world)
    if not_made:
        tips.forget()
    return landed


def _enlist(done: Sequence[Publication], world: World) -> None:
    ended = [one for one in done if one.decision.state != "held"]
    world.queue.enlist([(one.decision.claim, one.report["id"]) for one in ended])


def _intended(written: Publication, world: World) -> bool:
    """Whether the verdict is still to be had: a person may have decided on a held batch meanwhile,
    and then it does not land."""
    decision = written.decision
    if decision.state == "held":
        return True
    try:
        world.queue.intend(decision.claim, written.report, written.page)
    except Busy as busy:
        _LOG.warning("%s", busy.message, extra={"batch": decision.id})
        return False
    return True


def _sorted(written: Sequence[Publication], not_made: Mapping[str, _Move]) -> Landed:
    """One that saw the branch as a lost one would have left it is to be decided again, too; and
    where one of many cannot land, each of them, to find out which."""
    landed, lost = Landed(), set()
    for one in written:
        decision, move = one.decision, not_made.get(one.decision.id)
        if move is not None:
            lost.add(decision.target)
        if move is not None and move.damage is not None and len(move.row) == 1:
            landed.done.append(publication(decision.damaged(move.damage)))
        elif move is not None and move.busy is not None:
            # Somebody else holds the branch's lock: the batch waits, and is decided again.
            more = f" ({move.busy.hint})" if move.busy.hint else ""
            hint = f"nothing to send: the batch lands by itself once that lock is gone{more}"
            landed.done.append(publication(decision.held(move.busy.message, hint)))
        elif decision.tip and decision.target in lost:
            landed.again.append(decision)
        else:
            landed.done.append(one)
    return landed


def publish(written: Publication, world: World) -> None:
    """Let a verdict that `land` made true be seen."""
    finish = world.queue.hold if written.decision.state == "held" else world.queue.publish
    finish(written.decision.claim, written.report, written.page)


def hold_on(decision: Decision, world: World) -> None:
    """Let the report of a held batch say what it waits for now."""
    written = publication(decision)
    known = world.queue.load(decision.id)
    if known is None or known["problems"] != written.report["problems"]:
        world.queue.hold(decision.claim, written.report, written.page)


@dataclass(frozen=True, slots=True)
class _Landing:
    """A decision, and the commit of it that lands."""

    decision: Decision
    candidate: CandidateCommit

    @property
    def proposed(self) -> bool:
        return self.decision.state == "proposed"

    @property
    def log(self) -> str:
        return f"patchq: {self.decision.id}: {self.decision.subject}"


def _moves(
    decisions: Sequence[Decision], world: World, tips: Tips, staged: ExitStack
) -> list[_Move]:
    """The ref moves that make the verdicts true; batches on one branch that follow each other move
    it together, whatever is proposed in between.  Their values last until `staged` closes."""
    rows: list[list[_Landing]] = []
    newest: dict[str, list[_Landing]] = {}
    for landing in (_Landing(it, it.candidate) for it in decisions if it.candidate):
        target = landing.candidate.target
        row = newest.get(target)
        if landing.proposed:
            rows.append([landing])
        elif row and row[-1].candidate.commit == landing.candidate.parent:
            row.append(landing)
        else:
            newest[target] = [landing]
            rows.append(newest[target])
    moves: list[_Move] = []
    for row in rows:
        target = row[0].candidate.target
        stacked = [m for m in moves if m.target == target and not m.row[-1].proposed]
        value = refs.stage(world.repo, row[-1].candidate.commit)
        staged.callback(value.drop)
        moves.append(_Move(world, tips, row, stacked, value))
    return moves


@dataclass
class _Move:
    """The move of one ref, for one verdict or for several in a row.  Its value is written before
    the flush, so that the flush makes it durable."""

    world: World
    tips: Tips
    row: Sequence[_Landing]
    after: Sequence[_Move]
    """The moves of the same branch before this one."""
    value: Staged
    made: bool = False
    busy: Busy | None = None
    damage: ObjectDamaged | CannotFollow | None = None

    @property
    def target(self) -> str:
        return self.row[0].candidate.target

    def make(self) -> None:
        """Move the ref, unless it, or a work tree on it, is not as it should be, or those before
        it did not move either."""
        lost = next((move for move in self.after if not move.made), None)
        if lost is not None:
            self.busy = lost.busy
            return
        try:
            self.made = self._moved()
        except Busy as busy:
            self.busy = busy
        except (ObjectDamaged, CannotFollow) as damage:
            self.damage = damage

    def _moved(self) -> bool:
        first, last, who = self.row[0], self.row[-1], self.world.identity()
        if first.proposed:
            name = records.BRANCHES + first.decision.id
            return refs.move(self.world.repo, name, None, self.value, first.log, who)
        if busy(self.world.repo, self.target):  # somebody began that since it was decided
            return False
        through = [(landing.candidate.commit, landing.log) for landing in self.row[:-1]]
        touched = {path for landing in self.row for path in landing.candidate.paths}
        # A batch that waited for a lock already looks again soon, so it need not stand and wait.
        wait = 0.0 if first.decision.claim.held else WAIT_SECONDS
        tip = first.candidate.parent
        return move_target(
            self.world,
            self.target,
            tip,
            self.value,
            last.log,
            who,
            through=through,
            wait=wait,
            touched=touched,
            unsure=self.tips.unsure,
        )


def _record(moves: Sequence[_Move], world: World) -> None:
    """Remember each batch by a ref of its own."""
    commits: dict[str, str | Staged] = {}
    for move in (move for move in moves if move.made):
        for landing in move.row:
            prefix = records.WAITING if landing.proposed else records.LANDED
            commit = move.value if len(move.row) == 1 else landing.candidate.commit
            commits[prefix + landing.decision.id] = commit
    refs.record(world.repo, commits, "patchq: record", world.identity())


def move_target(
    world: World,
    target: str,
    old: str,
    new: Staged,
    log: str,
    who: Identity,
    *,
    through: Sequence[tuple[str, str]] = (),
    wait: float = WAIT_SECONDS,
    touched: Collection[str] = (),
    unsure: set[str] | None = None,
) -> bool:
    """Move a branch from `old` to `new`, with every work tree that has it checked out; False when
    the branch or a work tree is not as it was, and then `unsure` has what is in the way there.
    `through`, `wait`: see `refs.move`; `touched`: see `worktree.Follow`."""
    name = f"refs/heads/{target}"
    follows: list[worktree.Follow] = []
    try:
        for checkout in checkouts(world.repo, target):
            if checkout.unseen:
                return _undo(follows)
            backup = world.config.worktree.backup
            follow = worktree.Follow(
                checkout, old, new.oid, touched=touched, wait=wait, backup=backup
            )
            if found := follow.prepare():
                if unsure is not None:
                    unsure.update(found)
                return _undo(follows)
            follows.append(follow)
        if follows:
            files.barrier(*(f.checkout.workdir for f in follows))

        def first() -> None:
            for follow in follows:
                follow.swap()

        moved = refs.move(
            world.repo, name, old, new, log, who, through=through, first=first, wait=wait
        )
    except (Fault, OSError):
        _undo(follows)
        raise
    if not moved:
        return _undo(follows)
    for follow in follows:
        follow.commit()
    return True


def _undo(follows: Sequence[worktree.Follow]) -> bool:
    """All of them, whatever comes of one."""
    with ExitStack() as stack:
        for follow in follows:
            stack.callback(follow.rollback)
    return False
