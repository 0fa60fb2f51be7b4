"""Packs that patchq wrote become few, and nothing in them or beside them is lost."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from patchq.core.model.values import FileChange
from patchq.gate.errors import Fault
from patchq.gate.git import tidying as packs
from patchq.gate.git import unwritten
from patchq.gate.git.command import Git
from patchq.gate.git.objects import Identity
from patchq.gate.git.repository import Repository
from tests.helpers.gitrepo import git, make_repo

WHO = Identity("Ada", "ada@example.org", 1, 0)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return make_repo(tmp_path / "repo", {"a.txt": "a\n"})


@pytest.fixture
def repo(path: Path) -> Repository:
    return Repository.open(path)


def grow(repo: Repository, count: int, label: str = "x") -> list[str]:
    """So many packs of patchq's, each of a commit that no ref has."""
    made = []
    for n in range(count):
        changes = [FileChange(f"{label}{n}/{i}/f", None, b"%d %d" % (n, i)) for i in range(20)]
        made.append(repo.write_commit(repo.branch_tip("main"), changes, "m\n", WHO, WHO)[0])
        repo.write_objects()
    return made


def objects(path: Path) -> set[str]:
    words = ("cat-file", "--batch-all-objects", "--batch-check=%(objectname)")
    return set(git(*words, cwd=path).splitlines())


def names(path: Path, suffix: str = "pack") -> set[str]:
    return {file.stem for file in (path / ".git/objects/pack").glob(f"*.{suffix}")}


def marks(path: Path) -> set[str]:
    return set(os.listdir(path / ".git/objects" / unwritten.MARKS))


def combine(path: Path) -> None:
    packs.combine(path / ".git/objects", Git({**os.environ, "GIT_DIR": str(path / ".git")}))


@pytest.mark.parametrize(
    ("sizes", "combined"),
    [
        ([], 0),
        ([1] * 24, 24),
        ([1] * 16 + [100, 1000], 16),
        ([1] * 16 + [30, 100], 17),
        ([2**n for n in range(24)], 24),
        ([3**n for n in range(24)], 17),
    ],
)
def test_large_packs_stay_until_the_others_weigh_as_much(sizes: list[int], combined: int) -> None:
    named = {f"pack-{n}": size for n, size in enumerate(sizes)}
    assert len(packs.chosen(named)) == combined


def test_every_object_of_the_marked_packs_is_in_the_new_one(path: Path, repo: Repository) -> None:
    git("repack", "-adq", cwd=path)
    theirs = names(path)
    commits = grow(repo, 12)
    git("update-ref", "refs/heads/new", commits[0], cwd=path)
    last = names(path, "keep")
    before = objects(path)
    assert len(marks(path)) == 12
    assert len(last) == 1, "the newest pack is kept until refs have it"
    indexed = sorted(marks(path) - last)[0]
    kept = sorted(marks(path) - last)[1]
    (path / f".git/objects/pack/{kept}.keep").touch()
    whole = path / ".git/objects/pack/multi-pack-index"
    text = f"{indexed}.idx\n"
    subprocess.run(
        ["git", "multi-pack-index", "write", "--stdin-packs"], input=text, text=True, cwd=path
    )
    assert whole.exists()
    combine(path)
    rest = {indexed, kept, *last}
    assert marks(path) > rest
    assert len(marks(path) - rest) == 1
    assert names(path) == names(path, "idx") == marks(path) | theirs
    assert objects(path) == before
    assert repo.exists(commits[5])
    git("fsck", "--strict", cwd=path)
    repo.close()
    git("multi-pack-index", "verify", cwd=path)
    litter = [file for file in (path / ".git").rglob("*") if "patchq-" in file.name]
    assert litter == []


def damaged(pack: Path) -> None:
    pack = pack.with_suffix(".pack")
    pack.chmod(0o644)
    data = bytearray(pack.read_bytes())
    data[60:70] = b"0123456789"
    pack.write_bytes(data)


def test_what_cannot_be_read_is_left_alone(path: Path, repo: Repository) -> None:
    grow(repo, 10)
    repo.close()
    before = names(path)
    damaged(path / ".git/objects/pack" / min(before))
    with pytest.raises((OSError, Fault, subprocess.SubprocessError)):
        combine(path)
    assert names(path) == names(path, "idx") == marks(path) == before
    litter = [file for file in (path / ".git").rglob("*") if "patchq-" in file.name]
    assert litter == []


@pytest.mark.parametrize("gone", [(".idx",), (".idx", ".pack")])
def test_what_a_crash_or_gc_left_is_removed(
    path: Path, repo: Repository, gone: tuple[str, ...]
) -> None:
    commits = grow(repo, 10)
    repo.close()
    lost = min(marks(path))
    for suffix in gone:
        (path / f".git/objects/pack/{lost}{suffix}").unlink()
    combine(path)
    assert names(path) == names(path, "idx") == marks(path)
    assert len(marks(path)) == 1
    there = objects(path)
    assert sum(commit in there for commit in commits) == 9


def test_there_are_never_many(
    path: Path, repo: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    for key in ("gc.auto", "maintenance.auto"):
        git("config", key, "0", cwd=path)
    for name, number in (("FEW", 3), ("MANY", 6), ("MOST", 10)):
        monkeypatch.setattr(packs, name, number)
    combining = packs.Combining(repo)
    commits = []
    for n in range(24):
        commits += grow(repo, 1, f"n{n}-")
        if combining.turn():
            repo.renew()
        assert len(names(path)) <= packs.MOST
    combining.finish()
    assert len(names(path)) <= packs.MANY + 2
    assert set(commits) <= objects(path)
    assert all(map(repo.exists, commits))
    git("fsck", "--strict", cwd=path)
