"""The conflict radar: what is still being written, beside what waits and what others write.

Each work tree, committed or not, and each branch that is taken when it moves is compared as the
proposal that it would be (`land.collisions`) with those that wait for review, those that are held
and with one another.  Nothing is written: what is not committed is read into memory.
"""

from __future__ import annotations

import os
from collections import defaultdict
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
from patchq.gate.land import board, collisions
from patchq.gate.land.board import Blobs, Proposal, ProposedChange
from patchq.gate.pipeline.context import RepoContext
from patchq.gate.pipeline.lines import Lines
from patchq.gate.review import branches

MOST = 100
"""Work trees and branches that are compared."""
_MOST_PATHS = 2000
"""Files of each."""
_MOST_TOLD = 20
"""Overlaps of each."""
_MOST_PLACES = 4
"""Overlaps of each with one other."""
_MOST_THREADS = 8
_EVERY_LINE = [(0, 1 << 40)]


class Work(Struct, frozen=True):
    """What somebody has that the target has not: where it is, as the proposal that it would be, and
    of how many files it has been left out."""

    place: Path | None
    branch: str
    change: Proposal
    left_out: int = 0
    proposed: str | None = None
    """The batch that was made of the branch."""

    @property
    def name(self) -> str:
        return str(self.place) if self.place else self.branch


def ahead(context: RepoContext) -> dict[str, Any]:
    """What is being written, each with what it overlaps, and how many were left out; as `status
    --ahead --json` has it."""
    repo = context.repo
    tip = context.branches.tip(context.target) if context.target else None
    if tip is None:
        return {"target": context.target or None, "works": [], "left_out": 0}
    with repo.unwritten.tentative():
        works, left_out = _works(context, tip)
        waits, others = board.board(context), _Others(context, works)
        told = []
        for work in works:
            near = [(waits[id], "waits") for id in sorted(waits.beside(work.change))]
            found = list(islice(_overlaps(repo, work, near + others.beside(work)), _MOST_TOLD + 1))
            told.append(
                {
                    "worktree": str(work.place) if work.place else None,
                    "branch": work.branch or None,
                    "base": work.change.base,
                    "files": len(work.change.changes) + work.left_out,
                    "files_left_out": work.left_out,
                    "overlaps": found[:_MOST_TOLD],
                    "more": len(found) > _MOST_TOLD,
                }
            )
    return {"target": context.target, "works": told, "left_out": left_out}


def _works(context: RepoContext, tip: str) -> tuple[list[Work], int]:
    """Whatever has something of its own, and how many were not looked at."""
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
    """Of a branch whose commit can be read."""
    with suppress(RepositoryFault):
        return repo.branch_tip(branch)
    return None


def _detached(repo: Repository, checkout: Checkout) -> str | None:
    try:
        return repo.resolve_commit((checkout.gitdir / "HEAD").read_text().strip())
    except OSError:
        return None


def _uncommitted(checkout: Checkout) -> list[str]:
    """The paths that git tells of as changed or new; none where it cannot tell."""
    options = ("--porcelain=v1", "-z", "--no-renames", "--untracked-files=all")
    try:
        items = checkout.git.output("status", *options).split(b"\0")
    except Fault:
        return []
    return [os.fsdecode(item[3:]) for item in items if item]


def _work(
    context: RepoContext, tip: str, head: str, at: Checkout | str, dirty: Sequence[str] = ()
) -> Work | None:
    """What the commit, and the files that are not committed, have beside the target; None where
    that is nothing, or cannot be read."""
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
        large = dict[str, list[Lines]]()
        for path in dirty[:_MOST_PATHS] if checkout else ():
            leaf = repo.leaf(root, path)
            before = changes[path][0] if path in changes else leaf and leaf[1]
            after = _there(repo, checkout.workdir / path, most) if checkout else None
            changes[path] = before, after
            if after == _LARGE:
                changes[path] = before, before or _LARGE
                large[path] = _EVERY_LINE
            elif before == after:
                del changes[path]
    except ObjectDamaged:
        return None
    paths = sorted(changes)
    if not paths:
        return None
    kept: Mapping[str, Blobs] = {path: changes[path] for path in paths[:_MOST_PATHS]}
    place, branch = (checkout.workdir, checkout.branch) if checkout else (None, str(at))
    made = Proposal(f" {place or branch}", context.target, None, "", base, (), kept, large)
    left_out = len(paths) - len(kept) + max(len(dirty) - _MOST_PATHS, 0)
    return Work(place, branch, made, left_out)


