"""Counting what became of batches: from the reports, and from a file for those that were removed.

A count is kept by what is counted (`KINDS`), for each agent, model and format, so that any sum over
them can be had.  `counts.json` holds the sums of the batches whose reports the queue gave up, and
the ids of the last ones: who dies between counting and removing counts nothing twice.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

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
Counts = defaultdict[Key, float]
Sums = Mapping[str, Mapping[str, float]]
"""What is counted -> the value -> its sum."""
PLACES = {"agent": 1, "model": 2, "format": 3}
"""Where a key has what sums can be had for."""


def verdict(report: Report) -> State:
    """The state with which the report first appeared."""
    state = report["state"]
    if state in VERDICTS:
        return state
    return "applied" if state == "reverted" and report["mode"] == "auto" else "proposed"


def _counted(report: Report) -> Iterator[tuple[str, str, str, float]]:
    """What one report adds, of which format or hook, the value, and how much: one verdict, one
    state, each code that refused it, the rungs and states of its edits, what was corrected, its
    attempts, its hooks' ends, and the seconds that deciding and hooks took."""
    yield "verdict", "", verdict(report), 1
    yield "state", "", report["state"], 1
    for code in {p["code"] for p in report["problems"] if p["severity"] == "error"}:
        yield "reason", "", code, 1
    forms = {edit["id"]: edit["format"] or "" for edit in report["edits"]}
    for edit in report["edits"]:
        yield "edit", edit["format"] or "", edit["state"], 1
        if edit["match"]:
            yield "match", edit["format"] or "", edit["match"], 1
    for change in report["corrections"]:
        yield "correction", forms.get(change["edit"], ""), f"{change['what']} by {change['by']}", 1
    if "model_ms" in (report["timings"] or {}):
        yield "correction", "", "tried", 1
    for attempt in report["attempts"]:
        yield "attempt", "", f"{attempt['form']} {attempt['stop']}", 1
    if cut := _cut(report):
        yield "truncated", "", "answer", cut
    for run in report["hooks"]:
        end = "passed" if run["exit"] == 0 else "timeout" if run["exit"] is None else "refused"
        yield "hook", run["id"], end, 1
        yield "seconds", run["id"], "hook", run["seconds"]
    yield "seconds", "", "decide", sum((report["timings"] or {}).values()) / 1000


def _cut(report: Report) -> int:
    """How many answers were cut: of those that were asked for, or the response itself."""
    stops = [attempt["stop"] for attempt in report["attempts"]]
    if stops:
        return sum(stop not in NORMAL_ENDS and not stop.startswith("llm.") for stop in stops)
    return int(any(problem["code"] == "response.truncated" for problem in report["problems"]))


def add(counts: Counts, report: Report) -> None:
    """Add what a report counts to sums, which stay bounded."""
    for kind, form, value, number in _counted(report):
        key = kind, report["agent"] or "", report["model"] or "", form, value
        if key not in counts and len(counts) >= MOST_KEYS:
            key = kind, OTHERS, OTHERS, form, value
        counts[key] += number


def sums(counts: Mapping[Key, float], by: str | None = None) -> dict[str, Sums]:
    """The sums for each agent, model or format (`PLACES`), by its name; without `by` those over
    everything, under an empty name."""
    found: dict[str, dict[str, Counter[str]]] = {}
    for key, number in counts.items():
        kinds = found.setdefault(key[PLACES[by]] if by else "", defaultdict(Counter))
        kinds[key[0]][key[4]] += number  # type: ignore[assignment]
    return dict(found)


@dataclass
class Kept:
    """What `counts.json` says: the sums, and the ids that it counted last, which may still have
    their reports."""

    counts: Counts = field(default_factory=lambda: defaultdict(int))
    last: frozenset[str] = frozenset()


@disk_faults
def read(root: Path) -> Kept:
    """The counts beside the queue `root`; empty where there are none that can be read."""
    try:
        with Folder(root, lasting=False) as folder:
            content = spool.decode(folder.read(NAME)) or {}
        counts = {tuple(map(str, key)): number for *key, number in content["counts"]}
        good = {key: n for key, n in counts.items() if len(key) == 5 and isinstance(n, int | float)}
        return Kept(defaultdict(int, good), frozenset(content["last"]))
    except (FileNotFoundError, KeyError, TypeError, ValueError):
        return Kept()


@disk_faults
def keep(root: Path, reports: Iterable[Report]) -> None:
    """Add reports that are about to be removed, durably; those that it counted last are not added
    again."""
    kept = read(root)
    uncounted = [report for report in reports if report["id"] not in kept.last]
    for report in uncounted:
        add(kept.counts, report)
    _write(root, Kept(kept.counts, kept.last | {report["id"] for report in uncounted}))


@disk_faults
def removed(root: Path) -> None:
    """Say that the reports which were counted last are gone."""
    _write(root, Kept(read(root).counts))


def _write(root: Path, kept: Kept) -> None:
    content = {
        "schema": SCHEMA,
        "counts": [[*key, number] for key, number in sorted(kept.counts.items())],
        "last": sorted(kept.last),
    }
    with Folder(root, lasting=False) as folder:
        folder.put(NAME, spool.encode(content), flush=True)


def everything(queue: Queue, root: Path) -> Counts:
    """The sums over all batches that ever got a verdict here, removed or not."""
    kept = read(root)
    for id in queue.ids():
        report = queue.load(id)
        if report is not None and report["state"] != "held" and id not in kept.last:
            add(kept.counts, report)
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
            ids, self._place = verdicts(self._root, self._place)
            self._new = [id for id in dict.fromkeys(ids) if id not in self._counted][::-1]
        for _ in range(min(most, len(self._new))):
            self._count(self._new.pop())
        return not self._new

    def _count(self, id: str) -> None:
        report = self._queue.load(id)
        if report is None:
            return
        self._counted.add(id)
        add(self.counts, report)
        if report["state"] in LANDED:
            self.last_landing = max(self.last_landing or 0.0, self._queue.ended(id) or 0.0)
