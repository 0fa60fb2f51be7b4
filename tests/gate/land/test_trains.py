"""Trains: what is accepted lands by few runs of the hooks, and what is to blame is named."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from patchq.gate.hooks.sandbox import NO_SANDBOX
from tests.helpers.command import block, drop, patchq, report, work
from tests.helpers.gitrepo import commit_files, git, make_repo, shell, write_config
from tests.helpers.machines import Machines
from tests.helpers.stepping import die

IDS = [f"p{number}" for number in range(8)]


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with a proposal for each of eight files."""
    monkeypatch.setenv(NO_SANDBOX, "1")
    repo = make_repo(tmp_path / "repo", {f"{id}.txt": "old\n" for id in IDS})
    write_config(repo, "version: 1\nmode: review\n")
    patchq("init", cwd=repo)
    work(repo, **{id: block(f"{id}.txt", "old\n", "new\n") for id in IDS})
    return repo


def judged_by(
    repo: Path, line: str, more: str = "", parallel: int = 1, mode: str = "review"
) -> Path:
    """Have a hook run the line; return the file that gets a byte for each run."""
    runs = repo.parent / "runs"
    command = f"printf x >> {runs}; {line}"
    hook = f"id: tests, stage: pre-commit, unconfined: true, run: '{command}'"
    train = f"train: {{parallel: {parallel}}}"
    write_config(repo, f"version: 1\nmode: {mode}\n{train}\nhooks: [{{{hook}{more}}}]\n")
    runs.touch()
    return runs


def states(repo: Path) -> dict[str, str]:
    return {id: report(repo / ".patchq", id)["state"] for id in IDS}


def marks(repo: Path) -> list[str]:
    names = git("for-each-ref", "--format=%(refname:lstrip=3)", "refs/patchq/boarded", cwd=repo)
    return names.split()


PAIR = "! { grep -q new p2.txt && grep -q new p5.txt && echo the pair; }"


@pytest.mark.parametrize(
    ("line", "left", "most", "at_once"),
    [
        ("true", [], 1, 1),
        (PAIR, ["p5"], 6, 1),
        (PAIR, ["p5"], 8, 2),
        ("! grep -q new p0.txt", ["p0"], 9, 1),
        ("! grep -q new p2.txt || exit 127", ["p2"], 9, 1),
    ],
    ids=["all good", "a pair", "a pair, side by side", "the first", "no start"],
)
def test_the_one_to_blame_is_named(
    repo: Path, line: str, left: list[str], most: int, at_once: int
) -> None:
    runs = judged_by(repo, line, parallel=at_once)
    done = patchq("accept", *IDS, cwd=repo, code=int(bool(left)))
    assert states(repo) == {id: "proposed" if id in left else "accepted" for id in IDS}
    assert len(runs.read_text()) <= most
    assert len(git("log", "--format=%h", cwd=repo).split()) == 9 - len(left)
    assert marks(repo) == []
    for id in left:
        assert f"{id}: hook.refused" in done.err
        assert [one["code"] for one in report(repo / ".patchq", id)["problems"]] == ["hook.refused"]
    assert [run["exit"] for run in report(repo / ".patchq", "p7")["hooks"]] == [0]
    patchq("fsck", cwd=repo)


def test_a_target_that_fails_by_itself_names_nobody(repo: Path) -> None:
    judged_by(repo, "test -e mended.txt")
    done = patchq("accept", *IDS, cwd=repo, code=3)
    assert "main fails by itself" in done.err
    assert (set(states(repo).values()), sorted(marks(repo))) == ({"proposed"}, IDS)
    commit_files(repo, {"mended.txt": "x\n"})
    patchq("run", cwd=repo)
    assert (set(states(repo).values()), marks(repo)) == ({"accepted"}, [])


