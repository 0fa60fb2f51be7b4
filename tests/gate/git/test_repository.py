from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pygit2
import pytest

from patchq.core.model.values import FileChange
from patchq.gate.errors import RepositoryFault, UsageError
from patchq.gate.git.objects import Identity
from patchq.gate.git.repository import AnyObject, Repository
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


def test_opens_from_a_subdirectory(path: Path) -> None:
    repo = Repository.open(path / "src" / "deep")
    assert (repo.workdir, repo.gitdir, repo.commondir) == (path, path / ".git", path / ".git")
    assert not repo.bare


def test_opens_a_linked_worktree(path: Path, tmp_path: Path) -> None:
    git("worktree", "add", "-q", str(tmp_path / "linked"), cwd=path)
    repo = Repository.open(tmp_path / "linked")
    assert repo.workdir == tmp_path / "linked"
    assert repo.gitdir == path / ".git/worktrees/linked"
    assert repo.commondir == path / ".git"
    assert repo.head_branch() == "linked"


def test_opens_a_bare_repository(path: Path, tmp_path: Path) -> None:
    git("clone", "-q", "--bare", str(path), str(tmp_path / "bare.git"), cwd=path)
    repo = Repository.open(tmp_path / "bare.git")
    assert repo.bare
    assert repo.workdir is None
    assert repo.gitdir == tmp_path / "bare.git"


@pytest.mark.parametrize("where", ["empty", "missing"])
def test_no_repository_is_a_usage_error(tmp_path: Path, where: str) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match="not in a git repository"):
        Repository.open(tmp_path / where)


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


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_repository_of_another_user_is_refused_with_the_command(path: Path) -> None:
    os.chown(path, 12345, 12345)
    os.chown(path / ".git", 12345, 12345)
    with pytest.raises(RepositoryFault) as fault:
        Repository.open(path)
    assert "safe.directory" in (fault.value.hint or "")


# ---------------------------------------------------------------- names


def test_head_branch(path: Path, repo: Repository) -> None:
    assert repo.head_branch() == "main"
    git("checkout", "-q", "--detach", cwd=path)
    assert repo.head_branch() is None
    git("symbolic-ref", "HEAD", "refs/heads/unborn", cwd=path)
    assert repo.head_branch() is None


def test_branch_tip_is_that_of_a_plain_branch(path: Path, repo: Repository, tip: str) -> None:
    git("tag", "-a", "-m", "t", "v1", cwd=path)
    git("symbolic-ref", "refs/heads/alias", "refs/heads/main", cwd=path)
    assert repo.branch_tip("main") == tip
    for name in ("alias", "v1", "missing", "../main", "a b", "", "x\0y", "\udc80"):
        assert repo.branch_tip(name) is None, name
    git("pack-refs", "--all", "--prune", cwd=path)
    assert repo.branch_tip("main") == tip


def test_branch_that_points_to_a_blob_is_none(path: Path, repo: Repository) -> None:
    blob = git("rev-parse", "HEAD:README", cwd=path)
    (path / ".git/refs/heads/odd").write_text(blob + "\n")
    assert repo.branch_tip("odd") is None


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


def test_refs_by_prefix_loose_and_packed(path: Path, repo: Repository, tip: str) -> None:
    git("branch", "patchq/one", cwd=path)
    git("update-ref", "refs/patchq/batches/one", tip, cwd=path)
    git("pack-refs", "--all", "--prune", cwd=path)
    git("branch", "patchq/two", cwd=path)
    (path / ".git/refs/heads/patchq/three.lock").touch()
    assert repo.branches("patchq/") == {"patchq/one": tip, "patchq/two": tip}
    assert repo.branches("") == {"main": tip, "patchq/one": tip, "patchq/two": tip}
    assert repo.refs("refs/patchq/") == {"refs/patchq/batches/one": tip}
    assert repo.refs("refs/none/") == {}


# ---------------------------------------------------------------- reading


