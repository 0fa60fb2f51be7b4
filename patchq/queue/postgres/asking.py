"""Asking the owner of a lane to do what a person decided, and waiting for the answer."""

from __future__ import annotations

from collections.abc import Mapping
from time import monotonic
from typing import Any

from patchq.model.errors import Busy
from patchq.queue import spool
from patchq.queue.postgres.database import Database

_LOOK_SECONDS = 1.0


def ask(database: str, lane: str, words: Mapping[str, Any], patience: float) -> Mapping[str, Any]:
    """The answer; `errors.Busy` where nobody took it up for `patience` seconds, and then nobody
    will."""
    connection = Database(database, "asks")
    try:
        connection.run("listen patchq")
        connection.run(
            "delete from errands where answer is not null"
            " and asked < clock_timestamp() - interval '1 day'"
        )
        with connection.transaction():
            connection.run("set local synchronous_commit = on")
            connection.run("insert into lanes (name) values (%s) on conflict do nothing", lane)
            [number] = connection.column(
                "insert into errands (lane, words) values (%s, %s) returning number",
                lane,
                spool.encode(words),
            )
            connection.run("select pg_notify('patchq', 'asked ' || %s)", lane)
        return _answer(connection, number, lane, patience)
    finally:
        connection.close()


def lane_of(database: str, id: str) -> str | None:
    """The lane of a batch that this machine may not know: a worker made it."""
    connection = Database(database, "asks")
    try:
        return next(iter(connection.column("select lane from responses where id = %s", id)), None)
    finally:
        connection.close()


def _answer(connection: Database, number: int, lane: str, patience: float) -> Mapping[str, Any]:
    until = monotonic() + patience
    while True:
        row = connection.one("select answer, alive(session) from errands where number = %s", number)
        if row and row[0] is not None:
            return spool.decode(row[0]) or {}
        if row and row[1]:
            until = monotonic() + patience
        elif monotonic() > until and connection.column(
            "delete from errands where number = %s and answer is null"
            " and not coalesce(alive(session), false) returning number",
            number,
        ):
            raise Busy(
                f"no worker serves the branch {lane!r}, so nobody does it",
                "see `patchq cluster status`, start a worker, then say it again",
            )
        connection.hear(_LOOK_SECONDS)
