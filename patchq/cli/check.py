"""`patchq check`: what would become of a response, and what it would meet; nothing is written, and
no hook is asked."""

from __future__ import annotations

from argparse import Namespace

from patchq.cli import arguments, opening, output
from patchq.cli.streams import put
from patchq.gate.api import words
from patchq.gate.report.page import to_markdown

ARGUMENTS = (arguments.RESPONSE,)


def run(args: Namespace) -> int:
    data, name = arguments.read_response(args.file)
    report = opening.gate(args).check(data, name=name)
    if args.json:
        output.say(args, report)
    else:
        put(f"would be {words.line(report)}")
        if not args.quiet:
            put(to_markdown(report, foreseen=True), end="")
    return 1 if report.state == "rejected" else 0
