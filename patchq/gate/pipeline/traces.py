"""What git remembers of a batch: the trailers of its commit, its refs, the notes on it, reflogs.

The report tells of a batch as long as it is there, and up to what a person then did by plain git.
Whoever needs to know more asks here: recovery after a crash, what reconciles reports with branches,
fsck, the log without the queue, and those who meet a batch whose report the queue gave up.  Nothing
here writes.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from msgspec import Struct

from patchq.core.model.names import batch_id, nearest
from patchq.core.model.values import Base, Header, State
from patchq.core.text import unified
from patchq.core.text.quote import clip, visible
from patchq.gate.errors import ObjectDamaged, UsageError
from patchq.gate.git import records
from patchq.gate.git.merges import fork_of
from patchq.gate.git.objects import CommitInfo, Leaf
from patchq.gate.git.reffiles import heads, ref_names
from patchq.gate.git.repository import Repository
from patchq.gate.pipeline import notes
from patchq.gate.pipeline.context import RepoContext
from patchq.gate.pipeline.notes import Note
from patchq.gate.report import diff_size, message, secrecy
from patchq.gate.report.schema import (
    COMMITTED,
    LANDED,
    NOTED,
    WAITING,
    CommittedReport,
    Delivery,
    Report,
    SourceEntry,
    has_commit,
    waits_for_its_agent,
)

_MOST_COMMITS = 1000
_MOST_SHOWN = 200
"""Characters of an id that nobody knows."""
_MOST_BASES = 64
_MOST_CHANGED, _MOST_PATHS = 1024, 500
"""Commits whose changes are remembered, and the files of each; a batch changes fewer."""
Changes = Mapping[str, tuple[Leaf | None, Leaf | None]]
# Where a batch is found first, that tells its state; one that landed may have left such a ref.
_STATES: Mapping[str, State] = {
    records.DISCARDED: "discarded",
    records.WAITING: "proposed",
    records.BRANCHES: "proposed",
}


class Trace(Struct, frozen=True):
    """A batch that git knows: its commit, and the note on that."""

    id: str
    state: State
    commit: str
    note: Note | None = None


class Sighting(Struct, frozen=True):
    """The state of a batch as the repository shows it, and how it came to it, for people."""

    state: State
    note: str = ""
    commit: str | None = None


# ---------------------------------------------------------------- without a report


def trailers(repo: Repository, commit: str) -> dict[str, list[str]]:
    """The trailers of a commit's message by their keys."""
    return message.trailers(repo.message(commit))


def batches(commit: CommitInfo) -> list[str]:
    """The batches that a commit's trailers name."""
    return message.trailers(commit.message).get("Patchq-Batch", [])


def ids(repo: Repository, *prefixes: str) -> set[str]:
    """The ids of the batches that have a ref below one of the prefixes; without any, below all."""
    return {
        name.removeprefix(prefix)
        for prefix in prefixes or _STATES
        for name in ref_names(repo.commondir, prefix)
    }


def unknown(context: RepoContext, id: str) -> UsageError:
    """What to say of an id that neither the queue nor git knows."""
    near = nearest(id.removeprefix(records.branch("")), context.queue.ids())
    cure = f"did you mean `{near}`?" if near else "see `patchq log`"
    return UsageError(f"there is no batch {clip(visible(id), _MOST_SHOWN)}", cure)


def find(context: RepoContext, ids: Collection[str]) -> list[Trace]:
    """The batches among these that git knows, by their ids."""
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
        if commit is None or repo.resolve_commit(commit) is None:
            continue
        if prefix == records.BRANCHES and id not in trailers(repo, commit).get("Patchq-Batch", []):
            continue  # a person's own branch
        later = decided if decided and state != "proposed" else state
        return Trace(id, later, commit, note)
    return None


_landed: WeakKeyDictionary[Repository, tuple[dict[str, str], dict[str, str]]] = WeakKeyDictionary()
"""The tips of the targets up to which the history was read, and what was found."""


