"""Checks of the place that patchq works in, and of its records: findings, each with a cure.

`doctor` looks at machine, repository and queue, and changes nothing.  `fsck` compares the queue
with the repository; its findings carry a repair where there is one.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from errno import EROFS
from pathlib import Path
from typing import Literal

from msgspec import Struct

from patchq.gate.config.schema import Config
from patchq.gate.errors import Fault, ObjectDamaged
from patchq.gate.git import files
from patchq.gate.git.checkout import registered
from patchq.gate.git.repository import Repository
from patchq.gate.pipeline.context import RepoContext
from patchq.gate.queue.inbox import replaced
from patchq.gate.queue.lock import last_words, lock_owner
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


class Place(Struct, frozen=True):
    """The repository and queue that are checked; paths in the configuration begin at `home`."""

    repo: Repository
    home: Path
    queue: Path
    config: Config
    target: str
    database: str


class Check(Struct, frozen=True):
    """One row of a table of checks.

    `ok` is the message where `look` finds nothing; `level` and `cure` are those of a fault that
    keeps it from looking.
    """

    what: str
    look: Callable[[Place], Iterable[Finding]]
    ok: str = ""
    level: Level = "fatal"
    cure: str | None = None

    def findings(self, place: Place) -> list[Finding]:
        """Return what the check finds; a fault is a finding, too."""
        try:
            found = list(self.look(place))
        except ObjectDamaged as fault:
            message = f"{fault.message}; changes that need it are held"
            return [Finding(self.what, "todo", message, fault.hint)]
        except Fault as fault:
            return [Finding(self.what, self.level, fault.message, self.cure or fault.hint)]
        return found or ([Finding(self.what, "ok", self.ok)] if self.ok else [])


def try_out(what: str, top: Path, first: Path, second: Path) -> Iterator[Finding]:
    """Write, link and rename a file in two directories below `top`; yield a failure."""
    own, linked = (first / f".patchq-{os.getpid()}.{end}" for end in ("tmp", "part"))
    moved = second / own.name
    try:
        own.write_bytes(b"x")
        os.link(own, linked)
        os.rename(linked, moved)
    except OSError as error:
        mount = next(each for each in (top, *top.parents) if each.is_mount())
        cure = (
            f"mount -o remount,rw '{mount}'"
            if error.errno == EROFS
            else "let the user that runs patchq write there, on a file system with hard links"
        )
        message = f"{top} takes no files, hard links or renames: {error.strerror}"
        yield Finding(what, "fatal", message, cure)
    finally:
        for path in (own, linked, moved):
            with suppress(OSError):
                path.unlink()


def moment(unix: float | None) -> str:
    return datetime.fromtimestamp(unix or time.time(), UTC).isoformat(timespec="seconds")


# ---------------------------------------------------------------- what `status` shows, too


def troubles(context: RepoContext) -> Iterator[Finding]:
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
    """Yield the fault that ended the work, unless it goes on since."""
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
