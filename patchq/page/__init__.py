"""`patchq review`: the page on which people look at what waits, and decide.

`guard` keeps everybody else out, `app` answers requests, a view module for each page makes the
values that its template shows, `live` tells browsers of changes.  Nothing here decides: what is
asked for goes to the functions that the command line calls.
"""

from __future__ import annotations

from argparse import Namespace

from patchq.gate.api.location import Options
from patchq.gate.errors import UsageError

_EXTRA = ("jinja2", "markupsafe", "pygments", "python_multipart", "starlette", "uvicorn")


def serve(args: Namespace, options: Options) -> int:
    """Serve the page until a signal ends it; `UsageError` without its packages."""
    try:
        from patchq.page import server
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] not in _EXTRA:
            raise
        raise UsageError(
            "the review page needs packages that are not installed",
            "pip install 'patchq[all]' or `uvx --from 'patchq[all]' patchq review`",
        ) from None
    return server.run(args, options)
