"""Packs of large groups become few, and nothing in them or beside them is lost."""

from __future__ import annotations

from pathlib import Path

from patchq.core.model.values import FileChange
from patchq.gate.git import tidying
from patchq.gate.git.objects import Identity
from patchq.gate.git.repository import Repository
from tests.helpers.gitrepo import git, make_repo

WHO = Identity("Ada", "ada@example.org", 1, 0)


def grow(repo: Repository, label: str) -> str:
    """Make one more pack, of a commit that no ref has."""
    changes = [FileChange(f"{label}/{i}/f", None, b"%d" % i) for i in range(20)]
    commit, _ = repo.write_commit(repo.branch_tip("main"), changes, f"{label}\n", WHO, WHO)
    repo.write_objects()
    return commit


def packs(path: Path) -> set[str]:
    return {file.stem for file in (path / ".git/objects/pack").glob("*.pack")}


def test_there_are_never_many(tmp_path: Path) -> None:
    path = make_repo(tmp_path / "repo", {"a.txt": "a\n"})
    repo = Repository.open(path)
    packing = tidying.Tidying(repo)
    commits = [grow(repo, f"k{n}") for n in range(5)]
    repo.close()
    theirs = packs(path)
    for name in theirs:
        (path / f".git/objects/pack/{name}.keep").touch()
    for n in range(60):
        commits.append(grow(repo, f"n{n}"))
        if packing.combine():
            repo.renew()
        assert len(packs(path) - theirs) <= tidying.MOST + 4
    if packing._combining:
        packing._combining.wait(120)
    assert theirs < packs(path)
    assert all(map(repo.exists, commits))
    git("fsck", "--strict", cwd=path)
