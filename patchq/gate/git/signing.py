"""Signatures on commits, which git makes with the programs of its configuration.

A daemon has no person to ask: a key with a passphrase counts as one that cannot sign.  The programs
get no terminal, no display and no standard input of a person's, and a time in which to end.
"""

from __future__ import annotations

import os
import re
import zlib
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import TYPE_CHECKING, Literal

from patchq.gate.errors import CannotSign, DiskFault
from patchq.gate.git.command import alternate, failure, remotely
from patchq.gate.git.object_buffer import write_loose
from patchq.gate.git.objects import Identity, object_id, referred

if TYPE_CHECKING:
    from patchq.gate.git.repository import Repository

# Commits are signed, are not, or as git's `commit.gpgSign` says.
Wanted = Literal["auto", True, False]

SECONDS = 20.0  # for one signature
LOOK_SECONDS = 1.0  # between two looks at git's settings, each of which starts a git
AGAIN_SECONDS = 5.0  # the least pause after a failure, as many changes may wait for the same key
_AGAIN_TIMES = 5  # the pause, as a multiple of the failure's own time
_COMMIT, _TREE = 1, 2
_ASKING = (
    "DISPLAY", "WAYLAND_DISPLAY", "GPG_TTY", "SSH_ASKPASS", "INSIDE_EMACS", "PINENTRY_USER_DATA"
)  # fmt: skip
_SIGNATURE = re.compile(rb"\ngpgsig (.*(?:\n .*)*)")
_PERSON = re.compile(rb"(?m)^(author|committer) (.*) <(.*)> (.*)$")
_CURE = "make the key usable by the user that runs patchq (`patchq doctor` tries it), or set "
_CURE += "`commit.sign: false`; what waits goes on by itself"


class Signer:
    def __init__(self, repo: Repository, wanted: Wanted = "auto") -> None:
        self._repo, self._wanted = repo, wanted
        self._signs = wanted is True
        self._next_look = 0.0
        self._failed: tuple[float, CannotSign] | None = None

    @property
    def wanted(self) -> bool:
        """Return True if commits get a signature now; git is asked at most once a second.

        Raises `CannotSign` where git does not say.
        """
        if self._wanted == "auto" and monotonic() >= self._next_look:
            git = remotely(self._repo.gitdir, None, SECONDS, **_configuration())
            done = git.run("config", "--type=bool", "commit.gpgSign")
            if done.code not in (0, 1):
                raise CannotSign(f"git does not say whether: {done.words}", "correct its settings")
            self._signs = done.text == "true"
            self._next_look = monotonic() + LOOK_SECONDS
        return self._signs

    @property
    def resting(self) -> bool:
        """True while nothing is tried, after a failure."""
        return self._failed is not None and monotonic() < self._failed[0]

    def try_out(self, committer: Identity) -> bool:
        """Sign an unpublished commit; return False if commits are not signed."""
        self._failed = None
        tree = object_id(_TREE, b"")
        head = f"tree {tree}\nauthor {committer}\ncommitter {committer}\n\nTry\n"
        commit = head.encode("utf-8", "surrogateescape")
        return self.signed(commit) != commit

    def signed(self, commit: bytes) -> bytes:
        """Return the commit object's bytes, with a signature where one is wanted.

        Raises `CannotSign` if it cannot be had; never is a commit left without it.
        """
        if not self.wanted:
            return commit
        if self._failed and self.resting:
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
            objects = Path(name)
            memory = [(_TREE, tree), *((_COMMIT, parent) for parent in parents)]
            found = ((kind, self._repo.buffer.content(oid)) for kind, oid in memory)
            write_loose(objects, [(kind, data) for kind, data in found if data is not None])
            git = remotely(
                self._repo.gitdir,
                None,
                SECONDS,
                GIT_OBJECT_DIRECTORY=name,
                GIT_ALTERNATE_OBJECT_DIRECTORIES=alternate(self._repo.commondir / "objects"),
                **_configuration(),
                **_people(head),
            )
            words = [word for parent in parents for word in ("-p", parent)]
            done = git.run("commit-tree", "-S", *words, "-F", "-", tree, stdin=message)
            if done.code is None:
                raise CannotSign("no signature in time: git waits for a person or a device", _CURE)
            if done.code:
                fault = failure("git made no signature", done.words, objects)
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


def _configuration() -> dict[str, str]:
    return {
        **{key: text for key, text in os.environ.items() if key.startswith("GIT_CONFIG")},
        **dict.fromkeys(_ASKING, ""),
        "SSH_ASKPASS_REQUIRE": "never",
    }


def _people(head: bytes) -> dict[str, str]:
    found = dict[str, str]()
    for role, *fields in _PERSON.findall(head):
        name, email, when = map(os.fsdecode, fields)
        place = f"GIT_{role.decode().upper()}_"
        found |= {f"{place}NAME": name, f"{place}EMAIL": email, f"{place}DATE": f"@{when}"}
    return found


def is_signed(commit: bytes) -> bool:
    return b"\ngpgsig" in commit.partition(b"\n\n")[0]
