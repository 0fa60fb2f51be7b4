"""The session of a process that decides, opened without one."""

from __future__ import annotations

from pathlib import Path

from patchq.gate.config import config_file
from patchq.gate.config.schema import Config
from patchq.gate.git.repository import Repository
from patchq.gate.pipeline.context import RepoContext, branches_of
from patchq.gate.pipeline.session import Session, compose
from patchq.gate.queue import spool
from patchq.gate.queue.engine import StoreQueue
from patchq.gate.queue.ledger import QueueEngine


def opened(
    place: Path, config: Config | str, target: str = "main", queue: QueueEngine | None = None
) -> Session:
    """Return the session of the repository, whose queue is made if it is gone."""
    root, repo = place / ".patchq", Repository.open(place)
    if isinstance(config, str):
        config = config_file.parse(f"version: 1\n{config}".encode())
    spool.create(root, None, None)
    branches = branches_of(repo, root, config, target)
    return compose(RepoContext(repo, queue or StoreQueue(root), root, config, target, branches))
