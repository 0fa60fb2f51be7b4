"""What a power cut, a full machine or `git repack -ad` may take, and what may not come of it."""

from __future__ import annotations

import errno
import os
from hashlib import sha256
from pathlib import Path

import pytest

from patchq.core.model.values import FileChange, Outcome, Source
from patchq.gate.errors import disk_fault
from patchq.gate.git.objects import Identity
from patchq.gate.git.repository import Repository
from patchq.gate.queue.engine import StoreQueue
from patchq.gate.queue.layout import create
from patchq.gate.report.document import to_json
from tests.helpers.gitrepo import git, make_repo

WHO = Identity("Ada", "ada@example.org", 1, 0)
MANY = 40
BODY = b"what was sent"


@pytest.fixture
def queue(tmp_path: Path) -> StoreQueue:
    root = tmp_path / "queue"
    create(root)
    (root / "inbox" / "x.tmp").write_bytes(BODY)
    os.link(root / "inbox" / "x.tmp", root / "inbox" / "x.md")
    return StoreQueue(root, settle_seconds=0)


def test_a_copy_that_an_intended_report_speaks_of_is_kept(queue: StoreQueue) -> None:
    """A writer may change the file that it dropped, but not what was decided on."""
    queue.acquire()
    (claim,) = queue.claim(9)
    source = Source("x.md", sha256(BODY).hexdigest(), len(BODY))
    queue.intend(claim, to_json(Outcome("x", "applied", source, "auto")))
    (queue.root / "inbox" / "x.tmp").write_bytes(b"changed since")
    queue.close()
    after = StoreQueue(queue.root)
    after.acquire()
    (found,) = after.recover()
    after.close()
    assert found.data == BODY


def test_a_batch_is_known_by_its_bytes_before_its_report_can_be_seen(queue: StoreQueue) -> None:
    queue.acquire()
    (claim,) = queue.claim(9)
    digest = sha256(BODY).hexdigest()
    told = to_json(Outcome("x", "applied", Source("x.md", digest, len(BODY)), "auto"))
    queue.intend(claim, told)
    assert list(queue.by_source(digest)) == ["x"]
    queue.publish(claim, told, "page")
    assert list(queue.by_source(digest)) == ["x"]
    queue.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return make_repo(tmp_path / "repo", {"a.txt": "a\n"})


def commit(repo: Repository, *texts: bytes) -> str:
    parent = repo.branch_tip("main")
    assert parent
    changes = [FileChange(f"d{n}.txt", None, text) for n, text in enumerate(texts)]
    return repo.write_commit(parent, changes, "More\n", WHO, WHO)[0]


def test_an_object_that_was_there_already_may_go_before_its_commit_lands(path: Path) -> None:
    oid = git("hash-object", "-w", "--stdin", cwd=path, stdin="nobody's\n")
    repo = Repository.open(path)
    new = commit(repo, b"nobody's\n")
    (path / ".git/objects" / oid[:2] / oid[2:]).unlink()
    repo.write_objects()
    git("update-ref", "refs/heads/new", new, cwd=path)
    git("fsck", "--strict", cwd=path)
    assert git("cat-file", "blob", oid, cwd=path) == "nobody's"


def test_who_closes_a_repository_leaves_nothing_of_their_own(path: Path) -> None:
    repo = Repository.open(path)
    commit(repo, *(b"%d\n" % number for number in range(MANY)))
    repo.write_objects()
    repo.close()
    names = [file.name for file in (path / ".git/objects").rglob("*")]
    assert [name for name in names if name.startswith("patchq-") or name.endswith(".keep")] == []


@pytest.mark.parametrize(
    ("error", "of_the_machine"),
    [
        (OSError(errno.ENOSPC, "No space left on device", "/q"), True),
        (OSError(errno.EMFILE, "Too many open files"), True),
        (OSError(errno.EIO, "Input/output error", b"/q"), True),
        (OSError("could not open '/q': Too many open files"), True),
        (OSError(errno.ENAMETOOLONG, "File name too long", "x"), False),
        (FileNotFoundError(errno.ENOENT, "No such file or directory"), False),
    ],
)
def test_what_no_response_can_cause_is_no_verdict_on_one(
    error: OSError, of_the_machine: bool
) -> None:
    fault = disk_fault(error)
    assert (fault is not None) == of_the_machine
    if fault is not None:
        assert fault.message
        assert fault.hint
