"""`patchq status`: the daemon, the inbox, what waits for whom, and what is held and why."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from shutil import get_terminal_size
from typing import Any

from patchq.cli import arguments, listing, opening, output, screen
from patchq.cli.screen import Line, Styled, plain
from patchq.core.text.quote import visible
from patchq.gate.api import MOST, words
from patchq.gate.api.rows import Block, ChangeRow, Pending
from patchq.gate.api.status import BLOCKS, Status
from patchq.gate.errors import CRASHED, CannotSign, ObjectDamaged
from patchq.gate.report.document import plain as as_json

_WITH_CURE = (ObjectDamaged.code, CRASHED, CannotSign.code, "worktree.unseen")
_TIMES = "\N{MULTIPLICATION SIGN}"
_LEAST_ROWS = 3  # rows of each block that the first screen shows
_TITLES = {
    "for_you": "For you",
    "accepted": "Accepted",
    "for_agents": "For their agents",
    "held": "Held",
}
ARGUMENTS = (
    arguments.Argument("id", metavar="ID", nargs="?", help="one change only"),
    listing.limits(None, f"of each kind (a screen; {MOST} in JSON)"),
    arguments.Argument(
        "--state",
        choices=("proposed", "boarded", "changes_requested", "held"),
        help="only those in this state",
    ),
    arguments.Argument(
        "--ahead", action="store_true", help="what is being written and overlaps that, or others"
    ),
    *listing.FILTERS,
)


def run(args: Namespace) -> int:
    gate = opening.gate(args)
    if args.id is not None:
        return _one(args, gate.find(args.id))
    if args.ahead:
        found = gate.overlaps()
        if args.json:
            return output.emit(args, {"ahead": found})
        screen.show(_ahead_lines(found))
        return 0
    status = gate.status(listing.wanted(args), args.limit or (MOST if args.json else None))
    listing.explain_nothing(args, status)
    if args.json:
        return output.emit(args, status.to_json())
    # Beside the next prompt; a pipe has no height.
    height = max(get_terminal_size().lines - 1, 8) if screen.is_terminal() else 24
    screen.show(_lines(status, None if args.limit else height), crop=True)
    return 0


def _one(args: Namespace, found: ChangeRow | Pending) -> int:
    if isinstance(found, Pending):
        return output.emit(args, found.to_json(), words.pending(found))
    line = words.line(found.report) + (f"  ({found.note})" if found.note else "")
    answer = {**as_json(found.report), "note": found.note}
    return output.emit(args, answer, line, *listing.heading(found))


def _lines(status: Status, height: int | None) -> Iterator[Line]:
    """Yield the lines for people; at most `height` of them, if that is bounded."""
    head = [*_head(status), *_branch_lines(status.branches)]
    tail = _refused(status)
    blocks = {name: status.block(name) for name in BLOCKS}
    titles = [name for name in BLOCKS if status.counts[name] or name == "for_you"]
    shares = _shares(blocks, titles, height and height - len(head) - len(tail))
    yield from head
    for name in titles:
        yield plain(f"{_TITLES[name]} ({status.counts[name]})", "bold")
        rows = blocks[name][: shares[name]]
        yield from _held_lines(rows) if name == "held" else _proposal_lines(rows)
        if more := status.counts[name] - len(rows):
            also = "" if name == "held" else ", or `patchq review`"
            yield plain(f"  … {more} more: `patchq status --all`{also}")
    yield from tail


def _shares(
    blocks: Mapping[Block, Sequence[ChangeRow]], titles: Sequence[Block], lines: int | None
) -> Mapping[Block, int]:
    """Return the number of rows of each block that fit: some of each, then the first ones' rest."""
    counts = {name: len(blocks[name]) for name in titles}
    if lines is None:
        return counts
    shares = {name: min(count, _LEAST_ROWS) for name, count in counts.items()}
    left = lines - 2 * len(titles) - sum(shares.values())
    for name in titles:
        more = max(0, min(counts[name] - shares[name], left))
        shares[name] += more
        left -= more
    return shares


