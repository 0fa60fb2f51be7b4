"""The queue in memory: for tests, and the proof that nothing depends on files.

Queues on the same `Store` are the processes on one directory; `close` is the death of one.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from patchq.core.model.values import Generation
from patchq.gate.errors import Busy, DiskFault, Fault, QueueLocked
from patchq.gate.git import files
from patchq.gate.queue import Claim, Parcel, spool
from patchq.gate.queue.claims import claim_of
from patchq.gate.queue.inbox import Snapshot, free_names, too_large
from patchq.gate.queue.register import Past, numbered
from patchq.gate.report.schema import Report


@dataclass
class Store:
    """What outlives a process."""

    inbox: dict[str, bytes] = field(default_factory=dict)
    active: dict[str, Claim] = field(default_factory=dict)
    adopters: dict[str, MemoryQueue] = field(default_factory=dict)
    enders: dict[str, MemoryQueue] = field(default_factory=dict)
    ids: dict[str, str] = field(default_factory=dict)
    reports: dict[str, Report] = field(default_factory=dict)
    bodies: dict[str, bytes] = field(default_factory=dict)
    ended: dict[str, float] = field(default_factory=dict)
    pasts: dict[str, Past] = field(default_factory=dict)
    sources: dict[str, list[str]] = field(default_factory=dict)
    holder: MemoryQueue | None = None
    count: Iterator[int] = field(default_factory=itertools.count)


class MemoryQueue:
    """A queue on `store`, or on a new one; the parameters are those of `DirectoryQueue`."""

    def __init__(
        self,
        store: Store | None = None,
        *,
        response_bytes: int = 2 * 1024 * 1024,
        is_known: Callable[[str], bool] = lambda id: False,
    ) -> None:
        self.store = store or Store()
        self._limit = response_bytes
        self._is_known = is_known
        self._own: set[str] = set()

    def acquire(self, target: str | None = None) -> None:
        if self.store.holder not in (None, self):
            raise QueueLocked("another process works on this queue already")
        self.store.holder = self

    def release(self, fault: Fault | None = None) -> None:
        if self.store.holder is self:
            self.store.holder = None
        self._own.clear()

    def close(self) -> None:
        self.release()
        for owners in (self.store.adopters, self.store.enders):
            for token in [token for token, owner in owners.items() if owner is self]:
                del owners[token]

    def recover(self) -> list[Claim]:
        dead = [
            claim
            for token, claim in sorted(self.store.active.items())
            if token not in self._own and token not in self.store.adopters
        ]
        self._own.update(claim.token for claim in dead)
        return dead

    def claim(self, limit: int) -> list[Claim]:
        names = list(self.store.inbox)[: max(0, limit)]
        return [self._take(self.store.inbox.pop(name), name) for name in names]

    def depth(self) -> int:
        return len(self.store.inbox)

    def unsettled(self) -> float | None:
        return None

    def reserve(self, claim: Claim, wanted: str) -> str:
        for number in itertools.count(1):
            id = numbered(wanted, number)
            if self.store.ids.get(id) == claim.token:
                return id
            if id not in self.store.ids and not id.endswith(".report") and not self._is_known(id):
                break
        self.store.ids[id] = claim.token
        return id

    def answer(self, claim: Claim, data: bytes, generation: Generation) -> Claim:
        self.store.active[claim.token] = answered = claim.answered(data, generation)
        return answered

    def together(self) -> AbstractContextManager[None]:
        return nullcontext()

    def intend(
        self,
        claim: Claim,
        report: Report,
        markdown: str | None = None,
        parcel: Parcel | None = None,
    ) -> None:
        self._end(claim, report.id)
        known = self.store.active.get(claim.token, claim)
        intended = _copy(report)
        self.store.active[claim.token] = replace(known, id=report.id, intended=intended)

    def enlist(self, verdicts: Sequence[tuple[Claim, str]]) -> None:
        pass  # `publish` does it

    def publish(self, claim: Claim, report: Report, markdown: str) -> None:
        id = report.id
        self._end(claim, id)
        self._record(claim, report)
        self.store.ended[id] = time.time()
        for claims in (self.store.active, self.store.adopters, self.store.enders):
            claims.pop(claim.token, None)
        self._own.discard(claim.token)

    def tell(self) -> None:
        pass  # nobody follows it

    def hold(self, claim: Claim, report: Report, markdown: str) -> None:
        known = self.store.active[claim.token]
        self.store.enders.pop(claim.token, None)
        since = known.held_since if known.held else time.time()
        self.store.active[claim.token] = replace(
            known, id=report.id, intended=None, held=True, held_since=since
        )
        self._record(claim, report)

    def held(self) -> list[Claim]:
        foreign = {token for token, owner in self.store.adopters.items() if owner is not self}
        return [
            claim
            for token, claim in sorted(self.store.active.items())
            if claim.held and token not in foreign
        ]

    def serves(self, claim: Claim) -> bool:
        return True

    def pass_on(self, id: str, words: Mapping[str, Any]) -> bool:
        return False

    def proposals(self, known: Collection[str] = ()) -> Mapping[str, str | None] | None:
        return None

    def mark(self, marks: Mapping[str, str]) -> None:
        pass  # the marks in the repository are all there are

    def adopt(self, data: bytes, name: str, choice: Mapping[str, Any] | None = None) -> Claim:
        claim = replace(self._take(data, name), choice=choice)
        self.store.active[claim.token] = claim
        self.store.adopters[claim.token] = self
        return replace(claim, request=False)

    def sync(self, *places: Path) -> None:
        files.barrier(*places)  # memory has nothing behind it

    def load(self, id: str) -> Report | None:
        return self.store.reports.get(id)

    def rewrite(self, report: Report, markdown: str) -> None:
        if report.id not in self.store.reports:
            raise DiskFault(f"the report of {report.id} is not there any more")
        self.store.reports[report.id] = _copy(report)
        if report.id in self.store.ended:
            self.store.ended[report.id] = time.time()

    def body(self, id: str) -> bytes | None:
        return self.store.bodies.get(id)

    def by_source(self, sha256: str) -> Sequence[str]:
        return tuple(self.store.sources.get(sha256, ()))

    def ids(self) -> Iterator[str]:
        return iter(dict.fromkeys((*self.store.ended, *sorted(self.store.reports))))

    def older(self, limit: float) -> Iterator[str]:
        return (id for id, ended in list(self.store.ended.items()) if ended < limit)

    def newest(self) -> Iterator[str]:
        held = sorted(self.store.reports.keys() - self.store.ended.keys(), reverse=True)
        return iter((*held, *reversed(self.store.ended), *reversed(self.store.pasts)))

    def ended(self, id: str) -> float | None:
        return self.store.ended.get(id)

    def forget(self, *ids: str) -> None:
        for id in ids:
            if (ended := self.store.ended.pop(id, None)) is not None:
                self.store.pasts[id] = Past.of(self.store.reports.pop(id), ended)
                self.store.bodies.pop(id)

    def past(self, id: str) -> Past | None:
        return self.store.pasts.get(id)

    def submit(self, data: bytes, name: str, *, flush: bool = False) -> str:
        names = free_names(name, f"{next(self.store.count):08}")
        free = next(name for name in names if name not in self.store.inbox)
        self.store.inbox[free] = data
        return free

    def _end(self, claim: Claim, id: str) -> None:
        """Be the one who ends a held claim."""
        there = claim.token in self.store.active
        if claim.held and not (there and self.store.enders.setdefault(claim.token, self) is self):
            raise Busy(f"another process gives {id} its verdict")

    def _take(self, data: bytes, name: str) -> Claim:
        body = Snapshot(data, len(data))
        if body.size > self._limit:
            body = Snapshot(b"", body.size, too_large(body.size, self._limit))
        claim = claim_of(f"{next(self.store.count):08}", name, body)
        self.store.active[claim.token] = claim
        self._own.add(claim.token)
        return claim

    def _record(self, claim: Claim, report: Report) -> None:
        id = report.id
        self.store.bodies[id] = claim.data
        self.store.reports[id] = _copy(report)
        known = self.store.sources.setdefault(claim.source.sha256, [])
        if claim.data and id not in known:
            known.append(id)


def _copy(report: Report) -> Report:
    """As a file would keep it: later changes of the caller's object do not show."""
    copy = spool.report(spool.encode(report))
    assert copy
    return copy
