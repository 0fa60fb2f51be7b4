"""Changes of a branch since a batch was made, read from its commits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from itertools import islice
from typing import Literal

from patchq.core.model.values import Collision, FileChange, Problem
from patchq.gate.git import records
from patchq.gate.git.merges import line_hunks
from patchq.gate.git.objects import BLOB, Leaf, mode_of, object_id
from patchq.gate.git.repository import Repository
from patchq.gate.pipeline import traces
from patchq.gate.pipeline.context import RepoContext
from patchq.gate.pipeline.rebase.lines import Lines, image
from patchq.gate.report.message import subject
from patchq.gate.report.schema import STANDING, Delivery, Report

_MOST_COMMITS = 300
Standing = Literal["waits", "landed", "touched", "gone"]


def standing(report: Report | Delivery, context: RepoContext, tip: str) -> Standing:
    """Where an earlier batch stands now: it waits, its commit is in the history of `tip` untouched
    or with its changed lines touched since, or it has no say any more."""
    state, repo, own = report.state, context.repo, records.branch(report.id)
    if state == "held" or (state == "proposed" and context.branches.tip(own)):
        return "waits"
    commit = traces.landing(report, repo, tip) if state in STANDING else None
    if commit is None:
        return "gone"
    return "touched" if touched_paths(repo, commit, tip) else "landed"


def touched_since(report: Report | Delivery, repo: Repository, tip: str) -> Problem:
    """The refusal of a second delivery whose first one landed and was changed since."""
    commit = traces.landing(report, repo, tip)
    assert commit is not None
    path = touched_paths(repo, commit, tip)[0]
    collision = collides_with(repo, commit, tip, path)
    return Problem(
        "conflict.base",
        f"these edits landed as batch {report.id}, and what they wrote into {path} was changed "
        f"since by {named(collision)}",
        "read the file again and send a new response, if it is still to change",
        path=path,
        conflicts_with=collision,
    )


def digest_of(changes: Iterable[FileChange]) -> str:
    """Return the sha256 (hex) of the paths of changes, the blobs before, and the leaves after."""
    sides: dict[str, tuple[str | None, Leaf | None]] = {}
    for change in changes:
        before = None if change.before is None else object_id(BLOB, change.before)
        if change.renamed_from is not None:
            sides[change.renamed_from], before = (before, None), None
        after = change.after
        leaf = None if after is None else (mode_of(change), object_id(BLOB, after))
        sides[change.path] = before, leaf
    return _digest(sides)


def _digest(sides: Mapping[str, tuple[str | None, Leaf | None]]) -> str:
    lines = (
        f"{path}\0{was}\0{now and f'{now[0]:o} {now[1]}'}\n"
        for path, (was, now) in sorted(sides.items())
    )
    return sha256("".join(lines).encode("utf-8", "surrogateescape")).hexdigest()


def delivery(repo: Repository, changes: Sequence[FileChange], base: str, tip: str) -> str | None:
    """Return the newest commit since the base that makes the same of the same files.

    A batch's trailer says what its edits made on its own base, wherever it landed.
    """
    wanted = digest_of(changes)
    for commit in islice(repo.touching(tip, base, changes[0].path), _MOST_COMMITS):
        parents = repo.parents(commit)
        if f"sha256:{wanted}" in traces.trailers(repo, commit).get("Patchq-Edits", ()):
            return commit
        made = repo.changes(parents[0], commit) if len(parents) == 1 else {}
        sides = {path: (was and was[1], now) for path, (was, now) in made.items()}
        if sides.keys() == {path for change in changes for path in change.paths} and (
            _digest(sides) == wanted
        ):
            return commit
    return None


def touched_paths(repo: Repository, commit: str, tip: str) -> list[str]:
    """The paths of a commit whose changed lines are not on the tip as the commit left them."""
    parents = repo.parents(commit)
    if not parents:
        return []
    return sorted(
        path
        for path in set(repo.changes(parents[0], commit)) & set(repo.changes(commit, tip))
        if _meet(*(_text(repo, oid, path) for oid in (parents[0], commit, tip)))
    )


def _text(repo: Repository, commit: str, path: str) -> bytes | None:
    tree = repo.tree(commit)
    entry = tree.entry(path)
    return tree.read(path) if entry and entry.kind == "file" else None


def _meet(before: bytes | None, landed: bytes | None, now: bytes | None) -> bool:
    """Return whether lines that `landed` changed have changed again."""
    if before is None or landed is None or now is None:
        return landed != now
    ours = [(b0, b1) for _, _, b0, b1 in line_hunks(before, landed)]
    theirs = [(a0, a1) for a0, a1, _, _ in line_hunks(landed, now)]
    return any(
        (a0 < b1 and b0 < a1) or (a0, a1) == (b0, b1) for a0, a1 in theirs for b0, b1 in ours
    )


def collides_with(
    repo: Repository, base: str, tip: str, path: str, lines: Lines | None = None
) -> Collision:
    """The newest commit between two that changed the path, or these lines of it as the tip has
    them, and the batch and agent behind it."""
    commit = _toucher(repo, base, tip, path, lines) if lines else None
    commit = commit or next(repo.touching(tip, base, path), None)
    if commit is None:
        return Collision(path=path)
    trailers = traces.trailers(repo, commit)
    agents = trailers.get("Assisted-by", [])
    return Collision(
        batch=next(iter(trailers.get("Patchq-Batch", [])), None),
        commit=commit,
        agent=agents[0].partition(":")[0] if agents else None,
        path=path,
    )


def _toucher(repo: Repository, base: str, tip: str, path: str, lines: Lines) -> str | None:
    """The newest commit between two that changed these lines, followed back from the tip."""
    for commit in repo.touching(tip, base, path):
        parents = repo.parents(commit)
        before = _text(repo, parents[0], path) if parents else None
        landed = _text(repo, commit, path)
        if before is None or landed is None:
            return commit
        hunks = line_hunks(before, landed)
        if any(b0 <= lines[1] and lines[0] <= b1 for _, _, b0, b1 in hunks):
            return commit
        lines = image(lines, [(b0, b1, a0, a1) for a0, a1, b0, b1 in hunks])
    return None


def named(collision: Collision) -> str:
    """The commit of a collision, for people."""
    if collision.commit is None:
        return "another line of history"
    by = f" by {collision.agent}" if collision.agent else ""
    batch = f" (batch {collision.batch}{by})" if collision.batch else ""
    return f"commit {collision.commit[:12]}{batch}"


def lately(repo: Repository, tip: str, path: str) -> str:
    """The newest commit that touched the path, as the end of a sentence."""
    commit = next(repo.touching(tip, None, path), None)
    if commit is None:
        return ""
    return f"; it was last touched by {commit[:12]} ({subject(repo.message(commit))[:60]})"