_LARGE = "too large to be compared"


def _there(repo: Repository, place: Path, most: int) -> str | None:
    """The id of what a work tree has there, kept in memory; None where there is no file."""
    try:
        status = place.lstat()
        if S_ISLNK(status.st_mode):
            return repo.keep_blob(os.fsencode(os.readlink(place)))
        if not S_ISREG(status.st_mode):
            return None
        return repo.keep_blob(place.read_bytes()) if status.st_size <= most else _LARGE
    except OSError:
        return None


class _Others:
    """What is held, and what else is being written, by the paths that they touch."""

    def __init__(self, context: RepoContext, works: Sequence[Work]) -> None:
        self._at: dict[str, list[tuple[Proposal, str]]] = defaultdict(list)
        for work in works:
            self._put(work.change, "worktree" if work.place else "branch")
        for claim in context.queue.held():
            if held := _held(context, claim.id):
                self._put(held, "held")

    def _put(self, one: Proposal, kind: str) -> None:
        for path in one.reach:
            self._at[path].append((one, kind))

    def beside(self, work: Work) -> list[tuple[Proposal, str]]:
        near = {it.id: (it, kind) for path in work.change.reach for it, kind in self._at[path]}
        near.pop(work.change.id)
        return [near[id] for id in sorted(near)]


def _held(context: RepoContext, id: str | None) -> Proposal | None:
    """A batch that is held, as far as its report knows what it edits."""
    report = context.queue.load(id) if id else None
    base = report.base if report else None
    if report is None or base is None or report.target != context.target:
        return None
    repo, changes, spans = context.repo, dict[str, Blobs](), defaultdict[str, list[Lines]](list)
    try:
        root = repo.tree(base.commit).root
        for edit in report.edits:
            path, lines = edit.path, edit.lines
            leaf = repo.leaf(root, path)
            changes[path] = (leaf and leaf[1], leaf and leaf[1])
            spans[path] += [(lines[0] - 1, lines[1])] if lines else _EVERY_LINE
    except Fault:
        return None
    edits = tuple(
        (e.id, e.path, (e.lines[0], e.lines[1]) if e.lines else None) for e in report.edits
    )
    target, agent = context.target, report.agent
    return Proposal(report.id, target, agent, "", base.commit, edits, changes, dict(spans))


def _overlaps(
    repo: Repository, work: Work, others: Sequence[tuple[Proposal, str]]
) -> Iterator[dict[str, Any]]:
    """Where the work touches what others do; what both have made the same is none."""
    for other, kind in others:
        if other.id == work.proposed:
            continue
        same = {
            path
            for path, (_, after) in work.change.changes.items()
            if path in other.changes and other.changes[path][1] == after
        }
        try:
            met = (
                pair
                for pair in collisions.collisions(repo, work.change, other)
                if pair[0].path not in same or kind == "held"
            )
            for ours, theirs in islice(met, _MOST_PLACES):
                told = {"kind": kind, "name": other.id.strip(), "agent": other.agent}
                yield {**_told(ours), "with": {**told, **_told(theirs)}}
        except ObjectDamaged:
            continue


def _told(change: ProposedChange) -> dict[str, Any]:
    lines = change.lines
    if lines and lines[1] >= _EVERY_LINE[0][1]:
        lines = None
    return {"path": change.path, "lines": lines and list(lines), "does": change.does}
