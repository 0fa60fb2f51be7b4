"""The daemon is killed at random moments, over and over, while responses keep coming.

Afterwards every response must have its one verdict, and the repository must hold exactly what the
verdicts say.  `KILLS` and `SEED` in the environment ask for more kills, and for the same moments
again (as far as two runs of several processes can be the same).
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from threading import Event, Thread

import pytest

from bench.crash import aftermath
from bench.crash.aftermath import Report, reports
from tests.helpers.command import block
from tests.helpers.gitrepo import git, make_repo

KILLS = int(os.environ.get("KILLS", "102"))
SEED = int(os.environ.get("SEED", random.SystemRandom().randrange(1 << 32)))
MODES = {
    "review": "mode: review\n",
    "auto": "mode: auto\ntarget: trunk\n",
    "auto, checked out": "mode: auto\ntarget: main\n",
}
LIVES = 2
"""Repositories that are tormented at the same time."""
SLOTS = 2000
MOST_WAITING = 40
"""Responses in the inbox: a machine that is slow gets fewer, so that its last run ends."""
LONGEST_SECONDS = 900
"""Of one command.  It is no promise of the product, but the end of one that hangs."""


@dataclass
class Life:
    """One repository with its queue, and what was dropped there: (name, sha256) -> slot."""

    repo: Path
    target: str
    mode: str
    rng: random.Random
    dropped: dict[tuple[str, str], int | None] = field(default_factory=dict)
    bodies: list[tuple[bytes, int | None]] = field(default_factory=list)

    @property
    def queue(self) -> Path:
        return self.repo / ".patchq"


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.replace(", ", "-").replace(" ", "-"))
def test_g12_every_response_has_one_verdict_however_often_the_daemon_is_killed(
    tmp_path: Path, mode: str
) -> None:
    lives = [make_life(tmp_path / str(number), mode, SEED + number) for number in range(LIVES)]
    kills = -(-KILLS // (len(MODES) * LIVES))
    print(f"SEED={SEED} KILLS={KILLS}")
    with ThreadPoolExecutor(LIVES) as pool:
        list(pool.map(lambda life: torment(life, kills), lives))
    for life in lives:
        print(f"{len(life.dropped)} responses: {Counter(r['state'] for r in reports(life.queue))}")
        check(life)


def make_life(path: Path, mode: str, seed: int) -> Life:
    shared = "".join(f"slot {number}: open\n" for number in range(SLOTS))
    config = f"version: 1\n{MODES[mode]}"
    repo = make_repo(path, {"shared.txt": shared, ".patchq.yaml": config})
    target = "trunk" if "trunk" in config else "main"
    if target != "main":
        git("branch", target, cwd=repo)
    life = Life(repo, target, mode, random.Random(seed))
    assert patchq(life, "init").returncode == 0
    return life


def patchq(life: Life, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "patchq", "-C", str(life.repo), *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=LONGEST_SECONDS)


def torment(life: Life, kills: int) -> None:
    """Start the daemon and kill it, `kills` times, while responses keep coming."""
    (life.queue / "lock").touch()
    with dropping(life):
        for _ in range(kills):
            with (life.repo.parent / f"{life.repo.name}.log").open("a+") as log:
                daemon = subprocess.Popen(
                    [sys.executable, "-m", "patchq", "-C", str(life.repo), "watch"],
                    stdout=log,
                    stderr=log,
                )
                await_moment(life, daemon)
                early = daemon.poll()
                daemon.kill()
                daemon.wait()
                log.seek(0)
                assert early is None, f"the daemon ended by itself: {early}\n{log.read()[-3000:]}"
    last = patchq(life, "run")
    assert last.returncode in (0, 1), last.stderr


def await_moment(life: Life, daemon: subprocess.Popen[bytes]) -> None:
    """Wait for one of the moments at which the daemon shall die, spread over the life of a landing:
    while it recovers what the last one left, or soon after a first claim, intended verdict or
    report of its own."""
    queue, rng = life.queue, life.rng
    folder, suffix, soon = rng.choice(
        [(None, "", 0.1), ("active", "", 0.1), ("active", ".json", 0.03), ("done", ".json", 0.02)]
    )
    known = set(os.listdir(queue / (folder or "active")))
    wait_until(lambda: f'"pid": {daemon.pid},' in (queue / "lock").read_text(), 30.0, daemon)
    if folder:
        place = queue / folder
        wait_until(
            lambda: any(n.endswith(suffix) for n in {*os.listdir(place)} - known), 1.0, daemon
        )
    time.sleep(soon * rng.random())


def wait_until(true: Callable[[], bool], seconds: float, daemon: subprocess.Popen[bytes]) -> None:
    """Until it is true, the daemon has died, or the time is over."""
    until = time.monotonic() + seconds
    while not true() and time.monotonic() < until and daemon.poll() is None:
        time.sleep(0.001)


@contextmanager
def dropping(life: Life) -> Iterator[None]:
    """Let responses come in until the end of the block."""
    over = Event()

    def agents() -> None:
        rng = random.Random(life.rng.random())
        while not over.is_set():
            for _ in range(rng.choice((1, 1, 2, 4, 10))):
                if len(os.listdir(life.queue / "inbox")) < MOST_WAITING:
                    drop(life, rng)
            over.wait(rng.choice((0.1, 0.4, 0.8)) * rng.random())

    thread = Thread(target=agents)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def drop(life: Life, rng: random.Random) -> None:
    """One more response: written beside the inbox's names, then renamed."""
    number = len(life.dropped)
    body, slot = response(life, rng, number)
    scratch = life.queue / "inbox" / f"r{number}.md.tmp"
    scratch.write_bytes(body)
    scratch.rename(scratch.with_suffix(""))
    life.bodies.append((body, slot))
    life.dropped[f"r{number}.md", sha256(body).hexdigest()] = slot


