"""Talking to a remote by git's own programs: fetch, push, and what their answers mean.

Nobody sits there, so nothing may ask for a password; the person's own credentials (helpers, keys,
an agent) serve.  Hooks of this repository do not run: patchq's own `pre-push` would ask patchq.
What a remote says is passed on without the credentials that a URL may hold.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import PurePath
from typing import Literal

from msgspec import Struct, field

from patchq.gate.errors import RepositoryFault
from patchq.gate.git.command import QUIET, plain_environment
from patchq.gate.git.repository import Repository
from patchq.gate.git.sharing import childrens_umask

Kind = Literal["made", "stale", "declined", "refused", "unsent", "unknown"]
"""Of an answer to a push: everything moved; a branch was not where it was thought to be; a hook
there refused it; the remote takes nothing of the kind; it was never reached; or nobody knows."""

_OPTIONS = (
    *QUIET,
    *("-c", "gc.auto=0"),
    *("-c", "maintenance.auto=false"),
    *("-c", "core.askPass="),
    *("-c", "push.followTags=false"),
)
_KEPT = ("GIT_SSH", "GIT_SSH_COMMAND", "GIT_SSH_VARIANT", "GIT_PROXY_COMMAND")
_KEPT_OF = ("GIT_SSL_", "GIT_HTTP_", "GIT_TRACE")
_CREDENTIALS = re.compile(r"(?i)\b([a-z][a-z0-9+.-]*://)[^/@\s'\"]+@")
_MOST_WORDS = 1500
_STALE = re.compile(
    r"^\[rejected\]|failed to update ref|cannot lock ref|incorrect old value|reference already|"
    r"failed to lock|unable to (lock|resolve)|atomic|fetch first"
)
_DECLINED = re.compile(r"hook declined")
_ACCOUNT = re.compile(
    r"(?i)protected branch|not allowed to|permission|denied|unauthori[sz]ed|forbidden|read.?only|"
    r"archived|quota"
)
_UNSENT = re.compile(
    r"(?i)could not resolve|couldn't resolve|failed to connect|couldn't connect|"
    r"connection (refused|timed out)|no route to host|network is unreachable|"
    r"does not appear to be a git repository|repository .*not found|no such remote|"
    r"unable to access|authentication failed|could not read (username|password)|"
    r"permission denied|permission to .* denied|access denied|host key verification|"
    r"does not support --atomic|terminal prompts disabled|dubious ownership|"
    r"returned error: 4\d\d"
)
_LATE = re.compile(r"(?i)hung up|disconnect|early eof|rpc failed|broken pipe|reset by peer")
"""What git says where the connection ended on the way."""


def redacted(text: str) -> str:
    """The text without the credentials in URLs."""
    return _CREDENTIALS.sub(r"\1", text)


class Done(Struct, frozen=True):
    """How git ended; `code` is None where it was ended since its time was up."""

    code: int | None
    out: str
    err: str

    @property
    def words(self) -> str:
        """What it said, for people: the remote's own lines, if there are any, else git's."""
        lines = [line.strip() for line in self.err.splitlines()]
        remotes = [line.removeprefix("remote:").strip() for line in lines if line[:7] == "remote:"]
        gits = [
            re.sub(r"^(fatal|error): ", "", line)
            for line in lines
            if line[:7] in ("fatal: ", "error: ", "ERROR: ") or line.startswith("ssh:")
        ]
        told = "; ".join(filter(None, remotes or gits or lines)) or "git said nothing"
        return redacted(told)[:_MOST_WORDS]


class PushAnswer(Struct, frozen=True):
    """What a push came to, with the words for it."""

    kind: Kind
    words: str = ""
    reasons: Mapping[str, str] = field(default_factory=dict)
    """By the refs that were rejected."""


class Remote:
    """A remote of the repository, by its name."""

    def __init__(self, repo: Repository, name: str, seconds: float) -> None:
        self._repo, self.name, self._seconds = repo, name, seconds

    @property
    def known(self) -> bool:
        """Whether git's configuration has it."""
        return bool(self._repo.setting(f"remote.{self.name}.url"))

    def fetch(self, refspecs: Sequence[str]) -> Done:
        """Bring the remote-tracking refs up to date, and take away those of branches that went."""
        return self._run(
            "fetch",
            *("--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules"),
            *("--no-show-forced-updates", "--refmap=", "--prune", self.name, *refspecs),
        )

    def fetch_objects(self, oids: Sequence[str]) -> Done:
        """Bring objects that a partial clone lacks, as git itself does."""
        return self._run(
            *("-c", "fetch.negotiationAlgorithm=noop", "fetch", "--quiet", "--no-tags"),
            *("--no-write-fetch-head", "--no-recurse-submodules", "--filter=blob:none"),
            *("--stdin", self.name),
            stdin="".join(f"{oid}\n" for oid in oids).encode(),
        )

    def push(self, moves: Mapping[str, tuple[str | None, str | None]], *options: str) -> PushAnswer:
        """Move all of these refs (full name -> old and new), or none."""
        leases = (f"--force-with-lease={ref}:{old or ''}" for ref, (old, _) in moves.items())
        specs = (f"{new or ''}:{ref}" for ref, (_, new) in moves.items())
        return _answer(
            self._run(
                *("-c", f"remote.{self.name}.mirror=false"),
                "push",
                *("--porcelain", "--atomic", "--no-verify", "--recurse-submodules=no"),
                *options,
                *leases,
                self.name,
                *specs,
            ),
            moves,
        )

    def _run(self, *words: str, stdin: bytes = b"") -> Done:
        place = self._repo.workdir or self._repo.commondir
        process = _started([*_OPTIONS, "-C", str(place), *words], self._environment())
        try:
            out, err = process.communicate(stdin, timeout=self._seconds)
            code: int | None = process.returncode
        except subprocess.TimeoutExpired:
            _end(process)
            out, err = process.communicate()
            code = None
            err += f"\nerror: it did not end within {self._seconds:g} s\n".encode()
        except BaseException:
            _end(process)
            raise
        return Done(code, out.decode("utf-8", "replace"), err.decode("utf-8", "replace"))

    def _environment(self) -> dict[str, str]:
        kept = {
            key: value
            for key, value in os.environ.items()
            if key in _KEPT or key.startswith(_KEPT_OF)
        }
        ssh = kept.get("GIT_SSH_COMMAND") or self._repo.setting("core.sshCommand") or ""
        if not ssh and "GIT_SSH" not in kept:
            ssh = "ssh"
        program = PurePath(ssh.split(" ")[0]).name if ssh else ""
        if program == "ssh":
            kept["GIT_SSH_COMMAND"] = f"{ssh} -oBatchMode=yes"
        environment = plain_environment(
            GIT_TERMINAL_PROMPT="0", SSH_ASKPASS_REQUIRE="never", GCM_INTERACTIVE="never", **kept
        )
        environment.pop("SSH_ASKPASS", None)
        return environment