def test_a_flaky_hook_names_nobody(repo: Path) -> None:
    answers = repo.parent / "answers"
    judged_by(repo, f"read -r one < {answers}; sed -i 1d {answers}; test x$one != xno")
    for number, said in enumerate(("no yes", "no yes no", "no yes no")):
        assert "flaky.tests" not in patchq("status", cwd=repo).out
        answers.write_text("\n".join([*said.split(), "yes", ""]))
        patchq("accept", *IDS[2 * number : 2 * number + 2], cwd=repo)
    assert set(states(repo).values()) == {"accepted", "proposed"}
    (run,) = report(repo / ".patchq", "p5")["hooks"]
    assert (run["flaky"], run["with"]) == (True, ["p4"])
    (row,) = patchq("--json", "stats", cwd=repo).json()["rows"]
    assert row["flaky"] == {"tests": 3}
    assert "flaky.tests: the hook tests refused a tree" in patchq("status", cwd=repo).out


def test_each_commit_is_judged_where_a_hook_asks_for_that(repo: Path) -> None:
    runs = judged_by(repo, "! grep -q new p2.txt || grep -q new p3.txt", ", each: true")
    patchq("accept", *IDS[:4], cwd=repo, code=1)
    assert states(repo)["p2"] == "proposed"
    assert len(runs.read_text()) == 4


def test_in_auto_mode_a_group_is_a_train(repo: Path) -> None:
    runs = judged_by(repo, "true", mode="auto")
    work(repo, **{f"n{n}": block(f"n{n}.txt", "", "x\n") for n in range(8)})
    assert len(runs.read_text()) == 1
    assert report(repo / ".patchq", "n3")["state"] == "applied"


def test_what_was_checked_stays_so_when_its_target_moves(repo: Path) -> None:
    judged_by(repo, "true")
    work(repo, **{f"n{n}": block(f"n{n}.txt", "", "x\n") for n in range(2)})
    patchq("accept", "n0", cwd=repo)
    rows = patchq("--json", "status", cwd=repo).json()["waiting"]
    (row,) = (row for row in rows if row["id"] == "n1")
    texts = [reason["text"] for reason in row["risk"]["reasons"]]
    assert "passed: tests on an earlier main (1 landing ago)" in texts


@pytest.mark.parametrize("order", [("p0", "n0"), ("n0", "p0")], ids="-".join)
def test_of_two_that_collide_the_later_is_left_out(repo: Path, order: tuple[str, str]) -> None:
    work(repo, n0=block("p0.txt", "old\n", "newer\n"))
    done = patchq("accept", order[0], "p1", order[1], cwd=repo, code=1)
    assert f"{order[1]}: conflict.base: " in done.err
    assert f"`patchq retry {order[1]}` decides on its response anew" in done.err
    assert f"(change {order[0]})" in done.err
    states = {id: report(repo / ".patchq", id)["state"] for id in (*order, "p1")}
    assert states == {order[0]: "accepted", order[1]: "proposed", "p1": "accepted"}
    assert marks(repo) == []


def boarded(repo: Path) -> None:
    """All are accepted, and no process lands them."""
    script = (
        "import sys; from patchq.cli import main; from patchq.gate.review import accept;"
        "accept.run = lambda *a, **k: sys.exit(9); sys.exit(main(['accept', *sys.argv[1:]]))"
    )
    words = [sys.executable, "-c", script, *IDS]
    assert subprocess.run(words, cwd=repo, check=False, timeout=120).returncode == 9
    assert sorted(marks(repo)) == IDS


PUSHED = "git checkout -q patchq/p3; git commit -q --allow-empty -m Mine; git checkout -q main"


