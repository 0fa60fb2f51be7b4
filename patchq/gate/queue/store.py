"""The SQL store of a queue: its connection, its schema, and the messages of its errors.

Statements are texts with named parameters that PostgreSQL takes as well.  A transaction does not
wait for the disk: `flush`, or a flush of the file system, makes what was committed durable, and a
power cut takes only the last transactions, each as a whole.  A process has one connection for each
store, as long as anything uses it, and opens none before it forks.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import sqlite3
import stat
import struct
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from threading import RLock
from time import time, time_ns
from weakref import WeakValueDictionary, finalize

from patchq.gate.errors import Busy, DiskFault, Fault, UsageError
from patchq.gate.git import files
from patchq.gate.queue.database import VERSION, Database, Row, Taken, tables

# `LOCKS` has a locked byte for each session, and a new time after each event.
STORE, LOCKS = "store.db", "store.lock"
# The key that is set as long as the history's batches are not in the store, and its value where
# the store was lost.
UNREAD, LOST = "unread", "lost"
BUSY_SECONDS = 10.0
_OLDEST = (3, 35)  # the first SQLite with `returning`
REPAIR = "run `patchq fsck --repair`: it keeps the file aside and makes the store again"
# Changed rows after which the log goes into the file while nothing is to do, or in any case.  A log
# that begins anew writes over its blocks, which are quicker to flush than new ones.
CHANGES_IDLE, CHANGES_MOST = 300, 100_000
_FLOCK = struct.Struct("hhqqi4x")
_SET = getattr(fcntl, "F_OFD_SETLK", fcntl.F_SETLK)
_GET = getattr(fcntl, "F_OFD_GETLK", fcntl.F_GETLK)
_NO_LOG = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR)
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


class Damaged(DiskFault):
    """The store's file cannot be read as a database."""


class Store(Database):
    """The store beside the queue at `root`, or in memory without one."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._lock = RLock()
        self._writable = True
        with self._guarded():
            self._database = self._opened()
        finalize(self, self._database.close)
        self._checkpointed = self._database.total_changes

    def all(self, statement: str, **values: object) -> list[Row]:
        with self._guarded():
            return self._database.execute(statement, values).fetchall()

    def each(self, statement: str, rows: Iterable[Mapping[str, object]]) -> None:
        with self.transaction():
            self._database.executemany(statement, rows)

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        database = self._database
        with self._guarded():
            if database.in_transaction:
                yield
                return
            if self._writable and not self.is_current():
                raise DiskFault(
                    f"the store {self.root}/{STORE} was removed or replaced",
                    "start patchq again: it makes the store again from git and the reports",
                )
            database.execute("begin immediate")
            with database:  # commits, or rolls back
                yield

    def flush(self) -> None:
        log = self.root / f"{STORE}-wal"
        with contextlib.suppress(FileNotFoundError), files.opened(log, os.O_RDONLY) as fd:
            os.fdatasync(fd)

    def checkpoint(self, most: int) -> None:
        """Take the log into the file if more rows than that changed; it never waits."""
        changes = self._database.total_changes
        if changes - self._checkpointed > most:
            self._checkpointed = changes
            self.all("pragma wal_checkpoint(passive)")

    def backup(self, file: Path) -> None:
        """Write a copy of the store, as one file that was not there."""
        cure = "name a file in a place that can be written and has room"
        try:
            os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        except OSError as error:
            raise UsageError(f"{file} cannot be written: {error.strerror}", cure) from None
        try:
            self.all("vacuum into :file", file=str(file))
        except Fault:
            file.unlink(missing_ok=True)
            if shortage := files.shortage(file.parent):
                raise UsageError(f"{file} cannot be written: {shortage}", cure) from None
            raise

    def problems(self) -> list[str]:
        """Return what is wrong with the file's structure."""
        return [line for line in self.column("pragma quick_check(10)") if line != "ok"]

    @contextlib.contextmanager
    def _guarded(self) -> Iterator[None]:
        with self._lock:
            try:
                yield
            except sqlite3.IntegrityError as error:
                raise Taken(str(error)) from error
            except sqlite3.Error as error:
                raise self._fault(error) from error

    def _fault(self, error: sqlite3.Error) -> Fault:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        where = f"the store {self.root}/{STORE}"
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return Busy(
                f"another process has {where} locked for {BUSY_SECONDS:.0f} s",
                "nothing was lost: start again once that process is done",
            )
        if code in _DAMAGED:
            return Damaged(f"{where} cannot be read: {error}", f"{REPAIR}; no response was lost")
        why = f"{files.shortage(self.root)} ({error})".lstrip()
        cure = "make room, or make the queue directory writable"
        return DiskFault(
            f"{where} cannot be used: {why}", f"{cure}, then start again; no response was lost"
        )

    # The file.

    def _opened(self) -> sqlite3.Connection:
        if sqlite3.sqlite_version_info < _OLDEST:
            raise UsageError(
                f"SQLite {sqlite3.sqlite_version} is too old: patchq needs 3.35",
                "install a Python that brings a later one",
            )
        root, path, place = self.root, self.root / STORE, ":memory:"
        if root.is_dir():
            self._make(path)
            self._writable = os.access(path, os.W_OK) and os.access(root, os.W_OK)
            place = f"{path.absolute().as_uri()}?mode={'rw' if self._writable else 'ro'}"
        database = _connection(place)
        try:
            database.execute("select count(*) from sqlite_schema").fetchone()
        except sqlite3.OperationalError as error:  # the log cannot be made here: who looks, may
            if error.sqlite_errorcode & 0xFF not in _NO_LOG:
                raise
            self._writable = False
            database = _connection(f"{place.partition('?')[0]}?mode=ro&immutable=1")
        (found,) = database.execute("pragma user_version").fetchone()
        if found not in (0, VERSION):
            raise UsageError(
                f"the store in {self.root} has version {found} of the schema, and this patchq "
                f"needs {VERSION}",
                "install the patchq that made it, or run `patchq fsck --repair`, which makes the "
                "store again",
            )
        if self._writable:
            self._prepare(database, found)
        self._file = identity(path)
        database.create_function("alive", 1, lambda number: bool(number and alive(root, number)))
        database.create_function("epoch", 0, time)
        database.create_function("event_number", 1, lambda last: max(time_ns(), last + 1))
        return database

    def is_current(self) -> bool:
        """Return true if what was opened is what the queue has now."""
        found = identity(self.root / STORE)
        return found == self._file and (found is not None or not self.root.is_dir())

    def _make(self, path: Path) -> None:
        if not os.access(path.parent, os.W_OK):
            return
        # For the group at most: it has responses that were refused for a secret.
        folder = path.parent / "active"
        beside = (folder if folder.exists() else path.parent).stat()
        shared = beside.st_mode & 0o060 if beside.st_mode & stat.S_ISGID else 0
        for place in (path.with_name(LOCKS), path):
            with (
                contextlib.suppress(PermissionError),  # another user's
                files.opened(place, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, None, 0o600) as fd,
            ):
                if shared & ~os.fstat(fd).st_mode:
                    os.fchown(fd, -1, beside.st_gid)
                    os.fchmod(fd, 0o600 | shared)

    def _prepare(self, database: sqlite3.Connection, found: int) -> None:
        if not found:
            serial, number = "integer primary key autoincrement", "integer primary key"
            database.executescript(  # of two processes that do this at once, one finds it done
                "pragma journal_mode = wal; begin immediate;"
                f" {tables(serial, number)} pragma user_version = {VERSION};"
                f" insert or ignore into meta values ('{UNREAD}', 'history'); commit"
            )
        database.executescript(  # what is forgotten may be a secret
            "pragma synchronous = normal; pragma wal_autocheckpoint = 0;"
            " pragma secure_delete = fast;"
        )


