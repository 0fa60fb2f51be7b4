"""The queue's protocol on the store, with inbox and results as plain files.

    inbox/NAME -> active/TOKEN.NAME, a row -> an id -> intended | flush | the ref moves | flush |
    verdict, event and counts in one transaction -> files in done/ or rejected/ -> shown

Each change of a claim asks whether it is this session's still, so that a process whose claims were
taken over changes nothing.  A verdict counts once its transaction is there; who dies before its
files are has them made again.  They are marked as shown only after a flush that came behind them.
"""

from __future__ import annotations

import errno
import os
import socket
import stat
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from patchq.core.model.values import Problem, Source
from patchq.gate.errors import DiskFault, Fault, UsageError
from patchq.gate.git import files
from patchq.gate.git.files import opened
from patchq.gate.queue import Claim, lock, spool, store
from patchq.gate.queue.database import storable
from patchq.gate.queue.inbox import OPEN, Inbox, claim_of, snapshot
from patchq.gate.queue.ledger import QueueEngine
from patchq.gate.queue.lock import Lock, Pending
from patchq.gate.queue.outbox import BatchFiles, Outbox, entry_name
from patchq.gate.queue.spool import PAGE, PUBLIC, REPORT, Folder, disk_faults, tokens, valid
from patchq.gate.queue.store import LOST, UNREAD, Store
from patchq.gate.report.schema import LANDED, Report

Key = tuple[str, str, str, str, str]
Counts = Mapping[Key, float]
_NOTHING = 1e-9
_UNREAD = Problem("response.incomplete", "the response was not read, or is lost")


