"""The state of a cluster: its lanes, their owners, what waits, and its workers."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from time import time
from typing import Any

from msgspec import Struct, to_builtins

from patchq.gate.queue.postgres.belonging import noted
from patchq.gate.queue.postgres.database import DatabaseServer, whereabouts
from patchq.gate.queue.schema import VERSION

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
    """A lane: its owner in words, or None; how many responses are where; seconds since the owner's
    last beat, and since the oldest that waits came."""

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
    """All of it; `database` has nothing secret, and `repository` is the commit with which the
    history of the one begins whose responses these are, where anybody has noted it; `ahead` are
    the seconds by which this machine's clock is ahead of the database's."""

    database: str
    version: int
    repository: str | None
    ahead: float
    lanes: tuple[LaneState, ...]
    workers: tuple[WorkerState, ...]

    def unserved(self, seconds: float) -> list[LaneState]:
        """The lanes in which something has waited for so long without a worker."""
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
            _ahead(connection),
            tuple(lanes),
            tuple(workers),
        )


def _ahead(database: DatabaseServer) -> float:
    """Return the seconds by which this machine's clock is ahead of the database's."""
    before = time()
    [there] = database.column("select epoch()")
    return float((before + time()) / 2 - there)