def _connection(place: str) -> sqlite3.Connection:
    return sqlite3.connect(
        place, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False, uri=True
    )


def identity(path: Path) -> tuple[int, int] | None:
    """Return the device and inode of a path, or None."""
    with contextlib.suppress(OSError):
        found = os.lstat(path)
        return found.st_dev, found.st_ino
    return None


_opening = RLock()  # hooks run in threads
_stores: WeakValueDictionary[str, Store] = WeakValueDictionary()


def opened(root: Path) -> Store:
    """Return this process's store beside the queue at `root`."""
    with _opening:
        store = _stores.get(str(root))
        if store is None or not store.is_current():
            store = _stores[str(root)] = Store(root)
        return store


def there(root: Path) -> Store | None:
    """Return the store beside the queue at `root`, if there is one."""
    return opened(root) if (root / STORE).is_file() else None


def ask(root: Path, statement: str, **values: object) -> list[Row]:
    """Return the rows of one statement, or none without a store.

    The store is that beside the queue at `root`.
    """
    store = there(root)
    return store.all(statement, **values) if store else []


# ---------------------------------------------------------------- sessions


def hold(root: Path, session: int) -> int:
    """Return a descriptor that holds the lock of a session until it is closed."""
    fd = os.open(root / LOCKS, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    try:
        fcntl.fcntl(fd, _SET, _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, session, 1, 0))
    except BaseException:
        os.close(fd)
        raise
    return fd


def alive(root: Path, session: int) -> bool:
    """Return true if a process holds the lock of the session."""
    asked = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, session, 1, 0)
    with (
        contextlib.suppress(FileNotFoundError),
        files.opened(root / LOCKS, os.O_RDONLY | os.O_NOFOLLOW) as fd,
    ):
        return bool(_FLOCK.unpack(fcntl.fcntl(fd, _GET, asked))[0] != fcntl.F_UNLCK)
    return False


def ring(root: Path) -> None:
    """Let those who watch the queue know that there are events."""
    now = time_ns()
    with contextlib.suppress(OSError):
        try:
            os.utime(root / LOCKS, ns=(now, now))
        except PermissionError:  # another user's file takes no other time than now
            os.utime(root / LOCKS)
