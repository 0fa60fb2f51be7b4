"""The directories of a queue, their entries, and the files of batches.

A folder is opened for each step, without following a symbolic link, so whoever replaces `done/` by
a link makes nothing be written elsewhere.  New content appears by rename.  Nothing is flushed here,
except where old content is about to be replaced.

The files of a batch in done/, rejected/ and active/ are made from the store, the report last, and
made again where they may be lost.  The response that came stays in active/ until they are there.
"""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import stat
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from hashlib import sha256
from itertools import count
from pathlib import Path
from secrets import token_hex
from typing import Any

import msgspec.json
from msgspec import Struct, ValidationError, convert, to_builtins

from patchq.core.model.names import MAX_ID_BYTES, response_name
from patchq.gate.errors import DiskFault, UsageError
from patchq.gate.git import files
from patchq.gate.report.schema import Report

REPORT = ".report.json"
PAGE = ".report.md"
PUBLIC = ("inbox", "active", "done", "rejected")
_NETWORK = {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "ceph", "fuse.sshfs", "glusterfs", "afs"}
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK

_SUFFIX = re.compile(r".+(\.[A-Za-z0-9]{1,10})", re.DOTALL)
_NOT_OURS = (errno.ENOENT, errno.EACCES, errno.EPERM, errno.EBUSY)
_TIME_DIGITS = 16
_OWN, _NUMBERS = token_hex(8), count()
_TOKEN = re.compile(r"([0-9a-f]{16}-[0-9a-f]+)\..+", re.DOTALL)


@contextmanager
def disk_faults() -> Iterator[None]:
    """Raise an unexpected OSError of a block or function as its fault."""
    try:
        yield
    except OSError as error:
        raise fault(error) from error


def fault(error: OSError, then: str = "start again; no response was lost") -> DiskFault:
    """Return the fault of a file system that refuses to work; what to do `then` ends its cure."""
    where = f"{os.fsdecode(error.filename)!r}: " if isinstance(error.filename, str | bytes) else ""
    name = errno.errorcode.get(error.errno or 0, "unknown")
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    cure = "make room on" if full else "see what is there, and its permissions, in"
    return DiskFault(
        f"the queue cannot be read or written: {where}{error.strerror} ({name})",
        f"{cure} the queue directory, then {then}",
    )


Wanted = Mapping[str, bytes | None]  # what files hold, by their names; None: anything


class Folder:
    """One directory of the queue; `lasting` ones are made again once removed.

    Names may lead into a directory inside, and are those of the queue's own files, or safe.
    """

    def __init__(self, path: Path, *, lasting: bool = True) -> None:
        self.path = path
        self._lasting = lasting
        self.mode = 0  # the mode of the directory

    @contextmanager
    def opened(self) -> Iterator[int]:
        """Open the directory that has the name now.

        Raises OSError: FileNotFoundError, or ENOTDIR or ELOOP when it is something else.
        """
        try:
            fd = os.open(self.path, _DIRECTORY)
        except FileNotFoundError:
            if not self._lasting:
                raise
            with suppress(FileExistsError):
                os.mkdir(self.path)
            fd = os.open(self.path, _DIRECTORY)
        try:
            self.mode = stat.S_IMODE(os.fstat(fd).st_mode)
            yield fd
        finally:
            os.close(fd)

    @property
    def grant(self) -> int:
        """Return the group's permissions for new files, 0 without the set-group-id bit."""
        return self.mode & 0o060 if self.mode & stat.S_ISGID else 0

    def names(self) -> list[str]:
        """Return the sorted names in the directory."""
        with self.opened() as folder:
            return sorted(os.listdir(folder))

    def status(self, name: str) -> os.stat_result | None:
        """Return the status of an entry or a link itself, or None."""
        with suppress(FileNotFoundError, NotADirectoryError), self.opened() as folder:
            return os.stat(name, dir_fd=folder, follow_symlinks=False)
        return None

    def read(self, name: str) -> bytes | None:
        """Return the bytes of a plain file; None when there is none that can be read."""
        with self.opened() as folder:
            return _content(folder, name)

    def wrong(self, wanted: Wanted) -> list[str]:
        """Return the names of the files that are not there as wanted."""
        with self.opened() as folder:
            return _wrong(folder, wanted)

    def write(self, wanted: Wanted, private: Collection[str]) -> None:
        """Write the files that are not there as wanted, by way of `NAME.tmp`.

        Whoever may read the directory may read them, but for the `private` ones.  See
        `files.replace`.
        """
        with self.opened() as folder:
            for name in _wrong(folder, wanted):
                mode = 0o600 if name in private else self.mode & 0o666 | 0o600
                data, via = wanted[name] or b"", f"{name}.tmp"
                files.replace(name, data, via=via, folder=folder, mode=mode, grant=self.grant)

    def remove(self, *names: str) -> None:
        """Remove the files that are there."""
        with self.opened() as folder:
            for name in names:
                with suppress(FileNotFoundError):
                    os.unlink(name, dir_fd=folder)

    def move(self, name: str, target: Folder, new: str) -> bool:
        """Rename into another folder; return False if the entry cannot be had."""
        with target.opened() as there, suppress(FileNotFoundError), self.opened() as source:
            try:
                os.rename(name, new, src_dir_fd=source, dst_dir_fd=there)
                return True
            except OSError as error:
                if error.errno not in _NOT_OURS:
                    raise
        return False


