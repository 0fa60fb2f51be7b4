"""Where a hook runs, and how it ends: in a slot, which is a directory with a work tree, and as a
process below a `keeper`, which ends all that the hook leaves.

Whether hooks can be jailed is found out once, by jailing one.  Where they cannot (no user
namespaces, another system), they run as plain processes: their groups and orphans are ended all
the same, but nothing keeps them from the network or from writing where the daemon may.

Work trees are kept from one candidate to the next: what a move costs is what differs.  A tree is a
git work tree of its own with a private repository: the objects of the real one by
`objects/info/alternates`, those that are not written yet in its own files, HEAD detached at the
candidate, the index up to date.  Nothing leads back: no remote, no ref of the real repository.

A jailed hook sees the tree through an overlay, so it stays as it is.  A plain one writes into it;
`restore` then compares everything with the index as it was kept aside, which costs a look at every
file, and a tree that cannot be put right that way is thrown away.  `shown` says what a tree holds;
it is missing whenever that is not certain, and it holds for one boot of the machine only, since
nothing here is flushed.
"""

from __future__ import annotations

import json
import os
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from threading import Event
from time import monotonic

from msgspec import Struct

from patchq.core.text.quote import decode, visible
from patchq.gate.errors import Cancelled, DiskFault, Fault, HookFault, RepositoryFault
from patchq.gate.git import files
from patchq.gate.git.command import QUIET, Git, sealed_environment
from patchq.gate.git.sharing import childrens_umask
from patchq.gate.hooks import keeper, sight

MOST_OUTPUT = 64 * 1024
"""Bytes of a hook's output that are kept, the last ones."""
_LOOK_SECONDS = 0.05
_GRACE_SECONDS = 10.0
NO_JAIL = "PATCHQ_NO_JAIL"
"""Set in the daemon's environment, hooks run as plain processes even where they could be jailed."""


class Job(Struct, frozen=True):
    """One process to run: `argv` in the directory `where`, with `env` and nothing else.

    `room` is an empty directory, in which `home` and `empty` are made for it, and `lock` is a
    descriptor that stays open until nothing of the hook runs.  `tree` is the work tree that it may
    write, if any.  `jailed`: see the module; where that cannot be, every job needs the `network`.
    `sight` is what a jailed one sees besides, as `sight.seen` gives it.
    """

    argv: Sequence[str]
    env: Mapping[str, str]
    where: Path
    room: Path
    lock: int
    timeout: float
    jailed: bool
    sight: Sequence[str] = ()
    tree: Path | None = None
    stdin: bytes = b""
    network: bool = False


class HookExit(Struct, frozen=True):
    """How a hook ended: the exit code (128 + n: by signal n; None: it was stopped after its time),
    the seconds that it took, and the end of its output, without hidden characters.  `jail` is a
    process that sees the files as the hook left them; None: all do."""

    code: int | None
    seconds: float
    output: str
    jail: int | None

    @property
    def root(self) -> str:
        """Where the file system stands as the hook left it."""
        return f"/proc/{self.jail}/root" if self.jail else ""


@contextmanager
def run(job: Job, stop: Event) -> Iterator[HookExit]:
    """Run the job to its end; inside the block, what it wrote to its work tree can be seen.

    Raises `Cancelled` once `stop` is set, and `HookFault` if it cannot be started.
    """
    if not job.jailed:
        for name in ("home", "empty"):
            (job.room / name).mkdir(exist_ok=True)
    with tempfile.TemporaryFile() as stdin:
        stdin.write(job.stdin)
        stdin.seek(0)
        process = _start(job, stdin.fileno())
    try:
        yield process.to_the_end(job.timeout, stop)
    finally:
        process.let_go()


