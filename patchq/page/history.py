"""Decisions, the newest first."""

from __future__ import annotations

from collections.abc import Mapping

from patchq.gate.api import Gate
from patchq.page.shown import Shown

PER_PAGE = 100
_MOST_PAGES = 10_000


def view(gate: Gate, asked: Mapping[str, str], result: object = None) -> Shown:
    """Return one page of the history, as `patchq log` has it."""
    page = int(asked["page"]) if asked.get("page", "").isdecimal() else 1
    page = min(max(page, 1), _MOST_PAGES)
    found = gate.batches(limit=PER_PAGE, skip=(page - 1) * PER_PAGE)
    values = {"rows": found.rows, "page": page, "more": bool(found.left_out)}
    return Shown("history.html", "History", values)
