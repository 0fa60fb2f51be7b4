"""`patchq log`: the batches that have a verdict, the newest first, so many of them.

Of batches whose report the queue gave up, or lost, git and the register of ids still tell.  Those
that git alone knows come last, by the times of their commits.
"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import get_args

from patchq.cli import arguments, batches, listing, output, places, screen
from patchq.cli.listing import Filter
from patchq.cli.screen import Line, Styled
from patchq.core.model.values import State
from patchq.gate.pipeline.context import RepoContext
from patchq.gate.report.schema import STOPPED, Report
from patchq.gate.review import from_git

MOST = 50
ARGUMENTS = (
    (
        arguments.Argument(
            "-n",
            "--limit",
            metavar="N",
            type=arguments.positive,
            default=MOST,
            help=f"at most N batches ({MOST})",
        ),
        arguments.Argument(
            "--all", action="store_const", const=None, dest="limit", help="every batch"
        ),
    ),
    arguments.Argument(
        "--state", choices=sorted(get_args(State)), metavar="STATE", help="only those in this state"
    ),
    *listing.FILTERS,
)
_AT_ONCE = 50
"""Lines whose columns stand below each other."""


def run(args: Namespace) -> int:
    context = places.open_context(args)
    wanted = Filter.of(args)
    found = newest_first(context, args.limit or sys.maxsize)
    found = (one for one in found if args.state in (None, one[0].state) and wanted.fits(one[0]))
    if wanted.by is not None:
        everyone = {report.id: (report, note) for report, note in found}
        reports = wanted.ordered(context, [report for report, _ in everyone.values()])
        found = iter([everyone[report.id] for report in reports])
    shown = islice(found, args.limit)
    if args.json:
        for report, _ in shown:
            output.say(args, report)
    else:
        screen.show(_lines(shown, totals=screen.is_terminal()), context.repo, crop=True)
    if next(found, None) and not args.quiet:
        what = "older batches" if wanted.by is None else "others"
        print(f"{what} are left out: see --limit, --all, and --since", file=sys.stderr)
    return 0


def _lines(found: Iterator[tuple[Report, str]], *, totals: bool) -> Iterator[Line]:
    """A line for each, and with `totals` how many there are of each state."""
    counts: Counter[str] = Counter()
    while some := list(islice(found, _AT_ONCE)):
        counts.update(report.state for report, _ in some)
        yield from listing.columns([_row(*one) for one in some])
    if totals and counts:
        told = ", ".join(f"{count} {state}" for state, count in counts.most_common())
        yield screen.plain(f"{counts.total()} shown: {told}", "bold")


def _row(report: Report, note: str) -> list[Styled]:
    batch = {"agent": report.agent, **listing.facts(report)}
    problems = report.problems
    refused = report.state in STOPPED and problems
    codes = [problem.code for problem in problems]
    why = f"{codes[0]}: {problems[0].message}" if refused else ""
    other = report.duplicate_of
    return [
        listing.cell(f"{report.state:<10} {report.id}", listing.STYLES[report.state]),
        Styled(listing.age(report.decided, report.received), "cyan"),
        listing.cell(listing.size_of(report.size, listing.paths(report))),
        Styled((report.commit or "")[:12], "dim"),
        listing.cell(f"by {other}" if other else ""),
        Styled("" if refused else " ".join(f"[{code}]" for code in dict.fromkeys(codes)), "yellow"),
        listing.cell(why, "red"),
        listing.cell(f"({note})" if note else ""),
        listing.cell(listing.said_by(batch)),
        listing.cell(listing.checks_of(batch), "dim"),
    ]


def newest_first(context: RepoContext, most: int) -> Iterator[tuple[Report, str]]:
    """The reports as they stand now, each with what there is to say of it; `most` is how many are
    probably wanted."""
    ids, seen = context.queue.newest(), set[str]()
    while some := list(islice(ids, min(most + 1, 1000))):
        seen.update(some)
        reports = {id: report for id in some if (report := context.queue.load(id))}
        gone = from_git.gone(context, set(some) - reports.keys())
        for id in some:
            if report := reports.get(id):
                yield batches.seen(context, report)
            elif id in gone:
                yield batches.seen(context, *gone[id])
    for report in from_git.missing(context, seen):
        yield batches.seen(context, report, from_git.SAYS_SO)
