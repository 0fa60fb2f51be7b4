"""What stands beside the queue and keeps something from working, for `status` too: what took the
inbox's place, work trees out of reach, landed batches that git passed over, disks without room, the
fault that ended the work, and what processes noted (`queue.troubles`)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from patchq.gate.config.schema import Config
from patchq.gate.errors import Fault
from patchq.gate.git import files
from patchq.gate.git.checkout import registered
from patchq.gate.git.reffiles import gaps
from patchq.gate.git.repository import Repository
from patchq.gate.queue.inbox import replaced
from patchq.gate.queue.lock import last_words, lock_owner
from patchq.gate.queue.troubles import Troubles
from patchq.gate.report.message import trailers
from patchq.gate.service.doctor import Finding


def ended(root: Path) -> Iterator[Finding]:
    """The fault of which the work on the queue ended, if nobody works there since."""
    with suppress(Fault):
        fault = last_words(root) if lock_owner(root) is None else None
        if fault:
            at = datetime.fromtimestamp(fault["at"], UTC).isoformat(timespec="seconds")
            message = f"the work ended at {at} of {fault['code']}: {fault['message']}"
            yield Finding("daemon.ended", "todo", message, fault["hint"] or "start it again")


def replaced_inbox(root: Path) -> Iterator[Finding]:
    """What stands in the inbox's place and keeps responses out."""
    if fault := replaced(root / "inbox"):
        yield Finding("queue.there", "fatal", fault.message, fault.hint or "")


def short(*places: Path) -> Iterator[Finding]:
    """The file systems that have no room or cannot be written, as far as they show it."""
    there = [place for place in places if place.is_dir()]
    for place in {place.stat().st_dev: place for place in there}.values():
        if what := files.shortage(place):
            cure = "make room, or make it writable; then start patchq again"
            yield Finding("queue.space", "todo", f"{place} cannot be written: {what}", cure)


def work_trees(repo: Repository) -> Iterator[Finding]:
    """Each that a landing on its branch would leave behind."""
    for checkout in registered(repo):
        if checkout.unseen:
            branch = checkout.branch
            has = f"has {branch} checked out" if branch else "has a detached HEAD"
            then = f": batches for {branch} do not land" if branch else ""
            yield Finding(
                "repository.worktrees",
                "todo" if branch else "weaker",
                f"the work tree {checkout.workdir} {has} and is out of reach "
                f"({checkout.unseen}){then}",
                checkout.cure,
            )


def passed_over(repo: Repository, branch: str) -> Iterator[Finding]:
    """Each landed batch that a commit of git took back by an old value of the branch: the reflog
    has a gap there, which a reset, a rebase or an amended commit does not leave."""
    tip = repo.branch_tip(branch)
    for lost, instead in gaps(repo.commondir, f"refs/heads/{branch}") if tip else ():
        names = repo.resolve_commit(lost), repo.resolve_commit(instead)
        if not tip or None in names or not repo.is_ancestor(instead, tip):
            continue
        there = {id for commit in repo.commits(tip, lost) for id in _batches(commit.message)}
        for commit in repo.commits(lost, tip):
            for id in _batches(commit.message):
                if id not in there:
                    yield Finding(
                        "repository.landed",
                        "todo",
                        f"the batch {id} landed on {branch} as {commit.oid}, and git's next "
                        f"commit, {instead}, was made from an old value of the branch",
                        f"git cherry-pick {commit.oid}",
                    )


def _batches(message: str) -> list[str]:
    return trailers(message).get("Patchq-Batch", [])


def noted(root: Path, config: Config | None) -> Iterator[Finding]:
    """What the queue's processes met and nobody has mended; not of hooks that are configured no
    more."""
    hooks = {f"hook.{hook.id}" for hook in config.hooks} if config else set()
    for trouble in Troubles(root).all():
        of_hook = trouble.what.startswith("hook.")
        if config and not config.git_hooks and of_hook and trouble.what not in hooks:
            continue
        since = datetime.fromtimestamp(trouble.since, UTC).isoformat(timespec="seconds")
        times = f"{trouble.times} times since {since}" if trouble.times > 1 else f"at {since}"
        yield Finding(trouble.what, "todo", f"{trouble.message} ({times})", trouble.cure)
