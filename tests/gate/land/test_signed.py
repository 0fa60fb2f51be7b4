"""Commits are signed as git is configured, by real keys, and as real git verifies it; or nothing
lands."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers.command import block, patchq, report, work
from tests.helpers.gitrepo import commit_files, git, make_repo, shell, tip, write_config
from tests.helpers.keys import FORMATS, configure, signing, verified

AUTO = "version: 1\ntarget: main\nmode: auto\nqueue: {settle_seconds: 0.01}\n"
RESPONSE = block("a.txt", "one\n", "ONE\n")
TEXT = "one\n2\n3\n4\n5\n6\n7\n8\n9\nten\n"


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    repo = make_repo(tmp_path / "repo", {"a.txt": TEXT})
    git("checkout", "-q", "-b", "elsewhere", cwd=repo)
    commit_files(repo, {}, "Elsewhere")
    write_config(repo, AUTO)
    patchq("init", cwd=repo)
    return repo


@pytest.fixture(params=FORMATS)
def key(request: pytest.FixtureRequest, home: Path) -> Iterator[str]:
    with signing(request.param, home) as key:
        yield key


@pytest.fixture
def ssh(home: Path, repo: Path) -> Iterator[str]:
    """A key, after the repository was made."""
    with signing("ssh", home) as key:
        yield key


def state(repo: Path, id: str) -> tuple[str, list[str]]:
    told = report(repo / ".patchq", id)
    return told["state"], [f"{p['code']}: {p['message']}; {p['hint']}" for p in told["problems"]]


def header(repo: Path, commit: str) -> str:
    return git("cat-file", "commit", commit, cwd=repo).split("\n\n")[0]


def test_each_format_is_signed_as_git_verifies_it(repo: Path, key: str) -> None:
    work(repo, x=RESPONSE)
    assert state(repo, "x") == ("applied", [])
    assert "Ada Tester" in verified(repo) or "ada@example.org" in verified(repo)
    shown = git("log", "-1", "--format=%G?", "--show-signature", "main", cwd=repo)
    assert shown.split("\n")[-1] in ("G", "U")
    assert report(repo / ".patchq", "x")["commit"] == tip(repo)
    git("fsck", "--strict", cwd=repo)


def test_a_proposal_is_signed_and_signed_again_when_it_is_made_again(repo: Path, ssh: str) -> None:
    write_config(repo, AUTO.replace("auto", "review"))
    work(repo, x=RESPONSE, y=block("a.txt", "ten\n", "TEN\n"))
    first = tip(repo, "patchq/y")
    verified(repo, "patchq/x")
    verified(repo, "patchq/y")
    patchq("accept", "x", cwd=repo)
    assert tip(repo, "patchq/y") != first
    verified(repo, "patchq/y")
    patchq("accept", "y", cwd=repo)
    verified(repo, "main~1")
    assert "gpgsig" not in header(repo, "refs/notes/patchq"), "git signs no notes either"
    patchq("revert", "x", cwd=repo)
    assert 'Revert "' in git("log", "-1", "--format=%s", "main", cwd=repo)
    verified(repo, "main")


@pytest.mark.parametrize(
    ("git_says", "sign", "signed"),
    [("true", "false", False), ("false", "true", True), ("yes", "auto", True)],
)
def test_git_says_it_unless_patchq_does(
    repo: Path, ssh: str, home: Path, git_says: str, sign: str, signed: bool
) -> None:
    configure(home, "commit.gpgSign", git_says)
    write_config(repo, AUTO + f"commit: {{sign: {sign}}}\n")
    patchq("config", "check", cwd=repo)
    work(repo, x=RESPONSE)
    assert ("gpgsig" in header(repo, "main")) is signed


BROKEN = {
    "no program": ("gpg.ssh.program", "/nowhere/ssh-keygen", "/nowhere/ssh-keygen"),
    "no flag": ("commit.gpgSign", "perhaps", "'perhaps'"),
    "no signature": ("gpg.ssh.program", "/bin/true", "made no signature"),
    "a passphrase": ("", "", "passphrase"),
}
"""A key of git's with its value, and what is told of it."""


@pytest.mark.parametrize("way", BROKEN)
def test_a_key_that_cannot_sign_holds_the_batch(repo: Path, ssh: str, home: Path, way: str) -> None:
    before, saved = git("for-each-ref", cwd=repo), (home / ".gitconfig").read_bytes()
    whole = Path(ssh).read_bytes()
    name, value, said = BROKEN[way]
    if way == "a passphrase":
        shell(f"ssh-keygen -q -p -P '' -N secret -f {ssh}", repo)
    else:
        configure(home, name, value)
    work(repo, x=RESPONSE, y=block("a.txt", "nowhere\n", "x\n"))
    was, (problem,) = state(repo, "x")
    assert was == "held"
    assert problem.startswith("fault.repository: the commit cannot be signed: ")
    assert said in problem, problem
    assert state(repo, "y")[0] == "rejected", "others get their verdict"
    assert git("for-each-ref", cwd=repo) == before
    doctor = patchq("--json", "doctor", cwd=repo, code=1).json()["findings"]
    (found,) = [finding for finding in doctor if finding["what"] == "git.signing"]
    assert said in found["message"]
    assert said in patchq("config", "check", cwd=repo, code=2).err
    (home / ".gitconfig").write_bytes(saved)
    Path(ssh).write_bytes(whole)
    patchq("run", cwd=repo, code=0)
    assert state(repo, "x") == ("applied", [])
    verified(repo)


def test_an_accept_and_a_revert_without_a_signature_move_nothing(
    repo: Path, ssh: str, home: Path
) -> None:
    write_config(repo, AUTO.replace("auto", "review"))
    work(repo, x=RESPONSE, y=block("a.txt", "ten\n", "TEN\n"))
    patchq("accept", "x", cwd=repo)
    configure(home, "user.signingKey", "/nowhere/key")
    # What a person commits on the target, which the proposal has to follow.
    moved = git("commit-tree", "-p", "main", "-m", "By hand", "main^{tree}", cwd=repo)
    git("update-ref", "refs/heads/main", moved, cwd=repo)
    for words in (("accept", "y"), ("revert", "x")):
        done = patchq(*words, cwd=repo, code=None)
        assert done.code
        assert "/nowhere/key" in done.out + done.err
        assert tip(repo) == moved
    assert not list((repo / ".patchq/active").iterdir())
