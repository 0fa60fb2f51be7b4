from __future__ import annotations

import os
import shutil
import subprocess
import sys
from errno import EIO
from pathlib import Path
from typing import Any

import pytest

from patchq.core.model.values import FileChange
from patchq.gate.errors import RepositoryFault
from patchq.gate.git import refs
from patchq.gate.git.branches import Branches, BranchMove
from patchq.gate.git.branches.worktree import Follow, recover
from patchq.gate.git.checkout import Checkout, checkouts
from patchq.gate.git.files import LockFile
from patchq.gate.git.objects import Identity
from patchq.gate.git.repository import Repository
from tests.helpers.dying import deaths, die_at
from tests.helpers.gitrepo import commit_files, git, make_repo, write_files

WHO = Identity("Ada Tester", "ada@example.org", 1_700_000_000, 0)
FILES = {
    "README": "read me\n" * 50,
    "bin/run": "#!/bin/sh\n",
    "old/only.txt": "gone soon\n",
    "src/a.py": "a = 1\n",
    "src/name.py": "moves\n",
    "swap": "a file, then a directory\n",
    ".gitignore": "*.log\n",
    "unrelated": "stays\n",
    "plain": "a file, then a link\n",
    "below/a.py": "a directory, then a link\n",
}
LINKS = {"led": "README", "ended": "nowhere", "turned": "src/a.py", "above": "src"}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = make_repo(tmp_path / "work", FILES)
    for name, to in LINKS.items():
        (path / name).symlink_to(to)
    git("add", "-A", cwd=path)
    git("commit", "-q", "--amend", "--no-edit", cwd=path)
    return path


@pytest.fixture
def old(path: Path) -> str:
    return git("rev-parse", "HEAD", cwd=path)


@pytest.fixture
def new(path: Path, old: str) -> str:
    """A commit that does everything a batch can do."""
    repo = Repository.open(path)
    before = {name: text.encode() for name, text in FILES.items()}
    changes = [
        FileChange("README", before["README"], b"read more\n" * 50),
        FileChange("bin/run", before["bin/run"], before["bin/run"], executable=True),
        FileChange("old/only.txt", before["old/only.txt"], None),
        FileChange("new/dir/n.py", None, b"n = 1\n"),
        FileChange("src/named.py", before["src/name.py"], b"moved\n", renamed_from="src/name.py"),
        FileChange("swap", before["swap"], None),
        FileChange("swap/inner", None, b"now below\n"),
        FileChange("made/link", None, b"../src/a.py", link=True),
        FileChange("led", b"README", b"src/a.py", link=True),
        FileChange("ended", b"nowhere", None, link=True),
        FileChange("turned", b"src/a.py", b"a link, then a file\n", was_link=True),
        FileChange("plain", before["plain"], b"src/a.py", link=True, was_link=False),
        FileChange("below/a.py", before["below/a.py"], None),
        FileChange("below", None, b"src", link=True),
        FileChange("above", b"src", None, link=True),
        FileChange("above/a.py", None, b"a link to a directory, then one\n"),
    ]
    return commit(repo, old, *changes)


def commit(repo: Repository, parent: str, *changes: FileChange) -> str:
    made, _ = repo.write_commit(parent, changes, "m", WHO, WHO)
    repo.write_objects()
    return made


def only(path: Path, branch: str = "main") -> Checkout:
    (checkout,) = checkouts(Repository.open(path), branch)
    return checkout


def follow(path: Path, old: str, new: str) -> Follow:
    return Follow(only(path), old, new, cut=lambda: True)


def move(path: Path, old: str, new: str, step: Follow | None = None) -> None:
    first = step.swap if step else lambda: None
    assert refs.move(Repository.open(path), "refs/heads/main", old, new, "m", WHO, first=first)


def land(path: Path, old: str, new: str) -> None:
    step = follow(path, old, new)
    assert step.prepare() == []
    move(path, old, new, step)
    step.commit()