def _start(job: Job, stdin: int) -> _Keeper:
    mode = ("jailed" if job.jailed else "plain") + ("" if job.network else ",offline")
    life, line = os.pipe()
    status, tell = os.pipe()
    fds = (tell, life, job.lock)
    size = os.environ.get(keeper.ROOM_NAME, keeper.ROOM)
    places = (size, str(job.room), str(job.tree or ""), str(job.where), str(len(job.sight)))
    try:
        process = subprocess.Popen(
            [*keeper.COMMAND, mode, ",".join(map(str, fds)), *places, *job.sight, *job.argv],
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=dict(job.env),
            pass_fds=fds,
            start_new_session=True,
            umask=childrens_umask(),
        )
    except OSError as error:
        os.close(status)
        os.close(line)
        raise HookFault(f"no process can be started for a hook: {error.strerror}") from None
    finally:
        os.close(life)
        os.close(tell)
    return _Keeper(process, status, line, job.jailed)


@dataclass
class _Keeper:
    """A keeper at work; `status` and `line` are the daemon's ends of its pipes."""

    process: subprocess.Popen[bytes]
    status: int
    line: int
    jailed: bool
    output: bytearray = field(default_factory=bytearray)
    dropped: bool = False
    report: bytes = b""
    """The two lines of `keeper.main`, as far as they came."""

    def to_the_end(self, timeout: float, stop: Event) -> HookExit:
        began = monotonic()
        assert self.process.stdout
        output = self.process.stdout.fileno()
        with selectors.DefaultSelector() as selector:
            selector.register(output, selectors.EVENT_READ)
            selector.register(self.status, selectors.EVENT_READ)
            while self.report.count(b"\n") < 2:
                left = began + timeout - monotonic()
                if left <= 0:
                    return self._ended(None, monotonic() - began)
                for key, _ in selector.select(min(left, _LOOK_SECONDS)):
                    if key.fd == output:
                        if not self._hear(output):
                            selector.unregister(output)
                    elif part := os.read(self.status, 64):
                        self.report += part
                    else:
                        self._end_orphans()
                        return self._ended(128 + signal.SIGKILL, monotonic() - began)
                if stop.is_set():
                    raise Cancelled
            seconds = monotonic() - began
            selector.unregister(self.status)
            while selector.get_map() and selector.select(0) and self._hear(output):
                pass
        return self._ended(int(self.report.split()[1]), seconds)

    def _end_orphans(self) -> None:
        """The keeper was killed; of a jail nothing is left then."""
        if self.report and not self.jailed:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(int(self.report.split()[0]), signal.SIGKILL)

    def _hear(self, output: int) -> bool:
        part = os.read(output, MOST_OUTPUT)
        self.output += part
        if len(self.output) > MOST_OUTPUT:
            del self.output[:-MOST_OUTPUT]
            self.dropped = True
        return bool(part)

    def _ended(self, code: int | None, seconds: float) -> HookExit:
        text = "…\n" if self.dropped else ""
        text += visible(decode(bytes(self.output)), keep="\n\t")
        pid = self.report.split(b"\n")[0]
        return HookExit(code, round(seconds, 3), text, int(pid) if self.jailed and pid else None)

    def let_go(self) -> None:
        """End whatever is left, and wait until it is."""
        os.close(self.line)
        os.close(self.status)
        try:
            self.process.wait(_GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        assert self.process.stdout
        self.process.stdout.close()


@cache
def can_jail(root: Path) -> bool:
    """Whether hooks can be jailed below the directory, tried out once: a directory that is removed
    and made again has to be empty then, the one below the overlay untouched, and what stands beside
    it out of sight."""
    if os.environ.get(NO_JAIL) or sys.platform != "linux":
        return False
    root.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="probe-", dir=root) as own, open(os.devnull) as nothing:
        room, tree = Path(own, "room"), Path(own, "tree")
        for path in (tree / "a/b", tree / ".git", room, Path(own, "aside")):
            path.mkdir(parents=True)
        job = Job(
            argv=("/bin/sh", "-c", 'rm -r a && mkdir a && test -z "$(ls a)" -a ! -e ../aside'),
            env={"PATH": os.defpath},
            where=tree,
            room=room,
            lock=nothing.fileno(),
            timeout=_GRACE_SECONDS,
            jailed=True,
            sight=sight.seen(os.defpath),
            tree=tree,
        )
        with run(job, Event()) as end:
            return end.code == 0 and (tree / "a/b").exists()


