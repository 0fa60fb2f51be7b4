from __future__ import annotations

from pathlib import Path

import pytest

from patchq.core.model.values import FileChange
from patchq.gate.errors import RepositoryFault
from patchq.gate.git.objects import Identity
from patchq.gate.git.repository import Repository
from tests.helpers.gitrepo import commit_files, git, make_repo

WHO = Identity("Ada Tester", "ada@example.org", 1_700_000_000, 120)
FILES = {
    "README": "read me\n",
    "src/a.py": "a = 1\n",
    "src/b.py": "b = 1\n",
    "src/deep/er/c.py": "c = 1\n",
    "bin/run": "#!/bin/sh\n",
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    root = make_repo(tmp_path / "work", FILES)
    git("update-index", "--chmod=+x", "bin/run", cwd=root)
    git("commit", "-q", "-m", "Make it run", cwd=root)
    (root / "bin/run").chmod(0o755)
    return root


@pytest.fixture
def repo(path: Path) -> Repository:
    return Repository.open(path)


@pytest.fixture
def tip(path: Path) -> str:
    return git("rev-parse", "HEAD", cwd=path)


def write(repo: Repository, tip: str, *changes: FileChange, message: str = "m") -> str:
    commit, _ = repo.write_commit(tip, changes, message, WHO, WHO)
    repo.write_objects()
    return commit


def edit(path: str, before: str | None, after: str | None, **more: object) -> FileChange:
    texts = (text if text is None else text.encode() for text in (before, after))
    return FileChange(path, *texts, **more)  # type: ignore[arg-type]


def names(path: Path, commit: str) -> list[str]:
    return git("ls-tree", "-r", "--name-only", commit, cwd=path).split("\n")


# ---------------------------------------------------------------- opening


@pytest.mark.parametrize(
    ("settings", "cure"),
    [
        ({"extensions.refstorage": "reftable"}, "no linked work trees"),
        ({"extensions.objectformat": "sha256"}, "git fast-export"),
        ({"extensions.partialclone": "origin"}, "--unset extensions.partialClone"),
    ],
    ids=["reftable", "sha256", "partial clone"],
)
def test_g09_what_libgit2_cannot_read_is_refused_with_a_cure(
    path: Path, settings: dict[str, str], cure: str
) -> None:
    for key, value in {"core.repositoryformatversion": "1", **settings}.items():
        git("config", key, value, cwd=path)
    with pytest.raises(RepositoryFault) as fault:
        Repository.open(path)
    assert cure in (fault.value.hint or "")


# ---------------------------------------------------------------- names


def test_resolve_commit(path: Path, repo: Repository, tip: str) -> None:
    first = git("rev-parse", "HEAD~1", cwd=path)
    git("tag", "-a", "-m", "t", "v1", first, cwd=path)
    git("branch", "feature/x", first, cwd=path)
    git("tag", "main2", tip, cwd=path)
    git("branch", "main2", first, cwd=path)
    asked = {
        tip: tip,
        tip.upper(): tip,
        tip[:8]: tip,
        "main": tip,
        "v1": first,
        "feature/x": first,
        "refs/heads/main": tip,
        "main2": None,  # a tag and a branch, and they differ
        "HEAD~1": None,
        "main:README": None,
        ":/Start": None,
        "0" * 40: None,
        git("rev-parse", "HEAD:README", cwd=path): None,
        "nope": None,
        "": None,
        "--help": None,
        tip[:3]: None,
    }
    assert {text: repo.resolve_commit(text) for text in asked} == asked


# ---------------------------------------------------------------- reading


ATTRIBUTES = {
    ".gitattributes": "[attr]lfs filter=lfs -text\n*.bin lfs\n",
    "d/.gitattributes": "*.psd filter=crypt\nplain.bin -filter\nodd.bin filter\n",
}
FILTERS = {
    "x.bin": "lfs",
    "d/e/x.bin": "lfs",
    "d/e/a.psd": "crypt",
    "a.psd": None,
    "d/plain.bin": None,
    "d/odd.bin": None,
    "new/dir/x.bin": "lfs",
    "d/z.txt": None,
}


def test_filter_attribute_is_that_of_the_commit(path: Path, tmp_path: Path) -> None:
    with_filters = commit_files(path, ATTRIBUTES)
    git("rm", "-q", "-r", "d", cwd=path)
    without = commit_files(path, {".gitattributes": "d/z.txt filter=later\n"})
    git("clone", "-q", "--bare", str(path), str(tmp_path / "bare"), cwd=path)
    repo = Repository.open(tmp_path / "bare")
    for _ in range(2):  # libgit2 caches attribute files
        tree = repo.tree(with_filters)
        assert {name: tree.filtered(name) for name in FILTERS} == FILTERS
        later = repo.tree(without)
        assert [later.filtered(name) for name in ("x.bin", "d/z.txt")] == [None, "later"]


def test_filter_attribute_from_outside_the_tree(path: Path, tip: str, tmp_path: Path) -> None:
    (tmp_path / "attributes").write_text("*.txt filter=mine\n")
    git("config", "core.attributesFile", str(tmp_path / "attributes"), cwd=path)
    tree = Repository.open(path).tree(tip)
    assert tree.filtered("a/b.txt") == "mine"
    assert tree.filtered("a/b.py") is None


def test_damaged_history_is_a_fault(path: Path, tip: str) -> None:
    commit_files(path, {"x": "1"})
    new = commit_files(path, {"x": "2"})
    middle = git("rev-parse", f"{new}^", cwd=path)
    place = path / ".git/objects" / middle[:2] / middle[2:]
    place.unlink()
    place.touch()
    repo = Repository.open(path)
    with pytest.raises(RepositoryFault, match="cannot read the history"):
        repo.is_ancestor(tip, new)
    with pytest.raises(RepositoryFault, match="cannot read the history"):
        list(repo.commits(new))


# ---------------------------------------------------------------- writing


def test_write_commit_changes_exactly_that(path: Path, repo: Repository, tip: str) -> None:
    commit, tree = repo.write_commit(
        tip,
        [
            edit("src/a.py", "a = 1\n", "a = 2\n"),
            edit("src/deep/er/c.py", "c = 1\n", None),
            edit("new/dir/n.py", None, "n\n"),
            edit(
                "bin/go", "#!/bin/sh\n", "#!/bin/sh\ngo\n", executable=True, renamed_from="bin/run"
            ),
        ],
        "Subject\n\nBody with ü",
        Identity("Ümit", "u@x.org", 1_700_000_000, -90),
        WHO,
    )
    repo.write_objects()
    assert git("rev-parse", f"{commit}^", f"{commit}^{{tree}}", cwd=path) == f"{tip}\n{tree}"
    assert git("log", "-1", "--format=%an|%ae|%ad|%cn|%cd|%B", "--date=raw", commit, cwd=path) == (
        "Ümit|u@x.org|1700000000 -0130|Ada Tester|1700000000 +0200|Subject\n\nBody with ü"
    )
    assert git("diff", "--name-status", "--no-renames", tip, commit, cwd=path).split("\n") == [
        "A\tbin/go",
        "D\tbin/run",
        "A\tnew/dir/n.py",
        "M\tsrc/a.py",
        "D\tsrc/deep/er/c.py",
    ]
    assert git("ls-tree", commit, "bin/go", cwd=path).startswith("100755")
    assert git("ls-tree", commit, "new/dir/n.py", cwd=path).startswith("100644")
    assert git("ls-tree", commit, "src/deep", cwd=path) == ""
    assert git("status", "--porcelain", cwd=path) == ""
    git("fsck", "--strict", cwd=path)


@pytest.mark.parametrize(
    "changes",
    [
        [edit("README/x", None, "x")],
        [edit("src", None, "x")],
        [edit("README", "stale\n", "x")],
        [edit("src/a.py", "b = 1\n", "b = 1\n", renamed_from="src/b.py")],
        [edit("new", None, "x"), edit("new", None, "y")],
    ],
    ids=[
        "file becomes directory",
        "directory becomes file",
        "changed since",
        "rename onto a file",
        "twice",
    ],
)
def test_changes_that_would_lose_data_are_refused(
    repo: Repository, tip: str, changes: list[FileChange]
) -> None:
    with pytest.raises(RepositoryFault):
        repo.write_commit(tip, changes, "m", WHO, WHO)


def test_g06_a_damaged_object_in_the_way_is_replaced(
    path: Path, repo: Repository, tip: str
) -> None:
    change = edit("src/deep/er/c.py", "c = 1\n", "c = 2\n")
    commit = write(repo, tip, change)
    made = git("rev-list", "--objects", "--no-object-names", f"{tip}..{commit}", cwd=path)
    assert len(made.split()) == 6
    for oid in made.split():
        loose = path / ".git/objects" / oid[:2] / oid[2:]
        loose.unlink()
        loose.write_bytes(b"")
    assert write(Repository.open(path), tip, change) == commit
    git("fsck", "--strict", cwd=path)


def test_damaged_objects_are_replaced_beside_a_pack(path: Path, repo: Repository, tip: str) -> None:
    changes = [edit(f"new/{number}.py", None, f"{number}\n") for number in range(40)]
    commit = write(repo, tip, *changes)
    made = git("rev-list", "--objects", "--no-object-names", f"{tip}..{commit}", cwd=path).split()
    for oid in made[::2]:
        loose = path / ".git/objects" / oid[:2] / oid[2:]
        loose.parent.mkdir(exist_ok=True)
        loose.write_bytes(b"")
    repo.close()
    for file in (path / ".git/objects/pack").iterdir():
        file.unlink()
    assert write(Repository.open(path), tip, *changes) == commit
    git("fsck", "--full", "--strict", cwd=path)


@pytest.mark.parametrize("name", [".git/config", "src/.."])
def test_a_name_that_no_file_can_have_is_refused(repo: Repository, tip: str, name: str) -> None:
    with pytest.raises(RepositoryFault, match="cannot be the name"):
        repo.write_commit(tip, [edit(name, None, "x")], "m", WHO, WHO)


# ---------------------------------------------------------------- identity