def landed_commits(context: RepoContext) -> Mapping[str, str]:
    """Return the newest commit of each batch that trailers in the history of a target name.

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
            for id in batches(commit) if "Patchq-Batch:" in commit.message else ():
                new.setdefault(id, commit.oid)
        before = tip
    _landed[repo] = now, {**found, **new} if new else found
    return _landed[repo][1]


def last_state(context: RepoContext, id: str) -> State | None:
    """The state of a batch that landed once, or waited and was discarded; None for any other."""
    past = context.queue.past(id)
    ended = past.state if past and past.state in LANDED | NOTED else None
    if not ended and not context.repo.ref_target(records.DISCARDED + id):
        return None
    of = (note.state for note in notes.each(context) if note.batch == id)
    noted = (state for state in of if state in NOTED)
    state = next(noted, ended or "discarded")
    return "discarded" if state == "superseded" else state


def is_known(context: RepoContext, id: str) -> bool:
    """Whether a batch with this id got a verdict, or waits for it, or is known to git alone."""
    return bool(context.queue.load(id) or context.queue.past(id) or find(context, {id}))


def landed(
    context: RepoContext, id: str, sha256: str, target: str | None, tip: str
) -> Delivery | None:
    """What a report on the batch would say now, as far as `history.standing` asks, if these bytes
    landed as the batch and are in the history of `tip`; else None.

    A refused or discarded batch leaves nothing to judge by, so the same bytes are tried again then,
    which is what their agent asked for.
    """
    commit = tip and (_carrier(context.repo, id, sha256, tip) or landed_commits(context).get(id))
    named = trailers(context.repo, commit) if commit else {}
    if not commit or f"sha256:{sha256}" not in named.get("Patchq-Source", []):
        return None
    bases = [*named.get("Patchq-Base", []), *context.repo.parents(commit), commit]
    report = Delivery(
        id=id,
        state=last_state(context, id) or "applied",
        commit=commit,
        target=target,
        source=SourceEntry(name=None, sha256=sha256, bytes=None),
        base=Base(bases[0], None),
    )
    return report if landing(report, context.repo, tip) else None


def targets(context: RepoContext) -> list[str]:
    """The branches that batches may be for: the configured target, and those allowed beside it."""
    allowed = (context.target, *context.config.targets)
    return [
        name for name in context.branches.tips("") if any(fnmatchcase(name, a) for a in allowed)
    ]


def commits(context: RepoContext, branches: Iterable[str]) -> Iterator[tuple[str, CommitInfo]]:
    """The commits of these branches, each with the branch, the newest first; those that the branch
    before has as well come once."""
    before = None
    for name in branches:
        tip = context.branches.tip(name)
        if tip is not None:
            for commit in context.repo.commits(tip, before):
                yield name, commit
            before = tip


# ---------------------------------------------------------------- by a report


def landing(report: Report | Delivery, repo: Repository, tip: str) -> str | None:
    """The commit by which a batch is in the history of `tip`: its own, or the one that a person
    made of it by a rebase."""
    own = report.commit
    return own if own and repo.is_ancestor(own, tip) else successor(report, repo, tip)


def successor(report: Report | Delivery, repo: Repository, tip: str) -> str | None:
    """The commit between the batch's base and `tip` that carries the batch's trailers: a person
    rebased or squashed its branch."""
    base = report.base
    start = repo.resolve_commit(base.commit) if base else None
    return _carrier(repo, report.id, report.source.sha256 or "", tip, start)


def _carrier(
    repo: Repository, id: str, sha256: str, tip: str, start: str | None = None
) -> str | None:
    """The newest commit between `start` and `tip` whose trailers name the batch and its source."""
    named = _walk(repo, tip, start).carriers.get(id, ())
    return next((commit for commit, sources in named if f"sha256:{sha256}" in sources), None)


def alike(repo: Repository, own: str, tip: str, below: str | None = None) -> str | None:
    """The commit since `own` left the branch of `tip` that makes of it the same tree, or the same
    files of the same files: a person squashed it, and wrote another message; of one that stands
    on the commit `below`, what that has with it or alone.

    What names batches in its trailers is these batches'.
    """
    start = fork_of(repo, own, tip)
    if start in (None, own, tip):
        return None
    assert start is not None
    plain = _walk(repo, tip, start).plain
    if not plain or not (wanted := repo.changes(start, own)):
        return None
    root, made = repo.tree(own).root, [wanted]
    if below and repo.is_ancestor(below, own):
        made.append(repo.changes(below, own))
    for commit in plain:
        parents = repo.parents(commit)
        if len(parents) == 1 and (
            repo.tree(commit).root == root or _changes(repo, parents[0], commit) in made
        ):
            return commit
    return None


def holds_all(repo: Repository, own: str, landed: str, tip: str) -> bool:
    """Whether the commit `landed` makes all that `own` does since it left the branch of `tip`: with
    a proposal, what that stands on was squashed into it."""
    start, parents = fork_of(repo, own, tip), repo.parents(landed)
    if start is None or len(parents) != 1:
        return False
    same = repo.tree(landed).root == repo.tree(own).root
    return same or _changes(repo, parents[0], landed) == repo.changes(start, own)


_changed: WeakKeyDictionary[Repository, dict[str, Changes]] = WeakKeyDictionary()
"""What commits did that were asked for lately."""


def _changes(repo: Repository, parent: str, commit: str) -> Changes:
    known = _changed.setdefault(repo, {})
    if commit not in known:
        if len(known) >= _MOST_CHANGED:
            known.clear()
        found = repo.changes(parent, commit)
        known[commit] = found if len(found) <= _MOST_PATHS else {}
    return known[commit]


class History(Struct, frozen=True):
    """The commits between two: those that name batches in their trailers, by these batches' ids,
    each with the sources that it names; and the others."""

    carriers: Mapping[str, Sequence[tuple[str, Sequence[str]]]]
    plain: Sequence[str]


_walked: WeakKeyDictionary[Repository, tuple[str, dict[str | None, History]]] = WeakKeyDictionary()
"""What was found between a tip and the bases that were asked for: very many batches may wait."""


def _walk(repo: Repository, tip: str, start: str | None) -> History:
    of, found = _walked.get(repo, ("", {}))
    if of != tip or len(found) >= _MOST_BASES:
        found = {}
        _walked[repo] = tip, found
    if start not in found:
        carriers: dict[str, list[tuple[str, Sequence[str]]]] = defaultdict(list)
        plain = list[str]()
        for commit in repo.commits(tip, start, _MOST_COMMITS):
            named = message.trailers(commit.message)
            for id in named.get("Patchq-Batch", []):
                carriers[id].append((commit.oid, named.get("Patchq-Source", [])))
            if "Patchq-Batch" not in named:
                plain.append(commit.oid)
        found[start] = History(dict(carriers), plain)
    return found[start]


def waiting(context: RepoContext, ids: Iterable[str] | None = None) -> Iterator[CommittedReport]:
    """The reports of all proposals that nobody has decided through patchq, or of those of `ids`
    that wait."""
    marks = [records.WAITING + id for id in ids or ()]
    names = context.repo.refs(records.WAITING) if ids is None else marks
    for name in names:
        if ids is not None and context.repo.ref_target(name) is None:
            continue
        report = context.queue.load(name.removeprefix(records.WAITING))
        if report is not None and has_commit(report):
            yield report


def observe(context: RepoContext, report: Report) -> Sighting:
    """The batch's state now; another one than the report's where a person used plain git, and the
    report's where the repository cannot tell."""
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
        if other := successor(report, repo, tip) or alike(repo, branch or commit, tip, below):
            return Sighting("accepted", "landed by hand, as another commit", other)
    if branch is None:
        return Sighting("discarded", "its branch was deleted by hand")
    # While a batch follows its target, the mark that it waits moves before the branch does.
    if branch not in (commit, repo.ref_target(records.WAITING + id)):
        return Sighting("proposed", "its branch was changed by hand", branch)
    return Sighting("proposed")


