"""Lists of changes: the inbox, bulk decisions, conflicts, the history, and statistics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from patchq.core.model.values import Problem
from patchq.gate.api import Gate, words
from patchq.gate.api.rows import SORTS, ChangeRow, Filter
from patchq.gate.api.stats import BY, DAY
from patchq.page.decisions import Form
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


def view(gate: Gate, asked: Mapping[str, str]) -> Shown:
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
    values = {"rows": found.rows, "page": page, "more": bool(found.left_out)}
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
    if by == "risk":
        return row.risk.level if row.risk else "low"
    if by == "agent":
        return row.report.agent or "no agent named"
    if by == "path":
        return row.paths[0].partition("/")[0] if row.paths else "no file"
    return "all"


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
