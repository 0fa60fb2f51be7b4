"""The queue as a directory of files: any program that can write a file can feed it.

Where a response is says what has become of it, and each step is one rename:

    inbox/NAME -> active/TOKEN.NAME.entry -> done/ID.md or rejected/ID.md, then ID.report.json

It is the very file that came, where that is proved to be out of every writer's reach.  Else, and
for what has to wait, `TOKEN.body` is a private copy, so that nothing changes it, and becomes
`done/ID.md`.  What waits, what a command adopted and what has a long name stands in a directory,
`TOKEN/NAME`.  Beside it stand `TOKEN.json` (the intended report), `TOKEN.held` (`TOKEN.ends` once a
process means to end the wait), for a request `TOKEN.asked` (what a model answered), and
`TOKEN.choice` (how a person wants it taken).  The last step of a verdict renames `TOKEN.json` to
its public name: that publishes the report and ends the claim in one, so a claim has a verdict or
can be recovered, never both and never neither.

Who wants to survive power cuts, too, keeps this order for any number of claims at once: `claim`,
`intend` each verdict (refusals included, with the final report and page), `sync`, move the refs,
`enlist` all, `sync`, `publish`, `sync`.  Then publishing only renames what is durable.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from patchq.core.model.values import Generation
from patchq.gate.errors import Busy, DiskFault, Fault, UsageError
from patchq.gate.git.sharing import umask
from patchq.gate.queue import Claim, Parcel, QueueEngine, hand, journal, spool, untold
from patchq.gate.queue.archive import ArchiveFiles
from patchq.gate.queue.claims import ClaimFiles, claim_of
from patchq.gate.queue.hand import Pending
from patchq.gate.queue.inbox import Inbox, Snapshot
from patchq.gate.queue.journal import Journal
from patchq.gate.queue.layout import PAGE, PUBLIC, REPORT
from patchq.gate.queue.lock import Lock
from patchq.gate.queue.spool import Folder, Steady, disk_faults, extension, valid
from patchq.gate.report.schema import Report

_FEW = 16
_GROUP, _MOST_UNTOLD = 300, 1024
"""So many verdicts a process may not have told of that ended, and one that was killed."""


@dataclass(slots=True)
class _Live:
    """What this process knows of a claim of its own."""

    id: str | None = None
    intended: Report | None = None
    """The report that was written last, which nobody changes: it need not be encoded again."""
    report: bytes | None = None
    page: bytes | None = None
    held: bool = False
    ending: bool = False
    """Whether this process means to end the wait."""
    more: bool = False
    """Whether a model's answer, or a person's choice, stands beside it."""
    inherited: bool = False
    listed: bool = False
    """Whether the register of verdicts has the batch."""
    noted: str | None = None
    """The digest under which the batch was noted."""
    lock: int | None = None


class DirectoryQueue(ArchiveFiles):
    """The queue under `root`, which `layout.create` made.

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
    ) -> None:
        super().__init__(root, response_bytes=response_bytes, is_known=is_known)
        self._incoming = Folder(root / "inbox", lasting=False)
        self._inbox = Inbox(self._incoming, settle_seconds)
        self._claims = ClaimFiles(self._active, self._public, response_bytes)
        self._live: dict[str, _Live] = {}
        self._lock = Lock(root / "lock")
        self._journal = Journal(self._base)
        self._hurry = False
        """Whether so many responses were claimed at once that each is not told of by itself."""
        self._made = 0o666 & ~umask()
        """The permissions of what is made."""

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
        self._register.fold(self.sync)
        if not self._lock.listed:
            self._list_again()
            self.sync()
            self._lock.enlists()
        with suppress(DiskFault):  # what is damaged is said where it is needed
            most = _MOST_UNTOLD if self._lock.orphaned else _GROUP
            held = self._reported(self._active)
            self._heal(untold.Listed(self._base, most, held, self._going_on))

    def _list_again(self) -> None:
        """List the verdicts that a power cut took out of the register of an older patchq, which
        added a line when it published."""
        reported = self._reported(*self._public)
        for id in sorted(reported.difference(self._base.lines(spool.VERDICTS))):
            self._base.append(spool.VERDICTS, id)

    @disk_faults
    def _heal(self, listed: untold.Listed | None = None) -> None:
        find = partial(untold.missing, load=self.load, ended=self.ended, listed=listed)
        self._journal.complete(find)

    def _going_on(self, ids: Iterable[str]) -> list[str]:
        claims = self._claims.tokens()
        return [id for id in ids if self._register.token(id) in claims]

    @disk_faults
    def heal(self) -> None:
        """Have the journal tell of what a command that was killed could not tell."""
        self._heal()

    def release(self, fault: Fault | None = None) -> None:
        self._lock.release(fault)
        self._live = {token: live for token, live in self._live.items() if live.lock is not None}

    def close(self) -> None:
        """Let go of everything, as the end of the process would."""
        self.release()
        for live in self._live.values():
            if live.lock is not None:
                os.close(live.lock)
        self._live.clear()
        self._incoming.close()
        super().close()

    @disk_faults
    def recover(self) -> list[Claim]:
        for name in self._active.names():
            # The verdict of a held batch came right before a crash.
            if name.endswith(REPORT) and any(folder.holds(name) for folder in self._public):
                self._active.remove(name.removesuffix("json") + "md")
                self._active.remove(name)
        claims, entries = [], self._claims.entries()
        for token in sorted(self._claims.tokens() - self._live.keys()):
            with self._claims.locked(token) as dead:
                if dead and (claim := self._claims.revive(token, entries.get(token))):
                    claims.append(claim)
                    self._known(claim)
        return claims

    @disk_faults
    def claim(self, limit: int) -> list[Claim]:
        if self._lock.lost():
            raise DiskFault(
                "the queue's lock file was removed, so another instance may be at work",
                "make sure that only one runs, then start again",
            )
        claims: list[Claim] = []
        with Steady(self._incoming, self._active):
            for name in self._inbox.complete() if limit > 0 else ():
                claim = self._claims.take(self._incoming, name)
                if claim is not None:
                    claims.append(claim)
                if len(claims) >= limit:
                    break
        self._live.update((claim.token, _Live()) for claim in claims)
        self._hurry = len(claims) > _FEW
        if self._hurry:
            self._journal.begin()
        return claims

    @disk_faults
    def depth(self) -> int:
        return self._inbox.depth()

    def unsettled(self) -> float | None:
        return self._inbox.unsettled()

    @disk_faults
    def reserve(self, claim: Claim, wanted: str) -> str:
        live = self._known(claim)
        if live.id is None:
            live.id = self._register.reserve(claim.token, wanted, again=live.inherited)
            if not live.inherited:
                tell = self._journal.hold_back if self._hurry else self._journal.note
                tell(journal.claimed(live.id))
        return live.id

    @disk_faults
    def next_id(self, wanted: str) -> str:
        """The id that a response which asks for `wanted` would get now."""
        return self._register.next(wanted)

    @disk_faults
    def answer(self, claim: Claim, data: bytes, generation: Generation) -> Claim:
        token = claim.token
        answer = {"asked": generation.to_json(), "data": data.decode("utf-8", "surrogateescape")}
        self._claims.put(token, f"{token}.asked", spool.encode(answer), private=True, flush=True)
        self._claims.put_copy(token, data)
        self._known(claim).more = True
        return claim.answered(data, generation)

    def together(self) -> AbstractContextManager[None]:
        return nullcontext()

    @disk_faults
    def intend(
        self,
        claim: Claim,
        report: Report,
        markdown: str | None = None,
        parcel: Parcel | None = None,
    ) -> None:
        with Steady(self._active, *self._public):
            self._end(claim, report.id)
            self._intend(claim, report, markdown, flush=False)

    def _intend(self, claim: Claim, report: Report, markdown: str | None, *, flush: bool) -> None:
        live, token = self._known(claim), claim.token
        self._note(claim, live, report.id)
        if report is not live.intended:
            self._write_report(live, token, spool.encode(report), flush=flush)
            live.intended = report
        if markdown is not None and (page := _page(markdown)) != live.page:
            self._active.write(f"{token}.md", page, flush=flush)
            live.page = page
        self._open_to_readers(token, report)

    def _write_report(self, live: _Live, token: str, data: bytes, *, flush: bool) -> None:
        if data == live.report:
            return
        if live.report is None and not live.inherited:
            # Nobody but who recovers it looks, and takes what is torn for nothing.
            self._active.write(f"{token}.json", data, flush=flush)
        else:
            self._claims.put(token, f"{token}.json", data, flush=flush)
        live.report = data

    def _open_to_readers(self, token: str, report: Report) -> None:
        """Before the files get their names; the response was the queue's own until now."""
        place = self._rejected if report.state == "rejected" else self._done
        secret = any(problem.code == "edit.secret" for problem in report.problems)
        body = self._claims.body(token)
        self._active.open_to_readers(body, place, self._made, secret=secret)
        if place.grant or self._made & ~place.mode & 0o077:
            for name in (f"{token}.json", f"{token}.md"):
                self._active.open_to_readers(name, place, self._made, secret=False)

    @disk_faults
    def enlist(self, verdicts: Sequence[tuple[Claim, str]]) -> None:
        self._enlist(verdicts, flush=False)

    def _enlist(self, verdicts: Sequence[tuple[Claim, str]], *, flush: bool) -> None:
        lives = [(self._known(claim), id) for claim, id in verdicts]
        there = set[str]()
        if any(live.inherited for live, _ in lives):  # its dead owner may have come so far
            there.update(islice(self._base.backwards(spool.VERDICTS), _MOST_UNTOLD))
        if lines := [id for live, id in lives if not live.listed and id not in there]:
            self._base.append(spool.VERDICTS, *lines, flush=flush)
        for live, _ in lives:
            live.listed = True

    @disk_faults
    def publish(self, claim: Claim, report: Report, markdown: str) -> None:
        with Steady(self._active, *self._public):
            self._publish(claim, report, markdown)

    def _publish(self, claim: Claim, report: Report, markdown: str) -> None:
        live, active, token = self._end(claim, report.id), self._active, claim.token
        place = self._rejected if report.state == "rejected" else self._done
        id, body = report.id, f"{report.id}{extension(claim.source.name)}"
        self._claims.keep(claim)
        self._intend(claim, report, markdown, flush=True)  # what was not intended is not durable
        active.move(f"{token}.md", place, id + PAGE)
        self._claims.archive(claim, place, body)
        if not live.listed:
            self._enlist([(claim, id)], flush=True)
        with self._journal.telling(report, marked=self._lock.held, later=self._hurry):
            active.move(f"{token}.json", place, id + REPORT)
        outlived = [id + PAGE, id + REPORT] if live.inherited else []
        if live.more or live.ending:
            outlived += [f"{token}.ends", f"{token}.asked", f"{token}.choice"]
        for name in outlived:
            active.remove(name)
        del self._live[token]
        self._claims.end(token)
        if live.lock is not None:
            os.close(live.lock)

    @disk_faults
    def tell(self) -> None:
        self._journal.note_held_back()

    @disk_faults
    def hold(self, claim: Claim, report: Report, markdown: str) -> None:
        live, active, token, id = self._known(claim), self._active, claim.token, report.id
        self._claims.settle(claim)
        for name in (f"{token}.json", f"{token}.md"):
            active.remove(name)
        live.intended = live.report = live.page = None
        if live.ending:
            active.move(f"{token}.ends", active, f"{token}.held")
            live.ending = False
        elif not live.held:
            wait = spool.encode({"id": id, "since": time.time()})
            self._claims.put(token, f"{token}.held", wait)
            live.held = True
        self._note(claim, live, id)
        with self._told(self.load(id), report, marked=self._lock.held):
            self._claims.put(token, id + PAGE, _page(markdown))
            self._claims.put(token, id + REPORT, spool.encode(report))

    @disk_faults
    def held(self) -> list[Claim]:
        claims = []
        for token in sorted(self._claims.tokens(".held", ".ends")):
            own = nullcontext(True) if token in self._live else self._claims.locked(token)
            with own as free:
                claim = self._claims.read(token) if free else None
            claims += [claim] if claim is not None and claim.held else []
        return claims

    def serves(self, claim: Claim) -> bool:
        return True

    def pass_on(self, id: str, words: Mapping[str, Any]) -> bool:
        return False

    def proposals(self, known: Collection[str] = ()) -> Mapping[str, str | None] | None:
        return None

    def mark(self, marks: Mapping[str, str]) -> None:
        pass  # the marks in the repository are all there are

    @disk_faults
    def adopt(self, data: bytes, name: str, choice: Mapping[str, Any] | None = None) -> Claim:
        token, lock = self._claims.lock()
        self._live[token] = _Live(lock=lock, more=choice is not None)
        if choice is not None:
            self._claims.put(token, f"{token}.choice", spool.encode(choice), flush=True)
        self._claims.put_copy(token, data, flush=True)
        self._claims.enter(token, name)
        return claim_of(token, name, Snapshot(data, len(data)), request=False, choice=choice)

    @disk_faults
    def leave(self, claim: Claim) -> None:
        """Leave an adopted claim to whoever holds the queue's lock, as the end of this process
        would."""
        lock = self._live.pop(claim.token).lock
        if lock is not None:
            os.close(lock)

    @disk_faults
    def take_in(self, token: str, data: bytes, name: str) -> Claim:
        """A claim for a response that another machine made, by the token that it gave.  Only while
        the lock is held; the same call again after a crash gives the same claim."""
        self._live[token] = _Live(inherited=True)
        self._claims.put_copy(token, data, flush=True)
        self._claims.take_in(token, name)
        return claim_of(token, name, Snapshot(data, len(data)), request=False)

    @disk_faults
    def rewrite(self, report: Report, markdown: str) -> None:
        id = report.id
        folder = self._folder(id)
        if folder is None:
            raise DiskFault(f"the report of {id} is not there any more")
        with self._told(spool.report(folder.read(id + REPORT)), report, marked=False):
            folder.put(id + PAGE, _page(markdown), flush=True)
            folder.put(id + REPORT, spool.encode(report), flush=True)

    def _told(
        self, before: Report | None, report: Report, *, marked: bool
    ) -> AbstractContextManager[None]:
        if not journal.differs(before, report):
            return nullcontext()
        return self._journal.telling(report, marked=marked)

    @disk_faults
    def submit(self, data: bytes, name: str, *, flush: bool = False) -> str:
        try:
            return self._inbox.submit(data, name, flush=flush)
        except OSError as error:
            told = spool.fault(error)
            cure = (told.hint or "").partition(", then")[0]
            told.hint = f"{cure}, then hand the response in again: it was not taken"
            raise told from error

    @disk_faults
    def pending(self, id: str) -> Pending | None:
        """The response without a verdict that has the id, or would get it; held ones have one."""
        for _ in range(2):  # it may go from one place to the next meanwhile
            if not valid(id) or self.load(id) is not None:
                return None
            if found := hand.find(self.root, id, self._register.token(id)):
                return found
        return None

    def _known(self, claim: Claim) -> _Live:
        """The record of a claim, begun here for one that comes from elsewhere."""
        known = self._live.get(claim.token)
        if known is None:
            more = claim.generation is not None or claim.choice is not None
            known = _Live(id=claim.id, held=claim.held, more=more, inherited=True)
            self._live[claim.token] = known
        return known

    def _end(self, claim: Claim, id: str) -> _Live:
        """The record of a claim that is to get its verdict: of a held one, by one process only."""
        live, active, token = self._known(claim), self._active, claim.token
        if live.held and not live.ending:
            if not active.move(f"{token}.held", active, f"{token}.ends"):
                raise Busy(f"another process gives {id} its verdict", f"see `patchq show {id}`")
            live.ending = live.inherited = True
        return live

    def _note(self, claim: Claim, live: _Live, id: str) -> None:
        """Note what the batch was made from, before its report can be seen without that."""
        digest = claim.source.sha256
        if claim.data and live.noted != digest:
            if not (live.inherited and id in self.by_source(digest)):
                self._enter_source(digest, id)
            live.noted = digest


def directory_queue(queue: QueueEngine) -> DirectoryQueue:
    """The queue of a command that writes, which is one of files on every machine."""
    assert isinstance(queue, DirectoryQueue)
    return queue


def _page(markdown: str) -> bytes:
    return markdown.encode("utf-8", "replace")
