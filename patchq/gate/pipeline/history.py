"""A batch as git remembers it: the trailers of its commit, its refs, the notes on it.

The report tells of a batch as long as it is there, and up to what a person then did by plain git.
Whoever needs to know more asks here: what reconciles reports with branches, fsck, the log without
the queue, and those who meet a batch whose report the queue gave up, or an earlier delivery of its
edits.  Nothing here writes.

The report of a batch that landed stays as it is when a person reverts its commit, or moves the
branch back: `examine` looks at the history first.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any
from weakref import WeakKeyDictionary

from msgspec import Struct

from patchq.core.model.names import suggestion
from patchq.core.model.values import Base, Collision, State
from patchq.core.text import unified
from patchq.core.text.quote import clip, visible
from patchq.gate.errors import ObjectDamaged, UsageError
from patchq.gate.git import records
from patchq.gate.git.merges import fork_of, line_hunks, merge
from patchq.gate.git.objects import Leaf
from patchq.gate.git.refs import ref_names
from patchq.gate.git.repository import Repository
from patchq.gate.pipeline import notes
from patchq.gate.pipeline.context import RepoContext
from patchq.gate.pipeline.lines import Lines, image
from patchq.gate.pipeline.notes import Note
from patchq.gate.queue.engine import StoreQueue
from patchq.gate.report import document, message, secrecy
from patchq.gate.report.schema import (
    LANDED,
    NOTED,
    CommittedReport,
    Report,
    SourceEntry,
    has_commit,
)

_MOST_COMMITS = 1000
_MOST_BASES = 64
_LONGEST_UNKNOWN_ID = 200
_REVERTS = re.compile(r"^This reverts commit ([0-9a-f]{40})\b", re.MULTILINE)
Changes = Mapping[str, tuple[Leaf | None, Leaf | None]]
Walked = tuple[str, Mapping[str, Sequence[str]]]  # a commit and its trailers
# Where a batch is found first, that tells its state; one that landed may have left such a ref.
_STATES: Mapping[str, State] = {
    records.DISCARDED: "discarded",
    records.WAITING: "proposed",
}


class Trace(Struct, frozen=True):
    """A batch that git knows: its commit, and the note on that."""

    id: str
    state: State
    commit: str
    note: Note | None = None


class Sighting(Struct, frozen=True):
    """State of a batch as the repository shows it, with an explanation for people."""

    state: State
    note: str = ""
    commit: str | None = None


# ---------------------------------------------------------------- without a report


def trailers(repo: Repository, commit: str) -> dict[str, list[str]]:
    return message.trailers(repo.message(commit))


def ids(repo: Repository, *prefixes: str) -> set[str]:
    """Return the ids of batches with a ref below one of the prefixes.

    The default is all prefixes that show a state.
    """
    return {
        name.removeprefix(prefix)
        for prefix in prefixes or _STATES
        for name in ref_names(repo.commondir, prefix)
    }


def unknown(context: RepoContext, id: str) -> UsageError:
    """Return the error for an id that has no verdict, or that nothing knows."""
    queue = context.queue
    if isinstance(queue, StoreQueue) and queue.pending(id):
        cure = f"`patchq wait {id}` waits for it; where no daemon runs, `patchq run` gives it"
        return UsageError(f"change {id} has no verdict yet", cure)
    if past := queue.past(id):
        return UsageError(f"change {id} is over: it is {past.state}", f"see `patchq show {id}`")
    name = id.removeprefix(records.branch(""))
    cure = suggestion(name, context.queue.newest(), "`patchq log` lists them")
    return UsageError(f"there is no change {clip(visible(id), _LONGEST_UNKNOWN_ID)}", cure)


def find(context: RepoContext, ids: Collection[str]) -> list[Trace]:
    """Return the batches among these that git knows, by their ids."""
    noted = {note.batch: note for note in notes.each(context)} if ids else {}
    landed = landed_commits(context) if ids else {}
    traces = (_trace(context.repo, id, landed.get(id), noted.get(id)) for id in sorted(ids))
    return [trace for trace in traces if trace]


def _trace(repo: Repository, id: str, landed: str | None, note: Note | None) -> Trace | None:
    decided = note.state if note and note.state in NOTED else None
    if landed and not repo.ref_target(records.WAITING + id):
        return Trace(id, decided or "applied", landed, note)
    for prefix, state in _STATES.items():
        commit = repo.ref_target(prefix + id)
        if commit and repo.resolve_commit(commit):
            later = decided if decided and state != "proposed" else state
            return Trace(id, later, commit, note)
    return None


# The tips of the targets up to which the history was read, and what was found.
_landed: WeakKeyDictionary[Repository, tuple[dict[str, str], dict[str, str]]] = WeakKeyDictionary()


def landed_commits(context: RepoContext) -> Mapping[str, str]:
    """Return the newest commit of each batch, by the trailers in targets' histories.

    The whole history is read once, and then what is new of it.
    """
    repo, before, new = context.repo, None, dict[str, str]()
    tips, found = _landed.get(repo, ({}, {}))
    named = ((name, context.branches.tip(name)) for name in targets(context))
    now = {name: tip for name, tip in named if tip}
    if any(name not in now or not repo.is_ancestor(tip, now[name]) for name, tip in tips.items()):
        tips, found = {}, {}
    for name, tip in now.items():
        for commit in repo.commits(tip, tips.get(name, before)) if tips.get(name) != tip else ():
            known = message.trailers(commit.message) if "Patchq-Batch:" in commit.message else {}
            for id in known.get("Patchq-Batch", ()):
                new.setdefault(id, commit.oid)
        before = tip
    _landed[repo] = now, {**found, **new} if new else found
    return _landed[repo][1]


def last_state(context: RepoContext, id: str) -> State | None:
    """Return the state of a batch that ended and whose report is gone; else None."""
    if past := context.queue.past(id):
        return past.state
    return "discarded" if context.repo.ref_target(records.DISCARDED + id) else None


def is_known(context: RepoContext, id: str) -> bool:
    """Return True if the queue or git knows a batch with this id."""
    return bool(context.queue.load(id) or context.queue.past(id) or find(context, {id}))


def landed(
    context: RepoContext, id: str, sha256: str, target: str | None, tip: str
) -> Report | None:
    """Return a report, made from git, of a batch that is below `tip`.

    Its trailers have to name the response with these bytes.  A refused or discarded batch leaves
    nothing to judge by, so the same bytes are tried again.
    """
    commit = tip and (_carrier(context.repo, id, sha256, tip) or landed_commits(context).get(id))
    named = trailers(context.repo, commit) if commit else {}
    if not commit or f"sha256:{sha256}" not in named.get("Patchq-Source", []):
        return None
    bases = [*named.get("Patchq-Base", []), *context.repo.parents(commit), commit]
    report = Report(
        id=id,
        state=last_state(context, id) or "applied",
        commit=commit,
        target=target,
        source=SourceEntry(name=None, sha256=sha256, bytes=None),
        base=Base(bases[0], None),
    )
    return report if landing(report, context.repo, tip) else None


def targets(context: RepoContext) -> list[str]:
    """Return the branches that batches may be for: the target, and those allowed beside it."""
    allowed = (context.target, *context.config.targets)
    return [
        name for name in context.branches.tips("") if any(fnmatchcase(name, a) for a in allowed)
    ]


# ---------------------------------------------------------------- by a report


def landing(report: Report, repo: Repository, tip: str) -> str | None:
    """Return the commit by which a batch is in the history of `tip`.

    That is its own, or the one that a person made of it by a rebase.
    """
    own = report.commit
    return own if own and repo.is_ancestor(own, tip) else successor(report, repo, tip)


def successor(report: Report, repo: Repository, tip: str) -> str | None:
    """Return the commit since the batch's base that has its trailers: a rebase, or a squash."""
    start = repo.resolve_commit(report.base.commit) if report.base else None
    return _carrier(repo, report.id, report.source.sha256 or "", tip, start)


