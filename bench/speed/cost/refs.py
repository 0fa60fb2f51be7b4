"""Refs and packs: how many there are, what a person's git needs among them, and what a landing
needs where many landed before."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.git import environment, git
from bench.speed.cost.ground import Ground
from bench.speed.goal import Goal
from bench.speed.serving import block, has_verdict, wait_for, watching
from tests.helpers.gitrepo import write_config

BATCHES, MOST_BATCHES = 10_000, 100_000
SINGLES, PACKS = 160, 70
EACH = 5
"""Runs of git in a row whose sum is one measurement."""
LANDINGS = 120
_TICK = os.sysconf("SC_CLK_TCK")


class Fed:
    """A repository in which so many batches landed, as its refs have it, and `watch` to which one
    response after the other is given, each alone."""

    def __init__(self, ground: Ground, name: str, batches: int) -> None:
        self.repo, self._sent, self._ground = ground.repository(name), 0, ground
        tip = git(self.repo, "rev-parse", "HEAD", home=ground.home).decode().strip()
        git(self.repo, "branch", "trunk", home=ground.home)
        names = sorted(f"refs/patchq/batches/old-{n}" for n in range(batches))
        header = "# pack-refs with: peeled fully-peeled sorted \n"
        lines = "".join(f"{tip} {name}\n" for name in names)
        (self.repo / ".git/packed-refs").write_text(header + lines)
        write_config(self.repo, "version: 1\nmode: auto\ntarget: trunk\n")
        ground.spent([*ground.command, "init"], self.repo)
        self._pid = 0

    @contextmanager
    def served(self) -> Iterator[None]:
        env = environment(self._ground.home)
        with watching(self._ground.command, self.repo, env) as daemon:
            self._pid = daemon.pid
            yield

    def land(self, files: int = 1) -> None:
        """One response that makes so many files, each in a directory of its own."""
        id, inbox = f"b{self._sent}", self.repo / ".patchq/inbox"
        self._sent += 1
        paths = (f"{id}.txt",) if files == 1 else (f"{id}/{n}/x.txt" for n in range(files))
        made = (block(path, "", f"{path}\n") for path in paths)
        (inbox / f".{id}.tmp").write_bytes(b"".join(made))
        (inbox / f".{id}.tmp").rename(inbox / f"{id}.md")
        wait_for(lambda: has_verdict(self.repo, id), "a verdict")

    def spent(self) -> float:
        """The daemon's own processor time so far, in seconds."""
        fields = Path(f"/proc/{self._pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICK

    def counts(self) -> tuple[int, int]:
        """Loose refs and packs."""
        loose = sum(len(files) for *_, files in os.walk(self.repo / ".git/refs"))
        return loose, len(list((self.repo / ".git/objects/pack").glob("*.pack")))


def refs(ground: Ground) -> Iterator[Goal]:
    """With `gc.auto=0`, which every repository of the bench has."""
    fed = Fed(ground, "many", BATCHES)
    singles, packs = (SINGLES, PACKS) if not ground.quick else (20, 5)
    seen = []
    with fed.served():
        for files in [30] * packs + [1] * singles:
            fed.land(files)
            seen.append(fed.counts())
    yield Goal("most loose refs / 100", [max(loose for loose, _ in seen) / 100], 1.0)
    yield Goal("most packs / 60", [max(count for _, count in seen) / 60], 1.0)
    yield from _a_persons_git(ground, fed.repo)
    yield from _a_landing(ground)


def _a_persons_git(ground: Ground, repo: Path) -> Iterator[Goal]:
    packed, other = ground.room / "packed", ground.room / "other"
    shutil.copytree(repo, packed, symlinks=True)
    git(packed, "pack-refs", "--all", home=ground.home)
    git(ground.room, "init", "-q", "--bare", "other", home=ground.home)
    words = {
        "for-each-ref": ("for-each-ref",),
        "fetch": ("-C", str(other), "fetch", "-q"),
        "push": ("push", "-q", str(other), "main:refs/heads/mine"),
    }
    ratios: dict[str, list[float]] = {verb: [] for verb in words}
    for _ in range(ground.rounds):
        for verb, said in words.items():
            sums = [
                sum(
                    ground.spent(["git", *said, *([str(at)] if verb == "fetch" else [])], at)
                    for _ in range(EACH)
                )
                for at in (repo, packed)
            ]
            ratios[verb].append(sums[0] / sums[1])
    for verb, values in ratios.items():
        yield Goal(f"git {verb}, {BATCHES:,} batches / the same packed", values, 1.5)


def _a_landing(ground: Ground) -> Iterator[Goal]:
    few, many = (Fed(ground, str(count), count) for count in (BATCHES // 10, MOST_BATCHES))
    landings = LANDINGS if not ground.quick else 20
    ratios = []
    with few.served():
        few.land()
        with many.served():
            many.land()
            for _ in range(ground.rounds):
                spent = []
                for fed in (few, many):
                    before = fed.spent()
                    for _ in range(landings):
                        fed.land()
                    spent.append(fed.spent() - before)
                ratios.append(spent[1] / spent[0])
    name = f"a landing, {MOST_BATCHES:,} batches / {BATCHES // 10:,}"
    yield Goal(name, ratios, 1.25)
