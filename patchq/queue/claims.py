"""`active/`: the claims that somebody works on, and those that a dead owner left.

The daemon's claims are its own as long as it holds the queue lock.  Claims that other commands
adopt beside it are told by a lock on `active/TOKEN/`, which the kernel drops with its process.
"""

from __future__ import annotations

import contextlib
import errno
import math
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

from patchq.git import files
from patchq.model.asked import Asked, from_json, to_json
from patchq.model.errors import Busy
from patchq.model.names import REQUEST
from patchq.model.report import Report
from patchq.model.values import Source
from patchq.queue import Claim, finished, spool
from patchq.queue.ids import extension
from patchq.queue.inbox import Snapshot, snapshot
from patchq.queue.spool import Folder

_NOT_OURS = {errno.ENOENT, errno.EACCES, errno.EPERM, errno.EBUSY}


@dataclass(slots=True)
class Live:
    """What this process knows of a claim of its own."""

    id: str | None = None
    report: bytes | None = None
    page: bytes | None = None
    held: bool = False
    ending: bool = False
    """Whether this process means to end the wait."""
    more: bool = False
    """Whether a model's answer, or a person's choice, stands beside it."""
    inherited: bool = False
    noted: str | None = None
    """The digest under which the batch was noted."""
    lock: int | None = None


