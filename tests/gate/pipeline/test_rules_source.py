"""The rules of the gate come from the operator, never from what is checked out (S1)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from patchq.gate.api.location import Options
from patchq.gate.api.shared import SharedGate
from patchq.gate.errors import UsageError
from tests.helpers.command import block, drop, give, patchq, report
from tests.helpers.ending import running, until
from tests.helpers.gitrepo import commit_files, git, make_repo, tip, write_config

RESPONSE = block("a.txt", "one\n", "two\n")


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A repository with an agent's branch checked out, whose file would land all and run a hook."""
    repo = make_repo(tmp_path / "repo", {"a.txt": "one\n"})
    patchq("init", cwd=repo)
    (repo / ".patchq.yaml").unlink()
    hooks = [
        {"id": stage, "stage": stage, "run": f"touch {tmp_path}/marker", "unconfined": True}
        for stage in ("pre-apply", "pre-commit", "post-commit")
    ]
    git("checkout", "-q", "-b", "agent/x", cwd=repo)
    commit_files(repo, {".patchq.yaml": json.dumps({"mode": "auto", "hooks": hooks})})
    return repo


@contextmanager
def daemon(repo: Path) -> Iterator[subprocess.Popen[bytes]]:
    with running([sys.executable, "-m", "patchq", "-q", "watch"], cwd=repo) as process:
        until(lambda: (repo / ".patchq/lock").exists() and (repo / ".patchq/lock").read_text())
        yield process
        process.terminate()
        process.wait(60)


def verdict(repo: Path, id: str = "x") -> None:
    until(lambda: list((repo / ".patchq").glob(f"*/{id}.report.json")))


def through_run(repo: Path) -> None:
    give(repo, "x", RESPONSE)


def through_sighup(repo: Path) -> None:
    git("checkout", "-q", "main", cwd=repo)
    with daemon(repo) as process:
        git("checkout", "-q", "agent/x", cwd=repo)
        process.send_signal(signal.SIGHUP)
        drop(repo / ".patchq", {"x.md": RESPONSE})
        verdict(repo)


def through_hooks(repo: Path) -> None:
    listed = patchq("--json", "hooks", "list", cwd=repo).json()
    assert not any(hook["enabled"] for hook in listed["hooks"])
    git("branch", "side", "main", cwd=repo)
    git("worktree", "add", "-q", "side", "side", cwd=repo)
    commit_files(repo / "side", {"a.txt": "two\n"})
    mail = git("format-patch", "-1", "--stdout", cwd=repo / "side") + "\n"
    patchq("hooks", "install", "--git", cwd=repo)
    git("checkout", "-q", "-b", "mine", cwd=repo)
    git("am", "-q", cwd=repo, stdin=mail)


def through_push(repo: Path) -> None:
    patchq("hooks", "install", "--git", cwd=repo)
    git("worktree", "add", "-q", "-b", "work", "../work", "main", cwd=repo)
    commit_files(repo / "../work", {"a.txt": "two\n"})
    git("push", "-q", str(repo), "HEAD:refs/for/main", cwd=repo / "../work")
    patchq("run", cwd=repo)


def through_linked(repo: Path) -> None:
    git("worktree", "add", "-q", "-b", "agent/y", "../linked", "agent/x", cwd=repo)
    drop(repo / ".patchq", {"x.md": RESPONSE})
    patchq("run", cwd=repo.parent / "linked")


DOORS = (through_run, through_sighup, through_hooks, through_push, through_linked)


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.__name__.removeprefix("through_"))
def test_a_checked_out_branch_brings_no_rules(door: Callable[[Path], None], repo: Path) -> None:
    before = tip(repo)
    door(repo)
    assert tip(repo) == before
    assert not (repo.parent / "marker").exists()


def test_a_bare_repository_reads_its_home_branch(repo: Path, tmp_path: Path) -> None:
    bare = tmp_path / "bare.git"
    git("clone", "-q", "--bare", "repo", "bare.git", cwd=tmp_path)
    git("symbolic-ref", "HEAD", "refs/heads/agent/x", cwd=bare)
    patchq("init", "--target", "main", cwd=bare)
    give(bare, "x", RESPONSE)
    assert (tip(bare), (tmp_path / "marker").exists()) == (tip(repo), False)


