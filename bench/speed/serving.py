"""Small repositories with a queue, the daemon that serves one, and the lines that tell of it."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.crash.aftermath import git
from bench.git import BenchError
from tests.helpers.gitrepo import write_config

PATIENCE = 60.0
"""Seconds to wait for anything but the verdicts on a flood."""


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the summary; one without a goal is only told."""

    what: str
    value: str
    goal: str = ""
    met: bool = True

    def __str__(self) -> str:
        verdict = ("met" if self.met else "MISSED") if self.goal else ""
        return f"{self.what:50} {self.value:>18}  {self.goal:14} {verdict}".rstrip()


def make(repo: Path, command: Sequence[str], target: str) -> Path:
    """A repository in auto mode, `main` checked out, with its queue; `target` is a branch of it."""
    repo.mkdir(parents=True)
    git(repo, "init", "-q")
    (repo / "a.txt").write_text("one\ntwo\nthree\n")
    write_config(repo, f"version: 1\nmode: auto\ntarget: {target}\n")
    git(repo, "add", ".")
    git(repo, "commit", "-q", "-m", "Start")
    if target != "main":
        git(repo, "branch", target)
    subprocess.run([*command, "init"], cwd=repo, check=True, capture_output=True)
    return repo


def block(path: str, old: str, new: str) -> bytes:
    return f"{path}\n<<<<<<< SEARCH\n{old}=======\n{new}>>>>>>> REPLACE\n".encode()


@contextmanager
def watching(
    command: Sequence[str], repo: Path, env: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """`watch`, for as long as the block runs; it must end well when told to.

    Its environment is this process's own unless `env` is given.
    """
    log = repo.with_name("watch.txt")
    with log.open("wb") as out:
        daemon = subprocess.Popen(
            [*command, "watch"],
            cwd=repo,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
        )
    try:
        yield daemon
        daemon.terminate()
        if code := daemon.wait(PATIENCE):
            raise BenchError(f"watch ended with {code}")
    except (BenchError, subprocess.TimeoutExpired) as error:
        said = log.read_text(errors="replace")[-800:]
        raise BenchError(f"{error}; watch said: {said or 'nothing'}") from error
    finally:
        daemon.kill()
        daemon.wait()


def wait_for(true: Callable[[], object], what: str) -> None:
    until = time.monotonic() + PATIENCE
    while not true():
        if time.monotonic() > until:
            raise BenchError(f"{what} in {PATIENCE:.0f} s")
        time.sleep(0.005)


def has_verdict(repo: Path, id: str) -> bool:
    name = f"{id}.report.json"
    return any((repo / ".patchq" / place / name).exists() for place in ("done", "rejected"))
