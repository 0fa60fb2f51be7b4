"""The daemon as a process: how it starts and stops, what it bears, and what goes on beside it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count, islice
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from tests.helpers import processes
from tests.helpers.command import block, drop, fresh, patchq
from tests.helpers.gitrepo import git, make_repo, operators_file, write_config
from tests.helpers.processes import Process

FILES = {"a.txt": "one\ntwo\nthree\n", "b.txt": "b\n"}
EDIT = block("a.txt", "two\n", "2\n")
WAIT_SECONDS = 120.0
"""The end of a wait in vain, and no promise: a slow machine takes its time."""
BREATH_SECONDS = 0.2


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    repo = make_repo(tmp_path / "repo", FILES)
    patchq("init", cwd=repo)
    configure(repo)
    return repo


def configure(repo: Path, text: str = "", settle: float = 0.2) -> None:
    """The configuration, out of the sight of `git status`."""
    with (repo / ".git/info/exclude").open("a") as exclude:
        exclude.write("/.patchq.yaml\n")
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


def verdict(repo: Path, id: str) -> dict[str, Any]:
    """The report on a response, once it is there."""
    places = [repo / ".patchq" / place / f"{id}.report.json" for place in ("done", "rejected")]
    wait_for(lambda: any(map(Path.exists, places)), repo.with_name(f"{repo.name}.log"))
    told: dict[str, Any] = json.loads(next(filter(Path.exists, places)).read_bytes())
    return told


def ask(repo: Path, text: str, id: str) -> str:
    """Drop a response; the state that comes of it."""
    drop(repo / ".patchq", {f"{id}.md": text})
    return str(verdict(repo, id)["state"])


def batches(repo: Path, branch: str = "main") -> Counter[str]:
    form = "--format=%(trailers:key=Patchq-Batch,valueonly,separator=%x2C)"
    return Counter(git("log", form, branch, cwd=repo).split())


def new_file(number: int) -> str:
    return block(f"new/{number // 50}/{number}.txt", "", f"{number}\n")


# ---------------------------------------------------------------- starting and stopping


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


# ---------------------------------------------------------------- the configuration anew


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


# ---------------------------------------------------------------- what comes in


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
    prepared = repo / ".patchq/prepared"
    prepared.mkdir()
    for number in range(300):
        text = block("a.txt", f"{number}\n", "no\n") if number % 20 == 9 else new_file(number)
        (prepared / f"r{number}.md").write_text(text)
    with watching(repo):
        for file in prepared.iterdir():
            file.rename(repo / ".patchq/inbox" / file.name)
        wait_for(lambda: len(verdicts(repo)) == 300)
    assert len(below(repo, "rejected")) == 15
    assert batches(repo, "trunk") == Counter(f"r{n}" for n in range(300) if n % 20 != 9)
    git("fsck", "--strict", "--no-dangling", cwd=repo)


# ---------------------------------------------------------------- people at work beside it


@contextmanager
def meanwhile(work: Callable[[int], object]) -> Iterator[list[BaseException]]:
    """Do the work over and over, with a number, until the end of the block, with breaths."""
    over, failures = Event(), list[BaseException]()

    def go_on() -> None:
        number = 0
        while not over.is_set():
            try:
                work(number)
            except BaseException as error:
                failures.append(error)
                return
            number += 1
            over.wait(BREATH_SECONDS)

    thread = Thread(target=go_on)
    thread.start()
    try:
        yield failures
    finally:
        over.set()
        thread.join(60)
    assert not failures, failures[0]


def commit_here(repo: Path, number: int) -> None:
    """A person's commit on `main`, in the work tree; git itself gives up when it is locked."""
    (repo / f"mine{number}.txt").write_text("mine\n")
    for words in (["add", f"mine{number}.txt"], ["commit", "-q", "-m", f"mine {number}"]):
        until = time.monotonic() + WAIT_SECONDS
        while True:
            command = ["git", *words]
            done = subprocess.run(
                command, cwd=repo, capture_output=True, text=True, timeout=WAIT_SECONDS
            )
            if not done.returncode:
                break
            assert time.monotonic() < until, done.stderr
            assert "index.lock" in done.stderr or "cannot lock ref" in done.stderr, done.stderr
            time.sleep(0.01)


def test_what_is_held_goes_on_while_responses_keep_coming(repo: Path) -> None:
    configure(repo, "mode: auto\n")
    inbox, numbers = repo / ".patchq/inbox", count()
    patient = f"---\ndepends_on: [first]\n---\n{new_file(-1)}"

    def crowd() -> bool:
        """Whether it has its verdict; something waits at any time."""
        if len(list(inbox.iterdir())) < 20:
            some = islice(numbers, 10)
            drop(repo / ".patchq", {f"r{number}.md": new_file(number) for number in some})
        places = (repo / ".patchq" / place for place in ("done", "rejected"))
        return any((place / "patient.report.json").exists() for place in places)

    with watching(repo):
        drop(repo / ".patchq", {"patient.md": patient})
        wait_for(lambda: not list(inbox.iterdir()), repo.with_name(f"{repo.name}.log"))
        drop(repo / ".patchq", {"first.md": new_file(-2)})
        wait_for(crowd, repo.with_name(f"{repo.name}.log"))
    assert verdict(repo, "patient")["state"] == "applied"


# ---------------------------------------------------------------- what dies beside it


def die(repo: Path, code: str) -> None:
    """Run Python code that ends by being killed."""
    done = subprocess.run(
        [sys.executable, "-c", f"import os, signal\n{code}\nos.kill(os.getpid(), signal.SIGKILL)"],
        cwd=repo,
        capture_output=True,
        text=True,
        timeout=WAIT_SECONDS,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr


def test_g04_lock_of_a_killed_command_is_removed(repo: Path) -> None:
    with watching(repo):
        die(
            repo,
            "from pathlib import Path\n"
            "from patchq.gate.git.files import LockFile\n"
            "lock = LockFile.write(Path('.git').resolve(), '.ref', b'')\n"
            "lock.hold(Path('.git/refs/heads/main.lock').resolve())",
        )
        lock = repo / ".git/refs/heads/main.lock"
        assert lock.exists()
        wait_for(lambda: not lock.exists())
        git("commit", "-q", "--allow-empty", "-m", "Mine", cwd=repo)
    assert [*(repo / ".git").glob("patchq-*")] == []
