"""The branches of this repository: each move is one compare-and-swap of a ref, and the work trees
that have the branch checked out follow."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import ExitStack
from time import monotonic
from typing import TYPE_CHECKING

from patchq.gate.errors import Busy, CannotFollow, Fault, ObjectDamaged
from patchq.gate.git import records
from patchq.gate.git.branches import Branches, BranchMove, Moved
from patchq.gate.git.repository import Repository

if TYPE_CHECKING:
    from patchq.gate.git.branches.worktree import Follow
    from patchq.gate.git.checkout import Checkout

# Between two landings where a branch is checked out, for a person's own git commands.
PAUSE_SECONDS = 1.0


class LocalBranches(Branches):
    """`Branches` as refs below `refs/heads/`."""

    def __init__(self, repo: Repository) -> None:
        self._repo = repo
        self._rests_until = 0.0

    def refresh(self, lanes: Collection[str] | None = None, within: float = 0.0) -> None:
        """They are read whenever they are asked for."""

    def try_out(self, branch: str) -> None:
        """Nothing is in between."""

    def tip(self, branch: str) -> str | None:
        return self._repo.branch_tip(branch)

    def tips(self, prefix: str) -> dict[str, str]:
        return self._repo.branches(prefix)

    def checkouts(self, branch: str) -> list[Checkout]:
        from patchq.gate.git.checkout import checkouts  # who only reads tips needs none of it

        return checkouts(self._repo, branch)

    def rest(self) -> float:
        return max(self._rests_until - monotonic(), 0.0)

    def busy(self, branch: str) -> str | None:
        from patchq.gate.git.checkout import busy

        return busy(self._repo, branch)

    def land(self, moves: Sequence[BranchMove]) -> list[Moved]:
        """Make each move by itself, in order, but for one that follows a move that was not made."""
        lost: dict[str, Moved] = {}
        found = []
        for move in moves:
            has_base = move.behind not in lost
            moved = lost.get(move.branch) or (self._make(move) if has_base else Moved(False))
            if not moved.made:
                busy = moved.fault if isinstance(moved.fault, Busy) else None
                lost.setdefault(move.branch, Moved(False, busy))
            found.append(moved)
        return found

    def _make(self, move: BranchMove) -> Moved:
        unsure: set[str] = set()
        try:
            return Moved(self._moved(move, unsure), unsure=unsure)
        except (Busy, ObjectDamaged, CannotFollow) as fault:
            return Moved(False, fault)

    def _moved(self, move: BranchMove, unsure: set[str]) -> bool:
        from patchq.gate.git import refs

        repo, name = self._repo, f"refs/heads/{move.branch}"
        if move.new is None:
            return refs.delete(repo, name, move.old or "", wait=move.wait)
        if records.is_branch(move.branch) or move.old is None:
            return refs.move(repo, name, move.old, move.new, move.log, move.who, wait=move.wait)
        if self.busy(move.branch):  # that began since it was decided
            return False
        places = self.checkouts(move.branch)
        made = _with_work_trees(repo, move, places, unsure)
        if made and places:
            self._rests_until = monotonic() + PAUSE_SECONDS
        return made


def _with_work_trees(
    repo: Repository, move: BranchMove, places: Sequence[Checkout], unsure: set[str]
) -> bool:
    """Move a branch with the work trees at `places`, which have it checked out; False when one of
    them is not as it was, and then `unsure` has what is in the way there."""
    from patchq.gate.git import files, refs
    from patchq.gate.git.branches.worktree import Follow

    assert move.old is not None
    assert move.new is not None
    follows: list[Follow] = []
    try:
        for checkout in places:
            if checkout.unseen:
                return _undo(follows)
            follow = Follow(
                checkout,
                move.old,
                move.end or "",
                touched=move.touched,
                wait=move.wait,
                cut=move.cut,
                backup=move.backup,
            )
            if found := follow.prepare():
                unsure.update(found)
                return _undo(follows)
            follows.append(follow)
        if follows:
            files.barrier(*(f.checkout.workdir for f in follows))

        def first() -> None:
            for follow in follows:
                follow.swap()

        moved = refs.move(
            repo,
            f"refs/heads/{move.branch}",
            move.old,
            move.new,
            move.log,
            move.who,
            through=move.through,
            first=first,
            wait=move.wait,
            cut=move.cut,
        )
    except (Fault, OSError):
        _undo(follows)
        raise
    if not moved:
        return _undo(follows)
    for follow in follows:
        follow.commit()
    return True


def _undo(follows: Sequence[Follow]) -> bool:
    """All of them, whatever comes of one."""
    with ExitStack() as stack:
        for follow in follows:
            stack.callback(follow.rollback)
    return False