def files(path: Path) -> dict[str, tuple[bytes, bool]]:
    """Everything in the work tree, empty directories included; links by where they lead."""

    def content(file: Path) -> tuple[bytes, bool]:
        if file.is_symlink():
            return b"-> " + os.readlink(os.fsencode(file)), False
        return (file.read_bytes(), os.access(file, os.X_OK)) if file.is_file() else (b"", False)

    return {
        str(file.relative_to(path)): content(file)
        for file in path.rglob("*")
        if ".git" not in file.parts
        and (file.is_symlink() or file.is_file() or not any(file.iterdir()))
    }


def rest(path: Path) -> list[str]:
    gitdir = path / ".git"
    return [file.name for file in (*gitdir.glob("patchq-*"), *gitdir.rglob("*.lock"))]


def clone_of(path: Path, commit: str, tmp_path: Path) -> dict[str, tuple[bytes, bool]]:
    """What git itself checks out for the commit."""
    place = tmp_path / f"expected-{commit[:8]}"
    git("worktree", "add", "-q", "--detach", str(place), commit, cwd=path)
    found = files(place)
    git("worktree", "remove", "--force", str(place), cwd=path)
    return found


def test_a_change_as_young_as_the_index_is_not_hidden(path: Path, old: str, new: str) -> None:
    """Same size, same times: git looks closer only because the index is no younger."""
    git("config", "core.trustctime", "false", cwd=path)
    instant = (1_700_000_000, 1_700_000_000)
    os.utime(path / "unrelated", instant)
    git("update-index", "--refresh", cwd=path)
    write_files(path, {"unrelated": "STAYS\n"})
    os.utime(path / "unrelated", instant)
    os.utime(path / ".git/index", instant)
    land(path, old, new)
    assert git("status", "--porcelain", cwd=path) == " M unrelated"


def test_line_ends_are_converted_as_git_does(path: Path) -> None:
    commit_files(path, {".gitattributes": "* text=auto eol=crlf\n"})
    git("rm", "-q", "--cached", "-r", ".", cwd=path)
    git("reset", "-q", "--hard", cwd=path)
    old = git("rev-parse", "HEAD", cwd=path)
    assert (path / "src/a.py").read_bytes() == b"a = 1\r\n"
    new = commit(Repository.open(path), old, FileChange("src/a.py", b"a = 1\n", b"a = 2\n"))
    step = follow(path, old, new)
    assert step.prepare() == []
    assert (path / "src/a.py").read_bytes() == b"a = 2\r\n"
    step.rollback()
    assert (path / "src/a.py").read_bytes() == b"a = 1\r\n"
    assert git("status", "--porcelain", cwd=path) == ""
    with (path / "src/a.py").open("ab") as file:
        file.write(b"b = 1\r\n")
    assert follow(path, old, new).prepare() == ["src/a.py"]


def test_a_work_tree_that_is_not_clean_is_left_alone(path: Path, old: str, new: str) -> None:
    write_files(path, {"README": "mine\n"})
    git("add", "README", cwd=path)
    (path / "below/mine").symlink_to("../src")
    before = files(path), git("status", "--porcelain", "--ignored", cwd=path)
    assert follow(path, old, new).prepare() == ["README", "below"]
    assert (files(path), git("status", "--porcelain", "--ignored", cwd=path)) == before
    assert rest(path) == []


ALREADY = {
    "edited": "sed -i 's/read me/read more/' README",
    "untracked": "mkdir -p new/dir && echo 'n = 1' >new/dir/n.py",
    "gone": "rm -r old",
    "staged links": "mkdir made && ln -s ../src/a.py made/link && ln -sf src/a.py led && "
    "ln -sf src/a.py plain && rm ended && git add -A",
}
"""What a person, or a work tree that is handed in, has done of the batch already."""


