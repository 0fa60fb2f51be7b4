"""Asking the owner of a lane to do what a person decided, and waiting for the answer."""

from __future__ import annotations

from collections.abc import Mapping
from time import monotonic
from types import TracebackType
from typing import Any

from patchq.gate.errors import Busy
from patchq.gate.queue import spool
from patchq.gate.queue.postgres.database import Database

_LOOK_SECONDS = 1.0
_PAUSE_SECONDS = 0.03


class Asking:
    """One connection, as long as the block runs."""

    def __init__(self, database: str) -> None:
        self._database = Database(database, "asks")

    def __enter__(self) -> Asking:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: object, trace: TracebackType | None
    ) -> None:
        self._database.close()

    def lane_of(self, id: str) -> str | None:
        """The lane of a batch that this machine may not know: another one entered it."""
        found = self._database.column("select lane from responses where id = %s", id)
        return next(iter(found), None)

    def ask(self, lane: str, words: Mapping[str, Any], patience: float) -> Mapping[str, Any]:
        """The answer; `errors.Busy` where nobody took it up for `patience` seconds, and then nobody
        will."""
        connection = self._database
        connection.run("select listen()")
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
            connection.run("select tell('asked', %s)", lane)
        return self._answer(number, lane, patience)

    def _answer(self, number: int, lane: str, patience: float) -> Mapping[str, Any]:
        connection, until = self._database, monotonic() + patience
        while True:
            row = connection.one(
                "select answer, alive(session) from errands where number = %s", number
            )
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

    def follow(self, feeder: str, seconds: float) -> None:
        """Wait until that feeder has published what has changed by now, for so long at most: what
        was decided on, and what follows from it."""
        until = monotonic() + seconds
        last = self._database.column(
            "select max(change) from responses where feeder = %s and change > seen", feeder
        )
        while monotonic() < until and self._database.column(
            "select number from responses where feeder = %s and change > seen and change <= %s"
            " limit 1",
            feeder,
            *last,
        ):
            self._database.hear(_PAUSE_SECONDS)