def _head(status: Status) -> Iterator[Line]:
    place = f" on {status.remote}" if status.remote else ""
    busy = f", busy: a work tree is {status.busy}" if status.busy else ""
    daemon, runs = status.daemon, "no daemon runs"
    if daemon:
        since = daemon["since"] and datetime.fromisoformat(daemon["since"]).timestamp()
        runs = f"watching for {words.age(since)}" if since else "watching"
    inbox = f"{status.inbox} in the inbox" if status.inbox else "inbox empty"
    target = f"{status.target or 'no target'}{place}, {status.mode} mode{busy}"
    yield plain(visible(f"{target}; {runs}; {inbox}"))
    if status.in_hand["count"]:
        doing = f": {status.in_hand['text']}" if status.in_hand["text"] else ""
        yield plain(visible(f"{status.in_hand['count']} in hand{doing}"))
    yield from (plain(words.train(train)) for train in status.trains)
    for trouble in status.troubles:
        yield plain(visible(f"trouble  {trouble['what']}: {trouble['why']}"), "red")
        yield from _below("cure:", trouble["cure"])


def _refused(status: Status) -> list[Line]:
    text = f"{len(status.refused)} refused in the last 24 h: `patchq log --state rejected`"
    return [plain(text)] if status.refused else []


def _proposal_lines(rows: Sequence[ChangeRow]) -> Iterator[Line]:
    cells = [_proposal(row) for row in rows]
    return listing.lines(cells, ("subject", "id", "checks", "agent"), indent="  ")


def _proposal(row: ChangeRow) -> dict[str, Styled]:
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
        "needs a retry" if row.needs_retry else "",
        f"({row.note})" if row.note else "",
    ]
    moved = words.files_of(row) if row.renames else ""
    return {
        "id": listing.cell(f"{decided}{row.id}", listing.STYLES.get(report.state, "")),
        "risk": Styled(level, listing.STYLES.get(level, "")),
        "size": listing.cell(" ".join(filter(None, (words.size_of(row), moved)))),
        "age": Styled(words.age(report.received, report.decided), "cyan"),
        "agent": listing.cell(report.agent or ""),
        "checks": listing.cell(words.checks_of(row), "dim"),
        "subject": listing.cell(subject),
        "place": listing.cell("  ".join(filter(None, place)), "yellow"),
    }


def _held_lines(rows: Sequence[ChangeRow]) -> Iterator[Line]:
    for row in rows:
        why = row.why
        reason = f"{why.code}: {why.message}" if why else "not looked at yet"
        if row.needs:
            needs = (id if state else f"{id} (unknown)" for id, state in row.needs.items())
            reason = f"waits for {', '.join(needs)}"
        cells = {
            "id": listing.cell(row.id, listing.STYLES["held"]),
            "why": listing.cell(reason),
            "age": Styled(words.age(row.report.received), "cyan"),
            "by": listing.cell(words.author_and_subject(row.report)),
        }
        yield from listing.lines([cells], indent="  ")
        if why and why.code in _WITH_CURE:
            yield from _below("cure:", why.hint)


def _branch_lines(branches: Sequence[Mapping[str, str | None]]) -> Iterator[Line]:
    """Yield the branches that wait or were turned away, and the number of the others."""
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
        left = f", {work['files_left_out']} of them not compared" if work["files_left_out"] else ""
        clear = "" if work["overlaps"] else ", nothing overlaps"
        files = f"{work['files']} file{'' if work['files'] == 1 else 's'}"
        yield plain(visible(f"ahead    {where}  {files}{left}{clear}"))
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


_KINDS = {"waits": "proposal", "held": "held change", "worktree": "work tree", "branch": "branch"}


def _changed(change: Mapping[str, Any]) -> str:
    lines = change["lines"] and "-".join(map(str, dict.fromkeys(change["lines"])))
    return f"{change['does']} {f'lines {lines} of ' if lines else ''}{change['path']}"


def _below(what: str, text: str | None) -> Iterator[Line]:
    """Yield a line below another one that says more."""
    if text:
        yield plain(visible(f"           {what} {text}"), "dim")