@pytest.mark.parametrize("commands", ALREADY.values(), ids=ALREADY)
def test_what_has_the_result_already_is_not_in_the_way(
    path: Path, tmp_path: Path, old: str, new: str, commands: str
) -> None:
    expected = clone_of(path, new, tmp_path)
    subprocess.run(["sh", "-ec", commands], cwd=path, timeout=60, check=True)
    before = files(path), git("status", "--porcelain", "--ignored", cwd=path)
    step = follow(path, old, new)
    assert step.prepare() == []
    assert files(path) == expected
    step.rollback()
    assert (files(path), git("status", "--porcelain", "--ignored", cwd=path)) == before
    land(path, old, new)
    assert files(path) == expected
    assert git("status", "--porcelain", "--ignored", cwd=path) == ""
    assert rest(path) == []


def test_a_change_at_the_last_moment_is_kept(
    path: Path, old: str, new: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = Follow._switch

    def late(self: Follow) -> None:
        write_files(path, {"README": "mine\n"})
        whole(self)

    monkeypatch.setattr(Follow, "_switch", late)
    before = {name: what for name, what in files(path).items() if name != "README"}
    assert follow(path, old, new).prepare() == ["README"]
    after = files(path)
    assert after.pop("README") == (b"mine\n", False)
    assert after == before
    assert git("status", "--porcelain", cwd=path) == " M README"
    assert rest(path) == []


HALF_WAY = """
cd "$work" && rm swap old/only.txt && printf "read mo" > README && : > "$GIT_INDEX_FILE.lock"
kill -9 $$
"""


@pytest.mark.parametrize(
    ("scripts", "says"),
    [
        ({"read-tree": "exit 128"}, "read-tree failed"),
        ({"read-tree": HALF_WAY}, "read-tree failed"),
        ({"read-tree": HALF_WAY, "update-index": "exit 1"}, "update-index"),
    ],
    ids=["fails", "killed half-way", "cannot be undone now"],
)
def test_when_git_fails_everything_is_as_it_was(
    path: Path, old: str, new: str, monkeypatch: pytest.MonkeyPatch, scripts: Any, says: str
) -> None:
    before = files(path)
    cases = [f'case " $* " in *" {verb} "*) {text};; esac\n' for verb, text in scripts.items()]
    wrapper = f'#!/bin/sh\nwork={path}\n{"".join(cases)}exec {shutil.which("git")} "$@"\n'
    write_files(path.parent, {"bin/git": wrapper})
    (path.parent / "bin/git").chmod(0o755)
    with monkeypatch.context() as patch:
        patch.setenv("PATH", f"{path.parent}/bin:{os.environ['PATH']}")
        with pytest.raises(RepositoryFault, match=says):
            follow(path, old, new).prepare()
    left = "update-index" in scripts
    assert (path / ".git/index.lock").exists() == left
    assert recover(Repository.open(path)) == [path] * left
    assert files(path) == before
    assert git("status", "--porcelain", cwd=path) == ""
    assert rest(path) == []


def test_death_at_every_step_of_a_landing(path: Path, tmp_path: Path, old: str, new: str) -> None:
    expected = {commit: clone_of(path, commit, tmp_path) for commit in (old, new)}
    ends = []
    for _ in deaths(lambda: land(path, old, new)):
        refs.clean(path / ".git")
        recover(Repository.open(path))
        tip = git("rev-parse", "main", cwd=path)
        assert files(path) == expected[tip]
        assert git("status", "--porcelain", "--ignored", cwd=path) == ""
        assert rest(path) == []
        ends.append(tip)
        git("reset", "-q", "--hard", old, cwd=path)
    assert set(ends) == {old, new}
    assert git("rev-parse", "main", cwd=path) == new


@pytest.mark.parametrize("moved", [False, True], ids=["undone", "finished"])
@pytest.mark.parametrize("locked", [True, False], ids=["locked", "lock removed by hand"])
def test_a_half_written_work_tree_is_settled_as_the_ref_says(
    path: Path, tmp_path: Path, old: str, new: str, moved: bool, locked: bool
) -> None:
    tip = new if moved else old
    expected = clone_of(path, tip, tmp_path)
    assert die_before_read_tree(path, old, new)
    (path / "bin/run").chmod(0o755)
    (path / "old/only.txt").unlink()
    (path / "swap").unlink()
    write_files(path, {"README": "read mo", "swap/inner": "now", "new/dir/n.py": ""})
    if not locked:
        (path / ".git/index.lock").unlink()
    if moved:
        move(path, old, new)
    assert recover(Repository.open(path)) == [path]
    assert files(path) == expected
    assert git("status", "--porcelain", "--ignored", cwd=path) == ""
    assert rest(path) == []


def die_before_read_tree(path: Path, old: str, new: str) -> bool:
    def prepare() -> None:
        def watch(event: str, args: tuple[object, ...]) -> None:
            if event == "subprocess.Popen" and "read-tree" in str(args[1]):
                os._exit(9)

        sys.addaudithook(watch)
        follow(path, old, new).prepare()

    return die_at(-1, prepare)


def test_recovery_keeps_what_the_person_wrote_since(path: Path, old: str, new: str) -> None:
    assert die_before_read_tree(path, old, new)
    write_files(path, {"README": "mine\n", "new/dir/n.py": "mine, too\n"})
    move(path, old, new)
    recover(Repository.open(path))
    assert (path / "README").read_text() == "mine\n"
    assert (path / "new/dir/n.py").read_text() == "mine, too\n"
    assert (path / "swap/inner").read_text() == "now below\n"
    assert git("diff", "--name-only", cwd=path).split("\n") == ["README", "new/dir/n.py"]
    assert git("diff", "--name-only", "--cached", cwd=path) == ""


def test_an_interrupt_once_the_branch_moved_is_left_to_recovery(
    path: Path, old: str, new: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish = LockFile.publish

    def published(lock: LockFile, to: Path) -> None:
        publish(lock, to)
        if to.name == "main":
            raise KeyboardInterrupt

    def interrupted() -> None:
        with pytest.raises(KeyboardInterrupt):
            Branches(Repository.open(path)).land([BranchMove("main", old, new, "m", WHO)])
        os._exit(9)

    monkeypatch.setattr(LockFile, "publish", published)
    assert die_at(-1, interrupted)
    recover(Repository.open(path))
    assert git("rev-parse", "main", cwd=path) == new
    assert git("status", "--porcelain", cwd=path) == ""
    assert rest(path) == []


def test_a_file_of_patchq_that_cannot_be_removed_undoes_no_landing(
    path: Path, old: str, new: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    unlink, failed = Path.unlink, list[str]()

    def failing(place: Path, missing_ok: bool = False) -> None:
        if place.suffix == ".ref":
            failed.append(place.name)
            raise OSError(EIO, "Input/output error", str(place))
        unlink(place, missing_ok)

    monkeypatch.setattr(Path, "unlink", failing)
    (moved,) = Branches(Repository.open(path)).land([BranchMove("main", old, new, "m", WHO)])
    assert failed
    assert moved.made
    assert git("rev-parse", "main", cwd=path) == new
    assert git("status", "--porcelain", cwd=path) == ""


@pytest.mark.parametrize(("many", "seconds"), [(1, 1.0), (256, 0.5)])
def test_s03_a_checked_out_branch_rests_less_behind_many(
    path: Path, old: str, monkeypatch: pytest.MonkeyPatch, many: int, seconds: float
) -> None:
    monkeypatch.setattr("patchq.gate.git.branches.monotonic", lambda: 7.0)  # no time passes
    repo, tips = Repository.open(path), [old]
    for number in range(many):
        change = FileChange("new.txt", b"%d\n" % (number - 1) if number else None, b"%d\n" % number)
        tips.append(repo.write_commit(tips[-1], [change], "m\n", WHO, WHO)[0])
    repo.write_objects()
    branches = Branches(repo)
    through = [(tip, "m") for tip in tips[1:-1]]
    (moved,) = branches.land([BranchMove("main", old, tips[-1], "m", WHO, through=through)])
    assert moved.made
    assert branches.rest() == pytest.approx(seconds, abs=0.01)
