"""The machines of a cluster as directories: a bare remote, clones of it, their processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from bench.cluster.server import spent
from bench.git import BenchError, environment, git
from tests.helpers.gitrepo import write_config

PATIENCE = 120.0
_numbers = count()


@dataclass(frozen=True, slots=True)
class Sent:
    """A response as it was handed in: `applied` is what the file has then; None: to be refused."""

    id: str
    branch: str
    path: str
    data: bytes
    applied: str | None
    feeder: str = "feeder"

    @property
    def source(self) -> str:
        return sha256(self.data).hexdigest()


def edit(number: int, branch: str, *, good: bool = True) -> Sent:
    """One line of the file that has the number; a bad one quotes what stands nowhere."""
    path, old, new = _path(number), f"{number} first", f"{number} changed"
    quoted = old if good else f"{number} nowhere"
    text = (
        f"---\ntarget: {branch}\n---\n"
        f"{path}\n<<<<<<< SEARCH\n{quoted}\n=======\n{new}\n>>>>>>> REPLACE\n"
    )
    applied = _text(number).replace(old, new) if good else None
    id = f"{'r' if good else 'x'}{number:05}-{branch}"
    return Sent(id, branch, path, text.encode(), applied)


def _path(number: int) -> str:
    return f"d{number // 50:03}/f{number % 50:02}.txt"


def _text(number: int) -> str:
    return "".join(f"{number} {line}\n" for line in ("first", "second", "third", "fourth"))


@dataclass
class Fleet:
    """Below `root`; the tables are in a schema of their own.  `files` is how many responses there
    can be for a branch."""

    root: Path
    command: Sequence[str]
    database: str
    files: int
    branches: Sequence[str] = ("main",)
    config: str = ""
    running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    conninfo: str = ""
    feeders: Sequence[str] = ("feeder",)

    def __post_init__(self) -> None:
        self.root.mkdir(parents=True)
        self.home = self.root / "home"
        self.home.mkdir()
        (self.home / ".gitconfig").write_text(
            "[user]\nname = Bench\nemail = bench@example.org\n[init]\ndefaultBranch = main\n"
            "[gc]\nauto = 0\n"
        )
        seed = self.root / "seed"
        for number in range(self.files):
            path = seed / _path(number)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(_text(number))
        self.git(seed, "init", "-q")
        self.git(seed, "add", ".")
        self.git(seed, "commit", "-q", "-m", "Start")
        for branch in self.branches:
            if branch != "main":
                self.git(seed, "branch", branch)
        self.hub = self.root / "hub.git"
        self.git(self.root, "clone", "-q", "--bare", "seed", "hub.git")
        self.start_oid = self.git(self.hub, "rev-parse", "main").strip()
        self._make_schema()

    def _make_schema(self) -> None:
        self.schema = f"bench{os.getpid()}_{next(_numbers)}"
        with psycopg.connect(self.database, autocommit=True) as connection:
            connection.execute(sql.SQL("create schema {}").format(sql.Identifier(self.schema)))
        self.conninfo = psycopg.conninfo.make_conninfo(
            self.database, options=f"-csearch_path={self.schema}"
        )
        place = self.clone("feeder")
        self.patchq(place, "cluster", "migrate")

    def git(self, place: Path, *words: str) -> str:
        return git(place, *words, home=self.home).decode()

    def patchq(self, place: Path, *words: str) -> None:
        done = subprocess.run(
            [*self.command, *words], cwd=place, env=self._environment(), capture_output=True
        )
        if done.returncode:
            raise BenchError(f"patchq {' '.join(words)}: {done.stderr.decode(errors='replace')}")

    def _environment(self, **more: str) -> dict[str, str]:
        return environment(self.home) | {"PATCHQ_DATABASE": self.conninfo} | more

    # ------------------------------------------------------------ machines

    def clone(self, name: str, config: str | None = None) -> Path:
        """The clone, made at its first use, with nothing checked out that could follow."""
        place = self.root / name
        if not place.exists():
            self.git(self.root, "clone", "-q", "hub.git", name)
            self.git(place, "checkout", "-q", "--detach")
            more = f"cluster: {{remote: origin{self.config}}}\n" if config is None else config
            write_config(place, f"version: 1\nmode: auto\ntarget: main\ntargets: ['*']\n{more}")
            self.patchq(place, "init")
        return place

    def start(self, name: str, *words: str, **more: str) -> None:
        """A process in the clone of that name, which says what it does in the clone's `log`."""
        place = self.clone(name)
        with (place / "log").open("ab") as log:
            self.running[name] = subprocess.Popen(
                [*self.command, *words],
                cwd=place,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self._environment(**more),
            )

    def workers(self, most: int, **more: str) -> list[str]:
        """A feeder, and workers, once these have begun; their names."""
        names = [f"w{number}" for number in range(1, most + 1)]
        for feeder in self.feeders:
            self.start(feeder, "watch")
        for name in names:
            self.start(name, "worker", "--name", name, **more)
        alive = "select name from sessions where alive(number)"
        self.soon(lambda: set(names) <= {row[0] for row in self.ask(alive)}, "workers begin", 0.05)
        return names

    def stop(self, names: Iterable[str]) -> None:
        """End them well."""
        for name in names:
            self.running[name].terminate()
        for name in names:
            if code := self.running.pop(name).wait(PATIENCE):
                raise BenchError(f"{name} ended with {code}: {self.log(name)}")

    def kill(self, name: str) -> None:
        process = self.running.pop(name)
        process.kill()
        process.wait()

    def close(self) -> None:
        for process in self.running.values():
            process.send_signal(signal.SIGCONT)
            process.kill()
            process.wait()
        self.running.clear()
        with psycopg.connect(self.database, autocommit=True) as connection:
            name = sql.Identifier(self.schema)
            connection.execute(sql.SQL("drop schema {} cascade").format(name))

    def spent(self, names: Collection[str]) -> float:
        """Seconds of the processor of these processes and of the git that they ran."""
        return sum(spent(self.running[name].pid) for name in names)

    def log(self, name: str) -> str:
        return (self.root / name / "log").read_text(errors="replace")[-800:]

    # ------------------------------------------------------------ responses

    def drop(self, sent: Iterable[Sent], name: str = "feeder") -> None:
        """Hand them in as `submit` does: a rename into the inbox."""
        inbox = self.root / name / ".patchq/inbox"
        for one in sent:
            part = inbox / f".{one.id}"
            part.write_bytes(one.data)
            part.rename(inbox / f"{one.id}.md")

    def reports(self, name: str = "feeder") -> dict[str, list[dict[str, Any]]]:
        """All reports in the places of verdicts, by their file's name."""
        found: dict[str, list[dict[str, Any]]] = {}
        for place in ("done", "rejected"):
            for path in (self.root / name / ".patchq" / place).glob("*.report.json"):
                found.setdefault(path.name.removesuffix(".report.json"), []).append(
                    json.loads(path.read_bytes())
                )
        return found

    def verdicts(self, sent: Collection[Sent], name: str = "feeder") -> None:
        """Wait until each of them has a verdict."""
        queue, left = self.root / name / ".patchq", {one.id for one in sent}

        def ended() -> bool:
            for place in ("done", "rejected"):
                left.difference_update(
                    entry.removesuffix(".report.json")
                    for entry in os.listdir(queue / place)
                    if entry.endswith(".report.json")
                )
            return not left

        self.soon(ended, f"{len(sent)} responses have a verdict")

    def soon(self, holds: Callable[[], object], what: str, pause: float = 0.005) -> None:
        until = time.monotonic() + PATIENCE
        while not holds():
            gone = [name for name, process in self.running.items() if process.poll() is not None]
            if gone:
                raise BenchError(f"{gone[0]} ended: {self.log(gone[0])}")
            if time.monotonic() > until:
                logs = "\n".join(f"{name}: {self.log(name)}" for name in self.running)
                raise BenchError(f"not within {PATIENCE:.0f} s: {what}\n{logs}")
            time.sleep(pause)

    def tip(self) -> str:
        """Of `main` on the remote; nothing as long as nobody has pushed to it."""
        ref = self.hub / "refs/heads/main"
        return ref.read_text() if ref.exists() else ""

    def ask(self, query: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.conninfo, autocommit=True) as connection:
            return connection.execute(query.encode()).fetchall()
