"""How many responses land together."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from time import sleep

import pytest
from msgspec.structs import replace

from patchq.gate.config import config_file
from patchq.gate.git.branches.local import LocalBranches
from patchq.gate.git.repository import Repository
from patchq.gate.land import worker
from patchq.gate.pipeline.context import RepoContext
from patchq.gate.pipeline.session import compose
from patchq.gate.queue import layout
from patchq.gate.queue.engine import StoreQueue
from tests.helpers.command import block, drop
from tests.helpers.gitrepo import git, make_repo


@pytest.mark.parametrize(("crowd", "groups"), [(4, 1), (1, 2)])
def test_a_group_is_not_ended_by_what_others_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, crowd: int, groups: int
) -> None:
    """The decisions take 1.6 s by the clock, and hardly any of the processor."""
    monkeypatch.setattr(worker, "_GROUP_SECONDS", 1.0)
    monkeypatch.setattr(worker, "_CROWD", crowd)
    repo = make_repo(tmp_path / "repo", {f"f{n}.txt": "a\n" for n in range(8)})
    root = repo / ".patchq"
    layout.create(root)
    settings = config_file.parse(b"version: 1\nmode: auto\nqueue: {settle_seconds: 0.01}\n")
    context = RepoContext(Repository.open(repo), StoreQueue(root), root, settings, "main")
    session = replace(compose(context), pulse=partial(sleep, 0.2))
    git("checkout", "-q", "--detach", cwd=repo)
    landed: list[int] = []
    real = LocalBranches.land

    def land(self: LocalBranches, moves: list[object]) -> object:
        landed.append(len(moves))
        return real(self, moves)  # type: ignore[arg-type]

    monkeypatch.setattr(LocalBranches, "land", land)
    session.queue.acquire()
    drop(root, {f"x{n}.md": block(f"f{n}.txt", "a\n", "b\n") for n in range(8)})
    sleep(0.05)
    assert worker.turn(session, lambda told: None) == 8
    assert len(landed) == groups
    session.queue.close()
