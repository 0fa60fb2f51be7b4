"""The queue's protocol on the store, with inbox and results as plain files.

    inbox/NAME -> active/TOKEN.NAME, a row -> an id -> intended | flush | the ref moves | flush |
    verdict, event and counts in one transaction -> files in done/ or rejected/ -> shown

Each change of a claim asks whether it is this session's still, so that a process whose claims were
taken over changes nothing.  A verdict counts once its transaction is there; who dies before its
files are has them made again.  They are marked as shown only after a flush that came behind them.
"""

from __future__ import annotations

import os
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

from patchq.core.model.names import REQUEST
from patchq.core.model.values import Problem, Source
from patchq.gate.errors import UsageError
from patchq.gate.git import files
from patchq.gate.queue import Claim, inbox, spool, store
from patchq.gate.queue.database import OPEN, storable
from patchq.gate.queue.ledger import QueueEngine
from patchq.gate.queue.lock import Activity, Lock, activities
from patchq.gate.report.schema import Report

Key = tuple[str, str, str, str, str]
Counts = Mapping[Key, float]
_NOTHING = 1e-9
_PAPERS = ", ".join(
    f"(select data from papers p where p.number = r.number and p.kind = '{kind}')"
    for kind in ("report", "page", "body")
)
_FILES = (
    "select token, name, problem, id, case when state in ('held', 'ending') then 'held'"
    f" when state = 'gone' then state else verdict end, {_PAPERS}"
    " from responses r where number = :number"
)
_UNREAD = Problem("response.incomplete", "the response was not read, or is lost")


