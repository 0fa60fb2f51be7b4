"""Running git's own programs: their words, directory, environment and time limit.

A process that git started inherits variables that say which repository and index are meant, and a
person's shell may hold others.  So git gets an environment that is made here: of this process's
without git's own variables, or of nothing but the PATH.

Faults follow from the words that git and libgit2 use when something fails.  The machine's troubles
(no room, no descriptors) are not the repository's, and damaged objects are not a refusal of git's:
each has another cure.  Only the words tell them apart.

For a remote the person's own credentials (helpers, keys, an agent) serve, and no password is asked
for.  A remote's words are passed on without the credentials that a URL may hold.
"""

from __future__ import annotations

import errno
import os
import re
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path, PurePath

from msgspec import Struct

from patchq.gate.errors import DiskFault, Fault, ObjectDamaged, RepositoryFault
from patchq.gate.git import files

# Nothing of the repository's own runs, neither a hook (patchq's `pre-push` would ask patchq) nor a
# monitor; and what tidies up takes no work tree for gone that only this process cannot see.
QUIET = (
    *("-c", "core.hooksPath=/dev/null"),
    *("-c", "core.fsmonitor=false"),
    *("-c", "gc.worktreePruneExpire=never"),
)
_REMOTE = (
    *QUIET,
    *("-c", "gc.auto=0"),
    *("-c", "maintenance.auto=false"),
    *("-c", "core.askPass="),
    *("-c", "push.followTags=false"),
)
# A git that works here may take long on a slow disk; one that hangs must not stop the daemon.
LONGEST_SECONDS = 600.0
_CONFIGURATION = {"GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM", "GIT_CONFIG_SYSTEM"}
_PLAIN = {"GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
_NOBODYS = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
}
_OF_REMOTES = re.compile(r"GIT_(SSH(_COMMAND|_VARIANT)?|PROXY_COMMAND)|GIT_(SSL_|HTTP_|TRACE).*")
_CREDENTIALS = re.compile(r"(?i)\b([a-z][a-z0-9+.-]*://)[^/@\s'\"]+@")
MOST_WORDS = 1500
FSCK = "run `git fsck --full` and restore what it names from another clone"
ROOM = "see to that, then start patchq again; nothing was lost"
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


def plain_environment(**more: str) -> dict[str, str]:
    """Return this process's environment without git's variables.

    Those that name configuration files stay.
    """
    kept = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith("GIT_") or key in _CONFIGURATION
    }
    return kept | _PLAIN | more


def sealed_environment() -> dict[str, str]:
    return {"PATH": os.environ.get("PATH", os.defpath), **_NOBODYS, **_PLAIN}


def alternate(objects: Path) -> str:
    """Return a directory of objects, quoted for `GIT_ALTERNATE_OBJECT_DIRECTORIES`.

    There, a colon separates two.
    """
    escaped = str(objects).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def redacted(text: str) -> str:
    return _CREDENTIALS.sub(r"\1", text)


class Done(Struct, frozen=True):
    """The end of a git process; `code` is None where its time was up."""

    code: int | None
    out: bytes
    err: bytes

    @property
    def text(self) -> str:
        return os.fsdecode(self.out).removesuffix("\n")

    @property
    def complaint(self) -> str:
        return self.err.decode("utf-8", "replace").strip()

    @property
    def words(self) -> str:
        """Return the complaint for people, of the remote if it has one."""
        lines = [line.strip() for line in self.complaint.splitlines()]
        remotes = [line.removeprefix("remote:").strip() for line in lines if line[:7] == "remote:"]
        gits = [
            re.sub(r"^(fatal|error): ", "", line)
            for line in lines
            if line[:7] in ("fatal: ", "error: ", "ERROR: ") or line.startswith("ssh:")
        ]
        words = "; ".join(filter(None, remotes or gits or lines)) or "git gave no reason"
        return redacted(words)[:MOST_WORDS]


