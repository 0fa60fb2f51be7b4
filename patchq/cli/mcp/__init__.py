"""`patchq mcp`: the queue as tools, for agents that speak the Model Context Protocol.

One more way to the same queue: what is submitted is dropped into the inbox as any file is, and the
daemon decides on it.  `tools` does the work and knows no protocol, `arguments` says what the tools
take and give, `server` and `http` speak the protocol and alone import the SDK.
"""

from __future__ import annotations

from argparse import Namespace

from patchq.cli.arguments import Argument
from patchq.model.errors import UsageError

ARGUMENTS = (
    Argument(
        "--http", metavar="PORT", nargs="?", const="8325", help="by HTTP on this machine (8325)"
    ),
    Argument("--read-only", action="store_true", help="offer only what changes nothing"),
    Argument("--agent", metavar="NAME", help="who submits, in every response"),
)


def run(args: Namespace) -> int:
    try:
        from patchq.cli.mcp import server
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] not in ("mcp", "mcp_types", "anyio"):
            raise
        raise UsageError(
            "the MCP server needs packages that are not installed",
            "pip install 'patchq[mcp]'",
        ) from None
    return server.run(args)
