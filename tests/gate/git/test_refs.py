from __future__ import annotations

import errno
import os
import re
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from patchq.gate.errors import Busy, DiskFault, RepositoryFault
from patchq.gate.git import refs
from patchq.gate.git.objects import Identity
from patchq.gate.git.repository import Repository
from tests.helpers.dying import deaths
from tests.helpers.ending import running
from tests.helpers.gitrepo import git, make_repo

WHO = Identity("Ada Tester", "ada@example.org", 1_700_000_000, 0)
MAIN = "refs/heads/main"
NEW = "refs/heads/patchq/new"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return make_repo(tmp_path / "work", {"a": "1\n"})


@pytest.fixture
def repo(path: Path) -> Repository:
    return Repository.open(path)


@pytest.fixture
def old(path: Path) -> str:
    return git("rev-parse", "HEAD", cwd=path)


@pytest.fixture
def new(repo: Repository, old: str) -> str:
    return commit(repo, old, "Next")


def commit(repo: Repository, parent: str, message: str) -> str:
    made, _ = repo.write_commit(parent, [], message, WHO, WHO)
    repo.write_objects()
    return made


def move(repo: Repository, old: str, new: str, wait: float = 0.05) -> bool:
    return refs.move(repo, MAIN, old, new, "patchq: b1:  Do\nit", WHO, wait=wait)


def create(repo: Repository, ref: str, new: str) -> bool:
    return refs.move(repo, ref, None, new, "patchq: b1: new", WHO, wait=0.05)


def rest(path: Path) -> list[str]:
    """Own files and locks that lie about."""
    gitdir = path / ".git"
    return [
        *(file.name for file in gitdir.glob("patchq-*")),
        *(str(file.relative_to(gitdir)) for file in gitdir.rglob("*.lock")),
    ]


@pytest.mark.parametrize("packed", [False, True], ids=["loose", "packed"])
def test_move(path: Path, repo: Repository, old: str, new: str, packed: bool) -> None:
    if packed:
        git("pack-refs", "--all", "--prune", cwd=path)
    assert move(repo, old, new)
    assert git("rev-parse", "main", cwd=path) == repo.branch_tip("main") == new
    assert not move(repo, old, new)
    for log in ("main", "HEAD"):
        line = git("reflog", "-1", "--format=%H %gn <%ge> %gs", log, cwd=path)
        assert line == f"{new} Ada Tester <ada@example.org> patchq: b1: Do it"
    git("fsck", "--strict", cwd=path)
    assert rest(path) == []


@pytest.mark.parametrize("packed", [False, True], ids=["loose", "packed"])
def test_delete(path: Path, repo: Repository, old: str, new: str, packed: bool) -> None:
    git("tag", "-a", "-m", "peeled", "v1", cwd=path)
    assert create(repo, NEW, new)
    assert git("reflog", "--format=%gs", NEW, cwd=path) == "patchq: b1: new"
    if packed:
        git("pack-refs", "--all", cwd=path)
    assert not create(repo, NEW, old)
    assert not refs.delete(repo, NEW, old)
    assert refs.delete(repo, NEW, new)
    assert not refs.delete(repo, NEW, new)
    assert git("for-each-ref", "--format=%(refname:short)", cwd=path) == "main\nv1"
    assert not (path / ".git/logs" / NEW).exists()
    git("rev-parse", "v1^{commit}", cwd=path)
    assert rest(path) == []


@pytest.mark.parametrize("header", ["git's", "none"])
def test_packed_refs_are_read_as_git_reads_them(
    path: Path, repo: Repository, old: str, header: str
) -> None:
    """Whatever stands round an entry: other lengths, tags with the commit behind them."""
    names = [f"refs/heads/{'x' * (7 * n % 50)}{n}" for n in range(300)]
    git("tag", "-a", "-m", "peeled", "v1", cwd=path)
    tag = git("rev-parse", "v1", cwd=path)
    lines = [f"create {name} {old}" for name in names]
    lines += [f"create refs/tags/t{n} {tag}" for n in range(200)]
    git("update-ref", "--stdin", cwd=path, stdin="\n".join([*lines, ""]))
    git("pack-refs", "--all", cwd=path)
    packed = path / ".git/packed-refs"
    if header != "git's":
        _, *rest = packed.read_text().splitlines(keepends=True)
        pairs = re.findall(r".{40} .*\n(?:\^.*\n)?", "".join(rest))
        packed.write_text("".join(reversed(pairs)))
    shown = git("for-each-ref", "--format=%(refname) %(objectname)", cwd=path).splitlines()
    there = dict(line.split(" ") for line in shown)
    assert {name: repo.ref_target(name) for name in there} == there
    assert repo.refs("refs/") == there
    tags = {name: oid for name, oid in there.items() if name.startswith("refs/tags/")}
    assert repo.refs("refs/tags/") == tags
    assert not any(map(repo.ref_target, ("refs/a/a", "refs/heads/main2", "refs/zzz/z")))


