"""Changes by their names, and their reports as git shows them now."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from typing import Any

from msgspec.structs import replace

from patchq.gate.errors import ObjectDamaged, UsageError
from patchq.gate.git import records
from patchq.gate.pipeline import history
from patchq.gate.pipeline.context import RepoContext
from patchq.gate.pipeline.history import Sighting
from patchq.gate.queue.engine import StoreQueue
from patchq.gate.queue.hand import Pending as Pending
from patchq.gate.report import document
from patchq.gate.report.schema import Report, has_commit
from patchq.gate.report.secrecy import batch_id
from patchq.gate.review import from_git

WAITING = records.WAITING  # refs below, one for each proposal
_LEAST = 4  # characters of an id or a commit that may stand for the whole
_PIECE = 1000


def identify(context: RepoContext, name: str) -> str:
    """Return the id that a name means: an id, its branch, its commit, or its unique beginning.

    Raises `UsageError` where several changes begin so; a name that means none comes back.
    """
    id = name.removeprefix("refs/heads/").removeprefix(records.branch(""))
    if any(_is_here(context, one) for one in (name, id)):
        return name if _is_here(context, name) else id
    if len(id) < _LEAST:
        return id
    if re.fullmatch("[0-9a-f]{4,40}", id) and (commit := context.repo.resolve_commit(id)):
        named = history.trailers(context.repo, commit).get("Patchq-Batch", [])
        if len(named) == 1:
            return named[0]
    known = {*context.queue.ids(), *history.ids(context.repo)}
    begun = sorted(one for one in known if one.startswith(id))
    if len(begun) > 1 and id not in history.landed_commits(context):
        several = ", ".join(begun[:5]) + (", …" if len(begun) > 5 else "")
        raise UsageError(f"{len(begun)} changes begin with {id}", f"name one: {several}")
    return begun[0] if len(begun) == 1 else id


def _is_here(context: RepoContext, id: str) -> bool:
    queue = context.queue
    return bool(queue.load(id) or queue.past(id) or pending(context, id))


def find(context: RepoContext, id: str) -> tuple[Report, str]:
    """Return a report, and its origin if that is not the queue; `UsageError` for an unknown id."""
    if report := context.queue.load(id):
        return report, ""
    if known := from_git.reports(context, [id]):
        return known[id]
    raise history.unknown(context, id)


def pending(context: RepoContext, id: str) -> Pending | None:
    """Return the response with this id that has no verdict; held ones have a report."""
    queue = context.queue
    return queue.pending(id) if isinstance(queue, StoreQueue) else None


def is_under_way(context: RepoContext, id: str) -> bool:
    """True if a response waits or is in hand that has the id, or would get it."""
    return pending(context, id) is not None or is_given(context, id)


def is_given(context: RepoContext, id: str) -> bool:
    """True if a change has the id; no change ever gets a text that is no id."""
    queue = context.queue
    return isinstance(queue, StoreQueue) and batch_id(id) == id and queue.next_id(id) != id


def seen(context: RepoContext, report: Report, *notes: str) -> tuple[Report, str]:
    """Return the report with the state that git shows now, and how it came to it."""
    now = history.observe(context, report)
    return with_current_state(context, report, now), "; ".join(filter(None, (now.note, *notes)))


def with_current_state(context: RepoContext, report: Report, now: Sighting) -> Report:
    """Return the report with that state, and the commit, tree and diff of a changed branch."""
    changes: dict[str, Any] = {}
    if now.commit and now.commit != report.commit and has_commit(report):
        with suppress(ObjectDamaged):  # the note says so
            changes = history.as_changed(context, report, now.commit)
    if not changes:
        return replace(report, state=now.state)
    made = document.with_state(report, report.state, **changes)  # as much as a report holds
    return replace(made, state=now.state)


def newest_first(context: RepoContext, most: int | None) -> Iterator[tuple[Report, str]]:
    """Yield reports and notes, the newest verdict first; `most` are probably wanted.

    Those that git alone knows come last, by the times of their commits.
    """
    ids, listed = context.queue.newest(), set[str]()
    while piece := list(islice(ids, min((most or sys.maxsize - 1) + 1, _PIECE))):
        listed.update(piece)
        reports = {id: report for id in piece if (report := context.queue.load(id))}
        gone = from_git.reports(context, set(piece) - reports.keys())
        for id in piece:
            if report := reports.get(id):
                yield seen(context, report)
            elif id in gone:
                yield seen(context, *gone[id])
    for report in from_git.missing(context, listed):
        yield seen(context, report, from_git.FROM_GIT_NOTE)
