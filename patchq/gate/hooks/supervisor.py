"""The keeper of one hook's processes, a program of its own: `python -I -S keeper.py …`.

A hook may fork, detach itself, ignore signals or outlive whoever started it.  So the daemon never
starts one itself: it starts a keeper, which says on a pipe how the hook ended, ends everything
that the hook left running, and waits to be let go.  A second pipe is its life line: when the daemon
closes its end, or dies, the keeper ends everything and itself.

Jailed, the hook runs in namespaces of its own (Linux): the kernel kills all of them with their
first process.  Its file system is an empty one in memory, of limited size, with what the daemon
names bound into it, to be read only; its work tree is an overlay there.  Everything else of the
machine's files is not hidden from it but not there.  There is no network but the loopback, unless
it may have one.  Else it is a plain child, with or without a network, of a keeper which adopts
orphans, and so finds and kills what detached itself, too, where Linux lets it.
"""

from __future__ import annotations

import ctypes
import os
import resource
import select
import signal
import sys
from contextlib import ExitStack, suppress

COMMAND = (sys.executable, "-I", "-S", __file__)
"""What starts this program."""
CANNOT_START = 126
ROOM_NAME, ROOM = "PATCHQ_HOOK_ROOM", "2g"
"""What a jailed hook may write, into memory, in the words of tmpfs; the variable overrides it."""
_MOST_PROCESSES = 4096  # of a user but root, whom the kernel lets have any number

_OWN = {"/tmp": 0o1777, "/var/tmp": 0o1777, "/run": 0o755}
"""Empty directories that a jailed hook may write to, with their modes, beside its work tree and
its room."""
_ROOM = ("home", "empty", "git")
"""Directories in its room: its home, an empty one, and the git directory as it was."""
_MEMORY = ("root", "layers", "room", "dev", "dev/shm", "dev/pts", "root/.machine")
"""Directories of the file system in memory, of which the jail is made."""
_MACHINE = "/.machine"
"""Where the machine's own root stands while the jail is built."""
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
_DEVICE_LINKS = {"fd": "", "stdin": "/0", "stdout": "/1", "stderr": "/2"}
"""Links in `/dev`, to what is below `/proc/self/fd`."""

# From linux/sched.h, sys/mount.h, linux/prctl.h and sys/socket.h.
_NEWNS, _NEWIPC, _NEWUSER, _NEWPID, _NEWNET = 1 << 17, 1 << 27, 1 << 28, 1 << 29, 1 << 30
_JAIL = _NEWNS | _NEWPID | _NEWIPC
_MS_RDONLY, _MS_NOSUID, _MS_NODEV, _MS_NOEXEC = 1, 2, 4, 8
_MS_BIND, _MS_REC, _MS_PRIVATE = 1 << 12, 1 << 14, 1 << 18
_MNT_DETACH = 2
_PR_SET_PDEATHSIG, _PR_CAPBSET_DROP, _PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS = 1, 24, 36, 38
_SYS_MOUNT_SETATTR, _AT_FDCWD, _AT_RECURSIVE = 442, -100, 0x8000
_SYS_KEYCTL = {"x86_64": 250, "aarch64": 219, "riscv64": 219}
_JOIN_SESSION_KEYRING = 1
_SIOCSIFFLAGS, _IFF_UP = 0x8914, 1

_libc = ctypes.CDLL(None, use_errno=True)


