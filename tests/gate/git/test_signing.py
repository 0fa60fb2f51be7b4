"""Programs that sign commits: one that hangs, one that git cannot read, one of one's own."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from patchq.gate.errors import CannotSign
from patchq.gate.git import signing as module
from patchq.gate.git.objects import Identity, object_id
from patchq.gate.git.repository import Repository
from patchq.gate.git.signing import Signer
from tests.helpers.gitrepo import make_repo
from tests.helpers.keys import configure

WHO = Identity("Ada Tester", "ada@example.org", 1_700_000_000, 0)
TREE = object_id(2, b"")
COMMIT = f"tree {TREE}\nauthor {WHO}\ncommitter {WHO}\n\nA message\n".encode()


@pytest.fixture
def repo(tmp_path: Path) -> Repository:
    return Repository.open(make_repo(tmp_path / "repo", {"a.txt": "a\n"}))


def test_a_broken_configuration_is_not_taken_for_none(repo: Repository, home: Path) -> None:
    signer = Signer(repo)
    with (home / ".gitconfig").open("a") as file:
        file.write("[commit\n\tgpgSign = true\n")
    with pytest.raises(CannotSign, match="bad config line"):
        signer.signed(COMMIT)


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
        with pytest.raises(CannotSign, match="waits for a person"):
            signer.signed(COMMIT)
    assert time.monotonic() - began < 50
    assert (tmp_path / "count").read_text() == "x\n"
    assert signer.resting
