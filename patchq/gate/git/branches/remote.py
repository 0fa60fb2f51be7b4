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
intended verdict (`land.landing.finish`), until the remote has answered.

Fetched are git's own remote-tracking refs.  The branches of this repository and its work
trees stay as they are.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from time import monotonic
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from patchq.gate.errors import Declined, Fault, InDoubt, Unreachable
from patchq.gate.git import records, refs
from patchq.gate.git.branches import Branches, BranchMove, Moved
from patchq.gate.git.checkout import Checkout
from patchq.gate.git.command import MOST_WORDS, Done, redacted, remotely
from patchq.gate.git.repository import Repository
from patchq.gate.report.message import trailers

_LOG = logging.getLogger("patchq")
# Seconds until a remote that was away, or refused everything, is asked again; they double.
_FIRST_REST, _LONGEST_REST = 2.0, 60.0
_TRIES = 4
_MOST_COMMITS = 1000
_LOCKED = re.compile(r"cannot lock ref|unable to update local ref|failed to lock|File exists")
Ref = tuple[str | None, str | None]


# Answers to a push: everything moved; a branch was not where it was thought to be; a hook there
# refused it; the remote takes nothing of the kind; it was never reached; or that is unknown.
Kind = Literal["made", "stale", "declined", "refused", "unsent", "unknown"]

_STALE = re.compile(
    r"^\[rejected\]|failed to update ref|cannot lock ref|incorrect old value|reference already|"
    r"failed to lock|unable to (lock|resolve)|atomic|fetch first"
)
_DECLINED = re.compile(r"hook declined")
_NOT_PERMITTED = re.compile(
    r"(?i)protected branch|not allowed to|permission|denied|unauthori[sz]ed|forbidden|read.?only|"
    r"archived|quota"
)
_UNSENT = re.compile(
    r"(?i)could not resolve|couldn't resolve|failed to connect|couldn't connect|"
    r"connection (refused|timed out)|no route to host|network is unreachable|"
    r"does not appear to be a git repository|repository .*not found|no such remote|"
    r"unable to access|authentication failed|could not read (username|password)|"
    r"permission denied|permission to .* denied|access denied|host key verification|"
    r"does not support --atomic|terminal prompts disabled|dubious ownership|"
    r"returned error: 4\d\d"
)
# Git's words where the connection ended on the way.
_CUT_OFF = re.compile(r"(?i)hung up|disconnect|early eof|rpc failed|broken pipe|reset by peer")


class PushAnswer(Struct, frozen=True):
    kind: Kind
    words: str = ""


class Remote:
    def __init__(self, repo: Repository, name: str, seconds: float) -> None:
        self.name = name
        place = repo.workdir or repo.commondir
        self._git = remotely(place, repo.setting("core.sshCommand"), seconds)

    def fetch(self, refspecs: Sequence[str]) -> Done:
        """Update the remote-tracking refs, and delete those of branches that are gone."""
        return self._git.run(
            "fetch",
            *("--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules"),
            *("--no-show-forced-updates", "--refmap=", "--prune", self.name, *refspecs),
        )

    def push(self, moves: Mapping[str, tuple[str | None, str | None]], *options: str) -> PushAnswer:
        """Move all of these refs (full name -> old and new), or none."""
        leases = (f"--force-with-lease={ref}:{old or ''}" for ref, (old, _) in moves.items())
        specs = (f"{new or ''}:{ref}" for ref, (_, new) in moves.items())
        return _answer(
            self._git.run(
                *("-c", f"remote.{self.name}.mirror=false"),
                "push",
                *("--porcelain", "--atomic", "--no-verify", "--recurse-submodules=no"),
                *options,
                *leases,
                self.name,
                *specs,
            ),
            moves,
        )


