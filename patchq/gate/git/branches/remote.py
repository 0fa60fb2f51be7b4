"""The branches of a shared remote: each group of moves is one `git push`, all of it or nothing.

    fetch -> decide -> write objects | flush | push, with a lease on every ref -> records | flush

The push is the commit point.  Its lease is a compare-and-swap on the remote, so whatever was
decided on an old tip is decided again, and no work is pushed over.  After any push that is
not a clear success the remote is fetched and asked for each commit that was to land: it is in the
history of its branch, or one with the same batch and the same source in its trailers is, which
another process made that had the batch in hand.  Only then is the rest decided again.

A push may also arrive late: its connection ended, or its process was killed and git went on.  It
can only land where its branch still ends where the push expects it.  So while that is so, and no
answer came, the batch has no verdict; the same commit is pushed again, by whoever recovers the
intended verdict (`land.recovery.finish`), until the remote has answered.

Fetched are git's own remote-tracking refs.  The branches of this repository and its work
trees stay as they are.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from time import monotonic

from patchq.gate.errors import Declined, Fault, InDoubt, Unreachable
from patchq.gate.git import records, refs
from patchq.gate.git.branches import Branches, BranchMove, Moved
from patchq.gate.git.branches.pushing import PushAnswer, Remote
from patchq.gate.git.repository import Repository
from patchq.gate.git.transport import Done
from patchq.gate.report.message import trailers

_LOG = logging.getLogger("patchq")
# Seconds until a remote that was away, or refused everything, is asked again; they double.
_FIRST_REST, _LONGEST_REST = 2.0, 60.0
_TRIES = 4
_MOST_COMMITS = 1000
_MISSING = re.compile(r"couldn't find remote ref refs/heads/(\S+)")
_LOCKED = re.compile(r"cannot lock ref|unable to update local ref|failed to lock|File exists")
Ref = tuple[str | None, str | None]


@dataclass
class _Chain:
    """The moves of one branch, which follow each other: it goes from the first one's old tip to the
    last one's new one."""

    moves: list[BranchMove]

    @property
    def branch(self) -> str:
        return self.moves[0].branch

    @property
    def old(self) -> str | None:
        return self.moves[0].old

    @property
    def new(self) -> str | None:
        return self.moves[-1].end

    @property
    def commits(self) -> tuple[str, ...]:
        return tuple(commit for move in self.moves for commit in move.commits)


