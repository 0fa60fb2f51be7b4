"""Telling clients that what they read has changed.

One look at the queue serves all of them, and none is made while nobody has asked to be told.  What
is sent is a hint to read again; one that is lost costs a look.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import mcp_types as types
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourceUpdated

from patchq.cli.door import Door
from patchq.gate.service.watcher import Watcher
from patchq.mcp.resources import REPORT, STATUS

_LOG = logging.getLogger("patchq")
_LOOK_SECONDS = 0.25
_MOST_LISTENERS = 256
_MOST_ADDRESSES = 1000


class Updates:
    """Who wants to be told of which address, in either era of the protocol."""

    def __init__(self, door: Door) -> None:
        self._door = door
        self._bus = InMemorySubscriptionBus()
        self._listen = ListenHandler(self._bus, max_subscriptions=_MOST_LISTENERS)
        self._listened: Counter[str] = Counter()
        self._sessions: dict[str, dict[str, Any]] = {}
        self._seen: dict[str, object] = {}
        self._watcher: Watcher | None = None

    @asynccontextmanager
    async def running(self, _: object) -> AsyncIterator[dict[str, Any]]:
        """Look as long as the server runs."""
        async with anyio.create_task_group() as group:
            group.start_soon(self._look)
            try:
                yield {}
            finally:
                group.cancel_scope.cancel()
                if self._watcher is not None:
                    self._watcher.close()
                    self._watcher = None

    async def listen(self, ctx: Any, params: Any) -> Any:
        """The newest protocol's way: one request that lasts."""
        wanted = (params.notifications.resource_subscriptions or ())[:_MOST_ADDRESSES]
        self._notice(*wanted)
        self._listened.update(wanted)
        try:
            return await self._listen(ctx, params)
        finally:
            self._listened.subtract(wanted)
            self._listened = +self._listened

    async def subscribe(self, ctx: Any, params: Any) -> types.EmptyResult:
        """The older way: a session that is told."""
        uri = str(params.uri)
        if uri in self._sessions or len(self._sessions) < _MOST_ADDRESSES:
            self._notice(uri)
            sessions = self._sessions.setdefault(uri, {})
            sessions[_session(ctx)] = ctx.session
            if len(sessions) > _MOST_LISTENERS:
                del sessions[next(iter(sessions))]
        return types.EmptyResult()

    async def unsubscribe(self, ctx: Any, params: Any) -> types.EmptyResult:
        sessions = self._sessions.get(str(params.uri), {})
        sessions.pop(_session(ctx), None)
        if not sessions:
            self._sessions.pop(str(params.uri), None)
        return types.EmptyResult()

    def _notice(self, *addresses: str) -> None:
        """What comes from now on is a change, also before the next look."""
        for uri in addresses:
            self._seen.setdefault(uri, self._sign(uri))

    async def _look(self) -> None:
        while True:
            for uri in {*self._listened, *self._sessions}:
                sign = self._sign(uri)
                if sign != self._seen.get(uri):
                    self._seen[uri] = sign
                    await self._tell(uri)
            for uri in self._seen.keys() - self._listened.keys() - self._sessions.keys():
                del self._seen[uri]
            await self._something()

    async def _something(self) -> None:
        """Until something may have happened, or it is time to look all the same."""
        if self._watcher is None and self._door.root and (self._listened or self._sessions):
            self._watcher = Watcher(self._door.root)
        with anyio.move_on_after(_LOOK_SECONDS):
            if self._watcher is None:
                await anyio.sleep_forever()
            else:
                await anyio.wait_readable(self._watcher)
        if self._watcher is not None:
            self._watcher.wait(0.0)

    def _sign(self, uri: str) -> object:
        """Another value when what is at the address may be another."""
        if uri == STATUS:
            return self._door.pulse("inbox")
        return self._door.report_sign(uri.removeprefix(REPORT))

    async def _tell(self, uri: str) -> None:
        await self._bus.publish(ResourceUpdated(uri=uri))
        sessions = self._sessions.get(uri, {})
        for key, session in list(sessions.items()):
            try:
                await session.send_resource_updated(uri)
            except Exception as error:
                _LOG.debug("a client of %s is gone: %s", uri, error)
                sessions.pop(key, None)


def _session(ctx: Any) -> str:
    """Which session it is: by HTTP there may be many, by stdio there is one."""
    return ctx.request.headers.get("mcp-session-id", "") if ctx.request is not None else ""
