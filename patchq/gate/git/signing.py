"""Signatures on commits, which git makes with the programs of its configuration.

A daemon has no person to ask: a key with a passphrase counts as one that cannot sign.  The programs
get no terminal, no display and no standard input of a person's, and a time in which to end.
"""

from __future__ import annotations

import os
import re
import shlex
import zlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path, PurePath
from tempfile import TemporaryDirectory
from time import monotonic
from typing import TYPE_CHECKING, Literal

from patchq.gate.errors import CannotSign, DiskFault, Fault
from patchq.gate.git.command import alternate, failure, remotely
from patchq.gate.git.object_buffer import write_loose
from patchq.gate.git.objects import Identity, object_id, parse_identity, referred

if TYPE_CHECKING:
    from patchq.gate.git.repository import Repository

# Commits are signed, are not, or as git's `commit.gpgSign` says.
Wanted = Literal["auto", True, False]

SECONDS = 20.0  # for one signature
LOOK_SECONDS = 1.0  # between two looks at git's settings, each of which starts a git
AGAIN_SECONDS = 5.0  # the least pause after a failure, as many changes may wait for the same key
_AGAIN_TIMES = 5  # the pause, as a multiple of the failure's own time
_COMMIT, _TREE = 1, 2
_MOST_WORDS = 400
_ASKING = (
    "DISPLAY", "WAYLAND_DISPLAY", "GPG_TTY", "SSH_ASKPASS", "INSIDE_EMACS", "PINENTRY_USER_DATA"
)  # fmt: skip
_GNUPG = ("gpg", "gpg2", "gpgsm")
# Git keeps GnuPG's complaint to itself.
_ASKS_NOBODY = """\
#!/bin/sh
{program} --batch --no-tty --pinentry-mode error "$@" 2>"$0.err"
code=$?
cat "$0.err" >&2
exit $code
"""
_SIGNATURE = re.compile(rb"\ngpgsig (.*(?:\n .*)*)")
_CURE = "make the key usable by the user that runs patchq (`patchq doctor` tries it), or set "
_CURE += "`commit.sign: false`; what waits goes on by itself"


class Signer:
    def __init__(self, repo: Repository, wanted: Wanted = "auto") -> None:
        self._repo, self._wanted = repo, wanted
        self._settings: dict[str, str] = {}
        self._signs = wanted is True
        self._next_look = 0.0
        self._failed: tuple[float, CannotSign] | None = None

    @property
    def wanted(self) -> bool:
        """Return True if commits get a signature now.

        Raises `CannotSign` where git does not say.
        """
        self._look()
        return self._signs

    @property
    def resting(self) -> bool:
        """True while nothing is tried, after a failure with the same settings."""
        with suppress(CannotSign):
            self._look()
        return self._failed is not None and monotonic() < self._failed[0]

    def _look(self) -> None:
        """Ask for git's settings, at most once a second."""
        if self._wanted is False or monotonic() < self._next_look:
            return
        entries = (entry.partition("\n") for entry in self._asked("--list", "-z").split("\0"))
        settings = {key: value for key, _, value in entries}
        if settings != self._settings:
            if self._wanted == "auto":
                key = "commit.gpgsign"
                self._signs = key in settings and self._asked("--type=bool", key) == "true"
            self._settings, self._failed = settings, None
        self._next_look = monotonic() + LOOK_SECONDS

    def _asked(self, *words: str) -> str:
        git = remotely(self._repo.gitdir, None, SECONDS, **_configuration())
        try:
            done = git.run("config", *words)
        except Fault as fault:
            raise CannotSign(f"git does not say whether: {fault.message}", fault.hint) from None
        if done.code != 0:
            raise CannotSign(f"git does not say whether: {done.words}", "correct git's settings")
        return done.text

    def try_out(self, committer: Identity) -> str | None:
        """Sign an unpublished commit; return the format, or None if commits are not signed."""
        if not self.wanted:
            return None
        self._failed = None
        tree = object_id(_TREE, b"")
        head = f"tree {tree}\nauthor {committer}\ncommitter {committer}\n\nTry\n"
        self.signed(head.encode("utf-8", "surrogateescape"))
        return self._settings.get("gpg.format", "openpgp")

    def signed(self, commit: bytes) -> bytes:
        """Return the commit object's bytes, with a signature where one is wanted.

        Raises `CannotSign` if it cannot be had; never is a commit left without it.
        """
        if not self.wanted:
            return commit
        if self._failed and monotonic() < self._failed[0]:
            raise self._failed[1]
        began = monotonic()
        try:
            made = self._made(commit)
        except CannotSign as error:
            ended = monotonic()
            self._failed = ended + max(AGAIN_SECONDS, _AGAIN_TIMES * (ended - began)), error
            raise
        self._failed = None
        return made

    def _made(self, commit: bytes) -> bytes:
        """Return the signed commit, made by git in a directory of its own."""
        tree, *parents = referred(_COMMIT, commit)
        head, _, message = commit.partition(b"\n\n")
        with TemporaryDirectory(prefix="patchq-sign-") as name:
            programs, objects = Path(name, "bin"), Path(name, "objects")
            options = _quiet_programs(programs, self._settings)
            memory = [(_TREE, tree), *((_COMMIT, parent) for parent in parents)]
            found = ((kind, self._repo.buffer.content(oid)) for kind, oid in memory)
            objects.mkdir()
            write_loose(objects, [(kind, data) for kind, data in found if data is not None])
            variables = (
                _configuration()
                | dict(_people(head))
                | {
                    "GIT_OBJECT_DIRECTORY": str(objects),
                    "GIT_ALTERNATE_OBJECT_DIRECTORIES": alternate(self._repo.commondir / "objects"),
                }
            )
            git = remotely(self._repo.gitdir, None, SECONDS, **variables)
            words = [word for parent in parents for word in ("-p", parent)]
            done = git.run(*options, "commit-tree", "-S", *words, "-F", "-", tree, stdin=message)
            if done.code is None:
                raise CannotSign("no signature in time: git waits for a person or a device", _CURE)
            if done.code:
                complaints = [done.words, *map(_gnupgs_words, programs.glob("*.err"))]
                fault = failure("git made no signature", "; ".join(complaints), objects)
                raise fault if isinstance(fault, DiskFault) else CannotSign(fault.message, _CURE)
            oid = done.text
            made = zlib.decompress((objects / oid[:2] / oid[2:]).read_bytes()).partition(b"\0")[2]
        return _checked(made, head)


