"""Telling browsers that what they show has changed.

A page carries the version of what it shows, so that a change between its making and the first look
is told as well.  What is sent is a hint to read the page again.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator

from starlette.requests import Request
from starlette.responses import StreamingResponse

from patchq.cli.door import Door

_LOOK_SECONDS = 0.1
_BREATH_SECONDS = 15
"""A comment line after so long shows that the connection stands."""


def version(door: Door) -> str:
    """Another text when batches may stand otherwise."""
    return hashlib.sha256(repr(door.pulse("inbox", "active")).encode()).hexdigest()[:16]


def stream(door: Door, request: Request) -> StreamingResponse:
    """Events, one for each change from the version on that the request names."""
    since = request.query_params.get("since", "")
    ending = request.app.state.ending

    async def events() -> AsyncIterator[str]:
        seen, quiet = since, 0.0
        yield "retry: 1000\n\n"
        while not ending():
            if (now := version(door)) != seen:
                seen, quiet = now, 0.0
                yield f"data: {now}\n\n"
            elif quiet >= _BREATH_SECONDS:
                quiet = 0.0
                yield ": still here\n\n"
            await asyncio.sleep(_LOOK_SECONDS)
            quiet += _LOOK_SECONDS

    return StreamingResponse(events(), media_type="text/event-stream")
