"""`patchq send-back`: ask for changes of proposals, in words that their agents get."""

from __future__ import annotations

from argparse import Namespace

from patchq.cli import arguments, forge, opening, output, several
from patchq.cli.arguments import Argument
from patchq.gate.errors import UsageError
from patchq.gate.report.schema import Report
from patchq.gate.review import comment_file
from patchq.gate.review.comment_file import DraftComment

ARGUMENTS = (
    *several.BATCHES,
    Argument("-m", "--message", metavar="TEXT", help="what is to be different, in general"),
    Argument(
        "--comments",
        metavar="FILE",
        help="comments on lines and edits: a list in JSON of {path, line, side, edit, "
        "text}, or lines like `path:12: text` and `edit 2: text`; - for standard input",
    ),
    Argument("--forge", action="store_true", help="what people wrote on its pull request"),
)


def run(args: Namespace) -> int:
    several.only_one(args, "comments")
    comments = tuple(drafts(args))
    gate = opening.gate(args)
    ids = several.chosen(args, gate)

    sync = forge.synced(args, gate) if args.forge else None

    def send(id: str) -> int:
        there = sync.comments(gate, id) if sync else ()
        return _one(args, gate.send_back(id, (*comments, *there)).report)

    return several.decide(args, ids, send)


def _one(args: Namespace, report: Report) -> int:
    count = len(report.review.comments) if report.review else 0
    to = f"  to {report.agent}" if report.agent else ""
    comments = f"{count} comment{'' if count == 1 else 's'}"
    return output.done(args, report, f"sent back  {report.id}{to}  {comments}")


def drafts(args: Namespace) -> list[DraftComment]:
    """The comments that the arguments hold; `UsageError` if they hold none."""
    if args.message is None and args.comments is None and not args.forge:
        raise UsageError("there is no comment", "give -m TEXT, --comments FILE, or --forge")
    comments = [] if args.message is None else [DraftComment(args.message)]
    if args.comments is not None:
        comments += comment_file.read(arguments.read(args.comments, comment_file.MAX_BYTES))
    return comments
