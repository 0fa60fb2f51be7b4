"""The queue's protocol as statements that SQLite and PostgreSQL take.

    claimed -> an id -> intended | flush | the ref moves | flush | verdict and event | shown

Each change of a claim asks whether it is this session's still, so that a process whose claims were
taken over changes nothing.  What a transaction has decided counts once it is there.
"""

from __future__ import annotations

import itertools
import os
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from msgspec import convert, to_builtins
from msgspec.json import decode, encode
from msgspec.structs import replace

from patchq.core.model.names import MAX_ID_BYTES
from patchq.core.model.values import Generation, Problem, Source
from patchq.gate.errors import Busy, DiskFault, LaneLost
from patchq.gate.queue import Claim, Parcel, events, spool
from patchq.gate.queue.database import (
    COLUMNS,
    EVENT,
    MINE_TO_END,
    NOT_MINE,
    OPEN,
    Database,
    KnownBatches,
    Row,
    Taken,
    known_id,
)
from patchq.gate.queue.inbox import claim_of
from patchq.gate.report import page
from patchq.gate.report.schema import Report


class QueueEngine(KnownBatches, ABC):
    """A queue; every method may raise `errors.DiskFault` or `errors.DatabaseFault`.

    `is_known` tells whether the repository knows an id already, whatever the queue remembers.
    """

    def __init__(self, database: Database, is_known: Callable[[str], bool]) -> None:
        self.store = database
        self._is_known = is_known
        self._own: set[str] = set()  # the claims that this session took, recovered or looked at
        self._attempted: set[str] = set()
        self._is_writing = False
        self._session = 0  # this session's number, 0 until it is needed
        self._changed: list[int] = []  # rows to show once the transaction is there

    # What each engine does in its own way.

    @abstractmethod
    def open(self) -> int:
        """Open a session, if there is none; return its number."""

    def acquire(self) -> None:
        """Become the process that empties the inbox, or raise `errors.QueueLocked`."""

    @abstractmethod
    def release(self) -> None:
        """Leave the lock and unfinished claims to the next."""

    @abstractmethod
    def close(self) -> None:
        """Let go of everything, as the end of the process would."""

    @abstractmethod
    def claim(self, limit: int) -> list[Claim]:
        """Take up to `limit` complete responses, oldest first."""

    @abstractmethod
    def submit(self, data: bytes, name: str, *, flush: bool = False) -> str:
        """Put a whole response into the inbox, and return its name there."""

    @abstractmethod
    def sync(self, *places: Path) -> None:
        """Make everything done so far durable, with the file systems of `places`: one flush."""

    def serves(self, claim: Claim) -> bool:
        """Return true if this process decides on a held claim."""
        return True

    def pass_on(self, id: str, words: Mapping[str, Any]) -> bool:
        """Give a command (`review.errands`) to the process that serves another branch.

        Returns false where this process serves the batch's branch.
        """
        return False

    def proposals(self, known: Collection[str] = ()) -> Mapping[str, str | None] | None:
        """Return the marks of proposals on this process's branches, where other machines propose.

        Each of `known` that waits nowhere has None.  None: the repository has all marks.
        """
        return None

    def mark(self, marks: Mapping[str, str]) -> None:
        """Record the marks of proposals durably, for the next process that serves them."""

    def _show(self, numbers: Sequence[int]) -> None:
        """Have these rows shown as they are now, after their transaction."""

    def _place(self, claim: Claim) -> tuple[str, str | None]:
        """Return the lane of a new claim, and the feeder that it belongs to."""
        return "", None

    def _count_report(self, before: Report | None, report: Report) -> None:
        """Count a report, in place of the one before it if there was one."""

    @contextmanager
    def together(self) -> Iterator[None]:
        """Commit what the block changes as a whole.

        Inside another one it is part of that.  `Busy` and `LaneLost` concern one of the claims:
        what came before them is there.
        """
        if self._is_writing:
            yield
            return
        self.open()
        self._is_writing = True
        lost = None
        try:
            with self.store.transaction():
                try:
                    yield
                except (Busy, LaneLost) as fault:
                    lost = fault
            changed = self._changed
        finally:
            self._is_writing = False
            self._changed = []
        self._show(changed)
        if lost:
            raise lost

    # A claim's life.

    def adopt(
        self,
        data: bytes,
        name: str,
        choice: object = None,
        token: str | None = None,
    ) -> Claim:
        """Return a claim for a response that does not come through the inbox.

        `recover` leaves it alone while this process lives, and then gives it back.  One with a
        `token` was made by another machine: the same call again gives the same claim.
        """
        token, adopted = token or spool.new_token(), token is None
        claim = claim_of(token, name, data, len(data), request=False, choice=to_builtins(choice))
        with self.together():
            self._enter(claim, adopted=adopted)
        self.store.flush()
        return claim

    def _enter(self, claim: Claim, *, state: str = "claimed", adopted: bool = False) -> None:
        lane, feeder = self._place(claim)
        row = self.store.one(
            "insert into responses (token, lane, feeder, came, name, size, sha256, problem, state,"
            " session, adopted, id) values (:token, :lane, :feeder, epoch(), :name, :size, :sha256,"
            " :problem, :state, :me, :adopted, (select cast(:id as text)"
            " where not exists (select 1 from responses r where r.id = :id)))"
            " on conflict (token) do update set session = excluded.session,"
            " adopted = excluded.adopted where excluded.state <> 'waiting' returning number",
            token=claim.token,
            lane=lane,
            feeder=feeder,
            name=os.fsencode(claim.source.name),
            size=claim.source.size,
            sha256=claim.source.sha256 if claim.data else None,
            problem=encode(claim.problem).decode() if claim.problem else None,
            state=state,
            me=None if state == "waiting" else self.open(),
            adopted=int(adopted),
            id=claim.id,
        )
        if row is None:  # it is there
            return
        if claim.problem is None:
            self._put(row[0], body=claim.data)
        if claim.choice is not None:
            self._put(row[0], choice=spool.encode(claim.choice))
        if state != "waiting":
            self._own.add(claim.token)

    def recover(self) -> list[Claim]:
        """Return the claims of a dead owner, oldest first, under the lock."""
        me = self.open()
        found = self._claims(f"{OPEN} and {NOT_MINE}", but=self._own, me=me)
        claims = list(filter(self.serves, found))
        if claims:
            with self.together():
                self.store.each(
                    "update responses set adopted = 0,"
                    " state = case state when 'ending' then 'held' else state end,"
                    " session = case state when 'claimed' then :me end"
                    f" where token = :token and {NOT_MINE}",
                    [{"token": claim.token, "me": me} for claim in claims],
                )
        self._own.update(claim.token for claim in claims)
        return claims

    def _leave_claims(self) -> None:
        """Leave what is in hand to whoever recovers it."""
        self.store.run(
            "update responses set session = null where session = :me"
            " and state in ('claimed', 'ending')",
            me=self._session,
        )

    def know(self, given: Iterable[tuple[str, str | None, float | None]]) -> None:
        """Have ids never given again that were given elsewhere.

        Each has the sha256 (hex) of its response and the time at which it landed, or None.
        """
        self.open()
        self.store.each(
            "insert into responses (token, name, size, sha256, state, id, ended, verdict)"
            " values ('known-' || cast(:id as text), '', 0, :sha256, 'gone', :id, :ended,"
            " case when cast(:ended as double precision) is not null then 'applied' end)"
            " on conflict do nothing",
            [
                {"id": id, "sha256": sha256, "ended": at}
                for id, sha256, at in given
                if spool.valid(id)
            ],
        )

    def attempt(self, claims: Sequence[Claim]) -> None:
        """Count one more process that decides on each of these recovered claims (`deaths`).

        One that lives and recovers its own, as behind a lost connection, is counted once.
        """
        tokens = {claim.token for claim in claims} - self._attempted
        self.store.each(
            "update responses set deaths = deaths + 1 where token = :token",
            [{"token": token} for token in tokens],
        )
        self._attempted |= tokens

    def _claims(self, which: str, *, but: Collection[str] = (), **values: object) -> list[Claim]:
        rows = self.store.all(
            f"select {COLUMNS} from responses where {which} order by number", **values
        )
        return self._read([row for row in rows if row[1] not in but])

    def _read(self, rows: Sequence[Row]) -> list[Claim]:
        papers: defaultdict[int, dict[str, bytes]] = defaultdict(dict)
        numbers = ", ".join(str(row[0]) for row in rows) or "null"
        for number, kind, data in self.store.all(
            f"select number, kind, data from papers where number in ({numbers})"
            " and kind not in ('report', 'page')"
        ):
            papers[number][kind] = data
        return [_claim(row, papers[row[0]]) for row in rows]

    def reserve(self, claim: Claim, wanted: str) -> str:
        """Return the claim's id, `wanted` or `-2`, `-3`, … behind it."""
        return self.reserve_all([(claim, wanted)])[0]

    def reserve_all(self, claims: Sequence[tuple[Claim, str]]) -> list[str]:
        """Return the ids of claims, each given with the id that it wants."""
        while True:
            with suppress(Taken), self.together():  # another process took one meanwhile
                return [self._reserved(claim, wanted) for claim, wanted in claims]

    def _reserved(self, claim: Claim, wanted: str) -> str:
        if not spool.valid(wanted):
            raise ValueError(f"not an id: {wanted!r}")
        mine = "select id from responses where token = :token"
        id: str | None = self.store.value(mine, token=claim.token)
        if id is None:
            id = self.next_id(wanted)
            self._change(claim, "id = :id", id=id)
            events.add_event(self.store, id, "claimed")
        return id

    def _is_barred(self, id: str) -> bool:
        # `x.report` with the suffix `.json` would be the name of the report of `x`.
        return id.lower().endswith(".report") or self._is_known(id)

    def next_id(self, wanted: str) -> str:
        """Return the id that a response which asks for `wanted` would get now.

        It is found in a logarithmic number of looks; gaps in the numbers before it stay.
        """

        @cache
        def is_given(number: int) -> bool:
            return self.knows(numbered(wanted, number))

        most = next(2**n for n in itertools.count() if not is_given(2**n))
        first = bisect_left(range(most), True, lo=max(1, most // 2), key=lambda n: not is_given(n))
        numbers = (n for n in itertools.count(first) if not is_given(n))
        return next(id for n in numbers if not self._is_barred(id := numbered(wanted, n)))

    def answer(self, claim: Claim, data: bytes, generation: Generation) -> Claim:
        """Return a request's claim with its answer, durably: a crash does not ask twice."""
        source = Source(claim.source.name, sha256(data).hexdigest(), len(data))
        with self.together():
            number, _ = self._change(
                claim,
                "size = :size, sha256 = :sha256",
                size=source.size,
                sha256=source.sha256 if data else None,
            )
            self._put(number, body=data, answer=spool.encode(to_builtins(generation)))
        self.store.flush()
        return replace(claim, source=source, data=data, request=False, generation=generation)

    def intend(
        self,
        claim: Claim,
        report: Report,
        parcel: Parcel | None = None,
    ) -> None:
        """Record the verdict that is published once its ref has moved.

        `parcel` makes its commit in another clone.  A held claim is this process's until `hold`;
        `errors.Busy` if another one ends it.
        """
        with self.together():
            number, _ = self._change(
                claim,
                "id = :id, session = :me,"
                " state = case state when 'held' then 'ending' else state end",
                id=report.id,
            )
            more = {"parcel": parcel()} if parcel else {}
            self._put(number, intended=spool.encode(report), **more)

    def publish(self, claim: Claim, report: Report, ended: float | None = None) -> None:
        """Publish the verdict, which ends the claim and makes its files appear.

        The JSON report is the last of them.  Repeating it after a crash gives the same files.
        `ended` is the time of an old verdict.
        """
        with self.together():
            number, event = self._change(
                claim,
                "state = 'ended', session = :me, held_since = null, id = :id, verdict = :verdict,"
                f" ended = coalesce(:ended, epoch()), ending = {EVENT}, change = {EVENT},"
                " other = :other, code = :code, proposed = :proposed, shown = 0",
                ended=ended,
                **_verdict(report),
            )
            self._record(number, event, report, "'intended', 'parcel', 'choice'")
        self._own.discard(claim.token)

    def hold(self, claim: Claim, report: Report) -> None:
        """Keep the claim, with its report, until `publish`."""
        with self.together():
            number, event = self._change(
                claim,
                f"state = 'held', id = :id, shown = 0, change = {EVENT}, deaths = 0,"
                " session = case adopted when 1 then session end,"
                " held_since = coalesce(held_since, epoch())",
                id=report.id,
            )
            self._record(number, event, report, "'intended', 'parcel'")

    def held(self) -> list[Claim]:
        """Return held claims, oldest first, but those that another living process adopted.

        Of two who publish the same one, one gets `errors.Busy`.
        """
        return self._claims(
            "state in ('held', 'ending') and"
            " (adopted = 0 or session is null or session = :me or not alive(session))",
            me=self._session,
        )

    def _change(self, claim: Claim, columns: str, **values: object) -> tuple[int, int]:
        """Change the row of a claim that this session may end, or raise.

        Returns the row's number, and the number of the event that the change may be.
        """
        row = self.store.one(
            f"update responses set {columns} where token = :token and {MINE_TO_END}"
            " returning number, coalesce(ending, change)",
            token=claim.token,
            me=self.open(),
            **values,
        )
        if row is not None:
            return row[0], row[1]
        if claim.held:
            raise Busy(
                f"another process gives {claim.id} its verdict", f"see `patchq show {claim.id}`"
            )
        raise LaneLost(
            f"the response {claim.source.name!r} is not in hand any more: the connection was lost,"
            " or another process took it over",
            "nothing to do: the process that has it gives it its verdict",
        )

    def _record(self, number: int, event: int, report: Report, over: str) -> None:
        """Store a report, its page and event, and delete papers of the `over` kinds."""
        before = self.load(report.id)
        if report.state != "held":
            self._count_report(before if before and before.state != "held" else None, report)
        events.add_step(self.store, before, report, event)
        self.store.run(
            f"delete from papers where number = :number and kind in ({over})", number=number
        )
        shown = page.to_markdown(report).encode("utf-8", "replace")
        self._put(number, report=spool.encode(report), page=shown)
        self._changed.append(number)

    # Later states, and the end.

    def rewrite(self, report: Report) -> None:
        """Replace the report of a batch (a later state)."""
        with self.together():
            row = self.store.one(
                f"update responses set change = {EVENT}, shown = 0, verdict = :verdict,"
                " ended = epoch(), other = :other, code = :code,"
                " session = case state when 'ended' then :me else session end,"
                " proposed = case when cast(:proposed as text) is not null"
                " then coalesce(proposed, :proposed) end"
                " where id = :id and state in ('ended', 'held', 'ending')"
                " returning number, change",
                me=self.open(),
                **_verdict(report),
            )
            if row is None:
                raise DiskFault(f"the report of {report.id} is not there any more")
            self._record(row[0], row[1], report, "''")

    def forget(self, *ids: str) -> None:
        """Remove responses and reports of ended batches; ids and digests stay known."""
        with self.together():
            for id in map(known_id, ids):
                row = self.store.one(
                    "update responses set state = 'gone', proposed = null,"
                    " shown = case when feeder is null then 0 else 1 end"
                    " where id = :id and state = 'ended' and (feeder is null or shown = 1)"
                    " returning number, ended",
                    id=id,
                )
                if row:
                    events.trim_events(self.store, int(row[1] * 10**9))
                    self.store.run("delete from papers where number = :number", number=row[0])
                    self._changed.append(row[0])


def numbered(wanted: str, number: int) -> str:
    """Return the id with the number behind it; the first has none."""
    suffix = f"-{number}" if number > 1 else ""
    short = os.fsencode(wanted)[: MAX_ID_BYTES - len(suffix)]
    return short.decode("utf-8", "ignore") + suffix


def _claim(row: Row, papers: Mapping[str, bytes]) -> Claim:
    _, token, name, size, problem, state, since, id, deaths, lane = row
    report, held = spool.report(papers.get("intended")), state in ("held", "ending")
    answer = spool.decode(papers.get("answer"))
    answered = {} if answer is None else {"generation": convert(answer, Generation)}
    return claim_of(
        token,
        os.fsdecode(name),
        b"" if problem else papers.get("body", b""),
        size,
        decode(problem, type=Problem) if problem else None,
        id=report.id if report else id if held else None,
        intended=report,
        held=held,
        held_since=since if held else None,
        choice=spool.decode(papers.get("choice")),
        deaths=deaths,
        parcel=papers.get("parcel"),
        lane=lane,
        **answered,
    )


def _verdict(report: Report) -> Mapping[str, Any]:
    codes = (p.code for p in report.problems if p.severity == "error")
    return {
        "id": report.id,
        "verdict": report.state,
        "other": report.duplicate_of,
        "code": next(codes, None),
        "proposed": report.commit if report.state == "proposed" else None,
    }
