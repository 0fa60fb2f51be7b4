"""What the store knows of batches: their reports and responses, in the order of their verdicts,
the sums over all of them, and what is left of those that were forgotten."""

from __future__ import annotations

import os
import socket
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from hashlib import sha256 as digest
from pathlib import Path
from typing import Any

from patchq.gate.errors import Busy, DiskFault, LaneLost
from patchq.gate.git import files
from patchq.gate.queue import Past, events, spool, store
from patchq.gate.queue.outbox import BatchFiles, Outbox, Published
from patchq.gate.queue.spool import disk_faults, extension, valid
from patchq.gate.report.schema import LANDED, Report, kind_of

Key = tuple[str, str, str, str, str]
Counts = Mapping[Key, float]
MOST_COUNTS = 20_000
"""Agents and models name themselves; beyond this many sums, new names are counted together."""
OTHERS = "(others)"
LANDING = "landing"
"""The key of the time at which a batch last landed."""
EMPTY = digest().hexdigest()
"""The digest of a response that was not read."""
UNREAD, LOST = "unread", "lost"
"""The key that is set as long as the history's batches are not in the store, and its value where
the store was lost."""
_PIECE = 256
_NOTHING = 1e-9
_ENDED = "ending is not null and ending < :last order by ending desc limit :most"


