"""Moving one ref: a compare-and-swap that git's own programs respect, and that may die anywhere.

    own file -> fsync -> link to <ref>.lock -> read the tip -> reflog -> rename to <ref> -> unlink

The rename is the commit point.  libgit2's own way leaves an empty `<ref>.lock` without an owner
when it is killed (12 of 47 kill points); this one leaves a lock whose inode is that of an own file,
which `clean` removes, and it holds the lock for half the time.  It knows refs in files only, the
one backend that libgit2 opens.

A renamed file whose content was not flushed may come out of a power cut empty, so a value is
flushed first: one by one, or, for many, `stage` them all and flush once by `files.barrier`.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from patchq.gate.errors import DiskFault, ObjectsGone, RepositoryFault
from patchq.gate.git import files, records
from patchq.gate.git.files import beside, make_directory
from patchq.gate.git.lock_files import WAIT_SECONDS, LockFile, leftovers
from patchq.gate.git.objects import Identity
from patchq.gate.git.ref_files import heads, is_ref_name, packed_refs, ref_names, ref_value
from patchq.gate.git.repository import Repository

_SUFFIX = ".ref"
_NULL = "0" * 40
_OURS = ("refs/heads/", records.REMOTES, records.OWN, records.NOTES)


class Staged(Struct, frozen=True):
    """A value for refs, written and not yet flushed.  It serves any number of swaps, which share
    its inode, as git never writes a ref in place; `drop` ends it."""

    oid: str
    lock: LockFile

    def drop(self) -> None:
        self.lock.free()


def stage(repo: Repository, oid: str) -> Staged:
    """Write a value that later `move`s take in place of the id."""
    return Staged(oid, LockFile.write(repo.commondir, _SUFFIX, f"{oid}\n".encode()))


def move(
    repo: Repository,
    ref: str,
    old: str | None,
    new: str | Staged,
    message: str,
    identity: Identity,
    *,
    through: Sequence[tuple[str, str]] = (),
    first: Callable[[], None] = lambda: None,
    wait: float = WAIT_SECONDS,
    cut: Callable[[], bool] = lambda: False,
) -> bool:
    """Move the ref (full name) from `old` (None: from nothing) to `new`; False if `old` is not its
    tip.

    `through` are commits on the way, with their messages: each gets its own reflog entry.  `first`
    is called when nothing else can move the ref any more, and the move is all that is left.  The
    move is atomic at once and durable after `files.barrier`.  `errors.Busy` if others hold the ref
    for `wait` seconds or until `cut`, `errors.RepositoryFault` for a symbolic or symlinked ref, and
    for a new one whose name is the directory of another ref, or the reverse.
    """
    staged = new if isinstance(new, Staged) else stage(repo, new)
    try:
        path = _path(repo, ref)
        if not isinstance(new, Staged):
            staged.lock.flush()
        if old is None:
            _refuse_neighbours(repo, ref)  # else there may be no directory to lock in
        staged.lock.hold(path.with_name(f"{path.name}.lock"), wait, cut)
        if repo.is_symbolic(ref):
            raise RepositoryFault(f"{ref} is a symbolic ref", "name the branch that it points to")
        if ref_value(repo.commondir, ref) != old:
            return False
        if not repo.exists(staged.oid):
            raise ObjectsGone(f"commit {staged.oid} is gone", "it is made again on a retry")
        if old is None:
            _refuse_neighbours(repo, ref)
        _make_room(path)
        _log(repo, ref, old or _NULL, [*through, (staged.oid, message)], identity)
        first()
        staged.lock.publish(path)
    except OSError as error:
        raise DiskFault(f"cannot write {ref}: {error}") from error
    finally:
        staged.lock.unlock()
        if staged is not new:
            staged.drop()
    return True


def delete(repo: Repository, ref: str, old: str, *, wait: float = WAIT_SECONDS) -> bool:
    """Remove the ref, loose and packed, with its reflog; False if `old` is not its tip."""
    path = _path(repo, ref)
    lock = stage(repo, old).lock
    try:
        lock.hold(path.with_name(f"{path.name}.lock"), wait)
        if ref_value(repo.commondir, ref) != old:
            return False
        # First, as a packed value would come back once the loose one is gone.
        if ref in packed_refs(repo.commondir).values:
            _unpack(repo.commondir, ref, wait)
        path.unlink(missing_ok=True)
        (repo.commondir / "logs" / ref).unlink(missing_ok=True)
    except OSError as error:
        raise DiskFault(f"cannot delete {ref}: {error}") from error
    finally:
        lock.free()
    return True


def put(repo: Repository, ref: str, commit: str | None, message: str, who: Identity) -> None:
    """Have the ref at the commit, or (None) nowhere, whatever it holds now."""
    now = repo.ref_target(ref)
    if commit and commit != now:
        move(repo, ref, now, commit, message, who)
    elif now and not commit:
        delete(repo, ref, now)


def clean(commondir: Path) -> list[Path]:
    """Remove the files of killed owners alone; return the lock files that it freed."""
    freed = []
    for lock in leftovers(commondir, _SUFFIX):
        if os.fstat(lock.fd).st_nlink > 1:
            places = [commondir / "packed-refs.lock"]
            for where, _, files in os.walk(commondir / "refs"):
                places += [Path(where, name) for name in files if name.endswith(".lock")]
            place = lock.find(places)
            freed += [place] if place else []
        lock.free()
    return freed


def _path(repo: Repository, ref: str) -> Path:
    path = repo.commondir / ref
    if not ref.startswith(_OURS) or not is_ref_name(ref):
        raise RepositoryFault(f"{ref!r} is not the name of a ref that patchq may write")
    if os.path.realpath(path) != str(path):
        raise RepositoryFault(
            f"{path} is, or lies behind, a symbolic link: writing it would leave the repository",
            "replace the link by what it points to",
        )
    return path


def _refuse_neighbours(repo: Repository, ref: str) -> None:
    parts = ref.split("/")
    above = ("/".join(parts[:length]) for length in range(3, len(parts)))
    neighbour = next(
        (name for name in above if repo.ref_target(name) or repo.is_symbolic(name)), None
    )
    if neighbour is None and ref_names(repo.commondir, f"{ref}/"):
        neighbour = f"{ref}/…"
    if neighbour:
        raise RepositoryFault(
            f"{ref} cannot exist beside {neighbour}: one name is the directory of the other",
            "rename the one that is there: git branch -m",
        )


def _make_room(path: Path) -> None:
    """Remove the empty directories that deleted refs left where a file shall be."""
    for where, *_ in os.walk(path, topdown=False):
        os.rmdir(where)


def _log(
    repo: Repository, ref: str, old: str, steps: Sequence[tuple[str, str]], identity: Identity
) -> None:
    """Append to the reflogs: the branch's (new if need be), and of each HEAD on it that has one.

    The line comes before the move, as git writes it, so only its old value proves anything.
    """
    befores = [old, *(new for new, _ in steps)]
    lines = "".join(
        f"{before} {new} {identity}\t{' '.join(message.split())}\n"
        for before, (new, message) in zip(befores, steps, strict=False)
    )
    own = repo.commondir / "logs" / ref
    if ref.startswith(("refs/heads/", records.BOARDED, records.PUBLISHED)) and not own.is_file():
        _make_room(own)
        make_directory(own.parent)
        with files.opened(own, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW) as fd:
            made = stat.S_IMODE(os.fstat(fd).st_mode)
            if (mode := beside(made, own.parent.stat().st_mode) & 0o666) != made:
                os.fchmod(fd, mode)
    for log in (own, *(at / "logs/HEAD" for at, head in heads(repo.commondir) if head == ref)):
        flags = os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW
        with suppress(FileNotFoundError), files.opened(log, flags) as fd:
            files.append(fd, lines.encode("utf-8", "surrogateescape"))


def _unpack(commondir: Path, ref: str, wait: float) -> None:
    """Leave the ref out of `packed-refs`; durable after the next barrier."""
    lock = LockFile.write(commondir, _SUFFIX, b"")
    try:
        lock.hold(commondir / "packed-refs.lock", wait)
        line = rb"(?m)^[0-9a-fA-F]{40} %b\n(\^.*\n)?" % re.escape(os.fsencode(ref))
        files.write_all(lock.fd, re.sub(line, b"", files.content(commondir / "packed-refs")))
        lock.flush()
        lock.publish(commondir / "packed-refs")
    finally:
        lock.free()