# ---------------------------------------------------------------- who stands for whom


def replaced(context: RepoContext, new: str, header: Header) -> list[str]:
    """The batches that wait and whose place a response takes as batch `new`.

    Only `retries: ID`, or the front matter's own `id` of a waiting batch by the same `agent`, does.
    An agent that sends the same `id` a third time means its second try, which goes by `<id>-2`.
    """
    found = []
    retried = context.queue.load(header.retries) if header.retries else None
    if header.retries and retried and retried.state in WAITING:
        found.append(header.retries)
    if header.id and header.agent:
        *_, last = successors(context, batch_id(header.id))
        report = context.queue.load(last)
        if report and report.state in WAITING and report.agent == header.agent:
            found.append(last)
    return [id for id in dict.fromkeys(found) if id != new]


def sent_back(context: RepoContext, new: str, header: Header) -> Report | None:
    """The report of the proposal that the batch `new` answers: one whose place it takes, and of
    which a person asked for changes."""
    reports = filter(None, map(context.queue.load, replaced(context, new, header)))
    return next(filter(waits_for_its_agent, reports), None)


def successors(context: RepoContext, id: str) -> Iterator[str]:
    """The batch, the one that superseded it, and so on; the last one still stands for them."""
    seen: set[str] = set()
    next: str | None = id
    while next is not None and next not in seen:
        yield next
        seen.add(next)
        if report := context.queue.load(next):
            state, other = report.state, report.duplicate_of
        elif past := context.queue.past(next):
            state, other = past.state, past.other
        else:
            return
        next = other if state == "superseded" else None