def main(
    mode: str, fds: str, size: str, room: str, tree: str, where: str, count: str, *words: str
) -> None:
    """Run a command in the directory `where`.

    `mode` is `plain` or `jailed`, with `,offline` for no network.  `fds` are three descriptors: two
    lines go to the first, the pid (of the jail's first process) and the exit code, 128 + n for a
    signal; the second is the life line; the third only stays open.  `room` is an empty directory
    for what the hook writes, `size` at most; `tree` its work tree, or empty.  The first `count`
    of the words are what a jailed hook sees: `+PATH` is shown, `-PATH` hidden again; the others are
    the command.
    """
    sight, argv = words[: int(count)], words[int(count) :]
    jailed, offline = mode.startswith("jailed"), mode.endswith("offline")
    tell, line, lock = map(int, fds.split(","))
    for fd in (tell, line, lock):
        os.set_inheritable(fd, False)
    own, result = os.pipe()
    try:
        if jailed or offline:
            _unshare(_JAIL * jailed | _NEWNET * offline)
        if offline:
            _loopback()
        if not jailed and sys.platform == "linux":
            _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        child = _fork(tell)
    except OSError as error:
        _refuse(error)
        child = 0
    if not child:
        os.close(own)
        if jailed:
            _first(result, line, (room, size, tree, sight), where, argv)
        _become(where, argv)
    os.close(result)
    end, woken = os.pipe()
    os.set_blocking(woken, False)
    signal.set_wakeup_fd(woken)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    if jailed:
        _wait(line, own, end)
        code = os.read(own, 16) if _wait(own, at_once=True) else b""
        code = code or b"%d\n" % (128 + signal.SIGKILL)
    else:
        while not _ended(child) and line not in _wait(line, end):
            os.read(end, 64)
        code = b"%d\n" % _end_all(child)
    with suppress(BrokenPipeError):
        os.write(tell, code)
    _wait(line)
    with suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def enter(pid: str, where: str, *argv: str) -> None:
    """Become the daemon's own program `argv`, which sees the files as the jail of `pid` does."""
    for space in [os.open(f"/proc/{pid}/ns/{name}", os.O_RDONLY) for name in ("user", "mnt")]:
        _checked(_libc.setns(space, 0), "setns")
    os.chdir(where)
    os.execvp(argv[0], argv)


def _wait(*fds: int, at_once: bool = False) -> list[int]:
    """Those of the descriptors that have something to say, or are closed at the other end."""
    poll = select.poll()
    for fd in fds:
        poll.register(fd, select.POLLIN)
    return [fd for fd, _ in poll.poll(0 if at_once else None)]


def _fork(tell: int) -> int:
    """A child, which goes on once its pid is told: if it kills its keeper, it is found by that."""
    told, go = os.pipe()
    child = os.fork()
    if child:
        os.close(told)
        os.write(tell, b"%d\n" % child)
        with suppress(BrokenPipeError):
            os.write(go, b".")
        os.close(go)
        return child
    os.close(go)
    if not os.read(told, 1):
        os._exit(1)
    os.close(told)
    return 0


def _refuse(error: OSError) -> None:
    os.write(2, f"the hook cannot be started: {error}\n".encode())
    os._exit(CANNOT_START)


def _become(where: str, argv: tuple[str, ...]) -> None:
    """Become the hook, the leader of a session and of a process group."""
    try:
        os.setsid()
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.chdir(where)
        os.execvp(argv[0], argv)
    except OSError as error:
        _refuse(error)


# ---------------------------------------------------------------- the end


def _exit_code(status: int) -> int:
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def _ended(child: int) -> bool:
    """Whether the child ended; it is left for `_end_all` to be reaped, so that its number and its
    group's stay taken."""
    return os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _end_all(child: int) -> int:
    """Kill the child's group and whatever else of its descendants is there; its exit code."""
    code = 128 + signal.SIGKILL
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)
    with suppress(ChildProcessError):
        while True:
            for pid in _children():
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            pid, status = os.waitpid(-1, 0)
            code = _exit_code(status) if pid == child else code
    return code


def _children() -> list[int]:
    try:
        with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as file:
            return [int(word) for word in file.read().split()]
    except OSError:
        return []


# ---------------------------------------------------------------- the jail


