"""Run a hook in bubblewrap's sandbox, or as a plain process below a `supervisor`.

The sandbox is made in two steps.  An outer `bwrap` gives the daemon's own shell a file system in
memory, of limited size; the shell lays it over the work tree (`mount -t overlay`).  An inner one
then starts the hook in namespaces of its own, without capabilities, with an empty root into which
the places of `mounts` are bound read-only.  So nothing that a hook writes reaches a disk, and the
daemon reads what it made of the tree through the shell, which stays until it is killed.

All processes of a sandbox end with the first one, which ends with the thread that started it.
"""

from __future__ import annotations

import os
import re
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from itertools import chain
from pathlib import Path
from threading import Event
from time import monotonic

from msgspec import Struct

from patchq.core.text.quote import decode, visible
from patchq.gate.errors import Cancelled, HookFault
from patchq.gate.hooks import mounts, supervisor

MOST_OUTPUT = 64 * 1024  # bytes of a hook's output that are kept, the last ones
_LOOK_SECONDS = 0.05
_GRACE_SECONDS = 20.0
# Set in the daemon's environment, hooks run as plain processes everywhere.
NO_SANDBOX = "PATCHQ_NO_SANDBOX"
MEMORY = "PATCHQ_HOOK_MEMORY"  # the variable for the MiB that a hook in the sandbox may write

# Empty directories in that memory, and where the hook sees them.
_DIRECTORIES = {"tmp": "/tmp", "vartmp": "/var/tmp", "run": "/run", "shm": "/dev/shm"}
# The kernel asks for no capability there, only for the user id.
_PROC_WRITABLE_BY_ROOT = ("/proc/sys", "/proc/sysrq-trigger", "/proc/irq")
_OVERLAY = (
    "mount -t overlay -o nosuid,nodev,userxattr,lowerdir=tree,upperdir=room/upper,workdir=room/work"
    " overlay room/tree || exit\n"
)
_OUTER = 'bwrap "$@"; echo "exit $?" >&2; kill -STOP $$'
# The first process of the hook's namespace, with whose end the kernel kills all others.
_INNER = 'exec 2>&1; ulimit -c 0; { ulimit -u 4096 || ulimit -p 4096; } 2>/dev/null; "$@"; exit $?'


# Settings of the kernel that keep namespaces from people, each with the value that gives them.
_SYSCTLS = (
    ("user/max_user_namespaces", "0", "15000"),
    ("kernel/unprivileged_userns_clone", "0", "1"),
    ("kernel/apparmor_restrict_unprivileged_userns", "1", "0"),
)
_DENIED = (
    "this kernel or container denies them namespaces",
    "allow user namespaces and mounts in them: in a unit no RestrictNamespaces=, in a "
    "container a seccomp profile that has unshare, mount and pivot_root, and a whole /proc",
)


class Job(Struct, frozen=True):
    """One process to run: `argv` in the directory `where`, with `env` and nothing else.

    `room` is a directory of its own with a directory `home`, and `lock` is a descriptor
    that stays open until nothing of the hook runs.  `tree` is the work tree that it may write, if
    any, beside the room.  `shown` is what it sees besides, as `mounts.seen` gives it.
    """

    argv: Sequence[str]
    env: Mapping[str, str]
    where: Path
    room: Path
    lock: int
    timeout: float
    sandboxed: bool
    shown: Sequence[str] = ()
    tree: Path | None = None
    stdin: bytes = b""
    network: bool = False


class HookExit(Struct, frozen=True):
    """The end of a hook: its exit code, time, output and work tree.

    The code is 128 + n for an end by signal n, and None for a hook that was stopped after its time.
    The output is its end, without hidden characters.  `tree` is the work tree as the hook left it;
    `first` is the process that sees it there (None: all do)."""

    code: int | None
    seconds: float
    output: str
    tree: Path = Path()
    first: int | None = None

    @property
    def root(self) -> str:
        return f"/proc/{self.first}/root" if self.first else ""

    @property
    def enter(self) -> tuple[str, ...]:
        if not self.first:
            return ()
        users = ("--user", "--preserve-credentials") if _has_user_namespaces() else ()
        return ("nsenter", *users, "--mount", "--target", str(self.first))


# The process, and the first one of its sandbox, if it has one.
_Started = tuple[subprocess.Popen[bytes], int | None]


@contextmanager
def run(job: Job, stop: Event) -> Iterator[HookExit]:
    """Run the job to its end, and open the files that it wrote.

    They can be read inside the block.  Raises `Cancelled` once `stop` is set, and `HookFault` if it
    cannot be started.
    """
    with tempfile.TemporaryFile() as stdin:
        stdin.write(job.stdin)
        stdin.seek(0)
        try:
            process, first = (_sandboxed if job.sandboxed else _plain)(job, stdin.fileno())
        except OSError as error:
            raise HookFault(f"no process can be started for a hook: {error.strerror}") from None
    with process:
        try:
            yield _watched(process, first, job, stop)
        finally:
            _end(process, first)


