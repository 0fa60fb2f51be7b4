"""What only a queue of files can do wrong: hostile entries, torn writes, processes that die."""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from patchq.gate.errors import DiskFault, QueueLocked
from patchq.gate.queue.engine import StoreQueue
from patchq.gate.queue.inbox import Inbox
from patchq.gate.queue.lock import activities, lock_owner
from patchq.gate.queue.spool import Folder, create
from tests.helpers.claims import finish
from tests.helpers.ending import line_of, running, until

LIMIT = 1000
SETTLE = 0.15


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "queue"
    create(root)
    create(root)
    return root


@pytest.fixture
def queue(root: Path) -> Iterator[StoreQueue]:
    queue = StoreQueue(root, settle_seconds=SETTLE, response_bytes=LIMIT)
    queue.acquire()
    yield queue
    queue.close()


def drop(root: Path, name: str, data: bytes = b"text") -> Path:
    path = root / "inbox" / name
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("name", [".hidden", "x.tmp"])
def test_what_is_not_for_the_queue_stays(root: Path, queue: StoreQueue, name: str) -> None:
    path = drop(root, name)
    assert queue.claim(9) == []
    assert (queue.inbox.depth(), queue.inbox.unsettled()) == (0, None)
    assert path.read_bytes() == b"text"


LONG = "x" * 300 + "." + "y" * 39


@pytest.mark.parametrize("name", [".hidden.md", "x.tmp", "a/b.md", "x" * 300 + ".md", LONG, ""])
def test_whatever_is_submitted_is_looked_at(root: Path, queue: StoreQueue, name: str) -> None:
    names = {queue.submit(b"%d" % number, name) for number in range(12)}
    assert len(names) == 12
    assert len(queue.claim(20)) == 12
    assert os.listdir(root / "inbox") == []


