"""A person who works on the branch that patchq lands on, and git's own upkeep beside them.

The person commits, takes commits back and rebases, in a work tree of their own, and moves the
branch by compare-and-swap: `git update-ref BRANCH NEW OLD`.  So it is known of each move which
commits it brought and which it took away; a line of JSON says so.
"""

from __future__ import annotations

import json
import random
import subprocess
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import NamedTuple

from bench.crash.aftermath import TRAILER, GitFailed, git

TARGET = "trunk"
_UPKEEP = (("pack-refs", "--all"), ("gc", "-q"), ("repack", "-adq"))


class Commit(NamedTuple):
    """A commit as far as it matters: the batch that it is, if any, and its subject."""

    batch: str
    subject: str


def commits(repo: Path, span: str) -> list[Commit]:
    """Those of a range or of all the history of a commit, newest first."""
    lines = git(repo, "log", f"--format={TRAILER}%x00%s", span).splitlines()
    return [Commit(*line.split("\0")) for line in lines]


def person(repo: Path, log: Path, seed: int, pause: float, over: Event) -> None:
    """Work until it is over."""
    rng, number, desk = random.Random(seed), 0, log.with_suffix(".tree")
    git(repo, "worktree", "add", "-q", "--detach", str(desk), TARGET)
    with log.open("w") as lines:
        while not over.wait(pause * rng.random()):
            old = git(repo, "rev-parse", f"refs/heads/{TARGET}")
            number += 1
            how = rng.choices((_commits, _resets, _rebases), (80, 8, 12))[0]
            try:
                git(desk, "checkout", "-q", "--detach", old)
                how(desk, number, rng)
                new = git(desk, "rev-parse", "HEAD")
                gone = commits(repo, f"{new}..{old}")
                come = commits(repo, f"{old}..{new}")
                git(repo, "update-ref", "-m", how.__name__, f"refs/heads/{TARGET}", new, old)
            except GitFailed:
                continue  # somebody else was quicker, or holds the lock
            json.dump({"how": how.__name__, "gone": gone, "come": come}, lines)
            lines.write("\n")
            lines.flush()


def _commits(desk: Path, number: int, rng: random.Random) -> None:
    (desk / f"person-{number}.txt").write_text(f"{number}\n")
    git(desk, "add", f"person-{number}.txt")
    git(desk, "commit", "-q", "-m", f"Person {number}")


def _resets(desk: Path, number: int, rng: random.Random) -> None:
    git(desk, "reset", "-q", "--hard", f"HEAD~{rng.randint(1, 3)}")


def _rebases(desk: Path, number: int, rng: random.Random) -> None:
    """The last commits are made again on top of a new one."""
    tip = git(desk, "rev-parse", "HEAD")
    git(desk, "reset", "-q", "--hard", f"HEAD~{rng.randint(1, 4)}")
    base = git(desk, "rev-parse", "HEAD")
    _commits(desk, number, rng)
    try:
        git(desk, "cherry-pick", "--allow-empty", f"{base}..{tip}")
    except GitFailed:
        subprocess.run(["git", "cherry-pick", "--abort"], cwd=desk, capture_output=True)
        raise


def upkeep(repo: Path, seed: int, pause: float, over: Event) -> None:
    """Let git pack and collect, again and again."""
    rng = random.Random(seed)
    while not over.wait(pause * rng.random()):
        subprocess.run(["git", *rng.choice(_UPKEEP)], cwd=repo, capture_output=True)
