"""The queue's protocol on the store, with the inbox and what is shown as plain files.

    inbox/NAME -> active/TOKEN.NAME, a row -> an id -> intended | flush | the ref moves | flush |
    verdict, event and counts in one transaction -> files in done/ or rejected/ -> shown

Each change of a claim asks whether it is this session's still, so that a process whose claims were
taken over changes nothing.  A verdict counts once its transaction is there; who dies before its
files are has them made again.  They are marked as shown only after a flush that came behind them.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from msgspec.json import decode, encode

from patchq.core.model.values import Generation, Problem
from patchq.gate.errors import Busy, DiskFault, Fault, LaneLost, UsageError
from patchq.gate.git.files import opened
from patchq.gate.queue import Claim, Parcel, events, hand, ids, spool, store
from patchq.gate.queue.archive import Counts, StoreArchive
from patchq.gate.queue.hand import Pending
from patchq.gate.queue.inbox import OPEN, Inbox, Snapshot, claim_of, snapshot
from patchq.gate.queue.layout import PUBLIC
from patchq.gate.queue.lock import Lock
from patchq.gate.queue.outbox import BatchFiles, entry_name
from patchq.gate.queue.spool import Folder, Steady, Tokens, disk_faults, valid
from patchq.gate.report.schema import Report

_COLUMNS = "number, token, name, size, problem, state, held_since, id, deaths"
_NOT_MINE = "(session is null or session <> :me and not alive(session))"
_MINE_TO_END = """(
    state in ('claimed', 'ending') and session = :me
    or state = 'held' and (session is null or session = :me or not alive(session))
)"""
"""Rows that this session may give a verdict: its own, and held ones that nobody means to end."""
_NOT_OURS = (errno.ENOENT, errno.EACCES, errno.EPERM, errno.EBUSY)


class StoreQueue(StoreArchive):
    """The queue under `root`, which `layout.create` made; a place that is not there is empty.

    `settle_seconds`: how long an entry must stay unchanged where its writers cannot be seen.
    `response_bytes`: larger responses are not read.  `is_known` tells whether the repository knows
    an id already, whatever the queue remembers.
    """

    def __init__(
        self,
        root: Path,
        *,
        settle_seconds: float = 2.0,
        response_bytes: int = 2 * 1024 * 1024,
        is_known: Callable[[str], bool] = lambda id: False,
        counted: Callable[[Report], Counts] = lambda report: {},
    ) -> None:
        super().__init__(root, counted)
        self._limit = response_bytes
        self._is_known = is_known
        self._incoming = Folder(root / "inbox", lasting=False)
        self._inbox = Inbox(self._incoming, settle_seconds)
        self._tokens = Tokens()
        self._lock = Lock(root / "lock")
        self._own: set[str] = set()
        """The claims that this process took, recovered or looked at."""
        self._encodings: dict[str, tuple[Report, bytes]] = {}
        """Reports that were intended, as JSON, by their batches."""
        self._numbers: dict[str, int] = {}
        """The last number behind an id that was wanted."""

    # Who works.

    @disk_faults
    def acquire(self, target: str | None = None) -> None:
        """See `QueueEngine.acquire`; `UsageError` for a queue that cannot work where it is."""
        missing = [name for name in PUBLIC if not (self.root / name).is_dir()]
        if missing:
            raise UsageError(
                f"{str(self.root)!r} is not a queue: {', '.join(missing)} missing",
                "make it with `patchq init`",
            )
        if len({os.lstat(self.root / name).st_dev for name in PUBLIC}) > 1:
            raise spool.across_file_systems()
        self._lock.acquire()
        self._store.run("delete from sessions where not alive(number)")

    def release(self, fault: Fault | None = None) -> None:
        if self._lock.held:
            self._leave()
        self._lock.release(fault)

    def _leave(self) -> None:
        """Leave this session's claims, but adopted ones, to whoever recovers them."""
        if self._session and self._store.is_current():
            self._store.run(
                "update responses set session = null where session = :me and adopted = 0"
                " and state in ('claimed', 'ending')",
                me=self._session,
            )
        self._own.clear()
        self._encodings.clear()

    def close(self) -> None:
        """Let go of everything, as the end of the process would."""
        self._lock.release()
        self._own.clear()
        self._incoming.close()
        super().close()

    # What comes.

    @disk_faults
    def claim(self, limit: int) -> list[Claim]:
        if self._lock.lost():
            raise DiskFault(
                "the queue's lock file was removed, so another instance may be at work",
                "make sure that only one runs, then start again",
            )
        claims: list[Claim] = []
        with Steady(self._incoming, self._outbox.active):
            for name in self._inbox.complete() if limit > 0 else ():
                token = self._tokens.next()
                if self._move_in(name, token):
                    claims.append(self._read_entry(token, name))
                if len(claims) >= limit:
                    break
        if claims:
            with self._writing():
                for claim in claims:
                    self._enter(claim, adopted=False)
        else:
            self._store.checkpoint(idle=True)
        return claims

    def _move_in(self, name: str, token: str) -> bool:
        """Take an entry out of the inbox; false if it cannot be moved (any more)."""
        folders = self._incoming.fd, self._outbox.active.fd
        try:
            os.rename(name, entry_name(token, name), src_dir_fd=folders[0], dst_dir_fd=folders[1])
        except OSError as error:
            if error.errno not in _NOT_OURS:
                raise
            return False
        return True

    def _read_entry(self, token: str, name: str) -> Claim:
        active, place = self._outbox.active, entry_name(token, name)
        with suppress(OSError), opened(place, OPEN, active.fd) as fd:
            status = os.fstat(fd)
            plain = stat.S_ISREG(status.st_mode) and status.st_nlink == 1
            if plain and status.st_size <= self._limit:
                os.fchmod(fd, 0o600 | active.grant)  # it may hold a secret, and was not looked at
        return claim_of(token, name, snapshot(active.fd, place, self._limit))

    def _enter(self, claim: Claim, *, adopted: bool) -> None:
        row = self._store.one(
            "insert into responses (token, name, size, sha256, problem, state, session, adopted)"
            " values (:token, :name, :size, :sha256, :problem, 'claimed', :me, :adopted)"
            " on conflict (token) do update set session = :me, adopted = :adopted returning number",
            token=claim.token,
            name=os.fsencode(claim.source.name),
            size=claim.source.size,
            sha256=claim.source.sha256 if claim.data else None,
            problem=encode(claim.problem).decode() if claim.problem else None,
            me=self._me(),
            adopted=int(adopted),
        )
        assert row
        papers = {"body": claim.data} if claim.problem is None else {}
        if claim.choice is not None:
            papers["choice"] = spool.encode(claim.choice)
        self._put(row[0], **papers)
        self._own.add(claim.token)

    @disk_faults
    def depth(self) -> int:
        return self._inbox.depth()

    def unsettled(self) -> float | None:
        return self._inbox.unsettled()

    @disk_faults
    def submit(self, data: bytes, name: str, *, flush: bool = False) -> str:
        try:
            return self._inbox.submit(data, name, flush=flush)
        except OSError as error:
            fault = spool.fault(error)
            cure = (fault.hint or "").partition(", then")[0]
            fault.hint = f"{cure}, then hand the response in again: it was not taken"
            raise fault from error

    @disk_faults
    def adopt(self, data: bytes, name: str, choice: Mapping[str, Any] | None = None) -> Claim:
        body = Snapshot(data, len(data))
        claim = claim_of(self._tokens.next(), name, body, request=False, choice=choice)
        with self._writing():
            self._enter(claim, adopted=True)
        self._store.flush()
        return claim

    def leave(self, claim: Claim) -> None:
        """Leave an adopted claim to whoever holds the queue's lock."""
        self._store.run(
            "update responses set session = null, adopted = 0 where token = :token",
            token=claim.token,
        )

    def take_in(self, token: str, data: bytes, name: str) -> Claim:
        """Return a claim for a response that another machine made, by the token that it gave.

        Only while the lock is held; the same call again after a crash gives the same claim.
        """
        claim = claim_of(token, name, Snapshot(data, len(data)), request=False)
        with self._writing():
            self._enter(claim, adopted=False)
        self._store.flush()
        return claim

    # What is in hand.

    def in_hand(self, id: str | None = None) -> list[Pending]:
        """Return what was claimed and has no verdict, or will get this id, the oldest first."""
        found, doing = [], hand.activities(self.root)
        for number, token, name, own in self._store.all(
            "select number, token, name, id from responses where state = 'claimed' order by number"
        ):
            response = os.fsdecode(name)
            if own is None and id is not None:
                body = self._papers(number).get("body", b"")
                own = id if id in (hand.stem_id(response), hand.own_id(body)) else None
            if id in (None, own):
                known = own or hand.stem_id(response)
                found.append(hand.claimed(known, token, response, doing))
        return found

    @disk_faults
    def pending(self, id: str) -> Pending | None:
        """Return the response without a verdict that has the id, or would get it."""
        for _ in range(2):  # it may go from one place to the next meanwhile
            if not valid(id) or self.load(id) is not None:
                return None
            waits = hand.waiting(self.root, id)  # first: what leaves the inbox is in hand then
            if found := next(iter(self.in_hand(id)), waits):
                return found
        return None

    # What a crash left.

    @disk_faults
    def recover(self) -> list[Claim]:
        self._show_again()
        self._enter_lost()
        me, claims = self._me(), []
        rows = self._store.all(
            f"select {_COLUMNS} from responses where state in ('claimed', 'held', 'ending')"
            f" and {_NOT_MINE} order by number",
            me=me,
        )
        rows = [row for row in rows if row[1] not in self._own]
        if rows:
            with self._writing():
                self._store.each(
                    "update responses set adopted = 0,"
                    " state = case state when 'ending' then 'held' else state end,"
                    " session = case state when 'claimed' then :me end"
                    f" where number = :number and {_NOT_MINE}",
                    [{"number": row[0], "me": me} for row in rows],
                )
            claims = [self._claim(row) for row in rows]
            self._own.update(claim.token for claim in claims)
        return claims

    def _enter_lost(self) -> None:
        """Make a row for each response in active/ that a power cut left without one."""
        entries = {token: name for name in self._outbox.active.names()
                   if (token := spool.token_of(name))}  # fmt: skip
        if not entries:
            return
        open_ones = self._store.column(
            "select token from responses where state in ('claimed', 'held', 'ending')"
        )
        for token in sorted(entries.keys() - set(open_ones)):
            if self._store.one("select number from responses where token = :token", token=token):
                if not self._store.one(
                    "select number from responses where token = :token and shown = 0", token=token
                ):
                    self._outbox.active.remove(entries[token])
                continue
            name = entries[token].removeprefix(f"{token}.")
            with self._writing():
                self._enter(self._read_entry(token, name), adopted=False)
                self._store.run(
                    "update responses set session = null where token = :token", token=token
                )
            self._own.discard(token)

    def attempt(self, claims: Sequence[Claim]) -> None:
        """Count one more process that decides on each of these recovered claims."""
        with self._writing():
            self._store.each(
                "update responses set deaths = deaths + 1 where token = :token",
                [{"token": claim.token} for claim in claims],
            )

    def _claim(self, row: store.Row) -> Claim:
        number, token, name, size, problem, state, since, id, deaths = row
        papers = self._papers(number)
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

    # A claim's life.

    @disk_faults
    def reserve(self, claim: Claim, wanted: str) -> str:
        if not valid(wanted):
            raise ValueError(f"not an id: {wanted!r}")
        with self._writing():
            row = self._store.one(
                "select id from responses where token = :token", token=claim.token
            )
            if row and row[0]:
                return str(row[0])
            id = self._next(wanted)
            changed = self._store.run(
                "update responses set id = :id where token = :token and session = :me",
                id=id,
                token=claim.token,
                me=self._me(),
            )
            if not changed:
                raise _lost(claim)
            events.add(self._store, id, "claimed")
        return id

    @disk_faults
    def next_id(self, wanted: str) -> str:
        """Return the id that a response which asks for `wanted` would get now."""
        return self._next(wanted)

    def _next(self, wanted: str) -> str:
        def is_given(id: str) -> bool:
            row = self._store.one("select number from responses where id = :id", id=id)
            return row is not None

        def is_barred(id: str) -> bool:
            # `x.report` with the suffix `.json` would be the name of the report of `x`.
            return id.lower().endswith(".report") or self._is_known(id) or is_given(id)

        last = self._numbers.get(wanted, 0)
        if last and is_given(ids.numbered(wanted, last)):
            number = last + 1
            while is_barred(ids.numbered(wanted, number)):
                number += 1
        else:
            number = ids.free(wanted, is_given, is_barred)
        if number > 1:
            self._numbers[wanted] = number
        return ids.numbered(wanted, number)

    @disk_faults
    def answer(self, claim: Claim, data: bytes, generation: Generation) -> Claim:
        answered = claim.answered(data, generation)
        with self._writing():
            number = self._to_end(claim)
            self._store.run(
                "update responses set size = :size, sha256 = :sha256 where number = :number",
                size=answered.source.size,
                sha256=answered.source.sha256 if data else None,
                number=number,
            )
            self._put(number, body=data, answer=spool.encode(generation.to_json()))
        self._store.flush()
        return answered

    @contextmanager
    def together(self) -> Iterator[None]:
        with self._writing():
            yield

    @disk_faults
    def intend(
        self,
        claim: Claim,
        report: Report,
        markdown: str | None = None,
        parcel: Parcel | None = None,
    ) -> None:
        with self._writing():
            number = self._to_end(claim, report.id)
            self._store.run(
                "update responses set id = :id, session = :me,"
                " state = case state when 'held' then 'ending' else state end"
                " where number = :number",
                id=report.id,
                me=self._me(),
                number=number,
            )
            papers = {"intended": self._encoded(report)}
            if parcel is not None:
                papers["parcel"] = parcel()
            self._put(number, **papers)

    @disk_faults
    def publish(self, claim: Claim, report: Report, markdown: str) -> None:
        with self._writing():
            number = self._to_end(claim, report.id)
            page = _encoded(markdown)
            self._count_report(None, report)
            self._store.run(
                "update responses set state = 'ended', session = :me, held_since = null, id = :id,"
                " verdict = :verdict, ended = :now, ending = :event, other = :other, code = :code,"
                " shown = 0 where number = :number",
                event=self._tell(report),
                number=number,
                me=self._me(),
                **self._verdict(report),
            )
            self._store.run(
                "delete from papers where number = :number"
                " and kind in ('parcel', 'answer', 'choice')",
                number=number,
            )
            data = self._encoded(report)
            self._put_report(number, data, page)
            body = claim.data if claim.problem is None else self._papers(number).get("body")
            name = claim.source.name
            again, token = claim.held, claim.token
            self._to_show(
                BatchFiles(number, token, name, report, page, body, again=again, encoded=data)
            )
        self._own.discard(claim.token)
        self._encodings.pop(report.id, None)

    @disk_faults
    def hold(self, claim: Claim, report: Report, markdown: str) -> None:
        with self._writing():
            number, page = self._to_end(claim, report.id), _encoded(markdown)
            before = self.load(report.id)
            if events.differs(before, report):
                self._tell(report)
            self._store.run(
                "update responses set state = 'held', id = :id, shown = 0,"
                " session = case adopted when 1 then session end,"
                " held_since = coalesce(held_since, :now) where number = :number",
                id=report.id,
                now=time.time(),
                number=number,
            )
            self._store.run(
                "delete from papers where number = :number and kind in ('intended', 'parcel')",
                number=number,
            )
            self._put(number, report=spool.encode(report), page=page)
            name = claim.source.name
            self._to_show(
                BatchFiles(number, claim.token, name, report, page, claim.data, held=True)
            )

    @disk_faults
    def held(self) -> list[Claim]:
        rows = self._store.all(
            f"select {_COLUMNS} from responses where state in ('held', 'ending') and"
            " (adopted = 0 or session is null or session = :me or not alive(session))"
            " order by number",
            me=self._session,
        )
        return [self._claim(row) for row in rows]

    def serves(self, claim: Claim) -> bool:
        return True

    def pass_on(self, id: str, words: Mapping[str, Any]) -> bool:
        return False

    def proposals(self, known: Collection[str] = ()) -> Mapping[str, str | None] | None:
        return None

    def mark(self, marks: Mapping[str, str]) -> None:
        pass  # the marks in the repository are all there are

    def _encoded(self, report: Report) -> bytes:
        known = self._encodings.get(report.id)
        if known is None or known[0] is not report:
            known = self._encodings[report.id] = report, spool.encode(report)
        return known[1]

    def _to_end(self, claim: Claim, id: str | None = None) -> int:
        """Return the row of a claim that this session may end; raise if it is another one's."""
        row = self._store.one(
            f"select number from responses where token = :token and {_MINE_TO_END}",
            token=claim.token,
            me=self._me(),
        )
        if row is None and claim.held:
            raise Busy(f"another process gives {id} its verdict", f"see `patchq show {id}`")
        if row is None:
            raise _lost(claim)
        return int(row[0])


def _lost(claim: Claim) -> LaneLost:
    return LaneLost(
        f"the response {claim.source.name!r} is not in hand any more: another process took it over",
        "nothing to do: whoever has it gives it its verdict",
    )


def store_queue(queue: object) -> StoreQueue:
    """Return the queue of a command that writes, which is one of files on every machine."""
    assert isinstance(queue, StoreQueue)
    return queue


def _encoded(markdown: str) -> bytes:
    return markdown.encode("utf-8", "replace")
