"""`patchq retry`: decide again on responses that were refused, discarded or wait."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator

from patchq.cli import arguments, opening, output, several
from patchq.gate.land import worker
from patchq.gate.pipeline.context import RepoContext
from patchq.gate.report.schema import Report

ARGUMENTS = (
    *several.BATCHES,
    arguments.Argument(
        "--without",
        metavar="E,…",
        type=arguments.edit_ids,
        help="all but these edits",
        default=frozenset(),
    ),
)


def run(args: Namespace) -> int:
    several.only_one(args, "without")
    gate = opening.gate(args)

    def one(id: str) -> int:
        verdicts = output.Verdicts(args)
        gate.retry(id, args.without, verdicts)
        return verdicts.exit_code

    session = gate.session(targeted=False)
    return several.decide(args, several.chosen(args, session, _eligible), one)


def _eligible(context: RepoContext) -> Iterator[Report]:
    """Yield the reports that another try may help.

    They are the last tries that were refused, those that wait on a target that they cannot follow,
    and those held until something is mended.
    """
    tried = set[str | None]()
    for id in context.queue.newest():
        if report := context.queue.load(id):
            tried.add(report.retry.of)
            moved = any(problem.code == "target.moved" for problem in report.problems)
            again = {
                "rejected": id not in tried,
                "proposed": moved,
                "held": worker.waits_for_mending(report),
            }
            if again.get(report.state):
                yield report
