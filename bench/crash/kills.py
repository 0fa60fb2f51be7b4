"""The daemon is killed at random moments, over and over, while responses keep coming.

Afterwards every response must have its one verdict, every good one must have landed, and the
repository must hold exactly what the verdicts say: exit 0 then, 1 otherwise.  How long anything
takes is no part of it.  A seed gives the same moments again, as far as two runs of several
processes can be the same.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from multiprocessing.synchronize import Event as Over
from pathlib import Path
from threading import Event, Thread

from bench.console import command_line, work_option
from bench.crash import aftermath
from bench.crash.aftermath import GitFailed, Report, git, reports
from bench.git import HERMETIC
from tests.helpers.gitrepo import write_config

MODES = {
    "review": "mode: review\n",
    "auto": "mode: auto\ntarget: trunk\n",
    "checkout": "mode: auto\ntarget: main\n",
}
SLOTS = 2000
MOST_WAITING = 40
"""Responses in the inbox: a machine that is slow gets fewer, so that its last run ends."""
LONGEST_SECONDS = 900
"""Of one command.  It is no promise of the product, but the end of one that hangs."""


def arguments(words: Sequence[str] | None) -> argparse.Namespace:
    parser = command_line("bench.crash.kills", __doc__)
    add = parser.add_argument
    add("--seeds", type=int, default=20, metavar="N", help="so many repositories in each mode")
    add("--seed", type=int, default=0, metavar="N", help="the first of them")
    add("--mode", choices=MODES, action="append", help="this one alone")
    add("--kills", type=int, default=17, metavar="N", help="of each repository's daemon")
    add("--load", type=int, default=2, metavar="N", help="processes that compute and write beside")
    add("--jobs", type=int, default=2, metavar="N", help="repositories at a time")
    add("--seconds", type=float, metavar="S", help="begin no other repository after that time")
    work_option(parser, "where it works")
    return parser.parse_args(words)


@dataclass
class Life:
    """One repository with its queue, and what was dropped there: (name, sha256) -> slot."""

    repo: Path
    mode: str
    rng: random.Random
    dropped: dict[tuple[str, str], int | None] = field(default_factory=dict)
    bodies: list[tuple[bytes, int | None]] = field(default_factory=list)

    @property
    def queue(self) -> Path:
        return self.repo / ".patchq"

    @property
    def target(self) -> str:
        return "trunk" if self.mode == "auto" else "main"

    def command(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "patchq", "-C", str(self.repo), *words]


def live(path: Path, mode: str, seed: int, kills: int) -> tuple[Life, list[str]]:
    """A repository whose daemon is killed so often, and what is wrong with it in the end."""
    life = _begin(path, mode, seed)
    try:
        torment(life, kills)
        return life, [*violations(life)]
    except (GitFailed, Died) as error:
        return life, [str(error)]


def _begin(path: Path, mode: str, seed: int) -> Life:
    shared = "".join(f"slot {number}: open\n" for number in range(SLOTS))
    path.mkdir(parents=True)
    git(path, "init", "-q")
    (path / "shared.txt").write_text(shared)
    write_config(path, f"version: 1\n{MODES[mode]}")
    git(path, "add", ".")
    git(path, "commit", "-q", "-m", "Start")
    life = Life(path, mode, random.Random(seed))
    if life.target != "main":
        git(path, "branch", life.target)
    subprocess.run(life.command("init"), check=True, stdout=subprocess.DEVNULL)
    return life


# ---------------------------------------------------------------- killing


class Died(Exception):
    """A process of patchq ended by itself; the message has what it said."""


def torment(life: Life, kills: int) -> None:
    """Start the daemon and kill it, `kills` times, while responses keep coming."""
    (life.queue / "lock").touch()
    with dropping(life):
        for _ in range(kills):
            with (life.repo.parent / f"{life.repo.name}.log").open("a+") as log:
                daemon = subprocess.Popen(life.command("watch"), stdout=log, stderr=log)
                await_moment(life, daemon)
                early = daemon.poll()
                daemon.kill()
                daemon.wait()
                log.seek(0)
                if early is not None:
                    raise Died(f"the daemon ended by itself: {early}\n{log.read()[-3000:]}")
    last = subprocess.run(
        life.command("run"), capture_output=True, text=True, timeout=LONGEST_SECONDS
    )
    if last.returncode not in (0, 1):
        raise Died(f"the last run gave {last.returncode}: {last.stderr[-3000:]}")


def await_moment(life: Life, daemon: subprocess.Popen[bytes]) -> None:
    """Wait for one of the moments at which the daemon shall die, spread over the life of a landing:
    while it recovers what the last one left, or soon after a first claim or report of its own."""
    queue, rng = life.queue, life.rng
    folder, suffix, soon = rng.choice(
        [(None, "", 0.1), ("active", "", 0.1), ("active", "", 0.01), ("done", ".json", 0.02)]
    )
    known = set(os.listdir(queue / (folder or "active")))
    _wait_until(lambda: f'"pid":{daemon.pid},' in (queue / "lock").read_text(), 30.0, daemon)
    if folder:
        place = queue / folder
        _wait_until(
            lambda: any(n.endswith(suffix) for n in {*os.listdir(place)} - known), 1.0, daemon
        )
    time.sleep(soon * rng.random())


def _wait_until(true: Callable[[], bool], seconds: float, daemon: subprocess.Popen[bytes]) -> None:
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
        return _block("shared.txt", f"slot {number}: closed\n", "wrong\n"), None
    if kind < 0.35:
        return _block(f"../{number}.txt", "", "outside\n"), None
    if kind < 0.6:
        return _block(f"new/{number}.txt", "", "new\n"), number
    # A file that others change, too; some with an id that others have, too.
    header = b"---\nid: shared\n---\n" if kind < 0.65 else b""
    return header + _block("shared.txt", f"slot {number}: open\n", f"slot {number}: done\n"), number


def _block(path: str, old: str, new: str) -> bytes:
    return f"{path}\n<<<<<<< SEARCH\n{old}=======\n{new}>>>>>>> REPLACE\n".encode()


# ---------------------------------------------------------------- what must be true afterwards


def violations(life: Life) -> Iterator[str]:
    """Everything that has to hold after any crash and does not, and what landed without effect."""
    told = reports(life.queue)
    landed = "proposed" if life.mode == "review" else "applied"
    yield from aftermath.verdicts(life.queue, life.dropped, told)
    yield from aftermath.store(life.queue)
    yield from aftermath.decisions(life.dropped, told, [landed])
    yield from aftermath.history(life.repo, life.target, told)
    yield from effects(life, told)
    yield from aftermath.references(life.repo, told, ("main", "trunk"))
    yield from aftermath.repository(life.repo)
    yield from aftermath.work_tree(life.repo)


def effects(life: Life, told: list[Report]) -> Iterator[str]:
    """Every batch that a report calls applied shows in the target's files."""
    files = git(life.repo, "ls-tree", "-r", "--name-only", life.target).split("\n")
    shared = git(life.repo, "show", f"{life.target}:shared.txt").split("\n")
    for report in told:
        slot = life.dropped[report["source"]["name"], report["source"]["sha256"]]
        there = f"slot {slot}: done" in shared or f"new/{slot}.txt" in files
        if report["state"] == "applied" and not there:
            yield f"{report['id']} is applied without effect"


