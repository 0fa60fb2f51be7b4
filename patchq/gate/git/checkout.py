"""Work trees: their branches, reach, operations in progress, and changes.

Each landing asks, so the answers are read from files; all but the index, which has four versions
and two splits that only git knows.  One `git ls-files` answers for any number of paths (11 ms with
100,000 entries, where `git status` takes 20); the files are then compared here, by content, and git
is asked again only about those that differ, as they do where line ends are converted.

A work tree that is registered and out of reach (on a disk that is not mounted, behind a private
`/tmp`, outside of a container) cannot follow, and the next commit there would take the batch back:
nothing lands past it.

Editing tools name files by absolute paths, in whichever work tree their agent works.  A path below
a tree that is gone, below a repository of its own, or that git ignores names no file that the agent
was shown here.
"""

from __future__ import annotations

import os
import stat
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path, PurePath

import pygit2
from msgspec import Struct
from msgspec.structs import replace

from patchq.gate.git.command import QUIET, Git, plain_environment
from patchq.gate.git.objects import BLOB, Leaf, is_blob, is_regular, object_id
from patchq.gate.git.refs import heads, names_in
from patchq.gate.git.repository import Repository

# What a git directory has while an operation is in progress.
_STATES = {
    *("rebase-merge", "rebase-apply", "BISECT_START", "MERGE_HEAD"),
    *("CHERRY_PICK_HEAD", "REVERT_HEAD", "sequencer"),
}
_REBASES = ("rebase-merge/head-name", "rebase-apply/head-name", "rebase-merge/update-refs")
# Work that a series of commits is for, between two of them.
_SERIES = {"pick": "cherry-picking", "revert": "reverting"}
_MOST_PATHS = 40
_HEAD_STATES = {
    "MERGE_HEAD": "merging",
    "CHERRY_PICK_HEAD": "cherry-picking",
    "REVERT_HEAD": "reverting",
    "rebase-apply/applying": "applying patches",
}


class Checkout(Struct, frozen=True):
    """A work tree whose HEAD is `branch` (short name), with its own git directory.

    `unseen` is the reason why it is out of reach; empty where it can be seen and written.
    """

    repo: Repository
    branch: str
    gitdir: Path
    workdir: Path
    unseen: str = ""

    @property
    def cure(self) -> str:
        """The commands that bring one that is out of reach back, or forget it."""
        locked = (self.gitdir / "locked").exists()
        unlock = f"git worktree unlock '{self.workdir}'; " if locked else ""
        return (
            "make it visible and writable to patchq (mount its disk; `git worktree repair` where "
            "it stands now; in a unit no PrivateTmp=, and a ReadWritePaths= for it; a volume of "
            f"the container), or, if it is gone for good: {unlock}git worktree prune"
        )

    @property
    def git(self) -> Git:
        places = (f"--git-dir={self.gitdir}", f"--work-tree={self.workdir}")
        return Git(
            plain_environment(GIT_LITERAL_PATHSPECS="1"),
            (*QUIET, *places, "-C", str(self.workdir)),
            place=self.workdir,
        )


def checkouts(repo: Repository, branch: str) -> list[Checkout]:
    """Return the work trees whose HEAD is the branch, also those out of reach."""
    ref = f"refs/heads/{branch}"
    return [checkout for checkout in registered(repo, ref) if checkout.branch == branch]


def registered(repo: Repository, ref: str | None = None) -> Iterator[Checkout]:
    """Yield the work trees that git knows of, or those on the ref.

    One with a detached HEAD has an empty branch.
    """
    for gitdir, head in heads(repo.commondir):
        if ref not in (None, head):
            continue
        workdir, branch = workdir_of(repo, gitdir), head.removeprefix("refs/heads/")
        if workdir is not None:
            there = Checkout(repo, branch, gitdir, workdir)
            writable = "" if _writable(workdir) else "it cannot be written"
            yield replace(there, unseen=missing(there) or writable)
        elif gitdir != repo.commondir:
            yield Checkout(repo, branch, gitdir, gitdir, "nothing says where it is")


def missing(checkout: Checkout) -> str:
    """Return the reason why the directory is not this work tree, or "".

    Where a disk is not mounted there may be an empty directory, so a linked work tree has to name
    its git directory."""
    try:
        if not stat.S_ISDIR(checkout.workdir.stat().st_mode):
            return "there is no such directory"
        linked = checkout.gitdir != checkout.repo.commondir
        if linked and not _belongs(checkout.workdir, checkout.gitdir):
            return "that directory is not this work tree"
    except (FileNotFoundError, NotADirectoryError):
        return "there is no such directory"
    except OSError as error:
        return f"it cannot be seen: {error.strerror}"
    return ""


