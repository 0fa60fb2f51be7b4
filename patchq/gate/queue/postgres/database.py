"""One connection, and what its errors mean.

Losing the connection is losing everything that it held: lanes and claims.  So nothing is tried
again here behind anybody's back: the fault goes up, and the next call begins a session of its own,
which owns nothing.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, LiteralString
from weakref import WeakSet

import psycopg
from psycopg import Connection, Cursor, conninfo, errors
from psycopg.rows import TupleRow

from patchq.gate.errors import DatabaseFault, UsageError

_PATIENCE: Mapping[str, int] = {
    "connect_timeout": 10,
    "keepalives": 1,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}
"""How soon a peer that is gone is noticed; what the connection string says itself counts."""
_CURES = (
    (errors.InvalidPassword, "check the user and the password in PATCHQ_DATABASE"),
    (errors.InvalidAuthorizationSpecification, "check the user, and the server's pg_hba.conf"),
    (errors.InvalidCatalogName, "create the database, or correct its name in PATCHQ_DATABASE"),
    (errors.InsufficientPrivilege, "give the role rights on the schema and its tables"),
)
"""What does not pass by itself."""
_LOST = (
    psycopg.OperationalError,
    psycopg.InterfaceError,
    errors.ReadOnlySqlTransaction,
    errors.IdleInTransactionSessionTimeout,
)
"""What another connection may cure.  A standby takes no writes until it is promoted; and a process
that was frozen inside a transaction finds that the server has ended it."""
_REFUSED = {
    "authentication failed": "check the user and the password in PATCHQ_DATABASE",
    "no password supplied": "give the password in PATCHQ_DATABASE, or in ~/.pgpass",
    "does not exist": "create it, or correct its name in PATCHQ_DATABASE",
    "pg_hba.conf": "check the user, and the server's pg_hba.conf",
}
"""The same while connecting, where the driver tells no code."""
_CONNECTING = "see whether the server runs, and is where PATCHQ_DATABASE says; nothing was lost"


def whereabouts(database: str) -> str:
    """The server, the database and the user, without anything secret."""
    known = _options(database)
    host = known.get("host") or known.get("hostaddr") or "this machine"
    port = f":{known['port']}" if known.get("port") else ""
    name = known.get("dbname") or known.get("user") or "the default database"
    user = f" as {known['user']}" if known.get("user") else ""
    return f"{name} on {host}{port}{user}"


def _options(database: str) -> dict[str, Any]:
    try:
        return conninfo.conninfo_to_dict(database)
    except psycopg.Error:  # its message may quote a password
        raise UsageError(
            "the database's connection string cannot be read",
            "expected `postgresql://USER:PASSWORD@HOST/DATABASE`, or `host=… dbname=… user=…`",
        ) from None


def connect(database: str, name: str) -> Connection[TupleRow]:
    """A connection that commits each statement, and leaves it to `sync` to wait for the disk."""
    options = {**_PATIENCE, **_options(database), "application_name": f"patchq {name}"[:63]}
    where = whereabouts(database)
    try:
        connection = psycopg.connect(conninfo.make_conninfo(**options), autocommit=True)
        connection.execute("set synchronous_commit = off")
        return connection
    except psycopg.Error as error:
        raise _fault(error, f"cannot connect to {where}") from None


def _fault(error: psycopg.Error, what: str) -> DatabaseFault:
    message = " ".join(str(error).split())
    for kind, cure in _CURES:
        if isinstance(error, kind):
            return DatabaseFault(f"{what}: {message}", cure, again=False)
    if error.sqlstate is None:
        for word, cure in _REFUSED.items():
            if word in message:
                return DatabaseFault(f"{what}: {message}", cure, again=False)
    lost = isinstance(error, _LOST)
    hint = _CONNECTING if lost else "this is a defect of patchq"
    return DatabaseFault(f"{what}: {message}", hint, again=lost)


_open: WeakSet[Database] = WeakSet()


class Database:
    """The connection of one process, made when it is needed, and a session of the queue on it.

    A child that this process forks makes a connection of its own: two who speak on one would each
    read the other's answers.
    """

    def __init__(self, database: str, name: str, *, checks: bool = True) -> None:
        self.conninfo = database
        self.name = name
        self._checks = checks
        self._connection: Connection[TupleRow] | None = None
        self._session: int | None = None
        self._parents: Connection[TupleRow] | None = None
        self.forked = False
        """Whether this is a child's, whose parent has what it had in hand."""
        _open.add(self)

    def disown(self) -> None:
        """Leave the connection to the process that this one was forked from.  It is kept, unused:
        its end would be told to the server."""
        self._parents, self._connection, self._session = self._connection, None, None
        self.forked = True

    @property
    def lost(self) -> bool:
        """Whether there is no session (any more), and with it nothing that it owned."""
        return self._connection is None or self._connection.closed or self._session is None

    @property
    def connection(self) -> Connection[TupleRow]:
        if self._connection is None or self._connection.closed:
            self._session = None
            self._connection = connect(self.conninfo, self.name)
            if self._checks:
                from patchq.gate.queue.postgres.schema import check

                with self.faults():
                    check(self._connection)
        return self._connection

    @property
    def session(self) -> int:
        """The number of this session, which lives as long as the connection."""
        connection = self.connection
        if self._session is None:
            with self.faults():
                # One statement: a row that is seen without its lock is of a dead session.
                number, _ = self._row(
                    connection.execute(
                        "with new as (insert into sessions (name, host, pid) values (%s, %s, %s)"
                        " returning id) select id, pg_advisory_lock(session_key(id)) from new",
                        (self.name, socket.gethostname(), os.getpid()),
                    )
                )
            self._session = number
        return self._session

    def run(self, query: LiteralString, *values: object, **named: object) -> Cursor[TupleRow]:
        """One statement, which is a transaction by itself."""
        with self.faults():
            return self.connection.execute(query, named or values)

    def all(self, query: LiteralString, *values: object, **named: object) -> list[TupleRow]:
        with self.faults():
            return self.connection.execute(query, named or values).fetchall()

    def one(self, query: LiteralString, *values: object, **named: object) -> TupleRow | None:
        with self.faults():
            return self.connection.execute(query, named or values).fetchone()

    def column(self, query: LiteralString, *values: object, **named: object) -> list[Any]:
        return [row[0] for row in self.all(query, *values, **named)]

    def flush(self) -> None:
        """Wait until everything that was committed before is on the server's disk, whoever did it:
        a transaction that waits for that, with something to write."""
        self.run(
            "select set_config('synchronous_commit', 'on', true),"
            " pg_logical_emit_message(true, 'patchq', '')"
        )

    def hear(self, seconds: float) -> None:
        """Wait until something is told that this connection listens to."""
        with self.faults():
            for _ in self.connection.notifies(timeout=seconds, stop_after=1):
                pass

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Statements that come true together."""
        with self.faults(), self.connection.transaction():
            yield

    @contextmanager
    def faults(self) -> Iterator[None]:
        """What the driver raises inside the block is told as the fault that it is."""
        try:
            yield
        except psycopg.Error as error:
            if isinstance(error, _LOST):
                self.close()
            raise _fault(error, f"the queue in {whereabouts(self.conninfo)}") from None

    @staticmethod
    def _row(cursor: Cursor[TupleRow]) -> TupleRow:
        row = cursor.fetchone()
        assert row is not None
        return row

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = self._session = None


def _disown() -> None:
    for database in list(_open):
        database.disown()


os.register_at_fork(after_in_child=_disown)
