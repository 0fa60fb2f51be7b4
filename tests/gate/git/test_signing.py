"""Signatures on commits: what is asked of git and when, and what programs may do."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from patchq.gate.errors import CannotSign
from patchq.gate.git import signing as module
from patchq.gate.git.command import Git
from patchq.gate.git.objects import Identity
from patchq.gate.git.repository import Repository
from patchq.gate.git.signing import Signer, is_signed
from tests.helpers.gitrepo import git, make_repo
from tests.helpers.keys import configure, signing

WHO = Identity("Ada Tester", "ada@example.org", 1_700_000_000, 0)
COMMIT = (
    f"tree {'0' * 40}\nauthor {WHO}\ncommitter {WHO}\n\nA message\n\ngpgsig not this\n".encode()
)


@pytest.fixture
def repo(tmp_path: Path) -> Repository:
    return Repository.open(make_repo(tmp_path / "repo", {"a.txt": "a\n"}))


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """How git was called."""
    calls: list[tuple[str, ...]] = []
    run = Git.run

    def counted(self: Git, *words: str) -> object:
        calls.append(words)
        return run(self, *words)

    monkeypatch.setattr(Git, "run", counted)
    return calls


def test_git_is_asked_again_only_when_a_file_changed(
    repo: Repository, home: Path, asked: list[tuple[str, ...]]
) -> None:
    signer = Signer(repo)
    assert not signer.wanted
    (home / "more").write_text("")
    configure(home, "include.path", str(home / "more"))
    assert not signer.wanted
    assert len(asked) == 1
    (home / "more").write_text("[commit]\n\tgpgSign = true\n")
    assert [signer.wanted for _ in range(3)] == [True] * 3
    assert len(asked) == 2
    git("config", "commit.gpgSign", "false", cwd=repo.gitdir)
    assert not signer.wanted


def test_a_broken_configuration_is_not_taken_for_none(repo: Repository, home: Path) -> None:
    signer = Signer(repo)
    with (home / ".gitconfig").open("a") as file:
        file.write("[commit\n\tgpgSign = true\n")
    with pytest.raises(CannotSign, match="bad config line"):
        signer.signed(COMMIT, WHO)


def test_a_program_that_hangs_is_ended_and_then_left_alone_for_a_while(
    repo: Repository, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SECONDS", 0.3)
    program = tmp_path / "hangs"
    program.write_text(f"#!/bin/sh\necho x >> {tmp_path}/count\nsleep 61 & sleep 61\n")
    program.chmod(0o755)
    configure(home, "commit.gpgSign", "true")
    configure(home, "gpg.program", str(program))
    signer, began = Signer(repo), time.monotonic()
    for _ in range(5):
        with pytest.raises(CannotSign, match="it waits for somebody"):
            signer.signed(COMMIT, WHO)
    assert time.monotonic() - began < 50
    assert (tmp_path / "count").read_text() == "x\n"
    assert signer.resting
    with signing("ssh", home):  # another configuration is tried at once
        assert is_signed(signer.signed(COMMIT, WHO))
        assert not signer.resting


def test_a_program_of_ones_own_is_called_as_git_calls_it(
    repo: Repository, home: Path, tmp_path: Path
) -> None:
    program = tmp_path / "own"
    begin = "-----BEGIN SIGNED MESSAGE-----"
    program.write_text(
        f"#!/bin/sh\ncat > {tmp_path}/input\n"
        f'(echo "$@"; tty) > {tmp_path}/words\n'
        f"echo '[GNUPG:] SIG_CREATED ' >&2; printf '%s\\r\\n' '{begin}' abc\n"
    )
    program.chmod(0o755)
    for key, value in (
        ("commit.gpgSign", "true"), ("gpg.format", "x509"), ("gpg.x509.program", str(program)),
        ("user.signingKey", "--dangerous"),
    ):  # fmt: skip
        configure(home, key, value)
    signed = Signer(repo).signed(COMMIT, WHO)
    assert f"\ngpgsig {begin}\n abc\n\n".encode() in signed
    words = (tmp_path / "words").read_text().split("\n")
    assert words[0] == "--status-fd=2 -bsau --dangerous"
    assert "not a tty" in words[1]
    assert (tmp_path / "input").read_bytes() == COMMIT
