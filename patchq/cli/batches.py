"""The report of a batch as it stands now, from the queue or from git."""

from __future__ import annotations

from patchq.model.report import Report
from patchq.pipeline import traces
from patchq.pipeline.ground import Ground
from patchq.queue.directory import DirectoryQueue
from patchq.queue.hand import Pending
from patchq.review import from_git


def find(ground: Ground, id: str) -> tuple[Report, str]:
    """The batch's report, and where it is from if it is not in the queue; `UsageError` if neither
    the queue nor git knows the batch."""
    if report := ground.queue.load(id):
        return report, ""
    if known := from_git.gone(ground, [id]):
        return known[id]
    raise traces.unknown(ground, id)


def pending(ground: Ground, id: str) -> Pending | None:
    """The response that has no verdict and this id; held ones have a report."""
    queue = ground.queue
    return queue.pending(id) if isinstance(queue, DirectoryQueue) else None


def seen(ground: Ground, report: Report, *notes: str) -> tuple[Report, str]:
    """The report with the state that the repository shows now, and how it came to it."""
    now = traces.observe(ground, report)
    said = "; ".join(filter(None, (now.note, *notes)))
    return {**report, "state": now.state}, said
