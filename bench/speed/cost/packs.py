"""How many packs there are at most while groups land, whatever git's own housekeeping is told."""

from __future__ import annotations

from collections.abc import Iterator

from bench.git import environment
from bench.speed.cost.ground import Ground
from bench.speed.goal import Goal
from bench.speed.serving import block, has_verdict, wait_for, watching
from tests.helpers.gitrepo import write_config

LANDINGS, FILES, MOST = 160, 30, 24


def packs(ground: Ground) -> Iterator[Goal]:
    """With `gc.auto=0`, which every repository of the bench has: a pack for each response."""
    repo = ground.repository("many")
    write_config(repo, "version: 1\nmode: review\n")
    ground.spent([*ground.command, "init"], repo)
    inbox, most = repo / ".patchq/inbox", 0
    with watching(ground.command, repo, environment(ground.home)):
        for number in range(LANDINGS if not ground.quick else 5):
            id = f"b{number}"
            made = (block(f"{id}/{n}/x.txt", "", f"{id} {n}\n") for n in range(FILES))
            (inbox / f".{id}.tmp").write_bytes(b"".join(made))
            (inbox / f".{id}.tmp").rename(inbox / f"{id}.md")
            wait_for(lambda: has_verdict(repo, id), "a verdict")  # noqa: B023
            most = max(most, len(list((repo / ".git/objects/pack").glob("*.pack"))))
    yield Goal(f"most packs / {MOST}", [most / MOST], 1.0)
