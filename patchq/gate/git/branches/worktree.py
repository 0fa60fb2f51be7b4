"""Landing on a branch that is checked out: the work tree and its index follow, or nothing moves.

Moving only the ref would make the person's next commit silently revert the batch.  So the work
tree goes first, under git's own `index.lock`, then the index, then the ref:

    lock -> check -> note "begun", and what is there already -> reserve room for the way back
    -> git read-tree -m -u on a copy of the index                                 (prepare)
    -> the caller flushes and locks the ref ->
    rename the copy to the index                                                  (swap)
    -> the caller moves the ref ->
    unlock                                                                        (commit)

`git commit` reads the branch, then the index, and only then locks it.  So at no moment may the
branch be ahead of the index; one that it finds behind makes its own move fail.

The lock is a link to an own file that names both commits, so that whoever finds it after a crash
(`recover`) can tell by the ref which of the two the work tree shall be at.  Only files that hold
what one of the two commits has are then touched, and none that held the result before: that is a
person's, and on the way back it stays.

Who runs out of room half-way needs some to undo what it did: new files, a new index, descriptors
for a git that does it.  So these are reserved first, by files without a name that no crash leaves,
and given back when they are needed.  Where they cannot be had, nothing was begun.

With `worktree.backup` each file that changes is copied: `a.py` is kept as `a.py.bak`, and where
that is taken as `a.py.bak.2`, `.3`, …; an older copy is never overwritten.  One line of
`info/exclude` for each path keeps its copies out of `git status`.

Git reads and writes the whole index for that, however little changes.  So the commits of many
batches in a row are followed by one step, from the first one's parent to the last one.
"""

from __future__ import annotations

import json
import logging
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from errno import EINVAL, EOPNOTSUPP
from functools import cache, cached_property, partial
from itertools import count
from pathlib import Path, PurePath

from patchq.gate.errors import (
    CannotFollow,
    DiskFault,
    Fault,
    ObjectDamaged,
    ObjectsGone,
    RepositoryFault,
)
from patchq.gate.git import files
from patchq.gate.git.checkout import (
    Checkout,
    checkouts,
    dirty,
    entries_of,
    files_below,
    holds,
    obstacle,
    pathspec,
    same_entry,
)
from patchq.gate.git.command import Done
from patchq.gate.git.objects import BLOB, LINK, Leaf, is_blob, is_regular, object_id
from patchq.gate.git.repository import Repository

_LOG = logging.getLogger("patchq")
Changes = Mapping[str, tuple[Leaf | None, Leaf | None]]

_SUFFIX = ".index"
_BEGUN = b"begun\n"
_RECOVER_SECONDS = 5.0
_BLOCK = 4096
_SPECIAL = re.compile(r"([\\*?\[ !#])")
_ESCAPED = r"\\\1"
_DESCRIPTORS = 12  # needed to start a process and to talk to it


