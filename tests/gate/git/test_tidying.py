"""Git tidies up after landings; packs of large groups become few, and nothing is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from patchq.core.model.values import FileChange
from patchq.gate.git import tidying
from patchq.gate.git.objects import Identity
from patchq.gate.git.repository import Repository
from tests.helpers.command import drop, patchq
from tests.helpers.ending import until
from tests.helpers.gitrepo import git, make_repo

WHO = Identity("Ada", "ada@example.org", 1, 0)


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return make_repo(tmp_path / "repo", {"a.txt": "a\n"})


def packs(path: Path) -> set[str]:
    return {file.stem for file in (path / ".git/objects/pack").glob("*.pack")}


def land(repo: Path, prefix: str) -> None:
    files = (f"FILE: {prefix}/{n}.txt\n```\n{prefix} {n}\n```\n" for n in range(30))
    drop(repo / ".patchq", {f"{prefix}.md": "".join(files)})
    patchq("run", cwd=repo)


def test_packs_of_many_landings_become_one(repo: Path) -> None:
    patchq("init", cwd=repo)
    land(repo, "x")
    land(repo, "y")
    assert len(packs(repo)) == 2
    for key, value in (("gc.auto", "1000"), ("gc.autoPackLimit", "1"), ("maintenance.auto", "1")):
        git("config", key, value, cwd=repo)
    land(repo, "z")
    until(lambda: len(packs(repo)) == 1 and not (repo / ".git/gc.pid").exists())
    assert git("ls-tree", "-r", "--name-only", "patchq/z", cwd=repo).count("z/") == 30
    assert git("fsck", "--strict", "--no-dangling", cwd=repo) == ""


def grow(repo: Repository, label: str) -> str:
    """Make one more pack, of a commit that no ref has."""
    changes = [FileChange(f"{label}/{i}/f", None, b"%d" % i) for i in range(20)]
    commit, _ = repo.write_commit(repo.branch_tip("main"), changes, f"{label}\n", WHO, WHO)
    repo.write_objects()
    return commit


def test_there_are_never_many(repo: Path) -> None:
    opened = Repository.open(repo)
    packing = tidying.Tidying(opened)
    commits = [grow(opened, f"k{n}") for n in range(5)]
    opened.close()
    theirs = packs(repo)
    for name in theirs:
        (repo / f".git/objects/pack/{name}.keep").touch()
    for n in range(60):
        commits.append(grow(opened, f"n{n}"))
        if packing.combine():
            opened.renew()
        assert len(packs(repo) - theirs) <= tidying.MOST + 4
    if packing._combining:
        packing._combining.wait(120)
    assert theirs < packs(repo)
    assert all(map(opened.exists, commits))
    git("fsck", "--strict", cwd=repo)