def _carrier(
    repo: Repository, id: str, sha256: str, tip: str, start: str | None = None
) -> str | None:
    """Return the newest commit since `start` whose trailers name the batch and its source."""
    for commit, named in _walk(repo, tip, start):
        if id in named.get("Patchq-Batch", ()) and f"sha256:{sha256}" in named.get(
            "Patchq-Source", ()
        ):
            return commit
    return None


def squash_of(repo: Repository, own: str, tip: str, below: str | None = None) -> str | None:
    """Return the commit by which a person squashed `own` onto a branch.

    It is a commit of the branch of `tip` since `own` left that, with the same changes and another
    message.  For a batch on top of the commit `below`, the changes count with those below or alone.
    A commit whose trailers name batches does not count.
    """
    start = fork_of(repo, own, tip)
    if start is None or start in (own, tip):
        return None
    starts = [start, below] if below and repo.is_ancestor(below, own) else [start]
    made = [repo.changes(at, own) for at in starts]
    for commit, named in _walk(repo, tip, start):
        if "Patchq-Batch" not in named and any(_makes(repo, commit, own, it) for it in made):
            return commit
    return None


def holds_all(repo: Repository, own: str, landed: str, tip: str) -> bool:
    """Return True if `landed` makes all changes of `own` since its fork.

    The fork is from the branch of `tip`.  With a proposal, those below it were squashed into it.
    """
    start = fork_of(repo, own, tip)
    return start is not None and _makes(repo, landed, own, repo.changes(start, own))


