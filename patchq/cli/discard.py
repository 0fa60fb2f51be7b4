"""`patchq discard`: take proposals or held batches away."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator

from patchq.cli import accept, arguments, deciding, opening, several
from patchq.gate.pipeline import history
from patchq.gate.pipeline.context import RepoContext
from patchq.gate.report.schema import Report
from patchq.gate.review.errands import Discard

ARGUMENTS = (
    *several.BATCHES,
    arguments.Argument(
        "-m", "--message", metavar="WHY", type=arguments.words, help="why; its agent is told"
    ),
)


def run(args: Namespace) -> int:
    session = opening.gate(args).session(targeted=False)
    ids = several.chosen(args, session, _eligible)

    def go(id: str) -> int:
        decided = deciding.decide(session, Discard(id, args.message))
        return accept.report(args, decided, len(ids))

    return several.decide(args, ids, go)


def _eligible(context: RepoContext) -> Iterator[Report]:
    yield from history.waiting(context)
    for claim in context.queue.held():
        if claim.id and (report := context.queue.load(claim.id)):
            yield report
