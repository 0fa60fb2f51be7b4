"""What a queue of files knows of batches: their reports and responses, in the order of their
verdicts, and what is left of those that were forgotten."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import chain, takewhile
from pathlib import Path

from patchq.gate.git import files
from patchq.gate.queue import spool
from patchq.gate.queue.inbox import snapshot
from patchq.gate.queue.layout import PAGE, PUBLIC, REPORT
from patchq.gate.queue.register import KNOWN, LINKS, Past, Register
from patchq.gate.queue.spool import Folder, disk_faults, extension, valid
from patchq.gate.report.schema import Report


class ArchiveFiles:
    """The half of `QueueEngine` that no lock and no claim is needed for; see there."""

    def __init__(self, root: Path, *, response_bytes: int, is_known: Callable[[str], bool]) -> None:
        self.root = root
        self._limit = response_bytes
        self._base = Folder(root, lasting=False)
        self._active, self._done, self._rejected = (Folder(root / name) for name in PUBLIC[1:])
        self._public = (self._done, self._rejected)
        self._sources = Folder(root / "sources")
        links = Folder(root / LINKS, lasting=False)
        self._register = Register(Folder(root / KNOWN), links, is_known)

    def close(self) -> None:
        for folder in (self._base, self._active, *self._public, self._sources):
            folder.close()
        self._register.close()

    @disk_faults
    def load(self, id: str) -> Report | None:
        data = (folder.read(id + REPORT) for folder in self._places(id))
        return spool.report(next((found for found in data if found is not None), None))

    @disk_faults
    def body(self, id: str) -> bytes | None:
        """See `QueueEngine.body`; None also for what was refused unread."""
        report = self.load(id)
        if report is None:
            return None
        name = f"{id}{extension(report.source.name)}"
        token = self._register.token(id)
        files = {self._active: f"{token}.body"} if token else {}
        for folder in self._places(id):
            file = files.get(folder, name)
            with suppress(FileNotFoundError):
                body = snapshot(folder.fd, file, self._limit)
                return None if body.problem else body.data
        return None

    @disk_faults
    def by_source(self, sha256: str) -> Sequence[str]:
        lines = self._sources.lines(shard(sha256), sha256.encode())
        return [line.removeprefix(f"{sha256} ") for line in lines]

    def _enter_source(self, sha256: str, id: str) -> None:
        self._sources.append(shard(sha256), f"{sha256} {id}")

    @disk_faults
    def ids(self) -> Iterator[str]:
        reported = self._reported(self._active, *self._public)  # as they move, so that all are met
        known = [id for id in self._base.lines(spool.VERDICTS) if id in reported]
        return iter(dict.fromkeys((*known, *sorted(reported))))

    @disk_faults
    def older(self, limit: float) -> Iterator[str]:
        """See `QueueEngine.older`: behind a batch that was claimed since, all have their verdict
        since; a claim from the future tells that a clock was set."""
        reported, now = self._reported(*self._public), time.time()

        def old(id: str) -> bool:
            return not limit <= (spool.claimed(self._register.token(id)) or 0.0) <= now

        known = [id for id in self._base.lines(spool.VERDICTS) if id in reported]
        return chain(takewhile(old, known), sorted(reported.difference(known)))

    def newest(self) -> Iterator[str]:
        seen = set()
        for ids in (
            sorted(self._reported(self._active), reverse=True),
            self._base.backwards(spool.VERDICTS),
            self._unlisted(),
        ):
            for id in ids:
                if id not in seen:
                    seen.add(id)
                    yield id

    def _unlisted(self) -> Iterator[str]:
        """Where a power cut, or a person, took lines of the register: looked for when need be."""
        yield from sorted(self._reported(*self._public), reverse=True)

    @disk_faults
    def _reported(self, *folders: Folder) -> set[str]:
        names = (name for folder in folders for name in folder.names())
        return {name.removesuffix(REPORT) for name in names if name.endswith(REPORT)}

    @disk_faults
    def ended(self, id: str) -> float | None:
        """See `QueueEngine.ended`.

        A copy of the queue may have lost the files' times; the claim's token tells the time before
        which there was no verdict, so a batch may seem younger than it is, and never older.
        """
        for folder in self._public:
            if status := folder.status(id + REPORT):
                return max(status.st_mtime, spool.claimed(self._register.token(id)) or 0.0)
        return None

    @disk_faults
    def forget(self, *ids: str) -> None:
        finished = [(id, folder) for id in filter(valid, ids) for folder in self._public]
        pasts, names = dict[str, Past](), dict[str, tuple[Folder, str]]()
        for id, folder in finished:
            report = spool.report(folder.read(id + REPORT))
            if report is not None:
                pasts[id] = Past.of(report, self.ended(id) or 0.0)
                names[id] = folder, f"{id}{extension(report.source.name)}"
        self._register.bury(pasts, self.sync)
        for id, (folder, body) in names.items():
            spool.remove(folder, body, id + PAGE, id + REPORT)

    @disk_faults
    def past(self, id: str) -> Past | None:
        return self._register.past(id)

    def token(self, id: str) -> str | None:
        """The claim that the id was given to, as long as its batch has files."""
        return self._register.token(id)

    @disk_faults
    def sync(self, *places: Path) -> None:
        if places:
            files.barrier(*places, self.root)
        else:
            files.syncfs(self._base.fd)

    def _folder(self, id: str) -> Folder | None:
        """Where the report is."""
        places = self._places(id)
        return next((folder for folder in places if folder.holds(id + REPORT)), None)

    def _places(self, id: str) -> tuple[Folder, ...]:
        """Where to look for what a batch has left, in this order: what a held one has in `active/`
        moves on with its verdict, which may come between two looks."""
        return (*self._public, self._active, *self._public) if valid(id) else ()


def shard(sha256: str) -> str:
    """One of 256 files, so that noting a response makes no new one and finding it reads little."""
    return sha256[:2]
