"""A batch after its landing: still on its target, or taken back by plain git.

The report of a batch that landed stays as it is when a person reverts its commit, or moves the
branch back.  Whoever is to decide on one such batch looks at the history first.
"""

from __future__ import annotations

import re

from patchq.gate.git.merges import merge
from patchq.gate.git.repository import Repository
from patchq.gate.pipeline import history
from patchq.gate.pipeline.context import RepoContext
from patchq.gate.report.schema import LANDED, Report, has_commit

_REVERTS = re.compile(r"^This reverts commit ([0-9a-f]{40})\b", re.MULTILINE)
_MOST_COMMITS = 1000


def examine(context: RepoContext, report: Report) -> history.Sighting:
    """Return the state as `history.observe` does, also of a batch that landed.

    It is reverted where a later commit reverts it, or where its commit has left the history (a
    reset, a rebase) with all that it changed.  That takes a look at the history for each batch.
    """
    tip = context.branches.tip(report.target) if report.target else None
    if report.state not in LANDED or not has_commit(report) or tip is None:
        return history.observe(context, report)
    repo = context.repo
    if commit := history.landing(report, repo, tip):
        by = undone_by(repo, commit, tip)
        note = f"reverted by hand, commit {by[:12]}" if by else ""
        return history.Sighting("reverted" if by else report.state, note)
    gone = f"its commit {report.commit[:12]} is not in the history of {report.target} any more"
    start = start_of(repo, report.id, report.commit) if repo.resolve_commit(report.commit) else None
    roots = [repo.tree(oid).root for oid in (report.commit, tip, start) if oid]
    # To revert it would change nothing.
    if start and merge(repo, *roots).tree == roots[1]:
        return history.Sighting(
            "reverted", f"{gone}; `patchq retry {report.id}` decides on it again"
        )
    return history.Sighting(report.state, f"{gone}; what it changed may still be there")


def undone_by(repo: Repository, commit: str, tip: str) -> str | None:
    """Return the later commit that reverts this one, and was not reverted itself."""
    void: set[str] = set()
    for later in repo.commits(tip, commit, _MOST_COMMITS):
        for reverted in () if later.oid in void else _REVERTS.findall(later.message):
            if reverted == commit:
                return later.oid
            void.add(reverted)
    return None


def start_of(repo: Repository, id: str, commit: str) -> str | None:
    """Return the parent of the batch's own commit; None where that holds more.

    Commits that a person put on top are passed over.
    """
    for _ in range(_MOST_COMMITS):
        named, parents = (
            history.trailers(repo, commit).get("Patchq-Batch", []),
            repo.parents(commit),
        )
        if len(parents) != 1 or len(named) > 1:
            break
        commit = parents[0]
        if named == [id]:
            return commit
    return None
