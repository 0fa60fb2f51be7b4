"""The branches that batches land on, here or on a shared remote: a move makes a verdict true.

Everything that reads the tip of a target or a proposal asks `Branches`, and whatever moves one is a
`BranchMove` that `land` makes, by compare-and-swap.  `local` moves refs of this repository, each by
itself, with the work trees that have them checked out; `remote` pushes all that is given at once,
or nothing.  patchq's own marks (`refs/patchq/`) stay in this repository either way.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct, field

from patchq.gate.errors import Fault

if TYPE_CHECKING:
    from patchq.gate.git.checkout import Checkout
    from patchq.gate.git.objects import Identity
    from patchq.gate.git.refs import Staged

LONGEST_WAIT = 10.0  # seconds for which others may hold what is to move


class BranchMove(Struct, frozen=True):
    """A branch (short name) from `old` (None: there is none) to `new` (None: it goes).

    Moves of one branch follow each other in their order.  A `new` that is staged is durable once
    what was written before is flushed.
    """

    branch: str
    old: str | None
    new: Staged | str | None
    log: str
    who: Identity
    through: Sequence[tuple[str, str]] = ()
    """The commits on the way, each with its line of the log."""
    touched: Collection[str] = ()
    """The paths that differ, if it is known that no others do; see `worktree.Follow`."""
    behind: str | None = None
    """The branch whose end it is built on, as that is after the moves before this one: it is not
    made where one of these was not."""
    wait: float = LONGEST_WAIT
    cut: Callable[[], bool] = lambda: False
    """Ends that wait early."""
    backup: bool = False
    """True if a work tree that follows keeps copies of its files."""

    @property
    def end(self) -> str | None:
        """The commit at which the branch ends then."""
        return self.new if isinstance(self.new, str | None) else self.new.oid

    @property
    def commits(self) -> tuple[str, ...]:
        """The commits that the branch gets, in their order."""
        return (*(commit for commit, _ in self.through), *((self.end,) if self.end else ()))


class Moved(Struct, frozen=True):
    """The outcome of a move: it was made; or it was not, for a `fault`, or, without one, since the
    branch or a work tree on it is not as it was, so that the batch has to be decided anew."""

    made: bool
    fault: Fault | None = None
    landed: Mapping[str, str] = field(default_factory=dict)
    """Its commits that are on the branch though not by this move, each with the commit there:
    another process, which had the same batch in hand, made that."""
    unsure: Collection[str] = ()
    """The paths that were in the way in a work tree."""


class Branches(ABC):
    """The branches that batches land on.  One instance belongs to one thread."""

    remote: str | None = None
    """The name of the remote that has them; None: they are this repository's own."""

    @property
    def seconds(self) -> float:
        """The seconds of the last `land`, as far as it is worth gathering more for it."""
        return 0.0

    @property
    def away(self) -> Fault | None:
        """The reason why branches cannot be fetched or moved for now."""
        return None

    @abstractmethod
    def refresh(self, lanes: Collection[str] | None = None, within: float = 0.0) -> None:
        """Learn what others did to these branches and to all proposals (None: to all branches; so
        it is at first, whatever is asked for), unless that is known of the last `within` seconds;
        `errors.Unreachable` where it cannot be learnt."""

    @abstractmethod
    def tip(self, branch: str) -> str | None:
        """The commit at which a branch ends, as far as it is known; None where there is none."""

    @abstractmethod
    def tips(self, prefix: str) -> dict[str, str]:
        """Short name -> tip of the branches under `prefix` (`"patchq/"`; empty: all)."""

    @abstractmethod
    def land(self, moves: Sequence[BranchMove]) -> list[Moved]:
        """Make the moves; return the outcome of each.

        Raises `InDoubt` where that is unknown: recovery of the intended verdicts finds out."""

    def name(self, branch: str) -> str:
        """Return git's name of the branch in this repository, for people."""
        return f"{self.remote}/{branch}" if self.remote else branch

    @abstractmethod
    def try_out(self, branch: str) -> None:
        """See whether the branch could be moved, as far as that shows without moving it;
        `errors.Unreachable` if it could not."""

    def checkouts(self, branch: str) -> list[Checkout]:
        """The work trees that follow the branch when it moves, also those out of reach."""
        return []

    def rest(self) -> float:
        """Return the seconds for which no branch that a person has checked out should move.

        A landing takes the lock of the index, for which git does not wait.
        """
        return 0.0

    def busy(self, branch: str) -> str | None:
        """Return the work that a work tree has begun with the branch, so that it must not move."""
        return None
