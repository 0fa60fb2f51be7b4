"""Values of the pages: the inbox and other lists, statistics, and one change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from patchq.core.model.values import Problem
from patchq.gate.api import Gate, words
from patchq.gate.api.rows import SORTS, ChangeRow, Filter
from patchq.gate.errors import UsageError
from patchq.gate.report.page import to_markdown
from patchq.gate.review.decide import Decided
from patchq.gate.review.rows import compare
from patchq.gate.service.stats import BY, DAY
from patchq.page.decisions import WHOLE, Form
from patchq.page.diff import Compared, FileDiff, Span, viewed_key
from patchq.page.shown import Shown

MOST = 500  # proposals that one page shows
_MOST_REFUSED = 20
_PER_PAGE = 100  # of the history
_MOST_PAGES = 10_000
_FILTERS = ("agent", "path", "level", "q")
_LANDED = Filter(state="accepted")
_LEVELS = ("high", "medium", "low")


class Group(Struct, frozen=True):
    """Proposals under one heading; of a stack the lowest first."""

    name: str
    title: str
    rows: Sequence[ChangeRow]
    stack: bool = False


def inbox(gate: Gate, asked: Mapping[str, str]) -> Shown:
    """Return the inbox; `asked` has the filters and the order."""
    wanted = {name: asked.get(name) or "" for name in _FILTERS}
    by, group = asked.get("by", "risk"), asked.get("group", "risk")
    where = Filter(agent=wanted["agent"] or None, path=wanted["path"] or None)
    status = gate.status(Filter(by=by if by in SORTS else None), None)
    refused = map(gate.find, status.refused[: -_MOST_REFUSED - 1 : -1])

    def fitting(rows: Iterable[object]) -> list[ChangeRow]:
        found = (row for row in rows if isinstance(row, ChangeRow) and where.takes(row))
        return [row for row in found if _fits(row, wanted["level"], wanted["q"])]

    for_you = fitting(status.block("for_you"))
    values = {
        "status": status,
        "agents": {row.report.agent for row in status.rows if row.report.agent},
        "trains": list(map(words.train, status.trains)),
        "groups": groups(for_you[:MOST], group),
        "for_you": len(for_you),
        "left_out": max(0, len(for_you) - MOST),
        "asked_words": ", ".join(f"{name} {value}" for name, value in wanted.items() if value),
        "sent_back": fitting(status.block("for_agents")),
        "accepted": fitting(status.block("accepted")),
        "held": fitting(status.block("held")),
        "with_git": fitting(status.block("with_git")),
        "refused": fitting(refused),
        "last": next(iter(gate.batches(_LANDED, 1).rows), None) if not for_you else None,
        "asked": {**wanted, "by": by, "group": group},
    }
    return Shown("inbox.html", "Inbox", values)


def several(
    gate: Gate, form: Form, problems: Sequence[Problem] = (), undo: Sequence[str] = ()
) -> Shown:
    """Return the page that confirms a decision on the chosen proposals."""
    chosen = {value.partition(" ")[0] for value in form.getlist("chosen")}
    rows = [row for row in gate.status(limit=None).rows if row.id in chosen]
    values = {
        "deed": form.get("deed", "accept"),
        "rows": rows,
        "ids": {row.id for row in rows},
        "problems": problems,
        "undo": undo,
        "written": form.get("why", ""),
    }
    return Shown("several.html", f"{len(rows)} chosen", values)


def history(gate: Gate, asked: Mapping[str, str]) -> Shown:
    """Return one page of the history, as `patchq log` has it."""
    page = int(asked["page"]) if asked.get("page", "").isdecimal() else 1
    page = min(max(page, 1), _MOST_PAGES)
    found = gate.batches(limit=_PER_PAGE, skip=(page - 1) * _PER_PAGE)
    values = {"rows": found.rows, "page": page, "more": found.more}
    return Shown("history.html", "History", values)


def conflicts(gate: Gate, asked: Mapping[str, str]) -> Shown:
    """Return each pair of proposals that collide, those of the worst member first."""
    rows = [row for row in gate.status(limit=None).rows if row.block != "held"]
    places: dict[tuple[str, str], dict[str, None]] = {}
    for row in rows:
        for found in filter(None, (one.conflicts_with for one in row.collides)):
            lines = "-".join(dict.fromkeys(map(str, found.lines or ())))
            first, second = sorted((row.id, found.batch or ""))
            place = f"{found.path or ''}{f' lines {lines}' if lines else ''}"
            places.setdefault((first, second), {})[place] = None
    many = Counter(id for pair in places for id in pair)
    groups: dict[str, dict[str, list[str]]] = {}
    for pair in sorted(places):
        worst, other = sorted(pair, key=lambda id: -many[id])
        groups.setdefault(worst, {})[other] = list(places[pair])
    worst_first = sorted(groups, key=lambda id: -many[id])
    values = {"groups": groups, "order": worst_first, "many": many, "waiting": len(rows)}
    return Shown("conflicts.html", "Conflicts", values)


def neighbours(gate: Gate, id: str) -> tuple[str | None, str | None]:
    """Return the proposals before and after one in the inbox's order."""
    waiting = groups(gate.status(limit=None).block("for_you"), "risk")
    ids = [row.id for group in waiting for row in group.rows]
    if id not in ids:
        return None, next(iter(ids), None)
    at = ids.index(id)
    return ids[at - 1] if at else None, ids[at + 1] if at + 1 < len(ids) else None