def refuse_network(root: Path) -> None:
    """Raise `UsageError` where the store's locks may be lost with a connection."""
    kind = file_system(root)
    if kind in _NETWORK:
        raise UsageError(
            f"the queue {root} is on a network file system ({kind}), where locks may be lost",
            "set `queue.path` to a local disk; `queue.network_disk: true` allows it to one machine,"
            " and several machines share a queue as docs/cluster.md shows",
        )


def file_system(path: Path) -> str:
    """Return the kernel's name for the type of the file system, or ""."""
    with suppress(OSError):
        device = path.stat().st_dev
        for line in Path("/proc/self/mountinfo").read_text(errors="replace").splitlines():
            words = line.split(" ")
            if words[2] == f"{os.major(device)}:{os.minor(device)}":
                return words[words.index("-") + 1]
    return ""


@disk_faults()
def create(root: Path, readers: int | None = None, sharers: int | None = None) -> None:
    """Make the queue's directories, if they are missing.

    The group `readers` may read reports, and only the owner; `sharers` is the group of a repository
    that is shared.
    """
    for name in PUBLIC:
        files.make_directory(root / name)
    for path in (root, *(root / name for name in PUBLIC)):
        status = path.stat()
        mode = wanted = stat.S_IMODE(status.st_mode)
        group = status.st_gid if sharers is None else sharers
        if readers is not None and path.name != PUBLIC[0]:
            alone = mode if path == root else mode & ~0o007 | stat.S_ISGID
            group, wanted = readers, alone | 0o050
        if (group, wanted) == (status.st_gid, mode) or os.geteuid() not in (0, status.st_uid):
            continue
        try:
            os.chown(path, -1, group)
            path.chmod(wanted)
        except PermissionError:
            if readers is not None:
                raise UsageError(
                    f"{path} cannot be given to the group that `queue.group` names",
                    "have the user that runs patchq join that group, or name another one",
                ) from None


def _wrong(folder: int, wanted: Wanted) -> list[str]:
    return [
        name for name, data in wanted.items() if data is not None and _content(folder, name) != data
    ]


def _content(folder: int, name: str) -> bytes | None:
    with suppress(OSError), files.opened(name, _READ, folder) as fd:
        status = os.fstat(fd)
        if stat.S_ISREG(status.st_mode):
            return read_up_to(fd, status.st_size)
    return None


def read_up_to(fd: int, size: int) -> bytes:
    """At most `size` bytes from an open file, fewer where it ends before."""
    data = os.read(fd, size)
    while len(data) < size and (more := os.read(fd, size - len(data))):
        data += more
    return data


def set_aside(root: Path, *paths: Path) -> Path:
    """Move entries into a new folder of damaged/; return the last one's new place."""
    folder = root / "damaged" / new_token()
    folder.mkdir(parents=True)
    for path in filter(os.path.lexists, paths):
        shutil.move(path, folder / path.name)
    return folder / paths[-1].name


def encode(value: Struct | Mapping[str, Any]) -> bytes:
    """One line of JSON, in ASCII: hostile names may hold what UTF-8 cannot."""
    with suppress(UnicodeEncodeError):
        if (data := msgspec.json.encode(value)).isascii():  # five times as fast
            return data + b"\n"
    return json.dumps(to_builtins(value), separators=(",", ":")).encode() + b"\n"


def decode(data: bytes | None) -> dict[str, Any] | None:
    """Return the object in the JSON, or None for none or a torn one."""
    try:
        value = json.loads(data or b"")
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def report(data: bytes | None) -> Report | None:
    """Return the report in the JSON, or None if it is not whole."""
    try:
        return convert(decode(data), Report)
    except ValidationError:
        return None


def new_token() -> str:
    """Return a name for a claim, unique on all machines.

    Later names are behind earlier ones.
    """
    return f"{time.time_ns():016x}-{os.getpid():x}{_OWN}{next(_NUMBERS):x}"


