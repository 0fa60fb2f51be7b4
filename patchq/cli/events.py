"""`patchq events`: every change of state, as it comes or since an event."""

from __future__ import annotations

import re
import signal
import sys
from argparse import ArgumentTypeError, Namespace
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from types import FrameType
from typing import Any

from patchq.cli import arguments, opening, output
from patchq.core.text.quote import visible
from patchq.gate.report.document import printed
from patchq.gate.service.watcher import Watcher

_NEWEST, _MOST = 50, 1000
_PIECE = 500  # events that are read at once
_LOOK_SECONDS = 1.0


def _place(text: str) -> str:
    if not re.fullmatch(r"[0-9a-f]{1,16}", text):
        raise ArgumentTypeError(f"expected the `id` of an event, or 0 for the first, got {text!r}")
    return text.zfill(16)


ARGUMENTS = (
    arguments.Argument("--follow", action="store_true", help="go on with those that come"),
    arguments.Argument(
        "--since", metavar="ID", type=_place,
        help="those behind the event with this id (0: all that are kept)",
    ),
    arguments.Argument(
        "-n", "--limit", metavar="N", type=arguments.positive,
        help=f"at most N: the newest ({_NEWEST}), or the first since ID ({_MOST})",
    ),
)  # fmt: skip


def run(args: Namespace) -> int:
    gate = opening.gate(args)
    if args.follow:
        return _follow(args, gate.context().queue_root)
    events = gate.events(args.since)
    if args.since is None:
        shown, more = events.newest(args.limit or _NEWEST)
        left = f"{more} earlier events are left out: see --limit, --since 0" if more else ""
    else:
        shown = events.read(args.limit or _MOST)
        last = events.last
        left = f"more follow: --since {last}" if events.read(1) else ""
    for event in shown:
        _tell(args, event)
    _notice(args, events.lost, left)
    return 0


def _follow(args: Namespace, root: Path) -> int:
    """Print events until a signal, or a reader that goes away, ends it."""
    stopped: list[int] = []
    with closing(Watcher(root, args.since)) as watcher:

        def stop(number: int, frame: FrameType | None) -> None:
            stopped.append(number)
            watcher.ring()

        signal.signal(signal.SIGTERM, stop)
        signal.signal(signal.SIGINT, stop)
        warned, left = False, args.limit
        while not stopped and left != 0:
            for event in watcher.read(_PIECE if left is None else min(left, _PIECE)):
                _tell(args, event)
                left = left if left is None else left - 1
            sys.stdout.flush()
            if watcher.lost and not warned:
                warned = True
                _notice(args, True)
            if not stopped and left != 0:
                watcher.wait(_LOOK_SECONDS)
    return 130 if signal.SIGINT in stopped else 0


def _tell(args: Namespace, event: Mapping[str, Any]) -> None:
    print(printed(event) if args.json else _line(event))


def _line(event: Mapping[str, Any]) -> str:
    """One plain line: when, what, which batch, and where it is or why it is not."""
    place = event["branch"] or event["target"] or ""
    commit = (event["commit"] or "")[:12]
    by = f"by {event['agent']}" if event["agent"] else ""
    codes = " ".join(f"[{code}]" for code in event["codes"])
    other = f"({event['other']})" if event["other"] else ""
    parts = (place, commit, by, other, codes)
    when = event["at"]["iso"]
    text = f"{when}  {event['kind']:<17}  {event['batch']}"
    return visible("  ".join([text, *filter(None, parts)]))


def _notice(args: Namespace, lost: bool, more: str = "") -> None:
    if lost:
        since = f"events since {args.since} are not all kept any more"
        output.notice(args, f"{since}: see `patchq log`")
    if more:
        output.notice(args, more)