class RemoteBranches(Branches):
    """`Branches` on the remote `name`.

    `lanes` are the names, or patterns with `*`, of branches that are fetched beside the
    proposals, the default target first. `note` gets the reason why the remote cannot be used,
    and None once it can."""

    seconds = 0.0
    away: Unreachable | None = None

    def __init__(
        self,
        repo: Repository,
        name: str,
        lanes: Sequence[str],
        seconds: float,
        note: Callable[[Fault | None], None] = lambda fault: None,
    ) -> None:
        self._repo, self._remote = repo, Remote(repo, name, seconds)
        self.remote = name
        self._lanes = list(dict.fromkeys(lanes))
        # Lanes that the remote may not have, so that they are asked for by a pattern.
        self._globs: set[str] = set()
        self._note = note
        self._noted: str | None = None
        self._until = self._rest = 0.0
        self._known = 0.0  # when the remote was last asked for all of it
        # When single lanes were last known for certain, since then.
        self._seen: dict[str, float] = {}

    # ------------------------------------------------------------ what is known

    def tip(self, branch: str) -> str | None:
        return self._repo.tip(self._tracking(branch))

    def tips(self, prefix: str) -> dict[str, str]:
        place = f"{records.REMOTES}{self.remote}/"
        found = self._repo.refs(place + prefix)
        return {name.removeprefix(place): tip for name, tip in found.items()}

    def _tracking(self, branch: str) -> str:
        return f"{records.REMOTES}{self.remote}/{branch}"

    # ------------------------------------------------------------ fetching

    def refresh(self, lanes: Collection[str] | None = None, within: float = 0.0) -> None:
        began = monotonic()
        if self.away is not None and began < self._until:
            raise self.away
        if self.away is None and within and began - self._since(lanes) < within:
            return
        if lanes is None or not self._known:
            self._fetch(self._lanes)
            self._known = began
            self._seen.clear()
        else:
            self._fetch(list(lanes))
            self._seen |= dict.fromkeys(lanes, began)
        if self.away is not None:
            _LOG.info("%s answers again", self.remote)
        self.away = None
        self._say(None)

    def _since(self, lanes: Collection[str] | None) -> float:
        """When all of these were known."""
        if not lanes:
            return self._known
        return min(max(self._known, self._seen.get(lane, 0.0)) for lane in lanes)

    def _fetch(self, lanes: Sequence[str]) -> None:
        if not self._remote.known:
            raise self._left_alone(
                f"there is no remote `{self.remote}` in this repository, which `landing.remote` "
                "names",
                f"git remote add {self.remote} URL, or correct `landing.remote`",
            )
        for _ in range(_TRIES):
            done = self._remote.fetch(self._refspecs(lanes))
            if done.code == 0:
                break
            missing = _MISSING.search(done.err)
            if missing and missing[1] not in self._globs:
                self._globs.add(missing[1])
            elif not _LOCKED.search(done.err):
                raise self._left_alone(*self._unfetched(done))
            else:
                lanes = self._lanes  # what is in the way may be of a branch that is gone there
        else:
            raise self._left_alone(*self._unfetched(done))
        default = self._lanes[0] if self._lanes else "*"
        if default in lanes and "*" not in default and self.tip(default) is None:
            raise self._left_alone(
                f"{self.remote} has no branch {default}",
                f"bring it back there (git push {self.remote} COMMIT:refs/heads/{default}), or "
                "set another `target`",
            )

    def _unfetched(self, done: Done) -> tuple[str, str]:
        return (
            f"{self.remote} cannot be fetched: {done.words}",
            f"see what `git fetch {self.remote}` says",
        )

    def _refspecs(self, lanes: Sequence[str]) -> list[str]:
        named = [
            f"{lane}*" if lane in self._globs else _as_refspec(lane)
            for lane in lanes
            if not records.is_branch(lane)
        ]
        wanted = [*dict.fromkeys(named), records.branch("*")]
        return [f"+refs/heads/{name}:{self._tracking(name)}" for name in wanted]

    def _left_alone(self, message: str, cure: str) -> Unreachable:
        """The remote is left alone for a while."""
        self._rest = min(max(2 * self._rest, _FIRST_REST), _LONGEST_REST)
        self._until = monotonic() + self._rest
        self.away = Unreachable(message, cure)
        self._say(self.away)
        return self.away

    def _say(self, fault: Fault | None) -> None:
        message = fault.message if fault else ""
        if message != self._noted:
            self._noted = message
            self._note(fault)

    # ------------------------------------------------------------ pushing

    def land(self, moves: Sequence[BranchMove]) -> list[Moved]:
        """All of them by one push, or none: those that do not follow each other are lost."""
        chains, lost = _chains(moves)
        if self.away is not None and monotonic() < self._until:
            return [Moved(False, self.away) for _ in moves]
        if not chains:
            return [Moved(False) for _ in moves]
        answer = self._push(chains)
        if answer.kind == "made":
            return [Moved(move not in lost) for move in moves]
        landed, certain = self._ask(chains)
        if answer.kind == "unknown" and not certain:
            # The same again: where the first is on its way still, one of the two is refused.
            answer = self._push(chains)
            if answer.kind == "made":
                return [Moved(move not in lost) for move in moves]
            landed, certain = self._ask(chains)
        fault = self._why_not(answer, chains, certain)
        return [self._moved(move, landed, fault) for move in moves]

    def try_out(self, branch: str) -> None:
        tip = self.tip(branch)
        answer = self._remote.push({f"refs/heads/{branch}": (tip, tip)}, "--dry-run")
        if tip and answer.kind not in ("made", "stale"):
            raise Unreachable(*self._untaken(answer, branch))

    def _push(self, chains: Sequence[_Chain]) -> PushAnswer:
        wanted: dict[str, Ref] = {
            f"refs/heads/{chain.branch}": (chain.old, chain.new) for chain in chains
        }
        began = monotonic()
        answer = self._remote.push(wanted)
        if answer.kind == "made":
            self.seconds = monotonic() - began
            self._rest, self.away = 0.0, None
            self._seen |= {chain.branch: monotonic() for chain in chains}
            for chain in chains:
                self._follow(chain)
            self._say(None)
        else:
            _LOG.info("pushing to %s: %s: %s", self.remote, answer.kind, answer.words)
        return answer

    def _follow(self, chain: _Chain) -> None:
        """Set the remote-tracking ref to the branch after the push.

        Git does that by itself where it is configured to fetch the branch; and the next fetch
        would."""
        ref, last = self._tracking(chain.branch), chain.moves[-1]
        with suppress(Fault):
            now = self._repo.ref_target(ref)
            if now != chain.new and last.end is None and now:
                refs.delete(self._repo, ref, now)
            elif now != chain.new and last.end is not None:
                refs.move(self._repo, ref, now, last.end, last.log, last.who)

    def _ask(self, chains: Sequence[_Chain]) -> tuple[dict[str, str], bool]:
        """The commits that are on their branches, each with the one that it is there as; and
        whether nothing more of the push can land, as a branch is not where it expects it."""
        self._until = 0.0
        try:
            self.refresh([chain.branch for chain in chains])
        except Unreachable as fault:
            named = ", ".join(chain.branch for chain in chains)
            raise InDoubt(
                f"it is unknown if {self.remote} took the push to {named}: {fault.message}",
                f"{fault.hint}; it is asked again by itself",
            ) from None
        landed: dict[str, str] = {}
        for chain in chains:
            landed |= self._landed(chain)
        return landed, any(self.tip(chain.branch) != chain.old for chain in chains)

    def _landed(self, chain: _Chain) -> dict[str, str]:
        tip, repo = self.tip(chain.branch), self._repo
        if tip is None:
            return {}
        there = {commit: commit for commit in chain.commits if repo.is_ancestor(commit, tip)}
        left = [commit for commit in chain.commits if commit not in there]
        if left and not records.is_branch(chain.branch) and tip != chain.old:
            carriers = self._carriers(tip, chain.old)
            for commit in left:
                other = next(filter(None, map(carriers.get, _names(repo.message(commit)))), None)
                if other:
                    there[commit] = other
        return there

    def _carriers(self, tip: str, old: str | None) -> Mapping[tuple[str, str], str]:
        """The commits since `old` that name a batch and its source, by these."""
        hide = old if old and self._repo.resolve_commit(old) else None
        return {
            name: commit.oid
            for commit in self._repo.commits(tip, hide, _MOST_COMMITS)
            for name in _names(commit.message)
        }

    def _why_not(self, answer: PushAnswer, chains: Sequence[_Chain], certain: bool) -> Fault | None:
        """Return the fault of the moves that were not made; None: decide again."""
        if answer.kind == "declined":
            alone = sum(len(chain.commits) or 1 for chain in chains) == 1
            return Declined(answer.words) if alone else None
        if certain:
            return None
        if answer.kind != "unknown":  # where it is stale, and is not: a lock that stays
            return self._left_alone(*self._untaken(answer, *(chain.branch for chain in chains)))
        raise InDoubt(
            f"it is unknown if {self.remote} took the push: {answer.words}",
            "it is pushed again by itself; what has landed lands once",
        )

    def _untaken(self, answer: PushAnswer, *branches: str) -> tuple[str, str]:
        return (
            f"{self.remote} does not take what is pushed: {answer.words}",
            f"let this account push to {', '.join(branches)} on {self.remote}, and see what "
            f"`git push {self.remote}` says",
        )

    def _moved(self, move: BranchMove, landed: Mapping[str, str], fault: Fault | None) -> Moved:
        if move.new is None:
            return Moved(True) if self.tip(move.branch) is None else Moved(False, fault)
        there = {commit: landed[commit] for commit in move.commits if commit in landed}
        if all(there.get(commit) == commit for commit in move.commits):
            return Moved(True)
        return Moved(False, fault, there)