@pytest.mark.parametrize(
    ("ref", "why"),
    [
        ("refs/tags/v1", "may write"),
        ("refs/heads/../../x", "may write"),
        ("refs/heads/main/x", "cannot exist beside"),
        ("refs/heads/feature", "cannot exist beside"),
    ],
)
def test_names_that_are_not_ours_to_write(
    path: Path, repo: Repository, old: str, ref: str, why: str
) -> None:
    git("branch", "feature/one", cwd=path)
    with pytest.raises(RepositoryFault, match=why):
        create(repo, ref, old)
    assert rest(path) == []


def test_g08_a_symbolic_ref_is_refused(path: Path, repo: Repository, old: str, new: str) -> None:
    git("symbolic-ref", NEW, MAIN, cwd=path)
    with pytest.raises(RepositoryFault, match="symbolic ref"):
        refs.move(repo, NEW, old, new, "m", WHO)
    with pytest.raises(RepositoryFault, match="symbolic ref"):
        create(repo, NEW, new)
    assert repo.branch_tip("main") == old
    assert rest(path) == []


@pytest.mark.parametrize("what", ["refs/heads/main", "refs/heads"])
def test_g08_nothing_is_written_through_a_symbolic_link(
    path: Path, repo: Repository, tmp_path: Path, old: str, new: str, what: str
) -> None:
    outside = tmp_path / "outside"
    (path / ".git" / what).rename(outside)
    (path / ".git" / what).symlink_to(outside)
    with pytest.raises(RepositoryFault, match="symbolic link"):
        move(repo, old, new)
    assert repo.branch_tip("main") == old
    assert (path / ".git" / what).is_symlink()


def test_empty_directories_are_no_obstacle(
    path: Path, repo: Repository, old: str, new: str
) -> None:
    git("pack-refs", "--all", "--prune", cwd=path)
    for name in ("refs/heads/main/x/y", f"{NEW}/x", f"logs/{NEW}/x"):
        (path / ".git" / name).mkdir(parents=True)
    assert move(repo, old, new)
    assert create(repo, NEW, new)
    git("fsck", "--strict", cwd=path)


def test_a_commit_that_gc_took_is_not_pointed_to(
    path: Path, repo: Repository, old: str, new: str
) -> None:
    git("gc", "-q", "--prune=now", cwd=path)
    with pytest.raises(RepositoryFault, match="is gone"):
        move(repo, old, new)
    assert git("rev-parse", "main", cwd=path) == old


def test_a_full_disk_is_a_disk_fault(path: Path, repo: Repository, old: str, new: str) -> None:
    log = path / ".git/logs/refs/heads/main"
    log.unlink()
    log.symlink_to("/dev/full")
    with pytest.raises(DiskFault):
        move(repo, old, new)
    assert repo.branch_tip("main") == old
    assert rest(path) == []


@pytest.mark.parametrize(("number", "file_system"), [(errno.EPERM, True), (errno.ENOSPC, False)])
def test_a_file_system_is_blamed_only_for_links_that_it_lacks(
    path: Path, old: str, new: str, repo: Repository, monkeypatch: pytest.MonkeyPatch,
    number: int, file_system: bool,
) -> None:  # fmt: skip
    def link(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "link", link)
    with pytest.raises(DiskFault) as fault:
        move(repo, old, new)
    assert os.strerror(number) in fault.value.message
    assert ("with hard links" in f"{fault.value.hint}") == file_system


def test_g03_a_foreign_lock_that_stays_is_told_and_kept(
    path: Path, repo: Repository, old: str, new: str
) -> None:
    lock = path / ".git/refs/heads/main.lock"
    lock.touch()
    with pytest.raises(Busy) as busy:
        move(repo, old, new)
    assert str(lock) in str(busy.value)
    assert f"rm '{lock}'" in (busy.value.hint or "")
    assert refs.clean(repo.commondir) == []
    assert lock.exists()
    assert repo.branch_tip("main") == old