def _plain(job: Job, stdin: int) -> _Started:
    user = _user(os.getuid(), os.getgid())
    offline = ("bwrap", *user, "--unshare-net", "--dev-bind", "/", "/") if not job.network else ()
    command = (*supervisor.COMMAND, *offline, *job.argv)
    return _started(command, job, stdin, job.env, job.where), None


def _sandboxed(job: Job, stdin: int) -> _Started:
    heard, info = os.pipe()
    opened = [os.memfd_create("bwrap"), info]
    try:
        os.write(opened[0], b"".join(os.fsencode(word) + b"\0" for word in _inner(job)))
        os.lseek(opened[0], 0, os.SEEK_SET)
        command = (*_outer(job, info), "--args", str(opened[0]), "/bin/sh", "-c", _INNER, "sh")
        env = {"PATH": os.environ.get("PATH", os.defpath)}
        process = _started((*command, *job.argv), job, stdin, env, job.room.parent, *opened)
    finally:
        for fd in opened:
            os.close(fd)
        with open(heard, "rb") as file:
            first = re.search(rb'"child-pid": (\d+)', file.read())
    return process, int(first[1]) if first else None


def _started(
    argv: Sequence[str], job: Job, stdin: int, env: Mapping[str, str], where: Path, *fds: int
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        argv,
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=dict(env),
        cwd=where,
        pass_fds=(job.lock, *fds),
        start_new_session=True,
    )


def _outer(job: Job, info: int) -> list[str]:
    room = str(job.room)
    upper = f"{job.tree.stat().st_mode & 0o7777:o}" if job.tree else "755"
    modes = {"tmp": "1777", "vartmp": "1777", "upper": upper}
    names = ("upper", "work", "tree", "own/home", "own/empty", *_DIRECTORIES)
    made = [("--perms", modes.get(name, "755"), "--dir", f"{room}/{name}") for name in names]
    return [
        *("bwrap", *_user(0, 0), "--unshare-pid", "--cap-add", "ALL", "--die-with-parent"),
        *("--sync-fd", str(job.lock), "--info-fd", str(info), "--dev-bind", "/", "/"),
        *("--perms", "0700", "--size", str(_memory() << 20), "--tmpfs", room),
        *chain(*made),
        *("/bin/sh", "-c", _OVERLAY * bool(job.tree) + _OUTER, "sh"),
    ]


def _memory() -> int:
    size = os.environ.get(MEMORY, "2048")
    return int(size) if size.isdecimal() else 0


def _inner(job: Job) -> list[str]:
    room, (shown, hidden) = str(job.room), mounts.binds(job.shown)
    read_only = [("--ro-bind-try", place, place) for place in _PROC_WRITABLE_BY_ROOT]
    own = [("--bind", f"{room}/{name}", place) for name, place in _DIRECTORIES.items()]
    closed = [("--remount-ro", place) for place in (*hidden, "/")]
    variables = [("--setenv", name, value) for name, value in job.env.items()]
    return [
        *("--unshare-all", *_user(os.getuid(), os.getgid(), "--disable-userns")),
        *("--die-with-parent", "--new-session", "--as-pid-1", "--cap-drop", "ALL"),
        *(["--share-net"] if job.network else []),
        *("--proc", "/proc", *chain(*read_only), "--dev", "/dev", *chain(*own)),
        *("--remount-ro", "/dev", "--symlink", "/run", "/var/run", *shown),
        *(["--bind", f"{room}/tree", str(job.tree)] if job.tree else []),
        *("--bind", f"{room}/own", room, *chain(*closed)),
        *("--chdir", str(job.where), "--clearenv", *chain(*variables)),
    ]


def _has_user_namespaces() -> bool:
    return _kernel("sys/user/max_user_namespaces").strip() not in ("", "0")


def _user(user: int, group: int, *more: str) -> tuple[str, ...]:
    """Return bwrap's options for a user namespace, if the system has them.

    Without one, only root gets the other namespaces.
    """
    if not _has_user_namespaces():
        return ()
    return ("--unshare-user", *more, "--uid", str(user), "--gid", str(group))


