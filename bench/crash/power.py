"""A disk of its own that can lose its power: a file system in a file, and the ioctl that ends it.

`FS_IOC_SHUTDOWN` makes a file system stop at once, as file systems' own tests do it.  What it
had not written is gone; mounting it again replays its journal.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import shutil
import struct
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_SHUTDOWN = 0x8004587D
FLUSHES = {"all": 0, "log": 1, "none": 2}
"""What still gets to the disk: everything, the journal alone, nothing."""
_MAKE = {
    "ext4": (["mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0"], 32, "noauto_da_alloc"),
    "xfs": (["mkfs.xfs", "-q", "-f"], 320, "nouuid"),
}
"""The command that makes it, its size in MiB, and the options to mount it with.  `noauto_da_alloc`:
ext4 flushes nothing on a rename by itself."""
SYSTEMS = tuple(_MAKE)
_BUSY_SECONDS = 120.0
_NEWNS = 0x20000


class NoPower(Exception):
    """This machine cannot cut this file system's power; the message says what is missing."""


@dataclass(frozen=True, slots=True)
class Disk:
    """A file system in the file `image`, to be seen at `at`."""

    system: str
    image: Path
    at: Path

    def make(self) -> None:
        command, size, _ = _MAKE[self.system]
        with self.image.open("wb") as file:
            file.truncate(size << 20)
        _call(*command, str(self.image))
        self.at.mkdir(parents=True, exist_ok=True)

    def copy_to(self, image: Path) -> Disk:
        _call("cp", "--sparse=always", str(self.image), str(image))
        return Disk(self.system, image, self.at)

    def mount(self) -> None:
        options = f"loop,noatime,{_MAKE[self.system][2]}"
        _call("mount", "-t", self.system, "-o", options, str(self.image), str(self.at))

    def cut(self, flush: str) -> None:
        """Stop everything, here and now."""
        fd = os.open(self.at, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.ioctl(fd, _SHUTDOWN, struct.pack("I", FLUSHES[flush]))
        finally:
            os.close(fd)

    def unmount(self) -> None:
        """Processes that died with the power may take a moment to let go."""
        until = time.monotonic() + _BUSY_SECONDS
        while _mounted(self.at) or self._in_use():
            done = subprocess.run(["umount", str(self.at)], capture_output=True, text=True)
            if time.monotonic() > until:
                raise NoPower(f"{self.at} stays in use: {done.stderr.strip()}")
            if done.returncode:
                time.sleep(0.005)

    def _in_use(self) -> bool:
        """A hook that is ending has the file system in a namespace of its own."""
        for file in Path("/sys/block").glob("loop*/loop/backing_file"):
            with suppress(OSError):
                if file.read_text().strip() == str(self.image):
                    return True
        return False


def _mounted(at: Path) -> bool:
    """Not by looking there: a file system without power answers nothing."""
    return f" {at} " in Path("/proc/self/mountinfo").read_text()


def own_namespace() -> bool:
    """Whether what this process mounts is from now on its own, and ends with it."""
    if os.geteuid() != 0 or ctypes.CDLL(None).unshare(_NEWNS):
        return False
    return subprocess.run(["mount", "--make-rprivate", "/"], capture_output=True).returncode == 0


def memory() -> Path | None:
    """A file system in memory, in a namespace of our own; None where that cannot be.  Not below
    /tmp, which hooks see as an overlay without what is mounted there, nor below /dev."""
    at = Path("/mnt")
    if not at.is_dir() or not own_namespace():
        return None
    done = subprocess.run(["mount", "-t", "tmpfs", "patchq", str(at)], capture_output=True)
    return None if done.returncode else at


def require(system: str, room: Path) -> None:
    """Raise `NoPower` unless one can be made, mounted and cut off in the directory `room`."""
    program = _MAKE[system][0][0]
    if os.geteuid() != 0:
        raise NoPower("only root can mount")
    if shutil.which(program) is None:
        raise NoPower(f"{program} is not installed")
    disk = Disk(system, room / f"try.{system}", room / f"try-{system}")
    try:
        disk.make()
        disk.mount()
        disk.cut("none")
    except OSError as error:
        raise NoPower(f"{system}: {error}") from None
    finally:
        disk.unmount()
        disk.image.unlink(missing_ok=True)


def _call(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise NoPower(f"{' '.join(command)}: {(done.stderr or done.stdout).strip()}")
