"""Somebody commits to the target while a group of batches is decided on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from patchq.config import config_file
from patchq.git.branches import Branches, BranchMove, Moved
from patchq.git.repository import Repository
from patchq.land import worker
from patchq.pipeline.ground import Ground
from patchq.pipeline.world import World, compose
from patchq.queue import directory
from patchq.queue.directory import DirectoryQueue
from tests.helpers.command import block, drop, report
from tests.helpers.gitrepo import commit_files, git, make_repo

NAMES = ("a", "p", "b", "q", "c")
PROPOSED = ("p", "q")
SETTINGS = b"version: 1\nmode: auto\npaths:\n  review: [p.txt, q.txt]\n"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """A daemon in auto mode; the target is not checked out, and `p` and `q` are for review."""
    repo = make_repo(tmp_path / "repo", {f"{name}.txt": "one\n" for name in NAMES})
    git("checkout", "-q", "--detach", cwd=repo)
    root = repo / ".patchq"
    directory.create(root)
    settings = config_file.parse(SETTINGS)
    world = compose(Ground(Repository.open(repo), DirectoryQueue(root), root, settings, "main"))
    world.queue.acquire()
    drop(root, {f"{name}.md": block(f"{name}.txt", "one\n", "1\n") for name in NAMES})
    yield world
    world.queue.close()


def committing(world: World, when: Callable[[int], bool]) -> World:
    """The same, beside somebody who commits before those decisions, the first of which is 1."""
    repo, count = world.queue_root.parent, 0

    def beside() -> None:
        nonlocal count
        count += 1
        if when(count):
            git("checkout", "-q", "--detach", "main", cwd=repo)
            commit_files(repo, {"mine.txt": f"{count}\n"}, f"By hand {count}")
            git("update-ref", "refs/heads/main", "HEAD", cwd=repo)

    return replace(world, pulse=beside)


@pytest.mark.parametrize("at", range(1, 12))
def test_each_lands_once_and_as_its_report_says(world: World, at: int) -> None:
    repo = world.queue_root.parent
    beside = committing(world, lambda count: count == at)
    while worker.turn(beside, lambda told: None):
        pass
    told = {name: report(world.queue_root, name) for name in NAMES}
    assert {name: told[name]["state"] for name in NAMES} == {
        name: "proposed" if name in PROPOSED else "applied" for name in NAMES
    }
    subjects = git("log", "--format=%H %(trailers:key=Patchq-Batch,valueonly)", "main", cwd=repo)
    landed = [line.split() for line in subjects.splitlines() if " " in line.strip()]
    assert sorted(landed) == sorted([told[n]["commit"], n] for n in NAMES if n not in PROPOSED)
    for name in PROPOSED:
        branch = git("rev-parse", f"patchq/{name}", cwd=repo)
        assert branch == told[name]["commit"]
        git("merge-base", "--is-ancestor", f"{branch}^", "main", cwd=repo)
        assert git("diff", "--name-only", f"{branch}^", branch, cwd=repo) == f"{name}.txt"


class Restless:
    """The branches, beside somebody who commits each time right before anything moves."""

    def __init__(self, world: World) -> None:
        self._branches = world.branches
        self._commit = committing(world, lambda count: True).pulse

    def land(self, moves: Sequence[BranchMove]) -> list[Moved]:
        self._commit()
        return self._branches.land(moves)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._branches, name)


def test_what_never_finds_the_branch_quiet_lands_once_it_is(world: World) -> None:
    root = world.queue_root
    beside = replace(world, branches=cast(Branches, Restless(world)))
    while worker.turn(beside, lambda told: None):
        pass
    for name in NAMES:
        told = report(root, name)
        assert told["state"] == ("proposed" if name in PROPOSED else "held")
        problems = [(problem["code"], problem["message"][:5]) for problem in told["problems"]]
        assert problems[-1] == (
            ("path.review", f"{name}.txt") if name in PROPOSED else ("target.busy", "main,")
        )
    while worker.look_at_held(world, lambda told: None):
        pass
    states = {name: report(root, name)["state"] for name in NAMES}
    assert states == {name: "proposed" if name in PROPOSED else "applied" for name in NAMES}
