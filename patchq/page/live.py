"""Telling browsers which changes are not as they show them.

A page carries the version of what it shows, so that a change between its making and the first look
is noticed as well.  One watcher serves all streams.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse

from patchq.gate.api import Gate
from patchq.gate.api.rows import Filter
from patchq.gate.api.shared import SharedGate
from patchq.gate.errors import UsageError
from patchq.gate.report.schema import Report
from patchq.gate.service.watcher import Watcher

_LOOK_SECONDS = 0.25  # the interval of looks at what is no event: the inbox, and refs
_BREATH_SECONDS = 15  # a comment line after so long shows that the connection is open


def version(gate: Gate) -> str:
    """Return the state of the queue: a digest, and the id of the last event."""
    return f"{_digest(gate.watched)}.{gate.changed_since(None)[1]}"


def _digest(places: Sequence[Path]) -> str:
    """Return another text when changes may have another state."""
    return hashlib.sha256(repr([_sign(path) for path in places]).encode()).hexdigest()[:16]


def _sign(path: Path) -> tuple[int, int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns


class News:
    """The changes of a queue, for every browser that listens; `ending` is true at the end."""

    def __init__(self, gate: Gate, door: SharedGate) -> None:
        self.ending: Callable[[], bool] = lambda: False
        self._door, self._places = door, gate.watched
        self._watcher = Watcher(gate.context().queue_root)
        self._wakes: set[asyncio.Event] = set()

    @asynccontextmanager
    async def running(self, _: object) -> AsyncIterator[None]:
        """Watch as long as the server runs."""
        watching = asyncio.create_task(self._watch())
        try:
            yield
        finally:
            watching.cancel()
            self._watcher.ring()
            with suppress(asyncio.CancelledError):
                await watching
            self._watcher.close()

    async def _watch(self) -> None:
        seen = _digest(self._places)
        while True:
            if self._wakes:
                await run_in_threadpool(self._watcher.wait, _LOOK_SECONDS)
            else:
                await asyncio.sleep(_LOOK_SECONDS)
            if (now := _digest(self._places)) != seen or self.ending():
                seen = now
                for wake in self._wakes:
                    wake.set()

    def stream(self, since: str, id: str) -> StreamingResponse:
        """Events: the ids of the changes that are not as in that version, and how many wait.

        `id` is the change that the page is about, which may change without an event.
        """
        return StreamingResponse(self._events(since, id), media_type="text/event-stream")

    async def _events(self, since: str, id: str) -> AsyncIterator[str]:
        digest, _, event = since.partition(".")
        wake, report, is_first = asyncio.Event(), None, True
        self._wakes.add(wake)
        try:
            yield "retry: 1000\n\n"
            while not self.ending():
                wake.clear()  # before the look: what comes behind it wakes again
                now, before = _digest(self._places), report
                if now != digest or is_first:
                    ids, event, waiting, report = await run_in_threadpool(self._look, event, id)
                    if now != digest if is_first else report != before:
                        ids |= {id}  # a proposal that followed its target is no event
                    news = {"ids": sorted(ids), "waiting": waiting, "other": now != digest}
                    yield f"data: {json.dumps(news)}\n\n"
                    digest, is_first = now, False
                try:
                    await asyncio.wait_for(wake.wait(), _BREATH_SECONDS)
                except TimeoutError:
                    yield ": still here\n\n"
        finally:
            self._wakes.discard(wake)

    def _look(self, event: str, id: str) -> tuple[frozenset[str], str, int, Report | None]:
        """Return the changes since an event, the last one, how many wait, and the page's report."""
        with self._door.gate() as gate:
            ids, last = gate.changed_since(event or None)
            report = None
            with suppress(UsageError):
                report = gate.report(id) if id else None
            return ids, last, gate.status(Filter(), 0).counts["for_you"], report
