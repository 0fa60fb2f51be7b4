"""`patchq check`: what would become of a response; nothing is written, and no hook is asked."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from patchq.cli import common
from patchq.cli.streams import put
from patchq.report import document
from patchq.report.page import to_markdown

HELP = "dry run: plan, diff and verdict of a response"


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="the response, or - for standard input")


def run(args: Namespace) -> int:
    world = common.open_world(args, writes=False)
    data, name = common.read_response(args.file)
    draft = common.preview(world, common.unread(world, data, name))
    report = document.to_json(draft.outcome())
    if args.json:
        common.say(args, report)
    else:
        put(f"would be {common.line(report)}")
        if not args.quiet:
            put(to_markdown(report), end="")
    return 1 if report["state"] == "rejected" else 0
