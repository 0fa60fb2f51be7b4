"""`patchq comment`: reply to a comment on a proposal, or resolve it."""

from __future__ import annotations

from argparse import Namespace

from patchq.cli import arguments, opening, output
from patchq.cli.arguments import Argument

ARGUMENTS = (
    arguments.BATCH,
    Argument("comment", metavar="C", help="a comment, such as c1; `show ID` has them"),
    Argument(
        "-m",
        "--message",
        metavar="TEXT",
        type=arguments.words,
        help="a reply, which opens the comment again",
    ),
    Argument("--resolve", action="store_true", help="close it: it is not sent along any more"),
)


def run(args: Namespace) -> int:
    gate = opening.gate(args)
    id = gate.identify(args.id)
    report = gate.discuss(id, args.comment, args.message or "", resolves=args.resolve).report
    done = "resolved" if args.resolve else "replied to"
    return output.done(args, report, f"{done}  {args.comment} of {report.id}")
