"""Refs: reading the files that git keeps them in, and moving one by compare-and-swap.

Files are read here and not by libgit2: it reads `packed-refs` as well, but knows by size, inode and
time whether that is another one than it has read, which two that are written within a tick may
share; and pygit2 1.21 keeps every name that it was ever asked for.

A move is one that git's own programs respect, and that may die anywhere:

    own file -> fsync -> link to <ref>.lock -> read the tip -> reflog -> rename to <ref> -> unlink

The rename is the commit point.  libgit2's own way leaves an empty `<ref>.lock` without an owner
when it is killed (12 of 47 kill points); this one leaves a lock whose inode is that of an own file,
which `clean` removes, and it holds the lock for half the time.  It knows refs in files only, the
one backend that libgit2 opens.

A renamed file whose content was not flushed may come out of a power cut empty, so a value is
flushed first: one by one, or, for many, all are `staged` and flushed once by `files.barrier`.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from errno import ENAMETOOLONG
from functools import cache, partial
from pathlib import Path
from typing import Protocol
from weakref import finalize

from patchq.gate.errors import DiskFault, ObjectsGone, RepositoryFault
from patchq.gate.git import files, records
from patchq.gate.git.objects import Identity

_BAD_NAME = re.compile(
    r"""[\x00-\x20\x7f~^:?*\[\\]      # a character that git reserves
    | (?:^|/)(?:\.|/|$)              # an empty component, or one that starts with a dot
    | \.\. | @\{ | \.$ | \.lock(?:/|$)
    """,
    re.VERBOSE,
)
_VALUE = re.compile(rb"([0-9a-fA-F]{40})(?:\s|\Z)")
_ENTRY = re.compile(rb"([0-9a-fA-F]{40}) (\S+)\n")
_BLOCK = 4096
_MOST_SHOWN = 200  # letters of a line
_SYMBOLIC, _SEE = "ref:", "`patchq fsck` says what is wrong with it"


def is_ref_name(name: str) -> bool:
    return _BAD_NAME.search(name) is None and name.count("/") > 1


def common_directory(gitdir: Path) -> Path:
    """Return the real path of the git directory that all work trees share."""
    pointer = gitdir / "commondir"
    common = os.fsdecode(pointer.read_bytes().rstrip(b"\n")) if pointer.exists() else ""
    return Path(os.path.realpath(gitdir / common))


def ref_value(commondir: Path, name: str) -> str | None:
    """Return the ref's value, loose or packed: an id, or `ref: NAME`.

    None if there is no such ref.  Raises `RepositoryFault` for a file that has anything else.
    """
    try:
        os.fsencode(name)
    except UnicodeEncodeError:
        return None
    value = _loose(commondir, name) if is_ref_name(name) else None
    return value or packed_refs(commondir).values.get(name)


def ref_target(commondir: Path, name: str) -> str | None:
    """Return the id in the ref, loose or packed, or None.

    A symbolic ref has none.
    """
    value = ref_value(commondir, name)
    return None if value is None or value.startswith(_SYMBOLIC) else value


def ref_values(commondir: Path, prefix: str) -> dict[str, str]:
    """Return the ids of direct refs under `prefix`, by their full names.

    The prefix ends in a slash.
    """
    names = loose_names(commondir, prefix)
    loose = {name: value for name in names if (value := _loose(commondir, name))}
    found = packed_refs(commondir).below(prefix) | loose  # read second, as refs move there
    return {name: found[name] for name in sorted(found) if not found[name].startswith(_SYMBOLIC)}


def ref_names(commondir: Path, prefix: str) -> list[str]:
    return sorted({*loose_names(commondir, prefix), *packed_refs(commondir).below(prefix)})


def loose_names(commondir: Path, prefix: str) -> list[str]:
    """Return the full names of refs below the prefix that have a file.

    Files that only look like a ref's are among them.
    """
    top = f"{commondir}/{prefix}".rstrip("/")
    return [
        prefix + f"{where}/{name}"[len(top) + 1 :]
        for where, _, names in os.walk(top)
        for name in names
        if not name.endswith(".lock")
    ]


def _loose(commondir: Path, name: str) -> str | None:
    """Return a loose ref's value as git reads it.

    Digits have either case, and anything may follow a space.
    """
    path = f"{commondir}/{name}"
    try:
        with files.opened(path, os.O_RDONLY | os.O_NONBLOCK) as fd:
            text = os.read(fd, _BLOCK)
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None
    except OSError as error:
        if error.errno == ENAMETOOLONG:
            return None
        raise RepositoryFault(f"cannot read {name}: {error.strerror}", _SEE) from None
    if text.startswith(_SYMBOLIC.encode()):
        return os.fsdecode(text).strip()
    if (digits := _VALUE.match(text)) is None:
        raise RepositoryFault(f"cannot read {name}: {path} holds no id of an object", _SEE)
    return digits[1].decode().lower()


class PackedRefs:
    """The content of the file, which stays open: so no other one gets its number."""

    def __init__(self, path: str) -> None:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        finalize(self, os.close, fd)
        self.mark = _mark(os.fstat(fd))
        data = b"".join(iter(partial(os.read, fd, 1 << 20), b""))
        lines = [line for line in data.splitlines(keepends=True) if line[:1] not in b"#^"]
        entries = [_ENTRY.fullmatch(line) for line in lines]
        if None in entries:
            line = os.fsdecode(lines[entries.index(None)].strip())
            raise RepositoryFault(
                f"{path} has a line that is no ref: {line[:_MOST_SHOWN]!r}",
                "correct the line, or remove it once you know which ref it was",
            )
        self.values = {os.fsdecode(it[2]): it[1].decode().lower() for it in entries if it}
        self._names = sorted(self.values)

    def below(self, prefix: str) -> dict[str, str]:
        first, last = (bisect_left(self._names, end) for end in (prefix, f"{prefix[:-1]}0"))
        return {name: self.values[name] for name in self._names[first:last]}


_kept: dict[str, PackedRefs] = {}  # as they were read last; they are replaced and not changed


def packed_refs(commondir: Path) -> PackedRefs:
    """Return the file as it is now; an empty one where there is none."""
    path = f"{commondir}/packed-refs"
    try:
        mark = _mark(os.stat(path))
        if path not in _kept or _kept[path].mark != mark:
            _kept[path] = PackedRefs(path)
    except FileNotFoundError:
        return _empty()
    return _kept[path]


@cache
def _empty() -> PackedRefs:
    return PackedRefs(os.devnull)


def _mark(status: os.stat_result) -> tuple[int, ...]:
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def heads(commondir: Path) -> Iterator[tuple[Path, str]]:
    """Yield each git directory with the full name of its HEAD's ref.

    The name is empty for a detached HEAD.  A bare repository's own directory is included.
    """
    with suppress(FileNotFoundError):
        yield commondir, head_target(commondir)
    for entry in sorted(names_in(commondir / "worktrees")):
        gitdir = commondir / "worktrees" / entry
        with suppress(FileNotFoundError, NotADirectoryError):
            yield gitdir, head_target(gitdir)


def names_in(directory: Path) -> list[str]:
    """Return the names in a directory, none if it is missing."""
    with suppress(FileNotFoundError):
        return os.listdir(directory)
    return []


def head_target(gitdir: Path) -> str:
    """Return the full name of the ref of a HEAD, or "" when detached."""
    with files.opened(f"{gitdir}/HEAD", os.O_RDONLY) as fd:
        text = os.fsdecode(os.read(fd, _BLOCK))
    return text[4:].strip() if text.startswith("ref:") else ""


_SUFFIX = ".ref"
_NULL = "0" * 40
_OURS = ("refs/heads/", records.REMOTES, records.OWN, records.NOTES)


class HasRefs(Protocol):
    """A repository, as far as moves need it."""

    commondir: Path
    staged: dict[str, files.LockFile]

    def exists(self, commit: str) -> bool: ...


@contextmanager
def staged(repo: HasRefs, commits: Iterable[str]) -> Iterator[None]:
    """Write values for the moves of a block.

    It flushes them before the first move.  Each serves any number of moves, which share its inode,
    as git never writes a ref in place.
    """
    try:
        for commit in {*commits}:
            repo.staged[commit] = _value(repo, commit)
        yield
    finally:
        while repo.staged:
            repo.staged.popitem()[1].free()


def _value(repo: HasRefs, commit: str) -> files.LockFile:
    return files.LockFile.write(repo.commondir, _SUFFIX, f"{commit}\n".encode())


def move(
    repo: HasRefs,
    ref: str,
    old: str | None,
    new: str,
    message: str,
    identity: Identity,
    *,
    through: Sequence[tuple[str, str]] = (),
    first: Callable[[], None] = lambda: None,
    wait: float = files.WAIT_SECONDS,
    cut: Callable[[], bool] = lambda: False,
) -> bool:
    """Move the ref to `new`, or return False if its tip is not `old`.

    The ref has its full name; without an `old` it is created.  `through` are commits on the way,
    with their messages: each gets its own reflog entry.  `first` is called when nothing else can
    move the ref any more, and the move is all that is left.  The move is atomic at once and durable
    after `files.barrier`.  `errors.Busy` if others hold the ref for `wait` seconds or until `cut`,
    `errors.RepositoryFault` for a symbolic or symlinked ref, and for a new one whose name is the
    directory of another ref, or the reverse.
    """
    path, staged = _path(repo, ref), repo.staged.get(new)
    lock = staged or _value(repo, new)
    try:
        if not staged:
            lock.flush()
        if old is None:
            _refuse_neighbours(repo, ref)  # else there may be no directory to lock in
        lock.hold(path.with_name(f"{path.name}.lock"), wait, cut)
        value = ref_value(repo.commondir, ref)
        if value and value.startswith(_SYMBOLIC):
            raise RepositoryFault(f"{ref} is a symbolic ref", "name the branch that it points to")
        if value != old:
            return False
        if not repo.exists(new):
            raise ObjectsGone(f"commit {new} is gone", "it is made again on a retry")
        _make_room(path)
        _log(repo, ref, old or _NULL, [*through, (new, message)], identity)
        first()
        lock.publish(path)
    except OSError as error:
        raise DiskFault(f"cannot write {ref}: {error}") from error
    finally:
        (lock.unlock if staged else lock.free)()
    return True


def delete(repo: HasRefs, ref: str, old: str, *, wait: float = files.WAIT_SECONDS) -> bool:
    """Delete the ref with its reflog; return False if `old` is not its tip."""
    path = _path(repo, ref)
    lock = _value(repo, old)
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


def put(repo: HasRefs, ref: str, commit: str | None, message: str, who: Identity) -> None:
    """Have the ref at the commit, or (None) nowhere, whatever it holds now."""
    now = ref_target(repo.commondir, ref)
    if commit and commit != now:
        move(repo, ref, now, commit, message, who)
    elif now and not commit:
        delete(repo, ref, now)


def clean(commondir: Path) -> list[Path]:
    """Remove the files of killed owners alone; return the lock files that it freed."""
    freed = []
    for lock in files.leftovers(commondir, _SUFFIX):
        if os.fstat(lock.fd).st_nlink > 1:
            places = [commondir / "packed-refs.lock"]
            places += [
                Path(where, name)
                for where, _, names in os.walk(commondir / "refs")
                for name in names
                if name.endswith(".lock")
            ]
            place = lock.find(places)
            freed += [place] if place else []
        lock.free()
    return freed


def _path(repo: HasRefs, ref: str) -> Path:
    path = repo.commondir / ref
    if not ref.startswith(_OURS) or not is_ref_name(ref):
        raise RepositoryFault(f"{ref!r} is not the name of a ref that patchq may write")
    if os.path.realpath(path) != str(path):
        raise RepositoryFault(
            f"{path} is, or lies behind, a symbolic link: writing it would leave the repository",
            "replace the link by what it points to",
        )
    return path


def _refuse_neighbours(repo: HasRefs, ref: str) -> None:
    parts = ref.split("/")
    above = ("/".join(parts[:length]) for length in range(3, len(parts)))
    neighbour = next((name for name in above if ref_value(repo.commondir, name)), None)
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
    repo: HasRefs, ref: str, old: str, steps: Sequence[tuple[str, str]], identity: Identity
) -> None:
    """Append to the reflogs of the branch and of each HEAD on it.

    The branch's is created if need be, a HEAD's is not.  The line comes before the move, as git
    writes it, so only its old value proves anything.
    """
    befores = [old, *(new for new, _ in steps)]
    lines = "".join(
        f"{before} {new} {identity}\t{' '.join(message.split())}\n"
        for before, (new, message) in zip(befores, steps, strict=False)
    )
    own, create = repo.commondir / "logs" / ref, 0
    if ref.startswith(("refs/heads/", records.BOARDED, records.PUBLISHED)):
        create = os.O_CREAT
        _make_room(own)
        files.make_directory(own.parent)
    logs = [(own, create)]
    logs += [(at / "logs/HEAD", 0) for at, head in heads(repo.commondir) if head == ref]
    for log, flags in logs:
        flags |= os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW
        with suppress(FileNotFoundError), files.opened(log, flags) as fd:
            files.append(fd, lines.encode("utf-8", "surrogateescape"))


def _unpack(commondir: Path, ref: str, wait: float) -> None:
    """Leave the ref out of `packed-refs`; durable after the next barrier."""
    lock = files.LockFile.write(commondir, _SUFFIX, b"")
    try:
        lock.hold(commondir / "packed-refs.lock", wait)
        line = rb"(?m)^[0-9a-fA-F]{40} %b\n(\^.*\n)?" % re.escape(os.fsencode(ref))
        files.write_all(lock.fd, re.sub(line, b"", (commondir / "packed-refs").read_bytes()))
        lock.flush()
        lock.publish(commondir / "packed-refs")
    finally:
        lock.free()
