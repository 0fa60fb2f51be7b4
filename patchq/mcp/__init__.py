"""`patchq mcp`: the queue as tools, for agents that speak the Model Context Protocol.

One more way to the same queue: a submitted change is dropped into the inbox as any file is, and the
daemon decides on it.  `tools` does the work, `server` speaks the protocol.
"""

from __future__ import annotations

from argparse import Namespace

from patchq.gate.api.location import Options
from patchq.gate.errors import needs_extra


def serve(args: Namespace, options: Options) -> int:
    """Serve the tools until the client or a signal ends it; `UsageError` without the packages."""
    with needs_extra("mcp"):
        from patchq.mcp import server
    return server.serve(args, options)