@pytest.mark.parametrize(
    ("deed", "state"),
    [
        (PUSHED, "proposed"),
        ("echo x > other.txt; git add other.txt; git commit -q -m Moved", "accepted"),
        (["discard", "p3"], "discarded"),
        (["send-back", "p3", "-m", "otherwise"], "proposed"),
        (["accept", "--undo", "p3"], "proposed"),
    ],
    ids=["pushed", "moved", "discarded", "sent back", "taken back"],
)
def test_an_acceptance_is_of_what_was_seen(repo: Path, deed: str | list[str], state: str) -> None:
    boarded(repo)
    if isinstance(deed, str):
        shell(deed, repo)
    else:
        patchq(*deed, cwd=repo)
    patchq("run", cwd=repo)
    assert states(repo) == {id: state if id == "p3" else "accepted" for id in IDS}
    assert marks(repo) == []


def test_death_at_any_step_is_put_right(repo: Path) -> None:
    judged_by(repo, "true")
    for step in (2, 9, 16, 20, 24, 31):
        at = repo.with_name(f"at-{step}")
        subprocess.run(["cp", "-a", str(repo), str(at)], check=True, timeout=60)
        die(at, step, "accept", *IDS)
        patchq("run", cwd=at)
        patchq("accept", *[id for id, state in states(at).items() if state == "proposed"], cwd=at,
               code=None)  # fmt: skip
        assert set(states(at).values()) == {"accepted"}, step
        assert all(report(at / ".patchq", id)["hooks"] for id in IDS), step
        trailers = "--format=%(trailers:key=Patchq-Batch,valueonly,separator=)"
        assert sorted(git("log", trailers, cwd=at).split()) == IDS, step
        assert marks(at) == []
        patchq("fsck", cwd=at)


LANES = """mode: review
targets: [other]
queue: {{settle_seconds: 0.1}}
landing: {{poll_seconds: 0.2}}
cluster: {{takeover_seconds: 1}}
hooks:
- id: tests
  stage: pre-commit
  unconfined: true
  cache: false
  run: "grep -q 2 a.txt && test -e {root}/armed && touch {root}/began && \
    until test -e {root}/go; do sleep 0.05; done; true"
"""


@pytest.mark.slow
@pytest.mark.parametrize("stop", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "frozen"])
def test_lanes_do_not_wait_and_a_successor_goes_on(
    tmp_path: Path, database: str, monkeypatch: pytest.MonkeyPatch, stop: signal.Signals
) -> None:
    monkeypatch.setenv("PATCHQ_DATABASE", database)
    monkeypatch.setenv(NO_SANDBOX, "1")
    files = {"a.txt": "one\n", "b.txt": "one\n"}
    machines = Machines(tmp_path, database, files, LANES.format(root=tmp_path))
    try:
        git("branch", "other", cwd=machines.hub)
        feeder = tmp_path / "feeder"
        machines.start("feeder", "watch")
        owner = machines.start("w1", "worker", "--name", "w1", "--lanes", "main")
        machines.start("w2", "worker", "--name", "w2", "--lanes", "other")
        machines.soon((feeder / ".patchq/inbox").exists)
        other = "---\ntarget: other\n---\n" + block("b.txt", "one\n", "2\n")
        drop(feeder / ".patchq", {"x.md": block("a.txt", "one\n", "2\n"), "y.md": other})
        machines.soon(lambda: len([*feeder.glob(".patchq/done/?.report.json")]) == 2)
        (tmp_path / "armed").touch()
        train = machines.start("feeder", "accept", "x")
        machines.soon((tmp_path / "began").exists)
        patchq("accept", "--no-wait", "y", cwd=feeder)
        assert report(feeder / ".patchq", "y")["state"] == "accepted"
        os.kill(owner.pid, stop)
        (tmp_path / "go").touch()
        machines.start("w3", "worker", "--name", "w3", "--lanes", "main")
        assert train.wait(60) == 0
        if stop == signal.SIGSTOP:
            os.kill(owner.pid, signal.SIGCONT)
        machines.soon(lambda: report(feeder / ".patchq", "x")["state"] == "accepted")
        assert git("log", "--format=%s", "main", cwd=machines.hub).split("\n") == [
            "Edit a.txt", "Start"
        ]  # fmt: skip
    finally:
        machines.close()