def _checked(made: bytes, head: bytes) -> bytes:
    """Return the made commit if only a signature was added to its header.

    Raises `CannotSign` if not.
    """
    own = made.partition(b"\n\n")[0]
    signature = _SIGNATURE.search(own)
    if signature is None or not signature[1].startswith(b"-----BEGIN "):
        raise CannotSign("git's program made no signature", _CURE)
    if _SIGNATURE.sub(b"", own, count=1) != head:
        raise CannotSign("git makes another commit of it than patchq", _CURE)
    return made


def _gnupgs_words(file: Path) -> str:
    lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    return "; ".join(line for line in lines if not line.startswith("[GNUPG:]"))[-_MOST_WORDS:]


def _configuration() -> dict[str, str]:
    return {
        **{key: text for key, text in os.environ.items() if key.startswith("GIT_CONFIG")},
        **dict.fromkeys(_ASKING, ""),
        "SSH_ASKPASS_REQUIRE": "never",
    }


def _people(head: bytes) -> Iterator[tuple[str, str]]:
    for line in head.decode("utf-8", "surrogateescape").split("\n"):
        role, _, rest = line.partition(" ")
        if role in ("author", "committer"):
            person, when, zone = rest.rsplit(" ", 2)
            who = parse_identity(person)
            assert who
            yield f"GIT_{role.upper()}_NAME", who.name
            yield f"GIT_{role.upper()}_EMAIL", who.email
            yield f"GIT_{role.upper()}_DATE", f"@{when} {zone}"


def _quiet_programs(programs: Path, settings: Mapping[str, str]) -> list[str]:
    """Make programs that keep GnuPG from asking; return git's options for them."""
    programs.mkdir()
    openpgp = settings.get("gpg.openpgp.program") or settings.get("gpg.program", "gpg")
    options = []
    for key, program in (("openpgp", openpgp), ("x509", settings.get("gpg.x509.program", "gpgsm"))):
        own = programs / key
        if PurePath(program).name in _GNUPG:
            own.write_text(_ASKS_NOBODY.format(program=shlex.quote(program)))
            own.chmod(0o700)
            options += ["-c", f"gpg.{key}.program={own}"]
    return options


def is_signed(commit: bytes) -> bool:
    return b"\ngpgsig" in commit.partition(b"\n\n")[0]
