"""The queue as a directory of files: any program that can write a file can feed it.

Where a response is says what has become of it, and each step is one rename:

    inbox/NAME -> active/TOKEN/NAME -> done/ID.md or rejected/ID.md, then ID.report.json beside it

Beside `active/TOKEN/` stand `TOKEN.body` (a private copy: what a writer does later to a file that
it still has open changes nothing), `TOKEN.json` (the intended report), `TOKEN.held` (`TOKEN.ends`
once a process means to end the wait), for a request `TOKEN.asked` (what a model answered), and
`TOKEN.choice` (how a person wants it taken).  The last step of a verdict renames `TOKEN.json` to
its public name: that publishes the report and ends the claim in one, so a claim has a verdict or
can be recovered, never both and never neither.

Who wants to survive power cuts, too, keeps this order for any number of claims at once: `claim`,
`intend` each verdict (refusals included, with the final report and page), `sync`, move the refs,
`sync`, `publish`, `sync`.  Then publishing only renames what is durable.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from patchq.git import files
from patchq.model.asked import Asked
from patchq.model.errors import DiskFault, UsageError
from patchq.model.report import Report
from patchq.queue import Claim, finished, spool
from patchq.queue.claims import Claims, Live
from patchq.queue.ids import Ids, extension, valid
from patchq.queue.inbox import Inbox, snapshot
from patchq.queue.lock import Lock, Owner, owner
from patchq.queue.spool import Folder, disk_faults

REPORT = ".report.json"
PAGE = ".report.md"
PUBLIC = ("inbox", "active", "done", "rejected")
PRIVATE = ("ids", "sources")


@disk_faults
def create(root: Path) -> None:
    """Make the queue's directories; safe to repeat."""
    for name in (*PUBLIC, *PRIVATE):
        (root / name).mkdir(parents=True, exist_ok=True)


@disk_faults
def lock_owner(root: Path) -> Owner | None:
    """Who empties the inbox of this queue now, or None."""
    return owner(root / "lock")


