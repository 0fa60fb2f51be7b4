"""What is checked out where, whether it can be reached, and what it is in the middle of.

It is asked for every landing, so it is read from files.

A work tree that is registered and out of reach (on a disk that is not mounted, behind a private
`/tmp`, outside of a container) cannot follow, and whoever works there would take the batch back:
nothing lands past it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePath

from patchq.git.command import QUIET, Git, plain_environment
from patchq.git.reffiles import heads
from patchq.git.repository import Repository

_REBASES = ("rebase-merge/head-name", "rebase-apply/head-name", "rebase-merge/update-refs")
_SERIES = {"pick": "cherry-picking", "revert": "reverting"}
"""What a series of commits is for, between two of them."""
_HEAD_STATES = {
    "MERGE_HEAD": "merging",
    "CHERRY_PICK_HEAD": "cherry-picking",
    "REVERT_HEAD": "reverting",
    "rebase-apply/applying": "applying patches",
}


@dataclass(frozen=True, slots=True)
class Checkout:
    """A work tree whose HEAD is `branch` (short name), with its own git directory."""

    repo: Repository
    branch: str
    gitdir: Path
    workdir: Path
    unseen: str = ""
    """Why it is out of reach; empty where it can be seen and written."""

    @property
    def cure(self) -> str:
        """What to do about one that is out of reach."""
        if (self.gitdir / "commondir").exists():
            unlock = f"git worktree unlock '{self.workdir}'; " if self._locked else ""
            gone = f"or, if it is gone for good: {unlock}git worktree prune"
        else:
            gone = "or correct core.worktree"
        return (
            "make it visible and writable to patchq (mount its disk; `git worktree repair` where "
            "it stands now; in a unit no PrivateTmp=, and a ReadWritePaths= for it; a volume of "
            f"the container), {gone}"
        )

    @property
    def _locked(self) -> bool:
        return (self.gitdir / "locked").exists()

    @property
    def git(self) -> Git:
        """Git here, whatever the environment says."""
        places = (f"--git-dir={self.gitdir}", f"--work-tree={self.workdir}")
        return Git(
            plain_environment(GIT_LITERAL_PATHSPECS="1"),
            (*QUIET, *places, "-C", str(self.workdir)),
            place=self.workdir,
        )


def checkouts(repo: Repository, branch: str) -> list[Checkout]:
    """The main work tree and the linked ones whose HEAD is the branch, also those out of reach."""
    ref = f"refs/heads/{branch}"
    return [checkout for checkout in registered(repo, ref) if checkout.branch == branch]


def registered(repo: Repository, ref: str | None = None) -> Iterator[Checkout]:
    """All work trees that git knows of, or those whose HEAD is the ref; one with a detached HEAD
    has an empty branch."""
    for gitdir, head in heads(repo.commondir):
        if ref not in (None, head):
            continue
        workdir, branch = workdir_of(repo, gitdir), head.removeprefix("refs/heads/")
        if workdir is not None:
            yield Checkout(repo, branch, gitdir, workdir, _out_of_reach(repo, gitdir, workdir))
        elif gitdir != repo.commondir:
            yield Checkout(repo, branch, gitdir, gitdir, "nothing says where it is")


def _out_of_reach(repo: Repository, gitdir: Path, workdir: Path) -> str:
    """Why the directory cannot be worked in; empty if it can.  Where a disk is not mounted there
    may be an empty directory, so a linked work tree has to name its git directory."""
    try:
        if not stat.S_ISDIR(workdir.stat().st_mode):
            return "there is no such directory"
        if gitdir != repo.commondir and not _belongs(workdir, gitdir):
            return "that directory is not this work tree"
    except (FileNotFoundError, NotADirectoryError):
        return "there is no such directory"
    except OSError as error:
        return f"it cannot be seen: {error.strerror}"
    return "" if _writable(workdir) else "it cannot be written"


def _belongs(workdir: Path, gitdir: Path) -> bool:
    pointer = workdir / ".git"
    named = "" if pointer.is_dir() else _text(pointer).removeprefix("gitdir:").strip()
    place = workdir / named
    return bool(named) and place.exists() and place.samefile(gitdir)


def _writable(directory: Path) -> bool:
    return os.access(directory, os.W_OK | os.X_OK)


def unwritable(checkout: Checkout, paths: Iterable[str]) -> str:
    """The first directory where one of the paths is to be changed and nothing can be: a part that
    is mounted read-only, or belongs to somebody else; empty if there is none."""
    above = {str(parent) for path in paths for parent in PurePath(path).parents}
    there = (checkout.workdir / directory for directory in sorted(above))
    return next((str(at) for at in there if at.is_dir() and not _writable(at)), "")


def busy(repo: Repository, branch: str) -> str | None:
    """What a work tree is in the middle of with the branch (`rebasing`, …), or None."""
    ref = f"refs/heads/{branch}"
    for gitdir, head in heads(repo.commondir):
        if ref in _lines(gitdir, *_REBASES):
            return "rebasing"
        if branch in _lines(gitdir, "BISECT_START"):
            return "bisecting"
        if head == ref:
            states = (word for name, word in _HEAD_STATES.items() if (gitdir / name).exists())
            series = _text(gitdir / "sequencer/todo").split(" ")[0]
            if word := next(states, None) or _SERIES.get(series):
                return word
    return None


def workdir_of(repo: Repository, gitdir: Path) -> Path | None:
    if gitdir == repo.gitdir:
        return repo.workdir
    if gitdir == repo.commondir:
        return Repository.open(gitdir).workdir
    named = _text(gitdir / "gitdir")
    return (gitdir / named).parent if named else None


def _lines(gitdir: Path, *names: str) -> list[str]:
    return [line.strip() for name in names for line in _text(gitdir / name).split("\n")]


def _text(path: Path) -> str:
    try:
        return os.fsdecode(path.read_bytes()).strip()
    except (FileNotFoundError, NotADirectoryError):
        return ""
