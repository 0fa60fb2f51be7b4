"""What users see is the same on many machines: the scenarios against a feeder and two workers.

Those in `TELLING` are run by default, all others by `-m machines`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest

from patchq.gate.report.schema import Report
from tests.helpers import processes
from tests.helpers.command import drop, patchq
from tests.helpers.gitrepo import git, write_config
from tests.helpers.processes import Process
from tests.whole.test_scenarios import (
    NAMES,
    SCENARIOS,
    Place,
    configuration,
    kinds,
    play,
    repository,
)

TELLING = {
    ("already-landed", "auto"), ("base-moved-beside", "review"), ("follow-up", "auto"),
    ("not-there", "review"), ("path-to-review", "auto"),
}  # fmt: skip
SECONDS = 60.0
CLUSTER = "target: main\ncluster: {}\n"


class Cluster(Place):
    """A scenario's repository as a feeder, with two workers in clones of its remote."""

    def __init__(self, repo: Path, config: str) -> None:
        root = repo.parent
        git("clone", "-q", "--bare", "repo", "hub.git", cwd=root)
        git("remote", "add", "-f", "origin", "../hub.git", cwd=repo)
        super().__init__(repo, config)
        self.shared = root / "hub.git"
        self.running: list[Process] = []
        self.logs: list[Path] = []
        for name in ("w1", "w2"):
            git("clone", "-q", "hub.git", name, cwd=root)
            write_config(root / name, config)
            self.start("worker", name)
        self.start("watch", "repo")

    def start(self, verb: str, name: str) -> None:
        """A process in one of the clones."""
        root = self.repo.parent
        self.logs.append(root / f"{name}.log")
        self.running.append(processes.start(verb, cwd=root / name, log=self.logs[-1]))

    def give(self, response: Path) -> dict[str, Any]:
        drop(self.queue, {response.name: response.read_bytes()})
        told = self.told_of(response.name)
        assert list(told) == list(Report.__struct_fields__)
        return told

    def told_of(self, name: str) -> dict[str, Any]:
        """The report on the response, once it has its verdict."""
        self.until(lambda: self._told(name))
        return self._told(name)

    def until(self, holds: Callable[[], object]) -> None:
        until = monotonic() + SECONDS
        while not holds():
            assert monotonic() < until, "\n".join(log.read_text() for log in self.logs)
            sleep(0.01)

    def _told(self, name: str) -> dict[str, Any]:
        for place in self.queue.glob("[!a]*/*.report.json"):
            told: dict[str, Any] = json.loads(place.read_bytes())
            if told["source"]["name"] == name:
                return told
        return {}


Make = Callable[[Path, str], Cluster]


@pytest.fixture
def cluster(database: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    monkeypatch.setenv("PATCHQ_DATABASE", database)
    made: list[Cluster] = []

    def make(repo: Path, config: str) -> Cluster:
        made.append(Cluster(repo, config + CLUSTER))
        return made[-1]

    yield make
    processes.end(one for cluster in made for one in cluster.running)


CASES = [
    pytest.param(*case, marks=[] if case in TELLING else [pytest.mark.slow])
    for case in ((name, kind) for name in NAMES for kind in kinds(name) if kind != "bare")
    if case[1] != "remote"
]


@pytest.mark.parametrize(("scenario", "mode"), CASES)
def test_scenario(scenario: str, mode: str, cluster: Make, tmp_path: Path) -> None:
    given = SCENARIOS / scenario
    at = cluster(repository(given, tmp_path), configuration(given, mode))
    play(given, at, mode)
    assert not [log.read_text() for log in at.logs if "Traceback" in log.read_text()]
    assert git("fsck", "--strict", "--no-dangling", cwd=at.shared) == ""
    assert git("status", "--porcelain", "--untracked-files=no", cwd=at.repo) == ""
    assert patchq("fsck", cwd=at.repo).code == 0
