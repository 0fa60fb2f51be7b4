"""`patchq run`: work off what waits, then exit."""

from __future__ import annotations

import sys
from argparse import Namespace
from dataclasses import replace

from patchq.cli import confirm, output, places
from patchq.model.report import Report
from patchq.service.serve import Control, drain
from patchq.service.upkeep import Upkeep


def run(args: Namespace) -> int:
    world = places.open_world(args)
    control = Control()
    control.install()
    world.queue.acquire()
    upkeep, refused = Upkeep(world, places.root_of(world.repo)), 0

    def tell(report: Report) -> None:
        nonlocal refused
        refused += report["state"] == "rejected"
        upkeep.told(report)
        if bar is None:
            output.say(args, report)
        else:
            bar.tell(output.line(report))

    def progress() -> None:
        if bar is not None:
            bar.left(world.queue.depth())

    bar, asker = None, None
    if confirm.possible(args, world.config):
        asker = confirm.Asker(world, lambda: control.stop)
        world = replace(world, ask=asker)
    elif sys.stdout.isatty() and not args.json and not args.quiet:
        from patchq.cli.live import Bar

        bar = Bar()
    try:
        places.setup_log(args, world.config)
        drain(world, control, tell, upkeep, progress)
    except confirm.Quit:
        pass  # what was asked about waits for the next run
    finally:
        if bar is not None:
            bar.close()
        world.queue.release()
    if control.interrupted or (asker and asker.quit):
        return 130
    return 1 if refused else 0
