"""The way in: what waits in the inbox, in which order, whether it is complete, and its claims.

Nothing in it is trusted: an entry may be a link, a pipe, a sparse file of a terabyte, or change
under our hands.  One scan feeds many claims, and the events that announce files are hints only.

What is claimed stands in `active/`: the files of each claim, and what they say of it after a crash.
The daemon's claims are its own as long as it holds the queue lock.  Claims that other commands
adopt beside it are told by a lock on `active/TOKEN/`, which the kernel drops with its process.
"""

from __future__ import annotations

import contextlib
import errno
import heapq
import math
import os
import stat
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from patchq.git.files import being_written, flock, opened, rename_noreplace
from patchq.model.names import REQUEST
from patchq.model.report import Report
from patchq.model.values import Generation, Problem, Source
from patchq.queue import Claim, spool
from patchq.queue.spool import Folder, Tokens, extension, read_up_to

IGNORED_SUFFIXES = (".tmp", ".part", "~")
SCAN_ENTRIES = 20_000
"""How many names one scan keeps, the oldest ones; those behind them come with the next scan."""
_FREE_NAMES = 9
_STEM_BYTES, _SUFFIX_BYTES = 180, 40
_COPY_TRIES = 5
_COPY_PAUSE_SECONDS = 0.05
_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
_KINDS = {
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
}
_NOT_OURS = {errno.ENOENT, errno.EACCES, errno.EPERM, errno.EBUSY}
_CHANGED = {errno.ENOENT, errno.ELOOP, errno.ENXIO, errno.EAGAIN}
"""What opening says when the entry became another one, or its owner holds a lease on it."""

Mark = tuple[int, int, int, int]
"""Inode, size, mtime and ctime: what changes when a file does."""


def ignored(name: str) -> bool:
    return name.startswith(".") or name.endswith(IGNORED_SUFFIXES)


def mark(status: os.stat_result) -> Mark:
    return (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


class Inbox:
    """The entries of the inbox, oldest first."""

    def __init__(self, folder: Folder, settle_seconds: float) -> None:
        self.folder = folder
        self._settle_seconds = settle_seconds
        self._waiting: deque[str] = deque()
        self._unsettled: dict[str, tuple[Mark, float]] = {}
        self._tokens = Tokens()

    def complete(self) -> Iterator[str]:
        """The names of complete entries: what is left of the last scan, then those of one more."""
        yield from self._drain()
        self._scan()
        yield from self._drain()

    def _drain(self) -> Iterator[str]:
        while self._waiting:
            name = self._waiting.popleft()
            if self._is_complete(name):
                self._unsettled.pop(name, None)
                yield name

    def depth(self) -> int:
        try:
            with os.scandir(self.folder.fd) as entries:
                return sum(not ignored(entry.name) for entry in entries)
        except FileNotFoundError:
            return 0

    def unsettled(self) -> float | None:
        if not self._unsettled:
            return None
        first = min(since for _, since in self._unsettled.values())
        return max(0.01, first + self._settle_seconds - time.monotonic())

    def submit(self, data: bytes, name: str) -> str:
        """Add a response under that name, or a free one like it, which is returned."""
        inbox, token = self.folder.fd, self._tokens.next()
        temporary = f".{token}.tmp"
        self.folder.write(temporary, data)
        for free in free_names(name, token):
            with contextlib.suppress(FileExistsError):
                rename_noreplace(inbox, temporary, free)
                return free
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), name)

    def _scan(self) -> None:
        ages: list[tuple[int, str]] = []
        try:
            with os.scandir(self.folder.fd) as entries:
                ages = heapq.nsmallest(SCAN_ENTRIES, filter(None, map(_age, entries)))
        except FileNotFoundError:
            pass  # somebody is about to make the directory anew
        self._waiting = deque(name for _, name in ages)
        names = set(self._waiting) if self._unsettled else ()
        self._unsettled = {k: seen for k, seen in self._unsettled.items() if k in names}

    def _is_complete(self, name: str) -> bool:
        """Whether nobody is still at work on the entry; one that is not a file is complete."""
        status = self.folder.status(name)
        if status is None:
            self._unsettled.pop(name, None)
            return False
        if not stat.S_ISREG(status.st_mode):
            return True
        if status.st_size == 0 or status.st_nlink > 1:
            return self._settled(name, status)
        written: bool | None
        try:
            with opened(name, _OPEN, self.folder.fd) as fd:
                written = being_written(fd)
        except PermissionError:
            written = None
        except OSError as error:
            if error.errno not in _CHANGED:
                raise
            written = True
        if written:
            self._unsettled[name] = (mark(status), time.monotonic())
            return False
        return written is False or self._settled(name, status)

    def _settled(self, name: str, status: os.stat_result) -> bool:
        now = time.monotonic()
        seen, since = self._unsettled.get(name, (None, now))
        if seen != mark(status):
            since = now
            self._unsettled[name] = (mark(status), now)
        return now - since >= self._settle_seconds


def _age(entry: os.DirEntry[str]) -> tuple[int, str] | None:
    if ignored(entry.name):
        return None
    try:
        return entry.stat(follow_symlinks=False).st_mtime_ns, entry.name
    except FileNotFoundError:
        return None


