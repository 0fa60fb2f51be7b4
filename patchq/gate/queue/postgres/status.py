"""A cluster's state, and commands for the owner of a lane.

The owner of another lane passes commands on as well, and does not wait for their answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from time import monotonic, sleep
from typing import Any

from msgspec import Struct, to_builtins

from patchq.gate.errors import Busy
from patchq.gate.queue import spool
from patchq.gate.queue.database import VERSION
from patchq.gate.queue.postgres.database import DatabaseServer, noted, whereabouts

_PAUSE_SECONDS = 0.05
_LANES = """
    select l.name, s.name, s.host, s.pid, epoch() - s.beat,
        count(r) filter (where r.state = 'waiting'),
        count(r) filter (where r.state in ('claimed', 'ending')),
        count(r) filter (where r.state = 'held'),
        epoch() - min(r.came) filter (where r.state = 'waiting')
    from lanes l
    left join sessions s on holder(session_key(s.number)) = holder(lane_key(l.name))
    left join responses r
        on r.lane = l.name and r.state in ('waiting', 'claimed', 'held', 'ending')
    group by l.name, s.number order by l.name
"""
_WORKERS = """
    select number, name, host, pid, epoch() - began, epoch() - beat
    from sessions where beat is not null and alive(number) order by host, name, number
"""


class LaneState(Struct, frozen=True):
    """A lane: its owner, the numbers of responses, and two ages in seconds.

    The owner is in words, or None.  The ages are those of the owner's last beat and of the oldest
    waiting response.
    """

    lane: str
    owner: str | None
    beat: float | None
    waiting: int
    claimed: int
    held: int
    oldest: float | None


class WorkerState(Struct, frozen=True):
    """A worker: seconds since it began, and since its last beat."""

    name: str
    host: str
    pid: int
    began: float
    beat: float


class ClusterState(Struct, frozen=True):
    """The state of a cluster.

    `database` has nothing secret.  `repository` is the first commit of the repository's history, if
    it is recorded.  `ahead` are the seconds by which this machine's clock is ahead of the
    database's.
    """

    database: str
    version: int
    repository: str | None
    ahead: float
    lanes: tuple[LaneState, ...]
    workers: tuple[WorkerState, ...]

    def unserved(self, seconds: float) -> list[LaneState]:
        """Return the lanes in which something has waited for so long without a worker."""
        return [
            lane
            for lane in self.lanes
            if lane.owner is None and lane.oldest is not None and lane.oldest > seconds
        ]

    def to_json(self) -> Mapping[str, Any]:
        return to_builtins(self)  # type: ignore[no-any-return]


def look(database: str, *, writes: bool = False) -> ClusterState:
    """Ask the database; raises the fault that keeps it from answering.

    With `writes` also one that would keep a worker or a feeder from writing.
    """
    with closing(DatabaseServer(database, "status")) as connection:
        for change in ("responses set shown = shown", "sessions set beat = beat") if writes else ():
            connection.run(f"update {change} where false")
        lanes = [
            LaneState(
                row[0],
                None if row[1] is None else f"{row[1]} on {row[2]} (process {row[3]})",
                *row[4:],
            )
            for row in connection.all(_LANES)
        ]
        workers = [WorkerState(*row[1:]) for row in connection.all(_WORKERS)]
        return ClusterState(
            whereabouts(database),
            VERSION,
            noted(connection),
            connection.ahead(),
            tuple(lanes),
            tuple(workers),
        )


def lane_of(server: DatabaseServer, id: str) -> str | None:
    """Return the lane of a batch, which another machine may have entered."""
    return server.value("select lane from responses where id = :id", id=id)


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
