"""`patchq forge`: proposals as pull requests of a forge."""

from __future__ import annotations

from argparse import SUPPRESS, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from patchq.cli import opening, output
from patchq.cli.arguments import Argument
from patchq.core.text.quote import visible
from patchq.gate.api import Gate
from patchq.gate.errors import needs_extra

if TYPE_CHECKING:
    from patchq.forge.sync import Sync

ARGUMENTS = (
    {
        "check": ("see if the token may do what is needed, and what protects the target", ()),
        "sync": (
            "keep proposals and pull requests in step, until stopped",
            (
                Argument("--once", action="store_true", help="one round, then exit"),
                Argument(
                    "--dry-run", action="store_true", help="print what a round would do, then exit"
                ),
                # The daemon's child ends with it.
                Argument("--child", action="store_true", help=SUPPRESS),
                Argument("--log", metavar="FILE", type=Path, help=SUPPRESS),
            ),
        ),
    },
)


def run(args: Namespace) -> int:
    if args.what == "sync" and args.child:
        from patchq.gate.service.children import end_with_parent

        end_with_parent()
    gate = opening.gate(args)
    sync = synced(args, gate)
    context = gate.context(targeted=True, writes=args.what == "sync")
    if args.what == "check":
        from patchq.forge.check import findings

        found = findings(sync.forge, context.config.forge, context.target)
        lines = [f"{level:<5} {text}" for level, text in found]
        answer = [{"level": level, "message": text} for level, text in found]
        return output.emit(args, answer, *lines) or int(any(one != "ok" for one, _ in found))
    if args.once or args.dry_run:
        sync.rounds(gate, dry_run=args.dry_run)
        return 0
    from patchq.forge.serve import serve
    from patchq.gate.api.shared import SharedGate

    serve(SharedGate(opening.options(args)), sync, args.log)
    return 0


def synced(args: Namespace, gate: Gate) -> Sync:
    """Return what keeps the queue in step with the forge of its configuration."""
    with needs_extra("forge"):
        from patchq.forge import connect
        from patchq.forge.sync import Sync

    def say(text: str) -> None:
        if not args.quiet:
            print(visible(text), flush=True)

    context = gate.context(targeted=True)
    return Sync(connect.project_of(context.repo, context.config), say)
