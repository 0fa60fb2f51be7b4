"""A push to refs/for/BRANCH: real pushes, and git's own talk with the hook."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from patchq.gate.queue.lock import Lock
from tests.gate.hooks.test_git_hooks import hook, tried
from tests.helpers.command import patchq, report
from tests.helpers.ending import running, until
from tests.helpers.gitrepo import commit_files, git, make_repo, write_config

NOTHING = "0" * 40
LINES = "".join(f"line {n}\n" for n in range(1, 31))
CONFIG = "target: main\ntargets: [gone, 'side/*']\nlimits: {files: 3, file_bytes: 2000}\n"


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    repo = make_repo(tmp_path / "re:po", {"a.txt": LINES, "b.txt": "x\n"})
    (repo / ".git/info/exclude").write_text(".patchq.yaml\n")
    write_config(repo, CONFIG)
    patchq("init", cwd=repo)
    git("checkout", "-q", "-b", "work", cwd=repo)
    return repo


def line(text: bytes) -> bytes:
    return b"%04x" % (len(text) + 4) + text


def talk(*commands: tuple[str, str], options: tuple[str, ...] = ()) -> bytes:
    """What git says: the ids and refs that are pushed, and the options."""
    lines = [line(b"version=1\0push-options"), b"0000"]
    lines += [
        line(f"{NOTHING} {new} {ref}".encode("utf-8", "surrogateescape")) for new, ref in commands
    ]
    return b"".join([*lines, b"0000", *(line(one.encode()) for one in options), b"0000"])


def state(repo: Path) -> tuple[str, set[str], list[str]]:
    """Refs, objects, and the inbox."""
    objects = {str(path) for path in (repo / ".git/objects").rglob("*")}
    return git("for-each-ref", cwd=repo), objects, os.listdir(repo / ".patchq/inbox")


def many(repo: Path, count: int) -> str:
    """The last of so many commits."""
    who = "committer A <a@b> 0 +0000\ndata 1\nx\n"
    stream = [f"commit refs/heads/many\n{who}" for _ in range(count)]
    stream[0] += "from refs/heads/main\n"
    git("fast-import", "--quiet", cwd=repo, stdin="\n".join(stream))
    tip = git("rev-parse", "many", cwd=repo)
    git("update-ref", "-d", "refs/heads/many", cwd=repo)
    return tip


def test_what_is_wrong_is_said_at_the_door_and_leaves_nothing(repo: Path, tmp_path: Path) -> None:
    good = commit_files(repo, {"a.txt": LINES.replace("line 5\n", "five\n")}, "Write five")
    at = {"good": good, "start": git("rev-parse", "main", cwd=repo), "none": NOTHING}
    at["files"] = commit_files(repo, {f"{n}.txt": "x\n" for n in range(4)})
    git("reset", "-q", "--hard", good, cwd=repo)
    at["large"] = commit_files(repo, {"large.txt": "x" * 2001})
    git("reset", "-q", "--hard", good, cwd=repo)
    git("checkout", "-q", "-b", "other", "main", cwd=repo)
    commit_files(repo, {"b.txt": "y\n"})
    git("merge", "-q", "--no-edit", "work", cwd=repo)
    at["merge"] = git("rev-parse", "HEAD", cwd=repo)
    git("checkout", "-q", "--orphan", "apart", cwd=repo)
    at["apart"] = commit_files(repo, {"b.txt": "z\n"})
    git("checkout", "-q", "-f", "--detach", "main", cwd=repo)
    at["empty"] = commit_files(repo, {}, "Nothing")
    at["many"] = many(repo, 1001)
    rows: list[tuple[str, str, tuple[str, ...], str]] = [
        ("start", "main", (), "main has all of it already"),
        ("empty", "main", (), "response.no_edits: nothing was changed"),
        ("none", "main", (), "pushed to and never stored"),
        ("good", "man", (), "frontmatter.target: the branch 'man'"),
        ("good", "gone", (), "there is no branch 'gone'"),
        ("files", "main", (), "response.too_large: 5 files would change"),
        ("large", "main", (), "response.too_large: large.txt would have 2001 bytes"),
        ("merge", "main", (), "holds the merge"),
        ("apart", "main", (), "no commit in common"),
        ("many", "main", (), "holds more than 1000 commits"),
        ("good", "main", ("nonsense",), "there is no push option 'nonsense'"),
        ("good", "main", ("id=a", "id=b"), "given twice"),
        ("good", "main", ("timeout=soon",), "the push option timeout: Expected `float`"),
    ]
    before = state(repo)
    aside = tmp_path / "aside"
    for commit, branch, options, wanted in rows:
        data = talk((at[commit], f"refs/for/{branch}"), options=options)
        done = patchq("-q", "hooks", "receive", str(aside), cwd=repo, stdin=data)
        assert f"ng refs/for/{branch} " in done.out, (wanted, done)
        assert wanted in done.err, (wanted, done)
        assert wanted in done.out
    two = talk((good, "refs/for/main"), (good, "refs/for/side/1"))
    told = patchq("-q", "hooks", "receive", str(aside), cwd=repo, stdin=two).out
    assert told.count("2 refs are pushed") == 2
    assert state(repo) == before


def test_without_a_daemon_the_response_waits_and_names_what_was_said(repo: Path) -> None:
    commit = commit_files(repo, {"a.txt": LINES.replace("line 5\n", "five\n")}, "Write five")
    said = ("id=mine", "agent=bob", "model=m-1", "message=As said: #1")
    options = (*said, "depends-on=x, y", "depends-on=z")
    data = talk((commit, "refs/for/main"), options=options)
    done = patchq("-q", "hooks", "receive", "aside", cwd=repo, stdin=data)
    assert done.out.endswith("0014ok refs/for/main0000")
    assert "no daemon works on the queue" in done.err
    assert "`patchq wait mine` waits on" in done.err
    (name,) = os.listdir(repo / ".patchq/inbox")
    text = (repo / ".patchq/inbox" / name).read_text()
    assert 'depends_on: ["x", "y", "z"]\n' in text
    git("update-ref", "-d", "refs/heads/work", cwd=repo)
    git("checkout", "-q", "-f", "main", cwd=repo)
    git("reflog", "expire", "--all", "--expire=now", cwd=repo)
    git("gc", "-q", "--prune=now", cwd=repo)
    assert tried("cat-file", "-e", commit, cwd=repo)[0] != 0
    (repo / ".patchq/inbox" / name).write_text(text.replace('depends_on: ["x", "y", "z"]\n', ""))
    patchq("run", cwd=repo)
    told = report(repo / ".patchq", "mine")
    assert (told["agent"], told["model"], told["target"]) == ("bob", "m-1", "main")
    assert git("log", "-1", "--format=%s", "patchq/mine", cwd=repo) == "As said: #1"
    assert git("show", "patchq/mine:a.txt", cwd=repo).split("\n")[4] == "five"


def test_who_goes_away_is_told_where_the_response_is(repo: Path) -> None:
    commit = commit_files(repo, {"a.txt": LINES.replace("line 5\n", "five\n")}, "Write five")
    data = talk((commit, "refs/for/main"), options=("timeout=0.1",))
    busy = Lock(repo / ".patchq/lock")
    busy.acquire()
    done = patchq("-q", "hooks", "receive", "aside", cwd=repo, stdin=data)
    busy.release()
    (name,) = os.listdir(repo / ".patchq/inbox")
    assert f"handed in as {name.removesuffix('.push')}\n" in done.err
    assert "waits on" in done.err
    assert "ok refs/for/main" in done.out


def test_pushes_from_a_work_tree_and_from_a_clone(repo: Path, tmp_path: Path) -> None:
    hook(repo / ".git/hooks/proc-receive", "#!/bin/sh\necho before >&2\nexit 1\n")
    git("config", "receive.procReceiveRefs", "refs/review", cwd=repo)
    patchq("hooks", "install", "--git", cwd=repo)
    there, clone = tmp_path / "there", tmp_path / "clone"
    git("worktree", "add", "-q", "-b", "agent", str(there), "main", cwd=repo)
    git("clone", "-q", "-b", "main", str(repo), str(clone), cwd=tmp_path)
    before = state(repo)
    commit_files(clone, {"new.py": "x = (\n"}, "Break it")
    status, said = tried("push", "origin", "HEAD:refs/for/main", "HEAD:refs/heads/x", cwd=clone)
    assert (status, state(repo)) == (1, before)
    assert "remote: patchq: refs/for/BRANCH is pushed by itself" in said
    assert "remote: before" in tried("push", "origin", "HEAD:refs/review/1", cwd=clone)[1]
    before = state(repo)
    watch = [sys.executable, "-m", "patchq", "watch"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with running(watch, 250, cwd=repo, **quiet) as daemon:
        until(lambda: "since" in patchq("--json", "status", cwd=repo).out)
        status, said = tried("push", "origin", "HEAD:refs/for/main", "-o", "id=bad", cwd=clone)
        assert status == 1
        assert "remote: rejected   bad  result.syntax: the new file new.py" in said
        assert (
            "[remote rejected] HEAD -> refs/for/main (rejected bad result.syntax: the new" in said
        )
        assert "remote: Correct the commits and push again: git push … -o retries=bad" in said
        assert state(repo) == before
        commit_files(there, {"a.txt": LINES.replace("line 5\n", "five\n")}, "Write five")
        status, said = tried("push", ".", "HEAD:refs/for/main", "-o", "id=good", cwd=there)
        assert status == 0, said
        assert "remote: proposed   good  patchq/good" in said
        assert "patchq accept" not in said
        daemon.terminate()
        daemon.wait(60)
    assert git("for-each-ref", "refs/for", "refs/review", cwd=repo) == ""
    assert not [*(repo / ".git/objects").glob("tmp_*")]
