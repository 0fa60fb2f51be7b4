"""Who may read what patchq makes: umask and `core.sharedRepository` say it, the queue's directories
and `queue.group`; a secret that was refused is nobody's."""

from __future__ import annotations

import grp
import os
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pygit2
import pytest
from pygit2.enums import ConfigLevel

from patchq.cli import main
from tests.helpers.command import block, drop, patchq, report
from tests.helpers.ending import in_child
from tests.helpers.gitrepo import commit_files, git, write_config

EDIT, CREATE = block("a.txt", "one\n", "ONE\n"), block("dir/new.txt", "", "new\n")
SECRET = block("key.txt", "", "ghp_" + "a1B2c3D4e5F6" * 3 + "\n")
NOBODY = 65534
FREE_GROUP = 64321


def make(tmp_path: Path, umask: int, shared: str) -> Path:
    """A repository that git made so, with a queue and a few verdicts of patchq's."""
    repo, before = tmp_path / "repo", os.umask(umask)
    try:
        git("init", "-q", *([f"--shared={shared}"] if shared else []), str(repo), cwd=tmp_path)
        commit_files(repo, {"a.txt": "one\n"})
        (repo / ".git/info/exclude").write_text("/.patchq/\n/.patchq.yaml\n")
        work(repo, umask)
    finally:
        os.umask(before)
    return repo


def work(repo: Path, umask: int, **more: str) -> None:
    patchq("init", cwd=repo, umask=umask)
    write_config(repo, "version: 1\nmode: auto\n" + more.get("text", ""))
    drop(repo / ".patchq", {"good.md": EDIT, "new.md": CREATE, "bad.md": EDIT, "secret.md": SECRET})
    patchq("run", cwd=repo, code=1, umask=umask)
    states = {id: report(repo / ".patchq", id)["state"] for id in ("good", "new", "secret")}
    assert states == {"good": "applied", "new": "applied", "secret": "rejected"}


def modes(*roots: Path) -> Iterator[tuple[str, int]]:
    """Every file and directory below, but links."""
    for root in roots:
        for path in (root, *root.rglob("*")):
            if not path.is_symlink():
                yield str(path.relative_to(root.parent)), path.lstat().st_mode


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("umask", [0o022, 0o027, 0o002, 0o077], ids=oct)
def test_umask_is_honoured(tmp_path: Path, umask: int) -> None:
    repo = make(tmp_path, umask, "")
    wide = {
        name: oct(mode) for name, mode in modes(repo / ".patchq", repo / ".git") if mode & umask
    }
    assert wide == {}
    for name in ("done/good.md", "done/good.report.json", "done/good.report.md"):
        assert mode(repo / ".patchq" / name) == 0o666 & ~umask
    assert mode(repo / ".patchq/rejected/secret.md") == 0o600
    assert mode(repo / ".patchq/rejected/secret.report.json") == 0o666 & ~umask


SHARED = {"group": (0o660, 0o2770), "all": (0o664, 0o2775), "0640": (0o640, 0o2750)}
"""What git gives for it at least, or with octal digits exactly: to a file, and to a directory."""


@pytest.mark.parametrize("umask", [0o022, 0o077], ids=oct)
@pytest.mark.parametrize("shared", SHARED)
def test_shared_repositories_are_shared(tmp_path: Path, shared: str, umask: int) -> None:
    repo = make(tmp_path, umask, shared)
    file, directory = SHARED[shared]
    narrow, wide = {}, {}
    for name, found in modes(repo / ".patchq", repo / ".git"):
        parts, wanted = name.split("/"), directory if stat.S_ISDIR(found) else file
        if name == ".patchq" or set(parts) & {"hooks", "info", "objects", "secret.md"}:
            wanted = 0 if "objects" not in parts else wanted & 0o2555
            if "secret.md" in parts or (parts[0] == ".git" and "objects" not in parts):
                continue
        if "/store." in name:
            wanted &= 0o660  # it holds what was refused for a secret
        if len(parts) == 2 and parts[0] == ".git":
            continue  # git's own
        if wanted & ~found:
            narrow[name] = oct(found)
        if shared == "0640" and found & 0o027:
            wide[name] = oct(found)
    assert (narrow, wide) == ({}, {})
    assert mode(repo / ".patchq/rejected/secret.md") == file & 0o660
    git("fsck", "--strict", "--no-dangling", cwd=repo)


def test_directories_that_give_their_group_say_who_reads(tmp_path: Path) -> None:
    repo = make(tmp_path, 0o022, "")
    for name in ("inbox", "active", "done", "rejected"):
        (repo / ".patchq" / name).chmod(0o2770)
    drop(repo / ".patchq", {"more.md": block("a.txt", "ONE\n", "1\n"), "again.md": SECRET})
    patchq("run", cwd=repo, code=1, umask=0o077)
    for name in ("done/more.md", "done/more.report.json", "rejected/again.report.md"):
        assert mode(repo / ".patchq" / name) == 0o660
    assert mode(repo / ".patchq/rejected/again.md") == 0o660


