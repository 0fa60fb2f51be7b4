"""What keeps the repository small after landings, as git's commands do after each commit and
libgit2 never does.

Git's own housekeeping is asked for; whether it does anything is the user's to say.  So the packs
that patchq wrote, one for a group of landings, are made few by patchq itself.  Only packs that bear
its mark are ever touched, an empty file of their name below `objects/info/`; none that is kept, has
a bitmap, or stands in a multi-pack-index.  All of their objects go into the new pack, needed or
not, so nothing is lost that somebody is about to refer to; `git index-pack` reads it whole and
works out every object's id, and it is durable under its name before the first of the old ones goes.

    own file, scratch directory -> new pack | flush | mark, pack, index | flush | old ones go
"""

from __future__ import annotations

import logging
import os
import subprocess
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from subprocess import PIPE
from threading import Thread
from time import monotonic
from typing import BinaryIO

from patchq.gate.errors import Fault
from patchq.gate.git import files
from patchq.gate.git.command import QUIET, Git, plain_environment
from patchq.gate.git.repository import Repository
from patchq.gate.git.unwritten import MARKS, drop, mark, new_own, publish

_LOG = logging.getLogger("patchq")
_PAUSE_SECONDS = 60.0
_WORDS = ("maintenance", "run", "--auto", "--quiet")
_OFF = ("false", "no", "off", "0")
"""How git spells that something is switched off."""
FEW = 8
"""The largest packs, which stay as long as the others together are no half of the next one."""
MANY = 24
"""With so many, they are combined beside the work."""
MOST = 48
"""With so many, the work waits for that."""


class Tidying:
    """Of one repository.  Git decides whether there is enough to do (`gc.auto`, `maintenance.*`),
    goes on by itself, and is not waited for."""

    def __init__(self, repo: Repository) -> None:
        self.due = False
        """Whether something was written since the last time."""
        self.process: subprocess.Popen[bytes] | None = None
        """The git that was started last."""
        self._repo = repo
        self._next = 0.0

    def turn(self) -> None:
        """Start git where that is due, at most once a minute and one at a time."""
        running = self.process is not None and self.process.poll() is None
        if not self.due or running or monotonic() < self._next:
            return
        self.due, self._next = False, monotonic() + _PAUSE_SECONDS
        if not self._wanted():
            return
        place = self._repo.commondir
        try:
            self.process = Git(plain_environment(GIT_DIR=str(place)), QUIET, place).start(*_WORDS)
        except OSError as error:
            _LOG.debug("git cannot tidy up: %s", error)

    def _wanted(self) -> bool:
        try:
            return (self._repo.setting("maintenance.auto") or "true").lower() not in _OFF
        except Fault:
            return False


class Combining:
    """Of one repository's packs, by one process: the one that empties the inbox."""

    def __init__(self, repo: Repository) -> None:
        self._objects = repo.commondir / "objects"
        environment = plain_environment(GIT_DIR=str(repo.commondir))
        self._git = Git(environment, QUIET, repo.commondir, repo.commondir)
        self._thread: Thread | None = None
        self._next = 0.0

    def turn(self) -> bool:
        """Begin where there are too many, and wait where there are far too many; whether packs
        went away since the last call."""
        count = len(_marks(self._objects))
        if self._thread is None and count >= MANY and monotonic() >= self._next:
            self._thread = Thread(target=self._run, name="packs")
            self._thread.start()
        if self._thread is None or (self._thread.is_alive() and count < MOST):
            return False
        return self.finish()

    def finish(self) -> bool:
        """Wait for what was begun; whether there was any."""
        if self._thread is None:
            return False
        self._thread.join()
        self._thread = None
        return True

    def _run(self) -> None:
        try:
            combine(self._objects, self._git)
        except (OSError, Fault, subprocess.SubprocessError) as error:
            # `git gc` may have been quicker, or the disk is full: nothing has changed.
            _LOG.debug("the packs stay as they are: %s", error)
            self._next = monotonic() + _PAUSE_SECONDS


