"""Symbolic links in commits that are handed in: carried as git has them, where they may lead."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.gate.review.beside import TEXT, tree, with_work_tree, work
from tests.helpers.command import patchq, report
from tests.helpers.gitrepo import commit_files, git, make_repo, write_config

__all__ = ["work"]

FILES = {"a.txt": TEXT, "b.json": "{}\n", "dir/c.txt": "c\n", "dir/d.txt": "d\n", "tool.sh": "#!\n"}
LINKS = {"old": "a.txt", "dir/up": "../a.txt", "away": "/etc/x", "back": "away", "folder": "dir"}


def make_link(repo: Path, path: str, to: str | bytes) -> None:
    place = repo / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.unlink(missing_ok=True)
    os.symlink(os.fsencode(to), os.fsencode(place))


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    repo = make_repo(tmp_path / "repo", FILES)
    for path, to in LINKS.items():
        make_link(repo, path, to)
    (repo / "tool.sh").chmod(0o755)
    return with_work_tree(repo)


def handed_in(repo: Path) -> dict[str, Any]:
    patchq("submit", "--branch", "work", cwd=repo)
    patchq("run", cwd=repo, code=None)
    return report(repo / ".patchq", "work")


def do(place: Path, script: str) -> None:
    subprocess.run(["sh", "-ec", script], cwd=place, check=True, timeout=60)


CHANGES = {
    "made": "ln -s dir/c.txt new",
    "led elsewhere": "ln -sfn b.json old",
    "from a file": "ln -sf dir/c.txt a.txt; ln -sf a.txt b.json",
    "to a file": "rm old dir/up; echo a file > old; printf '\\0bytes' > dir/up",
    "with edits": "ln -s a.txt new; sed -i 's/^line 3$/LINE 3/' a.txt; git mv dir/d.txt dir/e.txt",
    "from a directory": "rm -r dir folder; ln -s a.txt dir",
    "to a directory":
        "rm folder tool.sh; mkdir -p folder tool.sh/x; echo own | tee folder/c.txt > tool.sh/x/y",
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_links_land_as_they_were_committed(repo: Path, work: Path, change: str) -> None:
    do(work, CHANGES[change])
    commit_files(work, {}, "Change links")
    make_link(repo, "theirs", "a.txt")
    commit_files(repo, {"a2.txt": "theirs\n"})
    wanted = git("merge-tree", "--write-tree", "main", "work", cwd=repo)
    told = handed_in(repo)
    assert (told["state"], told["problems"]) == ("applied", [])
    assert tree(repo, "main") == wanted
    assert git("status", "--porcelain", cwd=repo) == ""
    patchq("revert", "work", cwd=repo)
    assert tree(repo, "main") == tree(repo, "main~2")
    assert git("status", "--porcelain", cwd=repo) == ""


LEADING = {
    "absolute": ("new", "/etc/passwd", "path.outside"),
    "out": ("new", "../x", "path.outside"),
    "out and back in": ("new", "../repo/a.txt", "path.outside"),
    "out through another link": ("new", "back", "path.outside"),
    "through another link to a directory": ("new", "folder/../../x", "path.outside"),
    "into git": ("new", ".git/config", "path.denied"),
    "into git through a directory": ("dir/new", "../.git", "path.denied"),
    "into the queue": ("new", ".patchq/inbox", "path.denied"),
    "to the configuration": ("new", ".patchq.yaml", "path.denied"),
    "to a secret": ("new", ".env", "path.denied"),
    "to itself": ("new", "new", "path.invalid"),
    "nowhere it can": ("new", "dir/../new/x", "path.invalid"),
    "a drive": ("new", "C:/x", "path.outside"),
    "a backslash": ("new", "dir\\..\\..\\x", "path.invalid"),
    "a line end": ("new", "a.txt\n", "path.invalid"),
    "no text": ("new", b"\xff", "path.invalid"),
    "too long": ("new", "dir/../" * 200 + "a.txt", "path.invalid"),
    "git's own file": (".gitignore", "a.txt", "path.denied"),
    "a denied name": (".env", "a.txt", "path.denied"),
    "the queue's name": ("dir/.patchq.yaml", "c.txt", "path.denied"),
    "a secret": ("new", "AK" + "IAZ7QX3MPLW2RTN5VK", "edit.secret"),
}
LOOKED_AT = {
    "to a file": ("new", "a.txt"),
    "to nothing": ("dir/new", "node_modules/x"),
    "in the place of a file": ("a.txt", "dir/c.txt"),
}


@pytest.mark.parametrize(("path", "to", "code"), LEADING.values(), ids=LEADING)
def test_a_link_may_not_lead_everywhere(
    repo: Path, work: Path, path: str, to: str | bytes, code: str
) -> None:
    before = git("rev-parse", "main", cwd=repo)
    make_link(work, path, to)
    commit_files(work, {"a.txt": "and more\n"})
    told = handed_in(repo)
    problems = [problem["code"] for problem in told["problems"]]
    assert (told["state"], problems) == ("rejected", [code])
    assert git("rev-parse", "main", cwd=repo) == before


@pytest.mark.parametrize(("path", "to"), LOOKED_AT.values(), ids=LOOKED_AT)
def test_a_person_looks_at_a_link(repo: Path, work: Path, path: str, to: str) -> None:
    write_config(repo, "version: 1\nmode: auto\ntarget: main\n")
    commit_files(repo, {})
    make_link(work, path, to)
    commit_files(work, {})
    told = handed_in(repo)
    (problem,) = told["problems"]
    assert (told["state"], problem["code"], problem["path"]) == ("proposed", "path.review", path)
    assert problem["message"] == f"{path} would be a symbolic link to {to}"
    patchq("accept", "work", cwd=repo)
    assert os.readlink(repo / path) == to


THROUGH = {
    "an edit": "folder/c.txt\n<<<<<<< SEARCH\nc\n=======\nx\n>>>>>>> REPLACE\n",
    "the link itself": "old\n<<<<<<< DELETE\n>>>>>>> DELETE\n",
}


@pytest.mark.parametrize("text", THROUGH.values(), ids=THROUGH)
def test_no_response_writes_through_a_link(repo: Path, text: str) -> None:
    patchq("apply", "-", cwd=repo, stdin=f"---\nid: x\n---\n{text}", code=1)
    told = report(repo / ".patchq", "x")
    assert {problem["code"] for problem in told["problems"]} == {"path.not_a_file"}
    assert git("status", "--porcelain", cwd=repo) == ""


CONFLICTS = {
    "both led elsewhere": ("led elsewhere", "ln -sfn dir/c.txt old", "old"),
    "made of a file that was edited there": ("from a file", "echo more >> a.txt", "a.txt"),
    "made of a directory that has more there":
        ("from a directory", "echo theirs > dir/new.txt", "dir"),
}  # fmt: skip


@pytest.mark.parametrize(("ours", "theirs", "path"), CONFLICTS.values(), ids=CONFLICTS)
def test_both_sides_changed_a_link(
    repo: Path, work: Path, ours: str, theirs: str, path: str
) -> None:
    do(work, CHANGES[ours])
    commit_files(work, {})
    do(repo, theirs)
    tip = commit_files(repo, {})
    told = handed_in(repo)
    (problem,) = told["problems"]
    assert (problem["code"], problem["path"]) == ("conflict.base", path)
    assert problem["conflicts_with"]["commit"] == tip == git("rev-parse", "main", cwd=repo)


DIRTY = {
    "another link": "ln -sfn dir/d.txt old",
    "a staged link": "ln -sfn dir/d.txt old; git add old",
    "a directory": "rm old; mkdir old; ln -s ../a.txt old/inside",
}


def looks(repo: Path) -> tuple[str, str]:
    place = repo / "old"
    target = os.readlink(place) if place.is_symlink() else str(sorted(place.iterdir()))
    return target, git("status", "--porcelain", cwd=repo)


@pytest.mark.parametrize("dirty", DIRTY.values(), ids=DIRTY)
def test_a_link_that_somebody_changed_in_the_work_tree_stays(
    repo: Path, work: Path, dirty: str
) -> None:
    do(work, CHANGES["led elsewhere"])
    commit_files(work, {})
    do(repo, dirty)
    before = looks(repo)
    told = handed_in(repo)
    assert told["state"] == "proposed"
    assert {problem["code"] for problem in told["problems"]} == {"worktree.dirty"}
    assert "worktree.dirty" in patchq("accept", "work", cwd=repo, code=1).err
    assert looks(repo) == before