@dataclass
class Follow:
    """The update of one checked-out work tree to a new commit, in two phases.

    It goes from commit `old` to `new`.  `touched` are paths that have to be clean although the two
    commits agree on them.
    """

    checkout: Checkout
    old: str
    new: str
    touched: Collection[str] = ()
    cut: Callable[[], bool] = lambda: False
    backup: bool = False
    _copies: Sequence[Path] = ()
    _lock: files.LockFile = field(init=False)
    _torn: bool = False  # true while files and index are not those of the branch
    _reserved: ExitStack = field(default_factory=ExitStack)
    # The paths that have the result already, with their index entries as they were.
    _kept: dict[str, Leaf | None] = field(default_factory=dict)

    def prepare(self) -> list[str]:
        """Bring the files to `new`, and a copy of the index, which stays locked.

        Returns the paths that are not clean; then, as after a fault, nothing was changed and
        nothing is locked.  What cannot even be undone stays locked for `recover`.  `errors.Busy`
        if others hold the index for long, or until `cut`.  The files are durable after
        `files.barrier(checkout.workdir, checkout.gitdir)`.
        """
        names = {"branch": self.checkout.branch, "old": self.old, "new": self.new}
        gitdir = self.checkout.gitdir
        self._lock = files.LockFile.write(gitdir, _SUFFIX, json.dumps(names).encode() + b"\n")
        try:
            self._lock.hold(gitdir / "index.lock", cut=self.cut)
            found = self._paths_in_the_way() or self._begin()
        except BaseException as stuck:
            self._free()
            objects = isinstance(stuck, ObjectDamaged | ObjectsGone)
            if objects or not isinstance(stuck, RepositoryFault):
                raise
            hint = f"see what keeps git from writing in {self.checkout.workdir}"
            raise CannotFollow(stuck.message, stuck.hint or hint) from stuck
        if found:
            self._free()
        return found

    def swap(self) -> None:
        """Bring the index to `new`; nothing may come between this and the ref."""
        self._copy.replace(self.checkout.gitdir / "index")

    def commit(self) -> None:
        self._torn = False
        self._reserved.close()
        self._free()

    def rollback(self) -> None:
        try:
            self._go_back()
        finally:
            self._free()

    def _begin(self) -> list[str]:
        """Update the files and the copy, and return the paths in the way.

        These were clean at the check.
        """
        gitdir, repo, workdir = self.checkout.gitdir, self.checkout.repo, self.checkout.workdir
        files.write_all(self._lock.fd, json.dumps(sorted(self._kept)).encode() + _BEGUN)
        self._lock.flush()
        _copy_index(gitdir, self._copy)
        self._reserved = reserve(_way_back(self.checkout, self._changes))
        self._torn = True
        try:
            if self.backup:
                self._copies = keep(repo.commondir, workdir, self._changes)
            if self._kept:  # git switches past files that the copy has with the result already
                kept = {path: results(self._changes)[path] for path in self._kept}
                _enter(self.checkout, self._copy, kept)
                _refresh(self.checkout, sorted(self._kept), self._copy)
            self._switch()
        except (Fault, OSError):
            self._go_back()
            if found := self._paths_in_the_way():
                return found
            raise
        return []

    def _go_back(self) -> None:
        """Undo what was done of it, wherever files and index are by now."""
        self._reserved.close()
        _settle(self.checkout, self.old, self.new, self.old, self._copy, self._kept)
        if self._kept:
            _enter(self.checkout, self._copy, self._kept)
        _publish(self._copy, self.checkout)
        self._torn = False
        for copy in self._copies:
            copy.unlink(missing_ok=True)

    @property
    def _copy(self) -> Path:
        return self._lock.beside(".new")

    @cached_property
    def _changes(self) -> Changes:
        return self.checkout.repo.changes(self.old, self.new)

    def _paths_in_the_way(self) -> list[str]:
        wanted = results(self._changes)
        found, self._kept = dirty(self.checkout, self.old, {*self._changes, *self.touched}, wanted)
        return found

    def _switch(self) -> None:
        """Have git update the files and the copy.

        It checks everything before it writes anything, by the times in the index; only if these are
        stale is the content looked at.
        """
        command = ("read-tree", "-m", "-u", "--no-recurse-submodules", self.old, self.new)
        # A git that outlives us keeps our own file flocked, so no process recovers beside it.
        keep = (self._lock.fd,)
        switch = partial(self.checkout.git.output, *command, index=self._copy, keep=keep)
        try:
            switch()
        except RepositoryFault:
            _refresh(self.checkout, sorted(self._changes), self._copy)
            switch()

    def _free(self) -> None:
        if self._torn:
            os.close(self._lock.fd)
        else:
            self._lock.free()


def _way_back(checkout: Checkout, changes: Changes) -> Mapping[Path, int]:
    """Return the bytes that undoing the changes may take, by directory.

    That is for files as they were, and for two copies of the index with the locks on them."""
    repo, index = checkout.repo, checkout.gitdir / "index"
    size = index.stat().st_size if index.exists() else 0
    before = (len(repo.raw(leaf[1])) for leaf, _ in changes.values() if leaf and is_blob(leaf[0]))
    return {
        checkout.gitdir: 3 * (size + _BLOCK),
        checkout.workdir: sum(2 * _BLOCK + 2 * bytes for bytes in before) + 2 * _BLOCK,
    }


def keep(commondir: Path, workdir: Path, paths: Iterable[str]) -> list[Path]:
    """Copy those of the paths that are files or links, and return the copies.

    The paths are relative to the work tree.  On return the copies are there, but not flushed.  No
    copy takes one of the paths.
    """
    places = {path: workdir / path for path in sorted(set(paths))}
    there = [path for path, at in places.items() if at.is_symlink() or at.is_file()]
    files.exclude(commondir, [f"/{_SPECIAL.sub(_ESCAPED, path)}.bak*" for path in there])
    try:
        return [_copy(places[path], places.values()) for path in there]
    except OSError as error:
        raise DiskFault(f"cannot keep a backup: {error}") from error


