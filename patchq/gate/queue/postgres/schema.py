"""Make the tables, and check that they are those of this version."""

from __future__ import annotations

from pathlib import Path

from psycopg import Connection, errors
from psycopg.rows import TupleRow

from patchq.gate.errors import UsageError
from patchq.gate.queue.schema import VERSION, tables

_FUNCTIONS = Path(__file__).with_name("functions.sql")


def check(connection: Connection[TupleRow]) -> int:
    """Return the version of the tables, 0 if there are none; raise where it is another one's."""
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


def require(connection: Connection[TupleRow]) -> None:
    """Raise `UsageError` unless the tables are there, in this version."""
    if not check(connection):
        raise UsageError("the database has no tables of patchq", "run `patchq cluster migrate`")


def migrate(connection: Connection[TupleRow]) -> list[str]:
    """Make the tables, all or nothing; return what was applied.

    Two who do this at once are one after the other, and the second has nothing to do.
    """
    with connection.transaction():
        connection.execute("select pg_advisory_xact_lock(hashtextextended('patchq migrate', 0))")
        row = connection.execute("select current_schema()").fetchone()
        if row is None or row[0] is None:
            raise UsageError(
                "the database has no schema for the tables",
                "create the one that the connection's `search_path` names",
            )
        connection.execute(
            "create table if not exists migrations (version integer primary key,"
            " name text not null, applied timestamptz not null default clock_timestamp())"
        )
        if check(connection):
            return []
        for statement in tables("bigint generated always as identity primary key",
                                "bigint primary key"):  # fmt: skip
            connection.execute(statement.encode())
        connection.execute(_FUNCTIONS.read_bytes())
        connection.execute(
            "insert into migrations (version, name) values (%s, %s)", (VERSION, "queue")
        )
    return ["queue"]
