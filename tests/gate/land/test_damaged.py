"""A damaged repository: what needs the object that cannot be read is held, the others go on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.helpers.command import block, codes, patchq, report, work
from tests.helpers.gitrepo import commit_files, git, make_repo, tip, write_config
from tests.helpers.stores import unpublish

FILES = {"a.txt": "a\n", "b.txt": "b\n", "lib/c.txt": "c\n", "lib/d.txt": "d\n"}
BAD, GOOD = block("lib/c.txt", "c\n", "C\n"), block("b.txt", "b\n", "B\n")
CREATE = block("lib/new.txt", "", "new\n")


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    repo = make_repo(tmp_path / "repo", FILES)
    configure(repo)
    patchq("init", cwd=repo)
    git("checkout", "-q", "-b", "elsewhere", cwd=repo)
    return repo


def configure(repo: Path, text: str = "", mode: str = "auto") -> None:
    write_config(repo, f"version: 1\ntarget: main\nmode: {mode}\n{text}")


def place(repo: Path, name: str) -> Path:
    """The file of an object."""
    oid = git("rev-parse", name, cwd=repo)
    return repo / ".git/objects" / oid[:2] / oid[2:]


@pytest.mark.parametrize("mode", ["auto", "review"])
@pytest.mark.parametrize("left", [None, 0, -6], ids=["removed", "empty", "garbled"])
@pytest.mark.parametrize(
    ("name", "text"),
    [("main:lib/c.txt", BAD), ("main:lib", BAD), ("main:lib", CREATE)],
    ids=["blob", "tree", "tree, created in it"],
)
def test_others_go_on(repo: Path, name: str, text: str, left: int | None, mode: str) -> None:
    configure(repo, mode=mode)
    file = place(repo, name)
    before = file.read_bytes()
    file.unlink()
    if left is not None:
        file.write_bytes(before[:left] + bytes(-left))
    bad, good = work(repo, bad=text, good=GOOD)
    assert (bad["state"], codes(bad)) == ("held", [("repository.damaged", "warning")])
    (problem,) = bad["problems"]
    words = f"{problem['message']} {problem['hint']}"
    assert words.count(file.parent.name + file.name) == 1, words
    assert good["state"] == ("applied" if mode == "auto" else "proposed")
    (held,) = patchq("--json", "status", cwd=repo).json()["held"]
    assert (held["id"], held["code"]) == ("bad", "repository.damaged")
    assert "git fsck" in patchq("status", cwd=repo).out
    findings = patchq("--json", "doctor", cwd=repo, code=1).json()["findings"]
    (found,) = [found for found in findings if found["what"] == "repository.damaged"]
    assert "change bad is held" in found["message"]
    file.unlink(missing_ok=True)
    file.write_bytes(before)
    patchq("run", cwd=repo)
    assert report(repo / ".patchq", "bad")["state"] == good["state"]
    git("fsck", "--strict", "--no-dangling", cwd=repo)


def test_damaged_tip_at_the_time_of_a_crash(repo: Path) -> None:
    git("branch", "side", cwd=repo)
    configure(repo, "targets: [side]\n")
    work(repo, first=GOOD)
    unpublish(repo / ".patchq", "first")
    landed, file = tip(repo), place(repo, "main")
    before = file.read_bytes()
    file.unlink()
    side = "---\ntarget: side\n---\n" + BAD
    other, held = work(repo, other=side, held=block("a.txt", "a\n", "A\n"))
    assert (other["state"], held["state"]) == ("applied", "held")
    assert not [*(repo / ".patchq").glob("*/first.report.json")], "nobody knows yet"
    (trouble,) = patchq("--json", "status", cwd=repo).json()["troubles"]
    assert trouble["what"] == "claim.first"
    assert "git fsck" in trouble["cure"]
    file.write_bytes(before)
    patchq("run", cwd=repo)
    told = report(repo / ".patchq", "first")
    assert (told["state"], told["commit"]) == ("applied", landed)
    assert report(repo / ".patchq", "held")["state"] == "applied"
    assert patchq("--json", "status", cwd=repo).json()["troubles"] == []
    assert len(git("log", "--format=%h", "main", cwd=repo).split()) == 3


@pytest.mark.parametrize("name", ["patchq/p", "patchq/p^{tree}", "patchq/p:lib"])
def test_damaged_proposal_is_in_nobodys_way(repo: Path, name: str) -> None:
    configure(repo, mode="review")
    work(repo, p=BAD, q=block("a.txt", "a\n", "A\n"))
    place(repo, name).unlink()
    configure(repo)
    told = work(repo, r=GOOD, s=block("lib/d.txt", "d\n", "D\n"))
    assert [one["state"] for one in told] == ["applied", "applied"]
    assert "  p  " in patchq("status", cwd=repo).out
    patchq("accept", "q", cwd=repo)


@pytest.fixture
def partial(repo: Path, tmp_path: Path) -> Path:
    """A clone of `repo` without the contents of files, which nobody has checked out."""
    git("checkout", "-q", "main", cwd=repo)
    commit_files(repo, {f"d/{number}.txt": f"{number}\n" for number in range(40)})
    for key in ("allowFilter", "allowAnySHA1InWant"):
        git("config", f"uploadpack.{key}", "true", cwd=repo)
    words = ("--bare", "--filter=blob:none", f"file://{repo}")
    git("clone", "-q", *words, "partial", cwd=tmp_path)
    return tmp_path / "partial"


def missing(repo: Path) -> int:
    return git("rev-list", "--objects", "--missing=print", "--all", cwd=repo).count("?")


def test_a_partial_clone_fetches_what_a_change_needs(partial: Path, repo: Path) -> None:
    there = missing(partial)
    patchq("init", "--target", "main", cwd=partial)
    repo.rename(repo.with_name("away"))
    _, s = work(partial, r=block("d/7.txt", "7\n", "x\n"), s=block("new.txt", "", "new\n"))
    assert s["state"] == "proposed"
    assert "does not appear to be a git repository" in patchq("show", "r", cwd=partial).out
    repo.with_name("away").rename(repo)
    patchq("run", cwd=partial)
    assert git("show", "patchq/r:d/7.txt", cwd=partial) == "x"
    assert there - missing(partial) < 5
    hook = {"id": "h", "stage": "pre-commit", "run": "grep -q 9 d/9.txt"}
    write_config(partial, json.dumps({"hooks": [hook], "mode": "auto"}))
    work(partial, t=block("d/8.txt", "8\n", "x\n"))
    assert git("show", "main:d/8.txt", cwd=partial) == "x"
    assert there - missing(partial) > 30, "a hook sees all files"


def test_a_clone_without_trees_is_refused_until_they_are_there(partial: Path, repo: Path) -> None:
    words = ("--bare", "--filter=tree:0", f"file://{repo}")
    git("clone", "-q", *words, "bare", cwd=repo.parent)
    bare = repo.parent / "bare"
    done = patchq("init", "--target", "main", cwd=bare, code=3)
    cure = "git fetch --refetch --filter=blob:none origin"
    assert cure in done.err
    git(*cure.split()[1:], "+refs/heads/*:refs/heads/*", cwd=bare)
    patchq("init", "--target", "main", cwd=bare)