def _first(
    result: int,
    life: int,
    places: tuple[str, str, str, tuple[str, ...]],
    where: str,
    argv: tuple[str, ...],
) -> None:
    """The first process of the jail: builds it, starts the hook in it, and says how that ended
    when nothing else is left running."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getpid() != 1 or _wait(life, at_once=True):
        os._exit(1)  # the keeper, or the daemon, died before that
    try:
        _build(*places)
        hook = os.fork()
        if not hook:
            _drop_privileges()
            _become(where, argv)
    except OSError as error:
        os.write(2, f"the hook's jail cannot be built: {error}\n".encode())
        os.write(result, b"%d\n" % CANNOT_START)
        os._exit(1)
    pid = 0
    while pid != hook:
        pid, status = os.wait()
    with suppress(OSError):
        os.kill(-1, signal.SIGKILL)
    with suppress(ChildProcessError):
        while True:
            os.wait()
    os.write(result, b"%d\n" % _exit_code(status))
    while True:
        signal.pause()


def _unshare(spaces: int) -> None:
    """Namespaces of our own, in which we are who we were, with every capability."""
    user, group = os.getuid(), os.getgid()
    _checked(_libc.unshare(_NEWUSER | spaces), "unshare")
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{user} {user} 1"),
        ("gid_map", f"{group} {group} 1"),
    ):
        with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
            file.write(text)


def _build(room: str, size: str, tree: str, sight: tuple[str, ...]) -> None:
    """An empty root in memory, with what the hook may see read-only, and what it may write."""
    _mount(None, "/", None, _MS_REC | _MS_PRIVATE)
    _set_read_only("/", _AT_RECURSIVE)
    with ExitStack() as held:
        lower = _held(tree, held) if tree else ""
        _mount("tmpfs", room, "tmpfs", _MS_NOSUID | _MS_NODEV, f"size={size},mode=700")
        own = _held(room, held)
        for name in (*_MEMORY, *(f"room/{name}" for name in _ROOM)):
            os.mkdir(f"{own}/{name}")
        os.chmod(f"{own}/root", 0o755)
        seen = _real(sight)
        _mount(f"{own}/root", f"{own}/root", None, _MS_BIND)
        _change_root(_held(f"{own}/root", held))
        _processes()
        _devices(f"{own}/dev")
        for place, mode in _OWN.items():
            _empty(place, f"{own}/layers", mode)
        os.symlink("/run", "/var/run")
        hidden = [_show(*place, f"{own}/layers") for place in seen]
        if tree:
            os.makedirs(tree, exist_ok=True)
            _overlay(lower, tree, f"{own}/layers")
        os.makedirs(room, exist_ok=True)
        _mount(f"{own}/room", room, None, _MS_BIND)
        if tree:
            _mount(f"{lower}/.git", f"{room}/git", None, _MS_BIND)
    _checked(_libc.umount2(_MACHINE.encode(), _MNT_DETACH), "umount")
    os.rmdir(_MACHINE)
    for path in ("/", *filter(None, hidden)):
        _set_read_only(path)


def _change_root(root: str) -> None:
    _checked(_libc.pivot_root(root.encode(), f"{root}{_MACHINE}".encode()), "pivot_root")
    os.chdir("/")


def _set_read_only(path: str, how: int = 0) -> None:
    attributes = (ctypes.c_uint64 * 4)(_MS_RDONLY | _MS_NOSUID, 0, 0, 0)
    size = ctypes.sizeof(attributes)
    place = (_AT_FDCWD, path.encode(), how, ctypes.byref(attributes), size)
    _checked(_libc.syscall(_SYS_MOUNT_SETATTR, *place), "mount_setattr")


def _real(sight: tuple[str, ...]) -> list[tuple[str, str, str]]:
    """What is shown and hidden: its sign, its name, and where it really is; what is above others
    first.  What is not there is left out."""
    found = {(word[0], word[1:], os.path.realpath(word[1:])) for word in sight}
    there = [place for place in found if os.path.exists(place[2])]
    return sorted(there, key=lambda place: (place[2].count("/"), place))


def _show(sign: str, name: str, path: str, layers: str) -> str:
    """Show or hide what the machine has at the path, and show it under its other name as well; the
    path if an empty directory of our own is there now."""
    source, empty = f"{_MACHINE}{path}", ""
    if os.path.isdir(source):
        os.makedirs(path, exist_ok=True)
        if sign == "-":
            empty = _empty(path, layers, 0o755)
        else:
            _mount(source, path, None, _MS_BIND | _MS_REC)
    else:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if not os.path.exists(path):
            os.close(os.open(path, os.O_CREAT | os.O_CLOEXEC, 0o644))
        _mount(source if sign == "+" else "/dev/null", path, None, _MS_BIND)
    if name != path and not os.path.lexists(name):
        os.makedirs(os.path.dirname(name), exist_ok=True)
        os.symlink(path, name)
    return empty


def _empty(place: str, layers: str, mode: int) -> str:
    """Have an empty directory of our own at the place."""
    own = f"{layers}/{len(os.listdir(layers))}"
    os.mkdir(own)
    os.chmod(own, mode)
    os.makedirs(place, exist_ok=True)
    _mount(own, place, None, _MS_BIND)
    return place


def _processes() -> None:
    """A `/proc` of our own; where a container forbids that, the machine's, which shows the names of
    other processes and nothing of what they hold."""
    os.mkdir("/proc")
    try:
        _mount("proc", "/proc", "proc", _MS_RDONLY | _MS_NOSUID | _MS_NODEV | _MS_NOEXEC)
    except OSError:
        _mount(f"{_MACHINE}/proc", "/proc", None, _MS_BIND | _MS_REC)


def _held(path: str, until: ExitStack) -> str:
    """A name of the directory which stays, whatever is mounted over it."""
    fd = os.open(path, os.O_PATH | os.O_DIRECTORY)
    until.callback(os.close, fd)
    return f"/proc/self/fd/{fd}"


def _overlay(lower: str, place: str, layers: str) -> None:
    own = f"{layers}/{len(os.listdir(layers))}"
    for name in (own, f"{own}/upper", f"{own}/work"):
        os.mkdir(name)
    os.chmod(f"{own}/upper", os.stat(lower).st_mode & 0o7777)
    options = f"lowerdir={lower},upperdir={own}/upper,workdir={own}/work,userxattr"
    _mount("overlay", place, "overlay", _MS_NOSUID | _MS_NODEV, options)


def _devices(own: str) -> None:
    """A `/dev` that holds no disk."""
    for name in _DEVICES:
        with open(f"{own}/{name}", "w", encoding="ascii"):
            _mount(f"{_MACHINE}/dev/{name}", f"{own}/{name}", None, _MS_BIND)
    for name, target in _DEVICE_LINKS.items():
        os.symlink(f"/proc/self/fd{target}", f"{own}/{name}")
    with suppress(OSError):
        _mount(
            "devpts", f"{own}/pts", "devpts", _MS_NOSUID | _MS_NOEXEC, "newinstance,ptmxmode=666"
        )
        os.symlink("pts/ptmx", f"{own}/ptmx")
    os.mkdir("/dev")
    _mount(own, "/dev", None, _MS_BIND | _MS_REC)


def _loopback() -> None:
    import fcntl
    import socket
    import struct

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sh22x", b"lo", _IFF_UP))


def _drop_privileges() -> None:
    """Nothing that is executed from here on gets a capability, as root neither, or a key of the
    daemon's session."""
    if number := _SYS_KEYCTL.get(os.uname().machine):
        _libc.syscall(number, _JOIN_SESSION_KEYRING, None)
    _checked(_libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "prctl")
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NPROC, (_MOST_PROCESSES, _MOST_PROCESSES))
    number = 0
    while _libc.prctl(_PR_CAPBSET_DROP, number, 0, 0, 0) == 0:
        number += 1


def _mount(source: str | None, target: str, kind: str | None, flags: int, data: str = "") -> None:
    words = [word.encode() if word else None for word in (source, target, kind)]
    _checked(_libc.mount(*words, ctypes.c_ulong(flags), data.encode() or None), f"mount {target}")


def _checked(result: int, what: str) -> None:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


if __name__ == "__main__":
    (enter if sys.argv[1] == "enter" else main)(*sys.argv[2 if sys.argv[1] == "enter" else 1 :])
