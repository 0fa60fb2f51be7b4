"""The sums over all batches that ever got a verdict, without reading the report of each.

`counts.json` holds the sums of the batches whose reports the queue gave up (`gone`), and those of
the ones that it has, up to a place in the register of verdicts (`settled`).  What waits for review
may still count otherwise, so each has its sums by itself (`open`), with the time of the report that
they are of.  Whoever asks for the sums reads only what came behind the place.

The first can be had from nowhere else: they are written before a report goes, with the ids of the
last ones, so who dies between counting and removing counts nothing twice.  The others are made anew
from the reports where the register is not the one that they were made by.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from patchq.gate.queue import QueueEngine, spool
from patchq.gate.queue.journal import Events
from patchq.gate.queue.spool import Folder, disk_faults, verdicts
from patchq.gate.report.schema import LANDED, WAITING, Report
from patchq.gate.service.stats import Counts, Key, add, counted, taken_back

COUNTS = "counts.json"
SCHEMA = "patchq.counts/1"
_MARK = 64
"""So many bytes before the place tell one register from another."""
_BEHIND = 8192
"""The sums are written again once the register has so many bytes behind their place."""
_MOST_SEEN = 1000
"""So many ids back, one that stands twice in the register is not counted again."""
_MOST_MISSED = 100
"""Of so many verdicts without a report it may still come, from a process that died over it."""


def _none() -> Counts:
    return defaultdict(int)


@dataclass
class Settled:
    """The sums up to `place` in the register, whose last bytes before it are `mark`; `open` has for
    each batch that may still change the time of its report, None for one that has none, and its
    sums; `landing` is when a batch last landed.  Up to `events` in the journal it is known what was
    reverted, and `reverted` are the last ids that were counted so."""

    counts: Counts = field(default_factory=_none)
    place: int = 0
    mark: str = ""
    open: dict[str, tuple[float | None, Counts]] = field(default_factory=dict)
    landing: float | None = None
    events: str = ""
    reverted: list[str] = field(default_factory=list)


@dataclass
class Sums:
    """What `counts.json` says: `last` are the ids that `gone` counted last, which may still have
    their reports."""

    gone: Counts = field(default_factory=_none)
    last: frozenset[str] = frozenset()
    settled: Settled = field(default_factory=Settled)


def everything(queue: QueueEngine, root: Path) -> Counts:
    """The sums over all batches that ever got a verdict here, removed or not."""
    ledger = Ledger(queue, root)
    while not ledger.turn():
        pass
    ledger.look_again()
    return ledger.counts


class Ledger:
    """The sums of one queue.  One process at a time writes them: who empties the inbox."""

    def __init__(self, queue: QueueEngine, root: Path) -> None:
        self._queue, self._root = queue, root
        self._seen = dict[str, None]()

    @cached_property
    def _sums(self) -> Sums:
        """Read when they are first asked for: whoever writes them has the queue's lock by then."""
        return _read(self._root)

    @cached_property
    def _written(self) -> int:
        """The place up to which the sums are on disk."""
        return self._sums.settled.place

    @property
    def counts(self) -> Counts:
        """The sums of what was counted so far."""
        total = _none()
        settled = self._sums.settled
        for part in (self._sums.gone, settled.counts, *(own for _, own in settled.open.values())):
            add(total, part)
        return total

    @property
    def last_landing(self) -> float | None:
        return self._sums.settled.landing

    @property
    def behind(self) -> bool:
        """Whether much was decided since the sums were written."""
        with suppress(FileNotFoundError):
            return (self._root / spool.VERDICTS).stat().st_size - self._written >= _BEHIND
        return False

    def turn(self) -> bool:
        """Count some verdicts more; True if that was all."""
        settled = self._sums.settled
        ids, place = verdicts(self._root, settled.place, _BEHIND // 4)
        for id in ids:
            if id not in self._seen and id not in self._sums.last:
                self._seen[id] = None
                settled.open[id] = None, _none()
                self._look_at(id)
        for id in list(self._seen)[:-_MOST_SEEN]:
            del self._seen[id]
        missed = [id for id, (at, _) in settled.open.items() if at is None]
        for id in missed[:-_MOST_MISSED]:  # nobody publishes them any more
            del settled.open[id]
        if place > settled.place:
            settled.place, settled.mark = place, _mark(self._root, place)
            return False
        return True

    def look_again(self) -> None:
        """Count anew what may have changed since."""
        for id in list(self._sums.settled.open):
            self._look_at(id)
        self._count_reverts()

    def _count_reverts(self) -> None:
        """Count what was taken back since: what had landed is settled, and not looked at again."""
        settled = self._sums.settled
        events = Events(self._root, settled.events)
        try:
            told = {event["batch"] for event in events.read() if event["kind"] == "reverted"}
            settled.events = events.last
        finally:
            events.close()
        for id in told - settled.open.keys() - {*settled.reverted}:
            report = self._queue.load(id)
            if report is not None and report.state == "reverted":
                add(settled.counts, taken_back(report))
                self._remember(id)

    def _remember(self, id: str) -> None:
        settled = self._sums.settled
        settled.reverted = [*settled.reverted, id][-_MOST_SEEN:]

    def write(self) -> None:
        """Keep the sums, once what they count is durable."""
        self.look_again()
        self._queue.sync()
        self._write()

    def keep(self, reports: Iterable[Report]) -> None:
        """Count reports as gone which are about to be removed, durably; those that were counted
        last are not counted again."""
        while not self.turn():
            pass
        self._count_reverts()
        sums, settled = self._sums, self._sums.settled
        going = {report.id: report for report in reports if report.id not in sums.last}
        for id, report in going.items():
            own = counted(report)
            add(sums.gone, own)
            if settled.open.pop(id, None) is None:
                add(settled.counts, own, -1)
        sums.last |= going.keys()
        self._write()

    def removed(self) -> None:
        """Say that the reports which were counted last are gone."""
        self._sums.last = frozenset()
        self._write()

    def _look_at(self, id: str) -> None:
        """Count what the report of an open batch says now, for good where that does not change."""
        settled, at = self._sums.settled, self._queue.ended(id)
        if at is None and self._queue.past(id):
            del settled.open[id]
            return
        if at == settled.open[id][0]:
            return
        report = self._queue.load(id)
        own = counted(report) if report else _none()
        if report is None or report.state in WAITING:
            settled.open[id] = at, own
            return
        del settled.open[id]
        add(settled.counts, own)
        if id in settled.reverted:  # the journal told of it before the register did
            add(settled.counts, taken_back(report), -1)
        elif report.state == "reverted":
            self._remember(id)
        if report.state in LANDED:
            settled.landing = max(settled.landing or 0.0, at or 0.0)

    @disk_faults
    def _write(self) -> None:
        sums, settled = self._sums, self._sums.settled
        content = {
            "schema": SCHEMA,
            "counts": _listed(sums.gone),
            "last": sorted(sums.last),
            "settled": {
                "counts": _listed(settled.counts),
                "place": settled.place,
                "mark": settled.mark,
                "open": [[id, at, _listed(own)] for id, (at, own) in settled.open.items()],
                "landing": settled.landing,
                "events": settled.events,
                "reverted": settled.reverted,
            },
        }
        with Folder(self._root, lasting=False) as folder:
            folder.put(COUNTS, spool.encode(content), flush=True)
        self._written = settled.place


@disk_faults
def _read(root: Path) -> Sums:
    """The sums beside the queue `root`; nothing where there are none that can be read."""
    try:
        with Folder(root, lasting=False) as folder:
            content = spool.decode(folder.read(COUNTS)) or {}
        sums = Sums(_counts(content["counts"]), frozenset(content["last"]))
    except (FileNotFoundError, KeyError, TypeError, ValueError):
        return Sums()
    with suppress(KeyError, TypeError, ValueError):  # an older patchq left none
        said = content["settled"]
        settled = Settled(
            _counts(said["counts"]),
            int(said["place"]),
            str(said["mark"]),
            {str(id): (at, _counts(own)) for id, at, own in said["open"]},
            said["landing"],
            str(said.get("events", "")),
            list(map(str, said.get("reverted", ()))),
        )
        if settled.mark == _mark(root, settled.place):
            sums.settled = settled
    return sums


def _mark(root: Path, place: int) -> str:
    """What the register has before the place."""
    with suppress(FileNotFoundError), (root / spool.VERDICTS).open("rb") as file:
        file.seek(max(0, place - _MARK))
        return file.read(min(_MARK, place)).decode("utf-8", "replace")
    return ""


def _listed(counts: Mapping[Key, float]) -> list[list[Any]]:
    return [[*key, number] for key, number in sorted(counts.items())]


def _counts(listed: Any) -> Counts:
    counts = {tuple(map(str, key)): number for *key, number in listed}
    good = {key: n for key, n in counts.items() if len(key) == 5 and isinstance(n, int | float)}
    return defaultdict(int, good)