class StoreQueue(QueueEngine):
    """The queue under `root`, which `spool.create` made, or an empty one.

    `settle_seconds`: how long an entry must stay unchanged where its writers cannot be seen.
    `response_bytes`: larger responses are not read.  `is_known` tells whether the repository knows
    an id already, whatever the queue remembers; `counted` gives what a report adds to the sums.
    """

    store: Store

    def __init__(
        self,
        root: Path,
        *,
        settle_seconds: float = 2.0,
        response_bytes: int = 2 * 1024 * 1024,
        is_known: Callable[[str], bool] = lambda id: False,
        counted: Callable[[Report], Counts] = lambda report: {},
    ) -> None:
        there = root.is_dir()
        super().__init__(store.opened(root) if there else Store(None), is_known)
        self.root = root
        self.outbox = Outbox(root, lasting=there)
        self._counted = counted
        self._session_lock = -1
        self._written: list[int] = []  # rows whose files were written, and may not be durable
        self._durable: list[int] = []
        self._limit = response_bytes
        self._incoming = Folder(root / "inbox", lasting=False)
        self._inbox = Inbox(self._incoming, settle_seconds)
        self._lock = Lock(root / "lock")
        self._scanned = False  # true if every file in active/ has its row

    # Who works.

    @disk_faults
    def acquire(self, target: str | None = None) -> None:
        """Take the lock; `UsageError` for a queue that cannot work where it is."""
        missing = [name for name in PUBLIC if not (self.root / name).is_dir()]
        if missing:
            raise UsageError(
                f"{str(self.root)!r} is not a queue: {', '.join(missing)} missing",
                "make it with `patchq init`",
            )
        if len({os.lstat(self.root / name).st_dev for name in PUBLIC}) > 1:
            raise spool.fault(OSError(errno.EXDEV, ""))
        self._lock.acquire()
        self.store.run("delete from sessions where not alive(number)")

    def release(self, fault: Fault | None = None) -> None:
        if self._session and self.store.is_current():
            self._leave_claims()
        self._own.clear()
        self._lock.release(fault)

    def close(self) -> None:
        self._lock.release()
        self._own.clear()
        self._incoming.close()
        if self._session_lock >= 0:
            os.close(self._session_lock)
            self._session, self._session_lock = 0, -1
        self.outbox.close()
        vars(self).pop("store", None)  # its last user closes the file

    # What comes.

    @disk_faults
    def claim(self, limit: int) -> list[Claim]:
        if self._lock.lost():
            raise DiskFault(
                "the queue's lock file was removed, so another instance may be at work",
                "make sure that only one runs, then start again",
            )
        claims, scanned, self._scanned = list[Claim](), self._scanned, False
        for name in self._inbox.complete() if limit > 0 else ():
            token = tokens.next()
            to = entry_name(token, name)
            if self._incoming.move(name, self.outbox.active, to):
                claims.append(self._read_entry(token, name))
            if len(claims) >= limit:
                break
        if claims:
            with self.together():
                for claim in claims:
                    self._enter(claim)
        else:
            self.store.checkpoint(idle=True)
        self._scanned = scanned
        return claims

    def _read_entry(self, token: str, name: str) -> Claim:
        active, place = self.outbox.active, entry_name(token, name)
        with suppress(OSError), opened(place, OPEN, active.fd) as fd:
            status = os.fstat(fd)
            plain = stat.S_ISREG(status.st_mode) and status.st_nlink == 1
            if plain and status.st_size <= self._limit:
                os.fchmod(fd, 0o600 | active.grant)  # it may hold a secret, and was not looked at
        return claim_of(token, name, *snapshot(active.fd, place, self._limit))

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

    def leave(self, claim: Claim) -> None:
        """Leave a claim to whoever holds the queue's lock, and recovers it."""
        self.store.run(
            "update responses set session = null, adopted = 0 where token = :token",
            token=claim.token,
        )
        self._own.discard(claim.token)

    # What is in hand.

    def in_hand(self, id: str | None = None) -> list[Pending]:
        """Return the claims without a verdict, oldest first.

        With an `id`, only those that have it or will get it.
        """
        found, doing = [], lock.activities(self.root)
        for number, token, name, own in self.store.all(
            "select number, token, name, id from responses where state = 'claimed' order by number"
        ):
            response = os.fsdecode(name)
            if own is None and id is not None:
                body = self._papers(number)[number].get("body", b"")
                own = id if id in (lock.stem_id(response), lock.own_id(body)) else None
            if id in (None, own):
                known = own or lock.stem_id(response)
                found.append(lock.claimed(known, token, response, doing))
        for token, name in self._lost():
            own = lock.own_id(lock.head(self.root / "active" / entry_name(token, name)))
            known = own or lock.stem_id(name)
            if id in (None, known):
                found.append(lock.claimed(known, token, name, doing))
        return found

    def _lost(self) -> Iterator[tuple[str, str]]:
        """Yield the token and name of responses in active/ that the store lacks."""
        active = self.root / "active"
        for place in sorted(os.listdir(active)) if os.access(active, os.R_OK) else ():
            token = spool.token_of(place)
            if token and not self.store.one(
                "select token from responses where token = :token", token=token
            ):
                yield token, place.removeprefix(f"{token}.")

    @disk_faults
    def pending(self, id: str) -> Pending | None:
        """Return the response without a verdict that has the id, or would get it."""
        for _ in range(2):  # it may go from one place to the next meanwhile
            if not valid(id) or self.load(id) is not None:
                return None
            waits = lock.waiting(self.root, id)  # first: what leaves the inbox is in hand then
            if found := next(iter(self.in_hand(id)), waits):
                return found
        return None

    # What a crash left.

    @disk_faults
    def recover(self) -> list[Claim]:
        self._show_again()
        if not self._scanned:
            self._enter_lost()
        return super().recover()

    def _enter_lost(self) -> None:
        """Enter responses in active/ without a row, and remove files of no batch."""
        for name in self.outbox.active.names():
            whole = name.removesuffix(".tmp")
            id, token = whole.removesuffix(PAGE).removesuffix(REPORT), spool.token_of(whole)
            known, state, over = self.store.one(
                "select token, state, shown = 1 and state in ('ended', 'gone') from responses"
                " where token = :token or id = :id",
                token=token,
                id=storable(id),
            ) or (None, None, False)
            if state in ("held", "ending"):
                continue
            if token and not known and whole == name:
                with self.together():
                    claim = self._read_entry(token, name.removeprefix(f"{token}."))
                    self._enter(claim)
                    self.leave(claim)
            elif whole != name or (over if known and known == token else id != whole):
                with suppress(IsADirectoryError):  # `patchq fsck` says so
                    self.outbox.active.remove(name)
        self._scanned = True

    @disk_faults
    def _me(self) -> int:
        if not self._session:
            number = self.store.value(
                "insert into sessions (host, pid, began) values (:host, :pid, :began)"
                " returning number",
                host=socket.gethostname(),
                pid=os.getpid(),
                began=time.time(),
            )
            self._session = int(number or 0)
            if self.store.root is not None:
                self._session_lock = store.hold(self.store.root, self._session)
        return self._session

    # Showing.

    def _commit(self) -> None:
        """Mark as shown what was written before a flush, and is not changed again."""
        durable, self._durable = self._durable, []
        if rows := [{"number": number} for number in durable if number not in self._changed]:
            self.store.each(
                "update responses set shown = 1,"
                " session = case state when 'ended' then null else session end"
                " where number = :number and shown = 0",
                rows,
            )

    def _show(self, numbers: Sequence[int]) -> None:
        """Write or remove the files of these rows.

        A row that fails is left to the next start.
        """
        failed = None
        for number in dict.fromkeys(numbers):
            try:
                for batch in self.batches("number = :number", number=number):
                    self.outbox.show(batch)
            except OSError as error:
                failed = failed or error
                continue
            self._written.append(number)
        if numbers:
            store.ring(self.root)
        if failed:
            raise spool.fault(failed) from failed

    def _show_again(self) -> None:
        """Write the files that a process which died may not have written."""
        numbers = self.store.column(
            "select number from responses where shown = 0"
            " and (session is null or session = :me or not alive(session)) order by number",
            me=self._me(),
        )
        self._show([number for number in numbers if number not in self._written])

    def batches(
        self, which: str = "state in ('held', 'ending', 'ended')", **values: object
    ) -> Iterator[BatchFiles]:
        """Yield the files to show of the batches that `which` selects.

        It is a condition in SQL; by default, each batch that has a report.
        """
        for number, token, name, id, problem, state in self.store.all(
            "select number, token, name, id, problem, case when state in ('held', 'ending')"
            " then 'held' when state = 'gone' then state else verdict end from responses"
            f" where {which} order by number",
            **values,
        ):
            papers = self._papers(number)[number]
            body = papers.get("body", b"" if problem is None else None)
            report, page = papers.get("report", b""), papers.get("page", b"")
            yield BatchFiles(token, os.fsdecode(name), id, state, report, page, body)

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

    @property
    def last_landing(self) -> float | None:
        """The time at which a batch last landed."""
        states = ", ".join(f"'{state}'" for state in sorted(LANDED))
        return self.store.value(
            "select ended from responses where ending is not null"
            f" and verdict in ({states}) order by ending desc limit 1"
        )

    # A store that was lost.

    def rebuild(self) -> None:
        """Enter the batches of done/ and rejected/ in a store that knows of nothing."""
        empty = "select 1 where not exists (select 1 from responses)"
        if self.store.one(empty) and (found := list(self.outbox.published())):
            with self.together():
                for each in sorted(found, key=lambda each: each.ended):
                    if not self.knows(each.report.id):  # another process does this as well
                        self.restore(each.report, each.body, each.ended)
                self.store.remember(UNREAD, LOST)

    def restore(self, report: Report, body: bytes | None, ended: float | None = None) -> None:
        """Enter a batch that has its verdict, and that the store does not know."""
        source = Source(
            report.source.name or "", report.source.sha256 or "", report.source.bytes or 0
        )
        claim = Claim(f"restored-{report.id}", source, body or b"", None if body else _UNREAD)
        with self.together():
            self._enter(claim)
            self.publish(claim, report)
            if ended is not None:
                self.store.run(
                    "update responses set ended = :ended where token = :token",
                    ended=ended,
                    token=claim.token,
                )

    def bury(self, landed: Iterable[tuple[str, str | None, float]]) -> None:
        """Enter batches of which commits are left, so that no other gets their ids.

        Each is an id, the sha256 (hex) of its response, and the time at which it landed.
        """
        rows = [
            {"token": f"buried-{id}", "sha256": sha256, "id": id, "ended": at}
            for id, sha256, at in landed
            if valid(id) and not self.knows(id)
        ]
        self.store.each(
            "insert into responses (token, name, size, sha256, state, id, verdict, ended)"
            " values (:token, '', 0, :sha256, 'gone', :id, 'applied', :ended)",
            rows,
        )

    # Later states, and the end.

    @disk_faults
    def forget(self, *ids: str) -> None:
        super().forget(*ids)
        self.sync()
        self._show_again()

    @disk_faults
    def sync(self, *places: Path) -> None:
        count = len(self._written)
        files.barrier(*places, self.root)
        self._durable += self._written[:count]
        del self._written[:count]
        self.store.checkpoint(idle=False)


def store_queue(queue: object) -> StoreQueue:
    """Return the queue as the `StoreQueue` that every writing command has."""
    assert isinstance(queue, StoreQueue)
    return queue
