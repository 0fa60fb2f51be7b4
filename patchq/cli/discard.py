"""`patchq discard`: take proposals or held batches away."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator

from patchq.cli import accept, arguments, opening, several
from patchq.gate.pipeline import history
from patchq.gate.pipeline.context import RepoContext
from patchq.gate.report.schema import Report

ARGUMENTS = (
    *several.BATCHES,
    arguments.Argument(
        "-m",
        "--message",
        metavar="WHY",
        type=arguments.words,
        help="the reason, which its agent sees",
    ),
)


def run(args: Namespace) -> int:
    gate = opening.gate(args)
    ids = several.chosen(args, gate.session(targeted=False), _eligible)

    def go(id: str) -> int:
        return accept.report(args, gate.discard(id, args.message), len(ids))

    return several.decide(args, ids, go)


def _eligible(context: RepoContext) -> Iterator[Report]:
    yield from history.waiting(context)
    for claim in context.queue.held():
        if claim.id and (report := context.queue.load(claim.id)):
            yield report