def test_an_entry_that_cannot_be_moved_keeps_none_from_its_turn(
    root: Path, queue: StoreQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    for age, name in enumerate(("c.md", "b.md", "a.md")):
        os.utime(drop(root, name), (1_000_000_000 - age,) * 2)
    move = Folder.move

    def moved(folder: Folder, name: str, *to: Any) -> bool:
        return name != "a.md" and move(folder, name, *to)

    monkeypatch.setattr(Folder, "move", moved)
    assert [claim.source.name for claim in queue.claim(1)] == ["b.md"]


def test_f15_names_of_an_inbox_that_goes_away_are_passed_over(
    root: Path, queue: StoreQueue
) -> None:
    for name in ("1.md", "2.md"):
        drop(root, name)
    inbox = Inbox(Folder(root / "inbox", lasting=False), 0.0)
    names = inbox.complete()
    assert next(names) == "1.md"
    shutil.rmtree(root / "inbox")
    assert not inbox.folder.move("1.md", queue.outbox.active, "1.md")
    assert [*names] == []
    with pytest.raises(FileNotFoundError):  # it is the place to go to that is not there
        queue.outbox.active.move("1.md", Folder(root / "none", lasting=False), "1.md")


def test_f01_a_file_that_is_being_written_waits(root: Path, queue: StoreQueue) -> None:
    with (root / "inbox/x.md").open("wb", buffering=0) as file:
        file.write(b"half")
        time.sleep(SETTLE + 0.05)
        assert queue.claim(9) == []
        assert queue.inbox.depth() == 1
        assert 0 < (queue.inbox.unsettled() or 0) <= SETTLE
        file.write(b" and half")
    [claim] = queue.claim(9)
    assert claim.data == b"half and half"
    assert queue.inbox.unsettled() is None


def test_a_writer_that_comes_while_we_look_does_not_kill_us(root: Path) -> None:
    path = drop(root, "x.md")
    look = (
        "import os, sys\n"
        "from patchq.gate.git.files import being_written\n"
        "fd = os.open(sys.argv[1], os.O_RDONLY)\n"
        "for _ in range(20_000): being_written(fd)\n"
    )
    with running([sys.executable, "-c", look, str(path)]) as child:
        while child.poll() is None:  # which is ended when it takes too long
            with contextlib.suppress(BlockingIOError):
                os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
    assert child.returncode == 0


def test_where_leases_cannot_be_had_a_file_must_be_quiet(
    root: Path, queue: StoreQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("patchq.gate.git.files.being_written", lambda fd: None)
    path = drop(root, "x.md")
    for _ in range(4):
        assert queue.claim(9) == []
        time.sleep(SETTLE / 2)
        with path.open("ab") as file:
            file.write(b"x")
    assert 0 < (queue.inbox.unsettled() or 0) <= SETTLE
    assert [claim.data for claim in until(lambda: queue.claim(9))] == [b"textxxxx"]


def test_f02_a_writer_that_goes_on_after_the_claim_changes_nothing(
    root: Path, queue: StoreQueue
) -> None:
    path = drop(root, "x.md")
    [claim] = queue.claim(1)
    [inside] = (root / "active").iterdir()
    assert not path.exists()
    with inside.open("ab") as late:
        late.write(b" more")
        finish(queue, claim, "x")
        late.write(b" and more")
    assert (root / "done/x.md").read_bytes() == b"text"


def test_what_is_no_response_is_refused_unread_and_kept(root: Path) -> None:
    place = root / "inbox/x.md"
    place.mkdir()
    (place / "inner").write_text("kept")
    dead = StoreQueue(root)
    [claim] = dead.claim(9)
    dead.close()
    queue = StoreQueue(root)
    [back] = queue.recover()
    assert back == claim
    assert claim.problem is not None
    assert (claim.data, claim.problem.code) == (b"", "response.not_text")
    finish(queue, back, "x", "rejected")
    assert queue.body("x") is None
    queue.close()
    assert os.listdir(root / "active") == []
    assert (root / "rejected/x.md/inner").read_text() == "kept"


def test_f09_a_file_that_changes_without_end_is_refused(
    root: Path, queue: StoreQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    drop(root, "x.md")
    tries = []

    def read(fd: int, size: int) -> bytes:
        tries.append(fd)
        data = os.read(fd, size)
        time.sleep(0.02)  # a clock tick, so that the times of the file change as well
        with next((root / "active").glob("*.x.md")).open("ab") as file:
            file.write(b"x")
        return data

    monkeypatch.setattr("patchq.gate.queue.inbox.read_up_to", read)
    [claim] = queue.claim(1)
    assert claim.problem is not None
    assert (claim.data, claim.problem.code) == (b"", "response.incomplete")
    assert len(tries) == 5


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can stop being root")
def test_a_file_of_others_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    root = tmp_path / "queue"
    create(root)
    for path in (*root.iterdir(), root):
        os.chown(path, 65534, -1)
    drop(root, "x.md").chmod(0)
    for parent in tmp_path.parents:
        if parent.stat().st_uid == 0 and parent.stat().st_mode & 0o077 == 0:
            parent.chmod(0o711)
    tmp_path.chmod(0o711)
    os.seteuid(65534)
    try:
        queue = StoreQueue(root, settle_seconds=SETTLE)
        assert queue.claim(1) == []
        [claim] = until(lambda: queue.claim(9))
        assert claim.problem is not None
        assert claim.problem.code == "response.incomplete"
        finish(queue, claim, "x", "rejected")
        queue.close()
    finally:
        os.seteuid(0)
    assert (root / "rejected/x.md").read_bytes() == b"text"


def test_a_link_in_the_place_of_a_report_is_replaced_not_followed(
    root: Path, queue: StoreQueue
) -> None:
    victim = root.parent / "victim"
    victim.write_text("mine")
    for name in ("x.report.json", "x.report.md", "x.md"):
        (root / "done" / name).symlink_to(victim)
    drop(root, "x.md")
    finish(queue, queue.claim(1)[0], "x")
    assert victim.read_text() == "mine"
    assert not (root / "done/x.report.json").is_symlink()


ACQUIRE = """
import sys; from pathlib import Path
from patchq.gate.queue.engine import StoreQueue
queue = StoreQueue(Path(sys.argv[1])); queue.acquire()
"""
_MOUNTS = ["unshare", "-rm"]


@pytest.mark.skipif(
    subprocess.run([*_MOUNTS, "true"], capture_output=True, timeout=60).returncode != 0,
    reason="needs mount namespaces",
)
def test_f17_directories_on_different_file_systems_are_refused(root: Path) -> None:
    script = 'mount -t tmpfs none "$1/done" && exec "$2" -c "$3" "$1"'
    words = [*_MOUNTS, "sh", "-c", script, "sh", str(root), sys.executable, ACQUIRE]
    told = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert "UsageError: " in told.stderr
    assert "different file systems" in told.stderr


def test_a_full_disk_is_a_fault_and_loses_nothing(root: Path, queue: StoreQueue) -> None:
    texts = [b"%d" % number * 600 for number in range(3)]
    for number, text in enumerate(texts):
        os.link(drop(root, f"{number}.md", text), root.parent / f"{number}")
    assert queue.claim(9) == []
    time.sleep(SETTLE)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (500, hard))
    try:
        with pytest.raises(DiskFault) as caught:
            queue.claim(9)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, handler)
    assert "disk I/O error" in caught.value.message
    assert sorted(claim.data for claim in queue.recover() + queue.claim(9)) == texts


def test_the_lock_names_its_owner_and_ends_with_it(root: Path) -> None:
    hold = (
        "import subprocess, time; child = subprocess.Popen(['sleep', '30'], close_fds=False)\n"
        "print(child.pid, flush=True); time.sleep(30)\n"
    )
    words = [sys.executable, "-c", ACQUIRE + hold, str(root)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as holder:
        orphan = int(line_of(holder.stdout))
        queue = StoreQueue(root)
        with pytest.raises(QueueLocked, match=str(holder.pid)):
            queue.acquire()
        told = lock_owner(root)
        assert told is not None
        assert told.pid == holder.pid
        holder.kill()
    try:
        queue.acquire()
        queue.close()
        assert lock_owner(root) is None
    finally:
        os.kill(orphan, signal.SIGKILL)


def test_the_lock_tells_what_its_holder_does_until_that_is_over(
    root: Path, queue: StoreQueue
) -> None:
    with queue.lock.at("x", "checking", "slow"):
        assert [(one.batch, one.hook) for one in activities(root)] == [("x", "slow")]
    assert activities(root) == ()
    queue.release()
    with queue.lock.at("x", "deciding"):  # as a thread of a hook may do that ends late
        assert (root / "lock").read_bytes() == b""
