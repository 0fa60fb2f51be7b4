"""One contract for where verdicts become true: refs of this repository, and a remote."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from patchq.gate.errors import Declined, InDoubt, Unreachable
from patchq.gate.git.branches import Branches, BranchMove, Moved
from patchq.gate.git.branches.remote import RemoteBranches
from patchq.gate.git.command import Done, redacted
from patchq.gate.git.objects import Identity
from patchq.gate.git.repository import Repository
from tests.helpers.gitrepo import commit_files, git, make_repo

WHO = Identity("A", "a@example.org", 1_700_000_000)
BOTH = pytest.mark.parametrize("kind", ["local", "remote"])


@dataclass
class Place:
    """A repository with commits in a row on `main`, none of which its branches have but the first,
    and the branches that are to move."""

    repo: Path
    home: Path
    """Where the branches are."""
    branches: Branches
    commits: list[str]

    def land(self, *moves: tuple[str, str | None, str | None]) -> list[Moved]:
        """Branch, old and new commit of each; proposals stand on `main`."""
        behind = {"patchq": "main"}
        made = [
            BranchMove(name, old, new, "log", WHO, behind=behind.get(name.split("/")[0]))
            for name, old, new in moves
        ]
        return self.branches.land(made)

    def heads(self) -> dict[str, str]:
        row = "--format=%(refname:lstrip=2) %(objectname)"
        lines = git("for-each-ref", "refs/heads", row, cwd=self.home).splitlines()
        return {name: self.named(oid) for name, oid in map(str.split, lines)}

    def named(self, commit: str) -> str:
        return str(self.commits.index(commit)) if commit in self.commits else commit


def place(path: Path, kind: str) -> Place:
    repo = make_repo(path / "repo", {"a.txt": "0\n"})
    commits = [git("rev-parse", "HEAD", cwd=repo)]
    commits += [
        commit_files(repo, {"a.txt": f"{n}\n"}, f"Batch\n\nPatchq-Batch: b{n}\nPatchq-Source: s{n}")
        for n in range(1, 4)
    ]
    git("checkout", "-q", "--detach", cwd=repo)
    git("update-ref", "refs/heads/main", commits[0], cwd=repo)
    if kind == "local":
        return Place(repo, repo, Branches(Repository.open(repo)), commits)
    git("clone", "-q", "--bare", "repo", "hub.git", cwd=path)
    git("remote", "add", "origin", str(path / "hub.git"), cwd=repo)
    git("update-ref", "-d", "refs/heads/main", cwd=repo)
    branches = RemoteBranches(Repository.open(repo), "origin", ("main",), 30)
    branches.refresh()
    return Place(repo, path / "hub.git", branches, commits)


Step = tuple[str, int | None, int | None]
CASES: dict[str, tuple[Sequence[Step], Sequence[bool], dict[str, str]]] = {
    "two in a row": ([("main", 0, 1), ("main", 1, 2)], [True, True], {"main": "2"}),
    "stale": ([("main", 1, 2)], [False], {"main": "0"}),
    "one that is there already": (
        [("patchq/x", None, 1), ("patchq/x", None, 2)],
        [True, False],
        {"main": "0", "patchq/x": "1"},
    ),
    "one that goes": ([("patchq/w", 1, None)], [True], {"main": "0"}),
    "made again": ([("patchq/w", 1, 3)], [True], {"main": "0", "patchq/w": "3"}),
    "what stands on a row with a gap": (
        [("main", 0, 1), ("patchq/x", None, 1), ("main", 2, 3), ("patchq/y", None, 3)],
        [True, True, False, False],
        {"main": "1", "patchq/x": "1"},
    ),
}


@BOTH
@pytest.mark.parametrize("name", CASES)
def test_moves_are_compare_and_swap(tmp_path: Path, kind: str, name: str) -> None:
    at = place(tmp_path, kind)
    steps, made, heads = CASES[name]
    if any(branch == "patchq/w" for branch, _, _ in steps):
        git("push", "-q", str(at.home), f"{at.commits[1]}:refs/heads/patchq/w", cwd=at.repo)
        at.branches.refresh()
    ids: dict[int | None, str | None] = {None: None, **dict(enumerate(at.commits))}
    done = at.land(*((branch, ids[old], ids[new]) for branch, old, new in steps))
    assert [one.made for one in done] == made
    assert not any(one.fault for one in done)
    assert at.heads() == heads
    assert {name: at.named(tip) for name, tip in at.branches.tips("").items()} == heads
    assert at.branches.tip("main") == at.commits[int(heads["main"])]
    assert at.branches.tip("gone") is None


@pytest.mark.parametrize(
    ("kind", "heads"), [("local", {"main": "0", "next": "1"}), ("remote", {"main": "0"})]
)
def test_a_remote_moves_all_or_nothing(tmp_path: Path, kind: str, heads: dict[str, str]) -> None:
    at = place(tmp_path, kind)
    done = at.land(("main", at.commits[1], at.commits[2]), ("next", None, at.commits[1]))
    assert [one.made for one in done] == [False, kind == "local"]
    assert at.heads() == heads


ONCE = '[ -e "$GIT_DIR/met" ] && exit 0\n{when}touch "$GIT_DIR/met"\nkill -9 $PPID; sleep 1'


def hook(at: Path, name: str, text: str) -> None:
    path = at / "hooks" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


@pytest.mark.parametrize(
    ("name", "when"),
    [("pre-receive", ""), ("reference-transaction", '[ "$1" = committed ] || exit 0\n')],
    ids=["it dies before the move", "its answer is lost"],
)
def test_a_push_without_an_answer_lands_once(tmp_path: Path, name: str, when: str) -> None:
    at = place(tmp_path, "remote")
    hook(at.home, name, ONCE.format(when=when))
    (done,) = at.land(("main", at.commits[0], at.commits[1]))
    assert done.made
    assert at.heads() == {"main": "1"}
    assert (at.home / "met").exists()


def test_a_push_that_takes_too_long_is_ended_and_in_doubt(tmp_path: Path) -> None:
    at = place(tmp_path, "remote")
    hook(at.home, "pre-receive", "[ -e go ] || exec sleep 600")
    short = RemoteBranches(Repository.open(at.repo), "origin", ("main",), 1)
    long, at.branches = at.branches, short
    with pytest.raises(InDoubt, match="unknown if origin took the push"):
        at.land(("main", at.commits[0], at.commits[1]))
    assert at.heads() == {"main": "0"}
    (at.home / "go").touch()
    at.branches = long
    assert at.land(("main", at.commits[0], at.commits[1]))[0].made


def test_the_same_batch_from_another_process_has_landed(tmp_path: Path) -> None:
    at = place(tmp_path, "remote")
    message = git("log", "-1", "--format=%B", at.commits[1], cwd=at.repo)
    tree = f"{at.commits[1]}^{{tree}}"
    twin = git("commit-tree", tree, "-p", at.commits[0], "-m", f"Twin: {message}", cwd=at.repo)
    git("push", "-q", "origin", f"{twin}:refs/heads/main", cwd=at.repo)
    (done,) = at.land(("main", at.commits[0], at.commits[1]))
    assert not done.made
    assert dict(done.landed) == {at.commits[1]: twin}


def test_a_hook_that_refuses_one_of_several_is_asked_about_each(tmp_path: Path) -> None:
    at = place(tmp_path, "remote")
    hook(at.home, "update", '[ "$1" != refs/heads/patchq/x ]')
    done = at.land(("patchq/x", None, at.commits[1]), ("patchq/y", None, at.commits[2]))
    assert [(one.made, one.fault) for one in done] == [(False, None), (False, None)]
    (done_x,) = at.land(("patchq/x", None, at.commits[1]))
    assert isinstance(done_x.fault, Declined)


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (("remote", "remove", "origin"), "there is no remote `origin`"),
        (("push", "-q", "origin", ":refs/heads/main"), "find remote ref refs/heads/main"),
    ],
)
def test_what_is_missing_is_named(tmp_path: Path, spoil: tuple[str, ...], says: str) -> None:
    at = place(tmp_path, "remote")
    git("config", "receive.denyDeleteCurrent", "ignore", cwd=at.home)
    git(*spoil, cwd=at.repo)
    fresh = RemoteBranches(Repository.open(at.repo), "origin", ("main",), 30)
    with pytest.raises(Unreachable, match=says):
        fresh.refresh()


def test_lanes_by_patterns_are_asked_for_all_or_one(tmp_path: Path) -> None:
    at = place(tmp_path, "remote")
    _, one, two, _ = at.commits
    branches = RemoteBranches(Repository.open(at.repo), "origin", ("main", "b?", "later"), 30)

    def push(*names: str) -> None:
        """By another clone, whose remote-tracking refs these are not."""
        for name in names:
            git("push", "-q", str(at.home), f"+{name}", cwd=at.repo)

    push(*(f"{one}:refs/heads/{name}" for name in ("b1", "b2", "ab1", "topic")))
    branches.refresh(["b1"])
    assert set(branches.tips("")) == {"main", "b1", "b2"}, "the first time all are asked for"
    push(f"{two}:refs/heads/b1", f"{two}:refs/heads/b2", f"{one}:refs/heads/patchq/x")
    branches.refresh(["b1"])
    assert [branches.tip(name) for name in ("b1", "b2", "patchq/x")] == [two, one, one]
    branches.refresh(["gone"])
    assert (branches.tip("gone"), branches.away) == (None, None)
    branches.refresh()
    push(f"{one}:refs/heads/b1")
    branches.refresh(within=60)
    assert branches.tip("b1") == two
    branches.refresh(within=0.001)
    assert [branches.tip(name) for name in ("b1", "b2")] == [one, two]


def test_no_words_hold_credentials() -> None:
    url = "https://ann:s3cret@example.org/x.git"
    assert redacted(f"unable to access '{url}'") == "unable to access 'https://example.org/x.git'"
    assert "s3cret" not in Done(128, b"", f"fatal: unable to access '{url}': gone\n".encode()).words
