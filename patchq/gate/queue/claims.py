"""The files of each claim in `active/`, and what they say of it after a crash.

A response that nobody else can write to any more is read where it stands, and moves on as it is; a
copy is made of any other one, so that what a late writer does changes nothing.

The daemon's claims are its own as long as it holds the queue lock.  Claims that other commands
adopt beside it are told by a lock on `active/TOKEN/`, which the kernel drops with its process.
"""

from __future__ import annotations

import contextlib
import errno
import math
import os
import stat
from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Any

from msgspec import Struct

from patchq.core.model.names import REQUEST
from patchq.core.model.values import Generation, Source
from patchq.gate.git.files import being_written, end_lease, flock, lease, leased, opened
from patchq.gate.queue import Claim, spool
from patchq.gate.queue.inbox import CHANGED, OPEN, Mark, Snapshot, snapshot
from patchq.gate.queue.spool import Folder, Tokens, extension, read_up_to
from patchq.gate.report.schema import Report

_NOT_OURS = {errno.ENOENT, errno.EACCES, errno.EPERM, errno.EBUSY}


class _Response(Struct, frozen=True):
    """Where a claim's response stands in `active/` as it came; and what that file was when it was
    proved to be out of everybody's reach, or None where a copy of it counts."""

    place: str
    proved: Mark | None = None