def free_names(name: str, token: str) -> Iterator[str]:
    """Names to try for a response, all of which the inbox looks at; the last one is free."""
    plain = name.replace("/", "_").replace("\0", "_").lstrip(".") or "response"
    if ignored(plain):
        plain += ".txt"
    stem, dot, suffix = plain.rpartition(".") if "." in plain else (plain, "", "")
    if plain.endswith(REQUEST):
        stem, dot, suffix = plain.removesuffix(REQUEST), "", REQUEST
    if len(os.fsencode(suffix)) > _SUFFIX_BYTES:
        stem, suffix = plain, "txt"
    short = os.fsdecode(os.fsencode(stem)[:_STEM_BYTES])
    yield f"{short}{dot}{suffix}"
    for number in range(2, _FREE_NAMES + 1):
        yield f"{short}-{number}{dot}{suffix}"
    yield f"{short}-{token}{dot}{suffix}"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The bytes of an entry at one moment, or why there are none; `size` is what it claims."""

    data: bytes
    size: int
    problem: Problem | None = None


def snapshot(folder: int, name: str, limit: int) -> Snapshot:
    """Read an entry that was taken out of the inbox: at most `limit` bytes, all of one moment.

    A source that changes meanwhile is read again, a few times.  Raises FileNotFoundError when
    there is none.
    """
    for attempt in range(_COPY_TRIES):
        if attempt:
            time.sleep(_COPY_PAUSE_SECONDS)
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if not stat.S_ISREG(status.st_mode):
            kind = _KINDS.get(stat.S_IFMT(status.st_mode), "a device")
            problem = Problem(
                "response.not_text",
                f"the entry is {kind}, not a file; it was not opened",
                "write the response itself into the inbox, as a plain file",
            )
            return Snapshot(b"", status.st_size, problem)
        if status.st_nlink > 1 and status.st_uid != os.geteuid():
            return Snapshot(b"", status.st_size, _FOREIGN)
        if status.st_size > limit:
            return Snapshot(b"", status.st_size, too_large(status.st_size, limit))
        try:
            with opened(name, _OPEN, folder) as fd:
                data = read_up_to(fd, limit + 1)
                whole = mark(os.fstat(fd)) == mark(status) and len(data) == status.st_size
        except PermissionError:
            return Snapshot(b"", status.st_size, _UNREADABLE)
        except OSError as error:
            if error.errno not in _CHANGED:
                raise
            continue
        if whole:
            return Snapshot(data, len(data))
    return Snapshot(b"", status.st_size, _RESTLESS)


def too_large(size: int, limit: int) -> Problem:
    """Why a response of that many bytes is not read."""
    return Problem(
        "response.too_large",
        f"the response has {size} bytes; `limits.response_bytes` allows {limit}",
        "send the changes in several responses, or quote less of each file",
    )


_FOREIGN = Problem(
    "response.incomplete",
    "the file has another name outside of the inbox and belongs to another user, so it may be "
    "changed at any time; it was not read",
    "write a new file into the inbox, or remove the other name",
)
_UNREADABLE = Problem(
    "response.incomplete",
    "the daemon's user may not read the file",
    "make the file readable for the daemon's user before it enters the inbox",
)
_RESTLESS = Problem(
    "response.incomplete",
    "the file was changed again and again while it was read",
    "write the response under a name that ends in `.tmp`, then rename it",
)


class ClaimFiles:
    """The claims in `active`, whose verdicts go to one of the `public` folders; a response has at
    most `limit` bytes."""

    def __init__(self, active: Folder, public: Sequence[Folder], limit: int) -> None:
        self._active = active
        self._public = public
        self._limit = limit
        self._tokens = Tokens()
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
            self._make_directory(token)
        try:
            os.rename(name, f"{token}/{name}", src_dir_fd=inbox.fd, dst_dir_fd=active)
        except OSError as error:
            self._spare.append(token)
            if error.errno not in _NOT_OURS:
                raise
            return None
        return claim_of(token, name, self._copy(token, name))

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
        """Hold the claim's own lock; False when its owner lives."""
        with contextlib.ExitStack() as stack:
            free = True
            with contextlib.suppress(FileNotFoundError):
                folder = opened(token, spool.DIRECTORY, self._active.fd)
                free = flock(stack.enter_context(folder))
            yield free

    def put(
        self, token: str, name: str, data: bytes, *, private: bool = False, flush: bool = False
    ) -> None:
        """Write a file of a claim, so that what a crash leaves of it is known as the claim's;
        `private` is what may hold a secret, as long as nobody has looked."""
        mode = 0o600 if private else 0o666
        self._active.put(name, data, via=f"{token}.tmp", mode=mode, flush=flush)

    def _make_directory(self, token: str) -> None:
        folder = self._active.fd
        os.mkdir(token, 0o700, dir_fd=folder)
        if self._active.grant:  # whoever shares the queue may have to recover it
            os.chmod(token, 0o2770, dir_fd=folder)

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
                self.put(token, f"{token}.body", data, private=True)
                body = Snapshot(data, len(data))
        return claim_of(
            token,
            name,
            body,
            id=report["id"] if report else (hold or {}).get("id"),
            intended=report,
            held=hold is not None,
            held_since=hold["since"] if hold else None,
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
            self.put(token, f"{token}.body", copy.data, private=True)
        return copy


def claim_of(token: str, name: str, body: Snapshot, **more: Any) -> Claim:
    """The claim of a response with this content, or of a request that no model has answered."""
    source = Source(name, sha256(body.data).hexdigest(), body.size)
    asks = name.endswith(REQUEST) and not body.problem and more.get("generation") is None
    return Claim(token, source, body.data, body.problem, **{"request": asks, **more})
