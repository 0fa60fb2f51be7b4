"""What stands under each name that patchq uses, each entry by itself: in the queue, and among the
refs.

A careless script, a bad restore or a power cut leaves directories, links, files that nobody may
read and refs that name nothing where plain files belong, and everything that reads (git too, at
every turn) would stumble over them one by one.  So each is looked at before any of it is read.
What does not belong is set aside in `damaged/` with what it held, nothing is deleted; what it told
is then missing, and found so.  A branch that waits is put back where its mark or its report has it,
since a missing one would count as discarded by hand.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from operator import attrgetter
from pathlib import Path

from msgspec import Struct

from patchq.gate.git import files, records, refs, unwritten
from patchq.gate.git.branches import worktree
from patchq.gate.git.linklock import leftovers
from patchq.gate.git.reffiles import heads
from patchq.gate.hooks.warm import remove
from patchq.gate.pipeline.session import Session
from patchq.gate.queue.layout import PAGE, PUBLIC, REPORT
from patchq.gate.queue.store import LOCKS, STORE

_KINDS: dict[Callable[[int], bool], str] = {
    stat.S_ISREG: "file",
    stat.S_ISDIR: "directory",
    stat.S_ISLNK: "symbolic link",
}
READ, _WRITE, _ENTER = os.R_OK, os.R_OK | os.W_OK, os.R_OK | os.W_OK | os.X_OK

_LOCK = "lock"

Place = tuple[Path, Callable[[int], bool], int]
"""A path, the test of its kind, and the rights that patchq needs there."""

_OURS = (records.BRANCHES, records.OWN, records.NOTES)
_VALUE = re.compile(rb"[0-9a-f]{40}\n?")
_PACKED = re.compile(rb"#.*|\^[0-9a-f]{40}|[0-9a-f]{40} refs/\S+")


class Damage(Struct, frozen=True, eq=False):
    """One thing that is not as it should be.  `kind` names it for programs, `where` is a path, a
    ref or an id; `mend` rebuilds it, `cure` is for people where there is no `mend`."""

    kind: str
    where: str
    message: str
    cure: str | None = None
    mend: Callable[[], object] | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Damage) and _seen(self) == _seen(other)

    def __hash__(self) -> int:
        return hash(_seen(self))


_seen = attrgetter("kind", "where", "message", "cure")
"""What is the same when the same damage is found again."""


# ------------------------------------------------------------- what stands in the queue


def check_shapes(root: Path) -> Iterator[Damage]:
    """Everything that cannot be read as what its name says."""
    for folder in (root, *(root / name for name in PUBLIC)):
        found = list(_wrong(root, folder, stat.S_ISDIR, _ENTER))
        yield from found
        if not found and folder.is_dir():
            for place in _inside(root, folder):
                yield from _wrong(root, *place)


def _allowed(root: Path) -> int:
    """The rights that anybody can have: none to write, where it is mounted so."""
    return READ | os.X_OK if os.statvfs(root).f_flag & os.ST_RDONLY else _ENTER


def lock(root: Path) -> Iterator[Damage]:
    """What is wrong with the queue lock, which is mended before anybody can have it: what is no
    file, nobody holds, and who held the file that was there stops."""
    return _wrong(root, root / _LOCK, stat.S_ISREG, _WRITE)


def _inside(root: Path, folder: Path) -> Iterator[Place]:
    for path in sorted(folder.iterdir()):
        if folder == root and path.name in (STORE, LOCKS, _LOCK):
            yield path, stat.S_ISREG, _WRITE
        elif (folder.name in PUBLIC[1:] and path.name.endswith((REPORT, PAGE))) or (
            # A response may be anything.
            folder.name in PUBLIC[2:] and stat.S_ISREG(path.lstat().st_mode)
        ):
            yield path, stat.S_ISREG, READ


def _wrong(root: Path, path: Path, belongs: Callable[[int], bool], rights: int) -> Iterator[Damage]:
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not belongs(mode):
        yield Damage(
            "entry.foreign",
            str(path),
            f"there has to be a {_KINDS[belongs]}, and it is something else",
            mend=partial(aside, root, path),
        )
    elif rights and not os.access(path, rights & _allowed(root)):
        own = path.lstat().st_uid == os.geteuid()
        mend = partial(path.chmod, stat.S_IMODE(mode) | rights << 6)
        yield Damage(
            "entry.closed",
            str(path),
            "patchq has not the rights that it needs here",
            f"chown {os.geteuid()} '{path}'",
            mend if own else None,
        )


def aside(root: Path, path: Path, name: str | None = None) -> None:
    """Move what stands there into `damaged/`, beside what came there before."""
    folder = root / "damaged"
    folder.mkdir(exist_ok=True)
    name = name or path.name
    target, number = folder / name, 1
    while os.path.lexists(target):
        number += 1
        target = folder / f"{name}.{number}"
    with suppress(OSError):  # a directory is renamed by who may write in it
        if path.is_dir() and not path.is_symlink():
            path.chmod(0o700)
    shutil.move(path, target)


# --------------------------------------------------------------- refs


def check_refs(session: Session) -> Iterator[Damage]:
    """The refs in files, then what all of them name."""
    found = [*_packed(session.repo.commondir), *_loose(session)]
    yield from found or _dangling(session)


def _packed(commondir: Path) -> Iterator[Damage]:
    """What keeps git from reading any packed ref, whoever it belongs to."""
    path = commondir / "packed-refs"
    lines = path.read_bytes().splitlines() if path.is_file() else []
    for number, line in enumerate(lines, 1):
        if not _PACKED.fullmatch(line):
            yield Damage(
                "ref.packed",
                str(path),
                f"line {number} is no ref, so git cannot read the file",
                f"once it is known which ref that was: sed -i {number}d '{path}'",
            )


def _loose(session: Session) -> Iterator[Damage]:
    commondir = session.repo.commondir
    for prefix in (*_OURS, *(f"logs/{name}" for name in _OURS)):
        for path in _entries(commondir / prefix):
            name = path.relative_to(commondir).as_posix()
            if why := _unreadable(path, log=name.startswith("logs/")):
                yield Damage("ref.broken", name, why, mend=partial(_mend_file, session, path, name))


def _entries(top: Path) -> Iterator[Path]:
    """What stands at the path and below it, in which no directory is entered that cannot be."""
    if not os.path.lexists(top) or top.name.endswith(".lock"):
        return
    yield top
    if top.is_dir() and not top.is_symlink() and os.access(top, READ | os.X_OK):
        for path in sorted(top.iterdir()):
            yield from _entries(path)


def _unreadable(path: Path, *, log: bool) -> str | None:
    mode = path.lstat().st_mode
    if not stat.S_ISDIR(mode) and not stat.S_ISREG(mode):
        return "there is neither a file nor a directory"
    if not os.access(path, READ | os.X_OK if stat.S_ISDIR(mode) else READ):
        return "patchq has not the rights that it needs here"
    if stat.S_ISREG(mode) and not log and not _VALUE.fullmatch(path.read_bytes()):
        return "the file does not hold the id of a commit"
    return None


def _mend_file(session: Session, path: Path, name: str) -> None:
    """Open what is closed; else set it aside."""
    mode = path.lstat().st_mode
    plain = stat.S_ISDIR(mode) or stat.S_ISREG(mode)
    if plain and not os.access(path, READ):
        path.chmod(stat.S_IMODE(mode) | (0o700 if stat.S_ISDIR(mode) else 0o600))
    else:
        aside(session.queue_root, path, name.replace("/", "_"))
        _put_back(session, name)


def _dangling(session: Session) -> Iterator[Damage]:
    """Refs that name what is not in the repository."""
    noted = session.repo.ref_target(records.NOTES)
    named = {records.NOTES: noted} if noted else {}
    for prefix in (records.BRANCHES, records.WAITING, records.DISCARDED):
        named |= session.repo.refs(prefix)
    for name, oid in named.items():
        if session.repo.resolve_commit(oid) is None:
            known = not name.startswith(records.BRANCHES) or _tip(session, name)
            yield Damage(
                "ref.dangling",
                name,
                f"the ref names {oid}, which is not in the repository",
                f"fetch it from a clone, or: git update-ref -d '{name}'",
                partial(_mend_value, session, name, oid) if known else None,
            )


def _mend_value(session: Session, name: str, oid: str) -> None:
    kept = session.queue_root / "damaged"
    kept.mkdir(exist_ok=True)
    with (kept / "refs").open("a", encoding="utf-8") as file:
        file.write(f"{oid} {name}\n")
    refs.delete(session.repo, name, oid)
    _put_back(session, name)


def _put_back(session: Session, name: str) -> None:
    """Make a branch again on which a proposal waits."""
    tip = _tip(session, name)
    if tip and not session.repo.ref_target(name):
        set_ref(session, name, None, tip, "patchq: fsck")


def set_ref(session: Session, name: str, old: str | None, new: str, log: str) -> None:
    """Make a ref, or move it from `old`, durably."""
    if old is None:
        refs.move(session.repo, name, None, new, log, session.identity())
    else:
        refs.move(session.repo, name, old, new, log, session.identity())
    files.barrier(session.repo.commondir)


def _tip(session: Session, name: str) -> str | None:
    """Where the mark that a batch waits, or else its report, has its branch."""
    id = name.removeprefix(records.BRANCHES)
    if id == name or session.repo.ref_target(records.DISCARDED + id):
        return None
    report = session.queue.load(id)
    tips = (
        session.repo.ref_target(records.WAITING + id),
        report.commit if report and report.state == "proposed" else None,
    )
    return next((tip for tip in tips if tip and session.repo.resolve_commit(tip)), None)


# --------------------------------------------------------------- scraps


def check_scraps(session: Session, root: Path) -> Iterator[Damage]:
    """Everything that is of no use to anybody."""
    for path, why, removal in _scraps(session, root):
        yield Damage("scrap", str(path), why, mend=removal)


def _scraps(session: Session, root: Path) -> Iterator[tuple[Path, str, Callable[[], object]]]:
    """What is of no use to anybody, with why, and what removes it."""
    commondir, objects = session.repo.commondir, session.repo.commondir / "objects"
    why = "a killed patchq left it, and with it perhaps a lock"
    for path in _orphans(commondir, ".ref"):
        yield path, why, partial(refs.clean, commondir)
    for gitdir, _ in heads(commondir):
        for path in _orphans(gitdir, ".index"):
            yield path, why, partial(worktree.recover, session.repo, wait=0.0)
    for path in _orphans(objects, ".objects"):
        # The file alone is how each process ends that wrote objects.
        if path.with_name(f"{path.name}.d").exists():
            yield path, why, partial(unwritten.clean, objects)
    for path in sorted((root / "hooks").glob("probe-*")):
        yield path, "a trial of the hooks' sandbox", partial(remove, path)


def _orphans(gitdir: Path, suffix: str) -> Iterator[Path]:
    """Own files of dead owners in a git directory."""
    for orphan in leftovers(gitdir, suffix):
        os.close(orphan.fd)
        yield orphan.own
