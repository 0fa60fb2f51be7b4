"""The queue's protocol: how responses come in and verdicts go out.

The engines are `engine.StoreQueue` (an SQL store, and files for agents and people) and
`postgres.engine.PostgresQueue` (many machines); one contract test covers both.

A claim's life: waiting -> `claim` -> `reserve` an id -> (`intend` before any ref moves) ->
`publish`.  A claim whose owner dies comes back from `recover`, with the intended report if it had
one, so that the owner can find out whether the ref moved and publish exactly that verdict.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from hashlib import sha256
from pathlib import Path
from typing import Any, Protocol

from msgspec import Struct
from msgspec.structs import replace

from patchq.core.model.values import Generation, Problem, Source, State
from patchq.gate.errors import Fault
from patchq.gate.report.schema import Report


class Past(Struct, frozen=True):
    """What is left of a batch whose files are gone.

    `at` is in seconds since the epoch, `other` is the batch that stands for it, `code` the first
    error that refused it.
    """

    state: State
    at: int
    other: str | None = None
    code: str | None = None

    @classmethod
    def of(cls, report: Report, at: float) -> Past:
        codes = (p.code for p in report.problems if p.severity == "error")
        return cls(report.state, int(at), report.duplicate_of, next(codes, None))


class Claim(Struct, frozen=True):
    """One response that this process has taken out of the inbox.

    `data` are the bytes as they were snapshotted: nothing that a writer does later changes them.
    `problem` says why there is nothing to read (a symlink, a fifo, over the size limit, …); `data`
    is then empty.  `intended` is set on recovered claims only.
    """

    token: str
    source: Source
    data: bytes
    problem: Problem | None = None
    id: str | None = None
    intended: Report | None = None
    held: bool = False
    """Whether this is a batch that waits for something, claimed earlier."""
    parcel: bytes | None = None
    """What makes the commit of `intended` in another clone (`git.branches.parcels`)."""
    held_since: float | None = None
    """Seconds since the epoch, of the wall clock, at which the hold began."""
    request: bool = False
    """Whether the bytes ask for a response, and a model has still to be asked."""
    generation: Generation | None = None
    """What came of that, once it has; the bytes are then the answer, if there is one."""
    deaths: int = 0
    """How many processes ended while they decided on it."""
    choice: Mapping[str, Any] | None = None
    """How a person wants the response taken (`Choice`), where that differs from what it says."""

    def answered(self, data: bytes, generation: Generation) -> Claim:
        """The same claim with what came of its request: `data` are the response then, or the
        request itself."""
        source = Source(self.source.name, sha256(data).hexdigest(), len(data))
        return replace(self, source=source, data=data, request=False, generation=generation)


Parcel = Callable[[], bytes]
"""Gives what makes a commit in another clone, where somebody asks for it."""


class QueueEngine(Protocol):
    """Every method may raise `errors.DiskFault`; none raises for what a response holds."""

    def acquire(self, target: str | None = None) -> None:
        """Become the one who empties the inbox, for this branch where a response names none; raises
        `errors.QueueLocked` if somebody is."""

    def release(self, fault: Fault | None = None) -> None:
        """Let go of the lock, and leave unfinished claims to whoever recovers them; `fault` is told
        to who asks, if that is what ends the work."""

    def close(self) -> None:
        """Let go of everything else as well, as the end of the process would."""

    def recover(self) -> list[Claim]:
        """Claims that a dead owner left, oldest first.  Only while the lock is held."""

    def attempt(self, claims: Sequence[Claim]) -> None:
        """Count one more process that decides on each of these recovered claims (`deaths`)."""

    def claim(self, limit: int) -> list[Claim]:
        """Take up to `limit` complete responses, oldest first; those still written stay."""

    def depth(self) -> int:
        """How many responses wait in the inbox."""

    def unsettled(self) -> float | None:
        """Seconds until a response that was passed over as incomplete is worth another look, or
        None when there is none."""

    def reserve(self, claim: Claim, wanted: str) -> str:
        """An id that was never used, from `wanted`: itself, or `-2`, `-3`, … behind it.  The same
        claim gets the same id again."""

    def answer(self, claim: Claim, data: bytes, generation: Generation) -> Claim:
        """The request's claim with what came of it, durably: a crash does not ask twice.  `data`
        are the response, or the request itself where there is none."""

    def together(self) -> AbstractContextManager[None]:
        """What is intended and published inside may be recorded all at once, at the end of the
        block; what it raises then concerns one of them.  Nothing is asked for inside."""

    def intend(
        self,
        claim: Claim,
        report: Report,
        markdown: str | None = None,
        parcel: Parcel | None = None,
    ) -> None:
        """Record the verdict that will be published once its ref has moved, and with it, where
        somebody in another clone may recover the claim, what makes its commit there.

        A held claim is this process's from then on, until `hold`: `errors.Busy` if another one
        ends it.
        """

    def publish(self, claim: Claim, report: Report, markdown: str) -> None:
        """The verdict: the response and both reports appear in done/ or rejected/, the JSON last,
        and the claim is gone.  Repeating it after a crash gives the same files."""

    def hold(self, claim: Claim, report: Report, markdown: str) -> None:
        """Keep the claim, with its report, until `publish`."""

    def held(self) -> list[Claim]:
        """The claims that are held, oldest first, but those that another living process adopted.

        It needs no lock: of two who publish the same held claim, one gets `errors.Busy`.
        """

    def serves(self, claim: Claim) -> bool:
        """Whether it is for this process to decide on a held claim; others may serve its lane."""

    def pass_on(self, id: str, words: Mapping[str, Any]) -> bool:
        """Where another process serves the branch of a batch, or may: have that one do what the
        words say (`review.errands`), and return True.  What is written later is not seen before
        they are."""

    def proposals(self, known: Collection[str] = ()) -> Mapping[str, str | None] | None:
        """Where other machines propose as well: the commits of the marks of all that waits for
        review on the branches that this process serves now, by ids; with None for each of `known`
        that waits nowhere.  None: the marks in the repository are all there are."""

    def mark(self, marks: Mapping[str, str]) -> None:
        """Note durably where the marks of these proposals are now, for whoever serves their branch
        next."""

    def adopt(self, data: bytes, name: str, choice: Mapping[str, Any] | None = None) -> Claim:
        """A claim for a response that does not come through the inbox (`apply`).  It works beside
        the holder of the lock: `recover` leaves it alone while this process lives, and then gives
        it back with the same `choice`."""

    def sync(self, *places: Path) -> None:
        """Make everything done so far durable, with what stands on the file systems of `places`:
        one flush, however many claims."""

    def load(self, id: str) -> Report | None:
        """The report of a batch, wherever it stands."""

    def rewrite(self, report: Report, markdown: str) -> None:
        """Replace the reports of a batch in place (a later state)."""

    def body(self, id: str) -> bytes | None:
        """The response of a batch, byte for byte."""

    def by_source(self, sha256: str) -> Sequence[str]:
        """The ids of the batches that were made from these bytes and have a verdict or are held,
        oldest first; responses that were not read, or are empty, are not counted."""

    def ids(self) -> Iterator[str]:
        """The ids of all batches that have a report, in the order of their verdicts; held ones
        come last."""

    def older(self, limit: float) -> Iterator[str]:
        """Of the batches that have their verdict, in the order of these, all that may have had it
        before that time (see `ended`); who takes them looks at few others."""

    def newest(self) -> Iterator[str]:
        """The ids of held batches, then of all that ever got a verdict, whether or not they were
        forgotten, the last one first; who takes few of them reads little."""

    def ended(self, id: str) -> float | None:
        """Seconds since the epoch, of the wall clock, at which a batch got its verdict or a later
        state; None for one that has no verdict."""

    def forget(self, *ids: str) -> None:
        """Remove the responses and the reports of batches that have their verdict.  Their ids are
        never given again, and `by_source` still knows what they were made from."""

    def past(self, id: str) -> Past | None:
        """What is left of a batch that was forgotten."""

    def submit(self, data: bytes, name: str, *, flush: bool = False) -> str:
        """Put a response into the inbox so that it is complete when it is seen (with `flush`, also
        by who comes after a power cut); returns the name under which it stands there (a free one is
        chosen when `name` is taken)."""


class Requests(Protocol):
    """Who takes requests, and gives them back once they are answered; see `requests`."""

    @property
    def open(self) -> int: ...

    def take(self, claim: Claim) -> None: ...

    def answered(self, wait: float = 0.0) -> list[Claim]: ...

    def refused(self, report: Report) -> None: ...