def combine(objects: Path, git: Git) -> None:
    """Make one pack of the smaller ones.  OSError, `subprocess.SubprocessError`, or a `Fault`: then
    all are as they were."""
    old = chosen(_sizes(objects))
    if len(old) < 2:
        return
    own = new_own(objects)
    scratch = own.beside(".d")
    try:
        scratch.mkdir()
        name = _combined(objects, old, scratch, git)
        if name in old:  # it holds what the others do
            _remove(objects, [one for one in old if one != name])
            return
        own.hold(objects / f"pack/{name}.keep")
        mark(objects, name)
        for suffix in (".pack", ".idx"):
            publish(scratch / f"new{suffix}", objects / f"pack/{name}{suffix}")
        files.barrier(objects)
        _remove(objects, old)
    finally:
        drop(own)


def chosen(sizes: Mapping[str, int]) -> list[str]:
    """The packs to combine, by their sizes: so that each object is copied only as often as what it
    is packed with doubles."""
    total, found = 0, list[str]()
    for name, size in sorted(sizes.items(), key=lambda item: item[1]):
        if len(found) > len(sizes) - FEW and size > 2 * total:
            break
        found.append(name)
        total += size
    return found


def _combined(objects: Path, names: Sequence[str], scratch: Path, git: Git) -> str:
    """Write `new.pack` and `new.idx`, durably; the name that the pack must have."""
    with (scratch / "wanted").open("wb") as listed:
        for name in names:
            _list_objects(objects / f"pack/{name}.idx", listed, git)
    new = scratch / "new.pack"
    with (scratch / "wanted").open("rb") as listed, new.open("xb") as out:
        words = ("pack-objects", "--stdout", "--quiet", "--threads=1", "--delta-base-offset")
        if code := git.start(*words, stdin=listed, stdout=out).wait():
            raise subprocess.CalledProcessError(code, words)
        os.fsync(out.fileno())
    digits = git.output("index-pack", str(new)).decode().split()[-1]
    with (scratch / "new.idx").open("rb") as done:
        os.fsync(done.fileno())
    return f"pack-{digits}"


def _list_objects(index: Path, listed: BinaryIO, git: Git) -> None:
    """Write the ids of a pack's objects, a line each, however many there are."""
    with index.open("rb") as file, git.start("show-index", stdin=file, stdout=PIPE) as shown:
        assert shown.stdout
        listed.writelines(line.split(b" ")[1] + b"\n" for line in shown.stdout)
    if shown.returncode:
        raise subprocess.CalledProcessError(shown.returncode, "show-index")


def _sizes(objects: Path) -> dict[str, int]:
    """The marked packs that may be combined; what is left of those that are gone is removed."""
    found = {}
    indexed = _multi_pack_index(objects)
    marked = _marks(objects)
    suffixes = defaultdict[str, set[str]](set)
    for file in os.listdir(objects / "pack") if marked else ():
        name, suffix = os.path.splitext(file)
        suffixes[name].add(suffix)
    for name in marked:
        pack, beside = objects / "pack" / name, suffixes[name]
        if beside & {".keep", ".promisor", ".bitmap", ".mtimes"} or name.encode() in indexed:
            continue
        if {".pack", ".idx"} <= beside:
            with suppress(FileNotFoundError):
                found[name] = pack.with_suffix(".pack").stat().st_size
        else:
            _remove(objects, [name])
    return found


def _multi_pack_index(objects: Path) -> bytes:
    places = [objects / "pack/multi-pack-index", *objects.glob("pack/multi-pack-index.d/*.midx")]
    return b"".join(place.read_bytes() for place in places if place.exists())


def _marks(objects: Path) -> list[str]:
    try:
        return sorted(os.listdir(objects / MARKS))
    except FileNotFoundError:
        return []


def _remove(objects: Path, names: Iterable[str]) -> None:
    """As git removes a pack: first the index, by which it is found.  The mark goes last."""
    for name in names:
        for suffix in (".idx", ".rev", ".pack"):
            (objects / f"pack/{name}{suffix}").unlink(missing_ok=True)
        (objects / MARKS / name).unlink(missing_ok=True)
