"""`status` of very many proposals, against that of ten."""

from __future__ import annotations

from collections.abc import Iterator

from bench.speed.cost.ground import Ground
from bench.speed.goal import Goal

FEW = 10


def listing(ground: Ground) -> Iterator[Goal]:
    """One screen with totals, whatever waits; the same as JSON; and the oldest first, which
    reads every report."""
    many = 100 if ground.quick else 1000
    places = {count: ground.repository(f"of-{count}") for count in (FEW, many)}
    for count, repo in places.items():
        ground.spent([*ground.command, "init"], repo)
        for number in range(count):
            text = f"new/{number}.txt\n<<<<<<< SEARCH\n=======\nnew\n>>>>>>> REPLACE\n"
            (repo / f".patchq/inbox/p{number}.md").write_text(text)
        ground.spent([*ground.command, "-q", "run"], repo)
    for words in ("status", "--json status", "status --by age"):
        command = [*ground.command, *words.split()]
        ratios = []
        for _ in range(ground.rounds * 3):
            few, all_of_them = (ground.spent(command, repo) for repo in places.values())
            ratios.append(all_of_them / few)
        yield Goal(f"{words} of {many} proposals / of {FEW}", ratios, 2.0)
