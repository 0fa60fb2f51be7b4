"""Verbs that decide on one batch or on several: which, after asking, and what came of each."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable

from patchq.cli import output
from patchq.cli.arguments import Argument, agreed
from patchq.cli.telling import tell
from patchq.core.model.names import suggestion
from patchq.core.text.quote import visible
from patchq.gate.api import Gate, words
from patchq.gate.api.rows import ChangeRow, seconds
from patchq.gate.errors import Fault, UsageError
from patchq.gate.report.schema import Report

BATCHES = (
    Argument("ids", metavar="ID", nargs="*", help="one change or several"),
    Argument("--all-from", metavar="AGENT", help="all of this agent, after asking"),
    Argument("--yes", action="store_true", help="do not ask (for scripts)"),
    Argument("--fail-fast", action="store_true", help="leave the others where one fails"),
)
_MOST_LISTED = 50


def chosen(args: Namespace, gate: Gate) -> list[str]:
    """Return the known ids to decide on; of an agent all that the verb may be about, if agreed to.

    Raises `UsageError` where ids are missing, unknown or beside an agent, and where there is no
    terminal to ask on.
    """
    if args.all_from is None:
        if not args.ids:
            raise UsageError(
                f"name a change: `patchq {args.verb} ID`", "or several, or --all-from AGENT"
            )
        ids = list(dict.fromkeys(map(gate.identify, args.ids)))
        gate.check_known(ids if len(ids) > 1 else ())
        return ids
    if args.ids:
        raise UsageError("--all-from names the changes already", "leave the ids out, or --all-from")
    everyone = sorted(
        gate.candidates(args.verb), key=lambda report: seconds(report.received, report.decided)
    )
    found = [report for report in everyone if report.agent == args.all_from]
    if not found:
        if near := suggestion(args.all_from, sorted(r.agent for r in everyone if r.agent)):
            raise UsageError(f"there is nothing of {args.all_from!r} to {args.verb}", near)
        output.notice(args, f"nothing of {args.all_from} to {args.verb}")
    elif not agreed(args, _deed(args, found), *map(_line, found[:_MOST_LISTED])):
        output.notice(args, "nothing was done")
        return []
    return [report.id for report in found]


def _deed(args: Namespace, found: list[Report]) -> str:
    return f"{args.verb} " + (f"these {len(found)} changes" if len(found) > 1 else "this change")


def _line(report: Report) -> str:
    row = ChangeRow(report=report)
    size = f"{words.size_of(row)} {words.files_of(row)}".strip()
    parts = (report.state, report.id, words.age(report.received), size, report.message)
    return visible("  ".join(filter(None, parts)))


def decide(args: Namespace, ids: list[str], one: Callable[[str], int]) -> int:
    """Decide on each; one that fails leaves the others to be decided, unless `--fail-fast` is
    given.  The exit code is the worst."""
    worst = 0
    for number, id in enumerate(ids, 1):
        try:
            code = one(id)
        except Fault as fault:
            if len(ids) == 1:
                raise
            tell(fault, json=args.json, id=id)
            code = fault.exit_status
        worst = max(worst, code)
        if code and args.fail_fast and number < len(ids):
            output.notice(args, f"left as they were: {', '.join(ids[number:])}")
            break
    return worst


def only_one(args: Namespace, *flags: str) -> None:
    """Raises `UsageError` for flags that name edits of one batch, where there may be several."""
    given = [flag for flag in flags if getattr(args, flag)]
    if given and (len(args.ids) > 1 or args.all_from is not None):
        raise UsageError(f"--{given[0]} names edits of one change", "name one change with it")
