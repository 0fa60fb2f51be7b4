"""A machine that is not to be relied on: locks do not hold (G11), its clock jumps (G16), the daemon
is stopped and goes on (G17)."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.gate.service.test_daemon import batches, below, configure, wait_for, watching
from tests.helpers.command import block, drop, fresh, patchq
from tests.helpers.gitrepo import git, make_repo

YEARS = 10 * 365 * 24 * 3600
JUMPS = """
import sys, time
now, jumps = time.time, iter(sys.argv[1].split(","))
offset = 0.0
def jumping():
    global offset
    offset = float(next(jumps, offset))
    return now() + offset
time.time = jumping
time.time_ns = lambda: int(jumping() * 1e9)
from patchq.cli import main
sys.exit(main(["run"]))
"""


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    repo = make_repo(tmp_path / "repo", {"a.txt": "one\n"})
    patchq("init", cwd=repo)
    git("checkout", "-q", "--detach", cwd=repo)
    queue = "queue: {settle_seconds: 0.2, retention_days: 30}\n"
    configure(repo, f"mode: auto\ntarget: main\n{queue}")
    return repo


def new_file(number: int) -> str:
    return block(f"n{number}.txt", "", f"{number}\n")


def test_g11_two_daemons_without_a_lock_land_each_batch_once(repo: Path) -> None:
    """The lock's file is taken away under each of them, so that nothing keeps them apart."""
    lock, log = repo / ".patchq/lock", repo.with_name("repo.log")
    texts = {f"r{number}.md": new_file(number) for number in range(60)}
    with log.open("wb") as out:
        command = [sys.executable, "-m", "patchq", "run"]
        for _ in range(20):
            drop(repo / ".patchq", dict(texts.popitem() for _ in range(min(30, len(texts)))))
            several = []
            for _ in range(3):
                several.append(subprocess.Popen(command, cwd=repo, stdout=out, stderr=out))
                time.sleep(0.15)
                lock.unlink(missing_ok=True)
            for process in several:
                process.wait(120)
            if not texts and not [*(repo / ".patchq/inbox").iterdir()]:
                break
    assert fresh("run", cwd=repo).code == 0, log.read_text()
    assert len(below(repo, "done")) == 60, log.read_text()
    assert below(repo, "rejected") == []
    assert batches(repo) == Counter(f"r{number}" for number in range(60))
    git("fsck", "--strict", "--no-dangling", cwd=repo)


def test_g16_a_clock_that_jumps_reorders_and_prunes_nothing(repo: Path) -> None:
    for number, jumps in enumerate(("0", f"{YEARS}", f"{-YEARS}", f"0,{YEARS},{-YEARS},0")):
        drop(repo / ".patchq", {f"r{number}.md": new_file(number)})
        subprocess.run([sys.executable, "-c", JUMPS, jumps], cwd=repo, check=True, timeout=120)
    reports = [json.loads(path.read_bytes()) for path in below(repo, "done")]
    assert [(told["id"], told["state"]) for told in reports] == [
        (f"r{number}", "applied") for number in range(4)
    ]
    told = git("log", "--reverse", "--format=%ct %s", "main", cwd=repo).split("\n")
    assert [line.split(" ", 1)[1] for line in told[1:]] == [f"Add n{n}.txt" for n in range(4)]
    times = [int(line.split(" ")[0]) for line in told]
    assert times == sorted(times), "a commit is older than its parent"
    git("fsck", "--strict", cwd=repo)


def test_g17_a_daemon_that_is_stopped_for_a_while_goes_on(repo: Path) -> None:
    with watching(repo) as daemon:
        daemon.send_signal(signal.SIGSTOP)
        drop(repo / ".patchq", {f"r{number}.md": new_file(number) for number in range(40)})
        assert below(repo, "done") == []
        daemon.send_signal(signal.SIGCONT)
        wait_for(lambda: len(below(repo, "done")) == 40)
    assert git("rev-list", "--count", "main", cwd=repo) == "41"