def claimed(token: str) -> float | None:
    """Seconds since the epoch at which the claim with this token was taken."""
    try:
        return int(token[:_TIME_DIGITS], 16) / 10**9
    except ValueError:
        return None


def token_of(name: str) -> str | None:
    """Return the token of the response with this name in active/, or None."""
    match = _TOKEN.fullmatch(name)
    return match[1] if match else None


def valid(id: str) -> bool:
    """Return True if the text can be an id, and part of file names."""
    plain = bool(id) and not id.startswith(".") and {"/", "\0", "\n"}.isdisjoint(id)
    return plain and len(os.fsencode(id)) <= MAX_ID_BYTES


def extension(name: str | None) -> str:
    """Return the suffix of a response's file name, or `.txt`.

    Only a plain and short suffix is kept.  A report that was made from git alone knows no name.
    """
    match = _SUFFIX.fullmatch(response_name(name or ""))
    return match[1] if match else ".txt"


def digest(*parts: str) -> str:
    """Return a name for the texts, in 64 hexadecimal digits.

    No other list of texts shares it.
    """
    text = "\0".join(f"{len(part)}:{part}" for part in parts)
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


# ---------------------------------------------------------------- the files of a batch


class BatchFiles(Struct, frozen=True):
    """The files of a batch.

    `state` is `held`, `rejected`, another verdict, or `gone` where there is no file any more.
    `body` is None for a response that was not read, whose entry moves.
    """

    token: str
    name: str
    id: str
    state: str
    report: bytes
    page: bytes
    body: bytes | None

    @property
    def entry(self) -> str:
        """Return the name of the response in active/."""
        return entry_name(self.token, self.name)

    @property
    def response(self) -> str:
        """Return the name of the response beside its report."""
        return f"{self.id}{extension(self.name)}"


# The report, the response and the time of a verdict, as files tell them.
Published = tuple[Report, bytes | None, float]


class Outbox:
    """The directories of the queue at `root` that patchq alone writes to."""

    def __init__(self, root: Path) -> None:
        self.active, self.done, self.rejected = (Folder(root / name) for name in PUBLIC[1:])

    def files(self, batch: BatchFiles) -> tuple[Folder, Wanted]:
        """Return the place of a batch, and its files in order."""
        folder = {"held": self.active, "rejected": self.rejected}.get(batch.state, self.done)
        first = batch.entry if folder is self.active else batch.response
        papers = {batch.id + PAGE: batch.page, batch.id + REPORT: batch.report}
        return folder, {first: batch.body, **papers}

    def show(self, batch: BatchFiles) -> None:
        """Write the missing files of a batch, or remove those of a gone one."""
        if batch.state == "gone":
            self._remove(batch)
            return
        folder, wanted = self.files(batch)
        private = {batch.entry}
        if b'"edit.secret"' in batch.report:
            private.add(batch.response)
        if batch.body is None and folder is not self.active:
            self.active.move(batch.entry, folder, batch.response)
        folder.write(wanted, private)
        if folder is not self.active:
            self.active.remove(batch.entry, batch.id + PAGE, batch.id + REPORT)

    def _remove(self, batch: BatchFiles) -> None:
        for folder in (self.done, self.rejected):
            status = folder.status(batch.response)
            if status and stat.S_ISDIR(status.st_mode):  # as it was dropped
                with folder.opened() as fd:
                    shutil.rmtree(batch.response, dir_fd=fd)
            folder.remove(batch.response, batch.id + PAGE, batch.id + REPORT)

    def published(self) -> list[Published]:
        """Return the batches whose reports can be read in done/ and rejected/, oldest first."""
        folders = (self.done, self.rejected)
        paths = (folder.path / name for folder in folders for name in folder.names())
        found = (self.published_as(path) for path in paths if path.name.endswith(REPORT))
        return sorted(filter(None, found), key=lambda each: each[2])

    def published_as(self, path: Path) -> Published | None:
        """Return the batch that a report in done/ or rejected/ tells of."""
        folder = self.done if path.parent == self.done.path else self.rejected
        id, status = path.name.removesuffix(REPORT), folder.status(path.name)
        found = report(folder.read(path.name))
        if status is None or found is None or found.id != id:
            return None
        body = folder.read(f"{id}{extension(found.source.name)}")
        return found, body, status.st_mtime


def entry_name(token: str, name: str) -> str:
    """Return the name in active/ of the response that came under that name."""
    room = 255 - len(token) - 1
    return f"{token}.{os.fsdecode(os.fsencode(name)[-room:])}"
