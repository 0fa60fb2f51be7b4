"""Batches that wait for others, very many of them."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from patchq.gate.config import config_file
from patchq.gate.git.repository import Repository
from patchq.gate.land import worker
from patchq.gate.pipeline.context import RepoContext
from patchq.gate.pipeline.session import Session, compose
from patchq.gate.queue import layout
from patchq.gate.queue.engine import StoreQueue
from tests.helpers.command import block, drop
from tests.helpers.effort import effort
from tests.helpers.gitrepo import make_repo


def hold(path: Path, count: int) -> Session:
    """A daemon with so many batches that wait for one which nobody knows."""
    repo = make_repo(path, {"a.txt": "a\n"})
    root = repo / ".patchq"
    layout.create(root)
    settings = config_file.parse(b"version: 1\n")
    session = compose(RepoContext(Repository.open(repo), StoreQueue(root), root, settings, "main"))
    session.queue.acquire()
    text = "---\ndepends_on: [nobody]\n---\n" + block("a.txt", "a\n", "b\n")
    drop(root, {f"x{number}.md": f"{text}\n{number}\n" for number in range(count)})
    while worker.turn(session, lambda told: None):
        pass
    return session


def test_looking_at_what_is_held_again_is_linear(tmp_path: Path) -> None:
    few, many = hold(tmp_path / "few", 5), hold(tmp_path / "many", 40)
    looks = [effort(partial(worker.look_at_held, session, print)) for session in (few, many)]
    assert looks[1] < 12 * looks[0]
    for session in (few, many):
        session.queue.close()
