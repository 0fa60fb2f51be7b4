"""Work that is still being written, beside what waits and what others write (`status --ahead`).

Each work tree, committed or not, and each branch that is taken when it moves is compared as the
proposal that it would be with those that wait for review, those that are held and with one another.
Nothing is written: what is not committed is read into memory.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import islice
from pathlib import Path
from stat import S_ISLNK, S_ISREG
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from patchq.gate.errors import Fault, ObjectDamaged, RepositoryFault
from patchq.gate.git import records
from patchq.gate.git.checkout import Checkout, registered
from patchq.gate.git.merges import fork_of
from patchq.gate.git.repository import Repository
from patchq.gate.intake import branches
from patchq.gate.land.overlaps import (
    Blobs,
    Change,
    ChangedPlace,
    Index,
    foreseen,
    overlaps,
    waiting,
)
from patchq.gate.pipeline.context import RepoContext
from patchq.gate.pipeline.session import Session

MOST = 100  # work trees and branches that are compared
_MOST_PATHS = 2000  # files of each
_MOST_OVERLAPS = 20  # overlaps of each
_MOST_PLACES = 4  # overlaps of each with one other
_MOST_THREADS = 8


class Work(Struct, frozen=True):
    """A work tree or a branch with something that the target does not have."""

    place: Path | None
    branch: str
    change: Change
    left_out: int = 0
    """Files that are not compared."""
    proposed: str | None = None
    """The batch that was made of the branch."""


def ahead(context: Session) -> dict[str, Any]:
    """Return what is being written, each with its overlaps; as `status --ahead --json` has it."""
    repo = context.repo
    tip = context.branches.tip(context.target) if context.target else None
    if tip is None:
        return {"target": context.target or None, "works": [], "left_out": 0}
    with repo.buffer.tentative():
        works, left_out = _works(context, tip)
        waits, others = waiting.board(context), Index()
        paths = {path for work in works for path in work.change.reach}
        held = foreseen.held(context, context.target, paths) if works else ()
        for change in (*(work.change for work in works), *held):
            others.add(change)
        rows = []
        for work in works:
            near = [
                index[id] for index in (waits, others) for id in sorted(index.beside(work.change))
            ]
            found = list(islice(_overlaps(repo, work, near), _MOST_OVERLAPS + 1))
            rows.append(
                {
                    "worktree": str(work.place) if work.place else None,
                    "branch": work.branch or None,
                    "base": work.change.base,
                    "files": len(work.change.changes) + work.left_out,
                    "files_left_out": work.left_out,
                    "overlaps": found[:_MOST_OVERLAPS],
                    "more": len(found) > _MOST_OVERLAPS,
                }
            )
    return {"target": context.target, "works": rows, "left_out": left_out}


def _works(context: RepoContext, tip: str) -> tuple[list[Work], int]:
    """Return the works with something of their own, and how many were not looked at."""
    repo, known = context.repo, branches.known(context.queue_root)
    there = [it for it in registered(repo) if not it.unseen and not records.is_branch(it.branch)]
    here, loose = {checkout.branch for checkout in there}, list[str]()
    with suppress(RepositoryFault):  # of a ref that cannot be read
        loose = [name for name in branches.matching(context) if name not in here]
    with ThreadPoolExecutor(_MOST_THREADS) as pool:
        dirty = list(pool.map(_uncommitted, there[:MOST]))
    found = []
    for checkout, paths in zip(there[:MOST], dirty, strict=True):
        head = _tip(repo, checkout.branch) if checkout.branch else _detached(repo, checkout)
        if work := head and _work(context, tip, head, checkout, paths):
            found.append(work)
    for name in loose[: MOST - len(there)] if len(there) < MOST else ():
        head = _tip(repo, name)
        if work := head and _work(context, tip, head, name):
            found.append(work)
    for number, work in enumerate(found):
        if taken := known.get(work.branch):
            report = branches.last(context, taken)
            found[number] = replace(work, proposed=report and report.id)
    return found, max(len(there) + len(loose) - MOST, 0)


def _tip(repo: Repository, branch: str) -> str | None:
    """Return the tip of a branch if its commit can be read."""
    with suppress(RepositoryFault):
        return repo.branch_tip(branch)
    return None


def _detached(repo: Repository, checkout: Checkout) -> str | None:
    try:
        return repo.resolve_commit((checkout.gitdir / "HEAD").read_text().strip())
    except OSError:
        return None


def _uncommitted(checkout: Checkout) -> list[str]:
    """Return the paths that git sees as changed or new; none where it cannot tell."""
    options = ("--porcelain=v1", "-z", "--no-renames", "--untracked-files=all")
    try:
        items = checkout.git.output("status", *options).split(b"\0")
    except Fault:
        return []
    return [os.fsdecode(item[3:]) for item in items if item]


def _work(
    context: RepoContext, tip: str, head: str, at: Checkout | str, dirty: Sequence[str] = ()
) -> Work | None:
    """Return what the commit, and files that are not committed, have beside the target.

    None where that is nothing, or cannot be read.
    """
    repo, base = context.repo, fork_of(context.repo, tip, head)
    if base is None:
        return None
    checkout = at if isinstance(at, Checkout) else None
    try:
        changes = {
            path: (before and before[1], after and after[1])
            for path, (before, after) in repo.changes(base, head).items()
        }
        root, most = repo.tree(base).root, context.config.limits.file_bytes
        large = set[str]()
        for path in dirty[:_MOST_PATHS] if checkout else ():
            leaf = repo.leaf(root, path)
            before = changes[path][0] if path in changes else leaf and leaf[1]
            after = _there(repo, checkout.workdir / path, most) if checkout else None
            changes[path] = before, after
            if after == _LARGE:
                large.add(path)
            if before == after or path in large:
                del changes[path]
    except ObjectDamaged:
        return None
    paths = sorted(changes)
    if not paths and not large:
        return None
    kept: Mapping[str, Blobs] = {path: changes[path] for path in paths[:_MOST_PATHS]}
    place, branch = (checkout.workdir, checkout.branch) if checkout else (None, str(at))
    made = Change(
        f" {place or branch}",
        context.target,
        None,
        "",
        base,
        (),
        kept,
        "worktree" if place else "branch",
    )
    left_out = len(paths) - len(kept) + max(len(dirty) - _MOST_PATHS, 0) + len(large)
    return Work(place, branch, made, left_out)


_LARGE = "too large to be compared"


def _there(repo: Repository, place: Path, most: int) -> str | None:
    """Return the id of a file in a work tree, kept in memory; None where there is none."""
    try:
        status = place.lstat()
        if S_ISLNK(status.st_mode):
            return repo.keep_blob(os.fsencode(os.readlink(place)))
        if not S_ISREG(status.st_mode):
            return None
        return repo.keep_blob(place.read_bytes()) if status.st_size <= most else _LARGE
    except OSError:
        return None


def _overlaps(repo: Repository, work: Work, others: Sequence[Change]) -> Iterator[dict[str, Any]]:
    """Yield where the work touches what others do; what both have made the same is none."""
    for other in others:
        if other.id == work.proposed:
            continue
        same = {
            path
            for path, (_, after) in work.change.changes.items()
            if path in other.changes and other.changes[path][1] == after
        }
        with suppress(ObjectDamaged):
            met = (pair for pair in overlaps(repo, work.change, other) if pair[0].path not in same)
            for ours, theirs in islice(met, _MOST_PLACES):
                beside = {"kind": other.kind, "name": other.id.strip(), "agent": other.agent}
                yield {**_row(ours), "with": {**beside, **_row(theirs)}}


def _row(place: ChangedPlace) -> dict[str, Any]:
    return {"path": place.path, "lines": place.lines and list(place.lines), "does": place.does}