def _belongs(workdir: Path, gitdir: Path) -> bool:
    pointer = workdir / ".git"
    named = "" if pointer.is_dir() else _text(pointer).removeprefix("gitdir:").strip()
    place = workdir / named
    return bool(named) and place.exists() and place.samefile(gitdir)


def _writable(directory: Path) -> bool:
    return os.access(directory, os.W_OK | os.X_OK)


def unwritable(checkout: Checkout, paths: Iterable[str]) -> str:
    """Return the first directory above the paths that cannot be written, or "".

    A part may be mounted read-only, or belong to another user."""
    above = {parent for path in paths for parent in PurePath(path).parents}
    there = (checkout.workdir / directory for directory in sorted(above))
    return next((str(at) for at in there if at.is_dir() and not _writable(at)), "")


def busy(repo: Repository, branch: str) -> str | None:
    """Return a work tree's operation in progress on the branch (`rebasing`, …), or None."""
    ref = f"refs/heads/{branch}"
    for gitdir, head in heads(repo.commondir):
        if _STATES.isdisjoint(names_in(gitdir)):
            continue
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


def dirty(
    checkout: Checkout, commit: str, paths: Iterable[str], results: Mapping[str, Leaf | None]
) -> tuple[list[str], dict[str, Leaf | None]]:
    """Return the paths that are in the way in index or work tree.

    They differ from the commit, or, if it has not the path, something untracked or ignored is
    there, or in place of a directory.  Entries that git keeps its eyes off (skip-worktree,
    assume-unchanged) count as changed.  Returned too are those not in the way since the file
    already is as it is to be (`results`, which need not have all), with their index entries."""
    touched = sorted(set(paths))
    root = checkout.repo.tree(commit).root
    index = entries_of(checkout, touched)
    strays = index.keys() - set(touched)
    found = {path for path in touched for stray in strays if stray.startswith(f"{path}/")}
    before, unsure = dict[str, Leaf | None](), []
    for path in touched:
        leaf = checkout.repo.leaf(root, path)
        before[path] = leaf = leaf if leaf and is_blob(leaf[0]) else None
        if not same_entry(index.get(path), leaf) or (
            leaf is None and _occupied(checkout.workdir, path, touched)
        ):
            found.add(path)
        elif leaf is not None and not holds(checkout.workdir, path, leaf):
            unsure.append(path)
    found |= _changed(checkout, unsure)
    kept = {
        path: index[path][1:] if path in index else None
        for path in found & results.keys()
        if any(same_entry(index.get(path), side) for side in (before[path], results[path]))
        and not any(name.startswith(f"{path}/") for name in index)
        and _is(checkout.workdir, path, results[path])
    }
    return sorted(found - kept.keys()), kept


def _is(workdir: Path, path: str, leaf: Leaf | None) -> bool:
    """Return True if the path has exactly the leaf, or nothing for None."""
    if leaf is not None:
        return holds(workdir, path, leaf)
    return not os.path.lexists(workdir / path) and obstacle(workdir, path) is None


def entries_of(
    checkout: Checkout, paths: Sequence[str], index: Path | None = None
) -> dict[str, tuple[str, int, str]]:
    """Return tag, mode and id of the index entries at and below the paths.

    The tag is `H` for a plain entry (`git help ls-files`, under -t and -v).
    """
    output = checkout.git.output("ls-files", "-s", "-v", "-z", "--", *pathspec(paths), index=index)
    items = output.split(b"\0")[:-1]
    found = {}
    for path in map(os.fsencode, paths):
        # They stand in the order of their names, in which others come between the two.
        for first, last in ((path, path + b"\0"), (path + b"/", path + b"0")):
            start = bisect_left(items, first, key=_name)
            for item in items[start : bisect_left(items, last, start, key=_name)]:
                tag, mode, oid, _ = item.partition(b"\t")[0].decode().split(" ")
                found[os.fsdecode(_name(item))] = tag, int(mode, 8), oid
    return found


def _name(item: bytes) -> bytes:
    return item.partition(b"\t")[2]


def same_entry(entry: tuple[str, int, str] | None, leaf: Leaf | None) -> bool:
    """Return True if a plain index entry equals the leaf, or both are missing."""
    if entry is None or leaf is None:
        return entry is None and leaf is None
    tag, mode, oid = entry
    alike = (mode ^ leaf[0]) & 0o170100 == 0
    return tag == "H" and oid == leaf[1] and is_blob(mode) and alike


def holds(workdir: Path, path: str, leaf: Leaf) -> bool:
    """Return True if the path has exactly the leaf's content.

    No link is followed.
    """
    place = workdir / path
    try:
        mode = place.lstat().st_mode
        if stat.S_IFMT(mode ^ leaf[0]) or (mode ^ leaf[0]) & 0o100 * is_regular(mode):
            return False
        data = place.read_bytes() if is_regular(mode) else os.fsencode(os.readlink(place))
    except OSError:
        return False
    return obstacle(workdir, path) is None and object_id(BLOB, data) == leaf[1]


