"""A worker asks the remote for the branches that it decides on; what a response speaks of beside
its own is known as it is now, too."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.command import block, drop, seen
from tests.helpers.gitrepo import commit_files, git, operators_file
from tests.helpers.machines import Machines

FILES = {f"{name}.txt": "one\ntwo\nthree\n" for name in "abc"}
CONFIG = """mode: {mode}
targets: ['*']
queue:
  settle_seconds: 0.1
landing:
  poll_seconds: 600
cluster:
  takeover_seconds: 10
"""
"""Nobody looks at the remote by the way."""
Make = Callable[[str], Machines]


@pytest.fixture
def made(tmp_path: Path, database: str) -> Iterator[Make]:
    some: list[Machines] = []

    def make(mode: str) -> Machines:
        machines = Machines(tmp_path, database, FILES, CONFIG.format(mode=mode))
        some.append(machines)
        git("branch", "next", cwd=machines.hub)
        git("clone", "-q", "hub.git", "person", cwd=tmp_path)
        machines.start("feeder", "watch")
        return machines

    yield make
    for machines in some:
        machines.close()


def send(machines: Machines, id: str, text: str, **header: str) -> dict[str, Any]:
    """The report on a response with that front matter."""
    said = "".join(f"{key}: {value}\n" for key, value in header.items())
    queue = machines.root / "feeder" / ".patchq"
    drop(queue, {f"{id}.md": f"---\n{said}---\n{text}"})
    machines.soon(lambda: seen(queue, id))
    return seen(queue, id) or {}


def push(machines: Machines, files: dict[str, str], *branches: str) -> str:
    """A person's commit on all of the branches."""
    place = machines.root / "person"
    commit = commit_files(place, files, "By hand")
    git("push", "-q", "origin", *(f"HEAD:{name}" for name in branches), cwd=place)
    return commit


@pytest.mark.slow
def test_a_base_that_names_another_branch_is_where_that_ends_now(made: Make) -> None:
    machines = made("auto")
    machines.start("w1", "worker", "--name", "w1")
    assert send(machines, "first", block("c.txt", "no\n", "2\n"))["state"] == "rejected"
    commit = push(machines, {"a.txt": "one\nnew\nthree\n"}, "main", "next")
    told = send(machines, "by-name", block("a.txt", "new\n", "newer\n"), base="next")
    assert (told["state"], told["base"]["commit"]) == ("applied", commit)


def test_a_branch_that_a_worker_has_checked_out_brings_no_rules(
    tmp_path: Path, database: str
) -> None:
    rules, marker = f"version: 1\ntarget: main\n{CONFIG.format(mode='review')}", tmp_path / "marker"
    machines = Machines(tmp_path, database, {**FILES, ".patchq.yaml": rules}, "")
    try:
        for name in ("feeder", "w1"):
            place = machines.clone(name)
            operators_file(place).unlink()
            hook = f"hooks: [{{id: evil, stage: pre-commit, run: 'touch {marker}'}}]\n"
            git("checkout", "-q", "-b", "agent/x", cwd=place)
            commit_files(place, {".patchq.yaml": rules.replace("review", "auto") + hook})
        machines.start("feeder", "watch")
        machines.start("w1", "worker", "--name", "w1")
        told = send(machines, "x", block("a.txt", "one\n", "1\n"))
        assert (told["state"], told["mode"], told["hooks"]) == ("proposed", "review", [])
        assert told["rules"]["from"] == "home branch"
        assert not marker.exists()
    finally:
        machines.close()
