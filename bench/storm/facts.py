"""What the git command line says of a repository: texts, differences, histories.

One `git cat-file` answers for all objects; differences are kept by the two blobs they are of.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from bench.git import BenchError, environment, git

ALGORITHMS = ("myers", "minimal", "patience", "histogram")
"""Where lines repeat, a difference can be told in several ways; each of these is one."""
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")

_RAW = ("-r", "--no-renames", "--raw", "-z")

Changes = dict[str, tuple[str, str] | None]
Hunk = tuple[int, int, int, int]
"""Lines `a0:a1` of the old text became lines `b0:b1` of the new one."""


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit of a history: `changes` are the blob and mode of each path that differs from the
    first parent, None where it is gone."""

    oid: str
    parents: tuple[str, ...]
    message: str
    changes: Changes


class Facts:
    """A repository, read only by the git command; `close` it."""

    def __init__(self, repo: Path, home: Path) -> None:
        self.repo, self.home = repo, home
        self._reader = subprocess.Popen(
            ["git", "cat-file", "--batch"],
            cwd=repo,
            env=environment(home),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self.hunks = lru_cache(maxsize=100_000)(self._hunks)

    def close(self) -> None:
        self._reader.communicate()

    def git(self, *words: str, data: bytes | None = None) -> str:
        return git(self.repo, *words, home=self.home, data=data).decode("utf-8", "surrogateescape")

    def complaints(self) -> str:
        """What `git fsck --strict` has to say, when it is not content."""
        command = ["git", "fsck", "--strict", "--no-dangling", "--no-progress"]
        done = subprocess.run(
            command, cwd=self.repo, env=environment(self.home), capture_output=True, text=True
        )
        return (done.stdout + done.stderr).strip()[:2000] if done.returncode else ""

    def object(self, name: str) -> tuple[str, bytes] | None:
        """Id and content of what git finds under this name."""
        stdin, stdout = self._reader.stdin, self._reader.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(name.encode("utf-8", "surrogateescape") + b"\n")
        stdin.flush()
        words = stdout.readline().split()
        if len(words) != 3 or not words[2].isdigit():
            return None
        content = stdout.read(int(words[2]) + 1)[:-1]
        return words[0].decode(), content

    def oid(self, name: str) -> str:
        found = self.object(name)
        if found is None:
            raise BenchError(f"{self.repo}: git knows no {name}")
        return found[0]

    def blob(self, commit: str, path: str) -> str | None:
        found = self.object(f"{commit}:{path}")
        return found[0] if found else None

    def text(self, commit: str, path: str) -> str | None:
        found = self.object(f"{commit}:{path}")
        return found[1].decode("utf-8", "surrogateescape") if found else None

    def _hunks(self, old: str, new: str, algorithm: str) -> tuple[Hunk, ...]:
        """The difference of two blobs."""
        if old == new:
            return ()
        words = ("diff", "--no-ext-diff", "--no-color", f"--diff-algorithm={algorithm}", "-U0")
        return tuple(hunks_in(self.git(*words, old, new)))

    def first_parents(self, old: str, new: str) -> list[str]:
        """The commits from `old` to `new`, both among them, oldest first."""
        return [
            old,
            *self.git("rev-list", "--first-parent", "--reverse", f"{old}..{new}").split(),
        ]

    def history(self, old: str, new: str) -> list[Commit]:
        """The commits after `old` up to `new` along first parents, oldest first."""
        oids = self.first_parents(old, new)[1:]
        if not oids:
            return []
        parents = self.git("rev-parse", *(f"{oid}^" for oid in oids)).split()
        asked = "".join(f"{oid} {parent}\n" for oid, parent in zip(oids, parents, strict=True))
        told = self.git("diff-tree", "--stdin", *_RAW, data=asked.encode())
        changes: dict[str, Changes] = {oid: {} for oid in oids}
        words, seen = iter(told.split("\0")[:-1]), oids[0]
        for word in words:
            if word.startswith(":"):
                changes[seen][next(words)] = _changed(word)
            else:
                seen = word
        return [self._commit(oid, changes[oid]) for oid in oids]

    def changed(self, old: str, new: str) -> Changes:
        """The paths in which two commits differ, with blob and mode in the newer one."""
        told = self.git("diff-tree", *_RAW, old, new).split("\0")
        return {path: _changed(meta) for meta, path in zip(told[0:-1:2], told[1::2], strict=True)}

    def commit(self, oid: str) -> Commit:
        return self._commit(oid, self.changed(f"{oid}^", oid))

    def _commit(self, oid: str, changes: Changes) -> Commit:
        found = self.object(oid)
        assert found is not None
        head, _, message = found[1].decode("utf-8", "surrogateescape").partition("\n\n")
        parents = [line[7:] for line in head.split("\n") if line.startswith("parent ")]
        return Commit(oid, tuple(parents), message, changes)


def _changed(meta: str) -> tuple[str, str] | None:
    _, mode, _, blob, status = meta.split()
    return None if status == "D" else (blob, mode)


def hunks_in(diff: str) -> Iterator[Hunk]:
    """The ranges of a difference without context."""
    for line in diff.split("\n"):
        found = _HUNK.match(line)
        if found:
            a, more, b, less = (1 if number is None else int(number) for number in found.groups())
            a, b = (a - 1 if more else a), (b - 1 if less else b)
            yield a, a + more, b, b + less


def blob_id(text: str) -> str:
    """The object name of a text."""
    content = text.encode("utf-8", "surrogateescape")
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()
