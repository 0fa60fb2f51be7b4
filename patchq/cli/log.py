"""`patchq log`: the changes that have a verdict, the newest first."""

from __future__ import annotations

from argparse import Namespace
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import get_args

from patchq.cli import arguments, listing, opening, output, screen
from patchq.cli.screen import Line, Styled
from patchq.core.model.values import State
from patchq.gate.api import MOST, words
from patchq.gate.api.rows import ChangeRow
from patchq.gate.report.schema import OVER, REPLACED, STOPPED

ARGUMENTS = (
    listing.limits(MOST, f"changes ({MOST})"),
    arguments.Argument(
        "--state", choices=sorted(get_args(State)), metavar="STATE", help="only those in this state"
    ),
    *listing.FILTERS,
)


def run(args: Namespace) -> int:
    found = opening.gate(args).batches(listing.wanted(args), args.limit)
    listing.explain_nothing(args, found)
    if args.json:
        for row in found.rows:
            output.say(args, row.report)
    else:
        screen.show(_lines(found.rows), crop=True)
    if found.left_out:
        what = "older changes" if args.by is None else "others"
        output.notice(args, f"{what} are left out: see --limit, --all, and --since")
    return 0


def _lines(rows: Sequence[ChangeRow]) -> Iterator[Line]:
    """Yield a line for each and, on a terminal, how many there are of each state."""
    yield from listing.lines([_cells(row) for row in rows], ("subject", "why", "id"))
    if rows and screen.is_terminal():
        counts = Counter(row.report.state for row in rows).most_common()
        states = ", ".join(f"{count} {state}" for state, count in counts)
        yield screen.plain(f"{len(rows)} shown: {states}", "bold")


def _cells(row: ChangeRow) -> dict[str, Styled]:
    report = row.report
    refused = row.why if report.state in STOPPED else None
    codes = dict.fromkeys(one.code for one in report.problems)
    ended = report.state in OVER | REPLACED
    other = report.duplicate_of
    return {
        "id": listing.cell(f"{report.state:<10} {report.id}", listing.STYLES[report.state]),
        "age": Styled(words.age(row.ended, report.decided, report.received), "cyan"),
        "size": listing.cell(f"{words.size_of(row)} {words.files_of(row)}".strip() or "-"),
        "commit": Styled("" if ended else (report.commit or "")[:12], "dim"),
        "other": listing.cell(f"by {other}" if other else ""),
        "codes": Styled("" if refused else " ".join(f"[{code}]" for code in codes), "yellow"),
        "why": listing.cell(f"{refused.code}: {refused.message}" if refused else "", "red"),
        "note": listing.cell(f"({row.note})" if row.note else ""),
        "subject": listing.cell(words.author_and_subject(report)),
        "checks": listing.cell("" if refused else words.checks_of(row), "dim"),
    }
