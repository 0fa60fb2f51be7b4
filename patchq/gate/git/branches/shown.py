"""Targets on a forge's remote, and local proposals of which it shows copies.

A proposal's branch follows its target all the time.  Its copy moves only where its content
changed, as each push dismisses approvals and starts checks.  `refs/patchq/published/<remote>/` has
what was pushed of each copy, in its reflog: whatever else the remote has is a person's.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence

from patchq.gate.errors import Fault
from patchq.gate.git import records, refs
from patchq.gate.git.branches import Branches, BranchMove, Moved
from patchq.gate.git.branches.remote import Remote, RemoteBranches
from patchq.gate.git.checkout import Checkout
from patchq.gate.git.objects import Identity
from patchq.gate.git.repository import Repository
from patchq.gate.report.message import trailers

_LOG = logging.getLogger("patchq")


class Copies:
    """The copies of proposals on the remote, by their root.

    A root is the first id of a line of answers.
    """

    def __init__(self, repo: Repository, remote: str, seconds: float) -> None:
        self._repo, self._remote = repo, Remote(repo, remote, seconds)
        self._place = f"{records.PUBLISHED}{remote}/"
        self._tracking = f"{records.REMOTES}{remote}/"

    def there(self, root: str) -> str | None:
        return self._repo.ref_target(self._tracking + records.branch(root))

    def published(self) -> dict[str, str]:
        found = self._repo.refs(self._place)
        return {name.removeprefix(self._place): commit for name, commit in found.items()}

    def pushed(self, root: str) -> set[str]:
        """Return all commits that were pushed of a copy, or were about to be."""
        name = self._place + root
        log = self._repo.commondir / "logs" / name
        lines = log.read_text(errors="replace").splitlines() if log.is_file() else []
        last = self._repo.ref_target(name)
        return {line.split(" ", 2)[1] for line in lines} | ({last} if last else set())

    def push(self, commits: Mapping[str, str | None], who: Identity) -> str | None:
        """Move all of these copies, or none, and return the error, if any.

        None takes a copy away.
        """
        moves = dict[str, tuple[str | None, str | None]]()
        for root, commit in commits.items():
            moves[records.BRANCHES + root] = self.there(root), commit
            if commit:  # before the push, so that a crash between the two is none
                self._put(self._place + root, commit, who)
        answer = self._remote.push(moves)
        if answer.kind != "made":
            return answer.words
        for root, commit in commits.items():
            self._put(self._tracking + records.branch(root), commit, who)
            if commit is None:
                self.forget(root, who)
        return None

    def forget(self, root: str, who: Identity) -> None:
        self._put(self._place + root, None, who)

    def _put(self, name: str, commit: str | None, who: Identity) -> None:
        refs.put(self._repo, name, commit, "patchq: publish", who)


class ShownBranches(RemoteBranches):
    """`Branches` with targets on a remote, and proposals in this repository."""

    def __init__(
        self,
        repo: Repository,
        name: str,
        lanes: Sequence[str],
        seconds: float,
        note: Callable[[Fault | None], None],
    ) -> None:
        super().__init__(repo, name, lanes, seconds, note)
        self._own, self._copies = Branches(repo), Copies(repo, name, seconds)

    def tip(self, branch: str) -> str | None:
        return self._own.tip(branch) if records.is_branch(branch) else super().tip(branch)

    def tips(self, prefix: str) -> dict[str, str]:
        if records.is_branch(prefix):
            return self._own.tips(prefix)
        there = super().tips(prefix)
        return {name: tip for name, tip in there.items() if not records.is_branch(name)}

    def name(self, branch: str) -> str:
        return branch if records.is_branch(branch) else super().name(branch)

    def checkouts(self, branch: str) -> list[Checkout]:
        return self._own.checkouts(branch) if records.is_branch(branch) else []

    def busy(self, branch: str) -> str | None:
        return self._own.busy(branch) if records.is_branch(branch) else None

    def try_out(self, branch: str) -> None:
        if not records.is_branch(branch):
            super().try_out(branch)

    def land(self, moves: Sequence[BranchMove]) -> list[Moved]:
        """Move targets, behind the copies of what lands; then move proposals."""
        shared = [move for move in moves if not records.is_branch(move.branch)]
        self._lead(shared)
        outcome = dict(zip(map(id, shared), super().land(shared), strict=True))
        lost = {move.branch for move in shared if not outcome[id(move)].made}
        for move in moves:
            if id(move) not in outcome:
                on_lost = move.behind in lost
                outcome[id(move)] = Moved(False) if on_lost else self._own.land([move])[0]
        return [outcome[id(move)] for move in moves]

    def _lead(self, moves: Sequence[BranchMove]) -> None:
        """Move copies to the commits that land, so the forge sees them merged."""
        roots = {
            batch: root
            for root, commit in self._copies.published().items()
            if self._repo.resolve_commit(commit)
            for batch in trailers(self._repo.message(commit)).get("Patchq-Batch", [])
        }
        go = dict[str, str | None]()
        for commit in (commit for move in moves for commit in move.commits):
            for batch in trailers(self._repo.message(commit)).get("Patchq-Batch", []):
                root = roots.get(batch)
                if root and self._copies.there(root) in self._copies.pushed(root):
                    go[root] = commit
        go = {root: commit for root, commit in go.items() if self._copies.there(root) != commit}
        if go and (why := self._copies.push(go, moves[0].who)):
            _LOG.info("copies of proposals stay where they are: %s", why)
