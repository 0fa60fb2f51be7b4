"""`patchq review`: the page on which people look at what waits, and decide.

`server` keeps everybody else out, `app` answers requests, `views` makes the values that
templates show, `live` tells browsers of changes.  Nothing here decides: what is
asked for goes to the functions that the command line calls.
"""

from __future__ import annotations

from argparse import Namespace

from patchq.gate.api.location import Options
from patchq.gate.errors import needs_extra


def serve(args: Namespace, options: Options) -> int:
    """Serve the page until a signal ends it; `UsageError` without its packages."""
    with needs_extra("review"):
        from patchq.page import server
    return server.run(args, options)
