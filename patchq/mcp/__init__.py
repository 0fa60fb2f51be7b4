"""`patchq mcp`: the queue as tools, for agents that speak the Model Context Protocol.

One more way to the same queue: a submitted change is dropped into the inbox as any file is, and the
daemon decides on it.  `tools` does the work; `server`, `stdio` and `http` speak the protocol.
"""

from __future__ import annotations

from argparse import Namespace

from patchq.gate.errors import needs_extra


def serve(args: Namespace) -> int:
    """Serve the tools until the client or a signal ends it; `UsageError` without the packages."""
    with needs_extra("mcp"):
        from patchq.mcp.server import opened
    server, message_bytes = opened(args)
    if args.http is None:
        from patchq.mcp import stdio

        return stdio.serve(server, message_bytes)
    from patchq.mcp import http  # what stdio has no use for

    return http.serve(args, server, message_bytes)
