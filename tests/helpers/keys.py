"""Keys for signing, made by the real programs, and a git that is configured to use them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.helpers.gitrepo import git

FORMATS = ("openpgp", "ssh", "x509")
_NEEDED = {"openpgp": ("gpg",), "ssh": ("ssh-keygen",), "x509": ("gpgsm", "gpg-agent")}
_WHO = "Ada Tester <ada@example.org>"
_REQUEST = """\
Key-Type: RSA
Key-Length: 2048
Key-Usage: sign
Serial: random
Name-DN: CN=Ada Tester
Name-Email: ada@example.org
"""


@contextmanager
def signing(format: str, home: Path, passphrase: str = "") -> Iterator[str]:
    """Git's own configuration of the test has commits signed, by a key that is made here; the
    value of `user.signingKey`."""
    if missing := [name for name in _NEEDED[format] if shutil.which(name) is None]:
        pytest.skip(f"there is no {missing[0]}")
    # GnuPG's sockets are in it, and their paths may not be long.
    place = Path(tempfile.mkdtemp(prefix="pq-"))
    before = os.environ.get("GNUPGHOME")
    os.environ["GNUPGHOME"] = str(place)
    try:
        key = {"openpgp": _openpgp, "ssh": _ssh, "x509": _x509}[format](place, passphrase)
        configure(home, "gpg.format", format)
        configure(home, "commit.gpgSign", "true")
        configure(home, "user.signingKey", key)
        yield key
    finally:
        if format != "ssh":
            _run("gpgconf", "--kill", "all")
        os.environ.pop("GNUPGHOME")
        if before is not None:
            os.environ["GNUPGHOME"] = before
        shutil.rmtree(place, ignore_errors=True)


def configure(home: Path, key: str, value: str) -> None:
    """Set something in the user's git configuration."""
    git("config", "--global", key, value, cwd=home)


def verified(repo: Path, commit: str = "main") -> str:
    """What git says of a commit's signature; a bad or missing one fails the test."""
    done = subprocess.run(
        ["git", "verify-commit", commit], cwd=repo, capture_output=True, timeout=60
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stderr.decode()


def _openpgp(place: Path, passphrase: str) -> str:
    words = ("--batch", "--pinentry-mode", "loopback", "--passphrase", passphrase)
    _run("gpg", *words, "--quick-generate-key", _WHO, "ed25519", "sign", "never")
    listed = _run("gpg", "--list-keys", "--with-colons").stdout.decode()
    found = re.search(r"^fpr:+([0-9A-F]+):", listed, re.M)
    assert found
    return found[1]


def _ssh(place: Path, passphrase: str) -> str:
    _run("ssh-keygen", "-q", "-t", "ed25519", "-N", passphrase, "-f", f"{place}/key")
    public = (place / "key.pub").read_text()
    (place / "allowed").write_text(f"ada@example.org {public}")
    git("config", "--global", "gpg.ssh.allowedSignersFile", f"{place}/allowed", cwd=place)
    return f"{place}/key"


def _x509(place: Path, passphrase: str) -> str:
    (place / "gpgsm.conf").write_text("disable-crl-checks\n")
    words = ("--batch", "--pinentry-mode", "loopback", "--passphrase-fd", "0")
    (place / "request").write_text(_REQUEST)
    made = _run("gpgsm", *words, "--gen-key", f"{place}/request", stdin=passphrase.encode())
    _run("gpgsm", "--import", stdin=made.stdout)
    listed = _run("gpgsm", "--list-secret-keys", "--with-colons").stdout.decode()
    found = re.search(r"^fpr:+([0-9A-F]+):", listed, re.M)
    assert found
    (place / "trustlist.txt").write_text(f"{found[1]} S relax\n")
    _run("gpgconf", "--kill", "gpg-agent")
    return found[1]


def _run(*words: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    done = subprocess.run(words, input=stdin, capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr.decode()
    return done
