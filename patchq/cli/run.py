"""`patchq run`: work off what waits, then exit."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace

from patchq import report
from patchq.cli import common
from patchq.daemon.serve import Control, drain
from patchq.world import Draft

HELP = "work off what waits, then exit (for cron and CI)"


def add_arguments(parser: ArgumentParser) -> None:
    pass


def run(args: Namespace) -> int:
    world = common.open_world(args)
    common.setup_log(args, world.config)
    control = Control()
    world.queue.acquire()
    control.install()
    bar = _bar(args)
    refused = 0

    def tell(draft: Draft) -> None:
        nonlocal refused
        refused += draft.state == "rejected"
        told = report.to_json(draft.outcome())
        if bar is None:
            common.say(args, told)
        else:
            bar.tell(common.line(told))

    try:
        drain(world, control, tell, (lambda: bar.left(world.queue.depth())) if bar else lambda: None)
    finally:
        world.queue.release()
        if bar is not None:
            bar.close()
    if control.interrupted:
        return 130
    return 1 if refused else 0


def _bar(args: Namespace):  # type: ignore[no-untyped-def]
    """A progress bar, on a terminal only."""
    if args.json or args.quiet or not sys.stdout.isatty():
        return None
    from patchq.cli.live import Bar

    return Bar()
