"""The daemon beside a person: landings on a checked-out branch rest, and a stop loses nothing."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

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
)
from tests.helpers import processes
from tests.helpers.command import drop, patchq
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
        daemon = processes.start("-C", str(repo), "watch", cwd=repo.parent, log=log)
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
