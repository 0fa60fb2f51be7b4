"""Opening everything that deciding on responses takes."""

from __future__ import annotations

import sys
from argparse import Namespace
from contextlib import suppress

from patchq.cli import places
from patchq.core.model.errors import Fault
from patchq.gate.pipeline.world import World, compose


def open_world(args: Namespace, *, targeted: bool = True, writes: bool = True) -> World:
    """The world that the command works in, on what `places.open_ground` finds; the end of the
    command closes it."""
    world = compose(places.open_ground(args, targeted=targeted, writes=writes))
    args.opened.callback(_close, world)
    return world


def _close(world: World) -> None:
    """Wait for the hooks that are being told, keep what they said, and let go of everything."""
    try:
        with suppress(Fault):  # the work is done, and was said
            if world.hooks.told:
                from patchq.gate.land import reports

                world.notifier().close()
                reports.keep_told(world, sys.maxsize)
    finally:
        world.close()