def test_tree_reads_what_git_shows(path: Path, repo: Repository, tip: str) -> None:
    (path / "link").symlink_to("README")
    tip = commit_files(path, {"ümläut name.txt": b"\x00\xff"})
    tree = repo.tree(tip)
    kinds = {
        name: (entry.kind, entry.executable)
        for name in ("README", "src", "bin/run", "link", "ümläut name.txt")
        if (entry := tree.entry(name))
    }
    assert kinds == {
        "README": ("file", False),
        "src": ("tree", False),
        "bin/run": ("file", True),
        "link": ("link", False),
        "ümläut name.txt": ("file", False),
    }
    assert tree.read("ümläut name.txt") == b"\x00\xff"
    assert tree.names("src") == ("a.py", "b.py", "deep")
    assert tree.names("") == ("README", "bin", "link", "src", "ümläut name.txt")
    assert tree.names("README") == tree.names("nope") == ()
    assert list(tree.paths()) == [
        name for name in git("ls-files", "-z", cwd=path).split("\0") if name not in ("", "link")
    ]


def test_names_are_those_of_trees_that_are_known(
    repo: Repository, tip: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that a commit is made with is not read again, and has git's order."""
    new = [FileChange(path, None, b"x") for path in ("src/deep.py", "src/deep-", "src/a", "z")]
    oid = repo.write_commit(tip, new, "Add", WHO, WHO)[0]
    monkeypatch.delattr(Repository, "raw")
    tree = repo.tree(oid)
    assert tree.names("src") == ("a", "a.py", "b.py", "deep-", "deep.py", "deep")
    assert tree.names("")[-2:] == ("src", "z")


@pytest.mark.parametrize("name", ["", "nope", "README/x", "/README", "a\0b", "\udc80", "../x"])
def test_entry_of_a_path_that_is_not_there(repo: Repository, tip: str, name: str) -> None:
    assert repo.tree(tip).entry(name) is None


def test_submodule_is_an_entry_and_no_path(path: Path, repo: Repository, tip: str) -> None:
    git("update-index", "--add", "--cacheinfo", f"160000,{tip},sub", cwd=path)
    git("commit", "-q", "-m", "sub", cwd=path)
    tree = repo.tree(git("rev-parse", "HEAD", cwd=path))
    entry = tree.entry("sub")
    assert entry is not None
    assert entry.kind == "submodule"
    assert "sub" not in list(tree.paths())


def test_a_tree_is_walked_once_and_the_next_by_what_differs(
    path: Path, repo: Repository, tip: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    one = repo._object

    def counted(oid: str) -> AnyObject:
        found = one(oid)
        read.extend([oid] if isinstance(found, pygit2.Tree) else [])
        return found

    monkeypatch.setattr(repo, "_object", counted)
    listing = repo.tree(tip).listing()
    assert listing.paths == sorted(repo.tree(tip).paths())
    read.clear()
    assert repo.tree(tip).listing() is listing
    assert read == []
    listing.contents["src/a.py"] = listing.contents["README"] = b"as it was"
    (path / "src/a.py").write_text("changed\n")
    (path / "src/new.py").write_text("new\n")
    git("rm", "-q", "src/b.py", cwd=path)
    git("add", ".", cwd=path)
    git("commit", "-q", "-m", "More", cwd=path)
    new = repo.tree(git("rev-parse", "HEAD", cwd=path))
    followed = new.listing()
    assert len(read) == 4  # the root and `src`, before and after
    assert followed.paths == sorted(new.paths())
    assert followed.contents == {"README": b"as it was"}
    assert repo.tree(tip).listing().paths == listing.paths


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


@pytest.mark.parametrize("bare", [False, True], ids=["work tree", "bare"])
def test_filter_attribute_is_that_of_the_commit(path: Path, tmp_path: Path, bare: bool) -> None:
    with_filters = commit_files(path, ATTRIBUTES)
    git("rm", "-q", "-r", "d", cwd=path)
    without = commit_files(path, {".gitattributes": "d/z.txt filter=later\n"})
    if bare:
        git("clone", "-q", "--bare", str(path), str(tmp_path / "bare"), cwd=path)
        path = tmp_path / "bare"
    repo = Repository.open(path)
    for _ in range(2):  # libgit2 caches attribute files
        tree = repo.tree(with_filters)
        assert {name: tree.filtered(name) for name in FILTERS} == FILTERS
        later = repo.tree(without)
        assert [later.filtered(name) for name in ("x.bin", "d/z.txt")] == [None, "later"]


@pytest.mark.parametrize("where", ["info", "named"])
def test_filter_attribute_from_outside_the_tree(
    path: Path, tip: str, tmp_path: Path, where: str
) -> None:
    file = path / ".git/info/attributes" if where == "info" else tmp_path / "attributes"
    file.write_text("*.txt filter=mine\n")
    if where == "named":
        git("config", "core.attributesFile", str(file), cwd=path)
    tree = Repository.open(path).tree(tip)
    assert tree.filtered("a/b.txt") == "mine"
    assert tree.filtered("a/b.py") is None


def test_history(path: Path, repo: Repository, tip: str) -> None:
    start = git("rev-list", "--max-parents=0", "HEAD", cwd=path)
    git("checkout", "-q", "-b", "side", start, cwd=path)
    side = commit_files(path, {"src/a.py": "a = 2\n"}, "Side\n\nTrailer: x")
    git("checkout", "-q", "main", cwd=path)
    git("merge", "-q", "--no-ff", "-m", "Merge", "side", cwd=path)
    merged = git("rev-parse", "HEAD", cwd=path)
    assert repo.parents(merged) == (tip, side)
    assert repo.message(side) == "Side\n\nTrailer: x\n"
    assert repo.is_ancestor(side, merged)
    assert repo.is_ancestor(merged, merged)
    assert not repo.is_ancestor(merged, side)
    assert not repo.is_ancestor("1" * 40, merged)
    infos = list(repo.commits(merged, tip))
    assert [(info.oid, info.author) for info in infos] == [
        (merged, "Ada Tester <ada@example.org>"),
        (side, "Ada Tester <ada@example.org>"),
    ]
    assert [info.oid for info in repo.commits(merged, None, 1)] == [merged]
    assert set(repo.changes(tip, merged)) == {"src/a.py"}
    assert next(repo.touching(merged, None, "src/a.py"), None) == side
    assert next(repo.touching(merged, None, "README"), None) == start
    assert next(repo.touching(merged, tip, "README"), None) is None
    assert next(repo.touching(merged, None, "never"), None) is None


def test_missing_objects_are_a_fault(repo: Repository) -> None:
    with pytest.raises(RepositoryFault, match="cannot read"):
        repo.message("1" * 40)


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


def test_no_more_of_a_history_is_read_than_is_asked_for(path: Path) -> None:
    lost, *_, before, new = (commit_files(path, {"x": str(n)}) for n in range(5))
    (path / ".git/objects" / lost[:2] / lost[2:]).unlink()
    repo = Repository.open(path)
    assert [info.oid for info in repo.commits(new, limit=2)] == [new, before]
    assert next(repo.touching(new, None, "x")) == new


def test_what_stood_at_paths_in_each_commit(path: Path, repo: Repository, tip: str) -> None:
    new = commit_files(path, {"src/a.py": "a = 2\n"})
    paths = ["src/a.py", "src", "src/", "never", "src/a.py/x", "", "/src", "\ud800", "a\0b"]
    found = [(oid, dict(zip(paths, state, strict=True))) for oid, state in repo.states(new, paths)]
    assert [oid for oid, _ in found] == git("rev-list", new, cwd=path).split()
    for oid, state in found:
        tree = repo.tree(oid)
        entries = {one: tree.entry(one) for one in paths}
        assert state == {one: entry and entry.oid for one, entry in entries.items()}


def test_exists_sees_what_gc_took(path: Path, repo: Repository, tip: str) -> None:
    commit = write(repo, tip, edit("README", "read me\n", "x"))
    assert repo.exists(commit)
    git("gc", "-q", "--prune=now", cwd=path)
    assert repo.message(commit) == "m"  # remembered
    assert not repo.exists(commit)


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


def test_deleting_everything_leaves_the_empty_tree(path: Path, repo: Repository, tip: str) -> None:
    gone = [
        FileChange(name, repo.tree(tip).read(name), None) for name in list(repo.tree(tip).paths())
    ]
    commit = write(repo, tip, *gone)
    assert git("ls-tree", "-r", commit, cwd=path) == ""
    git("fsck", "--strict", cwd=path)


def test_the_executable_bit_is_as_declared(path: Path, repo: Repository, tip: str) -> None:
    commit = write(
        repo,
        tip,
        edit("bin/run", "#!/bin/sh\n", "#!/bin/sh\n", executable=False),
        edit("README", "read me\n", "read me\n", executable=True),
    )
    shown = git("ls-tree", "-r", commit, "bin/run", "README", cwd=path)
    assert [line.split()[0] for line in shown.split("\n")] == ["100755", "100644"]


def test_an_odd_mode_of_old_is_no_change(path: Path, repo: Repository, tip: str) -> None:
    blob = bytes.fromhex(git("rev-parse", "HEAD:README", cwd=path))
    raw = b"100664 README\0" + blob + b"100664 other\0" + blob
    tree = git("hash-object", "-t", "tree", "-w", "--stdin", "--literally", cwd=path, stdin=raw)
    old = git("commit-tree", "-m", "old", tree, cwd=path)
    commit = write(repo, old, edit("README", "read me\n", "x"))
    assert set(repo.changes(old, commit)) == {"README"}


@pytest.mark.parametrize(
    "changes",
    [
        [edit("README/x", None, "x")],
        [edit("src", None, "x")],
        [edit("n", None, "x"), edit("n/m", None, "x")],
        [edit("src", None, "x"), edit("src/a.py", "a = 1\n", None)],
        [edit("README", None, "x")],
        [edit("README", "stale\n", "x")],
        [edit("missing", "x", None)],
        [edit("src/a.py", "b = 1\n", "b = 1\n", renamed_from="src/b.py")],
        [edit("new", None, "x"), edit("new", None, "y")],
    ],
    ids=[
        "file becomes directory",
        "directory becomes file",
        "both new",
        "directory not emptied",
        "exists",
        "changed since",
        "not there",
        "rename onto a file",
        "twice",
    ],
)
def test_changes_that_would_lose_data_are_refused(
    repo: Repository, tip: str, changes: list[FileChange]
) -> None:
    with pytest.raises(RepositoryFault):
        repo.write_commit(tip, changes, "m", WHO, WHO)


def test_a_file_may_give_way(path: Path, repo: Repository, tip: str) -> None:
    commit = write(
        repo,
        tip,
        edit("README", "read me\n", None),
        edit("README/index", None, "x"),
        edit("src/deep/er/c.py", "c = 1\n", None),
        edit("src/deep", None, "x"),
        edit("src/a.py", "b = 1\n", "b = 1\n", renamed_from="src/b.py"),
        edit("src/b.py", "a = 1\n", "a = 1\n", renamed_from="src/a.py"),
    )
    assert names(path, commit) == ["README/index", "bin/run", "src/a.py", "src/b.py", "src/deep"]
    git("fsck", "--strict", cwd=path)


def test_nul_in_the_message_is_refused(repo: Repository, tip: str) -> None:
    with pytest.raises(RepositoryFault, match="NUL"):
        repo.write_commit(tip, [], "subject\0trailer", WHO, WHO)


@pytest.mark.parametrize("content", [b"", b"garbage"], ids=["empty", "garbage"])
def test_g06_a_damaged_object_in_the_way_is_replaced(
    path: Path, repo: Repository, tip: str, content: bytes
) -> None:
    change = edit("src/deep/er/c.py", "c = 1\n", "c = 2\n")
    commit = write(repo, tip, change)
    made = git("rev-list", "--objects", "--no-object-names", f"{tip}..{commit}", cwd=path)
    assert len(made.split()) == 6
    for oid in made.split():
        loose = path / ".git/objects" / oid[:2] / oid[2:]
        loose.unlink()
        loose.write_bytes(content)
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


@pytest.mark.parametrize("name", [".git/config", "src/.GIT", "src/..", "src/./a", "src//a"])
def test_a_name_that_no_file_can_have_is_refused(repo: Repository, tip: str, name: str) -> None:
    with pytest.raises(RepositoryFault, match="cannot be the name"):
        repo.write_commit(tip, [edit(name, None, "x")], "m", WHO, WHO)


def test_a_tree_without_its_base_is_a_fault(path: Path, repo: Repository, tip: str) -> None:
    tree = git("rev-parse", "HEAD^{tree}", cwd=path)
    (path / ".git/objects" / tree[:2] / tree[2:]).unlink()
    with pytest.raises(RepositoryFault) as fault:
        write(Repository.open(path), tip, edit("README", "read me\n", "x"))
    assert "git fsck" in (fault.value.hint or "")


# ---------------------------------------------------------------- identity


def test_identity_from_the_configuration(path: Path, repo: Repository) -> None:
    who = repo.identity()
    assert who is not None
    assert (who.name, who.email, who.offset) == ("Ada Tester", "ada@example.org", 0)
    assert who.when > 1_700_000_000
    git("config", "committer.name", "Grace", cwd=path)
    assert getattr(Repository.open(path).identity(), "name", None) == "Grace"


def test_identity_of_the_environment_wins(
    repo: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_COMMITTER_NAME", "Envy\n<x>")
    monkeypatch.setenv("GIT_AUTHOR_EMAIL", "env@x.org")
    committer, author = repo.identity(), repo.identity("AUTHOR")
    assert committer is not None
    assert author is not None
    assert (committer.name, committer.email) == ("Envyx", "ada@example.org")
    assert (author.name, author.email) == ("Ada Tester", "env@x.org")


def test_no_identity(path: Path, home: Path) -> None:
    (home / ".gitconfig").write_text("")
    assert Repository.open(path).identity() is None


# ---------------------------------------------------------------- scale

MEASURE = """
import sys
from pathlib import Path
from patchq.core.model.values import FileChange
from patchq.gate.git.repository import Repository
from patchq.gate.git.objects import Identity
repo = Repository.open(Path(sys.argv[1]))
who = Identity("A", "a@x", 1, 0)
tip = repo.branch_tip("main")
text = b"x"
for number in range(50):
    tree = repo.tree(tip)
    tree.filtered("d1/e2/f3")
    before, text = tree.read("d1/e2/f3"), b"%d" % number
    tip, _ = repo.write_commit(tip, [FileChange("d1/e2/f3", before, text)], "m", who, who)
    repo.write_objects()
status = Path("/proc/self/status").read_text().splitlines()
peak = next(line for line in status if line.startswith("VmHWM"))  # ru_maxrss has the parent's, too
print(sum(1 for _ in tree.paths()), int(peak.split()[1]) // 1024)
"""


def test_memory_does_not_grow_with_the_repository(tmp_path: Path) -> None:
    root = tmp_path / "big"
    root.mkdir()
    git("init", "-q", cwd=root)
    files = "".join(
        f"M 100644 inline d{i // 5000}/e{i % 100}/f{i % 5000 // 100}\ndata 1\n{i % 7}\n"
        for i in range(50_000)
    )
    stream = f"commit refs/heads/main\ncommitter A <a@x> 1 +0000\ndata 1\nm\n{files}"
    git("fast-import", "--quiet", cwd=root, stdin=stream)
    git("read-tree", "main", cwd=root)
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, str(root)], capture_output=True, text=True, check=True
    )
    count, peak_mib = map(int, done.stdout.split())
    assert count == 50_000
    assert peak_mib < 80