def no_jail() -> tuple[str, str]:
    """Why hooks cannot be jailed where they cannot, as a clause, and what to do."""
    if sys.platform != "linux":
        import platform  # compiles a dozen expressions

        return f"{platform.system()} has no user namespaces", "run patchq on Linux for that"
    if os.environ.get(NO_JAIL):
        return f"{NO_JAIL} is set", f"unset {NO_JAIL}"
    for name, bad, setting in (
        ("user/max_user_namespaces", "0", "15000"),
        ("kernel/unprivileged_userns_clone", "0", "1"),
        ("kernel/apparmor_restrict_unprivileged_userns", "1", "0"),
    ):
        if _kernel(f"sys/{name}").strip() == bad:
            key = name.replace("/", ".")
            return f"the sysctl {key} is {bad}", f"sysctl -w {key}={setting}"
    if "overlay" not in _kernel("filesystems").split():
        return "the kernel has no overlay file system", "modprobe overlay"
    return (
        "this kernel or container does not let them have namespaces",
        "allow user namespaces and mounts in them: in a unit no RestrictNamespaces=, in a "
        "container a seccomp profile that has unshare, mount and pivot_root",
    )


def _kernel(name: str) -> str:
    try:
        return Path("/proc", name).read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""


def stores(store: Path) -> list[Path]:
    """The directories of objects that a repository reads: its own, and those that it borrows."""
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


Objects = Mapping[str, tuple[int, bytes]]
"""Objects by id (hex): libgit2's number of the kind, and the content."""
_KINDS = {1: b"commit", 2: b"tree", 3: b"blob", 4: b"tag"}
_MOST_OBJECTS = 20_000
"""Own objects after which a tree is made anew, without what former candidates left."""
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


class Slot(Struct, frozen=True):
    """A directory of our own for one hook at a time, and the descriptor that keeps it ours."""

    path: Path
    lock: int

    @property
    def room(self) -> Path:
        return self.path / "room"


@contextmanager
def slot(root: Path, tree: str = "") -> Iterator[Slot]:
    """A directory below `root`, the one whose work tree shows `tree` (hex) if that one is free."""
    root.mkdir(parents=True, exist_ok=True)
    known = sorted(int(name) for name in os.listdir(root) if name.isdigit())
    known.sort(key=lambda number: _shown(root / str(number)).get("tree") != tree)
    for number in (*known, *range(max(known, default=-1) + 1, 1 << 16)):
        place = root / str(number)
        place.mkdir(exist_ok=True)
        with files.opened(place / "lock", os.O_RDWR | os.O_CREAT, mode=0o600) as lock:
            if files.flock(lock):
                remove(place / "room")
                (place / "room").mkdir()
                yield Slot(place, lock)
                return
    raise DiskFault(f"no directory for a hook can be made in {root}")


def remove(path: Path) -> None:
    """Remove a directory with all that is in it, whatever the modes of what is there."""

    if path.is_symlink() or path.is_file():
        path.unlink()
    shutil.rmtree(path, ignore_errors=True)
    for where, _, _ in os.walk(path):
        os.chmod(where, 0o700)
    shutil.rmtree(path, ignore_errors=True)
    if path.exists():
        raise DiskFault(f"{path} cannot be removed", "remove it by hand")


def _shown(place: Path) -> dict[str, object]:
    try:
        shown = json.loads((place / "shown").read_bytes())
    except (OSError, ValueError):
        return {}
    return shown if isinstance(shown, dict) and shown.get("boot") == files.boot() else {}


