"""One change, what happened, and sums: `show`, `events` and `stats`."""

from __future__ import annotations

import signal
import sys
from argparse import Namespace
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from patchq.cli import arguments, look, output
from patchq.cli.arguments import Argument, Table
from patchq.cli.output import Line, plain, put
from patchq.core.text.quote import clip, visible
from patchq.gate.api import words
from patchq.gate.api.rows import ChangeRow, Pending
from patchq.gate.report import document
from patchq.gate.report.document import printed
from patchq.gate.report.page import to_markdown
from patchq.gate.service.stats import BY, DAY, KINDS, edits

# ---------------------------------------------------------------- show


_NEWEST, _MOST_EVENTS = 50, 1000
_PIECE = 500  # events that are read at once
_LOOK_SECONDS = 1.0
ARGUMENTS: Table = {
    "show": (
        arguments.BATCH,
        (
            Argument("--diff", action="store_true", help="the unified diff only"),
            Argument("--report", action="store_true", help="the report as JSON"),
        ),
    ),
    "events": (
        Argument("--follow", action="store_true", help="go on with those that come"),
        Argument(
            "--since",
            metavar="ID",
            type=arguments.event_id,
            help="those behind the event with this id (0: all that are kept)",
        ),
    ),
    "stats": (Argument("--by", choices=BY, help="a row for each of these, in place of one"),),
}


def show(args: Namespace) -> int:
    gate = output.gate(args)
    found = gate.find(args.id)
    if isinstance(found, Pending):
        return output.emit(args, found.to_json(), words.pending(found))
    report = found.report
    if args.diff and args.json:
        put(document.printed({"id": report.id, "diff": report.diff}))
    elif args.diff:
        _print(report.diff)
    elif args.report or args.json:
        put(document.dumps(report), end="")
    else:
        _print(_page(found))
    return 0


def _page(row: ChangeRow) -> str:
    title, _, page = to_markdown(row.report, person=True).partition("\n")
    # A refusal's page goes back to its model as it is.
    for_people = row.report.state != "rejected" or output.is_terminal()
    head = "".join(f"\n    {line}" for line in look.heading(row)) if for_people else ""
    note = f"\nNote: {row.note}\n" if row.note else ""
    return "\n".join(filter(None, (title, head, page))) + note


def _print(text: str) -> None:
    """Print text unchanged in a pipe, coloured and escaped on a terminal."""
    if output.is_terminal():
        output.show(_coloured(text))
    else:
        put(text, end="")


_STYLES = {"diff --git ": "bold", "@@ ": "cyan", "+": "green", "-": "red", "#": "bold"}


def _coloured(text: str) -> Iterator[Line]:
    for line in text.removesuffix("\n").split("\n"):
        style = next((style for start, style in _STYLES.items() if line.startswith(start)), "")
        yield plain(visible(line, keep="\t"), style)


# ---------------------------------------------------------------- events


def events(args: Namespace) -> int:
    gate = output.gate(args)
    if args.follow:
        return _follow(args, gate.context().queue_root)
    events = gate.events(args.since)
    if args.since is None:
        shown, more = events.newest(_NEWEST)
        left = f"{more} earlier events are left out: see --since 0" if more else ""
    else:
        shown = events.read(_MOST_EVENTS)
        last = events.last
        left = f"more follow: --since {last}" if events.read(1) else ""
    for event in shown:
        _print_event(args, event)
    _notice_lost(args, events.lost, left)
    return 0


def _follow(args: Namespace, root: Path) -> int:
    from patchq.gate.service.wake import Watcher  # only this needs it

    stopped: list[int] = []
    for ending in (signal.SIGTERM, signal.SIGINT):
        signal.signal(ending, lambda number, frame: stopped.append(number))
    watcher = Watcher(root, args.since, lambda: bool(stopped))
    warned = False
    while not stopped:
        for event in watcher.read(_PIECE):
            _print_event(args, event)
        sys.stdout.flush()
        if watcher.lost and not warned:
            warned = True
            _notice_lost(args, True)
        if not stopped:
            watcher.wait(_LOOK_SECONDS)
    return 130 if signal.SIGINT in stopped else 0


def _print_event(args: Namespace, event: Mapping[str, Any]) -> None:
    print(printed(event) if args.json else _event_line(event))


def _event_line(event: Mapping[str, Any]) -> str:
    place = event["branch"] or event["target"] or ""
    commit = (event["commit"] or "")[:12]
    by = f"by {event['agent']}" if event["agent"] else ""
    codes = " ".join(f"[{code}]" for code in event["codes"])
    other = f"({event['other']})" if event["other"] else ""
    parts = (place, commit, by, other, codes)
    when = event["at"]["iso"]
    text = f"{when}  {event['kind']:<17}  {event['batch']}"
    return visible("  ".join([text, *filter(None, parts)]))


def _notice_lost(args: Namespace, lost: bool, more: str = "") -> None:
    if lost:
        since = f"events since {args.since} are not all kept any more"
        output.notice(args, f"{since}: see `patchq log`")
    if more:
        output.notice(args, more)


# ---------------------------------------------------------------- stats


def stats(args: Namespace) -> int:
    rows = output.gate(args).stats(args.by)
    lines = list(_day_lines(rows) if args.by == DAY else _sum_lines(rows, args.by))
    answer = {"by": args.by, "rows": rows}
    return output.emit(args, answer, *(lines or ["nothing was decided here yet"]))


def _day_lines(rows: list[dict[str, Any]]) -> Iterator[str]:
    for row in rows:
        yield f"{row['day']}  " + ", ".join(f"{kind} {n}" for kind, n in row["events"].items())


def _sum_lines(rows: list[dict[str, Any]], by: str | None) -> Iterator[str]:
    for row in rows:
        name = f"{by} {visible(clip(row['name'] or 'unknown', 60))}: " if by else ""
        responses = f"{words.count(row['responses'], 'response')}, " if by != "format" else ""
        yield f"{name}{responses}{words.count(edits(row), 'edit')}"
        for kind in KINDS.values():
            if row[kind]:
                sums = sorted(row[kind].items(), key=lambda item: (-item[1], item[0]))
                yield f"  {kind:<12}" + ", ".join(f"{visible(value)} {n}" for value, n in sums)
