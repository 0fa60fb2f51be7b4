"""One connection and the meaning of its errors; the tables and their repository.

Losing the connection is losing everything that it held: lanes and claims.  So nothing is tried
again here behind anybody's back: the fault goes up, and the next call begins a session of its own,
which owns nothing.

Addresses of a remote differ from machine to machine, and branches have the same names everywhere.
So a repository is known by the commit with which its default target begins: every whole clone has
it, and a response for another repository is not taken in here.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path
from threading import RLock
from time import monotonic, sleep, time
from typing import Any

import psycopg
from psycopg import Connection, conninfo, errors
from psycopg.rows import TupleRow

from patchq.gate.errors import Busy, DatabaseFault, UsageError
from patchq.gate.git.repository import Repository
from patchq.gate.queue import spool
from patchq.gate.queue.database import VERSION, Database, Row, Taken, tables

_FUNCTIONS = Path(__file__).with_name("functions.sql")
ROOT = "repository"  # the key of the first commit of the default target
# Limits after which a lost peer is noticed; the connection string's own count first.
_PATIENCE: Mapping[str, int] = {
    "connect_timeout": 10,
    "keepalives": 1,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}
# Locks may be held by a frozen process.
_SETTINGS = "set synchronous_commit = off; set lock_timeout = '60s'"
# Errors that another connection may cure. A standby takes no writes until it is promoted, and the
# server ends a process that was frozen inside a transaction.
_LOST = (
    psycopg.OperationalError,
    psycopg.InterfaceError,
    errors.ReadOnlySqlTransaction,
    errors.IdleInTransactionSessionTimeout,
)
# Words of errors that do not pass by themselves; while connecting, the driver tells no code.
_CURES = {
    "authentication failed": "check the user and the password in PATCHQ_DATABASE",
    "no password supplied": "give the password in PATCHQ_DATABASE, or in ~/.pgpass",
    "does not exist": "create it, or correct its name in PATCHQ_DATABASE",
    "pg_hba.conf": "check the user, and the server's pg_hba.conf",
    "permission denied": "give the role rights on the schema and its tables",
}
_CONNECTING = "see whether the server runs, and is where PATCHQ_DATABASE says; nothing was lost"


def whereabouts(database: str) -> str:
    """Return the server, the database and the user, without anything secret."""
    known = _options(database)
    host = ":".join(str(known[key]) for key in ("host", "port") if known.get(key))
    user = f" as {known['user']}" if known.get("user") else ""
    return f"{known.get('dbname') or 'the default database'} on {host or 'this machine'}{user}"


def _options(database: str) -> dict[str, Any]:
    try:
        return conninfo.conninfo_to_dict(database)
    except psycopg.Error:  # its message may quote a password
        raise UsageError(
            "the database's connection string cannot be read",
            "expected `postgresql://USER:PASSWORD@HOST/DATABASE`, or `host=… dbname=… user=…`",
        ) from None


def connect(database: str, name: str) -> Connection[TupleRow]:
    """Return a connection that commits each statement, without waiting for the disk.

    `sync` waits for it.
    """
    options = {**_PATIENCE, **_options(database), "application_name": f"patchq {name}"[:63]}
    where = whereabouts(database)
    try:
        connection = psycopg.connect(conninfo.make_conninfo(**options), autocommit=True)
        connection.execute(_SETTINGS)
        return connection
    except psycopg.Error as error:
        raise _fault(error, f"cannot connect to {where}") from None


def _fault(error: psycopg.Error, what: str) -> DatabaseFault:
    message = " ".join(str(error).split())
    cure = next((cure for word, cure in _CURES.items() if word in message), None)
    lost = cure is None and isinstance(error, _LOST)
    hint = cure or (_CONNECTING if lost else "this is a defect of patchq")
    return DatabaseFault(f"{what}: {message}", hint, again=lost)


_PARAMETER = re.compile(r"(?<![:\w]):([a-z][a-z0-9_]*)")


@cache
def translated(statement: str) -> bytes:
    """Return the statement with its named parameters as psycopg wants them."""
    return _PARAMETER.sub(r"%(\1)s", statement).encode()


class DatabaseServer(Database):
    """The connection of one process, made when needed, with a queue session."""

    def __init__(
        self,
        database: str,
        name: str,
        *,
        checks: bool = True,
        begin: Callable[[int], None] = lambda session: None,
    ) -> None:
        self.conninfo = database
        self.name = name
        self._checks = checks
        self._begin = begin  # called with each new session
        self._connection: Connection[TupleRow] | None = None
        self._session: int | None = None
        self._lock = RLock()
        self._depth = 0

    @property
    def lost(self) -> bool:
        """Return True if there is no session now, so nothing is owned."""
        return self._connection is None or self._connection.closed or self._session is None

    @property
    def connection(self) -> Connection[TupleRow]:
        if self._connection is None or self._connection.closed:
            self._session = None
            self._connection = connect(self.conninfo, self.name)
            if self._checks and not version(self._connection):
                raise UsageError(
                    "the database has no tables of patchq", "run `patchq cluster migrate`"
                )
        return self._connection

    @property
    def session(self) -> int:
        """The number of this session, which lives as long as the connection."""
        if self.lost or self._session is None:
            # One statement: a row that is seen without its lock is of a dead session.
            [(number, _)] = self.all(
                "with new as (insert into sessions (name, host, pid, began)"
                " values (:name, :host, :pid, epoch()) returning number)"
                " select number, pg_advisory_lock(session_key(number)) from new",
                name=self.name,
                host=socket.gethostname(),
                pid=os.getpid(),
            )
            self._begin(number)
            self._session = number
        return self._session

    def all(self, statement: str, **values: object) -> list[Row]:
        with self._lock, self.faults():
            return self.connection.execute(translated(statement), values).fetchall()

    def run(self, statement: str, **values: object) -> None:
        with self._lock, self.faults():
            self.connection.execute(translated(statement), values)

    def each(self, statement: str, rows: Iterable[Mapping[str, object]]) -> None:
        with self.transaction(), self.faults():
            self.connection.cursor().executemany(translated(statement), list(rows))

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """See `Database`; what returns no rows is not waited for before the end."""
        with self._lock:
            if self._depth:
                yield
                return
            self._depth = 1
            try:
                with self.faults(), self.connection.pipeline(), self.connection.transaction():
                    yield
            finally:
                self._depth = 0

    def ahead(self) -> float:
        """Return the seconds by which this machine's clock is ahead of the database's."""
        before = time()
        [there] = self.column("select epoch()")
        return float((before + time()) / 2 - there)

    def flush(self) -> None:
        """Wait until all that was committed, by anyone, is on the server's disk.

        This is a transaction that waits for that, with something to write.
        """
        self.run(
            "select set_config('synchronous_commit', 'on', true),"
            " pg_logical_emit_message(true, 'patchq', '')"
        )

    @contextmanager
    def faults(self) -> Iterator[None]:
        """Raise what the driver raises in the block as the fault that it is."""
        try:
            yield
        except errors.UniqueViolation as error:
            raise Taken(str(error)) from error
        except psycopg.Error as error:
            if isinstance(error, _LOST):
                self.close()
            raise _fault(error, f"the queue in {whereabouts(self.conninfo)}") from None

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = self._session = None


# ---------------------------------------------------------------- the tables


def version(connection: Connection[TupleRow]) -> int:
    """Return the version of the tables, 0 if there are none.

    Raises `UsageError` for that of another patchq.
    """
    try:
        row = connection.execute("select max(version) from migrations").fetchone()
    except errors.UndefinedTable:
        return 0
    found = (row and row[0]) or 0
    if found in (0, VERSION):
        return int(found)
    raise UsageError(
        f"the database has version {found} of patchq's tables, and this patchq needs {VERSION}",
        "install the patchq that the other machines have, or name an empty schema",
    )


def migrate(connection: Connection[TupleRow]) -> bool:
    """Make the tables, all or nothing; return False where they are there.

    Two who do this at once are one after the other, and the second has nothing to do.
    """
    with connection.transaction():
        connection.execute("select pg_advisory_xact_lock(hashtextextended('patchq migrate', 0))")
        connection.execute(
            "create table if not exists migrations (version integer primary key,"
            " applied timestamptz not null default clock_timestamp())"
        )
        if version(connection):
            return False
        serial, number = "bigint generated always as identity primary key", "bigint primary key"
        connection.execute(tables(serial, number).encode())
        connection.execute(_FUNCTIONS.read_bytes())
        connection.execute("insert into migrations (version) values (%s)", (VERSION,))
    return True


def belongs(database: DatabaseServer, repo: Repository, tip: str | None) -> None:
    """Raise `UsageError` if the tables are another repository's.

    Tables without an owner become this one's.  `tip` is the default target's, if there is one.  A
    shallow clone cannot tell.
    """
    if repo.shallow:
        return
    root = database.recall(ROOT)
    if root is None and tip is not None:
        database.run(
            "insert into meta (key, value) values (:key, :root) on conflict do nothing",
            key=ROOT,
            root=repo.root(tip),
        )
        root = database.recall(ROOT)
    if root is not None and not repo.exists(root):
        raise UsageError(*foreign(root))


def foreign(root: str) -> tuple[str, str]:
    """Return the message and the cure for a clone without that commit."""
    return (
        "the database carries the queue of another repository, whose history begins with "
        f"{root[:12]}, which is not here",
        "give each repository a database, or a schema, of its own (docs/cluster.md)",
    )


# ---------------------------------------------------------------- what people see and command

_PAUSE_SECONDS = 0.05
_SOON_SECONDS = 10.0  # a lane may wait for so long before it counts as not served
# Ages in seconds: of the owner's last beat, and of the oldest waiting response.
_LANES = """
    select to_jsonb(lanes) from (
        select l.name lane, s.name || ' on ' || s.host || ' (process ' || s.pid || ')' "owner",
            epoch() - s.beat beat,
            count(r) filter (where r.state = 'waiting') waiting,
            count(r) filter (where r.state in ('claimed', 'ending')) claimed,
            count(r) filter (where r.state = 'held') held,
            epoch() - min(r.came) filter (where r.state = 'waiting') oldest
        from lanes l
        left join sessions s on holder(session_key(s.number)) = holder(lane_key(l.name))
        left join responses r
            on r.lane = l.name and r.state in ('waiting', 'claimed', 'held', 'ending')
        group by l.name, s.number
    ) lanes order by lane