def _makes(repo: Repository, commit: str, own: str, wanted: Changes) -> bool:
    """Return True if a commit makes these changes, or the tree of `own`."""
    parents = repo.parents(commit)
    if len(parents) != 1 or not wanted:
        return False
    (before, after), (path, sides) = map(repo.tree, (*parents, commit)), next(iter(wanted.items()))
    alike = (repo.leaf(before.root, path), repo.leaf(after.root, path)) == sides
    made = alike and repo.changes(parents[0], commit) == wanted
    return made or after.root == repo.tree(own).root


# The commits between tips and bases that were asked for, with their trailers.
_walked: WeakKeyDictionary[Repository, dict[tuple[str, str | None], Sequence[Walked]]] = (
    WeakKeyDictionary()
)


def _walk(repo: Repository, tip: str, start: str | None) -> Sequence[Walked]:
    known = _walked.setdefault(repo, {})
    if len(known) >= _MOST_BASES:  # very many batches may wait
        known.clear()
    if (tip, start) not in known:
        commits = repo.commits(tip, start, _MOST_COMMITS)
        known[tip, start] = [(it.oid, message.trailers(it.message)) for it in commits]
    return known[tip, start]


def waiting(context: RepoContext, ids: Iterable[str] | None = None) -> Iterator[CommittedReport]:
    """Yield the reports of the proposals that have no decision by patchq."""
    repo, prefix = context.repo, records.WAITING
    marked = (prefix + id for id in ids or () if repo.ref_target(prefix + id))
    for name in repo.refs(prefix) if ids is None else marked:
        report = context.queue.load(name.removeprefix(prefix))
        if report is not None and has_commit(report):
            yield report


def observe(context: RepoContext, report: Report) -> Sighting:
    """Return the state of a batch as git shows it now.

    It differs from the report's where a person used plain git, and is the report's where the
    repository cannot tell.
    """
    if report.state != "proposed" or not has_commit(report):
        return Sighting(report.state)
    try:
        return _observed(context, report)
    except ObjectDamaged as damage:
        return Sighting("proposed", f"{damage.code}: {damage.message}; {damage.hint}")


def _observed(context: RepoContext, report: CommittedReport) -> Sighting:
    id, repo, commit = report.id, context.repo, report.commit
    branch, tip = map(context.branches.tip, (records.branch(id), report.target))
    if tip is not None:
        if repo.is_ancestor(branch or commit, tip):
            return Sighting("accepted", "merged by hand", branch or commit)
        below = report.stands_on.commit if report.stands_on else None
        if other := successor(report, repo, tip) or squash_of(repo, branch or commit, tip, below):
            return Sighting("accepted", "landed by hand, as another commit", other)
    if branch is None:
        return Sighting("discarded", "its branch was deleted by hand")
    # While a batch follows its target, the mark that it waits moves before the branch does.
    if branch not in (commit, repo.ref_target(records.WAITING + id)):
        return Sighting("proposed", "its branch was changed by hand", branch)
    return Sighting("proposed")


def examine(context: RepoContext, report: Report) -> Sighting:
    """Return the state as `observe` does, also of a batch that landed.

    It is reverted where a later commit reverts it, or where its commit has left the history (a
    reset, a rebase) with all that it changed.  That takes a look at the history for each batch.
    """
    tip = context.branches.tip(report.target) if report.target else None
    if report.state not in LANDED or not has_commit(report) or tip is None:
        return observe(context, report)
    repo = context.repo
    if commit := landing(report, repo, tip):
        by = undone_by(repo, commit, tip)
        note = f"reverted by hand, commit {by[:12]}" if by else ""
        return Sighting("reverted" if by else report.state, note)
    gone = f"its commit {report.commit[:12]} is not in the history of {report.target} any more"
    start = start_of(repo, report.id, report.commit) if repo.resolve_commit(report.commit) else None
    if start and _changes_nothing(repo, report.commit, tip, start):  # to revert it
        return Sighting("reverted", f"{gone}; `patchq retry {report.id}` decides on it again")
    return Sighting(report.state, f"{gone}; what it changed may still be there")


