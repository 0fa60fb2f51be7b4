"""What waits for review is every worker's: who serves a branch sees it, and has it follow."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.command import block, drop, patchq, report
from tests.helpers.gitrepo import commit_files, git
from tests.helpers.machines import Machines
from tests.helpers.processes import Process

FILES = {f"{name}.txt": "one\ntwo\nthree\n" for name in "abc"}
CONFIG = """mode: review
queue:
  settle_seconds: 0.1
landing:
  poll_seconds: 0.2
cluster:
  takeover_seconds: 1
"""


@pytest.fixture
def machines(tmp_path: Path, database: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machines]:
    monkeypatch.setenv("PATCHQ_DATABASE", database)
    machines = Machines(tmp_path, database, FILES, CONFIG)
    machines.start("feeder", "watch")
    yield machines
    logs = [machines.log(place.name) for place in tmp_path.iterdir() if (place / "log").exists()]
    machines.close()
    assert not [log for log in logs if "Traceback" in log]


def worker(machines: Machines, name: str) -> Process:
    return machines.start(name, "worker", "--name", name)


def end(process: Process) -> None:
    process.terminate()
    assert process.wait(30) == 0


def told(machines: Machines, id: str) -> Any:
    return report(machines.root / "feeder" / ".patchq", id)


def send(machines: Machines, **responses: str) -> None:
    """Drop them, and wait until they are proposed."""
    queue = machines.root / "feeder" / ".patchq"
    drop(queue, {f"{id}.md": text for id, text in responses.items()})
    machines.soon(lambda: all([*queue.glob(f"done/{id}.report.json")] for id in responses))
    assert [told(machines, id)["state"] for id in responses] == ["proposed"] * len(responses)


def push(machines: Machines, files: dict[str, str]) -> str:
    """A person's commit on the shared branch."""
    place = machines.root / "person"
    if not place.exists():
        git("clone", "-q", "hub.git", "person", cwd=machines.root)
    commit = commit_files(place, files, "By hand")
    git("push", "-q", "origin", "HEAD:main", cwd=place)
    return commit


def stands_on(machines: Machines, id: str) -> str:
    return git("rev-parse", f"patchq/{id}~1", cwd=machines.hub)


def agrees(machines: Machines, id: str) -> bool:
    """Whether the report here has the commit at which the branch is."""
    return bool(told(machines, id)["commit"] == git("rev-parse", f"patchq/{id}", cwd=machines.hub))


def test_what_one_worker_proposed_follows_by_another_with_its_comments(
    machines: Machines,
) -> None:
    one = worker(machines, "w1")
    send(machines, x=block("a.txt", "two\n", "2\n"), z=block("c.txt", "two\n", "2\n"))
    (machines.root / "said").write_text("a.txt:2: in words, please\n")
    patchq("send-back", "x", "--comments", "../said", cwd=machines.root / "feeder")
    end(one)
    worker(machines, "w2")
    pushed = push(machines, {"a.txt": f"zero\n{FILES['a.txt']}"})
    machines.soon(lambda: [stands_on(machines, id) for id in "xz"] == [pushed, pushed])
    machines.soon(lambda: agrees(machines, "x") and agrees(machines, "z"))
    now = told(machines, "x")
    assert now["state"] == "proposed"
    assert [comment["line"] for comment in now["review"]["comments"]] == [3]
    worker(machines, "w1")
    pushed = push(machines, {"b.txt": "person\n"})
    machines.soon(lambda: [stands_on(machines, id) for id in "xz"] == [pushed, pushed])
    patchq("accept", "x", cwd=machines.root / "feeder")
    machines.soon(lambda: stands_on(machines, "z") == git("rev-parse", "main", cwd=machines.hub))
    assert git("show", "main:a.txt", cwd=machines.hub) == "zero\none\n2\nthree"


def test_what_a_person_merged_or_deleted_is_noticed_by_whoever_is_there(
    machines: Machines,
) -> None:
    one = worker(machines, "w1")
    send(machines, **{id: block(f"{on}.txt", "two\n", "2\n") for id, on in ("xa", "yb", "zc")})
    end(one)
    git("branch", "-D", "patchq/y", cwd=machines.hub)
    git("update-ref", "refs/heads/main", "patchq/x", cwd=machines.hub)
    worker(machines, "w2")
    expected = ["accepted", "discarded", "proposed"]
    machines.soon(lambda: [told(machines, id)["state"] for id in "xyz"] == expected)
    machines.soon(lambda: stands_on(machines, "z") == git("rev-parse", "main", cwd=machines.hub))