class StoreQueue(QueueEngine):
    """The queue under `root`, which `spool.create` made, or an empty one.

    `settle_seconds`: how long an entry must stay unchanged where its writers cannot be seen.
    `response_bytes`: larger responses are not read.  `is_known` tells whether the repository knows
    an id already, whatever the queue remembers; `counted` gives what a report adds to the sums.
    """

    store: store.Store

    def __init__(
        self,
        root: Path,
        *,
        settle_seconds: float = 2.0,
        response_bytes: int = 2 * 1024 * 1024,
        is_known: Callable[[str], bool] = lambda id: False,
        counted: Callable[[Report], Counts] = lambda report: {},
    ) -> None:
        super().__init__(store.opened(root), is_known)
        self.root = root
        self.outbox = spool.Outbox(root)
        self._counted = counted
        self._session_lock = -1
        self._written: list[int] = []  # rows whose files were written, and may not be durable
        self._limit = response_bytes
        self.inbox = inbox.Inbox(spool.Folder(root / "inbox", lasting=False), settle_seconds)
        self.lock = Lock(root / "lock")
        self._scanned = False  # true if every file in active/ has its row

    # Who works.

    @spool.disk_faults()
    def acquire(self) -> None:
        """Take the lock; `UsageError` for a queue that cannot work where it is."""
        if len({os.lstat(self.root / name).st_dev for name in spool.PUBLIC}) > 1:
            raise UsageError(
                "the queue's directories are on different file systems, so nothing can be renamed "
                "from one to the other",
                "put inbox/, active/, done/ and rejected/ on one file system",
            )
        self.lock.acquire()
        self.store.run("delete from sessions where not alive(number)")

    def release(self) -> None:
        if self._session and self.store.is_current():
            self._leave_claims()
        self._own.clear()
        self.lock.release()

    def close(self) -> None:
        self.lock.release()
        if self._session_lock >= 0:
            os.close(self._session_lock)
            self._session, self._session_lock = 0, -1
        vars(self).pop("store", None)  # its last user closes the file

    # What comes.

    @spool.disk_faults()
    def claim(self, limit: int) -> list[Claim]:
        scanned, self._scanned = self._scanned, False
        claims = list(islice(self._moved(), limit))
        if claims:
            with self.together():
                for claim in claims:
                    self._enter(claim)
        else:
            self.store.checkpoint(store.CHANGES_IDLE)
        self._scanned = scanned
        return claims

    def _moved(self) -> Iterator[Claim]:
        """Yield the complete entries that could be moved to active/."""
        for name in self.inbox.complete():
            token = spool.new_token()
            if self.inbox.folder.move(name, self.outbox.active, spool.entry_name(token, name)):
                yield self._read_entry(token, name)

    def _read_entry(self, token: str, name: str) -> Claim:
        active, place = self.outbox.active, spool.entry_name(token, name)
        with active.opened() as folder:
            read = inbox.snapshot(folder, place, self._limit, 0o600 | active.grant)
        return inbox.claim_of(token, name, *read)

    def submit(self, data: bytes, name: str, *, flush: bool = False) -> str:
        try:
            return self.inbox.submit(data, name, flush=flush)
        except OSError as error:
            again = "hand the response in again: it was not taken"
            raise spool.fault(error, again) from error

    def leave(self, claim: Claim) -> None:
        """Leave a claim to whoever holds the queue's lock, and recovers it."""
        self.store.run(
            "update responses set session = null, adopted = 0 where token = :token",
            token=claim.token,
        )
        self._own.discard(claim.token)

    # What is in hand.

    def in_hand(self, id: str | None = None) -> list[inbox.Pending]:
        """Return the claims without a verdict, oldest first.

        With an `id`, only those that have it or will get it.
        """
        found, doing = [], activities(self.root)
        rows = self.store.all(
            "select token, name, id, substr(data, 1, :most) from responses r"
            " left join papers p on p.number = r.number and kind = 'body'"
            " where state = 'claimed' order by r.number",
            most=inbox.HEAD_BYTES,
        )
        for token, place in self._lost():
            name = place.removeprefix(f"{token}.")
            rows.append((token, os.fsencode(name), None, inbox.head(self.root / "active" / place)))
        for token, name, given, head in rows:
            response = os.fsdecode(name)
            stem, own = inbox.stem_id(response), given or inbox.own_id(head or b"")
            if id in (None, own) or (not given and id == stem):
                since, own = spool.claimed(token) or 0.0, own or stem
                work = tuple(one for one in doing if one.batch in (own, stem))
                if not work and response.endswith(REQUEST):
                    work = (Activity(own, "asking", since),)
                found.append(inbox.Pending(own, response, "claimed", since, work))
        return found

    def _lost(self) -> Iterator[tuple[str, str]]:
        """Yield the token and entry of responses in active/ that the store lacks."""
        active = self.root / "active"
        known = set(self.store.column(f"select token from responses where {OPEN}"))
        for place in sorted(os.listdir(active)) if os.access(active, os.R_OK) else ():
            token = spool.token_of(place)
            whole = not place.endswith(".tmp")
            if whole and token and token not in known and self._state(place) is None:
                yield token, place

    def _state(self, place: str) -> str | None:
        """Return the state of the row that an entry of active/ belongs to."""
        return self.store.value(
            "select state from responses where token = :token or id = :id",
            token=spool.token_of(place),
            id=storable(place.removesuffix(spool.PAGE).removesuffix(spool.REPORT)),
        )

    @spool.disk_faults()
    def pending(self, id: str) -> inbox.Pending | None:
        """Return the response without a verdict that has the id, or would get it."""
        for _ in range(2):  # it may go from one place to the next meanwhile
            if not spool.valid(id) or self.load(id) is not None:
                return None
            waits = inbox.waiting(self.root, id)  # first: what leaves the inbox is in hand then
            if found := next(iter(self.in_hand(id)), waits):
                return found
        return None

    # What a crash left.

    @spool.disk_faults()
    def recover(self) -> list[Claim]:
        self._show_again()
        if not self._scanned:
            self._enter_lost()
        return super().recover()

    def _enter_lost(self) -> None:
        """Enter responses in active/ without a row, and remove files of no batch."""
        for token, place in list(self._lost()):
            with self.together():
                claim = self._read_entry(token, place.removeprefix(f"{token}."))
                self._enter(claim)
                self.leave(claim)
        for place in self.outbox.active.names():
            is_report = place.endswith((spool.PAGE, spool.REPORT))
            if place.endswith(".tmp") or (
                is_report and self._state(place) in (None, "ended", "gone")
            ):
                with suppress(IsADirectoryError):  # `patchq fsck` says so
                    self.outbox.active.remove(place)
        self._scanned = True

    @spool.disk_faults()
    def open(self) -> int:
        if not self._session:
            number = self.store.value(
                "insert into sessions (host, pid, began) values (:host, :pid, :began)"
                " returning number",
                host=socket.gethostname(),
                pid=os.getpid(),
                began=time.time(),
            )
            self._session = int(number or 0)
            self._session_lock = store.hold(self.root, self._session)
        return self._session

    # Showing.

    def _show(self, numbers: Sequence[int]) -> None:
        """Write or remove the files of these rows.

        A row that fails is left to the next start.
        """
        failed = None
        for number in dict.fromkeys(numbers):
            try:
                self.outbox.show(self._files_of(number))
                self._written.append(number)
            except OSError as error:
                failed = error
        if numbers:
            store.ring(self.root)
        if failed:
            raise spool.fault(failed) from failed

    def _show_again(self) -> None:
        """Write the files that a process which died may not have written."""
        numbers = self.store.column(
            "select number from responses where shown = 0"
            " and (session is null or session = :me or not alive(session)) order by number",
            me=self.open(),
        )
        self._show([number for number in numbers if number not in self._written])

    def batches(
        self, which: str = "state in ('held', 'ending', 'ended')", **values: object
    ) -> Iterator[spool.BatchFiles]:
        """Yield the files to show of the batches that `which` selects.

        It is a condition in SQL; by default, each batch that has a report.
        """
        numbers = f"select number from responses where {which} order by number"
        for number in self.store.column(numbers, **values):  # one by one, as they may be many
            yield self._files_of(number)

    def _files_of(self, number: int) -> spool.BatchFiles:
        [(token, name, problem, id, state, report, page, body)] = self.store.all(
            _FILES, number=number
        )
        if body is None and problem is None:  # it is gone
            body = b""
        return spool.BatchFiles(token, os.fsdecode(name), id, state, report, page, body)

    def _count_report(self, before: Report | None, report: Report) -> None:
        counts = Counter[Key](self._counted(report))
        counts.subtract(self._counted(before) if before else {})
        names = "what", "agent", "model", "form", "value"
        self.store.each(
            "insert into counts (what, agent, model, form, value, many)"
            " values (:what, :agent, :model, :form, :value, :many)"
            " on conflict (what, agent, model, form, value)"
            " do update set many = counts.many + excluded.many",
            [
                {**dict(zip(names, map(storable, key), strict=True)), "many": many}
                for key, many in counts.items()
                if abs(many) > _NOTHING
            ],
        )

    def counts(self) -> dict[Any, float]:
        """Return the sums over all batches that ever got a verdict, removed or not."""
        rows = self.store.all("select what, agent, model, form, value, many from counts")
        return {tuple(key): int(many) if many == int(many) else many for *key, many in rows}

    # A store that was lost.

    @spool.disk_faults()
    def rebuild(self) -> None:
        """Enter the batches of done/ and rejected/ in a store that knows of nothing."""
        empty = "select 1 where not exists (select 1 from responses)"
        if self.store.one(empty) and (found := self.outbox.published()):
            with self.together():
                for report, body, ended in found:
                    self.restore(report, body, ended)
                self.store.remember(store.UNREAD, store.LOST)

    def restore(self, report: Report, body: bytes | None, ended: float | None = None) -> None:
        """Enter a batch that has its verdict, unless the store knows it."""
        name, sha256, size = report.source.name, report.source.sha256, report.source.bytes
        source = Source(name or "", sha256 or "", size or 0)
        claim = Claim(f"restored-{report.id}", source, body or b"", None if body else _UNREAD)
        with self.together():
            if not self.knows(report.id):  # another process may do this as well
                self._enter(claim)
                self.publish(claim, report, ended)

    @spool.disk_faults()
    def sync(self, *places: Path) -> None:
        written, self._written = self._written, []  # what is written from now on is not flushed
        files.barrier(*places, self.root)
        if rows := [{"number": number} for number in written if number not in self._changed]:
            self.store.each(
                "update responses set shown = 1,"
                " session = case state when 'ended' then null else session end"
                " where number = :number and shown = 0",
                rows,
            )
        self.store.checkpoint(store.CHANGES_MOST)


def store_queue(queue: object) -> StoreQueue:
    """Return the queue as the `StoreQueue` that every writing command has."""
    assert isinstance(queue, StoreQueue)
    return queue
