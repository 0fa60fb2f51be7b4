"""`patchq show`: one batch's page, its diff, or its report."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from patchq.cli import arguments, batches, places
from patchq.model.report import Report
from patchq.report import document
from patchq.report.page import to_markdown


def add_arguments(parser: ArgumentParser) -> None:
    arguments.add_batch(parser)
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--diff", action="store_true", help="the unified diff only")
    which.add_argument("--report", action="store_true", help="the report as JSON")


def run(args: Namespace) -> int:
    ground = places.open_ground(args)
    report, note = batches.find(ground, args.id)
    if args.diff:
        print(report["diff"] if not args.json else _as_json(report), end="")
    elif args.report or args.json:
        print(document.dumps(report), end="")
    else:
        print(to_markdown(report) + (f"\nNote: {note}\n" if note else ""), end="")
    return 0


def _as_json(report: Report) -> str:
    return document.printed({"id": report["id"], "diff": report["diff"]}) + "\n"
