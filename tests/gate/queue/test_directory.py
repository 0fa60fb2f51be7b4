"""What only a queue of files can do wrong: hostile entries, torn writes, processes that die."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import json
import os
import random
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from bench.crash import strace
from patchq.core.model.values import Outcome, State
from patchq.gate.errors import DiskFault, Fault, QueueLocked, UsageError
from patchq.gate.git.files import being_written
from patchq.gate.queue import Claim, spool
from patchq.gate.queue.directory import DirectoryQueue
from patchq.gate.queue.journal import Events
from patchq.gate.queue.layout import create
from patchq.gate.queue.lock import lock_owner
from patchq.gate.queue.register import Register
from patchq.gate.report.document import to_json
from patchq.gate.report.schema import Report

LIMIT = 1000
SETTLE = 0.15


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "queue"
    create(root)
    create(root)
    return root


@pytest.fixture
def queue(root: Path) -> Iterator[DirectoryQueue]:
    queue = DirectoryQueue(root, settle_seconds=SETTLE, response_bytes=LIMIT)
    queue.acquire()
    yield queue
    queue.close()


def report(claim: Claim, id: str, state: State = "applied") -> Report:
    return to_json(Outcome(id, state, claim.source, "review"))


def drop(root: Path, name: str, data: bytes = b"text") -> Path:
    path = root / "inbox" / name
    path.write_bytes(data)
    return path


def finish(queue: DirectoryQueue, claim: Claim, id: str, state: State = "applied") -> None:
    queue.publish(claim, report(claim, queue.reserve(claim, id), state), "# page\n")


def tree(root: Path) -> list[str]:
    """What stands in the queue, but for its memory of ids and sources."""
    paths = (path.relative_to(root) for path in root.rglob("*"))
    return sorted(str(path) for path in paths if len(path.parts) > 1 and _told(path.parts[0]))


def killed(queue: DirectoryQueue, root: Path) -> DirectoryQueue:
    """Another process's queue behind the death of this one's, which left its word in the lock."""
    said = (root / "lock").read_bytes()
    queue.close()
    (root / "lock").write_bytes(said)
    after = DirectoryQueue(root, settle_seconds=SETTLE, response_bytes=LIMIT)
    after.acquire()
    return after


def test_what_was_intended_is_published_as_it_stands(root: Path, queue: DirectoryQueue) -> None:
    """Unless the verdict is another one by now."""
    for name in ("a.md", "b.md"):
        drop(root, name)
    for claim, id, same in zip(wait_for(queue), "ab", (True, False), strict=True):
        queue.reserve(claim, id)
        told = report(claim, id)
        queue.intend(claim, told, "# page\n")
        inode = next((root / "active").glob(f"{claim.token}.json")).stat().st_ino
        last = told if same else report(claim, id, "superseded")
        queue.publish(claim, last, "# page\n")
        found = root / f"done/{id}.report.json"
        assert spool.report(found.read_bytes()) == last
        assert (found.stat().st_ino == inode) is same


@pytest.mark.parametrize("enlisted", [False, True], ids=["died before", "died behind"])
def test_the_register_has_each_verdict_once_before_it_is_seen(
    root: Path, queue: DirectoryQueue, enlisted: bool
) -> None:
    for name in ("a.md", "b.md"):
        drop(root, name)
    claims = wait_for(queue)
    ids = [queue.reserve(claim, claim.source.name[:-3]) for claim in claims]
    for claim, id in zip(claims, ids, strict=True):
        queue.intend(claim, report(claim, id), "# page\n")
    if enlisted:
        queue.enlist(list(zip(claims, ids, strict=True)))
        assert (root / "verdicts").read_text() == "a\nb\n"
    assert [name for name in tree(root) if name.startswith("done/")] == []
    after = killed(queue, root)
    dead = after.recover()
    after.enlist([(claim, claim.id or "") for claim in dead])
    for claim in dead:
        assert claim.intended
        after.publish(claim, claim.intended, "# page\n")
    assert (root / "verdicts").read_text() == "a\nb\n"
    after.close()


def test_a_step_looks_once_for_each_directory(
    root: Path, queue: DirectoryQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    lstat = os.lstat

    def counted(path: Any, **more: Any) -> os.stat_result:
        seen.append(str(path))
        return lstat(path, **more)

    def looks(step: Callable[[], object]) -> int:
        seen.clear()
        step()
        return max(seen.count(str(root / name)) for name in ("inbox", "active", "done"))

    for number in range(3):
        drop(root, f"{number}.md")
    monkeypatch.setattr(os, "lstat", counted)
    claims: list[Claim] = []
    assert looks(lambda: claims.extend(queue.claim(9))) == 1
    told = report(claims[0], queue.reserve(claims[0], "x"))
    assert looks(lambda: queue.intend(claims[0], told, "# page\n")) == 1
    assert looks(lambda: queue.publish(claims[0], told, "# page\n")) == 1
    told = report(claims[1], queue.reserve(claims[1], "y"))
    queue.intend(claims[1], told, "# page\n")
    (root / "done").rename(root / "gone")
    queue.publish(claims[1], told, "# page\n")
    assert spool.report((root / "done/y.report.json").read_bytes()) == told


@pytest.mark.parametrize("killed_first", [False, True])
def test_what_came_at_once_is_told_of_once(
    root: Path, queue: DirectoryQueue, killed_first: bool
) -> None:
    names = [f"r{number:02}" for number in range(20)]
    for name in names:
        drop(root, f"{name}.md")
    for claim in queue.claim(99):
        finish(queue, claim, claim.source.name[:-3])
    if killed_first:
        queue = killed(queue, root)
    queue.tell()
    told = [event["batch"] for event in Events(root, "0" * 16).read() if event["state"]]
    assert sorted(told) == names
    queue.close()


@pytest.mark.parametrize("older", [False, True])
def test_only_an_older_patchq_leaves_verdicts_to_be_listed(
    root: Path, queue: DirectoryQueue, older: bool
) -> None:
    drop(root, "a.md")
    finish(queue, wait_for(queue)[0], "a")
    (root / "verdicts").write_text("")
    if older:
        said = json.loads((root / "lock").read_bytes())
        (root / "lock").write_text(json.dumps({k: said[k] for k in ("pid", "host", "since")}))
    for _ in range(2):
        queue = killed(queue, root)
    assert (root / "verdicts").read_text() == "a\n" * older
    assert list(queue.newest()) == ["a"]
    queue.close()


def _told(folder: str) -> bool:
    return folder in ("inbox", "active", "done", "rejected")


def wait_for(queue: DirectoryQueue, seconds: float = 60) -> list[Claim]:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if claims := queue.claim(9):
            return claims
        time.sleep(0.01)
    return []


# ------------------------------------------------------------------ names and places


def test_a_verdict_leaves_the_response_and_two_reports(root: Path, queue: DirectoryQueue) -> None:
    drop(root, "fix login.md")
    [claim] = queue.claim(1)
    finish(queue, claim, "fix-login")
    queue.release()
    assert tree(root) == ["done/fix-login.md", "done/fix-login.report.json",
                          "done/fix-login.report.md"]  # fmt: skip
    assert (root / "done/fix-login.report.md").read_text() == "# page\n"
    assert json.loads((root / "done/fix-login.report.json").read_text())["id"] == "fix-login"


@pytest.mark.parametrize(
    ("state", "folder"),
    [("applied", "done"), ("proposed", "done"), ("duplicate", "done"), ("rejected", "rejected")],
)
def test_where_a_verdict_goes(root: Path, queue: DirectoryQueue, state: State, folder: str) -> None:
    drop(root, "x.txt")
    finish(queue, queue.claim(1)[0], "x", state)
    assert (root / folder / "x.txt").read_bytes() == b"text"
    assert (root / folder / "x.report.json").is_file()


@pytest.mark.parametrize(
    ("name", "stands_as"),
    [
        ("a.md", "x.md"),
        ("a.tar.gz", "x.gz"),
        ("a", "x.txt"),
        ("a.", "x.txt"),
        ("a.much-too-strange", "x.txt"),
        ("a.abcdefghijk", "x.txt"),
        ("a.é", "x.txt"),
        ("a.md\n", "x.txt"),
    ],
)
def test_only_a_plain_suffix_is_kept(
    root: Path, queue: DirectoryQueue, name: str, stands_as: str
) -> None:
    drop(root, name)
    finish(queue, queue.claim(1)[0], "x")
    assert (root / "done" / stands_as).is_file()


@pytest.mark.parametrize(
    "name",
    [
        b"line\nbreak.md",
        b"\x1b[31mred.md",
        b"\xff\xfe.md",
        "\u202egpj.md".encode(),
        b"-rf",
        b"x" * 255,
        b"%s %(id)s {0}.md",
        b" ",
        b"a.report.json",
    ],
    ids=repr,
)
def test_a_hostile_name_is_only_ever_data(root: Path, queue: DirectoryQueue, name: bytes) -> None:
    with open(os.path.join(os.fsencode(root), b"inbox", name), "wb") as file:
        file.write(b"text")
    [claim] = queue.claim(1)
    assert os.fsencode(claim.source.name) == name
    finish(queue, claim, "id")
    told = queue.load("id")
    assert told is not None
    assert told.source.name == claim.source.name
    assert queue.body("id") == b"text"
    queue.release()
    assert len(tree(root)) == 3


@pytest.mark.parametrize("name", [".hidden", "x.tmp", "x.part", "x.md~"])
def test_what_is_not_for_the_queue_stays(root: Path, queue: DirectoryQueue, name: str) -> None:
    path = drop(root, name)
    assert queue.claim(9) == []
    assert queue.depth() == 0
    assert queue.unsettled() is None
    assert path.read_bytes() == b"text"


@pytest.mark.parametrize(
    "name", [".hidden.md", "x.tmp", "a/b.md", "x" * 300 + ".md", "", "é.md", "a." + "x" * 300, "~"]
)
def test_whatever_is_submitted_is_looked_at(root: Path, queue: DirectoryQueue, name: str) -> None:
    names = {queue.submit(b"%d" % number, name) for number in range(12)}
    assert len(names) == 12
    assert len(queue.claim(20)) == 12
    assert tree(root / "inbox") == []


def test_the_oldest_comes_first_whatever_its_name(root: Path, queue: DirectoryQueue) -> None:
    for age, name in enumerate(["c.md", "a.md", "b.md"]):
        os.utime(drop(root, name), (1000 + age, 1000 + age))
    assert [claim.source.name for claim in queue.claim(9)] == ["c.md", "a.md", "b.md"]


# ------------------------------------------------------------------ complete, or not


def test_f01_a_file_that_is_being_written_waits(root: Path, queue: DirectoryQueue) -> None:
    with (root / "inbox/x.md").open("wb", buffering=0) as file:
        file.write(b"half")
        time.sleep(SETTLE + 0.05)
        assert queue.claim(9) == []
        assert queue.depth() == 1
        assert 0 < (queue.unsettled() or 0) <= SETTLE
        file.write(b" and half")
    [claim] = queue.claim(9)
    assert claim.data == b"half and half"
    assert queue.unsettled() is None


def test_a_writer_that_comes_while_we_look_does_not_kill_us(root: Path) -> None:
    path = drop(root, "x.md")
    look = (
        "import os, sys\n"
        "from patchq.gate.git.files import being_written\n"
        "fd = os.open(sys.argv[1], os.O_RDONLY)\n"
        "for _ in range(20_000): being_written(fd)\n"
    )
    with subprocess.Popen([sys.executable, "-c", look, str(path)]) as child:
        while child.poll() is None:
            with contextlib.suppress(BlockingIOError):
                os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
    assert child.returncode == 0


def test_a_lease_tells_a_writer_in_another_process(root: Path) -> None:
    path = drop(root, "x.md")
    writer = subprocess.Popen(
        [sys.executable, "-c", "import sys; f = open(sys.argv[1], 'a'); print(flush=True); input()",
         str(path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert writer.stdout
    writer.stdout.readline()
    with path.open("rb") as file:
        assert being_written(file.fileno()) is True
        writer.communicate(b"\n")
        assert being_written(file.fileno()) is False


def test_where_leases_cannot_be_had_a_file_must_be_quiet(
    root: Path, queue: DirectoryQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("patchq.gate.queue.inbox.being_written", lambda fd: None)
    path = drop(root, "x.md")
    for _ in range(4):
        assert queue.claim(9) == []
        time.sleep(SETTLE / 2)
        with path.open("ab") as file:
            file.write(b"x")
    assert 0 < (queue.unsettled() or 0) <= SETTLE
    assert [claim.data for claim in wait_for(queue)] == [b"textxxxx"]


def test_an_empty_file_is_given_time(root: Path, queue: DirectoryQueue) -> None:
    drop(root, "x.md", b"")
    began = time.monotonic()
    [claim] = wait_for(queue)
    assert time.monotonic() - began >= SETTLE * 0.9
    assert (claim.data, claim.problem) == (b"", None)


def test_a_linked_file_waits_for_its_other_name(root: Path, queue: DirectoryQueue) -> None:
    outside = root.parent / "outside.md"
    outside.write_bytes(b"text")
    os.link(outside, root / "inbox/x.md")
    assert queue.claim(9) == []
    outside.unlink()
    assert [claim.data for claim in queue.claim(9)] == [b"text"]


def test_a_file_that_stays_linked_is_copied(root: Path, queue: DirectoryQueue) -> None:
    outside = root.parent / "outside.md"
    outside.write_bytes(b"text")
    os.link(outside, root / "inbox/x.md")
    [claim] = wait_for(queue)
    outside.write_bytes(b"changed")
    finish(queue, claim, "x")
    assert (root / "done/x.md").read_bytes() == b"text"
    assert outside.read_bytes() == b"changed"


def test_f02_a_writer_that_goes_on_after_the_claim_changes_nothing(
    root: Path, queue: DirectoryQueue
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


def test_a_response_out_of_everybodys_reach_is_moved_and_not_copied(
    root: Path, queue: DirectoryQueue
) -> None:
    path = drop(root, "x.md")
    path.chmod(0o666)
    before = path.stat()
    [claim] = queue.claim(1)
    [entry] = (root / "active").iterdir()
    assert entry.stat().st_mode & 0o777 == 0o600
    finish(queue, claim, "x")
    after = (root / "done/x.md").stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert after.st_mode == (root / "done/x.report.json").stat().st_mode
    assert tree(root) == ["done/x.md", "done/x.report.json", "done/x.report.md"]


def test_a_writer_that_comes_while_the_response_is_read_has_it_copied(
    root: Path, queue: DirectoryQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    drop(root, "x.md")
    writers: list[int] = []

    def read(fd: int, size: int) -> bytes:
        if not writers:
            entry = next((root / "active").glob("*.entry"))
            writers.append(os.fork())
            if not writers[0]:
                with entry.open("ab") as late:
                    late.write(b" more")
                os._exit(0)
            until = time.monotonic() + 30
            while fcntl.fcntl(fd, fcntl.F_GETLEASE) != fcntl.F_UNLCK:  # until it waits for us
                assert time.monotonic() < until
                time.sleep(0.005)
        return os.read(fd, size)

    monkeypatch.setattr("patchq.gate.queue.claims.read_up_to", read)
    [claim] = queue.claim(1)
    os.waitpid(writers[0], 0)
    assert (root / "active" / f"{claim.token}.body").read_bytes() == claim.data
    finish(queue, claim, "x")
    assert (root / "done/x.md").read_bytes() == claim.data


@pytest.mark.parametrize("change", ["grow", "link", "replace", "remove"])
def test_a_response_that_is_reached_after_all_is_copied(
    root: Path, queue: DirectoryQueue, change: str
) -> None:
    drop(root, "x.md")
    [claim] = queue.claim(1)
    [entry] = (root / "active").iterdir()
    if change == "grow":
        entry.write_bytes(b"text and more")
    elif change == "link":
        os.link(entry, root / "elsewhere")
    else:
        entry.unlink()
    if change == "replace":
        entry.write_bytes(b"else")
    finish(queue, claim, "x")
    assert (root / "done/x.md").read_bytes() == b"text"
    if change == "link":
        (root / "elsewhere").write_bytes(b"else")
        assert (root / "done/x.md").read_bytes() == b"text"
    assert tree(root) == ["done/x.md", "done/x.report.json", "done/x.report.md"]


LONG_NAME = "n" * 252 + ".md"


@pytest.mark.parametrize("name", ["x.md", "a\nb.report.json", "body", LONG_NAME])
def test_a_claim_is_found_again_under_its_name(
    root: Path, queue: DirectoryQueue, name: str
) -> None:
    inode = drop(root, name).stat().st_ino
    [claim] = queue.claim(1)
    queue.release()
    again = DirectoryQueue(root)
    assert list(again.ids()) == []
    [back] = again.recover()
    assert back == claim
    assert back.source.name == name
    finish(again, back, "x", "rejected")
    again.close()
    assert os.listdir(root / "active") == []
    [body] = [at for at in (root / "rejected").iterdir() if ".report." not in at.name]
    assert body.stat().st_ino == inode


def test_a_batch_that_is_held_has_a_copy_beside_what_came(
    root: Path, queue: DirectoryQueue
) -> None:
    drop(root, "x.md")
    [claim] = queue.claim(1)
    queue.hold(claim, report(claim, queue.reserve(claim, "x"), "held"), "# held\n")
    active, token = root / "active", claim.token
    assert (active / f"{token}.body").read_bytes() == b"text"
    assert (active / token / "x.md").read_bytes() == b"text"
    assert queue.body("x") == b"text"
    [held] = queue.held()
    finish(queue, held, "x")
    assert tree(root) == ["done/x.md", "done/x.report.json", "done/x.report.md"]


def test_what_was_held_is_never_out_of_sight(root: Path, queue: DirectoryQueue) -> None:
    """Whoever looks while its verdict comes finds it, with one of its two reports."""
    over = threading.Event()

    def one(other: DirectoryQueue, id: str) -> str:
        told = other.load(id)
        return f"{told and told.state} {other.body(id)!r}"

    def looks(look: Callable[[DirectoryQueue], set[str]]) -> set[str]:
        with contextlib.closing(DirectoryQueue(root)) as other:
            seen = set[str]()
            while not over.is_set():
                seen |= look(other)
            return seen

    ids = [f"x{number}" for number in range(60)]
    for id in ids:
        drop(root, f"{id}.md")
    for claim, id in zip(queue.claim(99), ids, strict=True):
        queue.hold(claim, report(claim, queue.reserve(claim, id), "held"), "# held\n")
    with ThreadPoolExecutor(2) as threads:
        each = threads.submit(looks, lambda other: {one(other, id) for id in ids})
        missed = threads.submit(looks, lambda other: {*ids} - {*other.ids()})
        try:
            for held in queue.held():
                queue.publish(held, report(held, held.id or ""), "# page\n")
        finally:
            over.set()
        assert each.result() <= {"held b'text'", "applied b'text'"}
        assert missed.result() == set()


def test_any_number_may_look_at_what_is_held(root: Path, queue: DirectoryQueue) -> None:
    """Who looks must not take a claim for one in somebody's hands since another one looks too."""
    drop(root, "x.md")
    [claim] = queue.claim(1)
    queue.hold(claim, report(claim, queue.reserve(claim, "x"), "held"), "# held\n")

    def looks(_: int) -> set[int]:
        with contextlib.closing(DirectoryQueue(root)) as other:
            return {len(other.held()) for _ in range(200)}

    with ThreadPoolExecutor(4) as threads:
        assert set().union(*threads.map(looks, range(4))) == {1}
    [held] = queue.held()
    finish(queue, held, "x")