def test_death_at_every_step_of_a_move(path: Path, repo: Repository, old: str) -> None:
    tips = [old]
    for number in range(60):
        tips.append(commit(repo, tips[-1], f"{number}"))
    moved = []
    for _ in deaths(lambda: move(repo, git_tip(path), after(tips, git_tip(path)))):
        before = len(tips) - tips[::-1].index(git_tip(path))
        refs.clean(repo.commondir)
        assert rest(path) == []
        moved.append(before)
        git("commit", "-q", "--allow-empty", "-m", "the user goes on", cwd=path)
        git("reset", "-q", "--hard", "HEAD^", cwd=path)
    assert len(set(moved)) > 1, "no death came after the commit point"
    git("fsck", "--strict", cwd=path)


def git_tip(path: Path) -> str:
    return (path / ".git/refs/heads/main").read_text().strip()


def after(tips: list[str], tip: str) -> str:
    return tips[tips.index(tip) + 1]


def test_death_at_every_step_of_create_and_delete(path: Path, repo: Repository, new: str) -> None:
    def both() -> None:
        assert create(repo, NEW, new) or repo.branch_tip("patchq/new") == new
        assert refs.delete(repo, NEW, new)

    for _ in deaths(both):
        refs.clean(repo.commondir)
        assert rest(path) == []
        assert repo.branch_tip("patchq/new") in (None, new)
        git("fsck", "--strict", cwd=path)
        create(repo, NEW, new)
        git("pack-refs", "--all", cwd=path)


WRITER = """
import sys
from pathlib import Path
from patchq.gate.git import refs
from patchq.gate.git.objects import Identity
from patchq.gate.git.repository import Repository
repo = Repository.open(Path(sys.argv[1]))
who = Identity("W", "w@x", 1, 0)
done = 0
while done < int(sys.argv[2]):
    tip = repo.branch_tip("main")
    new, _ = repo.write_commit(tip, [], f"{sys.argv[3]} {done}", who, who)
    repo.write_objects()
    done += refs.move(repo, "refs/heads/main", tip, new, "w", who)
"""
COMMITS = 'for i in $(seq {n}); do until git commit -q --allow-empty -m "git $i"; do :; done; done'
PACKS = "while [ ! -e {stop} ]; do git pack-refs --all --prune; done"


def test_g01_no_update_is_lost_beside_git(path: Path, tmp_path: Path) -> None:
    """Nothing of ours stands on another tip than the one that it was compared with, and nothing is
    missing but what git itself passed over.

    `git commit` knows by inode, size and second whether `packed-refs` is another one.  Where inodes
    are used again, as on ext4, two packings bring it back to the one that it has read, and it takes
    back what came between, with or without us.  Its reflog line then starts from an old value.
    """
    count, stop = 40, tmp_path / "stop"
    commands = [[sys.executable, "-c", WRITER, str(path), str(count), f"w{n}"] for n in (1, 2)]
    commands.append(["sh", "-c", COMMITS.format(n=count)])
    with ExitStack() as stack:
        packer = stack.enter_context(
            running(["sh", "-c", PACKS.format(stop=stop)], cwd=path, stderr=subprocess.DEVNULL)
        )
        writers = [
            stack.enter_context(running(words, 200, cwd=path, stderr=subprocess.PIPE))
            for words in commands
        ]
        errors = [writer.communicate(timeout=200)[1] for writer in writers]
        stop.touch()
        packer.wait(timeout=60)
    assert [writer.returncode for writer in writers] == [0, 0, 0], errors[:2]
    lines = (path / ".git/logs/refs/heads/main").read_text().splitlines()
    moves = [(*line.split(" ")[:2], line.split("\t")[1]) for line in lines]
    assert len({new for _, new, _ in moves}) == len(moves) == 3 * count + 1
    chain: list[str] = []
    for old, new, message in moves:
        if chain and old != chain[-1]:
            assert message.startswith("commit: git "), f"{new} passed over {chain[-1]}"
            del chain[chain.index(old) + 1 :]
        chain.append(new)
    assert git("log", "--reverse", "--format=%H", "main", cwd=path).split("\n") == chain
    git("fsck", "--strict", cwd=path)
    assert rest(path) == []
