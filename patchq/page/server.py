"""Starting the page: the port, the address that is told, and the browser that is opened."""

from __future__ import annotations

import webbrowser
from argparse import Namespace
from threading import Timer

from patchq.cli import opening, output
from patchq.gate.api.shared import SharedGate
from patchq.gate.service import loopback
from patchq.page.app import make
from patchq.page.guard import Admission
from patchq.page.live import News

_OPEN_SECONDS = 0.3


def run(args: Namespace) -> int:
    """Listen until a signal ends it."""
    doors = SharedGate(opening.options(args)), SharedGate(opening.options(args))
    for door in doors:
        args.opened.callback(door.close)
    with doors[1].session(writes=True) as session:  # what is to be watched has to be there
        news = News(session)
        port = args.port if args.port is not None else session.config.review.port
    with loopback.bound(port) as own:
        guarded = Admission(make(*doors, news), own.getsockname()[1])
        serving = loopback.server(guarded)
        news.ending = lambda: serving.should_exit
        output.emit(args, {"url": guarded.url}, f"patchq review: {guarded.url}", "Ctrl-C ends it.")
        if not args.no_open:
            browser = Timer(_OPEN_SECONDS, webbrowser.open, (guarded.url,))
            browser.daemon = True
            browser.start()
        loopback.listen(serving, own)
    return 0
