"""Every kind of bad neighbour at once: what stands behind them gets its verdict all the same, and
`status` and `doctor` name each cause with its cure."""

from __future__ import annotations

import json
import os
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from patchq.llm.corrections import NEW, OLD
from tests.helpers import processes
from tests.helpers.chat_server import Request, serving
from tests.helpers.command import block, drop, patchq, report, seen
from tests.helpers.gitrepo import git, make_repo, write_config
from tests.helpers.keys import configure as configure_git

GOOD = 12
WAIT_SECONDS = 300.0
"""The end of a wait in vain, and no promise."""
QUOTED = "def total(items, tax):\n    value = sum(items)\n    return value * tax\n"
CHANGED = ("value * tax", "round(value * tax, 2)")
FILES = {f"good/{n}.txt": f"{n}\n" for n in range(GOOD)} | {
    "damaged.txt": "damaged\n",
    "slow/a.txt": "slow\n",
    "quoted.py": QUOTED,
    "a.txt": "a\n",
}
CONFIGURATION = """\
version: 1
mode: auto
target: main
targets: [side]
queue: {settle_seconds: 0.05}
hooks:
  - {id: hangs, stage: pre-apply, run: "sleep 1000", files: [slow/], timeout_seconds: 0.5}
  - {id: push, stage: post-commit, run: "git push dead HEAD:refs/heads/copy", timeout_seconds: 0.5}
  - {id: tell, stage: post-commit, run: 'echo "$PATCHQ_BATCH" >> ../../told', files: ["*.py"]}
"""
CAUSES = {
    "repository.damaged": "git fsck",
    "repository.worktrees": "git worktree prune",
    "hook.hangs": "timeout_seconds",
    "hook.push": "timeout_seconds",
    "fault.repository": "commit.sign",
}
"""What is to be named, and a word of its cure."""


@contextmanager
def dead_remote() -> Iterator[str]:
    """A server that takes connections, and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"git://127.0.0.1:{server.getsockname()[1]}/repository"


@contextmanager
def watching(repo: Path) -> Iterator[Callable[[Callable[[], bool]], None]]:
    """A daemon; what it gives waits for something to come true."""
    log = repo.with_name("log")
    daemon = processes.start("watch", cwd=repo, log=log)

    def wait_for(comes_true: Callable[[], bool]) -> None:
        until = time.monotonic() + WAIT_SECONDS
        while not comes_true():
            assert daemon.poll() is None, log.read_text()
            assert time.monotonic() < until, log.read_text()
            time.sleep(0.05)

    try:
        yield wait_for
    finally:
        daemon.terminate()
        assert daemon.wait(WAIT_SECONDS) == 0, log.read_text()


def answer(request: Request) -> str:
    """What a model says to what it is asked of the response `quoted`."""
    if NEW in request.question:
        return json.dumps({NEW: QUOTED.replace(*CHANGED)})
    return json.dumps({OLD: QUOTED})


def make_neighbours(repo: Path, remote: str, model: str) -> None:
    """Everything that is wrong here before the daemon starts."""
    (repo / ".git/info/exclude").write_text("/.patchq/\n/.patchq.yaml\n")
    patchq("init", cwd=repo)
    llm = f"llm: {{base_url: '{model}', model: m, api_key_env: TEST_KEY}}\n"
    write_config(repo, CONFIGURATION + llm)
    git("remote", "add", "dead", remote, cwd=repo)
    git("worktree", "add", "-q", "-b", "side", "../unseen", cwd=repo)
    (repo.parent / "unseen").rename(repo.parent / "unmounted")
    oid = git("rev-parse", "main:damaged.txt", cwd=repo)
    blob = repo / ".git/objects" / oid[:2] / oid[2:]
    blob.rename(repo.parent / "blob")


def bad() -> dict[str, str]:
    misquoted = QUOTED.replace("items", "rows")
    return {
        "damaged": block("damaged.txt", "damaged\n", "whole\n"),
        "unseen": "---\ntarget: side\n---\n" + block("a.txt", "a\n", "A\n"),
        "slow": block("slow/a.txt", "slow\n", "fast\n"),
        "quoted": block("quoted.py", misquoted, misquoted.replace(*CHANGED)),
    }


def states(repo: Path) -> Counter[str]:
    """How many batches there are of each state, the good ones by it alone."""
    found = Counter[str]()
    queue = repo / ".patchq"
    for id in {path.name.removesuffix(".report.json") for path in queue.glob("*/*.report.json")}:
        told = seen(queue, id)
        assert told, id
        number = told["id"].removeprefix("good-")
        found[told["state"] if number.isdigit() else f"{told['id']} {told['state']}"] += 1
    return found


def named(repo: Path) -> tuple[dict[str, str], dict[str, str]]:
    """What `status` and `doctor` name, each with its cure."""
    status = patchq("--json", "status", cwd=repo).json()
    by_status = {t["what"]: t["cure"] for t in status["troubles"]}
    by_status |= {held["code"]: held["hint"] for held in status["held"]}
    findings = patchq("--json", "doctor", cwd=repo, code=1).json()["findings"]
    by_doctor = {f["what"]: f["cure"] for f in findings if f["level"] in ("todo", "fatal")}
    said = patchq("status", cwd=repo).out
    for cure in by_status.values():
        assert cure in said
    return by_status, by_doctor


def test_what_stands_behind_bad_neighbours_gets_its_verdict(
    tmp_path: Path, monkeypatch: Any, home: Path
) -> None:
    monkeypatch.setenv("TEST_KEY", "key")
    repo = make_repo(tmp_path / "repo", FILES)
    with dead_remote() as remote, serving(answer) as server:
        make_neighbours(repo, remote, server.base_url)
        good = {f"good-{n}": block(f"good/{n}.txt", f"{n}\n", f"{n}!\n") for n in range(GOOD)}
        before = git("rev-parse", "side", cwd=repo)
        drop(repo / ".patchq", {f"{name}.md": text for name, text in (bad() | good).items()})
        with watching(repo) as wait_for:
            wait_for(lambda: states(repo).total() == len(bad()) + GOOD)
            assert states(repo) == {
                "applied": GOOD,
                "damaged held": 1,
                "unseen proposed": 1,
                "slow rejected": 1,
                "quoted applied": 1,
            }
            assert [p["code"] for p in report(repo / ".patchq", "slow")["problems"]] == [
                "hook.timeout"
            ]
            assert git("rev-parse", "side", cwd=repo) == before
            configure_git(home, "commit.gpgSign", "true")
            configure_git(home, "gpg.program", "/nowhere/gpg")
            drop(repo / ".patchq", {"unsigned.md": block("a.txt", "a\n", "A\n")})
            wait_for(lambda: states(repo)["unsigned held"] == 1)
            wait_for(lambda: "hook.push" in named(repo)[0])
            for found in named(repo):
                for what, word in CAUSES.items():
                    assert word in found[what], (what, found)
            configure_git(home, "commit.gpgSign", "false")
            wait_for(lambda: states(repo)["unsigned applied"] == 1)
            wait_for((tmp_path / "told").exists)
    landed = git("show", *(f"main:good/{n}.txt" for n in range(GOOD)), cwd=repo)
    assert landed.split("\n") == [f"{n}!" for n in range(GOOD)]
    assert not os.path.lexists(repo.parent / "unseen")
