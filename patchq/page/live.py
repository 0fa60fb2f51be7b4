"""Events for browsers about the changes that they show outdated.

A page carries the version of what it shows, so that a change between its making and the first look
is noticed as well.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from pathlib import Path

from starlette.concurrency import run_in_threadpool

from patchq.gate.api import Gate
from patchq.gate.api.location import stamp
from patchq.gate.api.rows import Filter
from patchq.gate.api.shared import SharedGate
from patchq.gate.errors import UsageError
from patchq.gate.report.schema import Report

_LOOK_SECONDS = 0.1


def version(gate: Gate) -> str:
    """Return the state of the queue: a digest, and the id of the last event."""
    return f"{_digest(gate.watched)}.{gate.changed_since(None)[1]}"


def _digest(places: Sequence[Path]) -> str:
    return hashlib.sha256(repr([*map(stamp, places)]).encode()).hexdigest()[:16]


class News:
    """Events of a queue for all listening browsers; `ending` returns True at the end."""

    def __init__(self, gate: Gate, door: SharedGate) -> None:
        self.ending: Callable[[], bool] = lambda: False
        self._door, self._places = door, gate.watched

    async def events(self, since: str, id: str) -> AsyncIterator[str]:
        """Yield server-sent events: the ids of changes to reload, and how many wait.

        Changes count since the version `since`.  `id` is the change that the page is about, which
        may change without an event.
        """
        shown, _, event = since.partition(".")
        seen, report = "", None
        yield "retry: 1000\n\n"
        while not self.ending():
            now, before = _digest(self._places), report
            if now != seen:
                ids, event, waiting, report = await run_in_threadpool(self._look, event, id)
                if now != shown and report != before:
                    ids |= {id}  # a proposal that followed its target is no event
                news = {"ids": sorted(ids), "waiting": waiting, "other": now != shown}
                yield f"data: {json.dumps(news)}\n\n"
                seen = shown = now
            await asyncio.sleep(_LOOK_SECONDS)

    def _look(self, event: str, id: str) -> tuple[frozenset[str], str, int, Report | None]:
        with self._door.gate() as gate:
            ids, last = gate.changed_since(event or None)
            report = None
            with suppress(UsageError):
                report = gate.report(id) if id else None
            return ids, last, gate.status(Filter(), 0).counts["for_you"], report