class ClaimFiles:
    """The claims in `active`, whose verdicts go to one of the `public` folders; a response has at
    most `limit` bytes."""

    def __init__(self, active: Folder, public: Sequence[Folder], limit: int) -> None:
        self._active = active
        self._public = public
        self._limit = limit
        self._tokens = Tokens()
        self._responses: dict[str, _Response] = {}

    def tokens(self, *suffixes: str) -> set[str]:
        """The claims that have a file, one that ends so."""
        names = self._active.names()
        return {token for name in names if (token := spool.token_of(name, suffixes or ""))}

    def entries(self) -> dict[str, str]:
        """The responses that stand in `active/` itself, by their claims."""
        names = filter(spool.response_in, self._active.names())
        return {token: name for name in names if (token := spool.token_of(name))}

    def take(self, inbox: Folder, name: str) -> Claim | None:
        """Move an entry out of the inbox; None when it cannot be moved (any more)."""
        token = self._tokens.next()
        try:
            place = self._enter_from(inbox, name, token)
        except OSError as error:
            if error.errno not in _NOT_OURS:
                raise
            return None
        return claim_of(token, name, self._whole(token, place))

    def _enter_from(self, inbox: Folder, name: str, token: str) -> str:
        """Where the entry is now; one with a long name has a directory to itself."""
        folders = inbox.fd, self._active.fd
        place = f"{token}.{name}{spool.ENTRY}"
        try:
            os.rename(name, place, src_dir_fd=folders[0], dst_dir_fd=folders[1])
        except OSError as error:
            if error.errno != errno.ENAMETOOLONG:
                raise
            place = f"{token}/{name}"
            self._make_directory(token)
            try:
                os.rename(name, place, src_dir_fd=folders[0], dst_dir_fd=folders[1])
            except OSError:
                self.remove_directory(token)
                raise
        return place

    def lock(self) -> tuple[str, int]:
        """A new claim, locked as long as this process lives: its token, and the descriptor that is
        the lock."""
        while True:
            token = self._tokens.next()
            self._make_directory(token)
            lock = os.open(token, spool.DIRECTORY, dir_fd=self._active.fd)
            flock(lock, math.inf)
            # Somebody who recovers may have taken the directory for a leftover before the lock.
            if os.fstat(lock).st_nlink:
                return token, lock
            os.close(lock)

    @contextlib.contextmanager
    def locked(self, token: str) -> Iterator[bool]:
        """Whether the claim's owner is dead, for as long as nobody else becomes its owner.  Any
        number of processes may look at once."""
        with contextlib.ExitStack() as stack:
            free = True
            with contextlib.suppress(FileNotFoundError):
                folder = opened(token, spool.DIRECTORY, self._active.fd)
                free = flock(stack.enter_context(folder), shared=True)
            yield free

    def put(
        self, token: str, name: str, data: bytes, *, private: bool = False, flush: bool = False
    ) -> None:
        """Write a file of a claim, so that what a crash leaves of it is known as the claim's;
        `private` is what may hold a secret, as long as nobody has looked."""
        mode = 0o600 if private else 0o666
        self._active.put(name, data, via=f"{token}.tmp", mode=mode, flush=flush)

    def put_copy(self, token: str, data: bytes, *, flush: bool = False) -> None:
        """Write what counts as the response, whatever becomes of the one that came."""
        self.put(token, f"{token}.body", data, private=True, flush=flush)
        if (response := self._responses.get(token)) is not None:
            self._responses[token] = _Response(response.place)

    def _make_directory(self, token: str) -> None:
        folder = self._active.fd
        os.mkdir(token, 0o700, dir_fd=folder)
        if self._active.grant:  # whoever shares the queue may have to recover it
            os.chmod(token, 0o2770, dir_fd=folder)

    def take_in(self, token: str, name: str) -> None:
        """Make the place of a claim that has its token from elsewhere."""
        with contextlib.suppress(FileExistsError):
            self._make_directory(token)
        self.enter(token, name)

    def enter(self, token: str, name: str) -> None:
        """Say by an empty entry what the response is called."""
        self._responses[token] = _Response(f"{token}/{spool.file_name(name)}")
        self._active.write(self._responses[token].place, b"")

    def body(self, token: str) -> str:
        """The file that counts as the response."""
        response = self._responses.get(token)
        return response.place if response and response.proved else f"{token}.body"

    def keep(self, claim: Claim) -> None:
        """Make a copy after all of a response that somebody reached who has our rights."""
        response = self._responses.get(claim.token)
        if response is None or response.proved is None:
            return
        try:
            with opened(response.place, OPEN, self._active.fd) as fd:
                status = os.fstat(fd)
                same = _content(status) == response.proved and status.st_nlink == 1
                if same and being_written(fd) is False:
                    return
        except OSError as error:
            if error.errno not in CHANGED:
                raise
        self.put_copy(claim.token, claim.data, flush=True)

    def settle(self, claim: Claim) -> None:
        """Make a copy of a response that is to wait, and a directory of its own for it."""
        token, response = claim.token, self._responses.get(claim.token)
        if response is None or not response.place.endswith(spool.ENTRY):
            return
        if response.proved is not None:
            self.put_copy(token, claim.data, flush=True)
        with contextlib.suppress(FileExistsError):
            self._make_directory(token)
        place = f"{token}/{claim.source.name}"
        self._active.move(response.place, self._active, place)
        self._responses[token] = _Response(place)

    def archive(self, claim: Claim, target: Folder, name: str) -> None:
        """Move the response to where it stays, and remove what else there is of it."""
        active, token = self._active, claim.token
        response = self._responses.get(token)
        place = response.place if response else f"{token}/{spool.file_name(claim.source.name)}"
        if active.move(self.body(token), target, name):
            if response and response.proved:
                return
        elif claim.problem:
            active.move(place, target, name)
        if not active.remove(place):
            for other in active.names(token):
                active.remove(f"{token}/{other}")

    def end(self, token: str) -> None:
        """Nothing more is done with the claim, whose files are gone."""
        response = self._responses.pop(token, None)
        if response is None or not response.place.endswith(spool.ENTRY):
            self.remove_directory(token)

    def remove_directory(self, token: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.rmdir(token, dir_fd=self._active.fd)

    def revive(self, token: str, entry: str | None) -> Claim | None:
        """A dead owner's claim as if its publishing had never begun; None for mere leftovers.
        `entry` is what `entries` has of it."""
        active = self._active
        active.move(f"{token}.ends", active, f"{token}.held")
        report = spool.report(active.read(f"{token}.json"))
        if report is not None:
            body = f"{report.id}{extension(report.source.name)}"
            for folder in self._public:
                folder.move(body, active, f"{token}.body")
                folder.remove(f"{report.id}.report.md")
            if not (entry or active.names(token)):  # only the report has the name, and may change
                with contextlib.suppress(FileExistsError):
                    self._make_directory(token)
                self.enter(token, report.source.name or "")
        for name in (".md", ".tmp"):
            active.remove(token + name)
        claim = self.read(token, entry)
        if claim is None:
            for name in (".json", ".held", ".asked", ".choice"):
                active.remove(token + name)
            self.remove_directory(token)
        return claim

    def read(self, token: str, entry: str | None = None) -> Claim | None:
        """The claim as the files tell it; None when no response is left in them."""
        active = self._active
        report = spool.report(active.read(f"{token}.json"))
        hold = spool.decode(active.read(f"{token}.held") or active.read(f"{token}.ends"))
        answer = spool.decode(active.read(f"{token}.asked"))
        names = active.names(token)
        place = f"{token}/{names[0]}" if names else entry
        name = names[0] if names else entry and spool.response_in(entry)
        if place is not None:
            self._responses[token] = _Response(place)
        try:
            body = snapshot(active.fd, f"{token}.body", self._limit)
            if place and not hold and self._doubtful(place, body, report):
                body = self._copy(token, place)
        except FileNotFoundError:
            if place:
                body = self._whole(token, place)
            elif report:
                body = Snapshot(b"", report.source.bytes or 0)
            else:
                return None
        if answer is not None:
            data = answer["data"].encode("utf-8", "surrogateescape")
            if data != body.data:  # a crash came before the copy of it
                self.put_copy(token, data)
                body = Snapshot(data, len(data))
        return claim_of(
            token,
            name or (report and report.source.name) or "response",
            body,
            id=report.id if report else (hold or {}).get("id"),
            intended=report,
            held=hold is not None,
            held_since=hold["since"] if hold else None,
            generation=Generation.from_json(answer["asked"]) if answer is not None else None,
            choice=spool.decode(active.read(f"{token}.choice")),
        )

    def _doubtful(self, place: str, body: Snapshot, report: Report | None) -> bool:
        """Whether a power cut may have taken the copy that is made of a response; then there is no
        intended report either, or it speaks of other bytes.  Adopted ones have nothing but it."""
        if report and report.source.sha256 == sha256(body.data).hexdigest():
            return False
        return os.lstat(place, dir_fd=self._active.fd).st_size > 0

    def _whole(self, token: str, place: str) -> Snapshot:
        """A response that has no copy yet: out of everybody's reach, or else with one."""
        found = self._proved(place)
        if found is None:
            return self._copy(token, place)
        body, self._responses[token] = found
        return body

    def _proved(self, place: str) -> tuple[Snapshot, _Response] | None:
        """The response, if it is a file of ours that nobody can reach without our rights, and that
        nobody has open for writing: a lease says so, and none is broken while it is read."""
        active = self._active
        status = os.stat(place, dir_fd=active.fd, follow_symlinks=False)
        group = active.gid if active.mode & stat.S_ISGID else os.getegid()
        ours = (status.st_uid, status.st_gid) == (os.geteuid(), group)
        if not (ours and stat.S_ISREG(status.st_mode) and status.st_size <= self._limit):
            return None
        try:
            with opened(place, OPEN, active.fd) as fd:
                os.fchmod(fd, 0o600 | active.grant)
                if lease(fd) is not False:
                    return None
                try:
                    data = read_up_to(fd, self._limit + 1)
                    status = os.fstat(fd)
                    if status.st_nlink == 1 and len(data) == status.st_size and leased(fd):
                        return Snapshot(data, len(data)), _Response(place, _content(status))
                finally:
                    end_lease(fd)
        except PermissionError:
            return None
        except OSError as error:
            if error.errno not in CHANGED:
                raise
        return None

    def _copy(self, token: str, place: str) -> Snapshot:
        self._responses[token] = _Response(place)
        copy = snapshot(self._active.fd, place, self._limit)
        if copy.problem is None:
            self.put_copy(token, copy.data)
        return copy


def _content(status: os.stat_result) -> Mark:
    """What changes when a file's content does, and not with its name or rights."""
    return (status.st_ino, status.st_size, status.st_mtime_ns, 0)


def claim_of(token: str, name: str, body: Snapshot, **more: Any) -> Claim:
    """The claim of a response with this content, or of a request that no model has answered."""
    source = Source(name, sha256(body.data).hexdigest(), body.size)
    asks = name.endswith(REQUEST) and not body.problem and more.get("generation") is None
    return Claim(token, source, body.data, body.problem, **{"request": asks, **more})
