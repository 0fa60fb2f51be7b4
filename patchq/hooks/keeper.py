"""The keeper of one hook's processes, a program of its own: `python -I -S keeper.py …`.

A hook may fork, detach itself, ignore signals or outlive whoever started it.  So the daemon never
starts one itself: it starts a keeper, which says on a pipe how the hook ended, ends everything
that the hook left running, and waits to be let go.  A second pipe is its life line: when the daemon
closes its end, or dies, the keeper ends everything and itself.

Jailed, the hook runs in namespaces of its own (Linux): the kernel kills all of them with their
first process; what it sees of the file system can be read only, but for overlays in memory of
limited size on its work tree, the temporary directories and its home; there is no network but the
loopback, unless it may have one.  Else it is a plain child, with or without a network, of a keeper
which adopts orphans, and so finds and kills what detached itself, too, where Linux lets it.
"""

from __future__ import annotations

import ctypes
import os
import resource
import select
import signal
import sys
from contextlib import suppress

COMMAND = (sys.executable, "-I", "-S", __file__)
"""What starts this program."""
CANNOT_START = 126
ROOM_NAME, ROOM = "PATCHQ_HOOK_ROOM", "2g"
"""What a jailed hook may write, into memory, in the words of tmpfs; the variable overrides it."""
_MOST_PROCESSES = 4096  # of a user but root, whom the kernel lets have any number

# What a jailed hook sees: all that the daemon does, to be read only, but for these.
_WRITABLE = ("/tmp", "/var/tmp", "/run")
"""Directories of which it has overlays of its own, beside its work tree and its room."""
_ROOM = ("home", "empty", "layers", "git", "dev", "dev/shm", "dev/pts")
"""Directories in its room: its home, an empty one, and what others are made of."""
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
_DEVICE_LINKS = {"fd": "", "stdin": "/0", "stdout": "/1", "stderr": "/2"}
"""Links in `/dev`, to what is below `/proc/self/fd`."""

# From linux/sched.h, sys/mount.h, linux/prctl.h and sys/socket.h.
_NEWNS, _NEWIPC, _NEWUSER, _NEWPID, _NEWNET = 1 << 17, 1 << 27, 1 << 28, 1 << 29, 1 << 30
_JAIL = _NEWNS | _NEWPID | _NEWIPC
_MS_RDONLY, _MS_NOSUID, _MS_NODEV, _MS_NOEXEC = 1, 2, 4, 8
_MS_BIND, _MS_REC, _MS_PRIVATE = 1 << 12, 1 << 14, 1 << 18
_PR_SET_PDEATHSIG, _PR_CAPBSET_DROP, _PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS = 1, 24, 36, 38
_SYS_MOUNT_SETATTR, _AT_FDCWD, _AT_RECURSIVE = 442, -100, 0x8000
_SIOCSIFFLAGS, _IFF_UP = 0x8914, 1

_libc = ctypes.CDLL(None, use_errno=True)


def main(mode: str, fds: str, size: str, room: str, tree: str, where: str, *argv: str) -> None:
    """Run `argv` in the directory `where`.

    `mode` is `plain` or `jailed`, with `,offline` for no network.  `fds` are three descriptors: two
    lines go to the first, the pid (of the jail's first process) and the exit code, 128 + n for a
    signal; the second is the life line; the third only stays open.  `room` is an empty directory
    for what the hook writes, `size` at most; `tree` its work tree, or empty.
    """
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
        child = os.fork()
    except OSError as error:
        _refuse(error)
        child = 0
    if not child:
        os.close(own)
        if jailed:
            _first(result, line, (room, size, tree), where, argv)
        _become(where, argv)
    os.close(result)
    os.write(tell, b"%d\n" % child)
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


def _refuse(error: OSError) -> None:
    os.write(2, f"the hook cannot be started: {error}\n".encode())
    os._exit(CANNOT_START)


def _become(where: str, argv: tuple[str, ...]) -> None:
    """Become the hook, the leader of a session and of a process group."""
    try:
        os.setsid()
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
    result: int, life: int, places: tuple[str, ...], where: str, argv: tuple[str, ...]
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


def _build(room: str, size: str, tree: str) -> None:
    """Everything read-only, and overlays in memory where the hook may write."""
    _mount(None, "/", None, _MS_REC | _MS_PRIVATE)
    attributes = (ctypes.c_uint64 * 4)(_MS_RDONLY | _MS_NOSUID, 0, 0, 0)
    root = (_AT_FDCWD, b"/", _AT_RECURSIVE, ctypes.byref(attributes), ctypes.sizeof(attributes))
    lower = _held(tree) if tree else ""
    _checked(_libc.syscall(_SYS_MOUNT_SETATTR, *root), "mount_setattr")
    _mount("tmpfs", room, "tmpfs", _MS_NOSUID | _MS_NODEV, f"size={size},mode=700")
    inside = _held(room)
    for name in _ROOM:
        os.mkdir(f"{inside}/{name}")
    for place in _WRITABLE:
        if os.path.isdir(place) and not os.path.islink(place):
            _overlay(place, place, f"{inside}/layers")
    _mount(inside, room, None, _MS_BIND)  # the overlays may have covered it
    if tree:
        _overlay(lower, tree, f"{inside}/layers")
        _mount(f"{lower}/.git", f"{room}/git", None, _MS_BIND)
    _devices(f"{inside}/dev")
    with suppress(OSError):  # a container may forbid it; the old one shows other processes
        _mount("proc", "/proc", "proc", _MS_RDONLY | _MS_NOSUID | _MS_NODEV | _MS_NOEXEC)


def _held(path: str) -> str:
    """A name of the directory which stays, whatever is mounted over it."""
    return f"/proc/self/fd/{os.open(path, os.O_PATH | os.O_DIRECTORY)}"


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
            _mount(f"/dev/{name}", f"{own}/{name}", None, _MS_BIND)
    for name, target in _DEVICE_LINKS.items():
        os.symlink(f"/proc/self/fd{target}", f"{own}/{name}")
    with suppress(OSError):
        _mount(
            "devpts", f"{own}/pts", "devpts", _MS_NOSUID | _MS_NOEXEC, "newinstance,ptmxmode=666"
        )
        os.symlink("pts/ptmx", f"{own}/ptmx")
    _mount(own, "/dev", None, _MS_BIND | _MS_REC)


def _loopback() -> None:
    import fcntl
    import socket
    import struct

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sh22x", b"lo", _IFF_UP))


def _drop_privileges() -> None:
    """Nothing that is executed from here on gets a capability, as root neither."""
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
