"""What was decided, the newest first."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice

from patchq.cli import log
from patchq.gate.pipeline.session import Session
from patchq.page.shown import Shown

PER_PAGE = 100


def view(session: Session, asked: Mapping[str, str]) -> Shown:
    """One page of it, as `patchq log` has it."""
    page = int(asked["page"]) if asked.get("page", "").isdecimal() else 1
    page = min(max(page, 1), 10_000)
    first = (page - 1) * PER_PAGE
    some = list(islice(log.newest_first(session, first + PER_PAGE), first, first + PER_PAGE + 1))
    values = {
        "batches": [{"report": report, "note": note} for report, note in some[:PER_PAGE]],
        "page": page,
        "more": len(some) > PER_PAGE,
    }
    return Shown("history.html", "History", values)
