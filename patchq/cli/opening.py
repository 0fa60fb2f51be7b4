"""Opening everything that deciding on responses takes."""

from __future__ import annotations

from argparse import Namespace

from patchq.cli import places
from patchq.pipeline.world import World, compose


def open_world(args: Namespace, *, targeted: bool = True, writes: bool = True) -> World:
    """The world that the command works in, on what `places.open_ground` finds; the end of the
    command closes it."""
    world = compose(places.open_ground(args, targeted=targeted, writes=writes))
    args.opened.callback(world.close)
    return world
