"""What a response costs while others wait: what touches it is read and compared, and nothing else.

One process does everything, as a daemon does, and counts what it reads.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from patchq.gate.config import config_file
from patchq.gate.git.repository import Repository
from patchq.gate.land import worker
from patchq.gate.land.overlaps import warnings
from patchq.gate.pipeline.context import RepoContext
from patchq.gate.pipeline.session import Session, compose
from patchq.gate.queue import layout
from patchq.gate.queue.engine import StoreQueue
from patchq.gate.review import restack
from tests.helpers.command import block, drop, patchq, report
from tests.helpers.gitrepo import commit_files, git, make_repo, tip

MANY = 24
TEXT = "".join(f"line {number}\n" for number in range(1, 41))
FILES = {f"f{number:02}.txt": TEXT for number in range(MANY)} | {"other.txt": TEXT}


class Counted:
    """How often reports are read and pairs compared, since the last time that it was asked."""

    def __init__(self, session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
        self.counts: Counter[str] = Counter()
        for where, name in (
            (session.queue, "load"),
            (warnings, "meeting"),
            (restack, "_decided"),
        ):
            monkeypatch.setattr(where, name, self._counting(getattr(where, name), name))

    def _counting(self, call: Callable[..., Any], name: str) -> Callable[..., Any]:
        def counted(*args: Any) -> Any:
            self.counts[name] += 1
            return call(*args)

        return counted

    def __call__(self) -> tuple[int, int, int]:
        found, self.counts = self.counts, Counter()
        return found["load"], found["meeting"], found["_decided"]


@pytest.fixture
def session(tmp_path: Path) -> Session:
    """`MANY` proposals wait, each for a file of its own; everything is settled."""
    repo = make_repo(tmp_path / "repo", FILES)
    layout.create(repo / ".patchq")
    settings = config_file.parse(b"version: 1\nmode: review\n")
    queue = StoreQueue(repo / ".patchq")
    session = compose(RepoContext(Repository.open(repo), queue, repo / ".patchq", settings, "main"))
    queue.acquire()
    send(session, {f"w{n:02}": edit(n, f"f{n:02}.txt") for n in range(MANY)})
    while not restack.settle(session):
        pass
    return session


def edit(line: int, path: str) -> str:
    return block(path, f"line {line + 1}\n", f"LINE {line + 1}\n")


def send(session: Session, responses: dict[str, str]) -> None:
    drop(session.queue_root, {f"{id}.md": text for id, text in responses.items()})
    while worker.turn(session, lambda told: None):
        pass


def named(session: Session, id: str) -> list[str]:
    problems = report(session.queue_root, id)["problems"]
    return [p["conflicts_with"]["batch"] for p in problems if p["code"] == "conflict.pending"]


def parent(session: Session, id: str) -> str:
    return tip(session.repo.commondir, f"patchq/{id}^")


def test_a_response_is_compared_with_what_touches_its_files(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = Counted(session, monkeypatch)
    send(session, {"alone": edit(1, "other.txt")})
    assert restack.settle(session)
    read, compared, _ = counted()
    assert (read <= 3, compared) == (True, 0)
    send(session, {"beside": edit(30, "f03.txt"), "meets": edit(4, "f03.txt")})
    assert restack.settle(session)
    read, compared, made = counted()
    assert (read <= 8, compared <= 16, made) == (True, True, 0)
    assert (named(session, "w03"), named(session, "meets")) == (["meets"], ["w03"])
    assert named(session, "beside") == []
    assert restack.settle(session)
    assert counted() == (0, 0, 0), "nothing moved"


def test_who_answers_what_was_just_accepted_elsewhere_is_told_of_no_collision(
    session: Session,
) -> None:
    send(session, {"one": edit(1, "other.txt")})
    assert patchq("accept", "one", cwd=session.repo.commondir.parent).code == 0
    send(session, {"two": edit(2, "other.txt")})
    assert (named(session, "two"), parent(session, "two")) == (
        [],
        tip(session.repo.commondir, "main"),
    )


def test_what_touches_what_moved_follows_first_and_the_rest_in_its_time(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo = session.repo.workdir
    assert repo
    before = tip(repo)
    counted = Counted(session, monkeypatch)
    moved = commit_files(repo, {"f05.txt": "top\n" + TEXT, "f06.txt": TEXT.replace("e 7\n", "\n")})
    assert restack.settle(session, rest=False)
    read, _, made = counted()
    assert (read <= 20, made) == (True, 2)
    assert [parent(session, id) == moved for id in ("w04", "w05", "w06")] == [False, True, False]
    (problem,) = report(session.queue_root, "w06")["problems"]
    assert problem["code"] == "target.moved"
    assert restack.settle(session, rest=False)
    assert counted()[2] == 0
    git("merge", "-q", "--no-edit", "patchq/w01", cwd=repo)
    assert restack.settle(session, rest=False)
    assert report(session.queue_root, "w01")["state"] == "accepted"
    assert counted()[2] == 0
    assert restack.settle(session)
    parents = {parent(session, f"w{n:02}") for n in range(MANY) if n not in (1, 6)}
    assert parents == {tip(repo)}
    assert parent(session, "w06") == before


def test_following_stops_when_its_time_is_over_and_goes_on_later(session: Session) -> None:
    repo = session.repo.workdir
    assert repo
    moved = commit_files(repo, {"other.txt": "moved\n"})
    assert not restack.settle(session, seconds=0.0)
    there = [parent(session, f"w{n:02}") == moved for n in range(MANY)]
    assert 0 < sum(there) < MANY
    assert restack.settle(session, seconds=0.0)
    assert {parent(session, f"w{n:02}") for n in range(MANY)} == {moved}
