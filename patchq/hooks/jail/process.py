"""Starting one hook and hearing of its end, through a `keeper` that ends all that it leaves.

Whether hooks can be jailed is found out once, by jailing one.  Where they cannot (no user
namespaces, another system), they run as plain processes: their groups and orphans are ended all
the same, but nothing keeps them from the network or from writing where the daemon may.
"""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from threading import Event
from time import monotonic

from patchq.hooks.jail import keeper
from patchq.model.errors import HookFault
from patchq.text.quote import decode, visible

MOST_OUTPUT = 64 * 1024
"""Bytes of a hook's output that are kept, the last ones."""
_LOOK_SECONDS = 0.05
_GRACE_SECONDS = 10.0
NO_JAIL = "PATCHQ_NO_JAIL"
"""Set in the daemon's environment, hooks run as plain processes even where they could be jailed."""


class Cancelled(Exception):
    """Nobody wants to know any more how the hook ends."""


@dataclass(frozen=True, slots=True)
class Job:
    """One process to run: `argv` in the directory `where`, with `env` and nothing else.

    `room` is an empty directory, in which `home` and `empty` are made for it, and `lock` is a
    descriptor that stays open until nothing of the hook runs.  `tree` is the work tree that it may
    write, if any.  `jailed`: see the module; where that cannot be, every job needs the `network`.
    """

    argv: Sequence[str]
    env: Mapping[str, str]
    where: Path
    room: Path
    lock: int
    timeout: float
    jailed: bool
    tree: Path | None = None
    stdin: bytes = b""
    network: bool = False


@dataclass(frozen=True, slots=True)
class HookExit:
    """How a hook ended: the exit code (128 + n: by signal n; None: it was stopped after its time),
    the seconds that it took, and the end of its output, without hidden characters.  `jail` is a
    process that sees the files as the hook left them; None: all do."""

    code: int | None
    seconds: float
    output: str
    jail: int | None

    @property
    def root(self) -> str:
        """Where the file system stands as the hook left it."""
        return f"/proc/{self.jail}/root" if self.jail else ""


@contextmanager
def run(job: Job, stop: Event) -> Iterator[HookExit]:
    """Run the job to its end; inside the block, what it wrote to its work tree can be seen.

    Raises `Cancelled` once `stop` is set, and `HookFault` if it cannot be started.
    """
    if not job.jailed:
        for name in ("home", "empty"):
            (job.room / name).mkdir(exist_ok=True)
    with tempfile.TemporaryFile() as stdin:
        stdin.write(job.stdin)
        stdin.seek(0)
        process = _start(job, stdin.fileno())
    try:
        yield process.to_the_end(job.timeout, stop)
    finally:
        process.let_go()


def _start(job: Job, stdin: int) -> _Keeper:
    mode = ("jailed" if job.jailed else "plain") + ("" if job.network else ",offline")
    life, line = os.pipe()
    status, tell = os.pipe()
    fds = (tell, life, job.lock)
    size = os.environ.get(keeper.ROOM_NAME, keeper.ROOM)
    places = (size, str(job.room), str(job.tree or ""), str(job.where))
    try:
        process = subprocess.Popen(
            [*keeper.COMMAND, mode, ",".join(map(str, fds)), *places, *job.argv],
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=dict(job.env),
            pass_fds=fds,
            start_new_session=True,
        )
    except OSError as error:
        os.close(status)
        os.close(line)
        raise HookFault(f"no process can be started for a hook: {error.strerror}") from None
    finally:
        os.close(life)
        os.close(tell)
    return _Keeper(process, status, line, job.jailed)


@dataclass
class _Keeper:
    """A keeper at work; `status` and `line` are the daemon's ends of its pipes."""

    process: subprocess.Popen[bytes]
    status: int
    line: int
    jailed: bool
    output: bytearray = field(default_factory=bytearray)
    dropped: bool = False
    report: bytes = b""
    """The two lines of `keeper.main`, as far as they came."""

    def to_the_end(self, timeout: float, stop: Event) -> HookExit:
        began = monotonic()
        assert self.process.stdout
        output = self.process.stdout.fileno()
        with selectors.DefaultSelector() as selector:
            selector.register(output, selectors.EVENT_READ)
            selector.register(self.status, selectors.EVENT_READ)
            while self.report.count(b"\n") < 2:
                left = began + timeout - monotonic()
                if left <= 0:
                    return self._ended(None, monotonic() - began)
                for key, _ in selector.select(min(left, _LOOK_SECONDS)):
                    if key.fd == output:
                        if not self._hear(output):
                            selector.unregister(output)
                    elif part := os.read(self.status, 64):
                        self.report += part
                    else:
                        self._end_orphans()
                        return self._ended(128 + signal.SIGKILL, monotonic() - began)
                if stop.is_set():
                    raise Cancelled
            seconds = monotonic() - began
            selector.unregister(self.status)
            while selector.get_map() and selector.select(0) and self._hear(output):
                pass
        return self._ended(int(self.report.split()[1]), seconds)

    def _end_orphans(self) -> None:
        """The keeper was killed; of a jail nothing is left then."""
        if self.report and not self.jailed:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(int(self.report.split()[0]), signal.SIGKILL)

    def _hear(self, output: int) -> bool:
        part = os.read(output, MOST_OUTPUT)
        self.output += part
        if len(self.output) > MOST_OUTPUT:
            del self.output[:-MOST_OUTPUT]
            self.dropped = True
        return bool(part)

    def _ended(self, code: int | None, seconds: float) -> HookExit:
        mark = "…\n" if self.dropped else ""
        text = mark + visible(decode(bytes(self.output)), keep="\n\t")
        pid = self.report.split(b"\n")[0]
        return HookExit(code, round(seconds, 3), text, int(pid) if self.jailed and pid else None)

    def let_go(self) -> None:
        """End whatever is left, and wait until it is."""
        os.close(self.line)
        os.close(self.status)
        try:
            self.process.wait(_GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        assert self.process.stdout
        self.process.stdout.close()


@cache
def can_jail(root: Path) -> bool:
    """Whether hooks can be jailed below the directory, tried out once: a directory that is removed
    and made again has to be empty then, and the one below the overlay untouched."""
    if os.environ.get(NO_JAIL) or sys.platform != "linux":
        return False
    root.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="probe-", dir=root) as own, open(os.devnull) as nothing:
        room, tree = Path(own, "room"), Path(own, "tree")
        for path in ("a/b", ".git"):
            (tree / path).mkdir(parents=True)
        room.mkdir()
        argv = ("/bin/sh", "-c", 'rm -r a && mkdir a && test -z "$(ls a)"')
        env, lock = {"PATH": os.defpath}, nothing.fileno()
        job = Job(argv, env, tree, room, lock, _GRACE_SECONDS, jailed=True, tree=tree)
        with run(job, Event()) as end:
            return end.code == 0 and (tree / "a/b").exists()
