"""The inbox: its entries, and the progress of responses without a verdict.

Nothing in it is trusted: an entry may be a link, a pipe, a sparse file of a terabyte, or change
under our hands.  One scan feeds many claims, and the events that announce files are hints only.
"""

from __future__ import annotations

import errno
import heapq
import os
import re
import stat
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from hashlib import sha256
from itertools import filterfalse
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from patchq.core.model.names import REQUEST, batch_id, response_name
from patchq.core.model.values import Problem, Source
from patchq.gate.errors import DiskFault
from patchq.gate.git import files
from patchq.gate.queue import Claim
from patchq.gate.queue.lock import Activity, activity_text, age
from patchq.gate.queue.spool import Folder, new_token, read_up_to

HEAD_BYTES = 4096
_MOST_OPENED = 200  # files of the inbox that are looked into for the id that they give themselves
_ID = re.compile(rb"^id:[ \t]*([\"']?)(.*?)\1[ \t]*\r?$", re.MULTILINE)
IGNORED_SUFFIXES = (".tmp", ".part", "~")
# Names that one scan keeps, the oldest ones; the next scan finds those behind them.
SCAN_ENTRIES = 20_000
_STEM_BYTES, _SUFFIX_BYTES = 160, 40  # with a token between them a name has 255 bytes at most
_FREE_NAMES = 10  # of so many responses under one name the ids are counted
_COPY_TRIES = 5
_COPY_PAUSE_SECONDS = 0.05
_OPEN_ENTRY = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
_KINDS = {
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
}
# Errors of opening an entry that became another one, or is leased, or whose directory did.
_CHANGED = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENXIO, errno.EAGAIN}

_NO_DIRECTORY = FileNotFoundError, NotADirectoryError

Mark = tuple[int, int, int, int]  # inode, size, mtime and ctime: what changes when a file does


def ignored(name: str) -> bool:
    return name.startswith(".") or name.endswith(IGNORED_SUFFIXES)


def mark(status: os.stat_result) -> Mark:
    return (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def replaced(inbox: Path) -> DiskFault | None:
    """Return the fault if something other than a directory is there."""
    if not os.path.lexists(inbox) or (inbox.is_dir() and not inbox.is_symlink()):
        return None
    return DiskFault(
        f"{inbox} is not a directory, so no response is taken in",
        f"put the directory back, or make a new one: mv '{inbox}' '{inbox.parent.parent}/'; "
        f"mkdir '{inbox}'",
    )


class Inbox:
    """The entries of the inbox, oldest first."""

    def __init__(self, folder: Folder, settle_seconds: float) -> None:
        self.folder = folder
        self._settle_seconds = settle_seconds
        self._waiting: deque[str] = deque()
        self._unsettled: dict[str, tuple[Mark, float]] = {}

    def complete(self) -> Iterator[str]:
        """Yield the names of complete entries, from the last scan and a new one."""
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
        """Return the number of responses that wait."""
        with suppress(*_NO_DIRECTORY):
            return sum(not ignored(name) for name in self.folder.names())
        return 0

    def unsettled(self) -> float | None:
        """Return the seconds until an incomplete response is worth another look."""
        if not self._unsettled:
            return None
        first = min(since for _, since in self._unsettled.values())
        return max(0.01, first + self._settle_seconds - time.monotonic())

    def submit(self, data: bytes, name: str, *, flush: bool = False) -> str:
        """Add a response under the name, or a free one like it; return it.

        Nothing stays of a response that cannot be added.
        """
        token = new_token()
        temporary = f".{token}.tmp"
        with self.folder.opened() as inbox:
            try:
                files.write(temporary, data, folder=inbox, grant=self.folder.grant, flush=flush)
                for free in free_names(name, token):
                    with suppress(FileExistsError):
                        files.rename_noreplace(inbox, temporary, free)
                        return free
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), name)
            except OSError:
                with suppress(OSError):
                    os.unlink(temporary, dir_fd=inbox)
                raise

    def _scan(self) -> None:
        ages: list[tuple[int, str]] = []
        # It may be about to be made anew, or `replaced` says what is there.
        with (
            suppress(*_NO_DIRECTORY),
            self.folder.opened() as folder,
            os.scandir(folder) as entries,
        ):
            ages = heapq.nsmallest(SCAN_ENTRIES, filter(None, map(_modified, entries)))
        self._waiting = deque(name for _, name in ages)
        names = set(self._waiting) if self._unsettled else ()
        self._unsettled = {k: seen for k, seen in self._unsettled.items() if k in names}

    def _is_complete(self, name: str) -> bool:
        status = self.folder.status(name)
        if status is None or not stat.S_ISREG(status.st_mode):
            return status is not None
        written = None  # unknown: it has to be quiet for a while
        if status.st_size and status.st_nlink == 1:
            try:
                with self.folder.opened() as folder, files.opened(name, _OPEN_ENTRY, folder) as fd:
                    written = files.being_written(fd)
            except PermissionError:
                pass
            except OSError as error:
                if error.errno not in _CHANGED:
                    raise
                written = True
        now = time.monotonic()
        seen, since = self._unsettled.get(name, (None, now))
        if written or seen != mark(status):
            since = now
        if written is not False:
            self._unsettled[name] = (mark(status), since)
        return written is False or (not written and now - since >= self._settle_seconds)