def _watched(
    process: subprocess.Popen[bytes], first: int | None, job: Job, stop: Event
) -> HookExit:
    began, code = monotonic(), None
    output, status = bytearray(), bytearray()
    assert process.stdout
    assert process.stderr
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ, output)
        selector.register(process.stderr, selectors.EVENT_READ, status)
        while code is None and (left := began + job.timeout - monotonic()) > 0:
            for key, _ in selector.select(min(left, _LOOK_SECONDS)):
                part = os.read(key.fd, MOST_OUTPUT)
                key.data.extend(part)
                if key.data is status:
                    code = _code(process, output, status, ended=not part)
                elif not part:
                    selector.unregister(process.stdout)
            if stop.is_set():
                raise Cancelled
            del output[: -MOST_OUTPUT - 1]  # with one more, to know that there was more
        seconds = monotonic() - began
        selector.unregister(process.stderr)
        while (
            code is not None  # one that was not ended may go on without an end
            and selector.get_map()
            and selector.select(0)
            and (part := os.read(process.stdout.fileno(), MOST_OUTPUT))
        ):
            output += part
    text = "…\n" if len(output) > MOST_OUTPUT else ""
    text += visible(decode(bytes(output[-MOST_OUTPUT:])), keep="\n\t")
    tree = (job.room / "tree" if first else job.tree) or Path()
    return HookExit(code, round(seconds, 3), text, tree, first)


def _code(
    process: subprocess.Popen[bytes], output: bytearray, status: bytearray, *, ended: bool
) -> int | None:
    """Return the exit code once it is known; `ended`: no more status comes.

    The status is standard error of `_OUTER`, or of a supervisor, which gives its own faults alone.
    """
    found = re.search(rb"^exit (\d+)\n", status, re.M)
    if not (found or ended):
        return None
    if complaint := re.sub(rb"exit \d+\n", b"", status):
        output += b"the hook cannot be started: " + complaint
        return supervisor.CANNOT_START
    code = int(found[1]) if found else process.wait(_GRACE_SECONDS)
    return code if code >= 0 else 128 - code


def _end(process: subprocess.Popen[bytes], first: int | None) -> None:
    if first is None:
        process.terminate()
    elif process.poll() is None:
        with suppress(ProcessLookupError):
            os.kill(first, signal.SIGKILL)
    try:
        process.wait(_GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()


def can_sandbox(root: Path) -> bool:
    """Return True if hooks can be sandboxed below the directory."""
    there = not os.environ.get(NO_SANDBOX) and shutil.which("bwrap") and _memory()
    return bool(there) and _sandboxes(root)


@cache
def _sandboxes(root: Path) -> bool:
    """Return True if a sandbox works here, as one trial shows.

    A directory that is removed and made again has to be empty then, the one below the overlay
    untouched, and its neighbour hidden.
    """
    root.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="probe-", dir=root) as name:
        own = Path(name)
        for path in (own / "tree/a/b", own / "aside"):
            path.mkdir(parents=True)
        look = 'rm -r a && mkdir a && test -z "$(ls a)" -a ! -e ../aside'
        seen = mounts.seen(os.defpath)
        end = try_out(own, ("/bin/sh", "-c", look), os.defpath, seen, sandboxed=True)
        return end.code == 0 and (own / "tree/a/b").exists()


def try_out(
    own: Path, argv: Sequence[str], path: str, shown: Sequence[str], *, sandboxed: bool
) -> HookExit:
    """Run a command as a hook, in a work tree without files in `own`."""
    room, tree = own / "room", own / "tree"
    for place in (room / "home", tree / ".git"):
        place.mkdir(parents=True, exist_ok=True)
    with open(os.devnull) as nothing:
        job = Job(
            argv=argv,
            env={"PATH": path, "LANG": "C.UTF-8", "HOME": str(room / "home")},
            where=tree,
            room=room,
            lock=nothing.fileno(),
            timeout=_GRACE_SECONDS,
            sandboxed=sandboxed,
            shown=shown,
            tree=tree,
            network=not sandboxed,
        )
        with run(job, Event()) as end:
            return end


def no_sandbox() -> tuple[str, str]:
    """Return the reason why hooks cannot be sandboxed, as a clause, and the cure."""
    kernel = (
        (
            _kernel(f"sys/{name}").strip() == bad,
            f"the sysctl {(key := name.replace('/', '.'))} is {bad}",
            f"sysctl -w {key}={good}",
        )
        for name, bad, good in _SYSCTLS
    )
    reasons = (
        (sys.platform != "linux", f"{sys.platform} has no bubblewrap", "run patchq on Linux"),
        (bool(os.environ.get(NO_SANDBOX)), f"{NO_SANDBOX} is set", f"unset {NO_SANDBOX}"),
        (not _memory(), f"{MEMORY} is not a number of MiB", f"unset {MEMORY}"),
        (not shutil.which("bwrap"), "`bwrap` is not on the PATH", "apt install bubblewrap"),
        *kernel,
        (
            "overlay" not in _kernel("filesystems").split(),
            "the kernel has no overlay file system",
            "modprobe overlay",
        ),
    )
    return next(((why, cure) for holds, why, cure in reasons if holds), _DENIED)


def _kernel(name: str) -> str:
    try:
        return Path("/proc", name).read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""