def _answer(done: Done, moves: Mapping[str, object]) -> PushAnswer:
    answers = dict[str, tuple[str, str]]()
    for line in done.out.decode("utf-8", "replace").splitlines():
        flag, _, rest = line.partition("\t")
        spec, _, summary = rest.partition("\t")
        if len(flag) == 1 and (ref := spec.partition(":")[2]) in moves:
            answers[ref] = flag, summary
    reasons = [summary for flag, summary in answers.values() if flag == "!"]
    if done.code == 0 and answers.keys() == moves.keys() and not reasons:
        return PushAnswer("made")
    words = done.words
    if done.code is None or not reasons:
        sent = (
            done.code is None
            or _CUT_OFF.search(done.complaint)
            or not _UNSENT.search(done.complaint)
        )
        return PushAnswer("unknown" if sent else "unsent", words)
    others = [reason for reason in reasons if not _STALE.search(reason)]
    if not others:
        return PushAnswer("stale", words)
    named = "; ".join(dict.fromkeys(others))
    text = redacted(f"{words} ({named})" if words not in named else named)[:MOST_WORDS]
    if _DECLINED.search(named) and not _NOT_PERMITTED.search(f"{named} {words}"):
        return PushAnswer("declined", text)
    return PushAnswer("refused", text)


class RemoteBranches(Branches):
    """`Branches` on the remote `name`.

    `lanes` are the names, or patterns with `*`, of branches that are fetched beside the
    proposals, the default target first. `note` gets the reason why the remote cannot be used,
    and None once it can."""

    away: Unreachable | None = None

    def __init__(
        self,
        repo: Repository,
        name: str,
        lanes: Sequence[str],
        seconds: float,
        note: Callable[[Fault | None], None] = lambda fault: None,
    ) -> None:
        super().__init__(repo)
        self.remote, self._remote = name, Remote(repo, name, seconds)
        self._lanes = list(dict.fromkeys(lanes))
        self._note = note
        self._noted: str | None = None
        self._until = self._rest = 0.0
        self._known = 0.0  # when the remote was last asked for all of it

    # ------------------------------------------------------------ what is known

    def tip(self, branch: str) -> str | None:
        return self._repo.tip(self._tracking(branch))

    def tips(self, prefix: str) -> dict[str, str]:
        place = f"{records.REMOTES}{self.remote}/"
        found = self._repo.refs(place + prefix)
        return {name.removeprefix(place): tip for name, tip in found.items()}

    def checkouts(self, branch: str) -> list[Checkout]:
        return []

    def busy(self, branch: str) -> str | None:
        return None

    def _tracking(self, branch: str) -> str:
        return f"{records.REMOTES}{self.remote}/{branch}"

    # ------------------------------------------------------------ fetching

    def refresh(self, lanes: Collection[str] | None = None, within: float = 0.0) -> None:
        began = monotonic()
        if self.away is not None and began < self._until:
            raise self.away
        if self.away is None and within and began - self._known < within:
            return
        if lanes is None or not self._known:
            self._fetch(self._lanes)
            self._known = began
        else:
            self._fetch(list(lanes))
        self.away = None
        self._say(None)

    def _fetch(self, lanes: Sequence[str]) -> None:
        if not self._repo.setting(f"remote.{self.remote}.url"):
            raise self._left_alone(
                f"there is no remote `{self.remote}` in this repository, which `landing.remote` "
                "names",
                f"git remote add {self.remote} URL, or correct `landing.remote`",
            )
        for _ in range(_TRIES):
            done = self._remote.fetch(self._refspecs(lanes))
            if done.code == 0:
                return
            if not _LOCKED.search(done.complaint):
                break
            lanes = self._lanes  # what is in the way may be of a branch that is gone there
        raise self._left_alone(
            f"{self.remote} cannot be fetched: {done.words}",
            f"see what `git fetch {self.remote}` says",
        )

    def _refspecs(self, lanes: Sequence[str]) -> list[str]:
        """Return what to fetch: patterns, as the remote may lack all but the default target."""
        patterns = {lane: re.split(r"[*?\[]", lane, maxsplit=1)[0] + "*" for lane in lanes}
        for default in self._lanes[:1]:
            if patterns.get(default) == f"{default}*":
                patterns[default] = default
        named = [patterns[lane] for lane in lanes if not records.is_branch(lane)]
        wanted = dict.fromkeys([*named, records.branch("*")])
        return [f"+refs/heads/{name}:{self._tracking(name)}" for name in wanted]

    def _left_alone(self, message: str, cure: str) -> Unreachable:
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
        """Make all moves by one push, or none.

        Those that do not follow each other are lost.
        """
        chains, lost = _chains(moves)
        if self.away is not None and monotonic() < self._until:
            return [Moved(False, self.away) for _ in moves]
        if not chains:
            return [Moved(False) for _ in moves]
        for _ in range(2):
            answer = self._push(chains)
            if answer.kind == "made":
                return [Moved(move not in lost) for move in moves]
            landed, certain = self._ask(chains)
            if answer.kind != "unknown" or certain:
                break
            # The same again: where the first is on its way still, one of the two is refused.
        fault = self._why_not(answer, chains, certain)
        return [self._moved(move, landed, fault) for move in moves]

    def try_out(self, branch: str) -> None:
        tip = self.tip(branch)
        answer = self._remote.push({f"refs/heads/{branch}": (tip, tip)}, "--dry-run")
        if tip and answer.kind not in ("made", "stale"):
            raise Unreachable(*self._untaken(answer, branch))

    def _push(self, chains: Sequence[BranchMove]) -> PushAnswer:
        wanted: dict[str, Ref] = {
            f"refs/heads/{chain.branch}": (chain.old, chain.new) for chain in chains
        }
        began = monotonic()
        answer = self._remote.push(wanted)
        if answer.kind == "made":
            self.seconds = monotonic() - began
            self._rest, self.away = 0.0, None
            for chain in chains:
                self._follow(chain)
            self._say(None)
        else:
            _LOG.info("pushing to %s: %s: %s", self.remote, answer.kind, answer.words)
        return answer

    def _follow(self, chain: BranchMove) -> None:
        """Set the remote-tracking ref to the branch after the push.

        Git does that by itself where it is configured to fetch the branch; and the next fetch
        would."""
        with suppress(Fault):
            refs.put(self._repo, self._tracking(chain.branch), chain.new, chain.log, chain.who)

    def _ask(self, chains: Sequence[BranchMove]) -> tuple[dict[str, str], bool]:
        """Return the landed commits, and True if no more of the push can land.

        Each commit maps to the one that carries it on its branch.  No more can land if a branch is
        not where the push expects it.  Raises `InDoubt` if the remote cannot be reached.
        """
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

    def _landed(self, chain: BranchMove) -> dict[str, str]:
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
        hide = old if old and self._repo.resolve_commit(old) else None
        return {
            name: commit.oid
            for commit in self._repo.commits(tip, hide, _MOST_COMMITS)
            for name in _names(commit.message)
        }

    def _why_not(
        self, answer: PushAnswer, chains: Sequence[BranchMove], certain: bool
    ) -> Fault | None:
        """Return the fault of the moves that were not made; None: decide again."""
        if answer.kind == "declined":
            alone = sum(len(chain.commits) for chain in chains) <= 1
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


def _chains(moves: Sequence[BranchMove]) -> tuple[list[BranchMove], list[BranchMove]]:
    """Return the moves, joined by branch, and those that cannot follow.

    A move cannot follow where the one before it ended elsewhere, or where it is built on one that
    cannot.
    """
    chains: dict[str, BranchMove] = {}
    lost: list[BranchMove] = []
    for move in moves:
        chain = chains.get(move.branch)
        broken = {one.branch for one in lost}
        if {move.branch, move.behind} & broken or (chain and chain.new != move.old):
            lost.append(move)
        elif chain is None:
            chains[move.branch] = move
        else:
            through = [*((commit, chain.log) for commit in chain.commits), *move.through]
            chains[move.branch] = replace(move, old=chain.old, through=through)
    return list(chains.values()), lost


def _names(message: str) -> list[tuple[str, str]]:
    """Return the batches that a commit's trailers name, each with its source.

    Where a person squashed several into one, there are as many of both, in the same order.
    """
    found = trailers(message)
    ids, sources = found.get("Patchq-Batch", []), found.get("Patchq-Source", [])
    return list(zip(ids, sources, strict=False))