def test_the_page_and_mcp_see_what_counts(repo: Path) -> None:
    door = SharedGate(Options(repo))

    def rules() -> tuple[str, int]:
        with door.gate(targeted=True, writes=True) as gate:
            config = gate.context().config
            return config.mode, len(config.hooks)

    try:
        assert rules() == ("review", 0)
        git("checkout", "-q", "main", cwd=repo)
        commit_files(repo, {".patchq.yaml": "mode: auto\n"})
        assert rules() == ("auto", 0)
        commit_files(repo, {".patchq.yaml": "mode: sideways\n"})
        with pytest.raises(UsageError, match=r"main:\.patchq\.yaml:1:7 mode"):
            rules()
    finally:
        door.close()


def test_rules_of_a_remotes_branch_are_those_last_fetched(tmp_path: Path) -> None:
    """What is committed here alone does not count, as for a worker's clone."""
    shared = make_repo(tmp_path / "shared", {"a.txt": "one\n"})
    commit_files(shared, {".patchq.yaml": "landing: {remote: origin}\n"})
    git("clone", "-q", str(shared), "clone", cwd=tmp_path)
    clone = tmp_path / "clone"
    patchq("init", "--remote", "origin", cwd=clone)
    auto = "mode: auto\nlanding: {remote: origin}\n"
    commit_files(clone, {".patchq.yaml": auto})
    assert patchq("--json", "status", cwd=clone).json()["mode"] == "review"
    commit_files(shared, {".patchq.yaml": auto})
    git("fetch", "-q", cwd=clone)
    assert patchq("--json", "status", cwd=clone).json()["mode"] == "auto"
    commit_files(shared, {".patchq.yaml": "mode: auto\n"})
    git("fetch", "-q", cwd=clone)
    said = patchq("run", cwd=clone, code=2).err
    assert "landing.remote: expected `origin`, as `patchq.remote`" in said


@pytest.mark.parametrize("source", ["file", "git directory", "home branch", "defaults"])
def test_the_first_place_counts(source: str, tmp_path: Path) -> None:
    text, other = "mode: auto\n", "mode: review\n"
    repo, words = make_repo(tmp_path / "repo", {"a.txt": "one\n"}), []
    if source == "defaults":
        (repo / ".patchq.yaml").write_text(text)
    else:
        commit_files(repo, {".patchq.yaml": text if source == "home branch" else other})
    if source in ("file", "git directory"):
        write_config(repo, text if source == "git directory" else other)
    if source == "file":
        (tmp_path / "mine.yaml").write_text(text)
        words = ["--config", str(tmp_path / "mine.yaml")]
    patchq(*words, "init", cwd=repo)
    drop(repo / ".patchq", {"x.md": RESPONSE})
    patchq(*words, "run", cwd=repo)
    given = report(repo / ".patchq", "x")
    blob = git("hash-object", "--stdin", cwd=repo, stdin=text)
    assert given["rules"] == {"from": source, "blob": None if source == "defaults" else blob}
    assert given["state"] == ("proposed" if source == "defaults" else "applied")


def recorded(repo: Path, key: str = "target") -> str:
    words = ["git", "config", "--file", ".git/config", "--no-includes", f"patchq.{key}"]
    done = subprocess.run(words, cwd=repo, capture_output=True, check=False, timeout=60)
    return done.stdout.decode().strip()


@pytest.mark.parametrize("where", ["config.worktree", "global", "included"])
def test_only_the_common_file_names_the_home_branch(where: str, repo: Path, home: Path) -> None:
    other = "[patchq]\n\ttarget = agent/x\n"
    if where == "config.worktree":
        git("config", "extensions.worktreeConfig", "true", cwd=repo)
        (repo / ".git/config.worktree").write_text(other)
    elif where == "included":
        (repo / ".git/other").write_text(other)
        git("config", "include.path", "other", cwd=repo)
    else:
        with (home / ".gitconfig").open("a") as file:
            file.write(other)
    assert patchq("--json", "status", cwd=repo).json()["target"] == "main"


@pytest.mark.parametrize("words", [["--detach"], ["-b", "agent/y"]], ids=["detached", "agent"])
def test_a_branch_of_an_agent_is_not_recorded(words: list[str], tmp_path: Path) -> None:
    files = {"a.txt": "one\n", ".patchq.yaml": "branches: [agent/*]\n"}
    repo = make_repo(tmp_path / "repo", files)
    git("checkout", "-q", *words, cwd=repo)
    for verb in (["run"], ["init"], ["submit", "-"]):
        assert "--target" in patchq(*verb, cwd=repo, stdin=RESPONSE, code=2).err
    assert recorded(repo) == ""
    assert "main is the home branch" in patchq("run", "--target", "main", cwd=repo).err
    assert recorded(repo) == "main"


