"""Both sides of a change, and its earlier rounds, read from the repository."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from patchq.core.model.values import FileChange, LineHunk
from patchq.gate.git import records
from patchq.gate.git.merges import line_hunks, merged_files, with_renames
from patchq.gate.pipeline.context import RepoContext
from patchq.gate.report.schema import CommittedReport, Report, has_commit

_MOST_ROUNDS = 50


class Comparison(Struct, frozen=True):
    """The changes of a batch's commit, and of its files before that.

    The latter since the base on which the report counts its edits' lines.
    """

    commit: str
    changes: tuple[FileChange, ...]
    since: Mapping[str, Sequence[LineHunk]]
    conflicts: frozenset[str] = frozenset()
    """Of a comparison with an earlier round: the files that are shown against its result, as what
    the target changed meanwhile cannot be taken out."""


def rounds(context: RepoContext, report: Report) -> list[CommittedReport]:
    """Return the proposals that a change answers, one after the other, the first of them first."""
    found: list[CommittedReport] = []
    at: Report | None = report
    while at and at.retry.of and len(found) < _MOST_ROUNDS:
        at = context.queue.load(at.retry.of)
        if at and has_commit(at) and context.repo.exists(at.commit) and at.id != report.id:
            found.append(at)
    return found[::-1]


def since(context: RepoContext, report: Report, earlier: CommittedReport) -> Comparison | None:
    """Return what a change has beside an earlier round, but for what came with its target.

    The earlier result is merged onto the parent of the later one, and compared with that.
    """
    repo, now, before = context.repo, compare(context, report), compare(context, earlier)
    if now is None or before is None:
        return None
    parents = (next(iter(repo.parents(commit))) for commit in (before.commit, now.commit))
    base, ours = (repo.tree(parent).root for parent in parents)
    touched = {path for one in (*before.changes, *now.changes) for path in one.paths}
    changes, conflicts = merged_files(
        repo, (base, ours, repo.tree(before.commit).root), now.commit, touched
    )
    return Comparison(now.commit, changes, {}, conflicts)


def compare(context: RepoContext, report: Report) -> Comparison | None:
    """Return the changes of a batch, with commits that a person added to its branch.

    None where its commit is not there any more.
    """
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
