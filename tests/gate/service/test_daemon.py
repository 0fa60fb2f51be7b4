"""The daemon as a process: how it starts and stops, what it bears, and what goes on beside it."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count, islice
from pathlib import Path
from subprocess import DEVNULL

import pytest

from tests.helpers import processes
from tests.helpers.command import block, drop, fresh, patchq, report, seen
from tests.helpers.ending import running
from tests.helpers.gitrepo import git, make_repo, operators_file, write_config
from tests.helpers.processes import Process
from tests.helpers.stores import sql

FILES = {"a.txt": "one\ntwo\nthree\n", "b.txt": "b\n"}
EDIT = block("a.txt", "two\n", "2\n")
BAD = block("a.txt", "nowhere\n", "no\n")
WAIT_SECONDS = 120.0
"""The end of a wait in vain, and no promise: a slow machine takes its time."""
BREATH_SECONDS = 0.2


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    repo = make_repo(tmp_path / "repo", FILES)
    configure(repo)
    patchq("init", cwd=repo)
    return repo


def configure(repo: Path, text: str = "", settle: float = 0.2) -> None:
    own = "" if "queue:" in text else f"queue: {{settle_seconds: {settle}}}\n"
    write_config(repo, f"version: 1\n{own}{text}")


@contextmanager
def watching(repo: Path, log: Path | None = None) -> Iterator[Process]:
    """A daemon in the foreground, which has to end well on SIGTERM."""
    log = log or repo.with_name(f"{repo.name}.log")
    daemon = processes.start("-C", str(repo), "watch", cwd=repo.parent, log=log)
    try:
        wait_for(lambda: holds_the_queue(repo, daemon), log)
        yield daemon
        assert daemon.poll() is None, log.read_text(errors="replace")
        daemon.terminate()
        assert daemon.wait(WAIT_SECONDS) == 0, log.read_text(errors="replace")
    finally:
        daemon.kill()
        daemon.wait(60)


def holds_the_queue(repo: Path, daemon: Process) -> bool:
    assert daemon.poll() is None, "the daemon ended"
    lock = repo / ".patchq/lock"
    return lock.exists() and json.loads(lock.read_text() or "{}").get("pid") == daemon.pid


def wait_for(true: Callable[[], object], log: Path | None = None) -> None:
    until = time.monotonic() + WAIT_SECONDS
    while not true():
        said = log.read_text(errors="replace") if log and log.exists() else ""
        assert time.monotonic() < until, f"waited {WAIT_SECONDS} s in vain\n{said}"
        time.sleep(0.01)


def verdicts(repo: Path) -> list[Path]:
    return [path for place in ("done", "rejected") for path in below(repo, place)]


def below(repo: Path, place: str) -> list[Path]:
    return sorted((repo / ".patchq" / place).glob("*.report.json"))


def ask(repo: Path, text: str, id: str) -> str:
    """Drop a response; the state that comes of it."""
    drop(repo / ".patchq", {f"{id}.md": text})
    wait_for(lambda: [*repo.glob(f".patchq/[dr]*/{id}.report.json")], repo.with_name("repo.log"))
    return str((seen(repo / ".patchq", id) or {})["state"])


def batches(repo: Path, branch: str = "main") -> Counter[str]:
    form = "--format=%(trailers:key=Patchq-Batch,valueonly,separator=%x2C)"
    return Counter(git("log", form, branch, cwd=repo).split())


def new_file(number: int) -> str:
    return block(f"new/{number // 50}/{number}.txt", "", f"{number}\n")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_g17_signal_ends_it_after_the_batch_in_hand(
    repo: Path, number: signal.Signals, code: int
) -> None:
    drop(repo / ".patchq", {f"r{n}.md": new_file(n) for n in range(300)})
    log = repo / "../log"
    daemon = processes.start("-C", str(repo), "watch", cwd=repo, log=log)
    wait_for(lambda: verdicts(repo) or daemon.poll() is not None)
    daemon.send_signal(number)
    assert daemon.wait(WAIT_SECONDS) == code, log.read_text()
    waiting = [*(repo / ".patchq").glob("inbox/*"), *(repo / ".patchq").glob("active/*")]
    done = len(verdicts(repo))
    assert done + len(waiting) == 300
    assert len(git("branch", "--list", "patchq/*", cwd=repo).split("\n")) == done
    assert "no daemon runs" in patchq("status", cwd=repo).out


def test_g08_detached_head_is_told_at_the_start(repo: Path) -> None:
    operators_file(repo).unlink()
    git("config", "--unset", "patchq.target", cwd=repo)
    git("checkout", "-q", "--detach", cwd=repo)
    for words in (("watch",), ("watch", "--detach"), ("run",)):
        done = fresh(*words, cwd=repo, code=2)
        assert "HEAD is detached" in done.err
        assert "--target" in done.err
    assert patchq("stop", cwd=repo).out == "no daemon runs\n"


def test_what_works_beside_it(repo: Path) -> None:
    response = repo / "../other.md"
    response.write_text(block("b.txt", "b\n", "B\n"))
    with watching(repo):
        for words in (("watch",), ("run",)):
            assert "works on this queue" in patchq(*words, cwd=repo, code=75).err
        for id in ("x", "y"):
            assert ask(repo, block(f"{id}.txt", "", "new\n"), id) == "proposed"
        assert patchq("submit", "../other.md", "--wait", cwd=repo).out.startswith("proposed")
        assert "; watching for " in patchq("status", cwd=repo).out
        assert len(patchq("log", cwd=repo).out.splitlines()) == 3
        assert patchq("accept", "x", cwd=repo).out.startswith("accepted")
        assert patchq("discard", "y", cwd=repo).out.startswith("discarded")
        response.write_text(block("z.txt", "", "z\n"))
        assert patchq("apply", "../other.md", cwd=repo).out.startswith("proposed   other-")
        assert ask(repo, EDIT, "after") == "proposed"
    assert git("status", "--porcelain", cwd=repo) == ""


def test_configuration_is_read_anew_or_kept(repo: Path) -> None:
    git("branch", "other", cwd=repo)
    log = repo.with_name("repo.log")

    def reload(config: str, says: str) -> None:
        configure(repo, config)
        before = log.read_text().count(says)
        daemon.send_signal(signal.SIGHUP)
        wait_for(lambda: log.read_text().count(says) > before, log)

    with watching(repo) as daemon:
        reload("mode: sideways\n", "patchq.yaml:3:7 mode: expected")
        assert ask(repo, new_file(2), "r2") == "proposed"
        reload("mode: auto\ntarget: nowhere\n", "'nowhere' does not exist")
        assert ask(repo, new_file(3), "r3") == "proposed"
        reload("mode: auto\ntarget: other\n", "configuration read anew")
        assert ask(repo, new_file(4), "r4") == "applied"
    assert batches(repo, "other") == Counter(["r4"])


def test_f15_inbox_that_is_made_anew(repo: Path) -> None:
    inbox = repo / ".patchq/inbox"
    with watching(repo):
        assert ask(repo, new_file(1), "r1") == "proposed"
        for number in (2, 3):
            inbox.rename(repo / f".patchq/old{number}")
            if number == 3:
                time.sleep(0.3)  # it looks while there is none
            inbox.mkdir()
            assert ask(repo, new_file(number), f"r{number}") == "proposed"


@pytest.mark.parametrize("how", ["a symbolic link", "a file"])
def test_f15_inbox_that_is_replaced_holds_intake(repo: Path, how: str) -> None:
    configure(repo, "queue: {watch: poll, poll_seconds: 0.05}\n")
    inbox, log = repo / ".patchq/inbox", repo.with_name("repo.log")
    outside = repo.parent / "outside"
    outside.mkdir()
    (outside / "foreign.md").write_text(new_file(9))
    with watching(repo):
        assert ask(repo, new_file(1), "r1") == "proposed"
        inbox.rename(repo / ".patchq/old")
        if how == "a file":
            inbox.touch()
        else:
            inbox.symlink_to(outside)
        wait_for(lambda: f"{inbox} is not a directory" in log.read_text(), log)
        time.sleep(BREATH_SECONDS)  # it looks again and again
        (trouble,) = patchq("--json", "status", cwd=repo).json()["troubles"]
        assert trouble["why"].startswith(f"{inbox} is not a directory")
        subprocess.run(trouble["cure"].partition(": ")[2], shell=True, check=True, timeout=60)
        assert ask(repo, new_file(2), "r2") == "proposed"
        assert patchq("--json", "status", cwd=repo).json()["troubles"] == []
    assert log.read_text().count("is not a directory") == 1
    assert [path.name for path in outside.iterdir()] == ["foreign.md"]


def test_f14_hundreds_at_once(repo: Path) -> None:
    configure(repo, "mode: auto\ntarget: trunk\n")
    git("branch", "trunk", cwd=repo)
    bad = [block("a.txt", f"{n}\n", "no\n") for n in range(300)]
    texts = {f"r{n}.md": bad[n] if n % 20 == 9 else new_file(n) for n in range(300)}
    with watching(repo):
        drop(repo / ".patchq", texts)
        wait_for(lambda: len(verdicts(repo)) == 300)
    assert len(below(repo, "rejected")) == 15
    assert batches(repo, "trunk") == Counter(f"r{n}" for n in range(300) if n % 20 != 9)
    git("fsck", "--strict", "--no-dangling", cwd=repo)


PERSON = """until test -e ../over; do date > mine.txt
until git add mine.txt && git commit -q --allow-empty -m mine; do sleep 0.01; done; sleep 0.2; done
"""
INTENDED = "select number from papers where kind = 'intended'"
STOP_SECONDS = 10.0


@pytest.mark.parametrize("beside", ["a person commits", "somebody locks the index"])
def test_after_a_stop_each_response_gets_one_verdict(repo: Path, beside: str) -> None:
    configure(repo, "mode: auto\n")
    queue, lock, log = repo / ".patchq", repo / ".git/index.lock", repo.with_name("repo.log")
    expected = Counter(f"r{number}" for number in range(300))
    drop(queue, {f"r{number}.md": new_file(number) for number in range(300)})
    locks = beside == "somebody locks the index"
    if locks:
        lock.touch()
    with running(["sh", "-c", "true" if locks else PERSON], cwd=repo, stderr=DEVNULL) as person:
        daemon = processes.start("-C", str(repo), "watch", cwd=repo.parent, log=log)
        try:
            wait_for(lambda: sql(queue, INTENDED) if locks else verdicts(repo), log)
            daemon.terminate()
            assert daemon.wait(STOP_SECONDS) == 0, log.read_text()
        finally:
            processes.end([daemon])
        repo.with_name("over").touch()
        assert person.wait(60) == 0
    there = " ".join(path.name for path in queue.glob("[adir]*/*"))
    assert {*re.findall(r"\br\d+\b", there)} == {*expected}
    assert any(queue.glob("active/*")) or not locks
    lock.unlink(missing_ok=True)
    patchq("run", cwd=repo)
    assert Counter(path.name.partition(".")[0] for path in verdicts(repo)) == expected
    assert batches(repo) == expected
    assert [*queue.glob("active/*"), *queue.glob("rejected/*")] == []


def test_what_is_held_goes_on_while_responses_keep_coming(repo: Path) -> None:
    configure(repo, "mode: auto\n")
    inbox, numbers = repo / ".patchq/inbox", count()
    patient = f"---\ndepends_on: [first]\n---\n{new_file(-1)}"

    def crowd() -> bool:
        """Have something wait at any time until it has its verdict."""
        if len(list(inbox.iterdir())) < 20:
            some = islice(numbers, 10)
            drop(repo / ".patchq", {f"r{number}.md": new_file(number) for number in some})
        return (repo / ".patchq/done/patient.report.json").exists()

    with watching(repo):
        drop(repo / ".patchq", {"patient.md": patient})
        wait_for(lambda: not list(inbox.iterdir()))
        drop(repo / ".patchq", {"first.md": new_file(-2)})
        wait_for(crowd)
    assert report(repo / ".patchq", "patient")["state"] == "applied"


LOCKS = """
import os, signal
from pathlib import Path
from patchq.gate.git.files import LockFile
lock = LockFile.write(Path('.git').resolve(), '.ref', b'')
lock.hold(Path('.git/refs/heads/main.lock').resolve())
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_g04_lock_of_a_killed_command_is_removed(repo: Path) -> None:
    with watching(repo):
        done = subprocess.run([sys.executable, "-c", LOCKS], cwd=repo, timeout=WAIT_SECONDS)
        assert done.returncode == -signal.SIGKILL
        lock = repo / ".git/refs/heads/main.lock"
        assert lock.exists()
        wait_for(lambda: not lock.exists())
        git("commit", "-q", "--allow-empty", "-m", "Mine", cwd=repo)
    assert [*(repo / ".git").glob("patchq-*")] == []
