"""Signatures on commits, made as git makes them: by its configuration, with the programs it names.

Whether and how is asked of git itself, which knows its includes and variables, and asked again when
one of the files that it read has changed.  Where no file has a word of signing, nothing is asked.

A key that asks for a passphrase counts as one that cannot sign: nobody sits here.  The programs get
no terminal, no display and no standard input of a person's, and a time in which to end.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from shutil import which
from tempfile import TemporaryDirectory
from time import monotonic
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from patchq.gate.errors import CannotSign, Fault, disk_fault
from patchq.gate.git.command import Git, complaint, plain_environment

if TYPE_CHECKING:
    from patchq.gate.git.objects import Identity
    from patchq.gate.git.repository import Repository

Wanted = Literal["auto", True, False]
"""Whether commits are signed: as git's `commit.gpgSign` says, or whatever it says."""

SECONDS = 20.0
"""What a program may take for a signature."""
AGAIN_SECONDS = 5.0
"""So long after a failure nothing is tried again, as many batches may wait for the same key; longer
(`_AGAIN_TIMES`) after one that took its time."""
_AGAIN_TIMES = 5
_GIT_SECONDS = 60.0
_MOST_SAID = 400
_PROGRAMS = {"openpgp": "gpg", "x509": "gpgsm", "ssh": "ssh-keygen"}
_BEGINS = {
    "openpgp": (b"-----BEGIN PGP SIGNATURE-----", b"-----BEGIN PGP MESSAGE-----"),
    "x509": (b"-----BEGIN SIGNED MESSAGE-----",),
    "ssh": (b"-----BEGIN SSH SIGNATURE-----",),
}
"""By which git knows what kind a signature is."""
_ASKS_NOBODY = ("--batch", "--no-tty", "--pinentry-mode", "error")
_GNUPG = {"gpg", "gpg2", "gpgsm"}
"""The programs that know these options; any other gets exactly what git would give it."""
_ENTRIES = {"GIT_CONFIG_COUNT", "GIT_CONFIG_PARAMETERS"}
_WORD = re.compile(rb"gpgsign|include", re.IGNORECASE)
_ASKING = {
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "GPG_TTY",
    "SSH_ASKPASS",
    "INSIDE_EMACS",
    "PINENTRY_USER_DATA",
}
_TRUE, _FALSE = {"true", "yes", "on"}, {"false", "no", "off", ""}
_CURE = "make the key usable by the user that runs patchq (`patchq doctor` tries it), or set "
_CURE += "`commit.sign: false`; what waits goes on by itself"


class Settings(Struct, frozen=True):
    """What git's configuration says of signatures."""

    wanted: bool = False
    format: str = "openpgp"
    key: str | None = None
    program: str = "gpg"
    key_command: str | None = None

    @classmethod
    def read(cls, entries: Iterable[tuple[str, str | None]]) -> Settings:
        """From keys and values (None: a key alone), the strongest last."""
        last: dict[str, str | None] = {}
        for key, value in entries:
            last["gpg.openpgp.program" if key == "gpg.program" else key] = value
        format = last.get("gpg.format") or "openpgp"
        if format not in _PROGRAMS:
            raise CannotSign(f"git's gpg.format is {format!r}", "set openpgp, x509 or ssh there")
        return cls(
            _flag("commit.gpgSign", last.get("commit.gpgsign", "false")),
            format,
            last.get("user.signingkey"),
            last.get(f"gpg.{format}.program") or _PROGRAMS[format],
            last.get("gpg.ssh.defaultkeycommand"),
        )


def _flag(key: str, value: str | None) -> bool:
    """As git reads one."""
    text = "true" if value is None else value.lower()
    if re.fullmatch(r"[-+]?\d+[kmg]?", text):
        return int(text.rstrip("kmg")) != 0
    if text not in _TRUE | _FALSE:
        raise CannotSign(f"git's {key} is {value!r}", "set true or false there")
    return text in _TRUE


