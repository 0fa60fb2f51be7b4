"""Refs as the files that git keeps them in: which there are, their values, what each HEAD is on.

Files are read here and not by libgit2: it reads `packed-refs` as well, but knows by size, inode and
time whether that is another one than it has read, which two that are written within a tick may
share; and pygit2 1.21 keeps every name that it was ever asked for.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from errno import ENAMETOOLONG
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple
from weakref import finalize

from patchq.gate.errors import RepositoryFault
from patchq.gate.git import files

_BAD_NAME = re.compile(
    r"""[\x00-\x20\x7f~^:?*\[\\]      # a character that git reserves
    | (?:^|/)(?:\.|/|$)              # an empty component, or one that starts with a dot
    | \.\. | @\{ | \.$ | \.lock(?:/|$)
    """,
    re.VERBOSE,
)
_TRAITS = re.compile(rb"# pack-refs with:(.*)\n")
_ALL_TRAITS = b"peeled fully-peeled sorted"
_ENTRY = re.compile(rb"([0-9a-fA-F]{40}) (\S+)\n(?:\^[0-9a-fA-F]{40}\n)?")
_ENTRIES = re.compile(rb"(?:[0-9a-fA-F]{40} \S+\n(?:\^[0-9a-fA-F]{40}\n)?)*+")
_PEELED = 42
"""Bytes of the line that may follow an entry's own."""
_FEW, _BLOCK, _PIECE = 512, 4096, 1 << 18
_LONGEST = 1 << 16
_SMALL = 1 << 17
"""A `packed-refs` of that size is kept in memory, where nothing is wrong with it."""
_VALUE = re.compile(rb"([0-9a-fA-F]{40})(?:\s|\Z)")
_SYMBOLIC = "ref:"


def is_ref_name(name: str) -> bool:
    """Whether git takes the full name (`git help check-ref-format`)."""
    return _BAD_NAME.search(name) is None and name.count("/") > 1


def common_directory(gitdir: Path) -> Path:
    """The real path of the git directory that all work trees of a repository share."""
    pointer = gitdir / "commondir"
    common = os.fsdecode(pointer.read_bytes().rstrip(b"\n")) if pointer.exists() else ""
    return Path(os.path.realpath(gitdir / common))


def ref_value(commondir: Path, name: str) -> str | None:
    """The id that the ref holds, loose or packed, or what begins with `ref:`; None where neither
    is.  `RepositoryFault` for a file that says something else."""
    try:
        key = os.fsencode(name)
    except UnicodeEncodeError:
        return None
    if not is_ref_name(name):
        return None
    value = _loose(commondir, name)
    if value is None:
        with packed_refs(commondir) as packed:
            found = packed.value(key)
        value = found.decode().lower() if found else None
    return value


def any_ref(commondir: Path, names: Sequence[str]) -> bool:
    """Whether one of the refs is there, loose or packed; a name that no ref can have is not."""
    try:
        keys = {name: os.fsencode(name) for name in names if is_ref_name(name)}
    except UnicodeEncodeError:
        return False
    if any(_loose(commondir, name) for name in keys):
        return True
    with packed_refs(commondir) as packed:
        return any(packed.value(key) for key in keys.values())


def ref_values(commondir: Path, prefix: str) -> dict[str, str]:
    """Full name -> id of the direct refs under `prefix`, which ends in a slash."""
    names = loose_names(commondir, prefix)
    found = {name: value for name in names if (value := _loose(commondir, name))}
    with packed_refs(commondir) as packed:  # second, as refs move there
        for entry in packed.below(os.fsencode(prefix)):
            found.setdefault(os.fsdecode(entry.name), (entry.oid or b"").decode().lower())
    return {name: found[name] for name in sorted(found) if not found[name].startswith(_SYMBOLIC)}


def ref_names(commondir: Path, prefix: str) -> list[str]:
    """The full names of the refs under `prefix` (which ends in a slash), loose and packed."""
    names = set(loose_names(commondir, prefix))
    with packed_refs(commondir) as packed:
        names.update(os.fsdecode(entry.name) for entry in packed.below(os.fsencode(prefix)))
    return sorted(names)


def loose_names(commondir: Path, prefix: str) -> list[str]:
    """The full names of those that have a file of their own, or seem to."""
    top = f"{commondir}/{prefix}".rstrip("/")
    return [
        prefix + f"{where}/{name}"[len(top) + 1 :]
        for where, _, names in os.walk(top)
        for name in names
        if not name.endswith(".lock")
    ]


def _loose(commondir: Path, name: str) -> str | None:
    """As git reads it: digits in either case, and after a space whatever there is."""
    path = f"{commondir}/{name}"
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            text = os.read(fd, _BLOCK)
        finally:
            os.close(fd)
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


_SEE = "`patchq fsck` says what is wrong with it"


class Packed(NamedTuple):
    """An entry of `packed-refs`, from byte to byte; without an id, where there is none yet."""

    begin: int
    end: int
    name: bytes
    oid: bytes | None = None


class PackedRefs:
    """`packed-refs` as it stands, open.  One whose header says that it is sorted is searched by
    halves, so nothing but a copy of it costs more the more refs there are; git's own is.

    It is read and never mapped, as an editor that cuts it would end the process.
    """

    def __init__(self, path: Path, fd: int | None) -> None:
        self._path, self._fd = path, fd
        self.size = os.fstat(fd).st_size if fd is not None else 0
        self._whole: bytes | None = None
        if self.size <= _SMALL:
            self._whole = self.read(0, self.size)
        header = _TRAITS.match(self.read(0, _BLOCK))
        self.begin = header.end() if header else 0
        """Where the entries begin."""
        # Whether tagged objects stand beside their tags is known to who wrote the file.
        traits = header[1] if header else b"" if self.size else _ALL_TRAITS
        self.traits = frozenset(traits.split())
        self._sorted = self.size == 0 or b"sorted" in self.traits
        if self._whole is not None and _ENTRIES.fullmatch(self._whole, self.begin) is None:
            self._whole = None

    def read(self, begin: int, end: int) -> bytes:
        """Of the file's bytes, those that are there."""
        if self._whole is not None:
            return self._whole[begin:end]
        parts = []
        while self._fd is not None and begin < end:
            part = os.pread(self._fd, end - begin, begin)
            if not part:
                break
            parts.append(part)
            begin += len(part)
        return b"".join(parts)

    def copy(self, begin: int, end: int) -> Iterator[bytes]:
        """The same piece by piece."""
        for at in range(begin, end, _PIECE):
            yield self.read(at, min(at + _PIECE, end))

    def value(self, name: bytes) -> bytes | None:
        """The id that the ref has; None where it is not there."""
        if self._whole is None:
            return self.find(name).oid
        at = self._whole.find(b" %b\n" % name, self.begin)
        entry = _ENTRY.match(self._whole, at - 40) if at >= self.begin + 40 else None
        return entry[1] if entry and entry[2] == name else None

    def find(self, name: bytes) -> Packed:
        """The entry, or where it has to be made."""
        if not self._sorted:
            there = (entry for entry in self.entries(self.begin) if entry.name == name)
            return next(there, Packed(self.size, self.size, name))
        low, high = self.begin, self.size
        while high - low > _FEW:
            middle = self._around((low + high) // 2, low)
            if middle.name == name:
                return middle
            low, high = (middle.end, high) if middle.name < name else (low, middle.begin)
        for entry in self.entries(low, high):
            if entry.name >= name:
                return entry if entry.name == name else Packed(entry.begin, entry.begin, name)
        return Packed(high, high, name)

    def below(self, prefix: bytes) -> Iterator[Packed]:
        """The entries whose names begin so."""
        if not self._sorted:
            every = self.entries(self.begin)
            yield from (entry for entry in every if entry.name.startswith(prefix))
            return
        for entry in self.entries(self.find(prefix).begin):
            if not entry.name.startswith(prefix):
                return
            yield entry

    def has_below(self, prefix: bytes) -> bool:
        return next(self.below(prefix), None) is not None

    def entries(self, begin: int, end: int | None = None) -> Iterator[Packed]:
        """Those from one entry's beginning to another's, or to the end of the file."""
        end = self.size if end is None else end
        piece = _BLOCK
        while begin < end:
            block, done = self.read(begin, min(begin + piece, end)), 0
            last = begin + len(block) >= end
            while entry := _ENTRY.match(block, done):
                if not last and entry.end() + _PEELED > len(block):
                    break
                yield Packed(begin + done, begin + entry.end(), entry[2], entry[1])
                done = entry.end()
            if done < len(block) and (last or (not done and piece > _LONGEST)):
                raise self.damage()
            begin, piece = begin + done, _PIECE

    def _around(self, at: int, low: int) -> Packed:
        """The entry that holds this byte; one begins at `low`."""
        reach = _FEW
        while reach <= _LONGEST:
            first = max(low, at - reach)
            block = self.read(first, at + reach)
            begin = block.rfind(b"\n", 0, at - first) + 1
            if block[begin : begin + 1] == b"^":
                begin = block.rfind(b"\n", 0, begin - 1) + 1
            entry = _ENTRY.match(block, begin) if begin or first == low else None
            whole = first + len(block) >= self.size
            if entry and (whole or entry.end() + _PEELED <= len(block)):
                return Packed(first + begin, first + entry.end(), entry[2], entry[1])
            reach *= 4
        raise self.damage()

    def damage(self) -> RepositoryFault:
        return RepositoryFault(
            f"{self._path} has a line that is no ref", "`patchq fsck` says which"
        )

    def write(self, fd: int, changes: Mapping[bytes, bytes | None]) -> None:
        """The same entries, but for the ids that these get, or that are left out; always sorted."""
        with open(fd, "wb", _PIECE, closefd=False) as out:
            out.write(b"# pack-refs with: %s \n" % b" ".join(sorted({*self.traits, b"sorted"})))
            for part in self._changed(changes):
                out.write(part)

    def _changed(self, changes: Mapping[bytes, bytes | None]) -> Iterator[bytes]:
        new = {name: b"%s %s\n" % (oid, name) if oid else b"" for name, oid in changes.items()}
        if not self._sorted:
            known = {entry.name: entry for entry in self.entries(self.begin)}
            for name in sorted(known.keys() | new.keys()):
                yield new[name] if name in new else self.read(known[name].begin, known[name].end)
            return
        at = self.begin
        for name in sorted(new):
            place = self.find(name)
            yield from self.copy(at, place.begin)
            yield new[name]
            at = place.end
        yield from self.copy(at, self.size)


@contextmanager
def packed_refs(commondir: Path) -> Iterator[PackedRefs]:
    """The file as it is now; an empty one where there is none."""
    path = f"{commondir}/packed-refs"
    kept = _kept.get(path)
    try:
        if kept is None or kept[0] != _mark(os.stat(path)):
            kept = _opened(path)
    except FileNotFoundError:
        yield PackedRefs(Path(path), None)
        return
    yield kept[1]


_kept: dict[str, tuple[tuple[int, ...], PackedRefs]] = {}
"""The files that were read last.  They are replaced and not changed; as long as one is open, no
other one gets its number."""
_MOST_KEPT = 2


def _opened(path: str) -> tuple[tuple[int, ...], PackedRefs]:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        mark = _mark(os.fstat(fd))
        packed = PackedRefs(Path(path), fd)
    except BaseException:
        os.close(fd)
        raise
    finalize(packed, os.close, fd)  # others may still read it when the next is kept
    if len(_kept) >= _MOST_KEPT and path not in _kept:
        _kept.clear()
    _kept[path] = mark, packed
    return mark, packed


def _mark(status: os.stat_result) -> tuple[int, ...]:
    """What tells a file, and one that was written over in place, from another."""
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def heads(commondir: Path) -> Iterator[tuple[Path, str]]:
    """The git directory of each work tree (a bare repository's own included), and the full name
    of the ref that its HEAD stands for; empty when detached."""
    with suppress(FileNotFoundError):
        yield commondir, head_target(commondir)
    try:
        entries = sorted(os.listdir(f"{commondir}/worktrees"))
    except FileNotFoundError:
        return
    for entry in entries:
        gitdir = commondir / "worktrees" / entry
        with suppress(FileNotFoundError, NotADirectoryError):
            yield gitdir, head_target(gitdir)


def head_target(gitdir: Path) -> str:
    """The full name of the ref that HEAD stands for there; empty when detached."""
    text = os.fsdecode(files.content(f"{gitdir}/HEAD"))
    return text[4:].strip() if text.startswith("ref:") else ""


def gaps(commondir: Path, ref: str) -> Iterator[tuple[str, str]]:
    """Where a line of the reflog does not start at the commit at which the one before it ended:
    that commit, which was passed over, and the one that came instead."""
    with suppress(FileNotFoundError):
        lines = [line.split(b" ", 2) for line in (commondir / "logs" / ref).open("rb")]
        for (_, before, _), (old, new, _) in pairwise(line for line in lines if len(line) == 3):
            if old != before:
                yield before.decode("ascii", "replace"), new.decode("ascii", "replace")
