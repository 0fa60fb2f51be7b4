"""Checks of the place that patchq works in, and of its records: findings, each with a cure.

`doctor` looks at machine, repository and queue, and changes nothing.  `fsck` compares the queue
with the repository; its findings carry a repair where there is one.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from msgspec import Struct

from patchq.gate.config.schema import Config
from patchq.gate.git import files
from patchq.gate.git.checkout import registered
from patchq.gate.git.repository import Repository
from patchq.gate.pipeline.context import RepoContext
from patchq.gate.queue.inbox import replaced
from patchq.gate.queue.shelf import DAY, FLAKY, Shelf, Troubles

_FREE_BYTES = 64 << 20
_FREE_INODES = 1000
_OFTEN = 3

# `fatal`: patchq cannot work so; `todo`: a person has to act; `weaker`: it works, and a promise
# holds less than elsewhere; `ok`: nothing to do.
Level = Literal["fatal", "todo", "weaker", "ok"]


class Finding(Struct, frozen=True):
    """Result of one check; `what` names it for programs, as in `queue.space`.

    `where` is the path, ref or id that is damaged, and `repair` rebuilds it; without one, the cure
    is for a person.
    """

    what: str
    level: Level
    message: str
    cure: str | None = None
    where: str = ""
    repair: Callable[[], object] | None = None

    @property
    def key(self) -> tuple[str | None, ...]:
        return self.what, self.where, self.message, self.cure


def moment(unix: float | None) -> str:
    return datetime.fromtimestamp(unix or time.time(), UTC).isoformat(timespec="seconds")


# ---------------------------------------------------------------- what `status` shows, too


def troubles(context: RepoContext) -> Iterator[Finding]:
    root = context.queue_root
    if fault := replaced(root / "inbox"):
        yield Finding("queue.there", "fatal", fault.message, fault.hint)
    yield from space(context.repo.commondir, root)
    if context.branches.remote is None:
        yield from work_trees(context.repo)
    yield from noted(root, context.config)
    yield from flaky(root)


def space(*places: Path) -> Iterator[Finding]:
    """Yield each file system that has little room or cannot be written."""
    there = [place for place in places if place.is_dir()]
    for place in {place.stat().st_dev: place for place in there}.values():
        now = os.statvfs(place)
        free = now.f_bavail * now.f_frsize
        few = now.f_files and now.f_favail < _FREE_INODES
        why = files.shortage(place)
        if why or few or free < _FREE_BYTES:
            left = f"{free >> 20} MiB and {now.f_favail} of {now.f_files} inodes are left"
            yield Finding(
                "queue.space",
                "todo",
                f"{place}: {why or left}; patchq stops when a write fails, and loses no response",
                "make room, or make it writable; then start patchq again",
            )


def work_trees(repo: Repository) -> Iterator[Finding]:
    """Yield each work tree that a landing on its branch cannot update."""
    for checkout in registered(repo):
        if checkout.unseen:
            branch = checkout.branch
            has = f"has {branch} checked out" if branch else "has a detached HEAD"
            then = f": changes for {branch} do not land" if branch else ""
            yield Finding(
                "repository.worktrees",
                "todo" if branch else "weaker",
                f"the work tree {checkout.workdir} {has} and is out of reach "
                f"({checkout.unseen}){then}",
                checkout.cure,
            )


def flaky(root: Path) -> Iterator[Finding]:
    """Yield each hook that often changed its mind about a tree."""
    keys = Shelf(root, FLAKY).all(time.time() - DAY)
    for hook, times in Counter(key.partition(" ")[0] for key in keys).items():
        if times >= _OFTEN:
            yield Finding(
                f"flaky.{hook}",
                "todo",
                f"the hook {hook} refused a tree and then passed it, {times} times in the last day",
                "find what fails at times: good changes wait for more runs, and may be refused",
            )


def noted(root: Path, config: Config) -> Iterator[Finding]:
    """Yield the noted troubles, without those of hooks that are gone."""
    hooks = {f"hook.{hook.id}" for hook in config.hooks}
    for trouble in Troubles(root).all():
        gone = trouble.what.startswith("hook.") and trouble.what not in hooks
        if not gone or config.git_hooks:
            since = moment(trouble.since)
            times = f"{trouble.times} times since {since}" if trouble.times > 1 else f"at {since}"
            yield Finding(trouble.what, "todo", f"{trouble.message} ({times})", trouble.cure)
