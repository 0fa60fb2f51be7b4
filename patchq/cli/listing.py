"""Batches in a list: which of them, in which order, and a line for each that says who, what, when,
how old, how large and which checks."""

from __future__ import annotations

import re
import time
from argparse import ArgumentTypeError, Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from fnmatch import fnmatchcase
from posixpath import normpath
from typing import Any

from msgspec import Struct

from patchq.cli.arguments import Argument
from patchq.cli.screen import Line, Styled, is_terminal
from patchq.core.text.quote import visible
from patchq.gate.pipeline.context import RepoContext
from patchq.gate.report.schema import Moment, Report, SizeEntry
from patchq.gate.review import comparison

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_SPAN = re.compile(r"([0-9]{1,6})([smhdw])")
_WIDEST = 32
"""Of a column; what is longer moves only its own line."""
_COLUMNS = 3
_LONGEST_NAME = 40

STYLES = {
    "applied": "green", "accepted": "green", "proposed": "yellow", "held": "magenta",
    "rejected": "red", "reverted": "red", "discarded": "dim", "superseded": "dim",
    "duplicate": "dim",
}  # fmt: skip
"""The colours of states."""


def since(text: str) -> float:
    """An argument that is a time in the past, as a span before now or as a date: seconds since the
    epoch.  A date without a zone is one of this machine's."""
    expected = f"expected a span such as 2h or 3d, or a date such as 2026-01-31, got {text!r}"
    now = time.time()
    if span := _SPAN.fullmatch(text):
        return now - int(span[1]) * _UNITS[span[2]]
    try:
        moment = datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError, OSError):
        raise ArgumentTypeError(expected) from None
    if moment > now:
        raise ArgumentTypeError(f"{expected}, which is still to come")
    return moment


def received(context: RepoContext, report: Report) -> float:
    """When the batch came, in seconds since the epoch."""
    return _seconds(report.received, report.decided)


def _size(context: RepoContext, report: Report) -> tuple[int, int]:
    size = report.size
    return (-size.added - size.deleted, -size.files) if size else (1, 0)


def _agent(context: RepoContext, report: Report) -> tuple[bool, str, float]:
    return report.agent is None, report.agent or "", received(context, report)


def _risk(context: RepoContext, report: Report) -> tuple[int, ...]:
    return tuple(-number for number in comparison.risk_of(context, report).order)


SORTS: Mapping[str, Callable[[RepoContext, Report], Any]] = {
    "age": received,
    "size": _size,
    "agent": _agent,
    "risk": _risk,
}
"""What batches may be sorted by: the oldest first, the largest first, by the agents' names, the
riskiest first.  What is not known of a batch puts it last."""

FILTERS = (
    Argument("--agent", metavar="NAME", help="only those of this agent"),
    Argument("--path", metavar="PATH", help="only those that touch this file, folder or pattern"),
    Argument(
        "--since",
        metavar="WHEN",
        type=since,
        help="only those that came to their state since then: 2h, 3d, 2026-01-31",
    ),
    Argument("--by", choices=tuple(SORTS), help="in the order of this"),
)


class Filter(Struct, frozen=True):
    """Which batches are wanted, but for their state; `by` is the order."""

    agent: str | None = None
    path: str | None = None
    since: float | None = None
    by: str | None = None

    @classmethod
    def of(cls, args: Namespace) -> Filter:
        path = normpath(args.path) if args.path is not None else None
        return cls(args.agent, None if path == "." else path, args.since, args.by)

    @property
    def reads_all(self) -> bool:
        """Whether only the reports of all batches tell which are wanted, and which come first."""
        return self != Filter()

    def fits(self, report: Report) -> bool:
        if self.agent not in (None, report.agent):
            return False
        if self.since is not None and _seconds(report.decided, report.received) < self.since:
            return False
        return self.path is None or any(_is_at(path, self.path) for path in paths(report))

    def ordered(self, context: RepoContext, reports: Sequence[Report]) -> list[Report]:
        if self.by is None:
            return list(reports)
        key = SORTS[self.by]
        return sorted(reports, key=lambda report: key(context, report))


def _is_at(path: str, wanted: str) -> bool:
    return path == wanted or path.startswith(f"{wanted}/") or fnmatchcase(path, wanted)


