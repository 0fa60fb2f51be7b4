"""Refs of patchq's own that nobody can read, or that name nothing: by a power cut, a bad restore, a
careless hand.

git itself names them at every turn.  Each is set aside with what it held.  A branch that waits is
put back where its mark or its report has it, since a missing one would count as discarded by hand.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from patchq.git import files, records, refs
from patchq.pipeline.world import World
from patchq.service.fsck.damage import Damage
from patchq.service.fsck.shapes import READ, aside

_OURS = (records.BRANCHES, records.OWN, records.NOTES)
_VALUE = re.compile(rb"[0-9a-f]{40}\n?")
_PACKED = re.compile(rb"#.*|\^[0-9a-f]{40}|[0-9a-f]{40} refs/\S+")


def check(world: World) -> Iterator[Damage]:
    """The refs in files, then what all of them name."""
    found = [*_packed(world.repo.commondir), *_loose(world)]
    yield from found or _dangling(world)


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


def _loose(world: World) -> Iterator[Damage]:
    commondir = world.repo.commondir
    for prefix in (*_OURS, *(f"logs/{name}" for name in _OURS)):
        for path in _entries(commondir / prefix):
            name = path.relative_to(commondir).as_posix()
            if why := _unreadable(path, log=name.startswith("logs/")):
                yield Damage("ref.broken", name, why, mend=partial(_mend_file, world, path, name))


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


def _mend_file(world: World, path: Path, name: str) -> None:
    """Open what is closed; else set it aside."""
    mode = path.lstat().st_mode
    plain = stat.S_ISDIR(mode) or stat.S_ISREG(mode)
    if plain and not os.access(path, READ):
        path.chmod(stat.S_IMODE(mode) | (0o700 if stat.S_ISDIR(mode) else 0o600))
    else:
        aside(world.queue_root, path, name.replace("/", "_"))
        _put_back(world, name)


def _dangling(world: World) -> Iterator[Damage]:
    """Refs that name what is not in the repository; `records` looks after those of landed ones."""
    noted = world.repo.ref_target(records.NOTES)
    named = {records.NOTES: noted} if noted else {}
    for prefix in (records.BRANCHES, records.WAITING, records.DISCARDED):
        named |= world.repo.refs(prefix)
    for name, oid in named.items():
        if world.repo.resolve_commit(oid) is None:
            known = not name.startswith(records.BRANCHES) or _tip(world, name)
            yield Damage(
                "ref.dangling",
                name,
                f"the ref names {oid}, which is not in the repository",
                f"fetch it from a clone, or: git update-ref -d '{name}'",
                partial(_mend_value, world, name, oid) if known else None,
            )


def _mend_value(world: World, name: str, oid: str) -> None:
    kept = world.queue_root / "damaged"
    kept.mkdir(exist_ok=True)
    with (kept / "refs").open("a", encoding="utf-8") as file:
        file.write(f"{oid} {name}\n")
    refs.delete(world.repo, name, oid)
    _put_back(world, name)


def _put_back(world: World, name: str) -> None:
    """Make a branch again on which a proposal waits."""
    tip = _tip(world, name)
    if tip and not world.repo.ref_target(name):
        set_ref(world, name, None, tip, "patchq: fsck")


def set_ref(world: World, name: str, old: str | None, new: str, log: str) -> None:
    """Make a ref, or move it from `old`, durably."""
    if old is None:
        refs.create(world.repo, name, new, log, world.identity())
    else:
        refs.move(world.repo, name, old, new, log, world.identity())
    files.barrier(world.repo.commondir)


def _tip(world: World, name: str) -> str | None:
    """Where the mark that a batch waits, or else its report, has its branch."""
    id = name.removeprefix(records.BRANCHES)
    if id == name or world.repo.ref_target(records.discarded(id)):
        return None
    report = world.queue.load(id)
    reported = report["commit"] if report and report["state"] == "proposed" else None
    tips = (world.repo.ref_target(records.waiting(id)), reported)
    return next((tip for tip in tips if tip and world.repo.resolve_commit(tip)), None)
