"""`patchq mcp`: the queue as tools, for agents that speak the Model Context Protocol.

One more way to the same queue: what is submitted is dropped into the inbox as any file is, and the
daemon decides on it.  `tools` does the work and knows no protocol, `arguments` says what the tools
take and give, `server` and `http` speak the protocol and alone import the SDK.
"""

from __future__ import annotations

from argparse import Namespace

from patchq.gate.errors import UsageError

_EXTRA = ("mcp", "mcp_types", "anyio")


def serve(args: Namespace) -> int:
    """Serve the tools until the client or a signal ends it; `UsageError` without the packages."""
    try:
        from patchq.mcp import server
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] not in _EXTRA:
            raise
        raise UsageError(
            "the MCP server needs packages that are not installed",
            "pip install 'patchq[all]' or `uvx --from 'patchq[all]' patchq mcp`",
        ) from None
    return server.run(args)