class WarmTree(Struct, frozen=True):
    """The work tree in a slot; `store` is the directory of the real repository's objects."""

    place: Path
    store: Path

    @property
    def tree(self) -> Path:
        return self.place / "tree"

    @property
    def gitdir(self) -> Path:
        return self.tree / ".git"

    def show(self, tree: str, head: str, objects: Objects) -> None:
        """Have the files and the index of `tree`, and HEAD at the commit `head`."""
        shown = _shown(self.place)
        (self.place / "shown").unlink(missing_ok=True)
        written, now = int(str(shown.get("objects", 0))), str(shown.get("tree", ""))
        if not now or written > _MOST_OBJECTS:
            remove(self.tree)
            self._init()
            now, written = "", 0
        written += self._write(objects)
        (self.gitdir / "HEAD").write_text(f"{head}\n", encoding="ascii")
        if now and now != tree:
            with suppress(RepositoryFault):
                self._ask("read-tree", "-m", "-u", now, tree)
                now = tree
        if now != tree:
            self._ask("read-tree", "--reset", "-u", tree)
        self._mark(tree, written)

    def _mark(self, tree: str, written: int) -> None:
        known = {"tree": tree, "objects": written, "boot": files.boot()}
        (self.place / "shown").write_text(json.dumps(known), encoding="ascii")

    def _init(self) -> None:
        info = self.gitdir / "objects/info"
        info.mkdir(parents=True)
        (self.gitdir / "refs").mkdir()
        (info / "alternates").write_bytes(os.fsencode(self.store) + b"\n")
        (self.gitdir / "config").write_text(_CONFIG, encoding="ascii")
        shallow = self.store.parent / "shallow"
        if shallow.exists():
            shutil.copy(shallow, self.gitdir)

    def _write(self, objects: Objects) -> int:
        """Write what is not there yet; how many objects that were."""
        written = 0
        for oid, (kind, data) in objects.items():
            path = self.gitdir / "objects" / oid[:2] / oid[2:]
            if not path.exists():
                path.parent.mkdir(exist_ok=True)
                loose = zlib.compress(b"%s %d\0%s" % (_KINDS[kind], len(data), data), 1)
                files.replace(path, loose, via=path.with_suffix(".new"))
                written += 1
        return written

    def lend(self) -> None:
        """Say that a hook may write into the tree from now on; `restore` takes it back."""
        shutil.copyfile(self.gitdir / "index", self.place / "index")
        (self.place / "shown").unlink(missing_ok=True)

    def restore(self, tree: str, head: str, objects: Objects) -> None:
        """Have the tree again as it was when it was lent, whatever was done to it."""
        try:
            remove(self.gitdir)
            self._init()
            written = self._write(objects)
            (self.gitdir / "HEAD").write_text(f"{head}\n", encoding="ascii")
            (self.place / "index").rename(self.gitdir / "index")
            self._ask("read-tree", "--reset", "-u", tree)
            self._ask("clean", "-ffdxq")
            if not self._ask("status", "--porcelain", "--ignored", "-uall"):
                self._mark(tree, written)
        except (OSError, Fault):
            remove(self.tree)

    def changed(self, jail: int | None) -> list[str]:
        """The paths of files that differ from the index now, and of new ones that git does not
        ignore, as the process `jail` sees them."""
        kept = self.place / "index"
        options = ("--porcelain", "-z", "--no-renames", "-uall", "--ignore-submodules=all")
        status = self._ask("status", *options, index=kept if kept.exists() else None, jail=jail)
        return sorted(os.fsdecode(item[3:]) for item in status.split(b"\0") if item)

    def _ask(self, *words: str, index: Path | None = None, jail: int | None = None) -> bytes:
        """What git prints here, or as the process `jail` sees the tree, on another index if need
        be."""
        gitdir = self.gitdir if jail is None else self.place / "room/git"
        enter = (*keeper.COMMAND, "enter", str(jail), str(self.tree))
        return Git(
            sealed_environment(),
            (*QUIET, f"--git-dir={gitdir}", f"--work-tree={self.tree}"),
            directory=self.place,
            place=self.tree,
            launcher=() if jail is None else enter,
        ).output(*words, index=index)
