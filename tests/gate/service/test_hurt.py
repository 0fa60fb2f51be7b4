"""A store that is lost, damaged, locked or of another version: a clear error, or made again."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from tests.helpers.command import block, drop, patchq, report
from tests.helpers.gitrepo import make_repo
from tests.helpers.stores import sql


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A repository with a landed batch, a proposal and a refusal."""
    repo = make_repo(tmp_path / "repo", {"a.txt": "a\n", "b.txt": "b\n"})
    patchq("init", cwd=repo)
    (repo / ".patchq.yaml").unlink()
    drop(repo / ".patchq", {"landed.md": block("a.txt", "a\n", "A\n")})
    patchq("run", cwd=repo)
    patchq("accept", "landed", cwd=repo)
    drop(repo / ".patchq", {"waits.md": block("b.txt", "b\n", "B\n"), "bad.md": "no edit"})
    patchq("run", cwd=repo, code=1)
    return repo


def states(repo: Path) -> dict[str, str]:
    return {
        id: patchq("--json", "status", id, cwd=repo).json()["state"]
        for id in ("landed", "waits", "bad")
    }


GOOD = {"landed": "accepted", "waits": "proposed", "bad": "rejected"}


def remove(repo: Path) -> None:
    for path in (repo / ".patchq").glob("store.db*"):
        path.unlink()


def test_removed_store_is_made_again_before_work(repo: Path) -> None:
    remove(repo)
    drop(repo / ".patchq", {"landed.md": block("a.txt", "a\n", "A\n"), "bad.md": "another"})
    patchq("run", cwd=repo, code=1)
    assert states(repo) == GOOD
    assert report(repo / ".patchq", "landed-2")["duplicate_of"] == "landed"
    assert report(repo / ".patchq", "bad-2")["state"] == "rejected"
    assert patchq("fsck", cwd=repo).code == 0


def test_damaged_store_is_told_and_repaired(repo: Path) -> None:
    path = repo / ".patchq/store.db"
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    failed = patchq("run", cwd=repo, code=3)
    assert "patchq fsck --repair" in failed.err
    (damage,) = patchq("--json", "fsck", "--repair", cwd=repo).json()["damage"]
    assert damage["kind"] == "store.broken"
    assert list((repo / ".patchq/damaged").glob("*/store.db*"))
    assert states(repo) == GOOD
    assert patchq("fsck", cwd=repo).code == 0


def test_store_of_another_version_is_refused_with_the_cure(repo: Path) -> None:
    sql(repo / ".patchq", "pragma user_version = 99")
    failed = patchq("status", cwd=repo, code=2)
    assert "version 99" in failed.err
    assert "patchq fsck --repair" in failed.err
    patchq("fsck", "--repair", cwd=repo)
    assert states(repo) == GOOD


def test_locked_store_waits_and_then_says_so(repo: Path) -> None:
    drop(repo / ".patchq", {"new.md": block("new.txt", "", "new\n")})
    with closing(sqlite3.connect(repo / ".patchq/store.db", isolation_level=None)) as other:
        other.execute("begin immediate")
        assert "locked" in patchq("run", cwd=repo, code=3).err
        other.execute("rollback")
    patchq("run", cwd=repo)
    assert report(repo / ".patchq", "new")["state"] == "proposed"


def test_backup_can_be_put_back(repo: Path, tmp_path: Path) -> None:
    patchq("backup", str(tmp_path / "copy"), cwd=repo)
    assert "is there already" in patchq("backup", str(tmp_path / "copy"), cwd=repo, code=2).err
    told = patchq("backup", str(tmp_path / "nowhere/copy"), cwd=repo, code=2).err
    assert f"{tmp_path}/nowhere/copy cannot be written: No such file" in told
    remove(repo)
    shutil.copy(tmp_path / "copy", repo / ".patchq/store.db")
    assert states(repo) == GOOD
    assert patchq("fsck", cwd=repo).code == 0


def test_readers_work_where_nothing_can_be_written(repo: Path) -> None:
    mount = 'mount --bind "$1" "$1" && mount -o remount,ro,bind "$1" && cd "$1"'
    script = f'{mount} && exec "$2" -m patchq log'
    words = ["unshare", "-rm", "sh", "-c", script, "sh", str(repo), sys.executable]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
    if "unshare" in done.stderr or "mount:" in done.stderr:
        pytest.fail(f"this machine cannot mount: {done.stderr}")
    assert done.returncode == 0, done.stderr
    assert "landed" in done.stdout