def _changes_nothing(repo: Repository, commit: str, tip: str, start: str) -> bool:
    own, now, before = (repo.tree(oid).root for oid in (commit, tip, start))
    return merge(repo, own, now, before).tree == now


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
            trailers(repo, commit).get("Patchq-Batch", []),
            repo.parents(commit),
        )
        if len(parents) != 1 or len(named) > 1:
            break
        commit = parents[0]
        if named == [id]:
            return commit
    return None


def as_changed(context: RepoContext, report: CommittedReport, commit: str) -> dict[str, Any]:
    """Return the report's fields of a batch whose `commit` a person has changed."""
    repo, own = context.repo, report.commit
    on_top = repo.resolve_commit(own) is not None and repo.is_ancestor(own, commit)
    parents = repo.parents(own if on_top else commit)
    diff = unified.unified(repo.file_changes(parents[0], commit)) if parents else ""
    return {
        "commit": commit,
        "tree": repo.tree(commit).root,
        "message": message.subject(repo.message(commit)),
        "size": document.size(diff),
        "diff": secrecy.without(diff),
    }


# ---------------------------------------------------------------- deliveries and collisions


def touched_paths(repo: Repository, commit: str, tip: str) -> list[str]:
    """Return the paths where the tip has changed a commit's changed lines again."""
    parents = repo.parents(commit)
    if not parents:
        return []
    return sorted(
        path
        for path in set(repo.changes(parents[0], commit)) & set(repo.changes(commit, tip))
        if _meet(*(repo.tree(oid).text(path) for oid in (parents[0], commit, tip)))
    )


def _meet(before: bytes | None, landed: bytes | None, now: bytes | None) -> bool:
    if before is None or landed is None or now is None:
        return landed != now
    ours = [(b0, b1) for _, _, b0, b1 in line_hunks(before, landed)]
    theirs = [(a0, a1) for a0, a1, _, _ in line_hunks(landed, now)]
    return any(
        (a0 < b1 and b0 < a1) or (a0, a1) == (b0, b1) for a0, a1 in theirs for b0, b1 in ours
    )


def collides_with(
    repo: Repository, base: str, tip: str, path: str, lines: Lines | None = None
) -> Collision:
    """Return the newest commit that changed the path, with its batch and agent.

    It is between `base` and `tip`; with `lines` of the tip, the newest that changed these.
    """
    commit = _toucher(repo, base, tip, path, lines) if lines else None
    commit = commit or next(repo.touching(tip, base, path), None)
    if commit is None:
        return Collision(path=path)
    named = trailers(repo, commit)
    agents = named.get("Assisted-by", [])
    return Collision(
        batch=next(iter(named.get("Patchq-Batch", [])), None),
        commit=commit,
        agent=agents[0].partition(":")[0] if agents else None,
        path=path,
    )


def _toucher(repo: Repository, base: str, tip: str, path: str, lines: Lines) -> str | None:
    for commit in repo.touching(tip, base, path):
        parents = repo.parents(commit)
        before = repo.tree(parents[0]).text(path) if parents else None
        landed = repo.tree(commit).text(path)
        if before is None or landed is None:
            return commit
        hunks = line_hunks(before, landed)
        if any(b0 <= lines[1] and lines[0] <= b1 for _, _, b0, b1 in hunks):
            return commit
        lines = image(lines, [(b0, b1, a0, a1) for a0, a1, b0, b1 in hunks])
    return None


def commit_in_words(collision: Collision) -> str:
    if collision.commit is None:
        return "another line of history"
    by = f" by {collision.agent}" if collision.agent else ""
    batch = f" (change {collision.batch}{by})" if collision.batch else ""
    return f"commit {collision.commit[:12]}{batch}"


def last_touch(repo: Repository, tip: str, path: str) -> str:
    """Return the newest commit that touched the path, as the end of a sentence."""
    commit = next(repo.touching(tip, None, path), None)
    if commit is None:
        return ""
    return f"; it was last touched by {commit[:12]} ({message.subject(repo.message(commit))[:60]})"
