"""The queue's protocol as statements that SQLite and PostgreSQL take.

    claimed -> an id -> intended | flush | the ref moves | flush | verdict and event | shown

Each change of a claim asks whether it is this session's still, so that a process whose claims were
taken over changes nothing.  What a transaction has decided counts once it is there.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

from msgspec.json import decode, encode

from patchq.core.model.values import Generation, Problem
from patchq.gate.errors import Busy, DiskFault, Fault, LaneLost
from patchq.gate.queue import Claim, Parcel, events, spool
from patchq.gate.queue.batches import (
    OPEN,
    Database,
    KnownBatches,
    Row,
    Taken,
    is_storable,
    verdict_columns,
)
from patchq.gate.queue.ids import free
from patchq.gate.queue.inbox import Snapshot, claim_of
from patchq.gate.queue.outbox import BatchFiles
from patchq.gate.queue.schema import COLUMNS, EVENT, GIVE_ID, MINE_TO_END, NOT_MINE
from patchq.gate.queue.spool import Tokens, valid
from patchq.gate.report.schema import Report


class QueueEngine(KnownBatches, ABC):
    """A queue; every method may raise `errors.DiskFault` or `errors.DatabaseFault`.

    `is_known` tells whether the repository knows an id already, whatever the queue remembers.
    """

    def __init__(self, database: Database, is_known: Callable[[str], bool]) -> None:
        super().__init__(database)
        self._is_known = is_known
        self._depth = 0
        self._own: set[str] = set()  # the claims that this session took, recovered or looked at
        self._tokens = Tokens()

    # What each engine does in its own way.

    @abstractmethod
    def acquire(self, target: str | None = None) -> None:
        """Become the process that empties the inbox, or raise `errors.QueueLocked`.

        `target` is the branch of responses that name none.
        """

    @abstractmethod
    def release(self, fault: Fault | None = None) -> None:
        """Leave the lock and unfinished claims to the next; `fault` is why, for who asks."""

    @abstractmethod
    def close(self) -> None:
        """Let go of everything, as the end of the process would."""

    @abstractmethod
    def claim(self, limit: int) -> list[Claim]:
        """Take up to `limit` complete responses, oldest first."""

    @abstractmethod
    def depth(self) -> int:
        """Return the number of responses that wait in the inbox."""

    @abstractmethod
    def unsettled(self) -> float | None:
        """Return the seconds until an incomplete response is worth another look."""

    @abstractmethod
    def submit(self, data: bytes, name: str, *, flush: bool = False) -> str:
        """Put a response into the inbox, complete when it is seen; return its name there."""

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
        """Note durably where the marks of proposals are, for the next process that serves them."""

    @abstractmethod
    def _me(self) -> int:
        """Return this session's number, which it gets when it is first needed."""

    def _number(self) -> int:
        """Return this session's number, or 0 where it needs none yet: who looks writes nothing."""
        return self._me()

    @abstractmethod
    def _show(self, batch: BatchFiles) -> None:
        """Have the batch shown as it is now, behind the transaction."""

    def _begin(self) -> None:
        """Do what belongs to the beginning of each transaction."""

    def _commit(self) -> None:
        """Do what belongs to the end of each transaction."""

    def _finish(self, *, kept: bool) -> None:
        """Do what follows a transaction, which was `kept` or rolled back."""

    def _serves(self, lane: str) -> bool:
        return True

    def _place(self, claim: Claim) -> tuple[str, str | None]:
        """Return the lane of a new claim, and the feeder that it belongs to."""
        return "", None

    def _token(self) -> str:
        return self._tokens.next()

    def _count_report(self, before: Report | None, report: Report) -> None:
        """Count a report, in place of the one before it if there was one."""

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Commit what the block changes as a whole; inside another one it is part of that."""
        if self._depth:
            yield
            return
        self._me()
        kept = False
        try:
            with self.store.transaction():
                self._depth = 1
                self._begin()
                yield
                self._commit()
            kept = True
        except (Busy, LaneLost):  # what came before it is there
            kept = True
            raise
        finally:
            self._depth = 0
            self._finish(kept=kept)

    @contextmanager
    def together(self) -> Iterator[None]:
        """Record what the block intends and publishes at once; an error concerns one of them."""
        with self._writing():
            yield

    # A claim's life.

    def adopt(self, data: bytes, name: str, choice: Mapping[str, Any] | None = None) -> Claim:
        """Return a claim for a response that does not come through the inbox.

        `recover` leaves it alone while this process lives, and then gives it back.
        """
        body = Snapshot(data, len(data))
        claim = claim_of(self._token(), name, body, request=False, choice=choice)
        with self._writing():
            self._enter(claim, adopted=True)
        self.store.flush()
        return claim

    def _enter(self, claim: Claim, *, state: str = "claimed", adopted: bool = False) -> None:
        lane, feeder = self._place(claim)
        row = self.store.one(
            "insert into responses (token, lane, feeder, came, name, size, sha256, problem, state,"
            " session, adopted) values (:token, :lane, :feeder, epoch(), :name, :size, :sha256,"
            " :problem, :state, :me, :adopted)"
            " on conflict (token) do update set session = :me, adopted = :adopted returning number",
            token=claim.token,
            lane=lane,
            feeder=feeder,
            name=os.fsencode(claim.source.name),
            size=claim.source.size,
            sha256=claim.source.sha256 if claim.data else None,
            problem=encode(claim.problem).decode() if claim.problem else None,
            state=state,
            me=None if state == "waiting" else self._me(),
            adopted=int(adopted),
        )
        assert row
        papers = {"body": claim.data} if claim.problem is None else {}
        if claim.choice is not None:
            papers["choice"] = spool.encode(claim.choice)
        self._put(row[0], **papers)
        if state != "waiting":
            self._own.add(claim.token)

    def recover(self) -> list[Claim]:
        """Return claims that a dead owner left, oldest first; only while the lock is held."""
        me = self._me()
        found = self.store.all(
            f"select {COLUMNS} from responses where {OPEN} and {NOT_MINE} order by number", me=me
        )
        rows = [row for row in found if row[1] not in self._own and self._serves(row[-1])]
        if rows:
            with self._writing():
                self.store.each(
                    "update responses set adopted = 0,"
                    " state = case state when 'ending' then 'held' else state end,"
                    " session = case state when 'claimed' then :me end"
                    f" where number = :number and {NOT_MINE}",
                    [{"number": row[0], "me": me} for row in rows],
                )
        claims = [self._claim(row) for row in rows]
        self._own.update(claim.token for claim in claims)
        return claims

    def attempt(self, claims: Sequence[Claim]) -> None:
        """Count one more process that decides on each of these recovered claims (`deaths`)."""
        self.store.each(
            "update responses set deaths = deaths + 1 where token = :token",
            [{"token": claim.token} for claim in claims],
        )

    def _claim(self, row: Row, papers: Mapping[str, bytes] | None = None) -> Claim:
        number, token, name, size, problem, state, since, id, deaths, _ = row
        papers = self._papers(number) if papers is None else papers
        body = Snapshot(papers.get("body", b""), size)
        if problem:
            body = Snapshot(b"", size, decode(problem, type=Problem))
        report, held = spool.report(papers.get("intended")), state in ("held", "ending")
        answer = spool.decode(papers.get("answer"))
        return claim_of(
            token,
            os.fsdecode(name),
            body,
            id=report.id if report else id if held else None,
            intended=report,
            held=held,
            held_since=since if held else None,
            generation=Generation.from_json(answer) if answer is not None else None,
            choice=spool.decode(papers.get("choice")),
            deaths=deaths,
            parcel=papers.get("parcel"),
        )

    def reserve(self, claim: Claim, wanted: str) -> str:
        """Return a new id, `wanted` or `-2`, `-3`, … behind it; the same claim has the same id."""
        if not valid(wanted):
            raise ValueError(f"not an id: {wanted!r}")
        while True:
            with suppress(Taken):  # another process took it meanwhile
                if not self._is_barred(wanted) and self._give(claim, wanted):
                    return wanted
                given = "select id from responses where token = :token and id is not null"
                if own := self.store.one(given, token=claim.token):
                    return str(own[0])
                id = self.next_id(wanted)
                if self._give(claim, id):
                    return id
                self._change(claim, "id = id")

    def _give(self, claim: Claim, id: str) -> bool:
        """Give a claim its id, unless it has one, another has that, or it is not in hand."""
        with self._writing():
            given = self.store.one(GIVE_ID, id=id, token=claim.token, me=self._me())
            if given:
                events.add(self.store, id, "claimed")
        return given is not None

    def _is_barred(self, id: str) -> bool:
        # `x.report` with the suffix `.json` would be the name of the report of `x`.
        return id.lower().endswith(".report") or self._is_known(id)

    def next_id(self, wanted: str) -> str:
        """Return the id that a response which asks for `wanted` would get now."""

        @cache
        def is_given(id: str) -> bool:
            row = self.store.one("select number from responses where id = :id", id=id)
            return row is not None

        return free(wanted, is_given, lambda id: self._is_barred(id) or is_given(id))

    def answer(self, claim: Claim, data: bytes, generation: Generation) -> Claim:
        """Return a request's claim with its answer, durably: a crash does not ask twice."""
        answered = claim.answered(data, generation)
        with self._writing():
            number, _ = self._change(
                claim,
                "size = :size, sha256 = :sha256",
                size=answered.source.size,
                sha256=answered.source.sha256 if data else None,
            )
            self._put(number, body=data, answer=spool.encode(generation.to_json()))
        self.store.flush()
        return answered

    def intend(
        self,
        claim: Claim,
        report: Report,
        markdown: str | None = None,
        parcel: Parcel | None = None,
    ) -> None:
        """Record the verdict that is published once its ref has moved.

        `parcel` makes its commit in another clone.  A held claim is this process's until `hold`;
        `errors.Busy` if another one ends it.
        """
        with self._writing():
            number, _ = self._change(
                claim,
                "id = :id, session = :me,"
                " state = case state when 'held' then 'ending' else state end",
                id=report.id,
            )
            papers = {"intended": spool.encode(report)}
            if parcel is not None:
                papers["parcel"] = parcel()
            self._put(number, **papers)

    def publish(self, claim: Claim, report: Report, markdown: str) -> None:
        """Give the verdict: the claim is gone, and its files appear, the JSON report last.

        Repeating it after a crash gives the same files.
        """
        with self._writing():
            number, event = self._change(
                claim,
                "state = 'ended', session = :me, held_since = null, id = :id, verdict = :verdict,"
                f" ended = epoch(), ending = {EVENT}, change = {EVENT}, other = :other,"
                " code = :code, proposed = :proposed, shown = 0",
                **verdict_columns(report),
            )
            self._count_report(None, report)
            events.add_verdict(self.store, report, event)
            body = claim.data if claim.problem is None else self._papers(number).get("body")
            page, data = self._put_report(
                number, report, markdown, "'intended', 'parcel', 'choice'"
            )
            name, token, again = claim.source.name, claim.token, claim.held
            self._show(
                BatchFiles(number, token, name, report, page, body, again=again, encoded=data)
            )
        self._own.discard(claim.token)

    def hold(self, claim: Claim, report: Report, markdown: str) -> None:
        """Keep the claim, with its report, until `publish`."""
        with self._writing():
            before = self.load(report.id)
            number, event = self._change(
                claim,
                f"state = 'held', id = :id, shown = 0, change = {EVENT}, deaths = 0,"
                " session = case adopted when 1 then session end,"
                " held_since = coalesce(held_since, epoch())",
                id=report.id,
            )
            if events.differs(before, report):
                events.add_verdict(self.store, report, event)
            page, _ = self._put_report(number, report, markdown, "'intended', 'parcel'")
            name, data = claim.source.name, claim.data
            self._show(BatchFiles(number, claim.token, name, report, page, data, held=True))

    def held(self) -> list[Claim]:
        """Return held claims, oldest first, but those that another living process adopted.

        Of two who publish the same one, one gets `errors.Busy`.
        """
        rows = self.store.all(
            f"select {COLUMNS} from responses where state in ('held', 'ending') and"
            " (adopted = 0 or session is null or session = :me or not alive(session))"
            " order by number",
            me=self._number(),
        )
        return [self._claim(row) for row in rows]

    def _change(self, claim: Claim, columns: str, **values: object) -> tuple[int, int]:
        """Change the row of a claim that this session may end, or raise.

        Returns the row's number, and the number of the event that the change may be.
        """
        row = self.store.one(
            f"update responses set {columns} where token = :token and {MINE_TO_END}"
            " returning number, coalesce(ending, change)",
            token=claim.token,
            me=self._me(),
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

    def _put_report(
        self, number: int, report: Report, markdown: str, over: str = ""
    ) -> tuple[bytes, bytes]:
        """Keep a page and a report, in place of papers of the kinds that are over; return both."""
        page, data = markdown.encode("utf-8", "replace"), spool.encode(report)
        if over:
            self.store.run(
                f"delete from papers where number = :number and kind in ({over})", number=number
            )
        self._put(number, report=data, page=page)
        return page, data

    # Later states, and the end.

    def rewrite(self, report: Report, markdown: str) -> None:
        """Replace the report of a batch (a later state)."""
        with self._writing():
            row = self.store.one(
                "select number, token, name, problem, state from responses"
                " where id = :id and state in ('ended', 'held', 'ending')",
                id=report.id,
            )
            before = self.load(report.id)
            if row is None or before is None:
                raise DiskFault(f"the report of {report.id} is not there any more")
            number, token, name, problem, state = row
            ended, columns = state == "ended", f"change = {EVENT}, shown = 0"
            if ended:
                columns += (
                    ", verdict = :verdict, ended = epoch(), other = :other, code = :code,"
                    " session = :me, proposed = case when cast(:proposed as text) is not null"
                    " then coalesce(proposed, :proposed) end"
                )
                self._count_report(before, report)
            [event] = self.store.column(
                f"update responses set {columns} where id = :id returning change",
                me=self._me(),
                **verdict_columns(report),
            )
            if events.differs(before, report):
                events.add_verdict(self.store, report, event, before)
            page, _ = self._put_report(number, report, markdown)
            body = self._papers(number).get("body", b"" if problem is None else None)
            self._show(
                BatchFiles(
                    *(number, token, os.fsdecode(name), report, page, body),
                    held=not ended,
                    again=True,
                )
            )

    def forget(self, *ids: str) -> None:
        """Remove responses and reports of ended batches; ids and digests stay known."""
        with self._writing():
            for id in filter(is_storable, ids):
                row = self.store.one(
                    "select number, name, ended from responses where id = :id and state = 'ended'"
                    " and (feeder is null or shown = 1)",
                    id=id,
                )
                if row:
                    self._forget(id, *row)

    def _forget(self, id: str, number: int, name: bytes, ended: float) -> None:
        events.trim(self.store, int(ended * 10**9))
        self.store.run("delete from papers where number = :number", number=number)
        self.store.run(
            "update responses set state = 'gone', proposed = null,"
            " shown = case when feeder is null then 0 else 1 end where number = :number",
            number=number,
        )
