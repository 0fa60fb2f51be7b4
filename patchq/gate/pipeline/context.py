"""The repository with its branches, queue and configuration, as all who look at batches need it."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from patchq.gate.config.schema import Config
from patchq.gate.errors import Fault
from patchq.gate.git.branches import Branches
from patchq.gate.git.branches.home import Home
from patchq.gate.git.branches.local import LocalBranches
from patchq.gate.git.repository import Repository
from patchq.gate.pipeline.rules import DEFAULTS, GateRules
from patchq.gate.queue.ledger import QueueEngine


class RepoContext(Struct, frozen=True, dict=True):
    """One repository with its queue, under one configuration; `target` is the default branch."""

    repo: Repository
    queue: QueueEngine
    queue_root: Path
    config: Config
    target: str
    branches: Branches
    """Those that batches land on."""
    judged_by: GateRules = DEFAULTS
    """The source of the configuration."""


def branches_of(
    repo: Repository, queue_root: Path, config: Config, target: str, home: Home | None = None
) -> Branches:
    """Return the branches of the configuration's `landing`.

    What keeps a remote from being used is noted beside the queue.
    """
    landing = config.landing
    if landing.remote is None:
        return LocalBranches(repo)
    from patchq.gate.git.branches.remote import RemoteBranches  # who has none has no need of it
    from patchq.gate.queue.shelf import Troubles

    troubles = Troubles(queue_root)

    def note(fault: Fault | None) -> None:
        if not queue_root.is_dir():
            return
        if fault is None:
            troubles.over(_TROUBLE)
        else:
            troubles.note(_TROUBLE, fault.message, fault.hint or "")

    own = [home.branch] if home and home.remote else []
    lanes = [*([target] if target else []), *own, *config.targets]
    shared = RemoteBranches(repo, landing.remote, lanes, landing.push_timeout_seconds, note)
    if not config.has_forge:
        return shared
    from patchq.gate.git.branches.shown import Copies, ShownBranches

    copies = Copies(repo, landing.remote, landing.push_timeout_seconds)
    return ShownBranches(repo, shared, copies)


_TROUBLE = "landing.remote"


def flush(context: RepoContext) -> None:
    """Write what is in memory, with one barrier for objects, refs and the queue.

    With two where the queue is on another file system, or in a database.
    """
    context.repo.write_objects(lambda: context.queue.sync(context.repo.commondir))
