"""The start of a verb, against what Python alone needs for the same; and the oracle, most of which
is its start, against `status`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from bench.git import git
from bench.speed.cost.ground import Ground
from bench.speed.goal import Goal

EACH = 5
"""Starts in a row whose sum is one measurement."""
FILES, WAITING = 10_000, 1000


def starting(ground: Ground) -> Iterator[Goal]:
    """`--version`, and three verbs of daily use in a repository with an empty queue."""
    repo = ground.repository()
    ground.spent([*ground.command, "init"], repo)
    response = repo / "response.md"
    response.write_text("a.txt\n<<<<<<< SEARCH\n=======\nnew\n>>>>>>> REPLACE\n")

    def spent(*words: str) -> float:
        return sum(ground.spent(words, repo) for _ in range(EACH))

    nothing = (sys.executable, "-c", "pass")
    library = (sys.executable, "-c", "import pygit2")
    verbs = {"status": ("status",), "log": ("log",), "submit": ("submit", str(response))}
    version: list[float] = []
    ratios: dict[str, list[float]] = {verb: [] for verb in verbs}
    for _ in range(ground.rounds):
        version.append(spent(*ground.command, "--version") / spent(*nothing))
        bare = spent(*library)
        for verb, words in verbs.items():
            ratios[verb].append(spent(*ground.command, *words) / bare)
    yield Goal("--version / python -c pass", version, 1.5)
    for verb, values in ratios.items():
        yield Goal(f"{verb} / python -c 'import pygit2'", values, 3.5)


def oracle(ground: Ground) -> Iterator[Goal]:
    """`check` of an edit, with no proposal beside it and with many."""
    repo = ground.repository("files")
    for number in range(FILES):
        (repo / _path(number)).parent.mkdir(exist_ok=True)
        (repo / _path(number)).write_text(f"def f():\n    return {number}\n")
    git(repo, "add", ".", home=ground.home)
    git(repo, "commit", "-q", "-m", "Write", home=ground.home)
    ground.spent([*ground.command, "init"], repo)
    asked = ground.room / "asked.md"
    asked.write_text(_edit(WAITING))
    yield _oracle(ground, repo, asked, "no proposals")
    waiting = WAITING // 10 if ground.quick else WAITING
    for number in range(waiting):
        (repo / f".patchq/inbox/w{number}.md").write_text(_edit(number))
    ground.spent([*ground.command, "run"], repo)
    yield _oracle(ground, repo, asked, f"{waiting} proposals")


def _oracle(ground: Ground, repo: Path, asked: Path, beside: str) -> Goal:
    ratios = []
    for _ in range(ground.rounds):
        looks = [ground.spent([*ground.command, "status"], repo) for _ in range(EACH)]
        checks = [ground.spent([*ground.command, "check", str(asked)], repo) for _ in range(EACH)]
        ratios.append(sum(checks) / sum(looks))
    return Goal(f"check / status, {FILES:,} files, {beside}", ratios, 2.0)


def _path(number: int) -> str:
    return f"d{number % 40}/f{number}.py"


def _edit(number: int) -> str:
    quote = f"    return {number}\n"
    return f"{_path(number)}\n<<<<<<< SEARCH\n{quote}=======\n    return -1\n>>>>>>> REPLACE\n"
