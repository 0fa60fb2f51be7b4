"""What every part of the cluster's bench stands on: the server, the command, the sizes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.cluster.fleet import Fleet, Sent
from bench.cluster.judge import judge
from bench.cluster.server import ServerOnce
from bench.git import BenchError


@dataclass(frozen=True, slots=True)
class ClusterGround:
    """`server` is None where somebody else's database is used, to which `database` leads."""

    room: Path
    command: Sequence[str]
    database: str
    server: ServerOnce | None
    rounds: int
    quick: bool
    workers: int = 4
    branches: int = 8

    def size(self, whole: int, quick: int) -> int:
        return quick if self.quick else whole

    @contextmanager
    def fleet(
        self, name: str, *, files: int, branches: Sequence[str] = ("main",), config: str = ""
    ) -> Iterator[Fleet]:
        fleet = Fleet(self.room / name, self.command, self.database, files, branches, config)
        try:
            yield fleet
        finally:
            fleet.close()

    def check(self, fleet: Fleet, sent: Sequence[Sent]) -> None:
        """No figure counts of a run that was not right."""
        wrong = judge(fleet, sent)
        if wrong:
            raise BenchError("\n".join(map(str, wrong[:20])))
