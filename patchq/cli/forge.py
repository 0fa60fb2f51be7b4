"""`patchq forge`: proposals as pull requests of a forge."""

from __future__ import annotations

from argparse import SUPPRESS, Namespace
from pathlib import Path
from time import sleep
from typing import TYPE_CHECKING

from patchq.cli import opening, output
from patchq.cli.arguments import Argument
from patchq.core.text.quote import visible
from patchq.gate.errors import Fault, UsageError

if TYPE_CHECKING:  # the client is an extra
    from patchq.forge.sync import Sync

_LONGEST_REST = 300.0
_TROUBLE = "forge"
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
    try:
        from patchq.forge import connect
    except ImportError as error:
        raise UsageError(
            f"the package {error.name!r} is not installed", "pip install 'patchq[forge]'"
        ) from None

    gate = opening.gate(args)
    context = gate.context(targeted=True, writes=args.what == "sync")
    forge = connect.github(context.repo, context.config)
    if args.what == "check":
        from patchq.forge.check import findings

        found = findings(forge, context.config.forge, context.target)
        lines = [f"{level:<5} {text}" for level, text in found]
        answer = [{"level": level, "message": text} for level, text in found]
        return output.emit(args, answer, *lines) or int(any(one != "ok" for one, _ in found))
    from patchq.forge.sync import Sync

    def say(text: str) -> None:
        if not args.quiet:
            print(visible(text), flush=True)

    me = forge.rights(context.target).login
    sync = Sync(forge, me, say, dry_run=args.dry_run)
    if args.once or args.dry_run:
        sync.rounds(gate)
        return 0
    return _serve(args, sync)


def _serve(args: Namespace, sync: Sync) -> int:
    """Make rounds until the process ends; what keeps one from its end is noted."""
    from patchq.forge.wire import Away
    from patchq.gate.api.shared import SharedGate
    from patchq.gate.queue.troubles import Troubles
    from patchq.gate.service.trains import end_with_parent

    if args.child:
        end_with_parent()
    shared, rest = SharedGate(opening.options(args)), 0.0
    while True:
        with shared.gate(writes=True) as gate:
            context = gate.context()
            if args.log:
                gate.setup_log(context.config, args.log)
            troubles, pause = Troubles(context.queue_root), context.config.forge.poll_seconds
            try:
                sync.rounds(gate)
                troubles.over(_TROUBLE)
                rest = 0.0
            except Fault as fault:
                troubles.note(_TROUBLE, fault.message, fault.hint or "")
                asked = fault.seconds if isinstance(fault, Away) else 0.0
                rest = max(min(max(2 * rest, pause), _LONGEST_REST), asked)
        sleep(rest or pause)