def response(life: Life, rng: random.Random, number: int) -> tuple[bytes, int | None]:
    """What an agent may send, and the slot that it fills; None for what is to be refused."""
    kind = rng.random()
    if kind < 0.15 and life.bodies:  # the same again
        return rng.choice(life.bodies)
    if kind < 0.3:  # quotes what is not there
        return block("shared.txt", f"slot {number}: closed\n", "wrong\n").encode(), None
    if kind < 0.35:
        return block(f"../{number}.txt", "", "outside\n").encode(), None
    if kind < 0.6:
        return block(f"new/{number}.txt", "", "new\n").encode(), number
    # A file that others change, too; some with an id that others have, too.
    header = "---\nid: shared\n---\n" if kind < 0.65 else ""
    filled = block("shared.txt", f"slot {number}: open\n", f"slot {number}: done\n")
    return f"{header}{filled}".encode(), number


# ---------------------------------------------------------------- what must be true afterwards


def check(life: Life) -> None:
    """Everything that holds after any crash, and that what landed is there."""
    told = reports(life.queue)
    landed = "proposed" if life.mode == "review" else "applied"
    assert [
        *aftermath.verdicts(life.queue, life.dropped, told),
        *aftermath.decisions(life.dropped, told, [landed]),
        *aftermath.history(life.repo, life.target, told),
        *effects(life, told),
        *aftermath.references(life.repo, told, ("main", "trunk")),
        *aftermath.repository(life.repo),
        *aftermath.work_tree(life.repo),
    ] == []


def effects(life: Life, told: list[Report]) -> Iterator[str]:
    """Every batch that a report calls applied shows in the target's files."""
    files = git("ls-tree", "-r", "--name-only", life.target, cwd=life.repo).split("\n")
    shared = git("show", f"{life.target}:shared.txt", cwd=life.repo).split("\n")
    for report in told:
        slot = life.dropped[report["source"]["name"], report["source"]["sha256"]]
        there = f"slot {slot}: done" in shared or f"new/{slot}.txt" in files
        if report["state"] == "applied" and not there:
            yield f"{report['id']} is applied without effect"
