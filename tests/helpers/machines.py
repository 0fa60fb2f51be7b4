"""Several machines on one cluster: clones of a shared remote, with workers and feeders as
processes."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path

import psycopg

from tests.helpers import processes
from tests.helpers.command import patchq
from tests.helpers.gitrepo import git, make_repo, write_config
from tests.helpers.processes import Point, Process

SECONDS = 60.0


class Machines:
    """Below `root`, with `hub.git` as the remote that all share."""

    def __init__(self, root: Path, database: str, files: Mapping[str, str], config: str) -> None:
        self.root, self.database, self.config = root, database, config
        make_repo(root / "seed", files)
        git("clone", "-q", "--bare", "seed", "hub.git", cwd=root)
        self.hub = root / "hub.git"
        self.running: list[Process] = []

    def clone(self, name: str) -> Path:
        place = self.root / name
        if not place.exists():
            git("clone", "-q", "hub.git", name, cwd=self.root)
            write_config(place, f"version: 1\ntarget: main\n{self.config}")
            patchq("init", cwd=place)
        return place

    def start(self, name: str, *words: str, dies: Point | None = None) -> Process:
        """A process of `patchq` in the clone; what it says is in the clone's `log`."""
        place = self.clone(name)
        environ = {"PATCHQ_DATABASE": self.database}
        process = processes.start(*words, cwd=place, log=place / "log", environ=environ, dies=dies)
        self.running.append(process)
        return process

    def serving(self, name: str) -> None:
        """Wait until the worker of that name is at the queue."""
        with psycopg.connect(self.database, autocommit=True) as connection:
            query = "select count(*) from sessions where name = %s and alive(number)"
            self.soon(lambda: connection.execute(query, [name]).fetchone() != (0,))

    def log(self, name: str) -> str:
        return (self.root / name / "log").read_text()

    def soon(self, holds: Callable[[], object]) -> None:
        until = time.monotonic() + SECONDS
        while not holds():
            logs = [f"{log}:\n{log.read_text()[-3000:]}" for log in self.root.glob("*/log")]
            assert time.monotonic() < until, "\n".join(logs)
            time.sleep(0.02)

    def close(self) -> None:
        processes.end(self.running)
