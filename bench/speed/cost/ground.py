"""What every part measures with: a place, the command, rounds, a child's processor time."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.git import CONFIG, BenchError, environment, git
from bench.speed.goal import Goal


@dataclass(frozen=True, slots=True)
class Ground:
    """Where a part works, and how much of it: `quick` asks for small sizes and one round."""

    room: Path
    home: Path
    command: list[str]
    rounds: int
    quick: bool

    def repository(self, name: str = "repo") -> Path:
        """A new repository with one empty commit on `main`, checked out, and an author."""
        repo = self.room / name
        git(self.room, "init", "-q", "-b", "main", name, home=self.home)
        (repo / ".git" / "config").write_text(CONFIG.format(bare="false"))
        git(repo, "commit", "-q", "--allow-empty", "-m", "Start", home=self.home)
        return repo

    def spent(
        self,
        words: Sequence[str],
        cwd: Path,
        more: Mapping[str, str] | None = None,
        ends: Collection[int] = (0,),
    ) -> float:
        """Seconds of processor time, user and system, of a child and of all that it waited for.

        Other processes on the machine cannot add to it, but for the caches that they spoil.
        Raises BenchError where the child does not end with one of the `ends`.
        """
        log = self.home / "child.txt"
        with log.open("wb") as out:
            process = subprocess.Popen(
                words,
                cwd=cwd,
                env=environment(self.home) | dict(more or {}),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
            )
            _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode not in ends:
            told = log.read_text(errors="replace")[-2000:]
            raise BenchError(f"{' '.join(words)} ended with {process.returncode}: {told}")
        return used.ru_utime + used.ru_stime

    def said(self, words: Sequence[str], cwd: Path) -> str:
        """What a child prints.  Raises BenchError where it fails."""
        self.spent(words, cwd)
        return (self.home / "child.txt").read_text()

    def write(self, repo: Path, path: str, text: str) -> None:
        """A file, committed."""
        (repo / path).parent.mkdir(parents=True, exist_ok=True)
        (repo / path).write_text(text)
        git(repo, "add", path, home=self.home)
        git(repo, "commit", "-q", "-m", "Write", home=self.home)


Part = Callable[[Ground], Iterable[Goal]]
"""Measures some costs; each goal's value is a ratio of two things of one round, or, where the goal
is a time, the processor's."""
