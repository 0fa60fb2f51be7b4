"""`patchq discard`: take proposals or held batches away."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator

from patchq.cli import accept, arguments, cluster, opening, several
from patchq.model.report import Report
from patchq.pipeline import traces
from patchq.pipeline.ground import Ground
from patchq.review import decide

ARGUMENTS = (
    *several.BATCHES,
    arguments.Argument(
        "-m", "--message", metavar="WHY", type=arguments.words, help="why; its agent is told"
    ),
)


def run(args: Namespace) -> int:
    world = opening.open_world(args, targeted=False)
    ids = several.chosen(args, world, _eligible)
    goes = cluster.far(
        world,
        "discard",
        lambda id: decide.discard(world, id, why=args.message),
        why=args.message,
    )
    return several.decide(args, ids, lambda id: accept.report(args, goes(id), len(ids)))


def _eligible(ground: Ground) -> Iterator[Report]:
    yield from traces.waiting(ground)
    for claim in ground.queue.held():
        if claim.id and (report := ground.queue.load(claim.id)):
            yield report