def _chains(moves: Sequence[BranchMove]) -> tuple[list[_Chain], list[BranchMove]]:
    """The moves by their branches, and those that do not go on from the one before, or stand on
    one that does not."""
    chains: dict[str, _Chain] = {}
    lost: list[BranchMove] = []
    broken = set[str | None]()
    for move in moves:
        chain = chains.get(move.branch)
        if not broken.isdisjoint((move.branch, move.behind)):
            pass
        elif chain is None:
            chains[move.branch] = _Chain([move])
            continue
        elif chain.new == move.old:
            chain.moves.append(move)
            continue
        broken.add(move.branch)
        lost.append(move)
    return list(chains.values()), lost


def _names(message: str) -> list[tuple[str, str]]:
    """The batches that a commit's trailers name, each with its source.  Where a person squashed
    several into one, there are as many of both, in the same order."""
    found = trailers(message)
    ids, sources = found.get("Patchq-Batch", []), found.get("Patchq-Source", [])
    return list(zip(ids, sources, strict=False))


def _as_refspec(lane: str) -> str:
    """A pattern of branches as git fetches it: it knows one star."""
    plain = re.match(r"[^*?\[]*", lane)
    head = plain[0] if plain else ""
    if head == lane or (lane.count("*") == 1 and not set("?[") & set(lane)):
        return lane
    return f"{head}*"
