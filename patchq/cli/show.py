"""`patchq show`: one batch's page, its diff, or its report."""

from __future__ import annotations

from argparse import Namespace

from patchq.cli import arguments, batches, output, places
from patchq.report import document
from patchq.report.page import to_markdown

ARGUMENTS = (
    arguments.BATCH,
    (
        arguments.Argument("--diff", action="store_true", help="the unified diff only"),
        arguments.Argument("--report", action="store_true", help="the report as JSON"),
    ),
)


def run(args: Namespace) -> int:
    ground = places.open_ground(args)
    if pending := batches.pending(ground, args.id):
        return output.emit(args, pending.to_json(), output.pending(pending))
    report, note = batches.find(ground, args.id)
    if args.diff:
        diff = {"id": report["id"], "diff": report["diff"]}
        print(f"{document.printed(diff)}\n" if args.json else report["diff"], end="")
    elif args.report or args.json:
        print(document.dumps(report), end="")
    else:
        print(to_markdown(report) + (f"\nNote: {note}\n" if note else ""), end="")
    return 0