def test_the_record_changes_by_target_alone(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo", {"a.txt": "one\n"})
    git("remote", "add", "origin", ".", cwd=repo)
    git("branch", "trunk", cwd=repo)
    git("fetch", "-q", "origin", cwd=repo)
    git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/trunk", cwd=repo)
    patchq("init", cwd=repo)
    assert recorded(repo) == "trunk"
    assert "say --target" in patchq("init", "--remote", "origin", cwd=repo, code=2).err
    git("symbolic-ref", "refs/heads/alias", "refs/heads/main", cwd=repo)
    refusals = {
        "gone": "there is no branch gone; create it",
        "a b": "'a b' cannot be the name of a branch",
        "alias": "the home branch alias is gone, or a symbolic ref",
    }
    for name, refusal in refusals.items():
        assert refusal in patchq("init", "--target", name, cwd=repo, code=2).err
    (repo / ".git/patchq.yaml").write_text("landing: {remote: origin}\n")
    said = patchq("init", "--target", "main", "--remote", "origin", cwd=repo).err
    assert "origin/main is the home branch from now on, no longer trunk" in said
    assert (recorded(repo), recorded(repo, "remote")) == ("main", "origin")
    write_config(repo, "mode: auto\n")
    assert "landing.remote" in patchq("status", cwd=repo, code=None).err


def test_an_edited_file_is_said_not_to_count(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo", {"a.txt": "one\n", ".patchq.yaml": "mode: review\n"})
    patchq("init", cwd=repo)
    (repo / ".patchq.yaml").write_text("# the same\nmode: review\n")
    assert "does not count" not in patchq("run", cwd=repo).err
    (repo / ".patchq.yaml").write_text("mode: auto\n")
    for words in (("run",), ("config", "check"), ("status",), ("doctor",)):
        done = patchq(*words, cwd=repo, code=None)
        assert "does not count" in done.out + done.err, words
        assert "commit it to main" in done.out + done.err, words
    git("checkout", "-q", "-b", "other", cwd=repo)
    commit_files(repo, {".patchq.yaml": "mode: auto\n"})
    assert patchq("run", cwd=repo).err == ""
    assert "this branch has other rules" in patchq("status", cwd=repo).out
    assert "it counts then" in patchq("hooks", "install", cwd=repo).out


def test_a_home_branch_that_is_gone(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo", {"a.txt": "one\n"})
    git("checkout", "-q", "-b", "other", cwd=repo)
    patchq("init", "--target", "main", cwd=repo)
    at = tip(repo)
    with daemon(repo):
        git("branch", "-q", "-D", "main", cwd=repo)
        drop(repo / ".patchq", {"x.md": RESPONSE})
        assert "home branch main is gone" in patchq("status", cwd=repo).out
        assert os.listdir(repo / ".patchq/inbox") == ["x.md"]
        git("branch", "main", at, cwd=repo)
        verdict(repo)
    git("branch", "-q", "-D", "main", cwd=repo)
    assert "patchq init --target" in patchq("run", cwd=repo, code=2).err
    git("symbolic-ref", "refs/heads/main", "refs/heads/other", cwd=repo)
    assert "or a symbolic ref" in patchq("run", cwd=repo, code=2).err


def test_a_daemon_follows_the_home_branch(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo", {"a.txt": "one\n", ".patchq.yaml": "mode: review\n"})
    patchq("init", cwd=repo)

    def given(id: str) -> str:
        text = f"---\nid: {id}\n---\n```text:new-{id}.txt\n{id}\n```\n"
        drop(repo / ".patchq", {f"{id}.md": text})
        verdict(repo, id)
        return str(report(repo / ".patchq", id)["state"])

    with daemon(repo):
        assert given("x") == "proposed"
        commit_files(repo, {".patchq.yaml": "mode: auto\n"})
        assert given("y") == "applied"
        commit_files(repo, {".patchq.yaml": "mode: sideways\n"})
        assert given("z") == "applied"
        said = patchq("status", cwd=repo).out
        assert "main:.patchq.yaml:1:7 mode: expected" in said
        assert "a daemon keeps the rules that it has" in said
    assert "main:.patchq.yaml:1:7" in patchq("run", cwd=repo, code=2).err
