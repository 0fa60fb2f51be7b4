"""Every kind of bad neighbour at once: what stands behind them gets its verdict all the same, and
`status` and `doctor` name each cause with its cure."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers.command import block, codes, patchq, work
from tests.helpers.gitrepo import git, make_repo, write_config

GOOD = 12
FILES = {f"good/{n}.txt": f"{n}\n" for n in range(GOOD)} | {
    "damaged.txt": "damaged\n",
    "slow/a.txt": "slow\n",
    "a.txt": "a\n",
}
CONFIGURATION = """\
version: 1
mode: auto
target: main
targets: [side]
hooks:
  - {id: hangs, stage: pre-apply, run: "sleep 1000", files: [slow/], timeout_seconds: 0.5}
  - {id: push, stage: post-commit, run: "git push dead HEAD:refs/heads/copy", timeout_seconds: 0.5}
"""
CAUSES = {
    "repository.damaged": "git fsck",
    "repository.worktrees": "git worktree prune",
    "hook.hangs": "timeout_seconds",
    "hook.push": "timeout_seconds",
}
"""What is to be named, and a word of its cure."""
BAD = {
    "damaged": block("damaged.txt", "damaged\n", "whole\n"),
    "unseen": "---\ntarget: side\n---\n" + block("a.txt", "a\n", "A\n"),
    "slow": block("slow/a.txt", "slow\n", "fast\n"),
}


@pytest.fixture
def dead_remote() -> Iterator[str]:
    """A server that takes connections, and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"git://127.0.0.1:{server.getsockname()[1]}/repository"


@pytest.fixture
def repo(tmp_path: Path, dead_remote: str) -> Path:
    """One with a remote that is dead, a work tree out of sight, and a file that is gone."""
    repo = make_repo(tmp_path / "repo", FILES)
    (repo / ".git/info/exclude").write_text("/.patchq/\n/.patchq.yaml\n")
    patchq("init", cwd=repo)
    write_config(repo, CONFIGURATION)
    git("remote", "add", "dead", dead_remote, cwd=repo)
    git("worktree", "add", "-q", "-b", "side", "../unseen", cwd=repo)
    (tmp_path / "unseen").rename(tmp_path / "unmounted")
    oid = git("rev-parse", "main:damaged.txt", cwd=repo)
    (repo / ".git/objects" / oid[:2] / oid[2:]).rename(tmp_path / "blob")
    return repo


def test_what_stands_behind_bad_neighbours_gets_its_verdict(repo: Path) -> None:
    good = {f"z{n}": block(f"good/{n}.txt", f"{n}\n", f"{n}!\n") for n in range(GOOD)}
    before = git("rev-parse", "side", cwd=repo)
    damaged, unseen, slow, *others = work(repo, **BAD, **good)
    assert (damaged["state"], unseen["state"], slow["state"]) == ("held", "proposed", "rejected")
    assert codes(slow) == [("hook.timeout", "error")]
    assert {told["state"] for told in others} == {"applied"}
    assert git("rev-parse", "side", cwd=repo) == before
    assert not os.path.lexists(repo.parent / "unseen")
    landed = git("show", *(f"main:good/{n}.txt" for n in range(GOOD)), cwd=repo)
    assert landed.split("\n") == [f"{n}!" for n in range(GOOD)]
    status = patchq("--json", "status", cwd=repo).json()
    by_status = {trouble["what"]: trouble["cure"] for trouble in status["troubles"]}
    by_status |= {held["code"]: held["hint"] for held in status["held"]}
    findings = patchq("--json", "doctor", cwd=repo, code=1).json()["findings"]
    by_doctor = {f["what"]: f["cure"] for f in findings if f["level"] in ("todo", "fatal")}
    for what, word in CAUSES.items():
        assert word in by_status[what], by_status
        assert word in by_doctor[what], by_doctor
    said = patchq("status", cwd=repo).out
    assert all(cure in said for cure in by_status.values())