def _started(words: Sequence[str], environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            ["git", *words],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            umask=childrens_umask(),
        )
    except FileNotFoundError:
        raise RepositoryFault("there is no `git` on the PATH", "install git") from None


def _end(process: subprocess.Popen[bytes]) -> None:
    """End git with what it started, which would keep its output open."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _answer(done: Done, moves: Mapping[str, object]) -> PushAnswer:
    flags: dict[str, str] = {}
    reasons: dict[str, str] = {}
    for line in done.out.splitlines():
        flag, _, rest = line.partition("\t")
        spec, _, summary = rest.partition("\t")
        ref = spec.partition(":")[2]
        if len(flag) == 1 and ref in moves:
            flags[ref] = flag
            if flag == "!":
                reasons[ref] = summary
    if done.code == 0 and flags.keys() == moves.keys() and not reasons:
        return PushAnswer("made")
    words = done.words
    if done.code is None or not reasons:
        sent = done.code is None or _LATE.search(done.err) or not _UNSENT.search(done.err)
        return PushAnswer("unknown" if sent else "unsent", words)
    others = [reason for reason in reasons.values() if not _STALE.search(reason)]
    if not others:
        return PushAnswer("stale", words, reasons)
    named = "; ".join(dict.fromkeys(others))
    told = redacted(f"{words} ({named})" if words not in named else named)[:_MOST_WORDS]
    if _DECLINED.search(named) and not _ACCOUNT.search(f"{named} {words}"):
        return PushAnswer("declined", told, reasons)
    return PushAnswer("refused", told, reasons)