def _copy(place: Path, reserved: Container[Path]) -> Path:
    for number in count(1):
        copy = place.with_name(f"{place.name}.bak" + (f".{number}" if number > 1 else ""))
        if copy in reserved:
            continue
        with suppress(FileExistsError):  # git never writes a file in place, so that a link will do
            os.link(place, copy, follow_symlinks=False)
            return copy
    raise AssertionError("numbers do not end")


def reserve(sizes: Mapping[Path, int]) -> ExitStack:
    """Reserve disk space and descriptors until the result is closed.

    `sizes` has the bytes for each directory, on whose file system a file can be made then.  Raises
    `DiskFault` if they cannot be had.
    """
    place = Path()
    with ExitStack() as kept:
        try:
            for place, size in sizes.items():
                file = kept.enter_context(tempfile.TemporaryFile(dir=place, prefix="patchq-"))
                try:
                    os.posix_fallocate(file.fileno(), 0, max(1, size))
                except OSError as error:
                    if error.errno not in (EINVAL, EOPNOTSUPP):  # not on every file system
                        raise
            for _ in range(_DESCRIPTORS):
                kept.callback(os.close, os.open(place, os.O_RDONLY | os.O_CLOEXEC))
        except OSError as error:
            raise DiskFault(
                f"there is no room to work in {place}, so nothing was begun: {error.strerror}",
                "make room, then start patchq again; nothing was lost",
            ) from error
        return kept.pop_all()


def recover(repo: Repository, *, wait: float = _RECOVER_SECONDS) -> list[Path]:
    """Finish or undo the work of killed owners, and return their work trees.

    The branch decides which.  Waits up to `wait` seconds for a git that outlived its owner.  What
    is out of reach stays locked for who can see it.
    """
    concerned = []
    for gitdir in sorted({repo.commondir, *(repo.commondir / "worktrees").glob("*")}):
        for lock in files.leftovers(gitdir, _SUFFIX, wait):
            try:
                workdir = _recover_one(repo, lock, gitdir)
            except RepositoryFault as stuck:  # it is in this one's way alone
                os.close(lock.fd)
                _tell_once(gitdir, stuck.message)
                continue
            except BaseException:
                os.close(lock.fd)  # the own file stays, for the next one who tries
                raise
            concerned += [workdir] if workdir else []
            lock.free()
    return concerned


@cache
def _tell_once(gitdir: Path, why: str) -> None:
    _LOG.warning("the work tree of %s stays as a patchq that died left it: %s", gitdir, why)


def _recover_one(repo: Repository, lock: files.LockFile, gitdir: Path) -> Path | None:
    index_lock = gitdir / "index.lock"
    held = lock.find([index_lock])
    first, _, rest = lock.own.read_bytes().partition(b"\n")
    if not rest.endswith(_BEGUN):
        return None
    kept, names = json.loads(rest.removesuffix(_BEGUN) or b"[]"), json.loads(first)
    branch, old, new = names["branch"], names["old"], names["new"]
    places = [at for at in checkouts(repo, branch) if at.gitdir == gitdir]
    if not places:
        return None
    if places[0].unseen:
        raise CannotFollow(f"{places[0].workdir} is out of reach: {places[0].unseen}")
    if held is None:  # a person removed the lock, or the work was all but done
        lock.hold(index_lock)
    tip = repo.branch_tip(branch)
    moved = tip is not None and repo.is_ancestor(new, tip)
    _settle(places[0], old, new, new if moved else old, lock.beside(".new"), kept)
    _publish(lock.beside(".new"), places[0])
    return places[0].workdir


