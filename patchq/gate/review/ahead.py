"""Unfinished work, compared with proposals and other unfinished work (`status --ahead`).

Each work tree, committed or not, and each branch that is taken when it moves is compared as the
proposal that it would be with those that wait for review and with one another.
Nothing is written: what is not committed is read into memory.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from patchq.gate.errors import Fault, ObjectDamaged
from patchq.gate.git import records
from patchq.gate.git.checkout import Checkout, registered
from patchq.gate.git.merges import fork_of
from patchq.gate.git.repository import Repository
from patchq.gate.intake import branches
from patchq.gate.land import board
from patchq.gate.land.board import Blobs, Board, Change, ChangedPlace, blobs
from patchq.gate.land.overlaps import overlaps
from patchq.gate.pipeline.context import RepoContext
from patchq.gate.pipeline.session import Session

MOST = 100  # work trees and branches that are compared
_MOST_PATHS = 2000  # uncommitted files of each
_MOST_OVERLAPS = 20  # overlaps of each
_MOST_PLACES = 4  # overlaps of each with one other


class Work(Struct, frozen=True):
    """A work tree or a branch with something that the target does not have."""

    place: Path | None
    branch: str
    change: Change
    proposed: str | None = None
    """The batch that was made of the branch."""


def ahead(context: Session) -> dict[str, Any]:
    """Return the unfinished work, each with its overlaps.

    `status --ahead --json` prints it.
    """
    repo = context.repo
    tip = context.branches.tip(context.target) if context.target else None
    places = _places(context) if tip else []
    works = list[Work]()
    with repo.buffer.tentative():
        for place in places[:MOST]:
            with suppress(Fault, OSError):  # whose commits cannot be read
                works += _work(context, tip or "", place)
        waits, others = board.current(context), Board()
        for work in works:
            others.add(work.change)
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
                    "files": len(work.change.changes),
                    "overlaps": found[:_MOST_OVERLAPS],
                    "more": len(found) > _MOST_OVERLAPS,
                }
            )
    left_out = max(len(places) - MOST, 0)
    return {"target": context.target or None, "works": rows, "left_out": left_out}


def _places(context: RepoContext) -> list[Checkout | str]:
    trees = [
        it for it in registered(context.repo) if not it.unseen and not records.is_branch(it.branch)
    ]
    here, named = {it.branch for it in trees}, dict[str, str]()
    with suppress(Fault):  # of a ref that cannot be read
        named = branches.matching(context)
    return [*trees, *(name for name in named if name not in here)]


def _work(context: RepoContext, tip: str, at: Checkout | str) -> Iterator[Work]:
    """Yield the work of a branch or work tree since it left the target.

    A work tree's uncommitted files are part of it.
    """
    repo, branch = context.repo, at.branch if isinstance(at, Checkout) else at
    head = repo.head_commit(at.gitdir) if isinstance(at, Checkout) else repo.branch_tip(branch)
    base = fork_of(repo, tip, head) if head else None
    if head is None or base is None:
        return
    changes = blobs(repo.changes(base, head))
    place = at.workdir if isinstance(at, Checkout) else None
    if isinstance(at, Checkout):
        changes |= _uncommitted(at, base, context.config.limits.file_bytes)
    kept = {path: (before, after) for path, (before, after) in changes.items() if before != after}
    if not kept:
        return
    kind: Literal["worktree", "branch"] = "worktree" if place else "branch"
    change = Change(f" {place or branch}", context.target, None, "", base, (), kept, kind)
    taken = branches.known(context.queue_root).get(branch)
    report = branches.last(context, taken) if taken else None
    yield Work(place, branch, change, report.id if report else None)


def _uncommitted(at: Checkout, base: str, most: int) -> dict[str, Blobs]:
    options = ("--porcelain=v1", "-z", "--no-renames", "--untracked-files=all")
    repo, found = at.repo, dict[str, Blobs]()
    tree = repo.tree(base).root
    for item in at.git.output("status", *options).split(b"\0")[:_MOST_PATHS]:
        path = os.fsdecode(item[3:])
        there, leaf = at.workdir / path, repo.leaf(tree, path) if path else None
        after = None
        if there.is_symlink():
            after = repo.keep_blob(os.fsencode(there.readlink()))
        elif there.is_file():
            if there.stat().st_size > most:
                continue
            after = repo.keep_blob(there.read_bytes())
        found[path] = leaf and leaf[1], after
    return found


def _overlaps(repo: Repository, work: Work, others: Sequence[Change]) -> Iterator[dict[str, Any]]:
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