@pytest.fixture
def others() -> Iterator[Path]:
    """A directory to which other users can come, if only root can tell whether."""
    if os.geteuid():
        pytest.skip("only root can be somebody else")
    place = Path(tempfile.mkdtemp(prefix="patchq-others-"))
    place.chmod(0o755)
    yield place
    shutil.rmtree(place)


def can_read(path: Path, *groups: int) -> bool:
    done = subprocess.run(
        ["cat", str(path)],
        user=NOBODY,
        group=NOBODY,
        extra_groups=groups,
        capture_output=True,
        timeout=60,
    )
    return done.returncode == 0


def test_the_configured_group_reads_and_others_do_not(others: Path) -> None:
    name, number = next((g.gr_name, g.gr_gid) for g in grp.getgrall() if 0 < g.gr_gid < NOBODY)
    repo = make(others, 0o022, "")
    text = f"queue: {{group: {name}}}\n"
    write_config(repo, f"version: 1\nmode: auto\n{text}")
    drop(repo / ".patchq", {"more.md": block("a.txt", "ONE\n", "1\n"), "again.md": SECRET})
    patchq("run", cwd=repo, code=1, umask=0o077)
    for file in ("done/more.report.json", "done/more.md", "rejected/again.report.md", "store.db"):
        place = repo / ".patchq" / file
        assert can_read(place, number), file
        assert not can_read(place), file
        assert not can_read(place, FREE_GROUP), file
    write_config(repo, "version: 1\nqueue: {group: no-such-group}\n")
    said = patchq("config", "check", cwd=repo, code=2).err
    assert "queue.group: expected a group of this machine" in said


def test_nobody_else_reads_a_secret_or_what_is_not_decided(others: Path) -> None:
    repo = make(others, 0o022, "")
    assert can_read(repo / ".patchq/done/good.md")
    assert can_read(repo / ".patchq/rejected/secret.report.md")
    assert not can_read(repo / ".patchq/rejected/secret.md")
    head = "---\ndepends_on: [later]\n---\n"
    drop(repo / ".patchq", {"held.md": head + SECRET})
    patchq("run", cwd=repo, code=None)
    (entry,) = (repo / ".patchq/active").glob("*.held.md")
    assert not can_read(entry)
    for path in (repo / ".patchq").glob("store.db*"):
        assert not can_read(path)


def run_as(user: int, repo: Path) -> int:
    """`patchq run` by a user with the group 64321 and the strictest umask; its exit code.  It is
    this process's child, as others may not read the interpreter's files."""

    def run() -> int:
        os.umask(0o077)
        if user:
            os.setgroups([FREE_GROUP])
            os.setgid(FREE_GROUP)
            os.setuid(user)
        return main(["-C", str(repo), "-q", "run"])

    return in_child(run)


def test_two_users_share_a_repository(
    others: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(others)  # `-C` moves this process, and the fixture brings it back
    git("config", "--global", "safe.directory", "*", cwd=home)
    shutil.copy(home / ".gitconfig", others)
    monkeypatch.setenv("HOME", str(others))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(others / ".gitconfig"))
    pygit2.settings.search_path[ConfigLevel.GLOBAL] = str(others)
    repo = others / "repo"
    git("init", "-q", "--shared=group", str(repo), cwd=others)
    commit_files(repo, {"a.txt": "one\n"})
    git("checkout", "-q", "-b", "elsewhere", cwd=repo)
    (repo / ".git/info/exclude").write_text("/.patchq/\n/.patchq.yaml\n")
    for path in (repo, *repo.rglob("*")):
        os.chown(path, -1, FREE_GROUP)
    write_config(repo, "version: 1\nmode: auto\ntarget: main\n")
    (repo / ".git").chmod(0o2775)
    for path in (repo / ".git").rglob("*"):
        if path.is_dir():
            path.chmod(0o2775)
    assert main(["-C", str(repo), "-q", "init"]) == 0
    drop(repo / ".patchq", {"first.md": EDIT})
    assert main(["-C", str(repo), "-q", "run"]) == 0, "and all that is needed is loaded"
    for number, run in enumerate(("theirs", "mine", "theirs again")):
        drop(repo / ".patchq", {f"{number}.md": block(f"{number}.txt", "", f"{run}\n")})
        (repo / ".patchq/inbox" / f"{number}.md").chmod(0o644)
        assert run_as(NOBODY if run.startswith("theirs") else 0, repo) == 0
        assert report(repo / ".patchq", str(number))["state"] == "applied"
    git("fsck", "--strict", "--no-dangling", cwd=repo)
