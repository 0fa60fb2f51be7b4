"""The log without the queue: what refs, trailers and notes say of each batch.

`.patchq/` may be lost; the repository is what is backed up and pushed.  A batch that landed is
found by its commit's trailers, which name response, base and agent; one that waits or was discarded
has a ref below `refs/patchq/`; a note says who decided what.  What only the report knew (the edits'
places, the hooks, a refusal) is not there, and nothing is made up in its place.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime

from msgspec.structs import replace

from patchq.core.model.values import Base, EditOutcome, Problem
from patchq.core.text import unified
from patchq.gate.git import records
from patchq.gate.git.objects import as_changes
from patchq.gate.pipeline import comments, history
from patchq.gate.pipeline.context import RepoContext
from patchq.gate.pipeline.history import Trace
from patchq.gate.pipeline.notes import Note
from patchq.gate.queue import Past
from patchq.gate.report import document
from patchq.gate.report.message import subject
from patchq.gate.report.schema import Moment, Report, SourceEntry, waits_for_its_agent

FROM_GIT_NOTE = "from git alone: its report is not in the queue"


def find(context: RepoContext, id: str) -> tuple[Report, str]:
    """Return a report, and its origin if that is not the queue.

    Raises `UsageError` for an unknown id.
    """
    if report := context.queue.load(id):
        return report, ""
    if known := reports(context, [id]):
        return known[id]
    raise history.unknown(context, id)


def reports(context: RepoContext, ids: Iterable[str]) -> dict[str, tuple[Report, str]]:
    """Return the remains of batches without reports: a report and a note on its origin, by ids.

    Git has more of a batch, the register of ids the rest.
    """
    names = set(ids)
    traces = history.find(context, names)
    found = {it.id: (_report(context, it), FROM_GIT_NOTE) for it in traces}
    for id in names - found.keys():
        if past := context.queue.past(id):
            found[id] = _partial_report(id, past)
    return found


def _partial_report(id: str, past: Past) -> tuple[Report, str]:
    ended = datetime.fromtimestamp(past.at, UTC).isoformat(timespec="seconds")
    why = Problem(past.code, "the report, which had more details, is gone") if past.code else None
    facts = Report(
        id=id,
        state=past.state,
        source=SourceEntry(name=None, sha256="", bytes=None),
        duplicate_of=past.other,
        decided=document.moment(past.at),
    )
    report = document.to_json(facts, [why] if why else [])
    return report, f"{past.state} at {ended}; its files were removed after `queue.retention_days`"


def missing(context: RepoContext, known: Iterable[str]) -> list[Report]:
    """Return git's reports of batches that are not `known`, newest first."""
    names = (history.ids(context.repo) | history.landed_commits(context).keys()) - set(known)
    if not names:
        return []
    found = history.find(context, names)
    found.sort(key=lambda it: context.repo.time(it.commit), reverse=True)
    return [_report(context, trace) for trace in found]


def remember(context: RepoContext, landed: Mapping[str, str]) -> None:
    """Enter the ids of landed batches, so that no other batch gets them."""
    repo = context.repo
    context.queue.know(
        (id, _source(history.trailers(repo, commit)) or None, repo.time(commit))
        for id, commit in landed.items()
    )


def _source(trailers: Mapping[str, list[str]]) -> str:
    return _first(trailers, "Patchq-Source").removeprefix("sha256:")


def _report(context: RepoContext, batch: Trace) -> Report:
    repo, commit, note = context.repo, batch.commit, batch.note
    trailers = history.trailers(repo, commit)
    parent = next(iter(repo.parents(commit)), None)
    changes = repo.changes(parent, commit) if parent else {}
    agent, _, model = _first(trailers, "Assisted-by").partition(":")
    base = _first(trailers, "Patchq-Base") or parent or commit
    target = None if context.config.targets else context.target or None
    # What git does not know is null.
    made = document.to_json(
        Report(
            id=batch.id,
            state="applied",
            source=SourceEntry(name=None, sha256=_source(trailers), bytes=None),
            agent=(note and note.agent) or agent or None,
            model=(note and note.model) or model or None,
            message=subject(repo.message(commit)),
            mode=note.mode if note else None,
            target=(note and note.target) or target,
            base=Base(base, None),
            commit=commit,
            tree=repo.tree(commit).root,
            edits=[
                EditOutcome(
                    str(number),
                    None,
                    None,
                    path,
                    "create" if old is None else "delete_file" if new is None else "replace",
                    "applied",
                )
                for number, (path, (old, new)) in enumerate(changes.items(), 1)
            ],
            diff=unified.unified([*as_changes(changes, repo.raw)]),
        )
    )
    waits = batch.state == "proposed"
    known = document.with_state(
        made,
        batch.state,
        branch=records.branch(batch.id) if waits else None,
        duplicate_of=note.by if note else None,
        reason=note.reason if note and batch.state == "discarded" else None,
        decided=_decided(context, batch.id, note),
        size=made.size and replace(made.size, files=len(changes)),
    )
    review = note.reviews() if note else None
    if note is None or review is None:
        return known
    review = comments.carried(repo, review, note.commit, commit)
    asked: Report = replace(known, review=review)
    return comments.with_review(repo, asked, review) if waits_for_its_agent(asked) else asked


def _decided(context: RepoContext, id: str, note: Note | None) -> Moment | None:
    with suppress(ValueError):
        if note and note.time:
            return document.moment(datetime.fromisoformat(note.time).timestamp())
    past = context.queue.past(id)
    return document.moment(past.at) if past else None


def _first(trailers: Mapping[str, list[str]], key: str) -> str:
    return next(iter(trailers.get(key, [])), "")