def _modified(entry: os.DirEntry[str]) -> tuple[int, str] | None:
    if ignored(entry.name):
        return None
    try:
        return entry.stat(follow_symlinks=False).st_mtime_ns, entry.name
    except FileNotFoundError:
        return None


def free_names(name: str, token: str) -> Sequence[str]:
    """Return names to try for a response that the inbox looks at; the last is free."""
    plain = name.replace("/", "_").replace("\0", "_").lstrip(".") or "response"
    if ignored(plain):
        plain += ".txt"
    suffix = REQUEST if plain.endswith(REQUEST) else Path(plain).suffix
    stem = os.fsdecode(os.fsencode(plain.removesuffix(suffix))[:_STEM_BYTES])
    if len(os.fsencode(suffix)) > _SUFFIX_BYTES:
        suffix = ".txt"
    ends = ["", *(f"-{number}" for number in range(2, _FREE_NAMES)), f"-{token}"]
    return [f"{stem}{end}{suffix}" for end in ends]


Snapshot = tuple[bytes, int, Problem | None]  # bytes, the size that is claimed, why none are read


def snapshot(folder: int, name: str, limit: int, mode: int) -> Snapshot:
    """Read at most `limit` bytes of an entry taken out of the inbox.

    They are all of one moment.  A source that changes meanwhile is read again, a few times.  What
    was read gets the `mode`, since it may hold a secret.  Raises FileNotFoundError when there is
    none.
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
            return b"", status.st_size, problem
        if status.st_nlink > 1 and status.st_uid != os.geteuid():
            return b"", status.st_size, _FOREIGN
        if status.st_size > limit:
            return b"", status.st_size, too_large(status.st_size, limit)
        try:
            with files.opened(name, _OPEN_ENTRY, folder) as fd:
                data = read_up_to(fd, limit + 1)
                whole = mark(os.fstat(fd)) == mark(status) and len(data) == status.st_size
                if whole and status.st_nlink == 1:
                    with suppress(OSError):  # another user's
                        os.fchmod(fd, mode)
        except PermissionError:
            return b"", status.st_size, _UNREADABLE
        except OSError as error:
            if error.errno not in _CHANGED:
                raise
            continue
        if whole:
            return data, len(data), None
    return b"", status.st_size, _RESTLESS


def claim_of(
    token: str, name: str, data: bytes, size: int, problem: Problem | None = None, **more: Any
) -> Claim:
    """Return the claim of a response, or of a request without an answer."""
    source = Source(name, sha256(data).hexdigest(), size)
    asks = name.endswith(REQUEST) and not problem and "generation" not in more
    return Claim(token, source, data, problem, **{"request": asks, **more})


def too_large(size: int, limit: int) -> Problem:
    """Return the problem of a response of that many bytes."""
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


# ---------------------------------------------------------------- without a verdict


class Pending(Struct, frozen=True):
    """A response without a verdict, in the inbox or in hand.

    `id` is the one that it will get, as far as that is known.  `doing` is the work on it.
    """

    id: str
    name: str
    state: Literal["waiting", "claimed"]
    since: float
    doing: tuple[Activity, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "state": self.state,
            "source": {"name": self.name},
            "since": self.since,
            "doing": [
                {"stage": one.stage, "hook": one.hook, "since": one.since} for one in self.doing
            ],
        }

    def summary(self) -> str:
        """Return the state in words that follow the id."""
        if self.doing:
            return f"in hand: {activity_text(self.doing)}"
        where = "in the inbox" if self.state == "waiting" else "in hand"
        return f"{where} for {age(self.since)}"


def stem_id(name: str) -> str:
    """Return the default id of a response, from its file's name."""
    return batch_id(Path(response_name(name)).stem)


def waiting(root: Path, id: str) -> Pending | None:
    """Return the response in the inbox that will ask for the id."""
    inbox = root / "inbox"
    names = sorted(os.listdir(inbox)) if inbox.is_dir() else []
    complete = list(filterfalse(ignored, names))
    looked_into = complete[:_MOST_OPENED]
    for name in [*filter(lambda name: stem_id(name) == id, complete), *looked_into]:
        with suppress(OSError):
            if id in (stem_id(name), own_id(head(inbox / name))):
                return Pending(id, name, "waiting", (inbox / name).lstat().st_mtime)
    return None


def head(path: Path) -> bytes:
    """Return the first bytes of a response, none if it cannot be read."""
    with suppress(OSError), files.opened(path, _OPEN_ENTRY) as fd:
        return os.read(fd, HEAD_BYTES)
    return b""


def own_id(data: bytes) -> str | None:
    """Return the id in a response's front matter, or None.

    Only the first bytes are searched.
    """
    opening, _, rest = data[:HEAD_BYTES].partition(b"\n")
    found = _ID.search(rest.partition(b"\n---")[0]) if opening.rstrip() == b"---" else None
    return batch_id(found[2].decode("utf-8", "replace")) if found else None
