"""The daemon beside a person: landings on a checked-out branch rest, and a stop loses nothing."""

from __future__ import annotations

import re
import signal
import time
from collections import Counter
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from threading import Event, Thread

import pytest

from tests.gate.service.test_daemon import (
    batches,
    commit_here,
    configure,
    meanwhile,
    new_file,
    repo,
    verdicts,
    wait_for,
    watching,
)
from tests.helpers import forking
from tests.helpers.command import drop, patchq
from tests.helpers.gitrepo import git
from tests.helpers.stores import sql

__all__ = ["repo"]
MANY = 300
PLACES = ("inbox", "active", "done", "rejected")
INTENDED = "select number from papers where kind = 'intended'"
STOP_SECONDS = 10.0


def names(paths: list[Path]) -> Counter[str]:
    return Counter(path.name.removesuffix(".report.json") for path in paths)


@pytest.mark.parametrize("beside", ["a person commits", "somebody locks the index"])
def test_after_a_stop_each_response_gets_one_verdict(repo: Path, beside: str) -> None:
    configure(repo, "mode: auto\n")
    queue, lock = repo / ".patchq", repo / ".git/index.lock"
    drop(queue, {f"r{number}.md": new_file(number) for number in range(MANY)})
    locks = beside == "somebody locks the index"
    if locks:
        lock.touch()
    log = repo.with_name("repo.log")
    with meanwhile(lambda number: None if locks else commit_here(repo, number)):
        daemon = forking.start("-C", str(repo), "watch", cwd=repo.parent, log=log)
        try:
            wait_for(lambda: sql(queue, INTENDED) if locks else verdicts(repo), log)
            daemon.terminate()
            assert daemon.wait(STOP_SECONDS) == 0, log.read_text()
        finally:
            daemon.kill()
            daemon.wait(60)
    names_now = " ".join(file.name for place in PLACES for file in queue.glob(f"{place}/*"))
    assert {*re.findall(r"\br\d+\b", names_now)} == {f"r{n}" for n in range(MANY)}
    assert any(queue.glob("active/*")) or not locks
    lock.unlink(missing_ok=True)
    patchq("run", cwd=repo)
    expected = Counter(f"r{number}" for number in range(MANY))
    assert names(verdicts(repo)) == expected
    assert batches(repo) == expected
    assert [*queue.glob("active/*"), *queue.glob("rejected/*")] == []


def test_what_comes_while_the_branch_rests_lands_together(repo: Path) -> None:
    configure(repo, "mode: auto\n")
    ref, tips, over = repo / ".git/refs/heads/main", list[str](), Event()

    def look() -> None:
        while not over.wait(0.01):
            with suppress(OSError):
                tip = ref.read_text().strip()
                if tip and tip not in tips[-1:]:
                    tips.append(tip)

    looking = Thread(target=look)
    looking.start()
    try:
        with watching(repo) as daemon:
            wait_for(lambda: tips)
            daemon.send_signal(signal.SIGSTOP)
            drop(repo / ".patchq", {f"r{number}.md": new_file(number) for number in range(2)})
            daemon.send_signal(signal.SIGCONT)
            wait_for(lambda: len(verdicts(repo)) == 2)
            for number in range(2, 6):
                drop(repo / ".patchq", {f"r{number}.md": new_file(number)})
                time.sleep(0.1)
            wait_for(lambda: len(verdicts(repo)) == 6)
    finally:
        over.set()
        looking.join(60)
    steps = pairwise(tips)
    assert [git("rev-list", "--count", f"{a}..{b}", cwd=repo) for a, b in steps] == ["2", "4"]