"""
_WORKERS = """
    select jsonb_build_object('name', name, 'host', host, 'pid', pid,
        'began', epoch() - began, 'beat', epoch() - beat)
    from sessions where beat is not null and alive(number) order by host, name, number
"""


def look(database: str) -> dict[str, Any]:
    """Return the cluster's state; raises the fault that keeps the database from answering.

    `database` has nothing secret.  `repository` is the first commit of the repository's history, if
    it is recorded.  `ahead` are the seconds by which this machine's clock is ahead of the
    database's.  A lane without an owner has None, and is `unserved` if something waits there.
    """
    with closing(DatabaseServer(database, "status")) as server:
        lanes = server.column(_LANES)
        return {
            "database": whereabouts(database),
            "version": VERSION,
            "repository": server.recall(ROOT),
            "ahead": server.ahead(),
            "lanes": lanes,
            "unserved": [
                lane["lane"]
                for lane in lanes
                if lane["owner"] is None and (lane["oldest"] or 0.0) > _SOON_SECONDS
            ],
            "workers": server.column(_WORKERS),
        }


def ask(
    server: DatabaseServer, lane: str, words: Mapping[str, Any], patience: float
) -> Mapping[str, Any]:
    """Give a command and return its answer.

    Raises `errors.Busy` if no worker takes it up for `patience` seconds; then none will.
    """
    server.run("delete from errands where answer is not null and asked < epoch() - 86400")
    with server.transaction():
        server.run("set local synchronous_commit = on")
        server.run("insert into lanes (name) values (:lane) on conflict do nothing", lane=lane)
        [number] = server.column(
            "insert into errands (lane, words, asked) values (:lane, :words, epoch())"
            " returning number",
            lane=lane,
            words=spool.encode(words),
        )
        server.run("select tell('asked', :lane)", lane=lane)
    until = monotonic() + patience
    while True:
        row = server.one(
            "select answer, alive(session) from errands where number = :number", number=number
        )
        if row and row[0] is not None:
            return spool.decode(row[0]) or {}
        if row and row[1]:
            until = monotonic() + patience
        elif monotonic() > until and server.column(
            "delete from errands where number = :number and answer is null"
            " and not coalesce(alive(session), false) returning number",
            number=number,
        ):
            raise Busy(
                f"no worker serves the branch {lane!r}, so it is not done",
                "see `patchq cluster status`, start a worker, then say it again",
            )
        sleep(_PAUSE_SECONDS)


def follow(server: DatabaseServer, feeder: str, seconds: float) -> None:
    """Wait at most `seconds` until the feeder has published all changes so far."""
    until = monotonic() + seconds
    unseen = "from responses where shown = 0 and feeder = :feeder"
    last = server.column(f"select max(change) {unseen}", feeder=feeder)[0]
    while monotonic() < until and server.column(
        f"select number {unseen} and change <= :last limit 1", feeder=feeder, last=last
    ):
        sleep(_PAUSE_SECONDS)
