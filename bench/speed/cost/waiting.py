"""A response and an empty run beside proposals that wait; and `status` of what waits."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.git import BenchError, environment, git
from bench.speed.cost.ground import Ground
from bench.speed.goal import Goal
from tests.helpers.gitrepo import write_config

FILES = 20
"""Directories, of a hundred files each."""
EACH = 40
"""Responses in a row whose sum is one measurement."""
_TICKS = 100
_PATIENCE = 120.0


def waiting(ground: Ground) -> Iterator[Goal]:
    """Responses come one by one to a daemon, each for a file of its own, beside none and beside
    very many that wait.  In auto mode each moves the target on which these wait."""
    many = 100 if ground.quick else 1000
    for mode in ("review", "auto"):
        places = {count: _build(ground, mode, count) for count in (0, many)}
        if mode == "review":
            yield _empty_run(ground, places, many)
        ratios: list[float] = []
        with _watching(ground, places[0]) as alone, _watching(ground, places[many]) as beside:
            for number in range(ground.rounds):
                none = _responses(places[0], alone, number)
                ratios.append(_responses(places[many], beside, number) / none)
        yield Goal(f"a response beside {many} proposals, {mode} mode / none", ratios, 1.5)
        if mode == "review":
            yield _status(ground, places[many])


def _empty_run(ground: Ground, places: dict[int, Path], many: int) -> Goal:
    run = [*ground.command, "-q", "run"]
    ratios = [
        ground.spent(run, places[many]) / ground.spent(run, places[0]) for _ in range(ground.rounds)
    ]
    return Goal(f"an empty run beside {many} proposals / none", ratios, 1.5)


def _status(ground: Ground, repo: Path) -> Goal:
    """The bytes of `--json status`, to those that it would have with fifty batches."""
    ground.spent([*ground.command, "--json", "status"], repo)
    shown = json.loads((ground.home / "child.txt").read_bytes())
    sizes = [len(json.dumps({**shown, "waiting": shown["waiting"][:most]})) for most in (None, 50)]
    return Goal("bytes of --json status / with 50 batches", [sizes[0] / sizes[1]], 1.0)


def _build(ground: Ground, mode: str, count: int) -> Path:
    """A repository whose target is not checked out, with so many proposals."""
    repo = ground.repository(f"{mode}-{count}")
    for number in range(FILES * 100):
        path = repo / _path(number)
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join(f"{number} line {line}\n" for line in range(60)))
    git(repo, "add", ".", home=ground.home)
    git(repo, "commit", "-q", "-m", "Files", home=ground.home)
    git(repo, "checkout", "-q", "-b", "side", home=ground.home)
    ground.spent([*ground.command, "init"], repo)
    write_config(repo, f"version: 1\ntarget: main\nmode: {mode}\npaths: {{review: ['d0*/']}}\n")
    for number in range(count):
        _drop(repo, f"w{number}", number % 1000, 10, f"{number}")
    if count:
        ground.spent([*ground.command, "-q", "run"], repo)
    return repo


def _path(number: int) -> str:
    return f"d{number // 100:02}/f{number % 100:02}.txt"


def _drop(repo: Path, name: str, number: int, line: int, tag: str) -> None:
    old = f"{number} line {line}\n"
    text = f"{_path(number)}\n<<<<<<< SEARCH\n{old}=======\n{tag} {old}>>>>>>> REPLACE\n"
    part = repo / f".patchq/inbox/.{name}"
    part.write_text(text)
    part.rename(repo / f".patchq/inbox/{name}.md")


@contextmanager
def _watching(ground: Ground, repo: Path) -> Iterator[int]:
    """The daemon's process, once it has nothing left to do."""
    log = repo.with_suffix(".txt")
    with log.open("wb") as out:
        daemon = subprocess.Popen(
            [*ground.command, "-q", "watch"],
            cwd=repo,
            env=environment(ground.home),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
        )
    try:
        until = time.monotonic() + _PATIENCE
        while not _rests(daemon.pid):
            if time.monotonic() > until:
                raise BenchError("watch does not come to rest")
        yield daemon.pid
    finally:
        daemon.terminate()
        try:
            daemon.wait(30)
        finally:
            daemon.kill()


def _rests(pid: int) -> bool:
    """Whether it sleeps nearly all of three seconds, in which it looks round twice at most."""
    awake, before = 0, _used(pid)
    for _ in range(60):
        time.sleep(0.05)
        awake += Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "S"
    return before > 0 and awake <= 6 and _used(pid) - before < 0.1


def _responses(repo: Path, pid: int, round: int) -> float:
    """Seconds of the daemon's processor time until the last of the responses has its verdict."""
    before, until = _used(pid), time.monotonic() + _PATIENCE
    for step in range(EACH):
        number = 1000 + (round * EACH + step) % 1000
        name = f"r{round}-{step}"
        _drop(repo, name, number, 20, f"{name}")
        reports = [repo / f".patchq/{end}/{name}.report.json" for end in ("done", "rejected")]
        while not any(report.exists() for report in reports):
            time.sleep(0.002)
            if time.monotonic() > until:
                break  # what it has used by then is enough to tell
        if not reports[0].exists() and reports[1].exists():
            raise BenchError(f"{name} was refused: {reports[1].read_text()[:800]}")
    return _used(pid) - before


def _used(pid: int) -> float:
    """Of a process and of those that it waited for."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / _TICKS
