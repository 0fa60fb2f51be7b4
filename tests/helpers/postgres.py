"""A PostgreSQL server for the tests: one for all processes of a session, a schema for each test.

It is the one that `PATCHQ_TEST_DATABASE` leads to, or one of our own, in a directory of its own,
which ends with the last process that holds a lock on its file, however these end.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import psycopg
from psycopg import sql

from bench.cluster.server import ServerOnce

_numbers = count()
_WATCH = """
import fcntl, os, shutil, signal, sys, time
from contextlib import suppress
users, place, root, pid = os.open(sys.argv[1], os.O_RDWR), *sys.argv[2:4], int(sys.argv[4])
fcntl.flock(users, fcntl.LOCK_EX)
with suppress(FileNotFoundError):
    os.unlink(place)  # whoever needs a server now starts another one
with suppress(ProcessLookupError):
    os.kill(pid, signal.SIGQUIT)
    until = time.monotonic() + 30
    while os.path.exists(f"{root}/data/postmaster.pid") and time.monotonic() < until:
        time.sleep(0.02)
shutil.rmtree(root, ignore_errors=True)
"""


_started: list[ServerOnce] = []
"""Servers that outlive this process, so that nothing is to end with these values."""


class Shared:
    """The session's server, which whoever needs it first starts, unless one is `given` by its
    connection string; `folder` is the session's own."""

    def __init__(self, folder: Path, given: str | None) -> None:
        place = folder / "postgres"
        self._users = os.open(folder / "postgres.users", os.O_RDWR | os.O_CREAT)
        fcntl.flock(self._users, fcntl.LOCK_SH)
        with (folder / "postgres.lock").open("w") as turn:
            fcntl.flock(turn, fcntl.LOCK_EX)
            if given:
                self.conninfo = given
            elif place.exists():
                self.conninfo = place.read_text()
            else:
                self.conninfo = self._started(folder)
                place.write_text(self.conninfo)

    def _started(self, folder: Path) -> str:
        one = ServerOnce(Path(tempfile.mkdtemp(prefix="pq-")))
        one.start()
        _started.append(one)
        pid = (one.root / "data/postmaster.pid").read_text().split("\n")[0]
        watch = subprocess.Popen(
            [
                *(sys.executable, "-c", _WATCH, folder / "postgres.users"),
                *(folder / "postgres", one.root, pid),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        watch.returncode = 0
        return one.conninfo

    def close(self) -> None:
        os.close(self._users)

    @contextmanager
    def schema(self) -> Iterator[str]:
        """The connection string of a new and empty schema."""
        name = f"t{os.getpid()}_{next(_numbers)}"
        bounds = "-c lock_timeout=60s"  # of a process that is stopped, or forgotten
        with psycopg.connect(self.conninfo, autocommit=True, options=bounds) as connection:
            connection.execute(sql.SQL("create schema {}").format(sql.Identifier(name)))
            try:
                yield psycopg.conninfo.make_conninfo(self.conninfo, options=f"-csearch_path={name}")
            finally:
                connection.execute("set lock_timeout = '60s'")
                connection.execute(sql.SQL("drop schema {} cascade").format(sql.Identifier(name)))