def _settle(
    checkout: Checkout, old: str, new: str, target: str, copy: Path, kept: Collection[str]
) -> None:
    """Bring the touched files to `target`, and `copy` to its index.

    Each file may be anywhere between the commits.  A person's changes in the meantime stay, and so
    does, on the way back, a file that had the result before (`kept`)."""
    _copy_index(checkout.gitdir, copy)
    changes = checkout.repo.changes(old, new)
    entries = entries_of(checkout, sorted(changes), copy)
    entered, outdated = dict[str, Leaf | None](), []
    for path, sides in changes.items():
        if target == old and path in kept:
            continue
        if not any(same_entry(entries.get(path), side) for side in sides):
            continue
        leaf = sides[target == new]
        entered[path] = leaf
        there = leaf is not None and holds(checkout.workdir, path, leaf)
        if not there and _is_between(checkout, path, changes):
            outdated.append((path, leaf))
    # Replacing a file by a directory, or the reverse, needs the deletion first.
    _enter(checkout, copy, dict(sorted(entered.items(), key=lambda entry: entry[1] is not None)))
    for path, leaf in outdated:
        if leaf is None and obstacle(checkout.workdir, path) is None:  # never through a link
            _delete(checkout.workdir, path)
    written = b"".join(os.fsencode(path) + b"\0" for path, leaf in outdated if leaf)
    checkout.git.output(
        "checkout-index", "-f", "-u", "-q", "-z", "--stdin", index=copy, stdin=written
    )
    _refresh(checkout, [path for path, sides in changes.items() if sides[target == new]], copy)


def results(changes: Changes) -> dict[str, Leaf | None]:
    return {
        path: sides[1]
        for path, sides in changes.items()
        if all(is_blob(leaf[0]) for leaf in sides if leaf)
    }


def _enter(checkout: Checkout, index: Path, entries: Mapping[str, Leaf | None]) -> None:
    leaves = {os.fsencode(path): leaf or (0, "0" * 40) for path, leaf in entries.items()}
    lines = [b"%o %b\t%b\0" % (leaf[0], leaf[1].encode(), path) for path, leaf in leaves.items()]
    checkout.git.output("update-index", "-z", "--index-info", index=index, stdin=b"".join(lines))


def _is_between(checkout: Checkout, path: str, changes: Changes) -> bool:
    """Return True if the path has one of its sides, or a partial write.

    A killed writer leaves nothing, the beginning of a side, or another changed path in its place.
    """
    above = obstacle(checkout.workdir, path)
    if above is not None:
        return above in changes and _is_between(checkout, above, changes)
    place = checkout.workdir / path
    if place.is_dir() and not place.is_symlink():
        found = (str(file.relative_to(checkout.workdir)) for file in files_below(place))
        return all(name in changes and _is_between(checkout, name, changes) for name in found)
    if place.is_symlink():
        target = (LINK, object_id(BLOB, os.fsencode(os.readlink(place))))
        return target in changes[path]
    if not place.exists():
        return True
    oids = [leaf[1] for leaf in changes[path] if leaf and is_regular(leaf[0])]
    data = place.read_bytes()
    texts = (data, data.replace(b"\r\n", b"\n"))
    if any(checkout.repo.raw(oid).startswith(text) for oid in oids for text in texts):
        return True
    return checkout.git.run("hash-object", "--", path).text in oids


def _refresh(checkout: Checkout, paths: list[str], index: Path) -> Done:
    """Refresh the paths' index entries where the content is the same."""
    own = (path for path in paths if obstacle(checkout.workdir, path) is None)
    places = ((path, checkout.workdir / path) for path in own)
    there = pathspec([path for path, at in places if at.is_symlink() or at.is_file()])
    everything = ("update-index", "-q", "--refresh")
    words = ("add", "--refresh", "--", *there) if there else everything
    return checkout.git.run(*words, index=index)


def _delete(workdir: Path, path: str) -> None:
    with suppress(FileNotFoundError, NotADirectoryError, IsADirectoryError):
        (workdir / path).unlink()
    with suppress(OSError):
        for parent in list(PurePath(path).parents)[:-1]:
            (workdir / parent).rmdir()


def _publish(copy: Path, checkout: Checkout) -> None:
    """Replace the index by the copy, once it and its files are durable."""
    files.barrier(checkout.workdir, checkout.gitdir)
    copy.replace(checkout.gitdir / "index")


def _copy_index(gitdir: Path, copy: Path) -> None:
    """Copy the index with its time, by a link if possible.

    Git looks at the content of files that are as young as their index.  It never writes into an
    index, so that a link will do.
    """
    for old in (copy, copy.with_name(f"{copy.name}.lock")):  # of a killed git
        old.unlink(missing_ok=True)
    if (gitdir / "index").exists():
        try:
            os.link(os.path.realpath(gitdir / "index"), copy)
        except OSError:  # as of another user's, in a shared repository
            shutil.copy2(gitdir / "index", copy)