def groups(rows: Sequence[ChangeRow], by: str) -> list[Group]:
    """Return the rows in groups: each stack by itself, then the others by `by`."""
    lowest: dict[str, str] = {}
    stacks: dict[str, list[ChangeRow]] = {}
    for row in rows:  # those of a stack from below
        below = row.stands_on.batch if row.stands_on else ""
        lowest[row.id] = lowest.get(below, row.id)
        stacks.setdefault(lowest[row.id], []).append(row)
    found, others = list[Group](), dict[str, list[ChangeRow]]()
    for bottom, some in stacks.items():
        if len(some) > 1:
            found.append(Group(f"stack-{bottom}", f"Stack on {bottom}", some, True))
        else:
            others.setdefault(_heading(some[0], by), []).extend(some)
    for name in _LEVELS if by == "risk" else sorted(others):
        if name in others:
            title = f"{name.capitalize()} risk" if by == "risk" else name
            found.append(Group(name, title, others[name]))
    return found


def _heading(row: ChangeRow, by: str) -> str:
    names = {
        "risk": row.risk.level if row.risk else "low",
        "agent": row.report.agent or "no agent named",
        "path": row.paths[0].partition("/")[0] if row.paths else "no file",
    }
    return names.get(by, "all")


def _fits(row: ChangeRow, level: str, search: str) -> bool:
    text = " ".join([row.subject, row.id, row.report.agent or "", *row.paths]).lower()
    has_level = not level or (row.risk is not None and row.risk.level == level)
    return has_level and all(word in text for word in search.lower().split())


# ---------------------------------------------------------------- statistics


_SUMS = {
    "verdicts": "What became of responses",
    "decisions": "What people decided of proposals",
    "refusals": "Why responses were refused",
    "matches": "How quotes were found",
}
# The kinds of events that are plotted by day, the first at the left.
_BY_DAY = ("applied", "accepted", "proposed", "refused", "discarded", "reverted")
_MOST_SUMS = 50


def statistics(gate: Gate, asked: Mapping[str, str]) -> Shown:
    """Return the numbers of `patchq stats` as tables with bars."""
    whole: Mapping[str, Any] = next(iter(gate.stats()), {})
    days = {day["day"]: [day["events"].get(kind, 0) for kind in _BY_DAY] for day in gate.stats(DAY)}
    values = {
        "responses": whole.get("responses", 0),
        "sums": {what: whole.get(kind) or {} for kind, what in _SUMS.items()},
        "kinds": _BY_DAY,
        "days": days,
        "most": max(map(sum, days.values()), default=0),
        "tables": {by: gate.stats(by)[:_MOST_SUMS] for by in BY if by != DAY},
    }
    return Shown("statistics.html", "Statistics", values)


# ---------------------------------------------------------------- one change


