"""The queue's files as the store has them, the sums over all batches, and a lost store's return."""

from __future__ import annotations

import os
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from patchq.core.model.values import Problem, Source
from patchq.gate.git import files
from patchq.gate.queue import Claim, spool, store
from patchq.gate.queue.batches import storable
from patchq.gate.queue.ledger import QueueEngine
from patchq.gate.queue.outbox import BatchFiles, Outbox
from patchq.gate.queue.spool import disk_faults, valid
from patchq.gate.queue.store import Store
from patchq.gate.report.schema import LANDED, Report

Key = tuple[str, str, str, str, str]
Counts = Mapping[Key, float]
# The key that is set as long as the history's batches are not in the store, and its value where
# the store was lost.
UNREAD, LOST = "unread", "lost"
_NOTHING = 1e-9
_UNREAD = Problem("response.incomplete", "the response was not read, or is lost")


class StoreArchive(QueueEngine):
    """The queue at `root` as its files show it, and the sums over its batches.

    `counted` gives what a report adds to the sums.
    """

    store: Store

    def __init__(
        self, root: Path, counted: Callable[[Report], Counts], is_known: Callable[[str], bool]
    ) -> None:
        there = root.is_dir()
        super().__init__(store.opened(root) if there else Store(None), is_known)
        self.root = root
        self.outbox = Outbox(root, lasting=there)
        self._counted = counted
        self._session_lock = -1
        self._written: list[int] = []  # rows whose files were written, and may not be durable
        self._durable: list[int] = []

    def close(self) -> None:
        """Let go of everything, as the end of the process would."""
        if self._session_lock >= 0:
            os.close(self._session_lock)
            self._session, self._session_lock = 0, -1
        self.outbox.close()
        vars(self).pop("store", None)  # its last user closes the file

    @disk_faults
    def _me(self) -> int:
        """Return this session's number, which it gets when it is first needed."""
        if not self._session:
            row = self.store.one(
                "insert into sessions (host, pid, began) values (:host, :pid, :began)"
                " returning number",
                host=socket.gethostname(),
                pid=os.getpid(),
                began=time.time(),
            )
            assert row
            self._session = int(row[0])
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
        """Write, or remove, the files of these rows; one that fails is left to the next start."""
        failed = None
        for number in dict.fromkeys(numbers):
            try:
                for batch in self.batches("number = :number", number=number):
                    self.outbox.show(batch)
            except OSError as error:
                failed = failed or error
                continue
            self._written.append(number)
        if numbers and self.store.root:
            store.ring(self.store.root)
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
        """Give what there is to show of each batch with a report, or of these."""
        for number, token, name, id, problem, state in self.store.all(
            "select number, token, name, id, problem, case when state in ('held', 'ending')"
            " then 'held' when state = 'gone' then state else verdict end from responses"
            f" where {which} order by number",
            **values,
        ):
            papers = self._papers(number)
            body = papers.get("body", b"" if problem is None else None)
            report, page = papers.get("report", b""), papers.get("page", b"")
            yield BatchFiles(token, os.fsdecode(name), id, state, report, page, body)

    def _count_report(self, before: Report | None, report: Report) -> None:
        """Count a report, in place of the one before it if there was one."""
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
        row = self.store.one(
            "select ended from responses where ending is not null"
            f" and verdict in ({states}) order by ending desc limit 1"
        )
        return row[0] if row else None

    # A store that was lost.

    def is_lost(self) -> bool:
        """Return true if the store knows of nothing beside reports that were published."""
        if self.store.root is None or self.store.one("select number from responses"):
            return False
        return next(self.outbox.published(), None) is not None

    def rebuild(self) -> None:
        """Enter the batches of which done/ and rejected/ have the reports, in their order."""
        found = sorted(self.outbox.published(), key=lambda each: each.ended)
        with self.together():
            if self.is_lost():
                for each in found:
                    self.restore(each.report, each.page, each.body, each.ended)
                self.store.remember(UNREAD, LOST)

    def restore(
        self, report: Report, page: bytes, body: bytes | None, ended: float | None = None
    ) -> None:
        """Enter a batch that has its verdict, and that the store does not know."""
        source = Source(
            report.source.name or "", report.source.sha256 or "", report.source.bytes or 0
        )
        claim = Claim(f"restored-{report.id}", source, body or b"", None if body else _UNREAD)
        with self.together():
            self._enter(claim)
            self.publish(claim, report, page.decode("utf-8", "replace"))
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
        written, self._written = self._written, []
        try:
            if places or self.store.root is None:
                files.barrier(*places, self.root)
            else:
                with files.opened(self.root, os.O_RDONLY) as fd:
                    files.syncfs(fd)
        except BaseException:
            self._written = written + self._written
            raise
        self._durable += written
        self.store.checkpoint(idle=False)
