"""Running git's own programs: with which words, where, and in which environment.

A process that git started inherits variables that say which repository and index are meant, and a
person's shell may hold others.  So git gets an environment that is made here: of this process's
without git's own variables, or of nothing but the PATH.
"""

from __future__ import annotations

import errno
import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from patchq.git import files
from patchq.git.sharing import childrens_umask
from patchq.model.errors import DiskFault, Fault, ObjectDamaged, RepositoryFault

QUIET = (
    *("-c", "core.hooksPath=/dev/null"),
    *("-c", "core.fsmonitor=false"),
    *("-c", "gc.worktreePruneExpire=never"),
)
"""Nothing of the repository's own runs, neither a hook nor a monitor; and what tidies up takes no
work tree for gone that only this process cannot see."""
FSCK = "run `git fsck --full` and restore what it names from another clone"
_SECONDS = 60.0
_CONFIGURATION = {"GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM", "GIT_CONFIG_SYSTEM"}
_PLAIN = {"GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
_NOBODYS = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
}


def plain_environment(**more: str) -> dict[str, str]:
    """This process's, without what says which repository, index or options are meant; which
    configuration files are read stays."""
    kept = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith("GIT_") or key in _CONFIGURATION
    }
    return kept | _PLAIN | more


def alternate(objects: Path) -> str:
    """A directory of objects as `GIT_ALTERNATE_OBJECT_DIRECTORIES` names it: there, a colon stands
    between two."""
    escaped = str(objects).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def sealed_environment() -> dict[str, str]:
    """Nothing of anybody's: no configuration but the repository's, no variable but the PATH."""
    return {"PATH": os.environ.get("PATH", os.defpath), **_NOBODYS, **_PLAIN}


@dataclass(frozen=True, slots=True)
class Git:
    """How git is started: with `environment` (None: as this process has it), `options` before its
    words, in `directory`, by the words of a `launcher`, for `seconds` at most.  Its faults name
    the `place`."""

    environment: Mapping[str, str] | None = None
    options: Sequence[str] = ()
    directory: Path | None = None
    place: Path | None = None
    launcher: Sequence[str] = ()
    seconds: float | None = None

    def run(
        self, *words: str, index: Path | None = None, stdin: bytes = b"", keep: Sequence[int] = ()
    ) -> subprocess.CompletedProcess[bytes]:
        """Run it to its end, on another index file if need be.

        It has a session of its own, so that the terminal's interrupt does not stop it half-way;
        the descriptors `keep` stay open in it.  `RepositoryFault` where there is no git.
        """
        environment = self.environment
        if index is not None:
            environment = {**(environment or os.environ), "GIT_INDEX_FILE": str(index)}
        try:
            return subprocess.run(
                [*self.launcher, "git", *self.options, *words],
                cwd=self.directory,
                env=environment,
                input=stdin,
                capture_output=True,
                check=False,
                start_new_session=True,
                pass_fds=keep,
                timeout=self.seconds,
                umask=childrens_umask(),
            )
        except FileNotFoundError:
            raise RepositoryFault("there is no `git` on the PATH", "install git") from None

    def output(self, *words: str, index: Path | None = None, stdin: bytes = b"") -> bytes:
        """What git prints; `RepositoryFault` if it fails, `DiskFault` for want of room."""
        done = self.run(*words, index=index, stdin=stdin)
        if done.returncode:
            where = f" in {self.place}" if self.place else ""
            place = self.place or self.directory or Path()
            raise failure(f"git {words[0]} failed{where}", complaint(done), place)
        return done.stdout

    def start(
        self,
        *words: str,
        stdin: BinaryIO | int = subprocess.DEVNULL,
        stdout: BinaryIO | int = subprocess.DEVNULL,
    ) -> subprocess.Popen[bytes]:
        """Start it in the background; OSError where that fails."""
        return subprocess.Popen(
            [*self.launcher, "git", *self.options, *words],
            cwd=self.directory,
            env=self.environment,
            stdin=stdin,
            stdout=stdout,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            umask=childrens_umask(),
        )


_DAMAGE = re.compile(
    r"(?i)unable to read (tree|sha1|[0-9a-f]{40})|failed to (read|unpack) (tree )?object|"
    r"could not read [0-9a-f]{40}|bad (tree|object)|missing (blob|tree|object)|is corrupt|"
    r"object file .* is empty|unable to unpack|inflate: |hash mismatch"
)


_UNWRITTEN = re.compile(
    r"(?i)(unable|could not|cannot|failed) to? ?(write|create|make|close|append)|write error|"
    r"cannot mkdir|unable to .*\.lock"
)
_TROUBLE = {
    os.strerror(number)
    for number in (
        errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS, errno.EMFILE, errno.ENFILE, errno.ENOMEM
    )
}  # fmt: skip
ROOM = "see to that, then start patchq again; nothing was lost"


def failure(what: str, complaint: str, place: Path) -> Fault:
    """The fault that git's complaint about what it did in `place` stands for.  Git does not always
    say why a file could not be written."""
    said = f"{what}: {complaint}"
    trouble = trouble_in(complaint)
    if not trouble and _UNWRITTEN.search(complaint) and (short := files.shortage(place)):
        trouble, said = short, f"{what}: {short}: {complaint}"
    if trouble:
        return DiskFault(said if trouble in said else f"{what}: {trouble}: {complaint}", ROOM)
    return ObjectDamaged(said, FSCK) if unreadable_object(complaint) else RepositoryFault(said)


def trouble_in(said: str) -> str | None:
    """The system's words for what the machine is short of, if a message of git's or libgit2's has
    them or says as much."""
    if "out of diskspace" in said.lower():
        return os.strerror(errno.ENOSPC)
    return next((words for words in sorted(_TROUBLE) if words.lower() in said.lower()), None)


def unreadable_object(complaint: str) -> bool:
    """Whether what git says tells of an object that it could not read."""
    return bool(_DAMAGE.search(complaint))


def complaint(done: subprocess.CompletedProcess[bytes]) -> str:
    """What git said of its failure."""
    return done.stderr.decode("utf-8", "replace").strip()


def version() -> str:
    """`git version 2.39.5`; empty where there is no git."""
    try:
        done = subprocess.run(["git", "version"], capture_output=True, timeout=_SECONDS)
    except OSError:
        return ""
    return done.stdout.decode("utf-8", "replace").strip()


def merges_trees(version: str) -> bool:
    """Whether git of this version has `merge-tree --write-tree`."""
    return _is_at_least(version, (2, 38))


def hands_in(version: str) -> bool:
    """Whether git of this version asks `proc-receive`."""
    return _is_at_least(version, (2, 29))


def _is_at_least(version: str, wanted: tuple[int, int]) -> bool:
    digits = re.search(r"(\d+)\.(\d+)", version)
    return digits is not None and (int(digits[1]), int(digits[2])) >= wanted
