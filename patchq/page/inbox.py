"""The inbox: the proposals in groups, and what waits for others or was refused."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec import Struct

from patchq.gate.api import Gate, words
from patchq.gate.api.rows import ChangeRow, Filter
from patchq.page.decisions import FormResult
from patchq.page.shown import Shown

MOST = 500  # proposals that one page shows
FILTERS = ("agent", "path", "level", "q")
_LEVELS = ("high", "medium", "low")
_DAY_NANOSECONDS = 86_400 * 10**9
_MOST_REFUSED = 20


class Group(Struct, frozen=True):
    """Proposals below one heading; of a stack the lowest first."""

    name: str
    title: str
    rows: tuple[ChangeRow, ...]
    stack: bool = False


def view(gate: Gate, asked: Mapping[str, str], result: FormResult | None = None) -> Shown:
    """Return the inbox; `asked` has the filters and the order, `result` what was not decided."""
    wanted = {name: asked.get(name) or "" for name in FILTERS}
    by, group = asked.get("by", "risk"), asked.get("group", "risk")
    where = Filter(agent=wanted["agent"] or None, path=wanted["path"] or None, by=by)
    status = gate.status(where, MOST)
    waiting = [row for row in status.rows if row.block != "held" and _fits(row, wanted)]
    for_you = [row for row in waiting if row.waits_for == "person"]
    values = {
        "status": status,
        "trains": list(map(words.train, status.trains)),
        "groups": groups(for_you, group),
        "for_you": len(for_you),
        "total": _total(gate, wanted),
        "asked_words": ", ".join(f"{name} {value}" for name, value in wanted.items() if value),
        "sent_back": [row for row in waiting if row.waits_for == "agent"],
        "accepted": [row for row in waiting if row.block == "accepted"],
        "held": status.block("held"),
        "refused": [row for row in _refused(gate) if _fits(row, wanted)],
        "last": _last(gate) if not for_you else None,
        "asked": {**wanted, "by": by, "group": group},
        "agents": sorted(status.agents),
        "subject": subject,
        "checks": words.checks_of,
        "problems": result.problems if result else (),
        "left_out": status.left_out["waiting"],
    }
    return Shown("inbox.html", "Inbox", values)


def several(
    gate: Gate, asked: Sequence[tuple[str, str]], result: FormResult | None = None
) -> Shown:
    """Return the page on which a decision on the chosen proposals is confirmed."""
    deed = next((value for name, value in asked if name == "deed"), "accept")
    chosen = {value.partition(" ")[0] for name, value in asked if name == "chosen"}
    rows = [row for row in gate.status(limit=MOST).rows if row.id in chosen]
    values = {
        "deed": deed,
        "rows": rows,
        "ids": {row.id for row in rows},
        "subject": subject,
        "problems": result.problems if result else (),
        "written": result.written if result else "",
    }
    return Shown("several.html", f"{len(rows)} chosen", values)


def neighbours(gate: Gate, id: str) -> tuple[str | None, str | None]:
    """Return the proposals before and behind one in the inbox's order."""
    waiting = [
        row for row in gate.status(Filter(by="risk"), MOST).rows if row.waits_for == "person"
    ]
    ids = [row.id for group in groups(waiting, "risk") for row in group.rows]
    if id not in ids:
        return None, next(iter(ids), None)
    at = ids.index(id)
    return ids[at - 1] if at else None, ids[at + 1] if at + 1 < len(ids) else None


def groups(rows: Sequence[ChangeRow], by: str) -> list[Group]:
    """Return the rows below headings: each stack by itself, then the others by `by`."""
    stacks: dict[str, list[ChangeRow]] = {}
    bottoms: dict[str, str] = {}
    known = {row.id: row for row in rows}
    for row in rows:
        stacks.setdefault(_bottom(row, known, bottoms), []).append(row)
    found, others = list[Group](), dict[str, list[ChangeRow]]()
    for bottom, some in stacks.items():
        if len(some) > 1:
            lowest_first = sorted(some, key=lambda row: _height(row, known))
            found.append(Group(f"stack-{bottom}", f"Stack on {bottom}", tuple(lowest_first), True))
        else:
            others.setdefault(_HEADINGS.get(by, _none)(some[0]), []).append(some[0])
    order = _LEVELS if by == "risk" else sorted(others)
    for name in [*order, *(name for name in others if name not in order)]:
        if name in others:
            title = f"{name} risk" if by == "risk" else name
            found.append(
                Group(name, title.capitalize() if by == "risk" else title, tuple(others[name]))
            )
    return found


def _bottom(row: ChangeRow, known: Mapping[str, ChangeRow], bottoms: dict[str, str]) -> str:
    """Return the lowest of the stack that a proposal is in."""
    at = row
    while at.stands_on and (below := known.get(at.stands_on.batch or "")) and below is not row:
        at = below
    return at.id


def _height(row: ChangeRow, known: Mapping[str, ChangeRow]) -> int:
    height, at = 0, row
    while at.stands_on and (below := known.get(at.stands_on.batch or "")) and height < len(known):
        height, at = height + 1, below
    return height


def subject(row: ChangeRow) -> str:
    """Return the first line of the message, or the id."""
    message: str = row.report.message or ""
    return message.partition("\n")[0] or row.id


def _none(row: ChangeRow) -> str:
    return "all"


_HEADINGS: Mapping[str, Callable[[ChangeRow], str]] = {
    "risk": lambda row: row.risk.level if row.risk else "low",
    "agent": lambda row: row.report.agent or "no agent named",
    "path": lambda row: row.paths[0].partition("/")[0] if row.paths else "no file",
}


def _fits(row: ChangeRow, wanted: Mapping[str, str]) -> bool:
    """Return True if risk and search words are those of the row."""
    if wanted["level"] and (row.risk is None or row.risk.level != wanted["level"]):
        return False
    text = " ".join([subject(row), row.id, row.report.agent or "", *row.paths]).lower()
    return all(word in text for word in wanted["q"].lower().split())


def _total(gate: Gate, wanted: Mapping[str, str]) -> int:
    """Return how many wait for a person without the filters."""
    if not any(wanted.values()):
        return 0
    return sum(row.waits_for == "person" for row in gate.status(limit=MOST).rows)


def _refused(gate: Gate) -> Iterator[ChangeRow]:
    """Yield the responses that were refused in the last 24 hours, the newest first."""
    since = f"{time.time_ns() - _DAY_NANOSECONDS:016x}"
    events = gate.events(since).read()
    ids = dict.fromkeys(one["batch"] for one in events if one["kind"] == "refused")
    for id in list(ids)[: -_MOST_REFUSED - 1 : -1]:
        row = gate.find(id)
        if isinstance(row, ChangeRow) and row.report.state == "rejected":
            yield row


def _last(gate: Gate) -> ChangeRow | None:
    """Return the change that landed last."""
    return next(iter(gate.batches(Filter(state="accepted"), 1).rows), None)