def test_what_an_earlier_version_left_is_recovered(root: Path, queue: DirectoryQueue) -> None:
    """A directory for the response, and a copy beside it, or none yet."""
    for number, data in enumerate((None, b"copied")):
        token = f"{number + 1:016x}-1"
        (root / "active" / token).mkdir()
        (root / "active" / token / f"{number}.md").write_bytes(b"text")
        if data:
            (root / "active" / f"{token}.body").write_bytes(data)
            (root / "active" / token / f"{number}.md").write_bytes(b"")
    claims = queue.recover()
    assert [(claim.source.name, claim.data) for claim in claims] == [
        ("0.md", b"text"),
        ("1.md", b"copied"),
    ]
    for claim in claims:
        finish(queue, claim, claim.source.name[0])
    assert [(root / f"done/{n}.md").read_bytes() for n in range(2)] == [b"text", b"copied"]
    assert os.listdir(root / "active") == []


# ------------------------------------------------------------------ what is not a response


def _symlink(path: Path) -> None:
    path.symlink_to("/etc/passwd")


def _socket(path: Path) -> None:
    server = socket.socket(socket.AF_UNIX)
    here = os.getcwd()
    os.chdir(path.parent)  # the address of a socket is short
    server.bind(path.name)
    os.chdir(here)
    server.close()


