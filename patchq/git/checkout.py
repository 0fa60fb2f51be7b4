"""What is checked out where, what people do there, and what they have not committed.

Which work tree has a branch, and whether it is in the middle of something, is read from files: it
is asked for every landing.  Whether touched files are clean takes one `git ls-files`, since the
index has four versions and two splits that only git knows (11 ms with 100,000 entries, where
`git status` takes 20); the files are then compared here, by content, and git is asked again only
about those that differ, as they do where line ends are converted.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from patchq.git.command import QUIET, Git, plain_environment
from patchq.git.objects import Leaf, blob_id, is_regular
from patchq.git.reffiles import heads
from patchq.git.repository import Repository

MOST_PATHS = 40
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
    """The main work tree and the linked ones whose HEAD is the branch."""
    found = []
    for gitdir, head in heads(repo.commondir):
        workdir = _workdir(repo, gitdir) if head == f"refs/heads/{branch}" else None
        if workdir is not None and workdir.is_dir():
            found.append(Checkout(repo, branch, gitdir, workdir))
    return found


def busy(repo: Repository, branch: str) -> str | None:
    """What a work tree is in the middle of with the branch (`rebasing`, …), or None."""
    ref = f"refs/heads/{branch}"
    for gitdir, head in heads(repo.commondir):
        if ref in _lines(gitdir, "rebase-merge/head-name", "rebase-apply/head-name"):
            return "rebasing"
        if ref in _lines(gitdir, "rebase-merge/update-refs"):
            return "rebasing"
        if branch in _lines(gitdir, "BISECT_START"):
            return "bisecting"
        if head == ref:
            states = (word for name, word in _HEAD_STATES.items() if (gitdir / name).exists())
            if word := next(states, None) or _sequence(gitdir):
                return word
    return None


def dirty(checkout: Checkout, commit: str, paths: Iterable[str]) -> list[str]:
    """Those of the paths that are not in index and work tree as they are in the commit.

    A path that the commit has not must be free: no untracked or ignored file there, nor one where
    it needs a directory.  Entries that git keeps its eyes off (skip-worktree, assume-unchanged)
    count as dirty.
    """
    touched = sorted(set(paths))
    root = checkout.repo.tree(commit).root
    index = listed(checkout, touched)
    strays = index.keys() - set(touched)
    found = {path for path in touched for stray in strays if stray.startswith(f"{path}/")}
    unsure = []
    for path in touched:
        leaf = checkout.repo.leaf(root, path)
        leaf = leaf if leaf and is_regular(leaf[0]) else None
        if not same_entry(index.get(path), leaf) or (
            leaf is None and _occupied(checkout.workdir, path, touched)
        ):
            found.add(path)
        elif leaf is not None and not holds(checkout.workdir, path, leaf):
            unsure.append(path)
    return sorted(found | _changed(checkout, unsure))


def listed(
    checkout: Checkout, paths: Sequence[str], index: Path | None = None
) -> dict[str, tuple[str, int, str]]:
    """Path -> (git's tag, mode, id) of the index entries at and below the paths.

    The tag is `H` for a plain entry (`git help ls-files`, under -t and -v).
    """
    wanted = {os.fsencode(path) for path in paths}

    @cache
    def is_below(directory: bytes) -> bool:
        return directory in wanted or (
            b"/" in directory and is_below(directory.rpartition(b"/")[0])
        )

    found = {}
    output = checkout.git.output("ls-files", "-s", "-v", "-z", "--", *pathspec(paths), index=index)
    for item in output.split(b"\0"):
        info, _, name = item.partition(b"\t")
        if name in wanted or is_below(name.rpartition(b"/")[0]):
            tag, mode, oid, _ = info.decode().split(" ")
            found[os.fsdecode(name)] = tag, int(mode, 8), oid
    return found


def same_entry(entry: tuple[str, int, str] | None, leaf: Leaf | None) -> bool:
    """Whether an index entry is a plain one for the leaf, or both are missing."""
    if entry is None or leaf is None:
        return entry is None and leaf is None
    tag, mode, oid = entry
    return tag == "H" and oid == leaf[1] and is_regular(mode) and not (mode ^ leaf[0]) & 0o100


def holds(workdir: Path, path: str, leaf: Leaf) -> bool:
    """Whether the file is, byte for byte and executable or not, what the leaf says."""
    place = workdir / path
    try:
        status = place.lstat()
        if not stat.S_ISREG(status.st_mode) or (status.st_mode ^ leaf[0]) & 0o100:
            return False
        return obstacle(workdir, path) is None and blob_id(place.read_bytes()) == leaf[1]
    except OSError:
        return False


def obstacle(workdir: Path, path: str) -> str | None:
    """What stands in place of a directory of the path: a file, or a link to anywhere."""
    parts = path.split("/")
    for length in range(1, len(parts)):
        place = workdir.joinpath(*parts[:length])
        if place.is_symlink() or (place.exists() and not place.is_dir()):
            return "/".join(parts[:length])
    return None


def pathspec(paths: Sequence[str]) -> Sequence[str]:
    """What to give git to look at: few paths, or everything, which is faster than many (500 of
    100,000: 46 ms instead of 283)."""
    return paths if len(paths) <= MOST_PATHS else ()


def _changed(checkout: Checkout, paths: Sequence[str]) -> set[str]:
    """Those of the tracked paths that git calls changed."""
    if not paths:
        return set()
    options = ("--porcelain=v1", "-z", "--no-renames", "--untracked-files=no")
    items = checkout.git.output("status", *options, "--", *pathspec(paths)).split(b"\0")
    return {os.fsdecode(item[3:]) for item in items} & set(paths)


def _occupied(workdir: Path, path: str, touched: Sequence[str]) -> bool:
    """Whether something that no touched path accounts for is where `path` shall be created."""
    if (above := obstacle(workdir, path)) is not None:
        return above not in touched
    place = workdir / path
    if place.is_symlink() or not place.is_dir():
        return os.path.lexists(place)
    inside = (Path(where, name) for where, _, names in os.walk(place) for name in names)
    return any(str(file.relative_to(workdir)) not in touched for file in inside)


def _workdir(repo: Repository, gitdir: Path) -> Path | None:
    if gitdir == repo.gitdir:
        return repo.workdir
    if gitdir == repo.commondir:
        return Repository.open(gitdir).workdir
    link = gitdir / "gitdir"
    return (gitdir / _text(link)).parent if link.exists() else None


def _lines(gitdir: Path, *names: str) -> list[str]:
    return [line.strip() for name in names for line in _text(gitdir / name).split("\n")]


def _sequence(gitdir: Path) -> str | None:
    """What a series of commits is for, between two of them."""
    word = _text(gitdir / "sequencer/todo").split(" ")[0]
    return {"pick": "cherry-picking", "revert": "reverting"}.get(word)


def _text(path: Path) -> str:
    try:
        return os.fsdecode(path.read_bytes()).strip()
    except (FileNotFoundError, NotADirectoryError):
        return ""