def obstacle(workdir: Path, path: str) -> str | None:
    """Return the file or link in place of a parent directory, or None."""
    parts = path.split("/")
    for length in range(1, len(parts)):
        place = workdir.joinpath(*parts[:length])
        if place.is_symlink() or (place.exists() and not place.is_dir()):
            return "/".join(parts[:length])
    return None


def pathspec(paths: Sequence[str]) -> Sequence[str]:
    """Return the paths if they are few, else none, for everything.

    Git looks at everything faster than at many paths (500 of 100,000: 46 ms instead of 283).
    """
    return paths if len(paths) <= _MOST_PATHS else ()


def _changed(checkout: Checkout, paths: Sequence[str]) -> set[str]:
    if not paths:
        return set()
    options = ("--porcelain=v1", "-z", "--no-renames", "--untracked-files=no")
    items = checkout.git.output("status", *options, "--", *pathspec(paths)).split(b"\0")
    return {os.fsdecode(item[3:]) for item in items} & set(paths)


def _occupied(workdir: Path, path: str, touched: Collection[str]) -> bool:
    """Return True if an untouched path is in the way of creating `path`."""
    if (above := obstacle(workdir, path)) is not None:
        return above not in touched
    place = workdir / path
    if place.is_symlink() or not place.is_dir():
        return os.path.lexists(place)
    return any(str(file.relative_to(workdir)) not in touched for file in files_below(place))


def files_below(directory: Path) -> Iterator[Path]:
    """Yield all files and links below a directory, without following links."""
    for where, below, names in os.walk(directory):
        yield from (Path(where, name) for name in names)
        yield from (link for name in below if (link := Path(where, name)).is_symlink())


def workdir_of(repo: Repository, gitdir: Path) -> Path | None:
    if gitdir == repo.gitdir:
        return repo.workdir
    if gitdir == repo.commondir:
        return Repository.open(gitdir).workdir
    named = _text(gitdir / "gitdir")
    return (gitdir / named).parent if named else None


def _lines(gitdir: Path, *names: str) -> list[str]:
    return [line.strip() for name in names for line in _text(f"{gitdir}/{name}").split("\n")]


def _text(path: str | Path) -> str:
    try:
        return os.fsdecode(Path(path).read_bytes()).strip()
    except (FileNotFoundError, NotADirectoryError):
        return ""


class Whereabouts(Struct, frozen=True):
    """The path below the root of a work tree, or the reason for none.

    It has both if git ignores the path.  The reason is a clause that follows the path in a
    sentence."""

    path: str | None
    reason: str = ""


class WorkTrees:
    def __init__(self, repo: Repository) -> None:
        self._repo = repo

    def find(self, path: str) -> Whereabouts:
        """Return the file that the absolute path names; links to directories are followed.

        A link at its end is itself the file: who deletes it does not mean the one it leads to."""
        try:
            return self._find(path)
        except (OSError, ValueError):  # no name of a file system
            return Whereabouts(None, "is no path that can be looked up")

    def ignore(self, path: str) -> bool:
        repo = self._repo
        return repo.workdir is not None and repo.raw_repository.path_is_ignored(path)

    def _find(self, path: str) -> Whereabouts:
        if ".." in path.split("/"):
            return Whereabouts(None, "climbs with `..`")
        folder, name = os.path.split(os.path.normpath(path))
        real = os.path.join(os.path.realpath(folder), name)
        above = [root for root in self._roots if real.startswith(f"{root.rstrip('/')}/")]
        if not above:
            return Whereabouts(None, "is below no work tree of this repository")
        root = max(above, key=len)
        if missing(self._roots[root]):
            return Whereabouts(None, f"is below {root}, a work tree that is gone")
        below = os.path.relpath(real, root)
        parts, place = below.split("/"), root
        for part in parts[:-1]:
            place = os.path.join(place, part)
            if os.path.lexists(os.path.join(place, ".git")):
                return Whereabouts(None, f"is below {place}, a repository of its own")
        ignores = parts[0] != ".git" and self._handle(root).path_is_ignored(below)
        return Whereabouts(below, "is one that git ignores" if ignores else "")

    def _handle(self, root: str) -> pygit2.Repository:
        workdir = self._repo.workdir
        own = workdir is not None and os.path.realpath(workdir) == root
        return self._repo.raw_repository if own else pygit2.Repository(root)

    @cached_property
    def _roots(self) -> dict[str, Checkout]:
        return {os.path.realpath(one.workdir): one for one in registered(self._repo)}
