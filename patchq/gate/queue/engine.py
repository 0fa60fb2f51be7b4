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
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from patchq.gate.errors import DiskFault, Fault, UsageError
from patchq.gate.git.files import opened
from patchq.gate.queue import Claim, hand, spool
from patchq.gate.queue.archive import Counts, StoreArchive
from patchq.gate.queue.batches import storable
from patchq.gate.queue.hand import Pending
from patchq.gate.queue.inbox import OPEN, Inbox, claim_of, snapshot
from patchq.gate.queue.layout import PAGE, PUBLIC, REPORT
from patchq.gate.queue.lock import Lock
from patchq.gate.queue.outbox import entry_name
from patchq.gate.queue.spool import Folder, disk_faults, tokens, valid
from patchq.gate.report.schema import Report

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
        super().__init__(root, counted, is_known)
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
            raise spool.across_file_systems()
        self._lock.acquire()
        self.store.run("delete from sessions where not alive(number)")

    def release(self, fault: Fault | None = None) -> None:
        if self._lock.held:
            self._leave()
        self._lock.release(fault)

    def _leave(self) -> None:
        """Leave this session's claims, but adopted ones, to whoever recovers them."""
        if self._session and self.store.is_current():
            self.store.run(
                "update responses set session = null where session = :me and adopted = 0"
                " and state in ('claimed', 'ending')",
                me=self._session,
            )
        self._own.clear()

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
        claims, scanned, self._scanned = list[Claim](), self._scanned, False
        for name in self._inbox.complete() if limit > 0 else ():
            token = tokens.next()
            to = entry_name(token, name)
            if self._incoming.move(name, self.outbox.active, to, missing=_NOT_OURS):
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
        return claim_of(token, name, snapshot(active.fd, place, self._limit))

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
        """Leave an adopted claim to whoever holds the queue's lock."""
        self.store.run(
            "update responses set session = null, adopted = 0 where token = :token",
            token=claim.token,
        )

    # What is in hand.

    def in_hand(self, id: str | None = None) -> list[Pending]:
        """Return what was claimed and has no verdict, or will get this id, the oldest first."""
        found, doing = [], hand.activities(self.root)
        for number, token, name, own in self.store.all(
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
        if not self._scanned:
            self._enter_lost()
        return super().recover()

    def _enter_lost(self) -> None:
        """Enter each response in active/ that has no row, and remove what belongs to no batch."""
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
                self._enter_again(token, name.removeprefix(f"{token}."))
            elif whole != name or (over if known and known == token else id != whole):
                with suppress(IsADirectoryError):  # `patchq fsck` says so
                    self.outbox.active.remove(name)
        self._scanned = True

    def _enter_again(self, token: str, name: str) -> None:
        with self.together():
            self._enter(self._read_entry(token, name))
            self.store.run("update responses set session = null where token = :token", token=token)
        self._own.discard(token)


def store_queue(queue: object) -> StoreQueue:
    """Return the queue of a command that writes, which is one of files on every machine."""
    assert isinstance(queue, StoreQueue)
    return queue