# ---------------------------------------------------------------- many of them


@contextmanager
def loaded(count: int, work: Path) -> Iterator[None]:
    """A machine that has something else to do: processes that compute, write and flush."""
    context = multiprocessing.get_context("fork")
    over = context.Event()
    others = [
        context.Process(target=_load, args=(work / f"load-{number}", over))
        for number in range(count)
    ]
    for other in others:
        other.start()
    try:
        yield
    finally:
        over.set()
        for other in others:
            other.join()


def _load(scratch: Path, over: Over) -> None:
    while not over.is_set():
        data = os.urandom(1 << 20)
        for _ in range(20):
            data = sha256(data).digest() * (1 << 15)
        with scratch.open("wb") as file:
            file.write(data)
            os.fsync(file.fileno())


def main(words: Sequence[str] | None = None) -> int:
    args = arguments(words)
    wrong, lives, count, began = 0, 0, Counter[str](), time.monotonic()
    with (
        tempfile.TemporaryDirectory(
            prefix="patchq-kills-", dir=args.work, ignore_cleanup_errors=True
        ) as scratch,
        ExitStack() as stack,
    ):
        work = Path(scratch)
        os.environ.update(HERMETIC | {"HOME": scratch, "TMPDIR": scratch})
        stack.enter_context(loaded(args.load, work))
        pool = stack.enter_context(ThreadPoolExecutor(args.jobs))
        names = [
            (seed, mode)
            for seed in range(args.seed, args.seed + args.seeds)
            for mode in args.mode or MODES
        ]

        def one(seed: int, mode: str) -> tuple[int, str, Life | None, list[str]]:
            if args.seconds and time.monotonic() - began > args.seconds:
                return seed, mode, None, []
            return seed, mode, *live(work / f"{seed}-{mode}", mode, seed, args.kills)

        for seed, mode, life, found in pool.map(lambda name: one(*name), names):
            if life is None:
                continue
            states = Counter(report["state"] for report in reports(life.queue))
            lives, wrong = lives + 1, wrong + bool(found)
            count += states
            print(f"seed {seed} {mode}: {len(life.dropped)} responses, {dict(states)}", flush=True)
            for sentence in found[:20]:
                print(f"  VIOLATED {sentence}", flush=True)
    seconds = time.monotonic() - began
    print(f"{lives} of {len(names)} repositories, {lives * args.kills} kills, in {seconds:.0f} s")
    print(f"{count.total()} verdicts: {dict(count)}")
    print(f"VIOLATED {wrong}")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