class Git(Struct, frozen=True):
    """A way to run git: environment, options, directory, launcher and time limit.

    Without an `environment` git gets this process's.  `options` come before its words.  Its faults
    name the `place`.
    """

    environment: Mapping[str, str] | None = None
    options: Sequence[str] = ()
    directory: Path | None = None
    place: Path | None = None
    launcher: Sequence[str] = ()
    seconds: float = LONGEST_SECONDS

    def run(
        self, *words: str, index: Path | None = None, stdin: bytes = b"", keep: Sequence[int] = ()
    ) -> Done:
        """Run git to its end, or end it with all that it started.

        It can use another `index` file.  It has a session of its own, so that the terminal's
        interrupt does not stop it half-way; the descriptors `keep` stay open in it.
        `RepositoryFault` where there is no git.
        """
        pipe, code = subprocess.PIPE, None
        with self.start(*words, index=index, streams=(pipe, pipe, pipe), keep=keep) as process:
            try:
                out, err = process.communicate(stdin, self.seconds)
                code = process.returncode
            except BaseException as error:
                with suppress(ProcessLookupError):  # and what would keep its output open
                    os.killpg(process.pid, signal.SIGKILL)
                if not isinstance(error, subprocess.TimeoutExpired):
                    raise
                late = f"\nerror: it did not end within {self.seconds:g} s\n".encode()
                out, err = error.output or b"", (error.stderr or b"") + late
        return Done(code, out, err)

    def output(
        self, *words: str, index: Path | None = None, stdin: bytes = b"", keep: Sequence[int] = ()
    ) -> bytes:
        """Return git's output; `RepositoryFault` if it fails, `DiskFault` for want of room."""
        done = self.run(*words, index=index, stdin=stdin, keep=keep)
        if done.code != 0:
            where = f" in {self.place}" if self.place else ""
            place = self.place or self.directory or Path()
            why = done.complaint or f"it ended with {done.code}"
            raise failure(f"git {words[0]} failed{where}", why, place)
        return done.out

    def start(
        self,
        *words: str,
        index: Path | None = None,
        streams: tuple[int, int, int] = (subprocess.DEVNULL,) * 3,
        keep: Sequence[int] = (),
    ) -> subprocess.Popen[bytes]:
        environment = self.environment
        if index is not None:
            environment = {**(environment or os.environ), "GIT_INDEX_FILE": str(index)}
        try:
            return subprocess.Popen(
                [*self.launcher, "git", *self.options, *words],
                cwd=self.directory,
                env=environment,
                stdin=streams[0],
                stdout=streams[1],
                stderr=streams[2],
                start_new_session=True,
                pass_fds=keep,
            )
        except FileNotFoundError:
            raise RepositoryFault("there is no `git` on the PATH", "install git") from None


def remotely(place: Path, ssh: str | None, seconds: float, **more: str) -> Git:
    """Return a git that talks to remotes, by the ssh command of its configuration.

    An empty variable of `more` is taken out of its environment."""
    kept = {key: value for key, value in os.environ.items() if _OF_REMOTES.fullmatch(key)}
    ssh = kept.get("GIT_SSH_COMMAND") or ssh or ("" if "GIT_SSH" in kept else "ssh")
    if PurePath(ssh.split(" ")[0]).name == "ssh":
        kept["GIT_SSH_COMMAND"] = f"{ssh} -oBatchMode=yes"
    asks = {"GIT_TERMINAL_PROMPT": "0", "SSH_ASKPASS_REQUIRE": "never", "GCM_INTERACTIVE": "never"}
    environment = plain_environment(**asks, **kept) | {"SSH_ASKPASS": "", **more}
    environment = {name: value for name, value in environment.items() if value}
    return Git(environment, (*_REMOTE, "-C", str(place)), seconds=seconds)


def version() -> str:
    """`git version 2.39.5`; empty where there is no git."""
    try:
        return Git().run("version").text
    except RepositoryFault:
        return ""


def is_recent(version: str) -> bool:
    """Return True if git of this version has `merge-tree --write-tree`."""
    digits = re.search(r"(\d+)\.(\d+)", version)
    return digits is not None and (int(digits[1]), int(digits[2])) >= (2, 38)


def failure(what: str, complaint: str, place: Path) -> Fault:
    """Return the fault for git's complaint about its work in `place`.

    Git does not always say why a file could not be written."""
    text = f"{what}: {complaint}"
    trouble = _trouble_in(complaint)
    if not trouble and _UNWRITTEN.search(complaint) and (short := files.shortage(place)):
        trouble, text = short, f"{what}: {short}: {complaint}"
    if trouble:
        return DiskFault(text if trouble in text else f"{what}: {trouble}: {complaint}", ROOM)
    return ObjectDamaged(text, FSCK) if _DAMAGE.search(complaint) else RepositoryFault(text)


def _trouble_in(text: str) -> str | None:
    """Return the system's words for a shortage named in a message, or None."""
    if "out of diskspace" in text.lower():
        return os.strerror(errno.ENOSPC)
    return next((words for words in sorted(_TROUBLE) if words.lower() in text.lower()), None)


def fault(
    what: str, error: Exception, kind: type[Fault] = RepositoryFault, hint: str = FSCK
) -> Fault:
    """Return the fault for libgit2's error: the disk's, or of that kind."""
    if trouble := _trouble_in(str(error)):
        return DiskFault(f"{what}: {trouble}", ROOM)
    named = what.rpartition(" ")[2]  # libgit2 often begins with the object that `what` names
    why = "it is missing" if isinstance(error, KeyError) else str(error).removeprefix(f"{named}: ")
    return kind(f"{what}: {why}", hint)


def misconfigured(error: Exception) -> Fault:
    hint = "see what `git config --list --show-origin` says"
    return fault("cannot read git's configuration", error, hint=hint)
