"""Counting what became of batches: from the reports, and from a file for those that were removed.

A count is kept by what is counted (`KINDS`), for each agent, model and format, so that any sum over
them can be had.  `counts.json` holds the sums of the batches whose reports the queue gave up, and
the ids of the last ones: who dies between counting and removing counts nothing twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from patchq.llm.client import NORMAL_ENDS
from patchq.model.report import LANDED, VERDICTS, Report
from patchq.model.values import State
from patchq.queue import Queue, spool
from patchq.queue.finished import verdicts
from patchq.queue.spool import Folder, disk_faults

NAME = "counts.json"
SCHEMA = "patchq.counts/1"
OTHERS = "(others)"
KINDS = (
    "verdict", "state", "reason", "match", "edit", "correction", "attempt", "truncated", "hook",
    "seconds",
)  # fmt: skip
MOST_KEYS = 20_000
"""Agents and models name themselves; beyond this many sums, new names are counted together."""

Key = tuple[str, str, str, str, str]
"""What is counted, the agent, the model, the format (or the hook's id), and the value."""
Counts = Counter[Key]


def verdict(report: Report) -> State:
    """The state with which the report first appeared."""
    state = report["state"]
    if state in VERDICTS:
        return state
    return "applied" if state == "reverted" and report["mode"] == "auto" else "proposed"


def count(report: Report) -> Counts:
    """What one report adds: one verdict, one state, each code that refused it, the rungs and states
    of its edits, what was corrected, its attempts, its hooks' ends, and the seconds that deciding
    and hooks took."""
    who = report["agent"] or "", report["model"] or ""
    counts: Counts = Counter()
    counts["verdict", *who, "", verdict(report)] = 1
    counts["state", *who, "", report["state"]] = 1
    for code in {p["code"] for p in report["problems"] if p["severity"] == "error"}:
        counts["reason", *who, "", code] = 1
    for edit in report["edits"]:
        form = edit["format"] or ""
        counts["edit", *who, form, edit["state"]] += 1
        if edit["match"]:
            counts["match", *who, form, edit["match"]] += 1
    forms = {edit["id"]: edit["format"] or "" for edit in report["edits"]}
    for made in report["corrections"]:
        form = forms.get(made["edit"], "")
        counts["correction", *who, form, f"{made['what']} by {made['by']}"] += 1
    if "model_ms" in (report["timings"] or {}):
        counts["correction", *who, "", "tried"] += 1
    for attempt in report["attempts"]:
        counts["attempt", *who, "", f"{attempt['form']} {attempt['stop']}"] += 1
    if cut := _cut(report):
        counts["truncated", *who, "", "answer"] = cut
    for run in report["hooks"]:
        end = "passed" if run["exit"] == 0 else "timeout" if run["exit"] is None else "refused"
        counts["hook", *who, run["id"], end] += 1
        counts["seconds", *who, run["id"], "hook"] += run["seconds"]  # type: ignore[assignment]
    counts["seconds", *who, "", "decide"] += sum((report["timings"] or {}).values()) / 1000  # type: ignore[assignment]
    return counts


def _cut(report: Report) -> int:
    """How many answers were cut: of those that were asked for, or the response itself."""
    stops = [attempt["stop"] for attempt in report["attempts"]]
    if stops:
        return sum(stop not in NORMAL_ENDS and not stop.startswith("llm.") for stop in stops)
    return int(any(problem["code"] == "response.truncated" for problem in report["problems"]))


def total(counts: Mapping[Key, float], kind: str) -> Counter[str]:
    """The sums of one kind by their values, over all agents, models and formats."""
    found: Counter[str] = Counter()
    for key, number in counts.items():
        if key[0] == kind:
            found[key[4]] += number  # type: ignore[assignment]
    return found


@dataclass
class Kept:
    """What `counts.json` says: the sums, and the ids that it counted last, which may still have
    their reports."""

    counts: Counts = field(default_factory=Counter)
    last: frozenset[str] = frozenset()


@disk_faults
def read(root: Path) -> Kept:
    """The counts beside the queue `root`; empty where there are none that can be read."""
    try:
        with Folder(root, lasting=False) as folder:
            report = spool.decode(folder.read(NAME)) or {}
        counts = {tuple(map(str, key)): number for *key, number in report["counts"]}
        good = {key: n for key, n in counts.items() if len(key) == 5 and isinstance(n, int | float)}
        return Kept(Counter(good), frozenset(report["last"]))
    except (FileNotFoundError, KeyError, TypeError, ValueError):
        return Kept()


@disk_faults
def keep(root: Path, reports: Iterable[Report]) -> None:
    """Add reports that are about to be removed, durably; those that it counted last are not added
    again."""
    kept = read(root)
    fresh = [report for report in reports if report["id"] not in kept.last]
    for report in fresh:
        add(kept.counts, count(report))
    last = kept.last | {report["id"] for report in fresh}
    _write(root, Kept(kept.counts, last))


@disk_faults
def removed(root: Path) -> None:
    """Say that the reports which were counted last are gone."""
    _write(root, Kept(read(root).counts))


def add(counts: Counts, more: Mapping[Key, float]) -> None:
    """Add sums to sums, which stay bounded."""
    for key, number in more.items():
        if key not in counts and len(counts) >= MOST_KEYS:
            key = (key[0], OTHERS, OTHERS, key[3], key[4])
        counts[key] += number  # type: ignore[assignment]


def _write(root: Path, kept: Kept) -> None:
    report: dict[str, Any] = {
        "schema": SCHEMA,
        "counts": [[*key, number] for key, number in sorted(kept.counts.items())],
        "last": sorted(kept.last),
    }
    with Folder(root, lasting=False) as folder:
        folder.put(NAME, spool.encode(report), flush=True)


def everything(queue: Queue, root: Path) -> Counts:
    """The sums over all batches that ever got a verdict here, removed or not."""
    kept = read(root)
    for id in queue.ids():
        report = queue.load(id)
        if report is not None and report["state"] != "held" and id not in kept.last:
            add(kept.counts, count(report))
    return kept.counts


class Running:
    """The sums so far, kept up to date by reading what was not read yet, some at a time."""

    def __init__(self, queue: Queue, root: Path) -> None:
        self._queue, self._root = queue, root
        kept = read(root)
        self.counts, self._counted = kept.counts, set(kept.last)
        self._place = 0
        self._new: list[str] = []
        self.last_landing: float | None = None

    def turn(self, most: int = 200) -> bool:
        """Count up to `most` verdicts more; True if that was all."""
        if not self._new:
            found, self._place = verdicts(self._root, self._place)
            self._new = [id for id in dict.fromkeys(found) if id not in self._counted][::-1]
        for _ in range(min(most, len(self._new))):
            self._count(self._new.pop())
        return not self._new

    def _count(self, id: str) -> None:
        report = self._queue.load(id)
        if report is None:
            return
        self._counted.add(id)
        add(self.counts, count(report))
        if report["state"] in LANDED:
            self.last_landing = max(self.last_landing or 0.0, self._queue.ended(id) or 0.0)
