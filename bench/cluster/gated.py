"""A fleet in which each process reaches the database and the remote through gates of its own."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from psycopg import conninfo

from bench.cluster.fleet import Fleet
from bench.cluster.gate import Gate, Push, Statements, Trap, Upstream
from bench.git import environment


@dataclass
class GatedFleet(Fleet):
    """The remote answers by `git daemon`; the database is on a socket in the directory that its
    connection string names."""

    gates: dict[str, tuple[Gate, Gate]] = field(default_factory=dict)

    def clone(self, name: str, config: str | None = None) -> Path:
        place = super().clone(name, config)
        if name not in self.gates:
            database, remote = self._doors(name)
            self.gates[name] = database, remote
            url = f"git://127.0.0.1:{remote.port}/hub.git"
            self.git(place, "config", "remote.origin.url", url)
        return place

    def _doors(self, name: str) -> tuple[Gate, Gate]:
        to_database = partial(to_socket, self.database)
        to_remote = partial(_to_git, self.root, self.home)
        return Gate(name, to_database, Statements), Gate(name, to_remote, Push)

    def start(self, name: str, *words: str, **more: str) -> None:
        self.clone(name)
        database, _ = self.gates[name]
        there = {"host": "127.0.0.1", "port": str(database.port)}
        plain = {"sslmode": "disable", "gssencmode": "disable"}
        through = conninfo.make_conninfo(self.conninfo, **there, **plain)
        super().start(name, *words, **({"PATCHQ_DATABASE": through} | more))

    def lay(self, trap: Trap | None, *, for_feeders: bool = False) -> None:
        """Have the trap, and no other, lie in all gates of the workers, or of the feeders."""
        for name, gates in self.gates.items():
            for gate in gates:
                gate.trap = trap if (name in self.feeders) == for_feeders else None

    def close(self) -> None:
        self.lay(None)
        for gates in self.gates.values():
            for gate in gates:
                gate.close()
        super().close()


def to_socket(database: str) -> Upstream:
    """The server that listens in the directory which the connection string names."""
    there = socket.socket(socket.AF_UNIX)
    try:
        there.connect(f"{conninfo.conninfo_to_dict(database)['host']}/.s.PGSQL.5432")
    except OSError:
        there.close()
        raise
    return Upstream(there)


def _to_git(root: Path, home: Path) -> Upstream:
    """A process of the remote for this connection alone."""
    ours, theirs = socket.socketpair()
    with theirs:
        words = ("--inetd", "--export-all", "--enable=receive-pack", f"--base-path={root}")
        process = subprocess.Popen(
            ["git", "daemon", *words, str(root)],
            stdin=theirs.fileno(),
            stdout=theirs.fileno(),
            stderr=subprocess.DEVNULL,
            env=environment(home),
            start_new_session=True,
        )

    def kill() -> None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    return Upstream(ours, kill, process.wait)
