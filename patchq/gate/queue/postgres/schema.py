"""The tables' versions: numbered SQL files, each applied once and recorded.

A process works with exactly the version that it knows.  So machines are updated one after the
other like this: stop, install, `patchq cluster migrate` once, start.
"""

from __future__ import annotations

from pathlib import Path

from psycopg import Connection, errors
from psycopg.rows import TupleRow

from patchq.gate.errors import UsageError

_FILES = sorted((Path(__file__).parent / "sql").glob("*.sql"))
VERSION = len(_FILES)


def version(connection: Connection[TupleRow]) -> int:
    """The version of the tables that the database has; 0: none."""
    try:
        row = connection.execute("select max(version) from migrations").fetchone()
    except errors.UndefinedTable:
        return 0
    return (row and row[0]) or 0


def check(connection: Connection[TupleRow]) -> None:
    """Raise `UsageError` unless the tables are those that this patchq knows."""
    found = version(connection)
    if found == VERSION:
        return
    if found == 0:
        raise UsageError("the database has no tables of patchq", "run `patchq cluster migrate`")
    if found < VERSION:
        raise UsageError(
            f"the database has version {found} of patchq's tables, and this patchq needs {VERSION}",
            "stop the workers, then run `patchq cluster migrate`",
        )
    raise UsageError(
        f"the database has version {found} of patchq's tables, and this patchq knows {VERSION}",
        "install the patchq that the other machines have",
    )


def migrate(connection: Connection[TupleRow]) -> list[str]:
    """Bring the tables to this version, all or nothing; the files that were applied.

    Two who do this at once are one after the other, and the second has nothing to do.
    """
    applied = []
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
        found = version(connection)
        if found > VERSION:
            check(connection)
        for number, file in enumerate(_FILES[found:], found + 1):
            connection.execute(file.read_bytes())
            connection.execute(
                "insert into migrations (version, name) values (%s, %s)", (number, file.stem)
            )
            applied.append(file.stem)
    return applied
