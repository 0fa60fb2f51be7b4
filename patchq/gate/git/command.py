"""Running git's own programs: with which words, where, and in which environment.

A process that git started inherits variables that say which repository and index are meant, and a
person's shell may hold others.  So git gets an environment that is made here: of this process's
without git's own variables, or of nothing but the PATH.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from msgspec import Struct

from patchq.gate.errors import RepositoryFault
from patchq.gate.git.faults import failure
from patchq.gate.git.files import childrens_umask

# Nothing of the repository's own runs, neither a hook nor a monitor; and what tidies up takes no
# work tree for gone that only this process cannot see.
QUIET = (
    *("-c", "core.hooksPath=/dev/null"),
    *("-c", "core.fsmonitor=false"),
    *("-c", "gc.worktreePruneExpire=never"),
)
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
    """Return a directory of objects as `GIT_ALTERNATE_OBJECT_DIRECTORIES` names it: there, a colon
    separates two."""
    escaped = str(objects).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def sealed_environment() -> dict[str, str]:
    """Nothing of anybody's: no configuration but the repository's, no variable but the PATH."""
    return {"PATH": os.environ.get("PATH", os.defpath), **_NOBODYS, **_PLAIN}


class Git(Struct, frozen=True):
    """Starts git with `environment` (None: this process's), `options` before its words, in
    `directory`, by the words of a `launcher`, for `seconds` at most. Its faults name the
    `place`."""

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

        It has a session of its own, so that the terminal's interrupt does not stop it half-way,
        and is ended with all that it started when its time is up (`subprocess.TimeoutExpired`);
        the descriptors `keep` stay open in it.  `RepositoryFault` where there is no git.
        """
        environment = self.environment
        if index is not None:
            environment = {**(environment or os.environ), "GIT_INDEX_FILE": str(index)}
        try:
            process = subprocess.Popen(
                [*self.launcher, "git", *self.options, *words],
                cwd=self.directory,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
                pass_fds=keep,
                umask=childrens_umask(),
            )
        except FileNotFoundError:
            raise RepositoryFault("there is no `git` on the PATH", "install git") from None
        with process:
            try:
                out, err = process.communicate(stdin, self.seconds)
            except BaseException:
                with suppress(ProcessLookupError):  # and what would keep its output open
                    os.killpg(process.pid, signal.SIGKILL)
                raise
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def output(self, *words: str, index: Path | None = None, stdin: bytes = b"") -> bytes:
        """Return git's output; `RepositoryFault` if it fails, `DiskFault` for want of room."""
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


def complaint(done: subprocess.CompletedProcess[bytes]) -> str:
    """Return git's complaint about its failure."""
    return done.stderr.decode("utf-8", "replace").strip()


def version() -> str:
    """`git version 2.39.5`; empty where there is no git."""
    try:
        done = subprocess.run(["git", "version"], capture_output=True, timeout=_SECONDS)
    except OSError:
        return ""
    return done.stdout.decode("utf-8", "replace").strip()


def is_recent(version: str) -> bool:
    """Return True if git of this version has `merge-tree --write-tree`."""
    digits = re.search(r"(\d+)\.(\d+)", version)
    return digits is not None and (int(digits[1]), int(digits[2])) >= (2, 38)