def _directory(path: Path) -> None:
    path.mkdir()
    (path / "inner").write_text("kept")


def _sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 40)


@pytest.mark.parametrize(
    ("make", "code"),
    [
        (_symlink, "response.not_text"),
        (os.mkfifo, "response.not_text"),
        (_socket, "response.not_text"),
        (_directory, "response.not_text"),
        (_sparse, "response.too_large"),
    ],
)
def test_what_is_no_response_is_refused_unread_and_kept(
    root: Path, make: Callable[[Path], None], code: str
) -> None:
    make(root / "inbox/x.md")
    before = os.lstat(root / "inbox/x.md")
    dead = DirectoryQueue(root, response_bytes=LIMIT)
    [claim] = dead.claim(9)
    dead.close()

    queue = DirectoryQueue(root, response_bytes=LIMIT)
    [back] = queue.recover()
    assert back == claim
    assert claim.problem is not None
    assert (claim.data, claim.problem.code) == (b"", code)
    finish(queue, back, "x", "rejected")
    queue.close()
    after = os.lstat(root / "rejected/x.md")
    assert (before.st_ino, before.st_mode) == (after.st_ino, after.st_mode)
    assert queue.body("x") is None
    assert os.listdir(root / "active") == []
    if make is _directory:
        assert (root / "rejected/x.md/inner").read_text() == "kept"


