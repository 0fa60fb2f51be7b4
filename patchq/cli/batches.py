"""The report of a batch as it stands now, from the queue or from git."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from msgspec.structs import replace

from patchq.gate.errors import ObjectDamaged
from patchq.gate.pipeline import history
from patchq.gate.pipeline.context import RepoContext
from patchq.gate.pipeline.history import Sighting
from patchq.gate.queue.engine import StoreQueue
from patchq.gate.queue.hand import Pending
from patchq.gate.report import document
from patchq.gate.report.schema import Report, has_commit
from patchq.gate.review import from_git


def find(context: RepoContext, id: str) -> tuple[Report, str]:
    """The batch's report, and where it is from if it is not in the queue; `UsageError` if neither
    the queue nor git knows the batch."""
    if report := context.queue.load(id):
        return report, ""
    if known := from_git.gone(context, [id]):
        return known[id]
    raise history.unknown(context, id)


def pending(context: RepoContext, id: str) -> Pending | None:
    """The response that has no verdict and this id; held ones have a report."""
    queue = context.queue
    return queue.pending(id) if isinstance(queue, StoreQueue) else None


def seen(context: RepoContext, report: Report, *notes: str) -> tuple[Report, str]:
    """The report with the state that the repository shows now, and how it came to it."""
    now = history.observe(context, report)
    return as_it_stands(context, report, now), "; ".join(filter(None, (now.note, *notes)))


def as_it_stands(context: RepoContext, report: Report, now: Sighting) -> Report:
    """The report with the state that was seen, and of a batch that a person changed with what there
    is now: commit, tree and diff go together."""
    changes: dict[str, Any] = {}
    if now.commit and now.commit != report.commit and has_commit(report):
        with suppress(ObjectDamaged):  # the note says so
            changes = history.as_changed(context, report, now.commit)
    if not changes:
        return replace(report, state=now.state)
    made = document.with_state(report, report.state, **changes)  # as much as a report holds
    return replace(made, state=now.state)
