"""Changes in a list for people: the choice on the command line, words, and aligned lines."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterable, Iterator, Mapping, Sequence
from shutil import get_terminal_size

from patchq.cli import output
from patchq.cli.arguments import Argument, moment, positive
from patchq.cli.screen import Line, Styled, is_terminal
from patchq.core.text.quote import visible
from patchq.gate.api import words
from patchq.gate.api.rows import SORTS, ChangeRow, Filter, Rows
from patchq.gate.api.status import Status

_SHORTEST = 12  # characters that a cut id or subject keeps at least

# The colours of states and risks.
STYLES = {
    "applied": "green", "accepted": "green", "proposed": "yellow", "held": "magenta",
    "rejected": "red", "reverted": "red", "discarded": "dim", "superseded": "dim",
    "duplicate": "dim", "high": "red", "medium": "yellow", "low": "green",
}  # fmt: skip


FILTERS = (
    Argument("--agent", metavar="NAME", help="only those of this agent"),
    Argument("--path", metavar="PATH", help="only those that touch this file, folder or pattern"),
    Argument(
        "--since",
        metavar="WHEN",
        type=moment,
        help="only those that came to their state since then: 2h, yesterday, 2026-01-31",
    ),
    Argument("--by", choices=tuple(SORTS), help="in the order of this"),
)


def limits(default: int | None, each: str) -> tuple[Argument, Argument]:
    """Return the arguments for the length of a list."""
    return (
        Argument(
            "-n", "--limit", metavar="N", type=positive, default=default, help=f"at most N {each}"
        ),
        Argument(
            "--all", action="store_const", const=sys.maxsize, dest="limit", help="all of them"
        ),
    )


def wanted(args: Namespace) -> Filter:
    """Return the choice that the arguments make."""
    return Filter(args.state, args.agent, args.path, args.since, args.by)


def explain_nothing(args: Namespace, found: Rows | Status) -> None:
    """Say on standard error that a filter matches nothing."""
    if found.rows or wanted(args) == Filter(by=args.by):
        return
    given = [f"--{key} {value}" for key in ("state", "agent", "path") if (value := vars(args)[key])]
    output.notice(args, f"nothing matches {' '.join(given) or '--since'}")


# ---------------------------------------------------------------- words


def heading(row: ChangeRow) -> Iterator[str]:
    """Yield the facts of a report in lines for people."""
    report, on = row.report, row.report.stands_on
    by = " ".join(filter(None, (report.agent, report.model and f"({report.model})")))
    times = [
        f"{what} {moment.iso} ({words.age(moment)} ago)"
        for what, moment in (("received", report.received), ("decided", report.decided))
        if moment
    ]
    risk = row.risk and "; ".join(reason.text for reason in row.risk.reasons)
    for what, text in (
        ("what", report.message), ("who", by), ("when", ", ".join(times)),
        ("size", f"{words.size_of(row)} {words.files_of(row)}".strip()),
        ("on top of", f"{on.batch}, at {on.commit[:12]}" if on else None),
        ("request", row.request and f"{row.request}: {row.request.url}"),
        ("checks", words.checks_of(row)),
        ("risk", row.risk and f"{row.risk.level}{': ' * bool(risk)}{risk}"),
    ):  # fmt: skip
        if text:
            yield visible(f"{what:<10} {text}")


# ---------------------------------------------------------------- lines


def cell(text: str, style: str = "") -> Styled:
    """Return text of a response, harmless to a terminal."""
    return Styled(visible(text), style)


def lines(
    rows: Sequence[Mapping[str, Styled]], cut: Iterable[str] = (), indent: str = ""
) -> Iterator[Line]:
    """Yield the rows as lines; on a terminal columns are aligned, and those of `cut` shortened.

    A pipe gets each line whole, the same whatever rows are beside it.
    """
    names = list(rows[0]) if rows else []
    if not is_terminal():
        for row in rows:
            yield _joined([row[name] for name in names if row[name].text], indent)
        return
    widths = {name: max(len(row[name].text) for row in rows) for name in names}
    room = get_terminal_size().columns - len(indent)
    for name in cut:
        over = sum(width + 2 for width in widths.values() if width) - 2 - room
        widths[name] = max(min(widths[name], _SHORTEST), widths[name] - max(over, 0))
    for row in rows:
        cells = [
            Styled(
                _cut(row[name].text, widths[name], name == "id").ljust(widths[name]),
                row[name].style,
            )
            for name in names
            if widths[name]
        ]
        yield _joined(cells, indent)


def _joined(cells: Sequence[Styled], indent: str) -> Line:
    line = [part for cell in cells for part in (Styled("  "), cell)]
    last = line.pop()
    return (Styled(indent), *line[1:], Styled(last.text.rstrip(), last.style))


def _cut(text: str, width: int, middle: bool) -> str:
    if len(text) <= width:
        return text
    tail = (width - 1) // 2 if middle else 0
    return text[: width - 1 - tail] + "…" + (text[-tail:] if tail else "")
