"""`patchq check`: what would become of a response; nothing is written, and no hook is asked."""

from __future__ import annotations

from argparse import Namespace

from patchq.cli import arguments, dry, opening, output
from patchq.cli.streams import put
from patchq.report import document
from patchq.report.page import to_markdown

ARGUMENTS = (arguments.RESPONSE,)


def run(args: Namespace) -> int:
    world = opening.open_world(args, writes=False)
    data, name = arguments.read_response(args.file)
    decision = dry.preview(world, dry.unread(world, data, name))
    report = document.to_json(decision.outcome())
    if args.json:
        output.say(args, report)
    else:
        put(f"would be {output.line(report)}")
        if not args.quiet:
            put(to_markdown(report), end="")
    return 1 if report["state"] == "rejected" else 0
