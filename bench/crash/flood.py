"""What goes into a long run: responses without end, and the daemons that are killed over them."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections import Counter
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from bench.crash import children
from bench.crash.aftermath import git
from bench.crash.children import Child
from bench.crash.person import TARGET
from bench.speed.serving import block
from tests.helpers.gitrepo import write_config

_SLOTS = 200
"""Slots in one file."""
_WAITING = 60
"""Responses that wait in the inbox, at most."""
_CONFIG = f"version: 1\nmode: auto\ntarget: {TARGET}\n"
_BUSY_ELSEWHERE = 75
_REST_SECONDS = 0.3
"""For so long, at most, one rests that found another one at work: without that the waiting ones
took half of what all took."""


@dataclass
class Soak:
    """One queue and what was dropped there: (name, digest) -> slot, None for what is to be
    refused."""

    repo: Path
    rng: random.Random
    wanted: int
    dropped: dict[tuple[str, str], int | None] = field(default_factory=dict)
    bodies: list[tuple[bytes, int | None]] = field(default_factory=list)

    @property
    def queue(self) -> Path:
        return self.repo / ".patchq"

    def feed(self) -> None:
        """Let some more responses come in, as long as not too many wait."""
        waiting = len(os.listdir(self.queue / "inbox"))
        more = min(self.wanted - len(self.dropped), _WAITING - waiting, self.rng.randint(1, 12))
        for _ in range(more):
            self._drop()

    def _drop(self) -> None:
        number, kind = len(self.dropped), self.rng.random()
        if kind < 0.1 and self.bodies:
            body, slot = self.rng.choice(self.bodies[-200:])
        else:
            body, slot = _response(number, kind)
        name = f"r{number}.md"
        scratch = self.queue / "inbox" / f"{name}.tmp"
        scratch.write_bytes(body)
        scratch.rename(scratch.with_suffix(""))
        self.bodies.append((body, slot))
        self.dropped[name, sha256(body).hexdigest()] = slot


def _response(number: int, kind: float) -> tuple[bytes, int | None]:
    """The bytes, and the slot that they fill; None for what is to be refused."""
    path = _part(number)
    if kind < 0.2:
        return block(path, f"slot {number}: shut\n", "wrong\n"), None
    if kind < 0.5:
        return block(f"new/{number}.txt", "", "new\n"), number
    return block(path, f"slot {number}: open\n", f"slot {number}: done\n"), number


def _part(slot: int) -> str:
    return f"part/{slot // _SLOTS}.txt"


def build(work: Path, responses: int, seed: int) -> Soak:
    """A repository that waits for so many responses, and everything loaded that works on it."""
    repo = work / "repo"
    repo.mkdir()
    git(repo, "init", "-q")
    (repo / "part").mkdir()
    for first in range(0, responses, _SLOTS):
        lines = [f"slot {slot}: open\n" for slot in range(first, first + _SLOTS)]
        (repo / _part(first)).write_text("".join(lines))
    write_config(repo, _CONFIG)
    git(repo, "add", ".")
    git(repo, "commit", "-q", "-m", "Start")
    git(repo, "branch", TARGET)
    words = ["-C", str(repo), "init"]
    children.load(words, work)
    children.load(["-C", str(repo), "run"], work)
    return Soak(repo, random.Random(seed), responses)


@dataclass
class Pack:
    """The daemons of a queue; a dead one is started again, at once if it was killed."""

    soak: Soak
    size: int
    rng: random.Random
    running: list[Child] = field(default_factory=list)
    killed: int = 0
    ended: Counter[int] = field(default_factory=Counter)
    """Exit codes of daemons that nobody killed."""
    resting: list[float] = field(default_factory=list)
    """Until when those rest that had nothing to do."""
    took: float = 0.0
    """Seconds of the processor of those that ended and had work."""

    def tend(self) -> None:
        now = time.monotonic()
        self.resting = [until for until in self.resting if until > now]
        for child in list(self.running):
            pid, status, usage = os.wait4(child.pid, os.WNOHANG)
            if pid:
                self.running.remove(child)
                code = os.waitstatus_to_exitcode(status)
                if code == _BUSY_ELSEWHERE:
                    self.resting.append(now + _REST_SECONDS * self.rng.random())
                    continue
                self.took += usage.ru_utime + usage.ru_stime
                if code != -signal.SIGKILL:
                    self.ended[code] += 1
        while len(self.running) + len(self.resting) < self.size:
            said = self.soak.repo.parent / "daemons.log"
            child = children.fork(["-C", str(self.soak.repo), "watch"], said)
            child.begin()
            self.running.append(child)

    def kill(self) -> None:
        """Kill the one that works, or any, if none does."""
        owner = self._owner()
        victims = [child for child in self.running if child.pid == owner]
        if victims:
            os.kill(victims[0].pid, signal.SIGKILL)
            self.killed += 1

    def _owner(self) -> int | None:
        try:
            told = json.loads((self.soak.queue / "lock").read_bytes())
        except (OSError, ValueError):
            return None
        return int(told["pid"])

    def spent(self) -> float:
        """Seconds of the processor that the daemons took, without those that found another at
        work and ended."""
        now = (Path(f"/proc/{child.pid}/schedstat").read_text() for child in self.running)
        return self.took + sum(int(told.split()[0]) for told in now) / 10**9

    def stop(self) -> None:
        for child in self.running:
            os.kill(child.pid, signal.SIGKILL)
            os.waitpid(child.pid, 0)
        self.running.clear()