@pytest.mark.parametrize("mode", ["ab", "r+b"], ids=["grows", "is written over"])
def test_f09_a_file_that_changes_without_end_is_refused(
    root: Path, queue: DirectoryQueue, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    drop(root, "x.md")
    tries = 0

    def read(fd: int, size: int) -> bytes:
        nonlocal tries
        tries += 1
        data = os.read(fd, size)
        time.sleep(0.02)  # a clock tick, so that the times of the file change as well
        with next((root / "active").glob("*.x.md.entry")).open(mode) as file:
            file.write(b"x")
        return data

    monkeypatch.setattr("patchq.gate.queue.inbox.read_up_to", read)
    monkeypatch.setattr("patchq.gate.queue.claims.lease", lambda fd: None)  # else who writes waits
    [claim] = queue.claim(1)
    assert claim.problem is not None
    assert (claim.data, claim.problem.code) == (b"", "response.incomplete")
    assert tries == 5


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
        queue = DirectoryQueue(root, settle_seconds=SETTLE)
        assert queue.claim(1) == []
        [claim] = wait_for(queue)
        assert claim.problem is not None
        assert claim.problem.code == "response.incomplete"
        finish(queue, claim, "x", "rejected")
        queue.close()
    finally:
        os.seteuid(0)
    assert (root / "rejected/x.md").read_bytes() == b"text"


# ------------------------------------------------------------------ the directories themselves


def test_a_missing_queue_is_told_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not a queue") as caught:
        DirectoryQueue(tmp_path / "none").acquire()
    assert "patchq init" in (caught.value.hint or "")


def test_a_new_inbox_in_the_place_of_the_old(root: Path, queue: DirectoryQueue) -> None:
    drop(root, "1.md")
    assert len(queue.claim(9)) == 1
    (root / "inbox").rmdir()
    assert queue.claim(9) == []
    assert queue.depth() == 0
    (root / "inbox").mkdir()
    drop(root, "2.md")
    assert [claim.source.name for claim in queue.claim(9)] == ["2.md"]


@pytest.mark.parametrize("folder", ["inbox", "done"])
def test_a_link_in_the_place_of_a_directory_is_not_followed(
    root: Path, queue: DirectoryQueue, folder: str
) -> None:
    drop(root, "1.md")
    [claim] = queue.claim(9)
    (root / folder).rename(root.parent / "elsewhere")
    (root / folder).symlink_to(root.parent / "elsewhere")
    (root.parent / "elsewhere/2.md").touch()
    if folder == "inbox":
        assert (queue.claim(9), queue.depth()) == ([], 0)
    else:
        with pytest.raises(DiskFault, match=folder):
            finish(queue, claim, "x")
    assert os.listdir(root.parent / "elsewhere") == ["2.md"]
    (root / folder).unlink()
    (root / folder).mkdir()
    finish(queue, claim, "x")
    assert (root / "done/x.report.json").is_file()


def test_a_removed_done_is_made_again(root: Path, queue: DirectoryQueue) -> None:
    drop(root, "1.md")
    (root / "done").rmdir()
    finish(queue, queue.claim(1)[0], "x")
    assert (root / "done/x.report.json").is_file()


def test_a_link_in_the_place_of_a_report_is_replaced_not_followed(
    root: Path, queue: DirectoryQueue
) -> None:
    victim = root.parent / "victim"
    victim.write_text("mine")
    for name in ("x.report.json", "x.report.md", "x.md"):
        (root / "done" / name).symlink_to(victim)
    drop(root, "x.md")
    finish(queue, queue.claim(1)[0], "x")
    assert victim.read_text() == "mine"
    assert not (root / "done/x.report.json").is_symlink()


_MOUNTS = ["unshare", "-rm"]


@pytest.mark.skipif(
    subprocess.run([*_MOUNTS, "true"], capture_output=True).returncode != 0,
    reason="needs mount namespaces",
)
def test_f17_directories_on_different_file_systems_are_refused(root: Path) -> None:
    acquire = (
        "import sys; from pathlib import Path\n"
        "from patchq.gate.errors import UsageError\n"
        "from patchq.gate.queue.directory import DirectoryQueue\n"
        "try: DirectoryQueue(Path(sys.argv[1])).acquire()\n"
        "except UsageError as error: print(error.message, '|', error.hint)\n"
    )
    script = 'mount -t tmpfs none "$1/done" && exec "$2" -c "$3" "$1"'
    told = subprocess.run(
        [*_MOUNTS, "sh", "-c", script, "sh", str(root), sys.executable, acquire],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "different file systems" in told.stdout


def test_a_full_disk_is_a_fault_and_loses_nothing(root: Path, queue: DirectoryQueue) -> None:
    for number in range(3):
        os.link(drop(root, f"{number}.md", b"%d" % number * 600), root.parent / f"{number}")
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
    assert "EFBIG" in caught.value.message
    claims = queue.recover() + queue.claim(9)
    assert sorted(claim.data for claim in claims) == [b"%d" % number * 600 for number in range(3)]


def test_what_a_full_disk_does_not_take_leaves_nothing(root: Path, queue: DirectoryQueue) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (500, hard))
    try:
        with pytest.raises(DiskFault) as caught:
            queue.submit(b"x" * 600, "a.md")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, handler)
    assert "hand the response in again: it was not taken" in (caught.value.hint or "")
    assert os.listdir(root / "inbox") == []


