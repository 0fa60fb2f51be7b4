"""`patchq wait`: until a batch has its verdict, or a later state."""

from __future__ import annotations

import os
import time
from argparse import Namespace
from pathlib import PurePath
from typing import get_args

from patchq.cli import arguments, batches, output, places
from patchq.cli.arguments import Argument
from patchq.model.errors import TimeIsUp, UsageError
from patchq.model.names import response_name
from patchq.model.report import OVER, REPLACED, STANDING, Report
from patchq.model.values import State
from patchq.pipeline.ground import Ground
from patchq.queue.directory import DirectoryQueue
from patchq.report.secrecy import batch_id

ARGUMENTS = (
    arguments.BATCH,
    Argument(
        "--for",
        dest="wanted",
        metavar="STATE",
        action="append",
        choices=get_args(State),
        help="until it has this state, or one of several (its verdict); of %(choices)s",
    ),
    Argument(
        "--timeout", metavar="S", type=arguments.seconds, help="for so many seconds; then exit 124"
    ),
)
_ENDS = OVER | REPLACED
"""States that no other one follows."""
_GOOD = STANDING | {"duplicate"}
_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.02, 0.25


def run(args: Namespace) -> int:
    ground = places.open_ground(args)
    until = None if args.timeout is None else time.monotonic() + args.timeout
    wanted = frozenset(args.wanted or set(get_args(State)) - {"held"})
    pause = _PAUSE_SECONDS
    while True:
        report = _seen(ground, args.id)
        state = report["state"] if report else None
        if report and (state in wanted or state in _ENDS):
            output.Verdicts(args, pages=True)(report)
            return int(state not in (wanted if args.wanted else _GOOD))
        if until is not None and time.monotonic() > until:
            stands = f"is {state}" if state else "has no verdict"
            raise TimeIsUp(
                f"batch {args.id} {stands} after {args.timeout:g} s",
                f"`patchq status` says what it waits for; `patchq wait {args.id}` waits on",
            )
        time.sleep(pause)
        pause = min(pause * 1.5, _LONGEST_PAUSE_SECONDS)


def _seen(ground: Ground, id: str) -> Report | None:
    """The report as it stands now; None for a batch without a verdict.  Raises `UsageError` for one
    that nobody knows."""
    lies = _lies(ground, id)  # looked for first, as what has its verdict meanwhile lies nowhere
    try:
        return batches.seen(ground, *batches.find(ground, id))[0]
    except UsageError:
        if lies or _is_given(ground, id):
            return None
        raise


def _is_given(ground: Ground, id: str) -> bool:
    """Whether a batch has got the id; what is no id at all never will."""
    queue = ground.queue
    return isinstance(queue, DirectoryQueue) and batch_id(id) == id and queue.next_id(id) != id


def _lies(ground: Ground, id: str) -> bool:
    """Whether a response that would get the id is in the inbox, or in hand."""
    inbox, active = ground.queue_root / "inbox", ground.queue_root / "active"
    names = os.listdir(inbox) if inbox.is_dir() else []
    names += [path.name for path in active.glob("*/*")]
    return any(batch_id(PurePath(response_name(name)).stem) == id for name in names)