# Of all files' lines on the page; the files behind them are fetched when they are near.
_MOST_CHARACTERS = 120_000
_MOST_EDITS = 60  # edits up to which their table is there unasked


def change(
    gate: Gate,
    asked: Mapping[str, str],
    problems: Sequence[Problem] = (),
    choice: Decided | None = None,
) -> Shown:
    """Return the page of a change; `choice` previews the chosen edits."""
    row = gate.find(asked["id"])
    if not isinstance(row, ChangeRow):
        raise UsageError(f"{row.id} has no verdict yet", "look again in a moment")
    report = row.report
    shown = Compared(gate, report, asked.get("since", ""))
    files = _files(shown)
    before, after = neighbours(gate, report.id)
    ticked = (choice.report if choice else report).edits
    values = {
        "row": row,
        "report": report,
        "shown": shown,
        "waits": report.state == "proposed" and shown.found is not None,
        "below": list(reversed(gate.stack(report))),
        "lists_edits": choice is not None or len(report.edits) <= _MOST_EDITS or "edits" in asked,
        "files": files,
        "looked": _looked(shown) if shown.rounds and not shown.since else {},
        "comments": report.review.comments if report.review else (),
        "drafts": shown.drafts,
        "whole": WHOLE,
        "tree": tree({one.file.path: one for one in files}),
        "before": before,
        "after": after,
        "page": to_markdown(report, person=True),
        "problems": problems,
        "choice": choice,
        "ticked": {edit.id for edit in ticked if edit.state not in ("skipped", "cancelled")},
    }
    return Shown("batch.html", report.id, values)


def one_file(gate: Gate, asked: Mapping[str, str]) -> Shown:
    """Return the page of one file of a change, or only one fold's lines."""
    report, path = gate.report(asked["id"]), asked.get("path", "")
    shown = Compared(gate, report, asked.get("since", ""))
    changed = next((one for one in shown.changes if one.path == path), None)
    if changed is None:
        raise UsageError(f"{report.id} changes no file {path}", "go back to the change")
    fold = _span(asked.get("from", ""), asked.get("to", ""))
    opened = _span(*asked.get("open", "").partition("-")[::2]) or fold
    diff = FileDiff(shown, changed)
    body = diff.html(fold if "part" in asked else None, opened)
    return Shown("one_file.html", path, {"id": report.id, "diff": diff, "part": body})


def _span(first: str, last: str) -> Span | None:
    return (int(first), int(last)) if first.isdecimal() and last.isdecimal() else None


def _files(shown: Compared) -> list[FileDiff]:
    files = sorted((FileDiff(shown, one) for one in shown.changes), key=lambda one: one.order)
    room = _MOST_CHARACTERS
    for number, one in enumerate(files, 1):
        one.number = number
        if room > 0 and not one.is_folded:
            body = one.html()
            room -= len(body)
            one.body = body if room > -_MOST_CHARACTERS // 4 else None
        one.near = one.body is None and not one.is_folded
    return files


def _looked(shown: Compared) -> dict[str, int]:
    found: dict[str, int] = {}
    known = {key.partition(" ")[2] for key in shown.seen}
    wanted = {
        one.path for one in shown.changes if one.path in known and viewed_key(one) not in shown.seen
    }
    for number, earlier in enumerate(shown.rounds, 1) if wanted else ():
        compared = compare(shown.gate.context(), earlier)
        for change in compared.changes if compared else ():
            if change.path in wanted and viewed_key(change) in shown.seen:
                found[change.path] = number
    return found


def tree(files: Mapping[str, object]) -> dict[str, Any]:
    """Return values by path as nested mappings, with `/` after folder names.

    Folders come first, and one with a single folder in it is joined with that.
    """
    folders, here = dict[str, dict[str, object]](), dict[str, object]()
    for path, value in files.items():
        name, slash, rest = path.partition("/")
        if slash:
            folders.setdefault(f"{name}/", {})[rest] = value
        else:
            here[name] = value
    found = dict[str, Any]()
    for name, inside in sorted(folders.items()):
        below = tree(inside)
        first = next(iter(below))
        joins = len(below) == 1 and first.endswith("/")
        found |= {name + first: below[first]} if joins else {name: below}
    return found | here
