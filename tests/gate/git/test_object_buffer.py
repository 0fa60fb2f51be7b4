"""How new objects get from memory to the repository's files."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from patchq.core.model.values import FileChange
from patchq.gate.errors import DiskFault
from patchq.gate.git import object_buffer
from patchq.gate.git.objects import Identity
from patchq.gate.git.repository import Repository
from tests.helpers.gitrepo import git, make_repo

WHO = Identity("Ada", "ada@example.org", 1, 0)
FEW, MANY = 3, 40
"""Files in a commit whose objects are written one by one, and as a pack."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return make_repo(tmp_path / "repo", {"a.txt": "a\n"})


def commit(repo: Repository, files: int) -> str:
    """A commit that nothing but memory holds."""
    parent = repo.branch_tip("main")
    assert parent
    changes = [FileChange(f"d{n}/f.txt", None, b"%d\n" % n) for n in range(files)]
    return repo.write_commit(parent, changes, "More\n", WHO, WHO)[0]


def there(path: Path, oid: str) -> bool:
    done = subprocess.run(["git", "cat-file", "-e", oid], cwd=path, timeout=60)
    return done.returncode == 0


def litter(path: Path) -> list[str]:
    names = [file.name for file in (path / ".git/objects").rglob("*")]
    return [n for n in names if n.startswith(("patchq-", "tmp_", "pack_")) or n.endswith(".keep")]


@pytest.mark.parametrize("files", [FEW, MANY])
def test_failed_write_can_be_repeated(path: Path, files: int) -> None:
    repo = Repository.open(path)
    oid = commit(repo, files)

    def fail() -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(DiskFault, match="No space left"):
        repo.write_objects(fail)
    assert not there(path, oid)
    repo.write_objects()
    assert there(path, oid)
    repo.write_objects()
    assert litter(path) == []


@pytest.mark.parametrize("files", [FEW, MANY])
def test_g05_repack_takes_nothing_that_is_about_to_land(path: Path, files: int) -> None:
    repo = Repository.open(path)
    oid = commit(repo, files)
    seen = []
    repo.write_objects(lambda: seen.append(there(path, oid)))
    assert seen == [False], "they have a name only once they are durable"
    git("repack", "-a", "-d", "-q", cwd=path)
    assert there(path, oid)
    git("update-ref", "refs/heads/new", oid, cwd=path)
    repo.write_objects()
    git("repack", "-a", "-d", "-q", cwd=path)
    assert there(path, oid)
    assert litter(path) == []


KILLED = """\
import os, signal, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from tests.gate.git.test_object_buffer import commit
from patchq.gate.git.repository import Repository
repo = Repository.open(Path())
commit(repo, int(sys.argv[2]))
kill = lambda: os.kill(os.getpid(), signal.SIGKILL)
repo.write_objects(kill if sys.argv[3] == "flush" else lambda: None)
kill()
"""


@pytest.mark.parametrize("moment", ["flush", "keep"])
@pytest.mark.parametrize("files", [FEW, MANY])
def test_what_a_killed_writer_leaves_goes(path: Path, files: int, moment: str) -> None:
    words = [str(Path(__file__).parents[3]), str(files), moment]
    command = [sys.executable, "-c", KILLED, *words]
    killed = subprocess.run(command, cwd=path, capture_output=True, text=True, timeout=120)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert litter(path)
    object_buffer.clean(path / ".git/objects")
    assert litter(path) == []
    git("fsck", "--strict", cwd=path)