class StoreArchive:
    """The half of `QueueEngine` that no lock and no claim is needed for; see there.

    `counted` gives what a report adds to the sums.
    """

    def __init__(self, root: Path, counted: Callable[[Report], Counts]) -> None:
        self.root = root
        there = root.is_dir()
        self._store = store.opened(root) if there else store.Store(None)
        self._outbox = Outbox(root, lasting=there)
        self._counted = counted
        self._session, self._session_lock = 0, -1
        self._depth = 0
        self._pending: list[BatchFiles] = []
        """What is to be shown once the transaction is there."""
        self._written: list[int] = []
        """Rows whose files were written, and may not be durable."""
        self._durable: list[int] = []
        self._rings = False

    @property
    def fresh(self) -> bool:
        """True if the store was made by this process."""
        return self._store.fresh

    def close(self) -> None:
        """Let go of everything, as the end of the process would."""
        if self._session_lock >= 0:
            os.close(self._session_lock)
            self._session, self._session_lock = 0, -1
        self._outbox.close()
        self._store.close()

    def _me(self) -> int:
        """Return this session's number, which it gets when it is first needed."""
        if not self._session:
            row = self._store.one(
                "insert into sessions (host, pid, began) values (:host, :pid, :began)"
                " returning number",
                host=socket.gethostname(),
                pid=os.getpid(),
                began=time.time(),
            )
            assert row
            self._session = int(row[0])
            if self._store.root is not None:
                self._session_lock = store.hold(self._store.root, self._session)
        return self._session

    # Writing.

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """One transaction, whose verdicts are shown behind it."""
        if self._depth:
            yield
            return
        done, self._durable = self._durable, []
        try:
            with self._store.transaction():
                self._depth = 1
                self._mark(done)
                yield
        except (Busy, LaneLost):  # what came before it is there
            self._show()
            raise
        except BaseException:
            self._durable += done
            self._pending.clear()
            raise
        finally:
            self._depth = 0
        self._show()

    def _mark(self, numbers: Sequence[int]) -> None:
        if numbers:
            self._store.each(
                "update responses set shown = 1,"
                " session = case state when 'ended' then null else session end"
                " where number = :number and shown = 0",
                [{"number": number} for number in numbers],
            )

    def _to_show(self, batch: BatchFiles) -> None:
        self._pending.append(batch)

    def _show(self) -> None:
        pending, self._pending = self._pending, []
        failed = None
        for batch in pending:
            try:
                self._outbox.show(batch)
            except OSError as error:  # the next start shows it
                failed = failed or error
                continue
            self._written.append(batch.number)
        if self._rings and self._store.root:
            store.ring(self._store.root)
            self._rings = False
        if failed:
            raise spool.fault(failed) from failed

    def _show_again(self) -> None:
        """Write the files that a process which died may not have written."""
        rows = self._store.all(
            "select number, token, name, problem, state from responses where shown = 0"
            " and (session is null or session = :me or not alive(session)) order by number",
            me=self._me(),
        )
        for batch in self._shown(row for row in rows if row[0] not in self._written):
            self._outbox.show(batch)
            self._written.append(batch.number)
        gone = "select number, id, name from responses where shown = 0 and state = 'gone'"
        self._remove(row for row in self._store.all(gone) if row[0] not in self._written)

    def _shown(self, rows: Iterable[store.Row]) -> Iterator[BatchFiles]:
        for number, token, name, problem, state in rows:
            papers = self._papers(number)
            if report := spool.report(papers.get("report")):
                body = papers.get("body", b"" if problem is None else None)
                page, held = papers.get("page", b""), state in ("held", "ending")
                yield BatchFiles(
                    number, token, os.fsdecode(name), report, page, body, held, again=True
                )

    def _tell(self, report: Report) -> int:
        self._rings = True
        return events.add(self._store, report.id, str(kind_of(report)), report)

    def _count_report(self, before: Report | None, report: Report) -> None:
        """Count a report, in place of the one before it if there was one."""
        counts: dict[Key, float] = defaultdict(float)
        for key, many in self._counted(report).items():
            counts[key] += many
        for key, many in self._counted(before).items() if before else ():
            counts[key] -= many
        self._count({key: many for key, many in counts.items() if abs(many) > _NOTHING})
        if report.state in LANDED and (before is None or before.state not in LANDED):
            self.remember(LANDING, repr(time.time()))

    def _count(self, counts: Counts) -> None:
        names = "what", "agent", "model", "form", "value"
        (known,) = self._store.one("select count(*) from counts") or (0,)
        rows = []
        for key, many in counts.items():
            row = dict(zip(names, map(_sayable, key), strict=True))
            if known >= MOST_COUNTS and not self._store.one(
                "select many from counts where what = :what and agent = :agent and model = :model"
                " and form = :form and value = :value",
                **row,
            ):
                row |= {"agent": OTHERS, "model": OTHERS}
            rows.append({**row, "many": many})
        self._store.each(
            "insert into counts (what, agent, model, form, value, many)"
            " values (:what, :agent, :model, :form, :value, :many)"
            " on conflict (what, agent, model, form, value)"
            " do update set many = counts.many + excluded.many",
            rows,
        )

    def _put(self, number: int, **papers: bytes) -> None:
        self._store.each(
            "insert into papers (number, kind, data) values (:number, :kind, :data)"
            " on conflict (number, kind) do update set data = excluded.data",
            [{"number": number, "kind": kind, "data": data} for kind, data in papers.items()],
        )

    def _put_report(self, number: int, data: bytes, page: bytes) -> None:
        """Keep a verdict's report, which mostly is the intended one."""
        if not self._store.run(
            "update papers set kind = 'report' where number = :number and kind = 'intended'"
            " and data = :data and not exists"
            " (select 1 from papers p where p.number = :number and p.kind = 'report')",
            number=number,
            data=data,
        ):
            self._store.run(
                "delete from papers where number = :number and kind = 'intended'", number=number
            )
            self._put(number, report=data)
        self._put(number, page=page)

    def _verdict(self, report: Report) -> dict[str, object]:
        codes = (p.code for p in report.problems if p.severity == "error")
        return {
            "id": report.id,
            "verdict": report.state,
            "now": time.time(),
            "other": report.duplicate_of,
            "code": next(codes, None),
        }

    # What there is.

    def load(self, id: str) -> Report | None:
        return spool.report(self._paper(id, "report"))

    def body(self, id: str) -> bytes | None:
        """See `QueueEngine.body`; None also for what was refused unread."""
        return self._paper(id, "body") if self._paper(id, "report") else None

    def _paper(self, id: str, kind: str) -> bytes | None:
        if not _is_sayable(id):
            return None
        row = self._store.one(
            "select data from papers where kind = :kind"
            " and number = (select number from responses where id = :id)",
            kind=kind,
            id=id,
        )
        return row[0] if row else None

    def _papers(self, number: int) -> dict[str, bytes]:
        rows = self._store.all(
            "select kind, data from papers where number = :number", number=number
        )
        return dict(rows)

    def by_source(self, sha256: str) -> Sequence[str]:
        return self._store.column(
            "select id from responses r where sha256 = :sha256 and id is not null"
            " and (state <> 'claimed' or exists (select number from papers p"
            " where p.number = r.number and p.kind = 'intended')) order by number",
            sha256=sha256,
        )

    def ids(self) -> Iterator[str]:
        return iter(
            self._store.column(
                "select id from responses where state in ('ended', 'held', 'ending')"
                " order by case state when 'ended' then 0 else 1 end, ending, id"
            )
        )

    def _held_ids(self) -> list[str]:
        return self._store.column(
            "select id from responses where state in ('held', 'ending') order by number desc"
        )

    def older(self, limit: float) -> Iterator[str]:
        return iter(
            self._store.column(
                "select id from responses where ending < :number and state = 'ended'"
                " and ended < :limit order by ending",
                number=int(limit * 10**9),
                limit=limit,
            )
        )

    def newest(self) -> Iterator[str]:
        yield from sorted(self._held_ids(), reverse=True)
        last = 2**63 - 1
        while rows := self._store.all(
            f"select id, ending from responses where {_ENDED}", last=last, most=_PIECE
        ):
            yield from (row[0] for row in rows)
            last = rows[-1][1]

    def ended(self, id: str) -> float | None:
        row = _is_sayable(id) and self._store.one(
            "select ended from responses where id = :id and state = 'ended'", id=id
        )
        return row[0] if row else None

    def past(self, id: str) -> Past | None:
        row = _is_sayable(id) and self._store.one(
            "select verdict, ended, other, code from responses where id = :id and state = 'gone'",
            id=id,
        )
        return Past(row[0], int(row[1]), row[2], row[3]) if row else None

    def token(self, id: str) -> str | None:
        """Return the claim that the id was given to."""
        row = self._store.one("select token from responses where id = :id", id=id)
        return row[0] if row else None

    def counts(self) -> dict[Any, float]:
        """Return the sums over all batches that ever got a verdict, removed or not."""
        rows = self._store.all("select what, agent, model, form, value, many from counts")
        return {tuple(key): int(many) if many == int(many) else many for *key, many in rows}

    @property
    def last_landing(self) -> float | None:
        """The time at which a batch last landed."""
        landed = self.recall(LANDING)
        return float(landed) if landed else None

    def recall(self, key: str) -> str | None:
        """Return what was remembered under the key."""
        return self._store.recall(key)

    def remember(self, key: str, value: str) -> None:
        """Keep a small text for later processes."""
        self._store.remember(key, value)

    def batches(self) -> Iterator[BatchFiles]:
        """Give what there is to show of each batch with a verdict, and of those that are held."""
        yield from self._shown(
            self._store.all(
                "select number, token, name, problem, state from responses"
                " where state <> 'gone' and state <> 'claimed' order by number"
            )
        )

    def show(self, batch: BatchFiles) -> None:
        """Write the files of a batch again, as far as they are not as they should be."""
        self._outbox.show(batch)

    def wrong(self, batch: BatchFiles) -> Iterator[Path]:
        """Give the files of a batch that are not there as they should be."""
        for folder, name, data in self._outbox.files(batch):
            if not self._outbox.stands(folder, name, data):
                yield folder.path / name

    def files(self, batch: BatchFiles) -> list[Path]:
        """Return where the files of a batch are; of one that was not read, where its entry is."""
        folders = self._outbox.files(batch)
        body = folders[0][0].path / f"{batch.report.id}{extension(batch.name)}"
        return [body, *(folder.path / name for folder, name, _ in folders)]

    def published(self, path: Path) -> Published | None:
        """Return the batch that a report in done/ or rejected/ tells of."""
        return self._outbox.published_as(path)

    def backup(self, file: Path) -> None:
        """Write a copy of the store."""
        self._store.backup(file)

    def problems(self) -> list[str]:
        """Return what is wrong with the store's structure."""
        return self._store.problems()

    def knows(self, id: str) -> bool:
        """Return true if the id was ever given."""
        return _is_sayable(id) and self.token(id) is not None

    # A store that was lost.

    def is_lost(self) -> bool:
        """Return true if the store knows of nothing beside reports that were published."""
        if self._store.root is None or self._store.one("select number from responses"):
            return False
        return next(self._outbox.published(), None) is not None

    def rebuild(self) -> None:
        """Enter the batches of which done/ and rejected/ have the reports, in their order."""
        found = sorted(self._outbox.published(), key=lambda each: each.ended)
        with self._store.transaction():
            if self.is_lost():
                for each in found:
                    self.restore(each.report, each.page, each.body, each.ended)
                self.remember(UNREAD, LOST)

    def restore(
        self, report: Report, page: bytes, body: bytes | None, ended: float | None = None
    ) -> None:
        """Enter a batch that has its verdict, and that the store does not know."""
        source, token = report.source, f"restored-{report.id}"
        with self._writing():
            row = self._store.one(
                "insert into responses"
                " (token, name, size, sha256, problem, state, id, verdict, ended, ending, other,"
                " code) values (:token, :name, :size, :sha256, :problem, 'ended', :id, :verdict,"
                " :ended, :event, :other, :code) returning number",
                token=token,
                name=os.fsencode(source.name or ""),
                size=source.bytes or 0,
                sha256=None if source.sha256 in ("", EMPTY) else source.sha256,
                problem="{}" if body is None else None,
                event=self._tell(report),
                ended=ended or time.time(),
                **self._verdict(report),
            )
            assert row
            papers = {} if body is None else {"body": body}
            self._put(row[0], report=spool.encode(report), page=page, **papers)
            self._count_report(None, report)
            if ended is None:
                self._to_show(BatchFiles(row[0], token, source.name or "", report, page, body))

    def bury(self, landed: Iterable[tuple[str, str | None, float]]) -> None:
        """Enter batches of which commits are left, so that no other gets their ids.

        Each is an id, the sha256 (hex) of its response, and the time at which it landed.
        """
        rows = [
            {"token": f"buried-{id}", "sha256": sha256, "id": id, "ended": at}
            for id, sha256, at in landed
            if valid(id) and not self.knows(id)
        ]
        self._store.each(
            "insert into responses (token, name, size, sha256, state, id, verdict, ended)"
            " values (:token, '', 0, :sha256, 'gone', :id, 'applied', :ended)",
            rows,
        )

    # Later states, and the end.

    @disk_faults
    def rewrite(self, report: Report, markdown: str) -> None:
        with self._writing():
            row = self._store.one(
                "select number, token, name, problem from responses"
                " where id = :id and state in ('ended', 'held', 'ending')",
                id=report.id,
            )
            before = self.load(report.id)
            if row is None or before is None:
                raise DiskFault(f"the report of {report.id} is not there any more")
            number, token, name, problem = row
            page = markdown.encode("utf-8", "replace")
            self._put(number, report=spool.encode(report), page=page)
            held = self.ended(report.id) is None
            if events.differs(before, report):
                self._tell(report)
            if not held:
                self._count_report(before, report)
                self._store.run(
                    "update responses set verdict = :verdict, ended = :now, other = :other,"
                    " code = :code, shown = 0, session = :me where id = :id",
                    me=self._me(),
                    **self._verdict(report),
                )
            body = self._papers(number).get("body", b"" if problem is None else None)
            self._to_show(
                BatchFiles(number, token, os.fsdecode(name), report, page, body, held, again=True)
            )

    @disk_faults
    def forget(self, *ids: str) -> None:
        going = []
        with self._writing():
            for id in filter(_is_sayable, ids):
                row = self._store.one(
                    "select number, name, ended from responses where id = :id and state = 'ended'",
                    id=id,
                )
                if row:
                    number, name, ended = row
                    going.append((number, id, name))
                    events.trim(self._store, int(ended * 10**9))
                    self._store.run("delete from papers where number = :number", number=number)
                    self._store.run(
                        "update responses set state = 'gone', shown = 0 where number = :number",
                        number=number,
                    )
        self.sync()
        self._remove(going)

    def _remove(self, batches: Iterable[tuple[int, str, bytes]]) -> None:
        """Remove the files of batches that were forgotten."""
        for number, id, name in batches:
            self._outbox.remove(id, os.fsdecode(name))
            self._written.append(number)

    @disk_faults
    def sync(self, *places: Path) -> None:
        written, self._written = self._written, []
        try:
            if places or self._store.root is None:
                files.barrier(*places, self.root)
            else:
                with files.opened(self.root, os.O_RDONLY) as fd:
                    files.syncfs(fd)
        except BaseException:
            self._written = written + self._written
            raise
        self._durable += written
        self._store.checkpoint(idle=False)


def _is_sayable(id: str) -> bool:
    """Return true if there can be such an id at all."""
    with suppress(UnicodeEncodeError):
        return valid(id) and bool(id.encode())
    return False


def _sayable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()
