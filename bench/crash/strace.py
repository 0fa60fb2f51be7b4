"""System calls of one process, recorded once, and then met again by their number.

strace counts the calls of each name apart, so a point is a name and a number: `rename:3` is the
third rename.  Only calls that change a file below a given directory are points; recording is what
tells them from the others.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

CALLS = (
    "openat", "write", "pwrite64", "writev", "ftruncate", "fallocate", "link", "linkat", "symlink",
    "symlinkat", "unlink", "unlinkat", "rename", "renameat", "renameat2", "mkdir", "mkdirat",
    "rmdir", "chmod", "fchmod", "fchmodat", "utimensat", "fsync", "fdatasync", "syncfs", "sendfile",
    "copy_file_range",
)  # fmt: skip
_CALL = re.compile(r"(\w+)\(")
_ATTACH_SECONDS = 120.0
_FULL = {
    "openat", "write", "pwrite64", "writev", "ftruncate", "link", "linkat", "rename", "renameat",
    "renameat2", "mkdir", "mkdirat", "sendfile", "copy_file_range",
}  # fmt: skip
ERRORS = {
    "ENOSPC": _FULL,
    "EDQUOT": _FULL,
    "EIO": set(CALLS) - {"utimensat"},
    "EMFILE": {"openat"},
}
"""The error codes to inject, and the calls that can end with them."""


class NoStrace(Exception):
    """This machine does not let us trace; the message says what is missing."""


@dataclass(frozen=True, slots=True)
class Point:
    """The `number`th call of this name; `changes`: it may change something, else it only looks."""

    call: str
    number: int
    changes: bool = True

    def __str__(self) -> str:
        return f"{self.call}:{self.number}"


def require() -> None:
    if shutil.which("strace") is None:
        raise NoStrace("strace is not installed")
    done = subprocess.run(["strace", "-o", "/dev/null", "true"], capture_output=True, text=True)
    if done.returncode:
        raise NoStrace(f"strace cannot trace here: {done.stderr.strip()}")


@contextmanager
def tracing(pid: int, log: Path, injections: Sequence[str] = ()) -> Iterator[None]:
    """Trace a process, which waits for its start, and let the calls named by `injections` fail."""
    command = ["strace", "-qq", "-y", "-o", str(log), "-p", str(pid)]
    command += ["-e", f"trace={','.join(CALLS)}"]
    for injection in injections:
        command += ["-e", f"inject={injection}"]
    tracer = subprocess.Popen(command, stderr=subprocess.PIPE)
    try:
        _await_attached(pid, tracer)
        yield
        tracer.wait(_ATTACH_SECONDS)
    finally:
        tracer.kill()
        tracer.wait()
        assert tracer.stderr
        tracer.stderr.close()


def _await_attached(pid: int, tracer: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + _ATTACH_SECONDS
    while "TracerPid:\t0\n" in Path(f"/proc/{pid}/status").read_text():
        if tracer.poll() is not None or time.monotonic() > until:
            assert tracer.stderr
            raise NoStrace(f"strace cannot attach: {tracer.stderr.read().decode().strip()}")
        time.sleep(0.001)
    # Attached is not yet interrupted: what waits in a read has to be back there.
    time.sleep(0.005)


def points(log: Path, root: Path) -> list[Point]:
    """The calls on files below `root`, in their order."""
    counts: Counter[str] = Counter()
    found = []
    for line in log.read_text(errors="replace").splitlines():
        match = _CALL.match(line)
        if match is None:
            continue
        counts[match[1]] += 1
        if str(root) in line:
            looks = match[1] == "openat" and not re.search(r"O_(CREAT|TRUNC|WRONLY|RDWR)", line)
            found.append(Point(match[1], counts[match[1]], not looks))
    return found
