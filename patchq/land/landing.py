"""Landing: verdicts come true, many at once, each by one compare-and-swap of one ref.

The order is what makes a crash harmless, and two flushes pay for a whole group:

    write every report beside its claim, every ref's value beside its ref | flush |
    move the refs | flush | `publish` every report

The intended report is there before any ref moves, so whoever recovers the claim knows which commit
to look for; no report appears before what it speaks of is durable, and publishing only renames.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from patchq.git import files, records, refs, worktree
from patchq.git.identity import Identity
from patchq.git.linklock import WAIT_SECONDS
from patchq.git.refs import Staged
from patchq.model.errors import Busy, Fault
from patchq.pipeline.draft import Draft
from patchq.pipeline.world import Tips, World, flush
from patchq.report import document, page

_LOG = logging.getLogger("patchq")


@dataclass
class Landed:
    """What became of a group: the drafts whose verdict is true now and waits for `publish`, and
    those to decide again since their branch, their work tree or a batch before them was changed by
    somebody else."""

    done: list[Draft] = field(default_factory=list)
    again: list[Draft] = field(default_factory=list)


def land(drafts: Sequence[Draft], world: World, tips: Tips) -> Landed:
    """Make the verdicts of `drafts` true, in order.  `tips` are read anew where one was lost."""
    if not drafts:
        return Landed()
    left = [draft for draft in drafts if _intended(draft, world)]
    if len(left) < len(drafts):
        tips.forget()
        return Landed(again=left)
    moves = _moves(drafts, world)
    try:
        flush(world)
        for move in moves:
            move.make()
        if moves:
            _record(moves, world)
            flush(world)
    finally:
        for move in moves:
            move.drop()
    not_made = {id(draft): move for move in moves if not move.made for draft in move.drafts}
    if not_made:
        tips.forget()
    return _sorted(drafts, not_made)


def _intended(draft: Draft, world: World) -> bool:
    """Whether the verdict is still to be had: a person may have decided on a held batch meanwhile,
    and then it does not land."""
    _tell(draft)
    if draft.state == "held":
        return True
    try:
        world.queue.intend(draft.claim, draft.told, draft.page)
    except Busy as busy:
        _LOG.warning("%s", busy.message, extra={"batch": draft.id})
        return False
    return True


def _sorted(drafts: Sequence[Draft], not_made: Mapping[int, _Move]) -> Landed:
    """A draft that saw the branch as a lost one would have left it is to be decided again, too."""
    landed, lost = Landed(), set()
    for draft in drafts:
        move = not_made.get(id(draft))
        if move is not None:
            lost.add(draft.target)
        if move is not None and move.busy is not None:
            _hold(draft, move)
            landed.done.append(draft)
        elif draft.parent and draft.target in lost:
            landed.again.append(draft)
        else:
            landed.done.append(draft)
    return landed


def publish(draft: Draft, world: World) -> None:
    """Let a verdict that `land` made true be seen."""
    finish = world.queue.hold if draft.state == "held" else world.queue.publish
    finish(draft.claim, draft.told, draft.page)


def _tell(draft: Draft) -> None:
    draft.told = document.to_json(draft.outcome())
    draft.page = page.to_markdown(draft.told)


def _hold(draft: Draft, move: _Move) -> None:
    """Somebody else holds the branch's lock: the batch waits, and is decided again."""
    assert move.busy is not None
    draft.commit, draft.tree = None, None
    draft.state = "held"
    hint = "nothing to send: the batch lands by itself once that lock is gone"
    more = f" ({move.busy.hint})" if move.busy.hint else ""
    draft.warn("target.busy", move.busy.message, hint + more)
    _tell(draft)


def hold_on(draft: Draft, world: World) -> None:
    """Let the report of a held batch say what it waits for now."""
    _tell(draft)
    known = world.queue.load(draft.id)
    if known is None or known["problems"] != draft.told["problems"]:
        world.queue.hold(draft.claim, draft.told, draft.page)


def _moves(drafts: Sequence[Draft], world: World) -> list[_Move]:
    """The ref moves that make the verdicts true; batches on one branch that follow each other, and
    that no work tree has to follow, move it together."""
    moves: list[_Move] = []
    for draft in drafts:
        if not draft.commit:
            continue
        before = [move for move in moves if move.target == draft.target]
        if before and before[-1].goes_on_with(draft):
            before[-1].drafts.append(draft)
        else:
            stacked = [move for move in before if move.drafts[-1].state == "applied"]
            moves.append(_Move(world, [draft], stacked))
    for move in moves:
        move.stage()
    return moves


@dataclass
class _Move:
    """The move of one ref, for one verdict or for several in a row.  Its value is written before
    the flush, so that the flush makes it durable."""

    world: World
    drafts: list[Draft]
    after: list[_Move]
    """The moves of the same branch before this one."""
    made: bool = False
    busy: Busy | None = None
    value: Staged | None = None

    @property
    def target(self) -> str | None:
        return self.drafts[0].target

    def goes_on_with(self, draft: Draft) -> bool:
        last = self.drafts[-1]
        return (
            last.state == draft.state == "applied"
            and last.commit == draft.parent
            and not draft.follows
        )

    def stage(self) -> None:
        commit = self.drafts[-1].commit
        assert commit
        self.value = refs.stage(self.world.repo, commit)

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

    def _moved(self) -> bool:
        first, last = self.drafts[0], self.drafts[-1]
        repo, who = self.world.repo, self.world.identity()
        assert self.value
        if first.state == "proposed":
            name = records.branch_ref(first.id)
            return refs.create(repo, name, self.value, _log(first), who)
        assert first.parent
        assert first.target
        through = [(draft.commit or "", _log(draft)) for draft in self.drafts[:-1]]
        # A batch that waited for a lock already looks again soon, so it need not stand and wait.
        wait = 0.0 if first.claim.held else WAIT_SECONDS
        return move_target(
            self.world, first.target, first.parent, self.value, _log(last), who, through, wait
        )

    def drop(self) -> None:
        if self.value is not None:
            self.value.drop()


def _record(moves: Sequence[_Move], world: World) -> None:
    """Remember each batch by a ref of its own."""
    commits: dict[str, str | Staged] = {}
    for move in (move for move in moves if move.made):
        for draft in move.drafts:
            name = records.waiting if draft.state == "proposed" else records.landed
            assert draft.commit
            assert move.value
            commits[name(draft.id)] = move.value if len(move.drafts) == 1 else draft.commit
    refs.record(world.repo, commits, "patchq: record", world.identity())


def _log(draft: Draft) -> str:
    return f"patchq: {draft.id}: {draft.subject}"


def move_target(
    world: World,
    target: str,
    old: str,
    new: Staged,
    log: str,
    who: Identity,
    through: Sequence[tuple[str, str]] = (),
    wait: float = WAIT_SECONDS,
) -> bool:
    """Move a branch from `old` to `new`, with every work tree that has it checked out; False when
    the branch or a work tree is not as it was.  `through`, `wait`: see `refs.move`."""
    name = f"refs/heads/{target}"
    follows: list[worktree.Follow] = []
    try:
        for checkout in worktree.checkouts(world.repo, target):
            backup = world.config.worktree.backup
            follow = worktree.Follow(checkout, old, new.oid, wait=wait, backup=backup)
            if follow.prepare():
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
    except Fault:
        _undo(follows)
        raise
    if not moved:
        return _undo(follows)
    for follow in follows:
        follow.commit()
    return True


def _undo(follows: Sequence[worktree.Follow]) -> bool:
    for follow in reversed(follows):
        follow.rollback()
    return False