def _seconds(*moments: Moment | None) -> float:
    """The first time that is known; none is later than all."""
    return next((moment.unix for moment in moments if moment), float("inf"))


def paths(report: Report) -> list[str]:
    """The files that the edits name, each once."""
    return list(dict.fromkeys(edit.path for edit in report.edits))


def facts(report: Report) -> dict[str, Any]:
    """What a list says of a batch, as JSON."""
    return {
        "message": report.message,
        "received": report.received,
        "decided": report.decided,
        "size": report.size,
        "checks": [{"id": run.id, "stage": run.stage, "exit": run.exit} for run in report.hooks],
    }


# ---------------------------------------------------------------- for people


def age(moment: Moment | None, *more: Moment | None) -> str:
    """How long ago that was, in the largest unit of which it is at least two."""
    seconds = _seconds(moment, *more)
    if seconds == float("inf"):
        return "-"
    passed = max(0, int(time.time() - seconds))
    unit = next((name for name in reversed(_UNITS) if passed >= 2 * _UNITS[name]), "s")
    return f"{passed // _UNITS[unit]}{unit}"


def size_of(size: SizeEntry | None, paths: Sequence[str]) -> str:
    """Return how many lines are added and deleted, and which files change: all are counted."""
    lines = f"+{size.added} -{size.deleted} " if size else ""
    count = max(len(paths), size.files if size else 0)
    name = paths[0] if paths else ""
    if len(name) > _LONGEST_NAME:
        name = f"…{name[-_LONGEST_NAME:]}"
    more = f" (+{count - 1})" if count > 1 else ""
    return f"{lines}{name}{more}".strip() or "-"


def said_by(batch: Mapping[str, Any]) -> str:
    """Who, and what, in the words of the commit's subject."""
    return ": ".join(filter(None, (batch["agent"], batch["message"])))


def heading(report: Report) -> Iterator[str]:
    """What a report says of who, what, when and how large, in lines for people."""
    by = " ".join(filter(None, (report.agent, report.model and f"({report.model})")))
    times = [
        f"{what} {moment.iso} ({age(moment)} ago)"
        for what, moment in (("received", report.received), ("decided", report.decided))
        if moment
    ]
    named = paths(report)
    size = size_of(report.size, named) if named or report.size else ""
    on = report.stands_on
    below = f"{on.batch}, at {on.commit[:12]}" if on else None
    for what, text in (
        ("what", report.message), ("who", by), ("when", ", ".join(times)), ("size", size),
        ("stands on", below),
        ("checks", checks_of(facts(report)).removeprefix("checked by ")),
    ):  # fmt: skip
        if text:
            yield visible(f"{what:<10} {text}")


def risk_line(risk: Mapping[str, Any]) -> str:
    """A level, and what speaks for it; what raises nothing stands behind that."""
    texts = "; ".join(reason["text"] for reason in risk["reasons"])
    return visible(f"{'risk':<10} {risk['level']}{': ' * bool(texts)}{texts}")


def checks_of(report: Mapping[str, Any]) -> str:
    """Which checks there were; one that did not pass is marked."""
    runs = report["checks"]
    names = [run["id"] + ("" if run["exit"] == 0 else "!") for run in runs]
    return f"checked by {', '.join(dict.fromkeys(names))}" if names else ""


def columns(rows: Sequence[Sequence[Styled]]) -> Iterator[Line]:
    """The rows as lines; on a terminal the first cells stand below each other.  In a pipe a line is
    the same whatever stands beside it."""
    fixed = _COLUMNS if is_terminal() else 0
    widths = [
        max((len(row[at].text) for row in rows if len(row[at].text) <= _WIDEST), default=0)
        for at in range(fixed)
    ]
    for row in rows:
        line: list[Styled] = []
        for at, cell in enumerate(row):
            if cell.text or at < fixed:
                width = widths[at] if at < fixed else 0
                line += [Styled("  ")] if line else []
                line.append(Styled(cell.text.ljust(width), cell.style))
        last = line.pop()
        yield (*line, Styled(last.text.rstrip(), last.style))


def cell(text: str, style: str = "") -> Styled:
    """Text that came with a response, harmless to a terminal."""
    return Styled(visible(text), style)
