"""Fetches from a remote and pushes to it, and the meaning of its answers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Literal

from msgspec import Struct, field

from patchq.gate.git.repository import Repository
from patchq.gate.git.transport import MOST_WORDS, Done, Transport, redacted

# Answers to a push: everything moved; a branch was not where it was thought to be; a hook there
# refused it; the remote takes nothing of the kind; it was never reached; or that is unknown.
Kind = Literal["made", "stale", "declined", "refused", "unsent", "unknown"]

_STALE = re.compile(
    r"^\[rejected\]|failed to update ref|cannot lock ref|incorrect old value|reference already|"
    r"failed to lock|unable to (lock|resolve)|atomic|fetch first"
)
_DECLINED = re.compile(r"hook declined")
_NOT_PERMITTED = re.compile(
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
# Git's words where the connection ended on the way.
_CUT_OFF = re.compile(r"(?i)hung up|disconnect|early eof|rpc failed|broken pipe|reset by peer")


class PushAnswer(Struct, frozen=True):
    """The outcome of a push, with the words for it."""

    kind: Kind
    words: str = ""
    reasons: Mapping[str, str] = field(default_factory=dict)
    """By the refs that were rejected."""


class Remote:
    """A remote of the repository, by its name."""

    def __init__(self, repo: Repository, name: str, seconds: float) -> None:
        self._repo, self.name = repo, name
        place = repo.workdir or repo.commondir
        self._git = Transport(place, repo.setting("core.sshCommand"), seconds)

    @property
    def known(self) -> bool:
        """True if git's configuration has it."""
        return bool(self._repo.setting(f"remote.{self.name}.url"))

    def fetch(self, refspecs: Sequence[str]) -> Done:
        """Bring the remote-tracking refs up to date, and take away those of branches that went."""
        return self._git.run(
            "fetch",
            *("--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules"),
            *("--no-show-forced-updates", "--refmap=", "--prune", self.name, *refspecs),
        )

    def push(self, moves: Mapping[str, tuple[str | None, str | None]], *options: str) -> PushAnswer:
        """Move all of these refs (full name -> old and new), or none."""
        leases = (f"--force-with-lease={ref}:{old or ''}" for ref, (old, _) in moves.items())
        specs = (f"{new or ''}:{ref}" for ref, (_, new) in moves.items())
        return _answer(
            self._git.run(
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
        sent = done.code is None or _CUT_OFF.search(done.err) or not _UNSENT.search(done.err)
        return PushAnswer("unknown" if sent else "unsent", words)
    others = [reason for reason in reasons.values() if not _STALE.search(reason)]
    if not others:
        return PushAnswer("stale", words, reasons)
    named = "; ".join(dict.fromkeys(others))
    text = redacted(f"{words} ({named})" if words not in named else named)[:MOST_WORDS]
    if _DECLINED.search(named) and not _NOT_PERMITTED.search(f"{named} {words}"):
        return PushAnswer("declined", text, reasons)
    return PushAnswer("refused", text, reasons)
