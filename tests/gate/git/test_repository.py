from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from patchq.core.model.values import FileChange
from patchq.gate.errors import RepositoryFault
from patchq.gate.git.objects import Identity
from patchq.gate.git.repository import Repository
from tests.helpers.gitrepo import commit_files, git, make_repo

WHO = Identity("Ada Tester", "ada@example.org", 1_700_000_000, 120)
FILES = {"README": "read me\n", "src/a.py": "a = 1\n", "src/b.py": "b = 1\n"}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    root = make_repo(tmp_path / "work", FILES)
    commit_files(root, {"new.py": "n = 1\n"})
    return root


@pytest.fixture
def repo(path: Path) -> Repository:
    return Repository.open(path)


@pytest.fixture
def tip(path: Path) -> str:
    return git("rev-parse", "HEAD", cwd=path)


def edit(path: str, before: str | None, after: str | None, **more: object) -> FileChange:
    texts = (text if text is None else text.encode() for text in (before, after))
    return FileChange(path, *texts, **more)  # type: ignore[arg-type]


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


def test_resolve_commit(path: Path, repo: Repository, tip: str) -> None:
    first = git("rev-parse", "HEAD~1", cwd=path)
    git("tag", "-a", "-m", "t", "v1", first, cwd=path)
    git("branch", "feature/x", first, cwd=path)
    git("tag", "main2", tip, cwd=path)
    git("branch", "main2", first, cwd=path)
    asked = {
        tip.upper(): tip,
        tip[:8]: tip,
        "main": tip,
        "v1": first,
        "feature/x": first,
        "refs/heads/main": tip,
        "main2": None,  # a tag and a branch, and they differ
        "HEAD~1": None,
        "main:README": None,
        "0" * 40: None,
        git("rev-parse", "HEAD:README", cwd=path): None,
        "": None,
        "--help": None,
        tip[:3]: None,
    }
    assert {text: repo.resolve_commit(text) for text in asked} == asked


ATTRIBUTES = {
    ".gitattributes": "[attr]lfs filter=lfs -text\n*.bin lfs\n",
    "d/.gitattributes": "*.psd filter=crypt\nplain.bin -filter\nodd.bin filter\n",
}
FILTERS = {
    "x.bin": "lfs",
    "d/e/a.psd": "crypt",
    "d/plain.bin": None,
    "d/odd.bin": None,
    "new/dir/x.bin": "lfs",
    "d/z.txt": None,
    "d/x.mine": "mine",
}


def test_filter_attribute_is_that_of_the_commit(path: Path, tmp_path: Path) -> None:
    with_filters = commit_files(path, ATTRIBUTES)
    git("rm", "-q", "-r", "d", cwd=path)
    without = commit_files(path, {".gitattributes": "d/z.txt filter=later\n"})
    git("clone", "-q", "--bare", str(path), str(tmp_path / "bare"), cwd=path)
    (tmp_path / "attributes").write_text("*.mine filter=mine\n")
    git("config", "core.attributesFile", str(tmp_path / "attributes"), cwd=tmp_path / "bare")
    repo = Repository.open(tmp_path / "bare")
    for _ in range(2):  # libgit2 caches attribute files
        tree = repo.tree(with_filters)
        assert {name: tree.filtered(name) for name in FILTERS} == FILTERS
        later = repo.tree(without)
        assert [later.filtered(name) for name in ("x.bin", "d/z.txt")] == [None, "later"]


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


def test_a_commit_says_who_made_it_and_when(path: Path, repo: Repository, tip: str) -> None:
    author = Identity("Ümit", "u@x.org", 1_700_000_000, -90)
    commit, _ = repo.write_commit(tip, [], "Subject\n\nBody with ü", author, WHO)
    repo.write_objects()
    assert git("log", "-1", "--format=%an|%ae|%ad|%cn|%cd|%B", "--date=raw", commit, cwd=path) == (
        "Ümit|u@x.org|1700000000 -0130|Ada Tester|1700000000 +0200|Subject\n\nBody with ü"
    )
    git("fsck", "--strict", cwd=path)


