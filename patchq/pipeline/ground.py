"""What every look at batches needs: the repository, the queue, and the configuration."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from patchq.config.schema import Config
from patchq.git import files
from patchq.git.repository import Repository
from patchq.queue import QueueEngine


@dataclass(frozen=True)
class Ground:
    """One repository with its queue, under one configuration; `target` is the default branch."""

    repo: Repository
    queue: QueueEngine
    queue_root: Path
    config: Config
    target: str


def flush(ground: Ground) -> None:
    """Write what is still in memory, with one barrier for objects, refs and the queue, or two where
    the queue is on a file system of its own."""
    ground.repo.write_objects(lambda: files.barrier(ground.repo.commondir, ground.queue_root))
