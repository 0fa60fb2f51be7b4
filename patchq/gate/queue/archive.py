"""The queue's files as the store has them, the sums over all batches, and a lost store's return."""

from __future__ import annotations

import os
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from hashlib import sha256 as digest
from pathlib import Path
from typing import Any

from patchq.gate.git import files
from patchq.gate.queue import events, spool, store
from patchq.gate.queue.batches import Row, storable, verdict_columns
from patchq.gate.queue.ledger import QueueEngine
from patchq.gate.queue.outbox import BatchFiles, Outbox
from patchq.gate.queue.schema import EVENT
from patchq.gate.queue.spool import disk_faults, valid
from patchq.gate.queue.store import Store
from patchq.gate.report.schema import LANDED, Report

Key = tuple[str, str, str, str, str]
Counts = Mapping[Key, float]
# Agents and models name themselves; beyond this many sums, new names are counted together.
MOST_COUNTS = 20_000
OTHERS = "(others)"
EMPTY = digest().hexdigest()  # the digest of a response that was not read
# The key that is set as long as the history's batches are not in the store, and its value where
# the store was lost.
UNREAD, LOST = "unread", "lost"
_NOTHING = 1e-9


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
        self._session, self._session_lock = 0, -1
        self._pending: list[BatchFiles] = []  # batches to show once the transaction is there
        self._written: list[int] = []  # rows whose files were written, and may not be durable
        self._durable: list[int] = []
        self._marked = 0  # so many of the durable ones are marked by the open transaction

    def close(self) -> None:
        """Let go of everything, as the end of the process would."""
        if self._session_lock >= 0:
            os.close(self._session_lock)
            self._session, self._session_lock = 0, -1
        self.outbox.close()

    def _number(self) -> int:
        return self._session

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

    def _begin(self) -> None:
        """Mark as shown what was written before a flush."""
        self._marked = len(self._durable)
        if self._durable:
            self.store.each(
                "update responses set shown = 1,"
                " session = case state when 'ended' then null else session end"
                " where number = :number and shown = 0",
                [{"number": number} for number in self._durable],
            )

    def _show(self, batch: BatchFiles) -> None:
        self._pending.append(batch)

    def _finish(self, *, kept: bool) -> None:
        pending, self._pending = self._pending, []
        if not kept:
            return
        del self._durable[: self._marked]
        failed = None
        for batch in pending:
            try:
                self.outbox.show(batch)
            except OSError as error:  # the next start shows it
                failed = failed or error
                continue
            self._written.append(batch.number)
        if pending and self.store.root:
            store.ring(self.store.root)
        if failed:
            raise spool.fault(failed) from failed

    def _show_again(self) -> None:
        """Write the files that a process which died may not have written."""
        rows = self.store.all(
            "select number, token, name, problem, state from responses where shown = 0"
            " and (session is null or session = :me or not alive(session)) order by number",
            me=self._me(),
        )
        for batch in self._shown(row for row in rows if row[0] not in self._written):
            self.outbox.show(batch)
            self._written.append(batch.number)
        self._remove()

    def _shown(self, rows: Iterable[Row]) -> Iterator[BatchFiles]:
        for number, token, name, problem, state in rows:
            papers = self._papers(number)
            if report := spool.report(papers.get("report")):
                body = papers.get("body", b"" if problem is None else None)
                page, held = papers.get("page", b""), state in ("held", "ending")
                yield BatchFiles(
                    number, token, os.fsdecode(name), report, page, body, held, again=True
                )

    def _count_report(self, before: Report | None, report: Report) -> None:
        """Count a report, in place of the one before it if there was one."""
        counts = Counter[Key](self._counted(report))
        counts.subtract(self._counted(before) if before else {})
        self._count({key: many for key, many in counts.items() if abs(many) > _NOTHING})

    def _count(self, counts: Counts) -> None:
        names = "what", "agent", "model", "form", "value"
        (known,) = self.store.one("select count(*) from counts") or (0,)
        rows = []
        for key, many in counts.items():
            row = dict(zip(names, map(storable, key), strict=True))
            if known >= MOST_COUNTS and not self.store.one(
                "select many from counts where what = :what and agent = :agent and model = :model"
                " and form = :form and value = :value",
                **row,
            ):
                row |= {"agent": OTHERS, "model": OTHERS}
            rows.append({**row, "many": many})
        self.store.each(
            "insert into counts (what, agent, model, form, value, many)"
            " values (:what, :agent, :model, :form, :value, :many)"
            " on conflict (what, agent, model, form, value)"
            " do update set many = counts.many + excluded.many",
            rows,
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

    def batches(self) -> Iterator[BatchFiles]:
        """Give what there is to show of each batch with a verdict, and of those that are held."""
        yield from self._shown(
            self.store.all(
                "select number, token, name, problem, state from responses"
                " where state <> 'gone' and state <> 'claimed' order by number"
            )
        )

    # A store that was lost.

    def is_lost(self) -> bool:
        """Return true if the store knows of nothing beside reports that were published."""
        if self.store.root is None or self.store.one("select number from responses"):
            return False
        return next(self.outbox.published(), None) is not None

    def rebuild(self) -> None:
        """Enter the batches of which done/ and rejected/ have the reports, in their order."""
        found = sorted(self.outbox.published(), key=lambda each: each.ended)
        with self.store.transaction():
            if self.is_lost():
                for each in found:
                    self.restore(each.report, each.page, each.body, each.ended)
                self.store.remember(UNREAD, LOST)

    def restore(
        self, report: Report, page: bytes, body: bytes | None, ended: float | None = None
    ) -> None:
        """Enter a batch that has its verdict, and that the store does not know."""
        source, token = report.source, f"restored-{report.id}"
        with self._writing():
            row = self.store.one(
                "insert into responses"
                " (token, name, size, sha256, problem, state, id, verdict, ended, ending, change,"
                " other, code, proposed) values (:token, :name, :size, :sha256, :problem, 'ended',"
                f" :id, :verdict, :ended, {EVENT}, {EVENT}, :other, :code, :proposed)"
                " returning number, ending",
                token=token,
                name=os.fsencode(source.name or ""),
                size=source.bytes or 0,
                sha256=None if source.sha256 in ("", EMPTY) else source.sha256,
                problem="{}" if body is None else None,
                ended=ended or time.time(),
                **verdict_columns(report),
            )
            assert row
            papers = {} if body is None else {"body": body}
            self._put(row[0], report=spool.encode(report), page=page, **papers)
            events.add_verdict(self.store, report, row[1])
            self._count_report(None, report)
            if ended is None:
                self._show(BatchFiles(row[0], token, source.name or "", report, page, body))

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
        self._remove()

    def _remove(self) -> None:
        """Remove the files of batches that were forgotten."""
        for number, id, name in self.store.all(
            "select number, id, name from responses where shown = 0 and state = 'gone'"
        ):
            if number not in self._written:
                self.outbox.remove(id, os.fsdecode(name))
                self._written.append(number)

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