class Claims:
    """The claims in `active`; a response has at most `limit` bytes."""

    def __init__(self, active: Folder, done: Folder, rejected: Folder, limit: int) -> None:
        self._active = active
        self._public = (done, rejected)
        self._limit = limit
        self._tokens = spool.Tokens()
        self._live: dict[str, Live] = {}
        self._spare: list[str] = []

    def live(self, claim: Claim) -> Live:
        """The record of a claim, begun here for one that comes from elsewhere."""
        more = claim.asked is not None or claim.choice is not None
        known = Live(id=claim.id, held=claim.held, more=more, inherited=True)
        return self._live.setdefault(claim.token, known)

    def ending(self, claim: Claim, id: str) -> Live:
        """The record of a claim that is to get its verdict: of a held one, by one process only."""
        live, active, token = self.live(claim), self._active.fd, claim.token
        if live.held and not live.ending:
            if not spool.move(active, f"{token}.held", active, f"{token}.ends"):
                raise Busy(f"another process gives {id} its verdict", f"see `patchq show {id}`")
            live.ending = live.inherited = True
        return live

    def hold(self, token: str, live: Live, id: str) -> None:
        """Have the claim wait, for the first time or again."""
        if live.ending:
            spool.move(self._active.fd, f"{token}.ends", self._active.fd, f"{token}.held")
            live.ending = False
        elif not live.held:
            self.put(token, f"{token}.held", spool.encode({"id": id, "since": time.time()}))
            live.held = True

    def own(self, claims: list[Claim]) -> None:
        """Remember claims that were just taken."""
        self._live.update((claim.token, Live()) for claim in claims)

    def take(self, inbox: Folder, name: str) -> Claim | None:
        """Move an entry out of the inbox and copy it; None when it cannot be moved (any more)."""
        active, token = self._active.fd, self._tokens.next()
        self._make_directory(token)
        try:
            os.rename(name, f"{token}/{name}", src_dir_fd=inbox.fd, dst_dir_fd=active)
        except OSError as error:
            self._spare.append(token)
            if error.errno not in _NOT_OURS:
                raise
            return None
        taken = self._copy(token, name)
        return _claim(token, name, taken, request=name.endswith(REQUEST) and not taken.problem)

    def adopt(self, data: bytes, name: str, choice: Mapping[str, Any] | None) -> Claim:
        """A claim from bytes, locked as long as this process lives."""
        active = self._active.fd
        while True:
            token = self._tokens.next()
            os.mkdir(token, 0o700, dir_fd=active)
            lock = os.open(token, spool.DIRECTORY, dir_fd=active)
            files.flock(lock, math.inf)
            # Somebody who recovers may have taken the directory for a leftover before the lock.
            if os.fstat(lock).st_nlink:
                break
            os.close(lock)
        self._live[token] = Live(lock=lock, more=choice is not None)
        if choice is not None:
            self.put(token, f"{token}.choice", spool.encode(choice), flush=True)
        self.put(token, f"{token}.body", data, flush=True)
        files.write(f"{token}/{spool.file_name(name)}", b"", folder=active)
        return _claim(token, name, Snapshot(data, len(data)), choice=choice)

    def recover(self) -> list[Claim]:
        """Take over the claims whose owner is dead, oldest first."""
        finished.remove_outlived(self._active, self._public)
        claims = []
        for token in self._foreign():
            with self._locked(token) as dead:
                if dead and (claim := self._revive(token)):
                    claims.append(claim)
                    self.live(claim)
        return claims

    def held(self) -> list[Claim]:
        """The held claims but those of a process that still works on them."""
        claims = []
        names = spool.listing(self._active.fd)
        for token in sorted(_tokens(names, ".held") | _tokens(names, ".ends")):
            if token in self._live:
                claims.append(self._read(token))
                continue
            with self._locked(token) as dead:
                if dead:
                    claims.append(self._read(token))
        return [claim for claim in claims if claim is not None and claim.held]

    def answer(self, claim: Claim, data: bytes, asked: Asked) -> Claim:
        """See `Queue.answer`."""
        token, live = claim.token, self.live(claim)
        report = {"asked": to_json(asked), "data": data.decode("utf-8", "surrogateescape")}
        self.put(token, f"{token}.asked", spool.encode(report), flush=True)
        self.put(token, f"{token}.body", data)
        live.more = True
        source = Source(claim.source.name, sha256(data).hexdigest(), len(data))
        return replace(claim, source=source, data=data, request=False, asked=asked)

    def put(self, token: str, name: str, data: bytes, *, flush: bool = False) -> None:
        """Write a file of a claim, so that what a crash leaves of it is known as the claim's."""
        spool.put(self._active.fd, name, data, via=f"{token}.tmp", flush=flush)

    def clear(self, token: str, name: str) -> None:
        """Remove the response as it came, now that its copy is in its place."""
        active = self._active.fd
        if not spool.remove(active, f"{token}/{spool.file_name(name)}"):
            for other in spool.listing(active, token):
                spool.remove(active, f"{token}/{other}")

    def end(self, token: str) -> None:
        """Forget a claim that has its verdict."""
        live = self._live.pop(token, None)
        for suffix in (".ends", ".asked", ".choice"):
            if live is not None and (live.more or live.ending):
                spool.remove(self._active.fd, token + suffix)
        if live is None or live.lock is None:
            self._spare.append(token)
        else:
            self._remove_directory(token)
            os.close(live.lock)

    def release(self, *, adopted: bool) -> None:
        """Leave the claims to whoever recovers them; adopted ones only if asked to."""
        while self._spare:
            self._remove_directory(self._spare.pop())
        for token, live in list(self._live.items()):
            if live.lock is None or adopted:
                if live.lock is not None:
                    os.close(live.lock)
                del self._live[token]

    def _make_directory(self, token: str) -> None:
        """An empty directory for the claim; one that another claim left costs a tenth."""
        active = self._active.fd
        if not (self._spare and spool.move(active, self._spare.pop(), active, token)):
            os.mkdir(token, 0o700, dir_fd=active)

    def _remove_directory(self, token: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.rmdir(token, dir_fd=self._active.fd)

    def _foreign(self) -> list[str]:
        return sorted(_tokens(spool.listing(self._active.fd)) - self._live.keys())

    @contextlib.contextmanager
    def _locked(self, token: str) -> Iterator[bool]:
        """Hold the claim's own lock; False when its owner lives."""
        with contextlib.ExitStack() as stack:
            free = True
            with contextlib.suppress(FileNotFoundError):
                folder = files.opened(token, spool.DIRECTORY, self._active.fd)
                free = files.flock(stack.enter_context(folder))
            yield free

    def _revive(self, token: str) -> Claim | None:
        """A dead owner's claim as if its publishing had never begun; None for mere leftovers."""
        active = self._active.fd
        spool.move(active, f"{token}.ends", active, f"{token}.held")
        report = spool.report(spool.read(active, f"{token}.json"))
        if report is not None:
            body = f"{report['id']}{extension(report['source']['name'])}"
            for folder in self._public:
                spool.move(folder.fd, body, active, f"{token}.body")
                spool.remove(folder.fd, f"{report['id']}.report.md")
            if not spool.listing(active, token):  # the report alone has the name, and may change
                entry = f"{token}/{spool.file_name(report['source']['name'] or '')}"
                with contextlib.suppress(FileNotFoundError):
                    files.write(entry, b"", folder=active)
        for name in (".md", ".tmp"):
            spool.remove(active, token + name)
        claim = self._read(token)
        if claim is None:
            for name in (".json", ".held", ".asked", ".choice"):
                spool.remove(active, token + name)
            self._remove_directory(token)
        return claim

    def _read(self, token: str) -> Claim | None:
        """The claim as the files tell it; None when no response is left in them."""
        active = self._active.fd
        report = spool.report(spool.read(active, f"{token}.json"))
        held = spool.read(active, f"{token}.held") or spool.read(active, f"{token}.ends")
        hold = spool.decode(held)
        answer = spool.decode(spool.read(active, f"{token}.asked"))
        names = spool.listing(active, token)
        name = names[0] if names else (report and report["source"]["name"]) or "response"
        try:
            taken = snapshot(active, f"{token}.body", self._limit)
            if names and not hold and self._doubtful(token, name, taken, report):
                taken = self._copy(token, name)
        except FileNotFoundError:
            if names:
                taken = self._copy(token, name)
            elif report:
                taken = Snapshot(b"", report["source"]["bytes"] or 0)
            else:
                return None
        if answer is not None:
            data = answer["data"].encode("utf-8", "surrogateescape")
            if data != taken.data:  # a crash came before the copy of it
                self.put(token, f"{token}.body", data)
                taken = Snapshot(data, len(data))
        return _claim(
            token,
            name,
            taken,
            id=report["id"] if report else (hold or {}).get("id"),
            intended=report,
            held=hold is not None,
            held_since=hold["since"] if hold else None,
            request=name.endswith(REQUEST) and answer is None and not taken.problem,
            asked=from_json(answer["asked"]) if answer is not None else None,
            choice=spool.decode(spool.read(active, f"{token}.choice")),
        )

    def _doubtful(self, token: str, name: str, taken: Snapshot, report: Report | None) -> bool:
        """Whether a power cut may have taken the copy that is made of a response; then there is no
        intended report either, or it speaks of other bytes.  Adopted ones have nothing but it."""
        if report and report["source"]["sha256"] == sha256(taken.data).hexdigest():
            return False
        return os.lstat(f"{token}/{name}", dir_fd=self._active.fd).st_size > 0

    def _copy(self, token: str, name: str) -> Snapshot:
        taken = snapshot(self._active.fd, f"{token}/{name}", self._limit)
        if taken.problem is None:
            self.put(token, f"{token}.body", taken.data)
        return taken


def _claim(token: str, name: str, taken: Snapshot, **more: Any) -> Claim:
    source = Source(name, sha256(taken.data).hexdigest(), taken.size)
    return Claim(token, source, taken.data, taken.problem, **more)


def _tokens(names: list[str], suffix: str = "") -> set[str]:
    return {token for name in names if (token := spool.token_of(name, suffix))}
