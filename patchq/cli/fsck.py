"""`patchq fsck`: check the queue against the repository, and rebuild what can be derived."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from typing import Any

from patchq.cli import common
from patchq.fsck import Damage, files, records
from patchq.quote import visible
from patchq.world import World

HELP = "check the queue against the repository; --repair rebuilds what can be derived"
_ROUNDS = 5
"""What is mended may show more: a report that was rebuilt has a place in every register."""
_FIRST = ("record.missing", "mark.missing")
"""What other damage is mended by."""


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--repair", action="store_true", help="rebuild what can be derived")


def run(args: Namespace) -> int:
    world = common.open_world(args, targeted=False, writes=args.repair)
    if not world.queue_root.is_dir():
        common.emit(args, {"ok": True, "damage": []}, lambda: "there is no queue yet")
        return 0
    if args.repair:
        world.queue.acquire()
    found = check(world)
    left = _repair(world, found) if args.repair else found
    told = {"ok": not left, "damage": [_told(damage, left) for damage in _all(found, left)]}
    common.emit(args, told, lambda: "\n".join(_lines(told)))
    return 1 if left else 0


def check(world: World) -> list[Damage]:
    """All damage that can be seen now."""
    there = files.read(world.queue_root)
    return [*files.check(world, there), *records.check(world, there)]


def _repair(world: World, found: list[Damage]) -> list[Damage]:
    """Mend what can be mended; what is left."""
    for _ in range(_ROUNDS):
        mends = [damage for damage in found if damage.mend]
        if not mends:
            break
        for damage in [damage for damage in mends if damage.kind in _FIRST] or mends:
            if damage.mend:
                damage.mend()
        world.queue.sync()
        found = check(world)
    return found


def _all(found: list[Damage], left: list[Damage]) -> list[Damage]:
    return list(dict.fromkeys([*found, *left]))


def _told(damage: Damage, left: list[Damage]) -> dict[str, Any]:
    return {
        "kind": damage.kind,
        "where": visible(damage.where),
        "message": visible(damage.message),
        "cure": "patchq fsck --repair" if damage.mend else damage.cure,
        "repaired": damage not in left,
    }


def _lines(told: dict[str, Any]) -> Iterator[str]:
    for damage in told["damage"]:
        word = "repaired" if damage["repaired"] else "DAMAGED"
        yield visible(f"{word:<8} {damage['kind']:<16} {damage['where']}: {damage['message']}")
        if not damage["repaired"] and damage["cure"]:
            yield visible(f"{'':<25} -> {damage['cure']}")
    if not told["damage"]:
        yield "queue and repository agree"
