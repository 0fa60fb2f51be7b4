"""The response that takes a commit back: a unified diff from what it made to what was there.

It names the commit as its base, so that it is resolved on exactly those bytes and carried to the
tip by the rule that holds for every batch.  What a diff of text cannot say (other bytes, modes,
links) is refused, and so is a diff that patchq itself would read as another change.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace

from patchq import formats
from patchq.formats.envelope.opening import open_response
from patchq.git.objects import EXECUTABLE, Leaf, is_regular
from patchq.git.repository import Repository
from patchq.model.values import Envelope, FileChange, Problem
from patchq.plan import batch
from patchq.plan.guards import is_utf8
from patchq.plan.targets import Rules
from patchq.report.message import subject
from patchq.text import unified
from patchq.text.line_diff import line_diff
from patchq.text.lines import split_lines

_ALIKE = 0.5
"""The least share of lines that a renamed file keeps, as git has it."""


def changes(repo: Repository, start: str, commit: str) -> tuple[FileChange, ...] | Problem:
    """What leads from `commit` back to `start`, or why text cannot say it."""
    found = []
    for path, (before, after) in repo.changes(commit, start).items():
        problem = _beyond_text(repo, path, before, after)
        if problem is not None:
            return replace(problem, hint=f"take it back with git: git revert {commit[:12]}")
        was, now = (repo.raw(leaf[1]) if leaf else None for leaf in (before, after))
        executable = before is not None and before[0] == EXECUTABLE
        found.append(FileChange(path, was, now, executable))
    return tuple(_with_renames(found))


def _beyond_text(
    repo: Repository, path: str, before: Leaf | None, after: Leaf | None
) -> Problem | None:
    sides = [leaf for leaf in (before, after) if leaf]
    if not all(is_regular(leaf[0]) for leaf in sides):
        return Problem("path.not_a_file", f"{path} is a symbolic link or a submodule", path=path)
    if before is None and after is not None and after[0] == EXECUTABLE:
        return Problem("path.not_a_file", f"{path} was executable when it was deleted", path=path)
    if before and after and before[0] != after[0]:
        return Problem("path.not_a_file", f"the mode of {path} was changed", path=path)
    texts = [repo.raw(leaf[1]) for leaf in sides]
    if any(b"\0" in text for text in texts):
        return Problem("file.binary", f"{path} is binary", path=path)
    if not all(map(is_utf8, texts)):
        return Problem("file.encoding", f"{path} is not UTF-8", path=path)
    return None


def _with_renames(found: Iterable[FileChange]) -> list[FileChange]:
    """The changes, with a file that vanishes and one that appears with most of its lines as a
    rename, so that what later batches did to the file goes with it."""
    kept = list(found)
    for made in [change for change in kept if change.before is None]:
        alike = {_alike(gone, made): gone for gone in kept if gone.after is None}
        share = max(alike, default=0.0)
        if share >= _ALIKE and made.after:
            gone = alike[share]
            kept = [change for change in kept if change not in (gone, made)]
            kept.append(replace(gone, path=made.path, after=made.after, renamed_from=gone.path))
    return kept


def _alike(gone: FileChange, made: FileChange) -> float:
    """The share of lines that both files have."""
    old, new = split_lines(gone.before or b""), split_lines(made.after or b"")
    changed = sum(a1 - a0 for a0, a1, _, _ in line_diff(old, new))
    return (len(old) - changed) / max(len(old), len(new), 1)


def response(
    repo: Repository, id: str, target: str, commit: str, back: Iterable[FileChange]
) -> bytes:
    """The changes as a response for `target` that says what it takes back."""
    title = subject(repo.message(commit))
    said = {
        "target": target,
        "base": commit,
        "message": f"{_title(title)}\n\nThis reverts commit {commit}.\nIt landed as batch {id}.",
    }
    header = "".join(
        f"{key}: {json.dumps(value, ensure_ascii=False)}\n" for key, value in said.items()
    )
    return f"---\n{header}---\n{unified.unified(tuple(back))}".encode()


def _title(title: str) -> str:
    """As git says it; what was taken back once comes back."""
    again = title.removeprefix('Revert "')
    return f'Reapply "{again}' if again != title else f'Revert "{title}"'


def reads_back(
    data: bytes, repo: Repository, rules: Rules, commit: str, back: Iterable[FileChange]
) -> bool:
    """Whether the response is read as exactly the changes."""
    opened, tree = open_response(data), repo.tree(commit)
    if not isinstance(opened, Envelope):
        return False
    parsed = formats.parse(
        opened.text, lambda path: tree.entry(path) is not None, None, opened.first_line
    )
    if parsed.problems:
        return False
    plan = batch.plan(parsed.edits, tree, rules, declared=True)
    return _results(plan.changes) == _results(back)


def _results(changes: Iterable[FileChange]) -> set[tuple[str, bytes | None, str | None]]:
    return {(change.path, change.after, change.renamed_from) for change in changes}