class DirectoryQueue:
    """The queue under `root`, which `create` made.

    `settle_seconds`: how long an entry must stay unchanged where its writers cannot be seen.
    `response_bytes`: larger responses are not read.  `taken` tells whether the repository knows an
    id already, whatever the queue remembers.
    """

    def __init__(
        self,
        root: Path,
        *,
        settle_seconds: float = 2.0,
        response_bytes: int = 2 * 1024 * 1024,
        taken: Callable[[str], bool] = lambda id: False,
    ) -> None:
        self.root = root
        self._limit = response_bytes
        self._base = Folder(root, lasting=False)
        self._waiting = Folder(root / "inbox", lasting=False)
        self._active, self._done, self._rejected = (Folder(root / name) for name in PUBLIC[1:])
        self._sources = Folder(root / "sources")
        self._ids = Ids(Folder(root / "ids"), taken)
        self._inbox = Inbox(self._waiting, settle_seconds)
        self._claims = Claims(self._active, self._done, self._rejected, response_bytes)
        self._lock = Lock(root / "lock")

    @disk_faults
    def acquire(self) -> None:
        """See `Queue.acquire`; raises `UsageError` for a queue that cannot work where it is."""
        missing = [name for name in PUBLIC if not (self.root / name).is_dir()]
        if missing:
            raise UsageError(
                f"{str(self.root)!r} is not a queue: {', '.join(missing)} missing",
                "make it with `patchq init`",
            )
        if len({os.lstat(self.root / name).st_dev for name in PUBLIC}) > 1:
            raise spool.across_file_systems()
        self._lock.acquire()

    def release(self) -> None:
        self._lock.release()
        self._claims.release(adopted=False)

    def close(self) -> None:
        """Let go of everything, as the end of the process would."""
        self.release()
        self._claims.release(adopted=True)
        for folder in (self._base, self._waiting, self._active, self._done, self._rejected):
            folder.close()
        self._sources.close()
        self._ids.folder.close()

    @disk_faults
    def recover(self) -> list[Claim]:
        return self._claims.recover()

    @disk_faults
    def claim(self, limit: int) -> list[Claim]:
        if self._lock.held and not self._lock.intact():
            raise DiskFault(
                "the queue's lock file was removed, so another instance may be at work",
                "make sure that only one runs, then start again",
            )
        claims: list[Claim] = []
        for name in self._inbox.complete() if limit > 0 else ():
            claim = self._claims.take(self._waiting, name)
            if claim is not None:
                claims.append(claim)
            if len(claims) >= limit:
                break
        self._claims.own(claims)
        return claims

    @disk_faults
    def depth(self) -> int:
        return self._inbox.depth()

    def unsettled(self) -> float | None:
        return self._inbox.unsettled()

    @disk_faults
    def reserve(self, claim: Claim, wanted: str) -> str:
        live = self._claims.live(claim)
        if live.id is None:
            live.id = self._ids.reserve(claim.token, wanted, again=live.inherited)
        return live.id

    @disk_faults
    def next_id(self, wanted: str) -> str:
        """The id that a response which asks for `wanted` would get now."""
        return self._ids.next(wanted)

    @disk_faults
    def answer(self, claim: Claim, data: bytes, asked: Asked) -> Claim:
        return self._claims.answer(claim, data, asked)

    @disk_faults
    def intend(self, claim: Claim, report: Report, markdown: str | None = None) -> None:
        self._claims.ending(claim, report["id"])
        self._intend(claim, report, markdown, flush=False)

    def _intend(self, claim: Claim, report: Report, markdown: str | None, *, flush: bool) -> None:
        live, active = self._claims.live(claim), self._active.fd
        self._remember(claim, live, report["id"])
        told = spool.encode(report)
        if told != live.report:
            self._claims.put(claim.token, f"{claim.token}.json", told, flush=flush)
            live.report = told
        if markdown is not None and (page := _page(markdown)) != live.page:
            files.write(f"{claim.token}.md", page, folder=active, flush=flush)
            live.page = page

    @disk_faults
    def publish(self, claim: Claim, report: Report, markdown: str) -> None:
        live = self._claims.ending(claim, report["id"])
        active, token = self._active.fd, claim.token
        place = (self._rejected if report["state"] == "rejected" else self._done).fd
        id, body = report["id"], f"{report['id']}{extension(claim.source.name)}"
        self._intend(claim, report, markdown, flush=True)  # what was not intended is not durable
        spool.move(active, f"{token}.md", place, id + PAGE)
        if not spool.move(active, f"{token}.body", place, body) and claim.problem:
            spool.move(active, f"{token}/{claim.source.name}", place, body)
        self._claims.clear(token, claim.source.name)
        spool.append(self._base.fd, finished.VERDICTS, id)
        spool.move(active, f"{token}.json", place, id + REPORT)
        if live.inherited:
            spool.remove(active, id + PAGE)
            spool.remove(active, id + REPORT)
        self._claims.end(token)

    @disk_faults
    def hold(self, claim: Claim, report: Report, markdown: str) -> None:
        live, active, id = self._claims.live(claim), self._active.fd, report["id"]
        for name in (f"{claim.token}.json", f"{claim.token}.md"):
            spool.remove(active, name)
        live.report = live.page = None
        self._claims.hold(claim.token, live, id)
        self._remember(claim, live, id)
        self._claims.put(claim.token, id + PAGE, _page(markdown))
        self._claims.put(claim.token, id + REPORT, spool.encode(report))

    @disk_faults
    def held(self) -> list[Claim]:
        return self._claims.held()

    @disk_faults
    def adopt(self, data: bytes, name: str, choice: Mapping[str, Any] | None = None) -> Claim:
        return self._claims.adopt(data, name, choice)

    @disk_faults
    def sync(self) -> None:
        files.syncfs(self._base.fd)

    @disk_faults
    def load(self, id: str) -> Report | None:
        place = self._place(id)
        return spool.report(spool.read(place, id + REPORT)) if place is not None else None

    @disk_faults
    def rewrite(self, report: Report, markdown: str) -> None:
        place = self._place(report["id"])
        if place is None:
            raise DiskFault(f"the report of {report['id']} is not there any more")
        spool.put(place, report["id"] + PAGE, _page(markdown), flush=True)
        spool.put(place, report["id"] + REPORT, spool.encode(report), flush=True)

    @disk_faults
    def body(self, id: str) -> bytes | None:
        """See `Queue.body`; None also for what was refused unread."""
        report = self.load(id)
        if report is None:
            return None
        name = f"{id}{extension(report['source']['name'])}"
        token = self._ids.token(id)
        held = [(self._active, f"{token}.body")] if token else []
        for folder, file in ((self._done, name), (self._rejected, name), *held):
            try:
                taken = snapshot(folder.fd, file, self._limit)
            except FileNotFoundError:
                continue
            return None if taken.problem else taken.data
        return None

    @disk_faults
    def by_source(self, sha256: str) -> Sequence[str]:
        lines = spool.lines(self._sources.fd, shard(sha256), sha256.encode())
        return [line.removeprefix(f"{sha256} ") for line in lines]

    @disk_faults
    def ids(self) -> Iterator[str]:
        reported = {
            name.removesuffix(REPORT)
            for folder in (self._done, self._rejected, self._active)
            for name in spool.listing(folder.fd)
            if name.endswith(REPORT)
        }
        known = [id for id in spool.lines(self._base.fd, finished.VERDICTS) if id in reported]
        return iter(dict.fromkeys((*known, *sorted(reported))))

    @disk_faults
    def ended(self, id: str) -> float | None:
        return finished.ended((self._done, self._rejected), id + REPORT, self._ids.token(id))

    @disk_faults
    def forget(self, id: str) -> None:
        for folder in (self._done, self._rejected) if valid(id) else ():
            report = spool.report(spool.read(folder.fd, id + REPORT))
            if report is not None:
                body = f"{id}{extension(report['source']['name'])}"
                finished.remove(folder, body, id + PAGE, id + REPORT)

    @disk_faults
    def submit(self, data: bytes, name: str) -> str:
        return self._inbox.submit(data, name)

    def _place(self, id: str) -> int | None:
        """The folder that holds the report."""
        for folder in (self._done, self._rejected, self._active) if valid(id) else ():
            if os.access(id + REPORT, os.F_OK, dir_fd=folder.fd, follow_symlinks=False):
                return folder.fd
        return None

    def _remember(self, claim: Claim, live: Live, id: str) -> None:
        """Note what the batch was made from, before its report can be seen without that."""
        sha256 = claim.source.sha256
        if claim.data and live.noted != sha256:
            if not (live.inherited and id in self.by_source(sha256)):
                spool.append(self._sources.fd, shard(sha256), f"{sha256} {id}")
            live.noted = sha256


def shard(sha256: str) -> str:
    """One of 256 files, so that noting a response makes no new one and finding it reads little."""
    return sha256[:2]


def _page(markdown: str) -> bytes:
    return markdown.encode("utf-8", "replace")