class Signer:
    """Puts signatures on a repository's new commits, where they are wanted."""

    def __init__(self, repo: Repository, wanted: Wanted = "auto") -> None:
        self._repo, self._wanted = repo, wanted
        self._stamps: Mapping[str, object] = {}
        self._read = Settings()
        self._failed: tuple[float, Settings, CannotSign] | None = None

    def settings(self) -> Settings:
        """As git is configured now; `CannotSign` where that cannot be told."""
        if not self._stamps or self._stamps != _stamps(self._stamps):
            places = _standard_places(self._repo)
            stamps = _stamps(map(str, places))  # first: what changes meanwhile is read again
            origins, self._read = self._ask(places)
            self._stamps = stamps | _stamps(map(str, origins))
        return self._read

    @property
    def wanted(self) -> bool:
        """Whether commits get a signature now."""
        return self.settings().wanted if self._wanted == "auto" else self._wanted

    @property
    def resting(self) -> bool:
        """Whether nothing is tried for a while, as it failed."""
        return self._failed is not None and monotonic() < self._failed[0]

    def try_out(self, committer: Identity) -> Settings | None:
        """Sign something, to see whether that works: how it was done, or None if commits are not
        to be signed.  `CannotSign` where it does not work."""
        if self._wanted is False or not self.wanted:
            return None
        self._failed = None
        self.signed(b"tree %b\n\nTry\n" % (b"0" * 40), committer)
        return self.settings()

    def signed(self, commit: bytes, committer: Identity) -> bytes:
        """The commit object's bytes with a signature in their header, where one is wanted.

        `CannotSign` if it cannot be had; never is a commit left without it.
        """
        if self._wanted is False or not self.wanted:
            return commit
        settings = self.settings()
        if self._failed:
            until, how, error = self._failed
            if how == settings and monotonic() < until:
                raise error
        began = monotonic()
        try:
            signature = self._signature(settings, commit, committer)
        except CannotSign as error:
            ended = monotonic()
            pause = max(AGAIN_SECONDS, _AGAIN_TIMES * (ended - began))
            self._failed = ended + pause, settings, error
            raise
        self._failed = None
        return with_signature(commit, signature)

    def _ask(self, places: Iterable[Path]) -> tuple[list[Path], Settings]:
        """The files that git's configuration comes from, and what it says."""
        own = {key: text for key, text in os.environ.items() if key.startswith("GIT_CONFIG")}
        asked = self._wanted is True or not own.keys().isdisjoint(_ENTRIES)
        if not asked and not any(_WORD.search(_content(place)) for place in places):
            return [], Settings()
        environment = plain_environment(**own, GIT_DIR=str(self._repo.gitdir))
        git = Git(environment, directory=_directory(self._repo), seconds=_GIT_SECONDS)
        try:
            done = git.run("config", "--list", "--show-origin", "--includes", "-z")
        except (Fault, OSError, subprocess.SubprocessError) as error:
            raise CannotSign(f"git does not say whether: {error}", "install git") from None
        if done.returncode:
            raise CannotSign(f"git does not say whether: {complaint(done)}", "correct that file")
        fields = done.stdout.decode("utf-8", "surrogateescape").split("\0")
        files = [Path(at[5:]) if at.startswith("file:") else None for at in fields[:-1:2]]
        read = (entry.partition("\n") for entry in fields[1::2])
        entries = [(key, value if cut else None) for key, cut, value in read]
        origins = {file for file in files if file}
        for file, (key, value) in zip(files, entries, strict=True):
            if file and value and key.startswith("include") and key.endswith(".path"):
                origins.add(file.parent / Path(value).expanduser())  # may be empty, or not there
        return [_directory(self._repo) / at for at in sorted(origins)], Settings.read(entries)

    def _signature(self, settings: Settings, commit: bytes, committer: Identity) -> bytes:
        try:
            if settings.format == "ssh":
                made = self._by_ssh(settings, commit)
            else:
                made = self._by_gnupg(settings, commit, committer)
        except OSError as error:
            raise disk_fault(error) or CannotSign(f"{settings.program}: {error.strerror}") from None
        made = made.replace(b"\r\n", b"\n").strip(b"\n") + b"\n"
        if not made.startswith(_BEGINS[settings.format]):
            raise CannotSign(f"{settings.program} made no {settings.format} signature", _CURE)
        return made

    def _by_gnupg(self, settings: Settings, commit: bytes, committer: Identity) -> bytes:
        key = settings.key or f"{committer.name} <{committer.email}>"
        program = os.path.expanduser(settings.program)
        options = _ASKS_NOBODY if os.path.basename(program) in _GNUPG else ()
        done = self._run([program, *options, "--status-fd=2", "-bsau", key], commit)
        if done.returncode or not re.search(rb"^\[GNUPG:\] SIG_CREATED ", done.stderr, re.M):
            raise CannotSign(_said(f"{settings.program} with the key {key!r}", done), _CURE)
        return done.stdout

    def _by_ssh(self, settings: Settings, commit: bytes) -> bytes:
        key = settings.key or self._default_key(settings.key_command)
        program = os.path.expanduser(settings.program)
        with TemporaryDirectory(prefix="patchq-sign-") as name:
            file, signature = Path(name, "commit"), Path(name, "commit.sig")
            file.write_bytes(commit)
            of: tuple[str, ...] = (os.path.expanduser(key),)
            if literal := _literal(key):
                Path(name, "key").write_text(f"{literal}\n")
                of = (f"{name}/key", "-U")  # the agent has the other half
            done = self._run([program, "-Y", "sign", "-n", "git", "-f", *of, str(file)])
            if done.returncode or not signature.is_file():
                raise CannotSign(_said(f"{settings.program} with the key {key!r}", done), _CURE)
            return signature.read_bytes()

    def _default_key(self, command: str | None) -> str:
        if not command:
            raise CannotSign(
                "neither user.signingKey nor gpg.ssh.defaultKeyCommand is set in git",
                "git config user.signingKey ~/.ssh/KEY.pub",
            )
        try:
            done = self._run(shlex.split(command))
        except ValueError as error:
            raise CannotSign(f"git's gpg.ssh.defaultKeyCommand: {error}", "correct it") from None
        first = done.stdout.decode("utf-8", "replace").split("\n")[0]
        if done.returncode or not _literal(first):
            raise CannotSign(
                _said("gpg.ssh.defaultKeyCommand, which gave no key", done),
                "have it print a public key, as `ssh-add -L` does",
            )
        return first

    def _run(self, words: Sequence[str], stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        """Run a program that shall ask nobody; all that it started ends with its time."""
        environment = {key: text for key, text in plain_environment().items() if key not in _ASKING}
        environment["SSH_ASKPASS_REQUIRE"] = "never"
        try:
            process = subprocess.Popen(
                words,
                cwd=_directory(self._repo),
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except (FileNotFoundError, PermissionError) as error:
            raise CannotSign(
                f"git's program for it does not start: {words[0]}: {error.strerror}",
                "install it, or correct gpg.program, gpg.x509.program or gpg.ssh.program in git",
            ) from None
        with process:
            try:
                out, err = process.communicate(stdin, SECONDS)
            except subprocess.TimeoutExpired:
                raise CannotSign(
                    f"{words[0]} gave no signature in {SECONDS:.0f} s: it waits for somebody, "
                    "or for a device",
                    _CURE,
                ) from None
            finally:
                if process.poll() is None:
                    with suppress(ProcessLookupError):
                        os.killpg(process.pid, signal.SIGKILL)
        return subprocess.CompletedProcess(words, process.returncode, out, err)


def with_signature(commit: bytes, signature: bytes) -> bytes:
    """The object with the signature behind its other headers, as git puts it there."""
    head, cut, message = commit.partition(b"\n\n")
    lines = signature.rstrip(b"\n").split(b"\n")
    return head + b"\ngpgsig " + b"\n ".join(lines) + cut + message


def is_signed(commit: bytes) -> bool:
    """Whether the object's bytes have a signature in their header."""
    return b"\ngpgsig" in commit.partition(b"\n\n")[0]


def _literal(key: str) -> str | None:
    """The public key that git's setting is itself; None where it names a file."""
    return key[5:] if key.startswith("key::") else key if key.startswith("ssh-") else None


def _said(who: str, done: subprocess.CompletedProcess[bytes]) -> str:
    lines = (line.strip() for line in complaint(done).splitlines())
    said = "; ".join(line for line in lines if line and not line.startswith("[GNUPG:]"))
    return f"{who}: {said[-_MOST_SAID:] or f'it ended with {done.returncode}'}"


def _directory(repo: Repository) -> Path:
    return repo.workdir or repo.gitdir


def _standard_places(repo: Repository) -> list[Path]:
    """Where git looks for its configuration, and HEAD, of which includes may depend."""
    environ = os.environ
    users = Path(environ.get("XDG_CONFIG_HOME") or Path.home() / ".config", "git/config")
    places = [repo.commondir / "config", repo.gitdir / "config.worktree", repo.gitdir / "HEAD"]
    if named := environ.get("GIT_CONFIG_GLOBAL"):
        places.append(Path(named))
    else:
        places += [Path.home() / ".gitconfig", users]
    if named := environ.get("GIT_CONFIG_SYSTEM"):
        return [*places, Path(named)]
    return [*places, *_system_places(environ.get("PATH", os.defpath))]


@cache
def _system_places(path: str) -> tuple[Path, ...]:
    """The machine's configuration: git was built for one of these."""
    git = Path(which("git", path=path) or "/usr/bin/git")
    prefixes = {Path("/"), git.parent.parent, git.resolve().parent.parent}
    return tuple(prefix / "etc/gitconfig" for prefix in sorted(prefixes))


def _stamps(places: Iterable[str]) -> dict[str, object]:
    """What tells whether a file is another one than it was."""
    found: dict[str, object] = {}
    for place in places:
        try:
            there = os.stat(place)
            found[place] = there.st_ino, there.st_size, there.st_mtime_ns
        except OSError:
            found[place] = None
    return found


def _content(place: Path) -> bytes:
    try:
        return place.read_bytes()
    except OSError:
        return b""