def test_k2_a_commit_changes_exactly_that(path: Path) -> None:
    tip = commit_files(path, {"deep/er/c.py": "c\n", "bin/run": "#!/bin/sh\n"})
    repo = Repository.open(path)
    changes = [
        edit("deep/er/c.py", "c\n", None),
        edit("bin/go", "#!/bin/sh\n", "go\n", executable=True, renamed_from="bin/run"),
        edit("new/dir/n.py", None, "n\n"),
    ]
    commit, tree = repo.write_commit(tip, changes, "m", WHO, WHO)
    repo.write_objects()
    assert git("rev-parse", f"{commit}^", f"{commit}^{{tree}}", cwd=path) == f"{tip}\n{tree}"
    found = git("diff", "--no-renames", "--name-status", tip, commit, cwd=path).split()
    assert found == ["A", "bin/go", "D", "bin/run", "D", "deep/er/c.py", "A", "new/dir/n.py"]
    assert git("ls-tree", commit, "bin/go", "deep", cwd=path).split()[0] == "100755"
    assert git("ls-tree", "--name-only", commit, "deep", cwd=path) == ""
    assert git("status", "--porcelain", cwd=path) == ""


LOSING = {
    "file becomes directory": [edit("README/x", None, "x")],
    "directory becomes file": [edit("src", None, "x")],
    "changed since": [edit("README", "stale\n", "x")],
    "rename onto a file": [edit("src/a.py", "b = 1\n", "b = 1\n", renamed_from="src/b.py")],
    "twice": [edit("new", None, "x"), edit("new", None, "y")],
    "git's own": [edit(".git/config", None, "x")],
    "no name": [edit("src/..", None, "x")],
}


@pytest.mark.parametrize("changes", LOSING.values(), ids=LOSING)
def test_changes_that_would_lose_data_are_refused(
    repo: Repository, tip: str, changes: list[FileChange]
) -> None:
    with pytest.raises(RepositoryFault):
        repo.write_commit(tip, changes, "m", WHO, WHO)


def test_names_are_utf8_in_any_locale(path: Path, repo: Repository, tip: str) -> None:
    script = """
import sys
from patchq.core.model.values import FileChange
from patchq.gate.git.repository import Repository
change = FileChange("\\xfc/a.py", None, b"a")
print(Repository.open(sys.argv[1]).write_tree(sys.argv[2], [change]))
"""
    ascii_only = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    told = subprocess.run(
        [sys.executable, "-c", script, path, tip],
        env={**os.environ, **ascii_only},
        capture_output=True,
        text=True,
        timeout=60,
    )
    expected = repo.write_tree(tip, [edit("\xfc/a.py", None, "a")])
    assert (told.stdout, told.stderr) == (f"{expected}\n", "")


@pytest.mark.parametrize("files", [3, 40], ids=["loose", "beside a pack"])
def test_g06_a_damaged_object_in_the_way_is_replaced(path: Path, tip: str, files: int) -> None:
    changes = [edit(f"new/{number}.py", None, f"{number}\n") for number in range(files)]

    def write() -> str:
        repo = Repository.open(path)
        commit, _ = repo.write_commit(tip, changes, "m", WHO, WHO)
        repo.write_objects()
        repo.close()
        return commit

    commit = write()
    made = git("rev-list", "--objects", "--no-object-names", f"{tip}..{commit}", cwd=path).split()
    assert len(made) == files + 3
    for oid in made if files < 40 else made[::2]:
        loose = path / ".git/objects" / oid[:2] / oid[2:]
        loose.parent.mkdir(exist_ok=True)
        loose.unlink(missing_ok=True)
        loose.write_bytes(b"")
    for file in (path / ".git/objects").glob("pack/*"):
        file.unlink()
    assert write() == commit
    git("fsck", "--full", "--strict", cwd=path)
