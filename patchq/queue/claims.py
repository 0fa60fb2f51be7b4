"""`active/`: the files of each claim, and what they say of it after a crash.

The daemon's claims are its own as long as it holds the queue lock.  Claims that other commands
adopt beside it are told by a lock on `active/TOKEN/`, which the kernel drops with its process.
"""

from __future__ import annotations

import contextlib
import errno
import math
import os
from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Any

from patchq.git import files
from patchq.model.names import REQUEST
from patchq.model.report import Report
from patchq.model.values import Generation, Source
from patchq.queue import Claim, spool
from patchq.queue.ids import extension
from patchq.queue.inbox import Snapshot, snapshot
from patchq.queue.spool import Folder

_NOT_OURS = {errno.ENOENT, errno.EACCES, errno.EPERM, errno.EBUSY}


class ClaimFiles:
    """The claims in `active`, whose verdicts go to one of the `public` folders; a response has at
    most `limit` bytes."""

    def __init__(self, active: Folder, public: Sequence[Folder], limit: int) -> None:
        self._active = active
        self._public = public
        self._limit = limit
        self._tokens = spool.Tokens()
        self._spare: list[str] = []

    def tokens(self, *suffixes: str) -> set[str]:
        """The claims that have a file, one that ends so."""
        names = self._active.names()
        return {token for name in names if (token := spool.token_of(name, suffixes or ""))}

    def take(self, inbox: Folder, name: str) -> Claim | None:
        """Move an entry out of the inbox and copy it; None when it cannot be moved (any more)."""
        active, token = self._active.fd, self._tokens.next()
        # An empty directory that another claim left costs a tenth of a new one.
        if not (self._spare and self._active.move(self._spare.pop(), self._active, token)):
            os.mkdir(token, 0o700, dir_fd=active)
        try:
            os.rename(name, f"{token}/{name}", src_dir_fd=inbox.fd, dst_dir_fd=active)
        except OSError as error:
            self._spare.append(token)
            if error.errno not in _NOT_OURS:
                raise
            return None
        copy = self._copy(token, name)
        return claim_of(token, name, copy, request=name.endswith(REQUEST) and not copy.problem)

    def lock(self) -> tuple[str, int]:
        """A new claim, locked as long as this process lives: its token, and the descriptor that is
        the lock."""
        while True:
            token = self._tokens.next()
            os.mkdir(token, 0o700, dir_fd=self._active.fd)
            lock = os.open(token, spool.DIRECTORY, dir_fd=self._active.fd)
            files.flock(lock, math.inf)
            # Somebody who recovers may have taken the directory for a leftover before the lock.
            if os.fstat(lock).st_nlink:
                return token, lock
            os.close(lock)

    @contextlib.contextmanager
    def locked(self, token: str) -> Iterator[bool]:
        """Hold the claim's own lock; False when its owner lives."""
        with contextlib.ExitStack() as stack:
            free = True
            with contextlib.suppress(FileNotFoundError):
                folder = files.opened(token, spool.DIRECTORY, self._active.fd)
                free = files.flock(stack.enter_context(folder))
            yield free

    def put(self, token: str, name: str, data: bytes, *, flush: bool = False) -> None:
        """Write a file of a claim, so that what a crash leaves of it is known as the claim's."""
        self._active.put(name, data, via=f"{token}.tmp", flush=flush)

    def enter(self, token: str, name: str) -> None:
        """Say by an empty entry what the response is called."""
        self._active.write(f"{token}/{spool.file_name(name)}", b"")

    def clear(self, token: str, name: str) -> None:
        """Remove the response as it came, now that its copy is in its place."""
        if not self._active.remove(f"{token}/{spool.file_name(name)}"):
            for other in self._active.names(token):
                self._active.remove(f"{token}/{other}")

    def spare(self, token: str) -> None:
        """Keep the empty directory of a claim that is gone for the next one."""
        self._spare.append(token)

    def tidy(self) -> None:
        """Remove the spare directories."""
        while self._spare:
            self.remove_directory(self._spare.pop())

    def remove_directory(self, token: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.rmdir(token, dir_fd=self._active.fd)

    def revive(self, token: str) -> Claim | None:
        """A dead owner's claim as if its publishing had never begun; None for mere leftovers."""
        active = self._active
        active.move(f"{token}.ends", active, f"{token}.held")
        report = spool.report(active.read(f"{token}.json"))
        if report is not None:
            body = f"{report['id']}{extension(report['source']['name'])}"
            for folder in self._public:
                folder.move(body, active, f"{token}.body")
                folder.remove(f"{report['id']}.report.md")
            if not active.names(token):  # the report alone has the name, and may change
                with contextlib.suppress(FileNotFoundError):
                    self.enter(token, report["source"]["name"] or "")
        for name in (".md", ".tmp"):
            active.remove(token + name)
        claim = self.read(token)
        if claim is None:
            for name in (".json", ".held", ".asked", ".choice"):
                active.remove(token + name)
            self.remove_directory(token)
        return claim

    def read(self, token: str) -> Claim | None:
        """The claim as the files tell it; None when no response is left in them."""
        active = self._active
        report = spool.report(active.read(f"{token}.json"))
        hold = spool.decode(active.read(f"{token}.held") or active.read(f"{token}.ends"))
        answer = spool.decode(active.read(f"{token}.asked"))
        names = active.names(token)
        name = names[0] if names else (report and report["source"]["name"]) or "response"
        try:
            body = snapshot(active.fd, f"{token}.body", self._limit)
            if names and not hold and self._doubtful(token, name, body, report):
                body = self._copy(token, name)
        except FileNotFoundError:
            if names:
                body = self._copy(token, name)
            elif report:
                body = Snapshot(b"", report["source"]["bytes"] or 0)
            else:
                return None
        if answer is not None:
            data = answer["data"].encode("utf-8", "surrogateescape")
            if data != body.data:  # a crash came before the copy of it
                self.put(token, f"{token}.body", data)
                body = Snapshot(data, len(data))
        return claim_of(
            token,
            name,
            body,
            id=report["id"] if report else (hold or {}).get("id"),
            intended=report,
            held=hold is not None,
            held_since=hold["since"] if hold else None,
            request=name.endswith(REQUEST) and answer is None and not body.problem,
            generation=Generation.from_json(answer["asked"]) if answer is not None else None,
            choice=spool.decode(active.read(f"{token}.choice")),
        )

    def _doubtful(self, token: str, name: str, body: Snapshot, report: Report | None) -> bool:
        """Whether a power cut may have taken the copy that is made of a response; then there is no
        intended report either, or it speaks of other bytes.  Adopted ones have nothing but it."""
        if report and report["source"]["sha256"] == sha256(body.data).hexdigest():
            return False
        return os.lstat(f"{token}/{name}", dir_fd=self._active.fd).st_size > 0

    def _copy(self, token: str, name: str) -> Snapshot:
        copy = snapshot(self._active.fd, f"{token}/{name}", self._limit)
        if copy.problem is None:
            self.put(token, f"{token}.body", copy.data)
        return copy


def claim_of(token: str, name: str, body: Snapshot, **more: Any) -> Claim:
    source = Source(name, sha256(body.data).hexdigest(), body.size)
    return Claim(token, source, body.data, body.problem, **more)
