"""One change, what happened, and sums: `show`, `events` and `stats`."""

from __future__ import annotations

import signal
import sys
from argparse import Namespace
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import zip_longest
from pathlib import Path
from shutil import get_terminal_size
from types import FrameType
from typing import Any
from unicodedata import east_asian_width

from msgspec import to_builtins

from patchq.cli import arguments, look, opening, output
from patchq.cli.arguments import Argument, Table
from patchq.cli.output import Line, Styled, plain, put
from patchq.core.text.quote import clip, visible
from patchq.gate.api import syntax, words
from patchq.gate.api.rows import ChangeRow, Pending
from patchq.gate.api.stats import BY, DAY, KINDS, edits
from patchq.gate.report import document
from patchq.gate.report.document import printed
from patchq.gate.report.page import to_markdown
from patchq.gate.review.rows import Cell, FileRows, Row, folded

# ---------------------------------------------------------------- show


_NEWEST, _MOST_EVENTS = 50, 1000
_PIECE = 500  # events that are read at once
_LOOK_SECONDS = 1.0
ARGUMENTS: Table = {
    "show": (
        arguments.BATCH,
        (
            Argument("--diff", action="store_true", help="the unified diff only"),
            Argument("--split", action="store_true", help="the change side by side"),
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
        Argument(
            "-n",
            "--limit",
            metavar="N",
            type=arguments.positive,
            help=f"at most N: the newest ({_NEWEST}), or the first since ID ({_MOST_EVENTS})",
        ),
    ),
    "stats": (Argument("--by", choices=BY, help="a row for each of these, in place of one"),),
}


def show(args: Namespace) -> int:
    gate = opening.gate(args)
    found = gate.find(args.id)
    if isinstance(found, Pending):
        return output.emit(args, found.to_json(), words.pending(found))
    report = found.report
    if args.split:
        files = gate.sides(report)
        if args.json:
            return output.emit(
                args, {"id": report.id, "files": to_builtins([file.to_json() for file in files])}
            )
        if files:
            output.show(side_by_side(files))
        else:
            _print(report.diff)
    elif args.diff and args.json:
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


# ---------------------------------------------------------------- split


_IN_A_PIPE = 160
_LEAST = 60
_NUMBER = 5
_EDITS = 6
_OLD, _NEW = "red", "green"
_Runs = Sequence[Sequence[syntax.Run]]
_Code = tuple[_Runs, _Runs]  # the runs of the lines of both sides
_PLAIN: _Code = ((), ())


def side_by_side(files: Iterable[FileRows]) -> Iterator[Line]:
    """Yield the files, one after the other, as wide as the terminal is.

    There the code has its colours, where the extra `review` is installed.
    """
    coloured = output.is_terminal() and syntax.offered()
    columns = get_terminal_size().columns if output.is_terminal() else _IN_A_PIPE
    width = (max(columns, _LEAST) - 2 * (_NUMBER + 1) - _EDITS) // 2
    for number, file in enumerate(files):
        yield from [plain("")] if number else []
        yield plain(_title(file), "bold")
        code = syntax.sides(file.change) if coloured else _PLAIN
        for row in folded(file.rows):
            yield from [_fold(row, width)] if row.kind == "fold" else _row(row, width, code)


def _title(file: FileRows) -> str:
    what = f"renamed from {file.renamed_from}" if file.renamed_from else file.what
    count = "binary" if file.binary else f"+{file.added} -{file.deleted}"
    edits = f"  edit {', '.join(file.edits)}" if file.edits else ""
    link = f"  {file.link}" if file.link else ""
    return visible(f"{file.path}  {what}{link}  {count}{edits}")


def _fold(row: Row, width: int) -> Line:
    changed = f" changed ({clip(', '.join(row.edits), 40)})" if row.edits else ""
    text = visible(f"… {row.hidden} more lines{changed} …")
    return plain(f"{'':{_NUMBER}} {text}", "cyan")


def _row(row: Row, width: int, code: _Code) -> Iterator[Line]:
    old = _pieces(row, row.old, width, _OLD, code[0])
    new = _pieces(row, row.new, width, _NEW, code[1])
    sides = (_OLD, _NEW) if row.kind != "same" and code != _PLAIN else ("dim", "dim")
    edits = clip(visible(",".join(row.edits)), _EDITS - 3)
    for number, (left, right) in enumerate(zip_longest(old, new)):
        between = f" {'' if number else edits:^{_EDITS - 2}} "
        yield (
            _number(None if number else row.old, sides[0]),
            *(left or (Styled(" " * width),)),
            Styled(between, "cyan"),
            _number(None if number else row.new, sides[1]),
            *_stripped(right or ()),
        )


def _number(cell: Cell | None, style: str) -> Styled:
    return Styled(f"{cell.line if cell else '':>{_NUMBER}} ", style)


def _pieces(row: Row, cell: Cell | None, width: int, style: str, code: _Runs) -> list[Line]:
    if cell is None:
        return []
    style = style if row.kind != "same" else ""
    marked = {at for first, end in cell.marks for at in range(first, end)}
    runs = code[cell.line - 1] if cell.line <= len(code) else ()
    styles = syntax.styles(cell.text, runs)
    text = cell.text + ("" if cell.ended else " (no line end)")
    found: list[Line] = []
    line: list[Styled] = []
    used = 0
    for at, char in enumerate(text.expandtabs(1)):
        columns = 2 if east_asian_width(char) in "WF" else 1
        if used + columns > width:
            found.append(tuple(line))
            line, used = [], 0
        own = (styles[at] if at < len(styles) else "") or style
        line.append(Styled(char, f"{own} reverse".strip() if at in marked else own))
        used += columns
    found.append((*line, Styled(" " * (width - used))))
    return [_joined(some) for some in found]


def _joined(pieces: Iterable[Styled]) -> Line:
    made: list[Styled] = []
    for piece in pieces:
        if made and made[-1].style == piece.style:
            piece = Styled(made.pop().text + piece.text, piece.style)
        made.append(piece)
    return tuple(made)


def _stripped(line: Line) -> Line:
    """Without the blanks that would fill up the last column."""
    if line and not line[-1].style:
        return (*line[:-1], Styled(line[-1].text.rstrip(" ")))
    return line


# ---------------------------------------------------------------- events


def events(args: Namespace) -> int:
    gate = opening.gate(args)
    if args.follow:
        return _follow(args, gate.context().queue_root)
    events = gate.events(args.since)
    if args.since is None:
        shown, more = events.newest(args.limit or _NEWEST)
        left = f"{more} earlier events are left out: see --limit, --since 0" if more else ""
    else:
        shown = events.read(args.limit or _MOST_EVENTS)
        last = events.last
        left = f"more follow: --since {last}" if events.read(1) else ""
    for event in shown:
        _print_event(args, event)
    _notice_lost(args, events.lost, left)
    return 0


def _follow(args: Namespace, root: Path) -> int:
    from patchq.gate.service.wake import Watcher  # only this needs it

    stopped: list[int] = []
    with closing(Watcher(root, args.since)) as watcher:

        def stop(number: int, frame: FrameType | None) -> None:
            stopped.append(number)
            watcher.ring()

        signal.signal(signal.SIGTERM, stop)
        signal.signal(signal.SIGINT, stop)
        warned, left = False, args.limit or sys.maxsize
        while left and not stopped:
            for event in watcher.read(min(left, _PIECE)):
                _print_event(args, event)
                left -= 1
            sys.stdout.flush()
            if watcher.lost and not warned:
                warned = True
                _notice_lost(args, True)
            if left and not stopped:
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


_WORDS = {"batches": "changes"}


def stats(args: Namespace) -> int:
    rows = opening.gate(args).stats(args.by)
    lines = _day_lines(rows) if args.by == DAY else _sum_lines(rows, args.by)
    return output.emit(args, {"by": args.by, "rows": rows}, *lines)


def _day_lines(rows: list[dict[str, Any]]) -> Iterator[str]:
    for row in rows:
        yield f"{row['day']}  " + ", ".join(f"{kind} {n}" for kind, n in row["events"].items())
    if not rows:
        yield "nothing happened here yet"


def _sum_lines(rows: list[dict[str, Any]], by: str | None) -> Iterator[str]:
    if not rows:
        yield "nothing was decided here yet"
    for row in rows:
        name = f"{by} {visible(clip(row['name'] or 'unknown', 60))}: " if by else ""
        responses = f"{row['responses']} responses, " if by != "format" else ""
        yield f"{name}{responses}{edits(row)} edits"
        for kind in KINDS.values():
            if row[kind]:
                sums = sorted(row[kind].items(), key=lambda item: (-item[1], item[0]))
                yield f"  {kind:<12}" + ", ".join(
                    f"{_WORDS.get(value) or visible(value)} {n}" for value, n in sums
                )
        if row["truncated"]:
            yield f"  {'truncated':<12}{row['truncated']}"
