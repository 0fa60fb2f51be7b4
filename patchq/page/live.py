"""Telling browsers that what they show has changed.

A page carries the version of what it shows, so that a change between its making and the first look
is noticed as well.  What is sent is a hint to read the page again.  One watcher serves all streams.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse

from patchq.gate.api import Gate
from patchq.gate.service.watcher import Watcher

_LOOK_SECONDS = 0.25  # the interval of looks at what is no event: the inbox, and refs
_BREATH_SECONDS = 15  # a comment line after so long shows that the connection is open


def version(places: Sequence[Path]) -> str:
    """Return another text when changes may have another state."""
    signs = [_sign(path) for path in places]
    return hashlib.sha256(repr(signs).encode()).hexdigest()[:16]


def _sign(path: Path) -> tuple[int, int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns


class News:
    """The changes of a queue, for every browser that listens; `ending` is true at the end."""

    def __init__(self, gate: Gate) -> None:
        self.ending: Callable[[], bool] = lambda: False
        self._places = gate.watched
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
        seen = version(self._places)
        while True:
            if self._wakes:
                await run_in_threadpool(self._watcher.wait, _LOOK_SECONDS)
            else:
                await asyncio.sleep(_LOOK_SECONDS)
            if (now := version(self._places)) != seen or self.ending():
                seen = now
                for wake in self._wakes:
                    wake.set()

    def stream(self, since: str) -> StreamingResponse:
        """Events, one for each change from that version on."""
        return StreamingResponse(self._events(since), media_type="text/event-stream")

    async def _events(self, since: str) -> AsyncIterator[str]:
        wake, seen = asyncio.Event(), since
        self._wakes.add(wake)
        try:
            yield "retry: 1000\n\n"
            while not self.ending():
                wake.clear()  # before the look: what comes behind it wakes again
                if (now := version(self._places)) != seen:
                    seen = now
                    yield f"data: {now}\n\n"
                try:
                    await asyncio.wait_for(wake.wait(), _BREATH_SECONDS)
                except TimeoutError:
                    yield ": still here\n\n"
        finally:
            self._wakes.discard(wake)
