"""`patchq accept`: land a proposal, whole or the chosen edits of it."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterator

from patchq.cli import deciding, opening, output, several
from patchq.cli.arguments import Argument, edit_ids
from patchq.cli.several import BATCHES
from patchq.cli.telling import tell
from patchq.core.text.quote import visible
from patchq.gate.errors import Fault
from patchq.gate.pipeline import history
from patchq.gate.review.decide import Decided
from patchq.gate.review.errands import Accept

ARGUMENTS = (
    *BATCHES,
    (
        Argument("--only", metavar="E,…", type=edit_ids, help="these edits and what they need"),
        Argument("--without", metavar="E,…", type=edit_ids, help="all but these edits"),
        Argument("--stack", action="store_true", help="and the proposals that it stands on"),
    ),
)


def run(args: Namespace) -> int:
    several.only_one(args, "only", "without")
    session = opening.gate(args).session(targeted=False)
    ids = several.chosen(args, session, history.waiting)
    only = None if args.only is None else tuple(sorted(args.only))
    without = tuple(sorted(args.without or ()))

    def land(id: str) -> int:
        errand = Accept(id, only, without, args.stack)
        return report(args, deciding.decide(session, errand), len(ids))

    return several.decide(args, ids, land)


def report(args: Namespace, decided: Decided, of: int = 1) -> int:
    """Print what was decided, one of so many, or why nothing was; the exit code."""
    if not decided.problems:
        for below in decided.below:
            output.say(args, below)
        output.say(args, decided.report)
        if not args.json and not args.quiet:
            for line in _beside(decided):
                print(visible(f"  {line}"))
        return 0
    id = decided.report.id if of > 1 else None
    for problem in decided.problems:
        if args.json:
            fault = Fault(problem.message, problem.hint or "")
            fault.code = problem.code
            tell(fault, json=True, id=id)
            continue
        first, *more = problem.message.split("\n")  # what a hook printed
        about = f"{id}: " if id else ""
        lines = [f"patchq: {about}{problem.code}: {first}", *(f"  | {text}" for text in more)]
        lines += [f"  {problem.hint}"] if problem.hint else []
        print(*map(visible, lines), sep="\n", file=sys.stderr)
    return 1


def _beside(decided: Decided) -> Iterator[str]:
    """What the choice does beside what it says."""
    if decided.back:
        yield f"with edit {', '.join(decided.back)}, which the choice brings back"
    for id, need in decided.along:
        yield f"without edit {id} either, which needs edit {need}"