def as_changed(context: RepoContext, report: CommittedReport, commit: str) -> dict[str, Any]:
    """What a report says otherwise of a batch that a person has changed: its commit, with the tree,
    the diff and the size that go together with that."""
    repo, own = context.repo, report.commit
    on_top = repo.resolve_commit(own) is not None and repo.is_ancestor(own, commit)
    parents = repo.parents(own if on_top else commit)
    diff = unified.unified(repo.file_changes(parents[0], commit)) if parents else ""
    return {
        "commit": commit,
        "tree": repo.tree(commit).root,
        "message": message.subject(repo.message(commit)),
        "size": diff_size.size(diff),
        "diff": secrecy.without(diff),
    }


# ---------------------------------------------------------------- by the intended report


def moved_to(report: Report, context: RepoContext) -> str | None:
    """The commit as which an intended verdict landed or was proposed, or None if it was not.

    The commit is known to the daemon alone until a ref has it; so a ref moved if anything at all
    shows that one had it, and did not if nothing does.
    """
    if report.state not in COMMITTED or not has_commit(report):
        return None
    commit, own = report.commit, records.branch(report.id)
    proposed, repo = report.state == "proposed", context.repo
    tip = context.branches.tip(report.target)
    branch = context.branches.tip(own) if proposed else None
    if branch and repo.is_ancestor(commit, branch):
        return commit
    found = landing(report, repo, tip) if tip else None
    if found and not proposed:
        return found  # rebased or amended, perhaps
    waits = proposed and repo.ref_target(records.WAITING + report.id) == commit
    return commit if found or waits or _in_a_reflog(repo, own, commit) else None


def _in_a_reflog(repo: Repository, own: str, commit: str) -> bool:
    """Whether a ref was moved away from the commit, or a renamed or pushed one still has it."""
    for log, value in _reflogs(repo, own):
        text = log.read_bytes()
        if commit.encode() not in text:
            continue
        if value and (_was_at(text, value, commit) or repo.is_ancestor(commit, value)):
            return True
    return False


def _was_at(text: bytes, value: str, commit: str) -> bool:
    """Whether a reflog shows that its ref, now at `value`, was moved away from the commit.

    Lines are written before the ref moves, and several for a group of batches.  So one proves
    something by its old value only, and if all behind it lead from there to where the ref is.
    """
    for line in reversed(text.decode("utf-8", "replace").splitlines()):
        old, new = line[:40], line[41:81]
        if new != value:
            return False
        if old == commit:
            return True
        value = old
    return False


def _reflogs(repo: Repository, own: str) -> Iterator[tuple[Path, str | None]]:
    """Log and value of each work tree's HEAD and of all refs, of the proposals only `own`."""
    for gitdir, ref in heads(repo.commondir):
        if (log := gitdir / "logs/HEAD").is_file():
            yield log, repo.ref_target(ref) if ref else (gitdir / "HEAD").read_text().strip()
    logs = repo.commondir / "logs"
    for where, folders, names in os.walk(logs / "refs"):
        if Path(where) == logs / "refs/heads":
            folders[:] = [name for name in folders if name != "patchq"]
        for log in (Path(where, name) for name in names):
            yield log, repo.ref_target(str(log.relative_to(logs)))
    if (log := logs / "refs/heads" / own).is_file():
        yield log, repo.branch_tip(own)
