"""Work trees for hooks, kept from one candidate to the next.

So a move to the next candidate costs what differs.  A hook runs in a slot: a directory with a work
tree, locked by one process.  The tree is a git work tree with a private repository: the objects of
the real one by `objects/info/alternates`, those that are not written yet in its own files, HEAD
detached at the candidate, the index up to date.  Nothing leads back: no remote, no ref of the real
repository.

A hook in the sandbox sees the tree through an overlay, so it stays as it is.  A plain one writes
into it, so it is made anew after that.  The file `shown` names the tree that the slot holds; it is
missing whenever that is uncertain, and valid for one boot of the machine only, since nothing here
is flushed.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from msgspec import Struct

from patchq.gate.errors import DiskFault, RepositoryFault
from patchq.gate.git import files
from patchq.gate.git.command import QUIET, Git, sealed_environment
from patchq.gate.git.object_buffer import write_loose


def stores(store: Path) -> list[Path]:
    """Return the directories of objects that a repository reads, its own first."""
    found = [store]
    for known in found:
        try:
            lines = (known / "info/alternates").read_bytes().splitlines()
        except OSError:
            continue
        borrowed = (os.fsdecode(line) for line in lines if line and not line.startswith(b"#"))
        paths = (Path(os.path.realpath(known / path)) for path in borrowed)
        found += [path for path in paths if path not in found]
    return found


# Objects by id (hex): libgit2's number of the kind, and the content.
Objects = Mapping[str, tuple[int, bytes]]
# Own objects after which a tree is made anew, without what former candidates left.  As by git,
# their number is guessed by one directory of 256.
_MOST_OBJECTS = 20_000
_CONFIG = """\
[core]
	repositoryformatversion = 0
	filemode = true
	bare = false
	autocrlf = false
	hooksPath = /dev/null
[index]
	version = 4
[user]
	name = patchq
	email = patchq@localhost
[gc]
	auto = 0
[maintenance]
	auto = false
"""


@contextmanager
def slot(root: Path, store: Path, tree: str = "") -> Iterator[Slot]:
    """Lock a directory below `root`, by preference the one that shows `tree` (hex)."""
    root.mkdir(parents=True, exist_ok=True)
    known = sorted(int(name) for name in os.listdir(root) if name.isdigit())
    known.sort(key=lambda number: _shown(root / str(number)) != tree)
    for number in (*known, *range(max(known, default=-1) + 1, 1 << 16)):
        place = root / str(number)
        place.mkdir(exist_ok=True)
        with files.opened(place / "lock", os.O_RDWR | os.O_CREAT, mode=0o600) as lock:
            if files.flock(lock):
                remove(place / "room")
                for name in ("home", "empty"):
                    (place / "room" / name).mkdir(parents=True)
                yield Slot(place, store, lock)
                return
    raise DiskFault(f"no directory for a hook can be made in {root}")


def remove(path: Path) -> None:
    if path.is_symlink() or path.is_file():
        path.unlink()
    shutil.rmtree(path, ignore_errors=True)
    with suppress(OSError):
        os.chmod(path, 0o700)
        for where, folders, _ in os.walk(path):
            for inner in (os.path.join(where, folder) for folder in folders):
                if not os.path.islink(inner):
                    os.chmod(inner, 0o700)  # before the walk enters it
    shutil.rmtree(path, ignore_errors=True)
    if path.exists():
        raise DiskFault(f"{path} cannot be removed", "remove it by hand")


def _shown(place: Path) -> str:
    """Return the tree (hex) that the slot shows, or "" where that is uncertain."""
    with suppress(OSError):
        boot, _, tree = (place / "shown").read_text(errors="replace").partition(" ")
        if boot == files.boot():
            return tree
    return ""


class Slot(Struct, frozen=True):
    """A directory for one hook at a time, and the work tree in it.

    `store` is the directory of the real repository's objects, `lock` the descriptor of its lock.
    """

    path: Path
    store: Path
    lock: int

    @property
    def room(self) -> Path:
        return self.path / "room"

    @property
    def tree(self) -> Path:
        return self.path / "tree"

    @property
    def gitdir(self) -> Path:
        return self.tree / ".git"

    def show(self, tree: str, head: str, objects: Objects) -> None:
        """Bring files and index to `tree`, and HEAD to the commit `head`."""
        shown = _shown(self.path)
        (self.path / "shown").unlink(missing_ok=True)
        own = self.gitdir / "objects"
        try:
            if not shown or 256 * len([*own.glob("17/*")]) > _MOST_OBJECTS:
                raise RepositoryFault("there is no tree that could be moved")
            write_loose(own, objects.values())
            self._move(head, *(("-m", shown, tree) if shown != tree else ()))
        except RepositoryFault:
            self.remove()
            self._init()
            write_loose(own, objects.values())
            self._move(head, "--reset", tree)
        (self.path / "shown").write_text(f"{files.boot()} {tree}", encoding="ascii")

    def _move(self, head: str, *trees: str) -> None:
        (self.gitdir / "HEAD").write_text(f"{head}\n", encoding="ascii")
        if trees:
            self._git(self.tree).output("read-tree", "-u", *trees)

    def _init(self) -> None:
        info = self.gitdir / "objects/info"
        info.mkdir(parents=True)
        (self.gitdir / "refs").mkdir()
        (info / "alternates").write_bytes(os.fsencode(self.store) + b"\n")
        (self.gitdir / "config").write_text(_CONFIG, encoding="ascii")
        shallow = self.store.parent / "shallow"
        if shallow.exists():
            shutil.copy(shallow, self.gitdir)

    @contextmanager
    def lent(self) -> Iterator[None]:
        """Let a hook write into the tree, which is removed after that."""
        shutil.copyfile(self.gitdir / "index", self.path / "index")
        (self.path / "shown").unlink(missing_ok=True)
        try:
            yield
        finally:
            self.remove()

    def remove(self) -> None:
        remove(self.tree)
        (self.path / "index").unlink(missing_ok=True)

    def changed(self, tree: Path, enter: Sequence[str]) -> list[str]:
        """Return the paths of changed and new files, without those that git ignores.

        `tree` is the work tree after the hook, for a process that is started by `enter`."""
        kept = self.path / "index"
        options = ("--porcelain", "-z", "--no-renames", "-uall", "--ignore-submodules=all")
        index = kept if kept.exists() else None
        status = self._git(tree, enter).output("status", *options, index=index)
        return sorted(os.fsdecode(item[3:]) for item in status.split(b"\0") if item)

    def _git(self, tree: Path, enter: Sequence[str] = ()) -> Git:
        return Git(
            sealed_environment(),
            (*QUIET, f"--git-dir={self.gitdir}", f"--work-tree={tree}"),
            directory=self.path,
            place=self.tree,
            launcher=enter,
        )
