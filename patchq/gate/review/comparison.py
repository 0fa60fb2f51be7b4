"""What a person compares before a decision, read from the repository: risk, and both sides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from patchq.core.model.values import FileChange, LineHunk
from patchq.gate.errors import Fault
from patchq.gate.git import records
from patchq.gate.git.merges import line_hunks, with_renames
from patchq.gate.pipeline.context import RepoContext
from patchq.gate.report.schema import Report
from patchq.gate.review import risk, rows
from patchq.gate.review.risk import Risk
from patchq.gate.review.rows import FileRows

_MOST_COMMITS = 200
"""The age of a base is counted up to this."""


def risk_of(context: RepoContext, report: Report) -> Risk:
    """The risk of a batch, as its target stands now."""
    return risk.risk(report, _behind(context, report))


def _behind(context: RepoContext, report: Report) -> int | None:
    """How many commits the target has that the batch's base has not; None where nobody knows."""
    base, repo = report.base, context.repo
    tip = context.branches.tip(report.target) if report.target else None
    if base is None or tip is None:
        return None
    if tip == base.commit:
        return 0
    try:
        if not repo.exists(base.commit):
            return None
        return sum(1 for _ in repo.commits(tip, base.commit, _MOST_COMMITS))
    except Fault:
        return None


class Comparison(Struct, frozen=True):
    """What the commit of a batch changes, and what changed in these files before that, since the
    base on which the report counts its edits' lines."""

    commit: str
    changes: tuple[FileChange, ...]
    since: Mapping[str, Sequence[LineHunk]]


def compare(context: RepoContext, report: Report) -> Comparison | None:
    """What a batch changes, with what a person has added to a branch that waits; None where its
    commit is not there any more."""
    repo, commit = context.repo, report.commit
    if commit is None or not repo.exists(commit):
        return None
    parent = next(iter(repo.parents(commit)), None)
    if parent is None:
        return None
    if report.state == "proposed":
        commit = context.branches.tip(records.branch(report.id)) or commit
    changes = with_renames(repo, repo.file_changes(parent, commit), parent, commit)
    base = report.base.commit if report.base else parent
    since = {}
    if base != parent and repo.exists(base):
        before, now = repo.tree(base), repo.tree(parent)
        for change in changes:
            path = change.renamed_from or change.path
            if change.before is not None and before.entry(path) and now.entry(path):
                since[path] = line_hunks(before.read(path), change.before)
    return Comparison(commit, changes, since)


def rows_of(
    context: RepoContext, report: Report
) -> tuple[tuple[FileRows, ...], tuple[FileChange, ...]]:
    """Both sides of what a batch changes, in rows and whole; nothing where its commit is gone."""
    found = compare(context, report)
    if found is None:
        return (), ()
    return rows.side_by_side(report, found.changes, found.since), found.changes
