"""`patchq fsck`: check the queue against the repository, and rebuild what can be derived."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from patchq.cli import output, places
from patchq.model.errors import Fault
from patchq.pipeline.world import World
from patchq.queue import spool
from patchq.service.fsck import broken, files, records, shapes
from patchq.service.fsck.damage import Damage
from patchq.text.quote import visible

_ROUNDS = 5
"""What is mended may show more: a report that was rebuilt has a place in every register."""
_FIRST = ("record.missing", "mark.missing")
"""What other damage is mended by."""


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--repair", action="store_true", help="rebuild what can be derived")


def run(args: Namespace) -> int:
    world = places.open_world(args, targeted=False, writes=args.repair)
    if not world.queue_root.is_dir():
        output.emit(args, {"ok": True, "damage": []}, "there is no queue yet")
        return 0
    found = left = check(world)
    if args.repair:
        for damage in shapes.lock(world.queue_root):
            if damage.mend:
                damage.mend()
        world.queue.acquire()
        left = _repair(world, check(world))
    answer = {"ok": not left, "damage": [_told(damage, left) for damage in _all(found, left)]}
    output.emit(args, answer, *_lines(answer))
    return 1 if left else 0


def check(world: World) -> list[Damage]:
    """All damage that can be seen now: what cannot be read hides the rest."""
    if found := [*shapes.check(world.queue_root)] or [*broken.check(world)]:
        return found
    there = files.read(world.queue_root)
    return [*files.check(world, there), *records.check(world, there)]


def _repair(world: World, found: list[Damage]) -> list[Damage]:
    """Mend what can be mended; what is left."""
    failed: dict[Damage, Damage] = {}
    for _ in range(_ROUNDS):
        mends = [damage for damage in found if damage.mend and damage not in failed]
        if not mends:
            break
        for damage in [damage for damage in mends if damage.kind in _FIRST] or mends:
            try:
                if damage.mend:
                    damage.mend()
            except (Fault, OSError) as error:
                failed[damage] = _told_why(damage, error)
        world.queue.sync()
        found = check(world)
    return [failed.get(damage, damage) for damage in found]


def _told_why(damage: Damage, error: Fault | OSError) -> Damage:
    """The damage with what kept it from being mended."""
    fault = error if isinstance(error, Fault) else spool.fault(error)
    why = "; ".join(filter(None, (fault.message, fault.hint)))
    return replace(damage, cure=f"not mended: {why}", mend=None)


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


def _lines(answer: dict[str, Any]) -> Iterator[str]:
    for damage in answer["damage"]:
        word = "repaired" if damage["repaired"] else "DAMAGED"
        yield visible(f"{word:<8} {damage['kind']:<16} {damage['where']}: {damage['message']}")
        if not damage["repaired"] and damage["cure"]:
            yield visible(f"{'':<25} -> {damage['cure']}")
    if not answer["damage"]:
        yield "queue and repository agree"
