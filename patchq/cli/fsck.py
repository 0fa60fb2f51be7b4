"""`patchq fsck`: check the queue against the repository, and rebuild what can be derived."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from typing import Any

from patchq.cli import arguments, opening, output
from patchq.core.text.quote import visible
from patchq.gate.service.check.fsck import check, repair, set_aside_store

ARGUMENTS = (
    arguments.Argument("--repair", action="store_true", help="rebuild what can be derived"),
)


def run(args: Namespace) -> int:
    """Show the damage; return 1 if some is left."""
    gate = opening.gate(args)
    queue = gate.location.rules().config.queue.path
    aside = set_aside_store(gate.location.home / queue) if args.repair else []
    session = gate.session(targeted=False, writes=args.repair)
    if not session.queue_root.is_dir():
        return output.emit(args, {"ok": True, "damage": []}, "there is no queue yet")
    found = [*aside, *check(session)]
    left = repair(session) if args.repair else found
    damaged = {finding.key for finding in left}
    rows = [
        {
            "kind": finding.what,
            "where": visible(finding.where),
            "message": visible(finding.message),
            "cure": "patchq fsck --repair" if finding.repair else finding.cure,
            "repaired": finding.key not in damaged,
        }
        for finding in {finding.key: finding for finding in [*found, *left]}.values()
    ]
    output.emit(args, {"ok": not left, "damage": rows}, *_lines(rows))
    return 1 if left else 0


def _lines(rows: list[dict[str, Any]]) -> Iterator[str]:
    for row in rows:
        word = "repaired" if row["repaired"] else "DAMAGED"
        yield visible(f"{word:<8} {row['kind']:<16} {row['where']}: {row['message']}")
        if not row["repaired"] and row["cure"]:
            yield visible(f"{'':<25} -> {row['cure']}")
    if not rows:
        yield "queue and repository agree"
