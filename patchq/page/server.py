"""Starting the page: the port, the address that is printed, and the browser that is opened."""

from __future__ import annotations

import webbrowser
from argparse import Namespace
from threading import Thread

from patchq.gate.api.location import Options
from patchq.gate.api.shared import SharedGate
from patchq.gate.report.document import printed
from patchq.gate.service import loopback
from patchq.page.app import make
from patchq.page.guard import Admission
from patchq.page.live import News


def run(args: Namespace, options: Options) -> int:
    """Listen until a signal ends it."""
    doors = SharedGate(options), SharedGate(options)
    for door in doors:
        args.opened.callback(door.close)
    with doors[1].gate(writes=True) as gate:  # what is to be watched has to be there
        news = News(gate, doors[0])
        port = args.port if args.port is not None else gate.context().config.review.port
    with loopback.bound(port) as own:
        guarded = Admission(make(*doors, news), own.getsockname()[1])
        serving = loopback.server(guarded)
        news.ending = lambda: serving.should_exit
        lines = f"patchq review: {guarded.url}\nCtrl-C ends it."
        print(printed({"url": guarded.url}, indent=1) if args.json else lines, flush=True)
        if not args.no_open:
            Thread(target=webbrowser.open, args=(guarded.url,), daemon=True).start()
        loopback.listen(serving, own)
    return 0
