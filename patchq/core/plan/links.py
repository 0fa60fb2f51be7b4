"""Symbolic links that a batch may not make, by their targets.

A link is judged on the tree that the batch leaves, with all other links in it, as a file system
would follow it.  One that leads out of the repository, into what git or patchq keeps for itself, to
a denied path, round in circles, or is where git follows no link, is refused.  At any other a person
looks first.

Nothing is ever written through a link: no path of a batch may have one above it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from patchq.core.model.names import name_key, spells_git
from patchq.core.model.values import ErrorProblem, FileChange, Tree
from patchq.core.plan.targets import PlanRules
from patchq.core.text.quote import HIDDEN, visible

_MOST_STEPS = 40  # so many links a file system follows before it gives up
_MOST_BYTES = 1024
_DRIVE = re.compile(r"[A-Za-z]:")
_GITS_OWN = frozenset({".gitmodules", ".gitattributes", ".gitignore", ".mailmap", ".lfsconfig"})


class _Astray(Exception):
    """A link that cannot or may not be followed: a code, and a clause."""

    def __init__(self, code: str, why: str) -> None:
        super().__init__(why)
        self.code, self.why = code, why


def flaws(changes: Sequence[FileChange], before: Tree, rules: PlanRules) -> Iterator[ErrorProblem]:
    """Yield an error for each forbidden link that the changes would make.

    `before` is the tree that they change.
    """
    links = [change for change in changes if change.link and change.after is not None]
    after = _After(changes if links else (), before)
    for change in links:
        try:
            _judge(change.path, rules.denied)
            _follow(change, after, rules.denied)
        except _Astray as astray:
            yield ErrorProblem(
                astray.code,
                f"{change.path} would be a symbolic link {astray.why}",
                "link to a file of the repository, by a path relative to the link",
                path=change.path,
            )


def _judge(path: str, denied: Callable[[str], str | None]) -> None:
    """Raise `_Astray` if no link may be at this path, whatever its target."""
    if name_key(path.rpartition("/")[2]) in _GITS_OWN:
        raise _Astray("path.denied", "which git does not follow there")
    if reason := denied(f"{path}/-"):
        raise _Astray("path.denied", f"in the place of a directory that may not change: {reason}")


class _After:
    def __init__(self, changes: Iterable[FileChange], before: Tree) -> None:
        self._before = before
        self._now: dict[str, FileChange | None] = {}
        for change in changes:
            if change.renamed_from is not None:
                self._now.setdefault(change.renamed_from, None)
            self._now[change.path] = None if change.after is None else change

    def has_link(self, path: str) -> bool:
        """Return True if a link is at the path."""
        if path in self._now:
            change = self._now[path]
            return change is not None and change.link
        entry = self._before.entry(path)
        return entry is not None and entry.kind == "link"

    def target(self, path: str) -> bytes:
        """Return the target of the link at the path."""
        change = self._now.get(path)
        return change.after or b"" if change else self._before.read(path)


def _follow(change: FileChange, after: _After, denied: Callable[[str], str | None]) -> None:
    """Follow a link to its end; raises `_Astray`."""
    here = change.path.split("/")[:-1]
    ahead, steps = _parts(change.after or b""), 1
    while ahead:
        part = ahead.pop(0)
        if part in ("", "."):
            continue
        if part == "..":
            if not here:
                raise _Astray("path.outside", "that leads out of the repository")
            here.pop()
            continue
        here.append(part)
        path = "/".join(here)
        if spells_git(part):
            raise _Astray("path.denied", "into what git keeps for itself")
        if reason := denied(path):
            raise _Astray("path.denied", f"to {visible(path)}, which may not be changed: {reason}")
        if after.has_link(path):
            steps += 1
            if steps > _MOST_STEPS:
                raise _Astray("path.invalid", "that leads round in circles")
            here.pop()
            ahead = _parts(after.target(path)) + ahead


def _parts(target: bytes) -> list[str]:
    """Return the components of a link's target; raises `_Astray`."""
    text = target.decode("utf-8", "surrogateescape")
    if text.startswith(("/", "\\")) or _DRIVE.match(text):
        raise _Astray("path.outside", "with an absolute path, which leads out of the repository")
    wrong = {
        "that leads nowhere": not text,
        f"to a path of more than {_MOST_BYTES} bytes": len(target) > _MOST_BYTES,
        "to a path with what is no character, or none to be seen": bool(HIDDEN.search(text)),
        "to a path with a backslash; directories are separated by `/`": "\\" in text,
    }
    if why := next((why for why, holds in wrong.items() if holds), None):
        raise _Astray("path.invalid", why)
    return text.split("/")
