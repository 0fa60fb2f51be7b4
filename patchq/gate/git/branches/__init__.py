"""The branches that batches land on, here or on a shared remote: a move makes a verdict true.

Everything that reads the tip of a target or a proposal asks `Branches`, and whatever moves one is a
`BranchMove` that `land` makes, by compare-and-swap.  `Branches` moves refs of this repository,
each by itself, with the work trees that have them checked out; `remote` pushes all that is given at
once, or nothing.  patchq's own marks (`refs/patchq/`) stay in this repository either way.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from time import monotonic
from typing import TYPE_CHECKING

from msgspec import Struct, field

from patchq.gate.errors import Busy, CannotFollow, Fault, ObjectDamaged
from patchq.gate.git import files, records, refs
from patchq.gate.git.checkout import Checkout, busy, checkouts
from patchq.gate.git.repository import Repository

if TYPE_CHECKING:
    from patchq.gate.git.branches.worktree import Follow
    from patchq.gate.git.objects import Identity

# Between two landings where a branch is checked out, for a person's own git commands.
PAUSE_SECONDS = 1.0
_BACKLOG = 256  # so many that land at once halve the pause: more may wait


class BranchMove(Struct, frozen=True):
    """The move of a branch from the commit `old` to `new`.

    The branch has its short name.  Without an `old` it is created, without a `new` deleted.  Moves
    of one branch follow each other in their order.  `through` are the commits on the way, each with
    its line of the log.  `touched` are the paths that differ, if it is known that no others do; see
    `worktree.Follow`.  `behind` is the branch whose end it is built on, as that is after the moves
    before this one: it is not made where one of these was not.  `cut` ends a wait for others who
    hold it, and with `backup` a work tree that follows keeps copies of its files.
    """

    branch: str
    old: str | None
    new: str | None
    log: str
    who: Identity
    through: Sequence[tuple[str, str]] = ()
    touched: Collection[str] = ()
    behind: str | None = None
    cut: Callable[[], bool] = lambda: False
    backup: bool = False

    @property
    def commits(self) -> tuple[str, ...]:
        return (*(commit for commit, _ in self.through), *((self.new,) if self.new else ()))


class Moved(Struct, frozen=True):
    """The outcome of a move, with the `fault` that kept it from being made.

    Without a fault, the branch or a work tree on it had changed, so the batch has to be decided
    anew.  `landed` are its commits that are on the branch though not by this move, each with the
    commit there: another process, which had the same batch in hand, made that.
    """

    made: bool
    fault: Fault | None = None
    landed: Mapping[str, str] = field(default_factory=dict)


class Branches:
    """The branches that batches land on, here; `remote.RemoteBranches` has those of a remote.

    `remote` is the name of the remote that has them; None: they are this repository's own.
    `seconds` are those of the last `land`, as far as it is worth gathering more for it, and `away`
    is the reason why branches cannot be fetched or moved for now.  One instance belongs to one
    thread.
    """

    remote: str | None = None
    seconds = 0.0
    away: Fault | None = None

    def __init__(self, repo: Repository) -> None:
        self._repo = repo
        self._rests_until = 0.0

    def refresh(self, lanes: Collection[str] | None = None, within: float = 0.0) -> None:
        """Read the tips of these branches and of all proposals anew.

        None: of all branches, as always at first.  Tips that are known for less than `within`
        seconds are kept.  Raises `errors.Unreachable`.
        """

    def tip(self, branch: str) -> str | None:
        """Return the last known commit of a branch, or None."""
        return self._repo.branch_tip(branch)

    def tips(self, prefix: str) -> dict[str, str]:
        """Short name -> tip of the branches under `prefix` (`"patchq/"`; empty: all)."""
        return self._repo.branches(prefix)

    def name(self, branch: str) -> str:
        return f"{self.remote}/{branch}" if self.remote else branch

    def try_out(self, branch: str) -> None:
        """Check that the branch can be moved, as far as possible without moving it.

        Raises `errors.Unreachable` if it cannot.
        """

    def checkouts(self, branch: str) -> list[Checkout]:
        """Return the work trees that follow the branch, also those out of reach."""
        return checkouts(self._repo, branch)

    def rest(self) -> float:
        """Return the seconds for which no checked-out branch should move.

        A landing takes the lock of the index, for which git does not wait.
        """
        return max(self._rests_until - monotonic(), 0.0)

    def busy(self, branch: str) -> str | None:
        """Return the operation (`rebasing`, …) that keeps the branch from moving, or None."""
        return busy(self._repo, branch)

    def land(self, moves: Sequence[BranchMove]) -> list[Moved]:
        """Make the moves; return the outcome of each.

        Here each is made by itself, in order, but for one that follows a move that was not made.
        On a remote, `InDoubt` where it is unknown: recovery of the intended verdicts finds out.
        """
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
        repo, name = self._repo, f"refs/heads/{move.branch}"
        try:
            if move.new is None:
                return Moved(refs.delete(repo, name, move.old or ""))
            if records.is_branch(move.branch) or move.old is None:
                return Moved(refs.move(repo, name, move.old, move.new, move.log, move.who))
            if self.busy(move.branch):  # that began since it was decided
                return Moved(False)
            places = self.checkouts(move.branch)
            moved = _with_work_trees(repo, move, places)
        except (Busy, ObjectDamaged, CannotFollow) as fault:
            return Moved(False, fault)
        if moved.made and places:
            share = min((len(move.through) + 1) / _BACKLOG, 1.0)
            self._rests_until = monotonic() + PAUSE_SECONDS * (1 - share / 2)
        return moved


def _with_work_trees(repo: Repository, move: BranchMove, places: Sequence[Checkout]) -> Moved:
    """Move a branch with the work trees at `places`, which have it checked out."""
    from patchq.gate.git.branches.worktree import Follow

    assert move.old is not None
    assert move.new is not None
    follows: list[Follow] = []

    def swap() -> None:
        for follow in follows:
            follow.swap()

    try:
        for checkout in places:
            if checkout.unseen:
                return _undo(follows)
            follow = Follow(
                checkout,
                move.old,
                move.new,
                touched=move.touched,
                cut=move.cut,
                backup=move.backup,
            )
            if follow.prepare():  # a path is in the way
                return _undo(follows)
            follows.append(follow)
        if follows:
            files.barrier(*(f.checkout.workdir for f in follows))
        moved = refs.move(
            repo,
            f"refs/heads/{move.branch}",
            move.old,
            move.new,
            move.log,
            move.who,
            through=move.through,
            first=swap,
            cut=move.cut,
        )
    except (Fault, OSError):  # anything else may come once the ref is there: see `recover`
        _undo(follows)
        raise
    if not moved:
        return _undo(follows)
    for follow in follows:
        follow.commit()
    return Moved(True)


def _undo(follows: Sequence[Follow]) -> Moved:
    with ExitStack() as stack:
        for follow in follows:
            stack.callback(follow.rollback)
    return Moved(False)
