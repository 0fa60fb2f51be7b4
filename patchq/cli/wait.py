"""`patchq wait`: until a batch has its verdict, or a later state."""

from __future__ import annotations

import math
import time
from argparse import Namespace
from contextlib import closing
from typing import get_args

from patchq.cli import arguments, opening, output
from patchq.cli.arguments import Argument
from patchq.core.model.values import State
from patchq.gate.api import finding
from patchq.gate.errors import TimeIsUp, UsageError
from patchq.gate.pipeline.context import RepoContext
from patchq.gate.report.schema import OVER, REPLACED, STANDING, Report, waits_for_its_agent
from patchq.gate.service.watcher import Watcher

_ASKED = "changes_requested"  # the word for a proposal that was sent back
ARGUMENTS = (
    arguments.BATCH,
    Argument(
        "--for",
        dest="wanted",
        metavar="STATE",
        action="append",
        choices=(*get_args(State), _ASKED),
        help="until it has this state, or one of several (its verdict); of %(choices)s",
    ),
    Argument(
        "--timeout", metavar="S", type=arguments.seconds, help="for so many seconds; then exit 124"
    ),
)
_ENDS = OVER | REPLACED  # states that no other one follows
_GOOD = STANDING | {"duplicate"}
_LOOK_SECONDS = 0.5  # decisions by plain git are no events, so they are looked for


def run(args: Namespace) -> int:
    context = opening.gate(args).context()
    until = math.inf if args.timeout is None else time.monotonic() + args.timeout
    args.id = finding.identify(context, args.id)
    wanted = frozenset(args.wanted or set(get_args(State)) - {"held"})
    with closing(Watcher(context.queue_root)) as watcher:
        while True:
            watcher.read()
            report = _seen(context, args.id)
            state = report.state if report else None
            asked = report is not None and _ASKED in wanted and waits_for_its_agent(report)
            if report and (asked or state in wanted or state in _ENDS):
                output.Verdicts(args, pages=True)(report)
                return int(not asked and state not in (wanted if args.wanted else _GOOD))
            left = until - time.monotonic()
            if left <= 0:
                raise _time_is_up(context, args, state)
            watcher.wait(min(left, _LOOK_SECONDS))


def _time_is_up(context: RepoContext, args: Namespace, state: str | None) -> TimeIsUp:
    pending = finding.pending(context, args.id)
    outcome = f"is {state}" if state else "has no verdict"
    where = f"it is {pending.summary()}" if pending else "`patchq status` says what it waits for"
    return TimeIsUp(
        f"change {args.id} {outcome} after {args.timeout:g} s",
        f"{where}; `patchq wait {args.id}` waits on",
    )


def _seen(context: RepoContext, id: str) -> Report | None:
    """Return the report as git shows it now; None for a change without a verdict.

    Raises `UsageError` for an unknown one.
    """
    known = finding.is_under_way(context, id)  # first: if it ends meanwhile, there is a verdict
    try:
        return finding.seen(context, *finding.find(context, id))[0]
    except UsageError:
        if known or finding.is_given(context, id):
            return None
        raise