def test_what_a_full_disk_is_told_to_do() -> None:
    from patchq.gate.queue.spool import fault

    told = fault(OSError(errno.ENOSPC, "No space left on device", "x"))
    assert isinstance(told, DiskFault)
    assert "ENOSPC" in told.message
    assert "make room" in (told.hint or "")


# ------------------------------------------------------------------ locks


def test_the_lock_names_its_owner_and_ends_with_it(root: Path) -> None:
    hold = (
        "import sys, time; from pathlib import Path\n"
        "from patchq.gate.queue.directory import DirectoryQueue\n"
        "queue = DirectoryQueue(Path(sys.argv[1])); queue.acquire()\n"
        "import subprocess; child = subprocess.Popen(['sleep', '30'], close_fds=False)\n"
        "print(child.pid, flush=True); time.sleep(30)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", hold, str(root)], stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout
        orphan = int(holder.stdout.readline())
        queue = DirectoryQueue(root)
        with pytest.raises(QueueLocked, match=str(holder.pid)):
            queue.acquire()
        told = lock_owner(root)
        assert told is not None
        assert told.pid == holder.pid
        assert abs((told.since or 0) - time.time()) < 60
        holder.kill()
    try:
        queue.acquire()
        assert (lock_owner(root) or told).pid == os.getpid()
        queue.close()
        assert lock_owner(root) is None
    finally:
        os.kill(orphan, signal.SIGKILL)


