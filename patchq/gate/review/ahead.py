"""Unfinished work, compared with proposals and other unfinished work (`status --ahead`).

Each work tree, committed or not, and each branch that is taken when it moves is compared as the
proposal that it would be with those that wait for review, those that are held and with one another.
Nothing is written: what is not committed is read into memory.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from patchq.gate.errors import Fault, ObjectDamaged, RepositoryFault
from patchq.gate.git import records
from patchq.gate.git.checkout import Checkout, registered
from patchq.gate.git.merges import fork_of
from patchq.gate.git.repository import Repository
from patchq.gate.intake import branches
from patchq.gate.land.overlaps import (
    Change,
    ChangedPlace,
    Index,
    board,
    held,
    overlaps,
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
    """Return the unfinished work, each with its overlaps.

    `status --ahead --json` prints it.
    """
    repo = context.repo
    tip = context.branches.tip(context.target) if context.target else None
    if tip is None:
        return {"target": context.target or None, "works": [], "left_out": 0}
    with repo.buffer.tentative():
        works, left_out = _works(context, tip)
        waits, others = board(context), Index()
        paths = {path for work in works for path in work.change.reach}
        waits_for = held(context, context.target, paths) if works else ()
        for change in (*(work.change for work in works), *waits_for):
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
    """Return the works with changes of their own, and the number not looked at."""
    repo = context.repo
    places: list[Checkout | str] = [
        it for it in registered(repo) if not it.unseen and not records.is_branch(it.branch)
    ]
    here = {it.branch for it in places if isinstance(it, Checkout)}
    with suppress(RepositoryFault):  # of a ref that cannot be read
        places += [name for name in branches.matching(context) if name not in here]
    with ThreadPoolExecutor(_MOST_THREADS) as pool:
        dirty = list(pool.map(_uncommitted, places[:MOST]))
    found = list[Work]()
    for at, paths in zip(places[:MOST], dirty, strict=True):
        with suppress(RepositoryFault, OSError):  # whose commits cannot be read
            found += _work(context, tip, at, paths)
    return found, max(len(places) - MOST, 0)


def _uncommitted(at: Checkout | str) -> list[str]:
    options = ("--porcelain=v1", "-z", "--no-renames", "--untracked-files=all")
    try:
        items = at.git.output("status", *options).split(b"\0") if isinstance(at, Checkout) else []
    except Fault:
        return []
    return [os.fsdecode(item[3:]) for item in items if item]


def _work(
    context: RepoContext, tip: str, at: Checkout | str, dirty: Sequence[str]
) -> Iterator[Work]:
    """Yield the work of a branch or work tree since it left the target.

    A work tree's uncommitted files are part of it.
    """
    repo, branch = context.repo, at.branch if isinstance(at, Checkout) else at
    place = at.workdir if isinstance(at, Checkout) else None
    if isinstance(at, Checkout) and not branch:
        head = repo.resolve_commit((at.gitdir / "HEAD").read_text().strip())
    else:
        head = repo.branch_tip(branch)
    base = fork_of(repo, tip, head) if head else None
    if head is None or base is None:
        return
    changes = {
        path: (before and before[1], after and after[1])
        for path, (before, after) in repo.changes(base, head).items()
    }
    left_out = max(len(dirty) - _MOST_PATHS, 0)
    for path in dirty[:_MOST_PATHS]:
        there = Path(place or "", path)
        leaf = repo.leaf(repo.tree(base).root, path)
        before = changes.pop(path)[0] if path in changes else leaf and leaf[1]
        if _is_large(there, context.config.limits.file_bytes):
            left_out += 1
        elif before != (after := _there(repo, there)):
            changes[path] = before, after
    kept = dict(sorted(changes.items())[:_MOST_PATHS])
    left_out += len(changes) - len(kept)
    if not kept and not left_out:
        return
    kind: Literal["worktree", "branch"] = "worktree" if place else "branch"
    name = f" {place or branch}"
    change = Change(name, context.target, None, "", base, (), kept, kind)
    taken = branches.known(context.queue_root).get(branch)
    report = branches.last(context, taken) if taken else None
    yield Work(place, branch, change, left_out, report.id if report else None)


def _is_large(place: Path, most: int) -> bool:
    try:
        return place.lstat().st_size > most
    except OSError:
        return False


def _there(repo: Repository, place: Path) -> str | None:
    try:
        if place.is_symlink():
            return repo.keep_blob(os.fsencode(os.readlink(place)))
        return repo.keep_blob(place.read_bytes()) if place.is_file() else None
    except OSError:
        return None


def _overlaps(repo: Repository, work: Work, others: Sequence[Change]) -> Iterator[dict[str, Any]]:
    """Yield the overlaps of the work with others, but for equal changes."""
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
