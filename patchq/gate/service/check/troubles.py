"""Findings that `status` shows, too: inbox, end of the work, disks, work trees, troubles."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from time import time

from patchq.gate.config.schema import Config
from patchq.gate.errors import Fault
from patchq.gate.git import files
from patchq.gate.git.checkout import registered
from patchq.gate.git.repository import Repository
from patchq.gate.pipeline.context import RepoContext
from patchq.gate.queue.inbox import replaced
from patchq.gate.queue.lock import last_words, lock_owner
from patchq.gate.queue.shelf import DAY, FLAKY, Shelf, Troubles
from patchq.gate.service.check import Finding, moment

_FREE_BYTES = 64 << 20
_FREE_INODES = 1000
_OFTEN = 3


def look(context: RepoContext) -> Iterator[Finding]:
    """Yield what keeps the queue from its work now."""
    root = context.queue_root
    if fault := replaced(root / "inbox"):
        yield Finding("queue.there", "fatal", fault.message, fault.hint)
    yield from ended(root)
    yield from space(context.repo.commondir, root)
    if context.branches.remote is None:
        yield from work_trees(context.repo)
    yield from noted(root, context.config)
    yield from flaky(root)


def ended(root: Path) -> Iterator[Finding]:
    """Yield the fault that ended the work on the queue, unless it goes on since."""
    with suppress(Fault):
        if lock_owner(root) is None and (fault := last_words(root)):
            yield Finding(
                "daemon.ended",
                "todo",
                f"the work ended at {moment(fault.at)} of {fault.code}: " + fault.message,
                fault.hint or "start it again",
            )


def space(*places: Path) -> Iterator[Finding]:
    """Yield each file system that has little room or cannot be written."""
    there = [place for place in places if place.is_dir()]
    for place in {place.stat().st_dev: place for place in there}.values():
        now = os.statvfs(place)
        free = now.f_bavail * now.f_frsize
        few = now.f_files and now.f_favail < _FREE_INODES
        message = ""
        if reason := files.shortage(place):
            message = f"{place} cannot be written: {reason}"
        elif few or free < _FREE_BYTES:
            left = f"{now.f_favail} inodes" if few else f"{free >> 20} MiB"
            message = (
                f"only {left} are free at {place}: patchq stops when a write fails, and loses "
                "no response"
            )
        if message:
            yield Finding(
                "queue.space",
                "todo",
                message,
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
    """Yield each hook that changed its mind about a tree three times in the last day."""
    keys = Shelf(root, FLAKY).all(time() - DAY)
    for hook, times in Counter(key.partition(" ")[0] for key in keys).items():
        if times >= _OFTEN:
            yield Finding(
                f"flaky.{hook}",
                "todo",
                f"the hook {hook} refused a tree and then passed it, {times} times in the last day",
                "find what fails at times: good changes wait for more runs, and may be refused",
            )


def noted(root: Path, config: Config) -> Iterator[Finding]:
    """Yield the troubles that processes noted, but not of hooks that are configured no more."""
    hooks = {f"hook.{hook.id}" for hook in config.hooks}
    for trouble in Troubles(root).all():
        gone = trouble.what.startswith("hook.") and trouble.what not in hooks
        if not gone or config.git_hooks:
            since = moment(trouble.since)
            times = f"{trouble.times} times since {since}" if trouble.times > 1 else f"at {since}"
            yield Finding(trouble.what, "todo", f"{trouble.message} ({times})", trouble.cure)