def test_asking_who_holds_the_lock_creates_nothing(tmp_path: Path) -> None:
    create(tmp_path)
    assert lock_owner(tmp_path) is None
    assert not (tmp_path / "lock").exists()


def test_a_removed_lock_file_stops_the_intake(root: Path, queue: DirectoryQueue) -> None:
    drop(root, "x.md")
    (root / "lock").unlink()
    with pytest.raises(DiskFault, match="lock file was removed"):
        queue.claim(1)
    assert queue.depth() == 1


# ------------------------------------------------------------------ many


def test_ten_thousand_cost_one_scan(
    root: Path, queue: DirectoryQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(2_000):
        (root / f"inbox/{number}.md").write_bytes(b"x")
    scans = 0
    scandir = os.scandir

    def counted(fd: int) -> Any:
        nonlocal scans
        scans += 1
        return scandir(fd)

    monkeypatch.setattr("os.scandir", counted)
    taken = [claim for _ in range(40) for claim in queue.claim(50)]
    assert len({claim.source.name for claim in taken}) == 2_000
    assert scans <= 2


def test_a_scan_keeps_only_so_many_names(
    root: Path, queue: DirectoryQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("patchq.gate.queue.inbox.SCAN_ENTRIES", 10)
    for number in range(25):
        drop(root, f"{number}.md")
    taken = [claim for _ in range(5) for claim in queue.claim(9)]
    assert len({claim.source.name for claim in taken}) == 25


def test_the_next_free_number_is_found_in_few_looks(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "ids").mkdir()
    for number in range(2, 3_000):
        (root / f"ids/fix-{number}").symlink_to("somebody")
    (root / "ids/fix").symlink_to("somebody")
    taken_over = DirectoryQueue(root)
    taken_over.acquire()
    taken_over.close()
    assert not (root / "ids").exists()
    asked: list[str] = []

    def is_known(id: str) -> bool:
        asked.append(id)
        return False

    looks = 0
    knows = Register.knows

    def counted(register: Register, id: str) -> bool:
        nonlocal looks
        looks += 1
        return knows(register, id)

    queue = DirectoryQueue(root, is_known=is_known)
    claims = [queue.adopt(b"%d" % number, "fix.md") for number in range(3)]
    monkeypatch.setattr(Register, "knows", counted)
    ids = [queue.reserve(claim, "fix") for claim in claims]
    queue.close()
    assert ids == ["fix-3000", "fix-3001", "fix-3002"]
    assert looks < 40
    assert len(asked) < 10


@pytest.mark.parametrize("torn", [b"\0" * 50, b"ba7816bf8f01 a", b""], ids=repr)
def test_a_torn_register_takes_new_lines(root: Path, queue: DirectoryQueue, torn: bytes) -> None:
    drop(root, "a.md", b"abc")
    [claim] = queue.claim(1)
    (root / "sources" / claim.source.sha256[:2]).write_bytes(torn)
    (root / "verdicts").write_bytes(torn)
    finish(queue, claim, "a")
    assert queue.by_source(claim.source.sha256) == ["a"]
    assert next(queue.newest()) == "a"


@pytest.mark.parametrize("size", [0, 1, 5, 300, 819, 820, 4000])
def test_a_register_is_read_from_its_end(root: Path, queue: DirectoryQueue, size: int) -> None:
    ids = [f"batch-{number:03}" for number in range(size)]
    (root / "verdicts").write_text("".join(f"{id}\n" for id in ids))
    with (root / "verdicts").open("ab") as file:
        file.write(bytes(9) + b"\ntorn")
    assert list(queue.newest()) == ["torn", *reversed(ids)]


# ------------------------------------------------------------------ sudden death


def _work(root: Path, started: Callable[[], object] = lambda: None) -> None:
    """Give every response its verdict, each in the way that its number tells."""
    queue = DirectoryQueue(root, settle_seconds=0.05)
    queue.acquire()

    def decide(claims: list[Claim]) -> None:
        for claim in claims:
            if claim.intended and claim.intended.state != "held":
                queue.publish(claim, claim.intended, "# again")
                continue
            id, number = claim.id or queue.reserve(claim, "fix"), int(claim.data)
            if number % 3 == 0 and not claim.held:
                queue.hold(claim, report(claim, id, "held"), "# held")
                continue
            verdict = report(claim, id, "rejected" if number % 2 else "applied")
            if number % 5:
                queue.intend(claim, verdict, "# page")
            queue.publish(claim, verdict, "# page")

    decide(queue.recover())
    started()
    while claims := queue.claim(7) or queue.held():
        decide(claims)
    queue.release()


class _Worker:
    """A process that waits until it may work: a fork, as loading Python takes longer than that."""

    def __init__(self, root: Path) -> None:
        gate, self._gate = os.pipe()
        self._started, said = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            _allow_tracing()
            code = 1
            try:
                os.close(self._gate)
                os.read(gate, 1)
                _work(root, lambda: os.write(said, b"!"))
                code = 0
            finally:
                os._exit(code)
        os.close(gate)
        os.close(said)

    def begin(self) -> None:
        os.close(self._gate)

    def wait_until_started(self) -> None:
        os.read(self._started, 1)

    def end(self) -> int:
        """Its exit code, negative for the signal that ended it."""
        os.close(self._started)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def _allow_tracing() -> None:
    """Let a process trace this one that did not start it."""
    ctypes.CDLL(None).prctl(_PR_SET_PTRACER, ctypes.c_ulong(-1))


_PR_SET_PTRACER = 0x59616D61


def test_whenever_it_is_killed_each_response_gets_one_verdict(root: Path) -> None:
    count, chance = 300, random.Random(7)
    for number in range(count):
        drop(root, f"{number}.md", b"%d" % number)
    kills, code = 0, None
    while code != 0:
        worker = _Worker(root)
        worker.begin()
        if chance.random() < 0.8:
            worker.wait_until_started()
        if kills < 25:
            time.sleep(chance.uniform(0, 0.03))
            os.kill(worker.pid, signal.SIGKILL)
        code = worker.end()
        assert code in (0, -signal.SIGKILL)
        kills += code != 0
    assert kills >= 5
    _check_verdicts(root, count)


_FATAL_CALLS = {
    "openat": 13,
    "write": 6,
    "renameat": 4,
    "unlinkat": 2,
    "fdatasync": 2,
    "mkdirat": 1,
}
"""What changes the queue, and of how many such calls one is fatal."""


@pytest.mark.parametrize("call", _FATAL_CALLS)
def test_killed_at_any_system_call_each_response_gets_one_verdict(
    tmp_path: Path, call: str
) -> None:
    try:
        strace.require()
    except strace.NoStrace as reason:
        pytest.skip(str(reason))
    codes: list[int] = []
    while 0 not in codes:
        nth = 1 + len(codes) * _FATAL_CALLS[call]
        root = tmp_path / f"{call}-{nth}"
        create(root)
        for number in (0, 1, 2, 5):
            drop(root, f"{number}.md", b"%d" % number)
        worker = _Worker(root)
        with strace.tracing(worker.pid, tmp_path / "trace", [f"{call}:signal=KILL:when={nth}"]):
            worker.begin()
            codes.append(worker.end())
        worker = _Worker(root)
        worker.begin()
        assert worker.end() == 0
        _check_verdicts(root, 4)
    assert codes[:-1] == [-signal.SIGKILL] * (len(codes) - 1) != []


def _check_verdicts(root: Path, count: int) -> None:
    """Every response has exactly one verdict, whole, and nothing else is left."""
    queue = DirectoryQueue(root)
    told = [queue.load(id) for id in queue.ids()]
    reports = [entry for entry in told if entry is not None]
    assert len(told) == len(reports) == count
    assert len({entry.source.sha256 for entry in reports}) == count
    for entry in reports:
        body = queue.body(entry.id)
        assert body is not None
        assert entry.source.name == f"{int(body)}.md"
        folder = "rejected" if int(body) % 2 else "done"
        assert (root / folder / f"{entry.id}.report.json").is_file()
        assert (root / folder / f"{entry.id}.report.md").is_file()
        assert list(queue.by_source(entry.source.sha256)) == [entry.id]
    assert len(tree(root)) == 3 * count
    queue.close()


def half_published(root: Path, queue: DirectoryQueue, name: str) -> tuple[Claim, Report]:
    """A claim whose owner died while it published the refusal, which is returned with it."""
    drop(root, name)
    [claim] = queue.claim(1)
    refusal = report(claim, queue.reserve(claim, "x"), "rejected")
    queue.intend(claim, refusal, "# refused\n")
    (root / "active" / f"{claim.token}.md").rename(root / "rejected/x.report.md")
    (root / "active" / f"{claim.token}.{name}.entry").rename(root / "rejected" / name)
    queue.release()
    return claim, refusal


def test_a_half_published_verdict_can_still_become_another(
    root: Path, queue: DirectoryQueue
) -> None:
    claim, refusal = half_published(root, queue, "x.md")
    [back] = queue.recover()
    assert (back.source, back.data, back.intended, back.id) == (claim.source, b"text", refusal, "x")
    finish(queue, back, "x", "applied")
    queue.release()
    assert tree(root) == ["done/x.md", "done/x.report.json", "done/x.report.md"]


def test_a_held_report_that_its_verdict_outlived_goes(root: Path, queue: DirectoryQueue) -> None:
    drop(root, "x.md")
    finish(queue, queue.claim(1)[0], "x")
    for name in ("x.report.json", "x.report.md"):
        (root / "active" / name).write_bytes((root / "done" / name).read_bytes())
    assert queue.recover() == []
    queue.release()
    assert len(tree(root)) == 3


def test_a_torn_intent_counts_as_none(root: Path, queue: DirectoryQueue) -> None:
    drop(root, "x.md")
    [claim] = queue.claim(1)
    queue.intend(claim, report(claim, queue.reserve(claim, "x")), "# page")
    (root / "active" / f"{claim.token}.json").write_bytes(b'{"id": "x"')
    queue.release()
    [back] = queue.recover()
    assert (back.intended, back.data) == (None, b"text")
    assert queue.reserve(back, "x") == "x"


def test_a_claim_keeps_its_name_when_a_second_crash_tears_the_intent(
    root: Path, queue: DirectoryQueue
) -> None:
    claim, _ = half_published(root, queue, "x.py")
    queue.recover()
    (root / "active" / f"{claim.token}.json").write_bytes(b"")
    queue.release()
    [back] = queue.recover()
    assert (back.source, back.data, back.intended) == (claim.source, b"text", None)
    finish(queue, back, queue.reserve(back, "x"), "rejected")
    queue.release()
    assert tree(root) == [f"rejected/x.{end}" for end in ("py", "report.json", "report.md")]


def test_a_torn_report_is_none(root: Path, queue: DirectoryQueue) -> None:
    drop(root, "x.md")
    finish(queue, queue.claim(1)[0], "x")
    (root / "done/x.report.json").write_bytes(b"\0" * 20)
    with (root / "verdicts").open("ab") as file:
        file.write(b"\0" * 20 + b"\n")
    assert queue.load("x") is None
    assert list(queue.ids()) == ["x"]


def test_faults_are_not_tracebacks_of_the_system(root: Path, queue: DirectoryQueue) -> None:
    (root / "lock").unlink()
    for path in (root, root.parent / "gone"):
        with contextlib.suppress(FileNotFoundError):
            path.rename(root.parent / "gone")
    with pytest.raises(Fault):
        queue.sync()
