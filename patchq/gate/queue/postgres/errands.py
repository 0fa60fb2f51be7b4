"""Commands of people for the owner of a lane, and its answers.

The owner of another lane passes commands on as well, and does not wait for their answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from time import monotonic
from typing import Any

from patchq.gate.errors import Busy
from patchq.gate.queue import spool
from patchq.gate.queue.postgres.database import DatabaseServer

_LOOK_SECONDS = 1.0
_PAUSE_SECONDS = 0.03


def lane_of(server: DatabaseServer, id: str) -> str | None:
    """Return the lane of a batch, which another machine may have entered."""
    return next(iter(server.column("select lane from responses where id = :id", id=id)), None)


def ask(
    server: DatabaseServer, lane: str, words: Mapping[str, Any], patience: float
) -> Mapping[str, Any]:
    """Give a command and return its answer.

    Raises `errors.Busy` if no worker takes it up for `patience` seconds; then none will.
    """
    server.run("select listen()")
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
    return _answer(server, number, lane, patience)


def _answer(server: DatabaseServer, number: int, lane: str, patience: float) -> Mapping[str, Any]:
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
        server.hear(_LOOK_SECONDS)


def follow(server: DatabaseServer, feeder: str, seconds: float) -> None:
    """Wait until that feeder has published the changes of now, for so many seconds at most."""
    until = monotonic() + seconds
    unseen = "from responses where shown = 0 and feeder = :feeder"
    last = server.column(f"select max(change) {unseen}", feeder=feeder)[0]
    while monotonic() < until and server.column(
        f"select number {unseen} and change <= :last limit 1", feeder=feeder, last=last
    ):
        server.hear(_PAUSE_SECONDS)
