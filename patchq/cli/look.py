"""Lists of changes, and how the queue is: `status`, `log`, and bare `patchq`."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from shutil import get_terminal_size
from typing import Any, get_args

from patchq.cli import output
from patchq.cli.arguments import Argument, Table, moment, positive
from patchq.cli.command import GROUPS, VERBS
from patchq.cli.output import Line, Styled, plain
from patchq.core.model.names import alike
from patchq.core.model.values import State
from patchq.core.text.quote import visible
from patchq.gate.api import MOST, Gate, words
from patchq.gate.api.rows import SORTS, Block, ChangeRow, Filter, Pending, Rows
from patchq.gate.api.status import BLOCKS, Status
from patchq.gate.errors import CRASHED, CannotSign, Fault, ObjectDamaged
from patchq.gate.report.document import plain as as_json
from patchq.gate.report.schema import OVER, REPLACED, STOPPED

# ---------------------------------------------------------------- listing


_MOST_NAMED = 1000  # changes whose agents and paths are suggested
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
    return (
        Argument(
            "-n", "--limit", metavar="N", type=positive, default=default, help=f"at most N {each}"
        ),
        Argument(
            "--all", action="store_const", const=sys.maxsize, dest="limit", help="all of them"
        ),
    )


def wanted(args: Namespace) -> Filter:
    return Filter(args.state, args.agent, args.path, args.since, args.by)


def explain_nothing(args: Namespace, gate: Gate, found: Rows | Status) -> None:
    """Print to standard error that a filter matches nothing, with the nearest names."""
    if found.rows or wanted(args) == Filter(by=args.by):
        return
    given = [f"--{key} {value}" for key in ("state", "agent", "path") if (value := vars(args)[key])]
    rows = [*gate.status(limit=None).rows, *gate.batches(limit=_MOST_NAMED).rows]
    names = {
        "agent": {agent for row in rows if (agent := row.report.agent)},
        "path": {path for row in rows for path in row.paths},
    }
    near = [
        f"`--{key} {name}`"
        for key, known in names.items()
        if (word := vars(args)[key]) and word not in known
        for name in alike(word, known)
    ]
    cure = f"; did you mean {' or '.join(near)}?" if near else ""
    output.notice(args, f"nothing matches {' '.join(given) or '--since'}{cure}")


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
    return Styled(visible(text), style)


def aligned(
    rows: Sequence[Mapping[str, Styled]], cut: Iterable[str] = (), indent: str = ""
) -> Iterator[Line]:
    """Yield the rows as lines, in aligned columns on a terminal.

    There the columns of `cut` are shortened to fit.
    A pipe gets each line whole, the same whatever rows are beside it.
    """
    names = list(rows[0]) if rows else []
    if not output.is_terminal():
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


# ---------------------------------------------------------------- status


_WITH_CURE = (ObjectDamaged.code, CRASHED, CannotSign.code, "worktree.unseen")
_TIMES = "\N{MULTIPLICATION SIGN}"
_CUT = ("subject", "id", "checks", "agent")  # columns that are shortened to fit
_LEAST_ROWS = 3  # rows of each block that the first screen shows
_TITLES = {
    "for_you": "For you",
    "accepted": "Accepted",
    "for_agents": "For their agents",
    "held": "Held",
    "with_git": "Decided with git",
}
ARGUMENTS: Table = {
    "status": (
        Argument("id", metavar="ID", nargs="?", help="one change only"),
        limits(None, f"of each kind (a screen; {MOST} in JSON)"),
        Argument(
            "--state",
            choices=("proposed", "boarded", "changes_requested", "held"),
            help="only those in this state",
        ),
        Argument(
            "--ahead",
            action="store_true",
            help="what is being written and overlaps that, or others",
        ),
        *FILTERS,
    ),
    "log": (
        limits(MOST, f"changes ({MOST})"),
        Argument(
            "--state",
            choices=sorted(get_args(State)),
            metavar="STATE",
            help="only those in this state",
        ),
        *FILTERS,
    ),
}


def status(args: Namespace) -> int:
    gate = output.gate(args)
    if args.id is not None:
        return _one_change(args, gate.find(args.id))
    if args.ahead:
        found = gate.overlaps()
        if args.json:
            return output.emit(args, {"ahead": found})
        output.show(_ahead_lines(found))
        return 0
    status = gate.status(wanted(args), args.limit or (MOST if args.json else None))
    explain_nothing(args, gate, status)
    if args.json:
        return output.emit(args, status.to_json())
    # Beside the next prompt; a pipe has no height.
    height = max(get_terminal_size().lines - 1, 8) if output.is_terminal() else 24
    output.show(_status_lines(status, None if args.limit else height), crop=True)
    return 0


def _one_change(args: Namespace, found: ChangeRow | Pending) -> int:
    if isinstance(found, Pending):
        return output.emit(args, found.to_json(), words.pending(found))
    line = words.line(found.report) + (f"  ({found.note})" if found.note else "")
    answer = {**as_json(found.report), "note": found.note}
    return output.emit(args, answer, line, *heading(found))


def _status_lines(status: Status, height: int | None) -> Iterator[Line]:
    """Yield the lines for people, at most `height` if it is not None."""
    head = [*_head(status), *_branch_lines(status.branches)]
    refused = f"{len(status.refused)} refused in the last 24 h: `patchq log --state rejected`"
    blocks = {n: status.block(n) for n in BLOCKS if status.counts[n] or n == "for_you"}
    room = sys.maxsize if height is None else height - len(head) - bool(status.refused)
    shares = _shares({name: len(rows) for name, rows in blocks.items()}, room)
    yield from head
    for name, found in blocks.items():
        yield plain(f"{_TITLES[name]} ({status.counts[name]})", "bold")
        rows = found[: shares[name]]
        if name == "held":
            yield from _held_lines(rows)
        else:
            yield from aligned([_change_row(row) for row in rows], _CUT, indent="  ")
        if more := status.counts[name] - len(rows):
            also = "" if name == "held" else ", or `patchq review`"
            yield plain(f"  … {more} more: `patchq status --all`{also}")
    if status.refused:
        yield plain(refused)


def _shares(counts: Mapping[Block, int], lines: int) -> Mapping[Block, int]:
    """Return the number of rows of each block: some of each, and more of the first ones."""
    shares, left = {}, lines - (2 + _LEAST_ROWS) * len(counts)
    for name, count in counts.items():
        shares[name] = min(count, _LEAST_ROWS + max(left, 0))
        left -= shares[name] - _LEAST_ROWS
    return shares


def _state(status: Status) -> str:
    place = f" on {status.remote}" if status.remote else ""
    busy = f", busy: a work tree is {status.busy}" if status.busy else ""
    daemon, runs = status.daemon, "no daemon runs"
    if daemon:
        since = daemon["since"] and datetime.fromisoformat(daemon["since"]).timestamp()
        runs = f"watching for {words.age(since)}" if since else "watching"
    inbox = f"{status.inbox} in the inbox" if status.inbox else "inbox empty"
    return f"{status.target or 'no target'}{place}, {status.mode} mode{busy}; {runs}; {inbox}"


def _head(status: Status) -> Iterator[Line]:
    yield plain(visible(_state(status)))
    if status.in_hand["count"]:
        doing = f": {status.in_hand['text']}" if status.in_hand["text"] else ""
        yield plain(visible(f"{status.in_hand['count']} in hand{doing}"))
    yield from (plain(words.train(train)) for train in status.trains)
    for trouble in status.troubles:
        yield plain(visible(f"trouble  {trouble['what']}: {trouble['why']}"), "red")
        yield from _below("cure:", trouble["cure"])


def _change_row(row: ChangeRow) -> dict[str, Styled]:
    report, level = row.report, row.risk.level if row.risk else ""
    sent_back = report.review if row.waits_for == "agent" else None
    first = sent_back and next((one.text for one in sent_back.comments), "").split("\n")[0]
    subject = f"sent back: {first}" if sent_back else report.message or ""
    decided = "" if row.waits_for else f"{report.state} "
    place = [
        f"{_TIMES}{len({one.conflicts_with.batch for one in row.collides if one.conflicts_with})}"
        if row.collides
        else "",
        f"on top of {row.stands_on.batch}" if row.stands_on else "",
        str(row.request) if row.request else "",
        "does not follow its target" if row.needs_retry else "",
        f"({row.note})" if row.note else "",
    ]
    moved = words.files_of(row) if row.renames else ""
    return {
        "id": cell(f"{decided}{row.id}", STYLES.get(report.state, "")),
        "risk": Styled(level, STYLES.get(level, "")),
        "size": cell(" ".join(filter(None, (words.size_of(row), moved)))),
        "age": Styled(words.age(report.received, report.decided), "cyan"),
        "agent": cell(report.agent or ""),
        "checks": cell(words.checks_of(row), "dim"),
        "subject": cell(subject),
        "place": cell("  ".join(filter(None, place)), "yellow"),
    }


def _held_lines(rows: Sequence[ChangeRow]) -> Iterator[Line]:
    for row in rows:
        why = row.why
        reason = words.reason(why) if why else "not looked at yet"
        if row.needs:
            needs = (id if state else f"{id} (unknown)" for id, state in row.needs.items())
            reason = f"waits for {', '.join(needs)}"
        cells = {
            "id": cell(row.id, STYLES["held"]),
            "why": cell(reason),
            "age": Styled(words.age(row.report.received), "cyan"),
            "by": cell(words.author_and_subject(row.report)),
        }
        yield from aligned([cells], indent="  ")
        if why and why.code in _WITH_CURE:
            yield from _below("cure:", why.hint)


def _branch_lines(branches: Sequence[Mapping[str, str | None]]) -> Iterator[Line]:
    others = [branch for branch in branches if branch["state"] != "taken"]
    for branch in others[:MOST]:
        yield plain(visible(f"branch   {branch['branch']}  {branch['state']}: {branch['why']}"))
        yield from _below("until" if branch["state"] == "waits" else "cure:", branch["cure"])
    if branches:
        left = f", {len(others) - MOST} not shown" if len(others) > MOST else ""
        yield plain(f"branches {len(branches) - len(others)} taken, {len(others)} not{left}")


def _ahead_lines(found: Mapping[str, Any]) -> Iterator[Line]:
    for work in found["works"]:
        where = " ".join(filter(None, (work["worktree"], work["branch"] and f"({work['branch']})")))
        clear = "" if work["overlaps"] else ", nothing overlaps"
        files = words.count(work["files"], "file")
        yield plain(visible(f"ahead    {where}  {files}{clear}"))
        for one in work["overlaps"]:
            other = one["with"]
            by = f" of {other['agent']}" if other["agent"] else ""
            who = f"{_KINDS[other['kind']]} {other['name']}{by}"
            yield from _below(f"{_changed(one)}:", f"{who} {_changed(other)}")
        yield from _below("and more", "`--json` has as much" if work["more"] else "")
    if found["left_out"]:
        yield plain(f"not compared: {found['left_out']} more work trees and branches")
    if not found["works"]:
        yield plain(f"nothing is being written that {found['target'] or 'the target'} has not")


_KINDS = {"waits": "proposal", "worktree": "work tree", "branch": "branch"}


def _changed(change: Mapping[str, Any]) -> str:
    lines = change["lines"] and "-".join(map(str, dict.fromkeys(change["lines"])))
    return f"{change['does']} {f'lines {lines} of ' if lines else ''}{change['path']}"


def _below(what: str, text: str | None) -> Iterator[Line]:
    if text:
        yield plain(visible(f"           {what} {text}"), "dim")


# ---------------------------------------------------------------- log


def log(args: Namespace) -> int:
    gate = output.gate(args)
    found = gate.batches(wanted(args), args.limit)
    explain_nothing(args, gate, found)
    if args.json:
        for row in found.rows:
            output.say(args, row.report)
    else:
        output.show(_log_lines(found.rows), crop=True)
    if found.more:
        what = "older changes" if args.by is None else "others"
        output.notice(args, f"{what} are left out: see --limit, --all, and --since")
    return 0


def _log_lines(rows: Sequence[ChangeRow]) -> Iterator[Line]:
    yield from aligned([_log_cells(row) for row in rows], ("subject", "why", "id"))
    if rows and output.is_terminal():
        counts = Counter(row.report.state for row in rows).most_common()
        states = ", ".join(f"{count} {state}" for state, count in counts)
        yield plain(f"{len(rows)} shown: {states}", "bold")


def _log_cells(row: ChangeRow) -> dict[str, Styled]:
    report = row.report
    refused = row.why if report.state in STOPPED else None
    codes = dict.fromkeys(one.code for one in report.problems)
    ended = report.state in OVER | REPLACED
    other = report.duplicate_of
    return {
        "id": cell(f"{report.state:<10} {report.id}", STYLES[report.state]),
        "age": Styled(words.age(row.ended, report.decided, report.received), "cyan"),
        "size": cell(f"{words.size_of(row)} {words.files_of(row)}".strip() or "-"),
        "commit": Styled("" if ended else (report.commit or "")[:12], "dim"),
        "other": cell(f"by {other}" if other else ""),
        "codes": Styled("" if refused else " ".join(f"[{code}]" for code in codes), "yellow"),
        "why": cell(words.reason(refused) if refused else "", "red"),
        "note": cell(f"({row.note})" if row.note else ""),
        "subject": cell(words.author_and_subject(report)),
        "checks": cell("" if refused else words.checks_of(row), "dim"),
    }


# ---------------------------------------------------------------- overview


_EVERY_DAY = "every day"
_SHOWN = {"show": "show ID", "accept": "accept ID", "send-back": "send-back ID -m TEXT"}


def overview(args: Namespace) -> int:
    state, next = _now(args)
    groups = {group: {name: VERBS[name][1] for name in names} for group, names in GROUPS.items()}
    rows = (f"  {_SHOWN.get(name, name):<21} {VERBS[name][1]}" for name in GROUPS[_EVERY_DAY])
    lines = (state, "", *rows, "", f"next: {next}", "`patchq --help` lists all commands")
    return output.emit(args, {"commands": groups, "state": state, "next": next}, *lines)


def _now(args: Namespace) -> tuple[str, str]:
    try:
        gate = output.gate(args)
        now = gate.status(limit=0)
    except Fault as fault:
        return fault.message, fault.hint or "see `patchq doctor`"
    if not gate.context().queue_root.is_dir():
        return "no queue in this repository", "`patchq setup` makes one, for agents and for you"
    proposed = sum(now.counts.values()) - now.counts["held"] - now.counts["with_git"]
    next = "`patchq submit FILE` feeds the queue"
    if not now.daemon and now.inbox:
        next = "`patchq watch` works off the inbox, `patchq run` once"
    elif proposed:
        next = "`patchq status`, then `patchq show ID`"
    elif not now.daemon:
        next = "`patchq watch` serves the queue, and `patchq submit FILE` feeds it"
    return f"{_state(now)}; {proposed} for review", next
