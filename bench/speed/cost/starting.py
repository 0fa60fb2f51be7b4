"""The start of a verb, against what Python alone needs for the same."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from bench.speed.cost.ground import Ground
from bench.speed.goal import Goal

EACH = 5
"""Starts in a row whose sum is one measurement."""


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
