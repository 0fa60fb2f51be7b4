"""Many machines: responses dropped on one are decided on another, and land on the remote."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterable, Iterator
from hashlib import sha256
from itertools import product
from pathlib import Path
from typing import Any

import psycopg
import pytest

from bench.cluster.server import running as database_server
from patchq.gate.queue.postgres.database import migrate
from tests.helpers.command import block, drop, patchq, report, seen
from tests.helpers.gitrepo import commit_files, git, make_repo, operators_file, write_config
from tests.helpers.machines import Machines
from tests.helpers.processes import Process

FILES = {f"{name}.txt": "one\ntwo\nthree\n" for name in "abcdef"}
CONFIG = """mode: auto
targets: [release/*]
queue:
  settle_seconds: 0.1
cluster:
  takeover_seconds: 1
"""


@pytest.fixture
def machines(tmp_path: Path, database: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machines]:
    monkeypatch.setenv("PATCHQ_DATABASE", database)
    machines = Machines(tmp_path, database, FILES, CONFIG)
    git("branch", "release/1", cwd=machines.hub)
    yield machines
    machines.close()


def states(machines: Machines, *ids: str) -> list[str]:
    queue = machines.root / "feeder" / ".patchq"
    return [told["state"] for id in ids if (told := seen(queue, id))]


def landed(machines: Machines, branch: str = "main") -> list[str]:
    """The batches in the branch's history, by its trailers, the oldest first."""
    form = "--format=%(trailers:key=Patchq-Batch,valueonly)"
    return git("log", "--reverse", form, branch, cwd=machines.hub).split()


def test_what_one_machine_drops_another_lands(machines: Machines) -> None:
    machines.start("feeder", "watch")
    machines.start("w1", "worker", "--name", "w1")
    queue = machines.clone("feeder") / ".patchq"
    texts = {
        "good.md": block("a.txt", "two\n", "2\n"),
        "bad.md": block("a.txt", "nowhere\n", "2\n"),
        "other.md": "---\ntarget: release/1\n---\n" + block("b.txt", "two\n", "2\n"),
        "later.md": "---\ndepends_on: [other]\n---\n" + block("c.txt", "two\n", "2\n"),
    }
    drop(queue, texts)
    ids = ("good", "bad", "other", "later")
    machines.soon(lambda: states(machines, *ids) == ["applied", "rejected", "applied", "applied"])
    assert sorted(landed(machines)) == ["good", "later"]
    assert landed(machines, "release/1") == ["other"]
    drop(queue, {"again.md": block("a.txt", "two\n", "2\n")})
    machines.soon(lambda: states(machines, "again") == ["duplicate"])
    assert report(queue, "again")["duplicate_of"] == "good"


def judged(machines: Machines, ids: list[str]) -> None:
    """Nothing is lost, nothing landed twice, and each report is what the remote says."""
    queue = machines.root / "feeder" / ".patchq"
    machines.soon(lambda: not [*(queue / "active").iterdir()])  # what is held lands by itself
    there = landed(machines)
    assert len(there) == len(set(there)), "landed twice"
    told = {id: report(queue, id) for id in ids}
    assert sorted(there) == sorted(id for id in ids if told[id]["state"] == "applied")
    for id in there:
        message = git("show", "-s", "--format=%B", told[id]["commit"], cwd=machines.hub)
        assert f"Patchq-Batch: {id}" in message
        git("merge-base", "--is-ancestor", told[id]["commit"], "main", cwd=machines.hub)


LAND = "patchq.gate.git.branches.remote:RemoteBranches.land"
QUEUE = "patchq.gate.queue.postgres.engine:PostgresQueue"
POINTS = [*(f"{QUEUE}.{name}" for name in ("reserve_all", "intend", "sync", "publish")), LAND]
"""Where a worker ends, or freezes, before and behind the call."""


def cases(points: Iterable[tuple[str, str]], fast: list[tuple[str, str]]) -> list[Any]:
    """Return each with its id; all but a few are slow."""
    return [
        pytest.param(
            *(point, when),
            id=f"{when} {point.rpartition('.')[2]}",
            marks=[] if (point, when) in fast else [pytest.mark.slow],
        )
        for point, when in points
    ]


CASES = cases(
    product(POINTS, ("before", "behind")), [(LAND, "behind"), (f"{QUEUE}.publish", "before")]
)


def struck(machines: Machines, point: str, when: str, number: signal.Signals) -> Process:
    """A worker that met the signal there, with two responses in hand; another one has given the
    verdicts since."""
    machines.start("feeder", "watch")
    queue = machines.clone("feeder") / ".patchq"
    first = machines.start("w1", "worker", "--name", "w1", dies=(point, when, number))
    drop(queue, {"good.md": block("a.txt", "two\n", "2\n"), "bad.md": block("a.txt", "no\n", "")})
    machines.soon(lambda: first.poll() is not None or stopped(first.pid))
    machines.start("w2", "worker", "--name", "w2")
    machines.soon(lambda: states(machines, "good", "bad") == ["applied", "rejected"])
    return first


@pytest.mark.parametrize(("point", "when"), CASES)
def test_wherever_a_worker_ends_the_verdict_is_the_remotes(
    machines: Machines, point: str, when: str
) -> None:
    struck(machines, point, when, signal.SIGKILL)
    judged(machines, ["good", "bad"])


@pytest.mark.parametrize(("point", "when"), CASES)
def test_wherever_a_worker_freezes_it_says_nothing_when_it_wakes(
    machines: Machines, point: str, when: str
) -> None:
    first = struck(machines, point, when, signal.SIGSTOP)
    first.send_signal(signal.SIGCONT)
    machines.soon(lambda: "tried again" in machines.log("w1"))
    drop(machines.root / "feeder" / ".patchq", {"more.md": block("b.txt", "two\n", "2\n")})
    machines.soon(lambda: states(machines, "more") == ["applied"])
    judged(machines, ["good", "bad", "more"])


def test_a_push_that_arrives_behind_the_verdict_is_what_the_verdict_says(
    machines: Machines,
) -> None:
    machines.start("feeder", "watch")
    queue = machines.clone("feeder") / ".patchq"
    first = machines.start("w1", "worker", "--name", "w1", dies=(LAND, "before", signal.SIGSTOP))
    drop(queue, {"good.md": block("a.txt", "two\n", "2\n")})
    machines.soon(lambda: stopped(first.pid))
    machines.config += "paths:\n  deny: [a.txt]\n"
    machines.start("w2", "worker", "--name", "w2")
    machines.soon(lambda: states(machines, "good"))
    first.send_signal(signal.SIGCONT)
    machines.soon(lambda: "tried again" in machines.log("w1"))
    drop(queue, {"more.md": block("b.txt", "two\n", "2\n")})
    machines.soon(lambda: states(machines, "more") == ["applied"])
    judged(machines, ["good", "more"])


def test_files_of_one_name_at_two_feeders_have_a_verdict_each(machines: Machines) -> None:
    queues = [machines.clone(feeder) / ".patchq" for feeder in ("feeder", "other")]
    for queue, own in zip(queues, "ab", strict=True):
        machines.start(queue.parent.name, "watch")
        drop(queue, {"x.md": block(f"{own}.txt", "two\n", "2\n")})
        drop(queue, {"same.md": block("c.txt", "two\n", "2\n")})
    for worker in ("w1", "w2"):
        machines.start(worker, "worker", "--name", worker)
    machines.soon(lambda: all(len([*queue.glob("done/*.report.json")]) == 2 for queue in queues))
    machines.soon(lambda: not any([*(queue / "active").iterdir()] for queue in queues))
    told = []
    for path in (path for queue in queues for path in queue.glob("done/*.report.json")):
        told.append(json.loads(path.read_bytes()))
        sent = path.with_name(path.name.replace(".report.json", ".md")).read_bytes()
        assert sha256(sent).hexdigest() == told[-1]["source"]["sha256"]
    assert sorted(one["id"] for one in told if one["source"]["name"] == "x.md") == ["x", "x-2"]
    assert sorted(one["state"] for one in told) == ["applied"] * 3 + ["duplicate"]
    there = [one["id"] for one in told if one["state"] == "applied"]
    assert sorted(landed(machines)) == sorted(there)


def test_what_many_processes_died_of_is_held(machines: Machines) -> None:
    machines.start("feeder", "watch")
    drop(machines.clone("feeder") / ".patchq", {"good.md": block("a.txt", "two\n", "2\n")})
    died = "update responses set state = 'claimed', session = 99, deaths = 5 returning number"
    with psycopg.connect(machines.database, autocommit=True) as connection:
        machines.soon(lambda: connection.execute(died).fetchall())
    machines.start("w1", "worker", "--name", "w1")
    machines.soon(lambda: "fault.crashed" in machines.log("w1"))
    machines.soon(lambda: "held       good" in machines.log("feeder"))


def stopped(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


def test_a_database_that_dies_in_between_loses_nothing(tmp_path: Path) -> None:
    with database_server() as server:
        with psycopg.connect(server.conninfo) as connection:
            migrate(connection)
        machines = Machines(tmp_path, server.conninfo, FILES, CONFIG)
        try:
            machines.start("feeder", "watch")
            machines.start("w1", "worker", "--name", "w1")
            machines.start("w2", "worker", "--name", "w2")
            queue = machines.clone("feeder") / ".patchq"
            ids = [f"n{n}" for n in range(18)]
            for some in (ids[:6], ids[6:12], ids[12:]):
                drop(queue, {f"{id}.md": block(f"{id}.txt", "", f"{id}\n") for id in some})
                machines.soon(lambda: landed(machines))
                server.end(signal.SIGKILL)
                server.start()
            machines.soon(lambda: len(states(machines, *ids)) == len(ids))
            judged(machines, ids)
            assert "tried again" in machines.log("feeder")
        finally:
            machines.close()


@pytest.fixture
def stranger(tmp_path: Path) -> Path:
    """A clone of another remote, with a branch and files of the same names."""
    seed = make_repo(tmp_path / "other", {})
    commit_files(seed, {**FILES, "more.txt": "more\n"})
    git("clone", "-q", "--bare", "other", "other.git", cwd=tmp_path)
    git("clone", "-q", "other.git", "stranger", cwd=tmp_path)
    write_config(tmp_path / "stranger", f"version: 1\ntarget: main\n{CONFIG}")
    patchq("init", cwd=tmp_path / "stranger")
    return tmp_path / "stranger"


def test_nobody_of_another_repository_decides_or_enters(machines: Machines, stranger: Path) -> None:
    machines.start("feeder", "watch")
    queue = machines.clone("feeder") / ".patchq"
    drop(queue, {"x.md": block("a.txt", "two\n", "2\n")})
    with psycopg.connect(machines.database, autocommit=True) as connection:
        entered = "select count(*) from responses"
        machines.soon(lambda: connection.execute(entered).fetchone() == (1,))
        drop(stranger / ".patchq", {"y.md": block("a.txt", "two\n", "deux\n")})
        for verb in ("worker", "watch", "run"):
            told = patchq(verb, cwd=stranger, code=2).err
            assert "the queue of another repository" in told
            assert "Traceback" not in told
        assert connection.execute(entered).fetchone() == (1,)
    told = patchq("doctor", "--json", cwd=stranger, code=1).json()["findings"]
    [found] = [one for one in told if one["what"] == "cluster.repository"]
    assert (found["level"], "schema" in found["cure"]) == ("fatal", True)
    assert git("log", "--format=%s", "main", cwd=stranger.parent / "other.git").count("\n") <= 1
    left = [path.name for path in (stranger / ".patchq").glob("[ai]*/*.md")]
    assert any(name.endswith("y.md") for name in left), left
    machines.start("w1", "worker", "--name", "w1")
    machines.soon(lambda: states(machines, "x") == ["applied"])
    assert landed(machines) == ["x"]
    assert report(queue, "x")["target"] == "main"


def test_a_branch_that_a_worker_has_checked_out_brings_no_rules(machines: Machines) -> None:
    marker, rules = machines.root / "marker", f"version: 1\ntarget: main\n{CONFIG}"
    seed = machines.clone("seed")
    commit_files(seed, {".patchq.yaml": rules.replace("auto", "review")})
    git("push", "-q", "../hub.git", "main", cwd=seed)
    hook = f"hooks: [{{id: evil, stage: pre-commit, run: 'touch {marker}'}}]\n"
    for name in ("feeder", "w1"):
        place = machines.clone(name)
        operators_file(place).unlink()
        git("checkout", "-q", "-b", "agent/x", cwd=place)
        commit_files(place, {".patchq.yaml": rules + hook})
    machines.start("feeder", "watch")
    machines.start("w1", "worker", "--name", "w1")
    queue = machines.root / "feeder" / ".patchq"
    drop(queue, {"x.md": block("a.txt", "one\n", "1\n")})
    machines.soon(lambda: seen(queue, "x"))
    told = report(queue, "x")
    assert (told["state"], told["mode"], told["hooks"]) == ("proposed", "review", [])
    assert told["rules"]["from"] == "home branch"
    assert not marker.exists()
