"""The journal tells each change of state once, in order, whoever dies when."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from patchq.core.model.values import Outcome, Source
from patchq.gate.queue import journal
from patchq.gate.queue.directory import DirectoryQueue
from patchq.gate.queue.journal import Events, Journal
from patchq.gate.queue.layout import create
from patchq.gate.queue.spool import Folder
from patchq.gate.report.document import to_json
from patchq.gate.report.schema import Moment, Report, ReviewEntry


@pytest.fixture
def root(tmp_path: Path) -> Path:
    create(tmp_path / "queue")
    return tmp_path / "queue"


def report(id: str, state: Any, source: Source) -> Report:
    return to_json(Outcome(id, state, source, "review"))


def verdict(queue: DirectoryQueue, id: str, state: str, name: str = "x.md") -> Report:
    claim = queue.adopt(id.encode(), name)
    made = report(queue.reserve(claim, id), state, claim.source)
    queue.publish(claim, made, "page")
    return made


def told(root: Path, since: str = "") -> list[tuple[str, str]]:
    return [(one["kind"], one["batch"]) for one in Events(root, since).read()]


def test_each_change_of_state_is_told_once(root: Path) -> None:
    queue = DirectoryQueue(root)
    first = verdict(queue, "a", "proposed")
    verdict(queue, "b", "rejected")
    middle = Events(root).last
    queue.rewrite(replace(first, diff="another"), "page")  # no change of state
    for seconds in (1, 2):
        at = Moment(unix=seconds, iso="")
        asks = ReviewEntry(state="changes_requested", by="A", at=at, comments=[])
        queue.rewrite(replace(first, review=asks), "page")
    queue.rewrite(replace(first, state="accepted"), "page")
    later = [("changes_requested", "a"), ("changes_requested", "a"), ("accepted", "a")]
    whole = [("claimed", "a"), ("proposed", "a"), ("claimed", "b"), ("refused", "b"), *later]
    assert told(root) == whole
    assert told(root, middle) == later
    ids = [one["id"] for one in Events(root, "").read()]
    assert ids == sorted(set(ids))


def test_a_stream_that_is_read_in_pieces_loses_and_repeats_nothing(root: Path) -> None:
    queue, seen, events = DirectoryQueue(root), [], Events(root)
    for number in range(7):
        verdict(queue, f"b{number}", "rejected")
        while some := events.read(most=1):
            seen += some
            events = Events(root, events.last)  # another process
    assert seen == Events(root, "").read()
    assert len(seen) == 14


@pytest.mark.parametrize("how", ["mark", "register"])
def test_who_dies_before_it_tells_is_told_for(
    root: Path, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = DirectoryQueue(root)
    if how == "register":
        queue.acquire()
    made = verdict(queue, "a", "proposed")

    def die(fd: int, entries: Any, after: str = "0") -> str:
        if any(entry["kind"] not in (None, "claimed") for entry in entries):
            raise KeyboardInterrupt
        return write(fd, entries, after)

    write = journal._write
    monkeypatch.setattr(journal, "_write", die)
    act: dict[str, Callable[[], object]] = {
        "register": partial(verdict, queue, "b", "rejected"),
        "mark": partial(queue.rewrite, replace(made, state="accepted"), "page"),
    }
    with pytest.raises(KeyboardInterrupt):
        act[how]()
    monkeypatch.undo()
    missed = ("refused", "b") if how == "register" else ("accepted", "a")
    assert missed not in told(root)
    queue.close()
    queue = DirectoryQueue(root)
    for _ in range(2):
        queue.acquire() if how == "register" else queue.heal()
        assert told(root)[-1] == missed
        assert told(root).count(missed) == 1
        queue.close()


def test_what_never_came_to_be_is_not_told(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    queue = DirectoryQueue(root)
    made = verdict(queue, "a", "proposed")
    monkeypatch.setattr("patchq.gate.queue.spool.Folder.put", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        queue.rewrite(replace(made, state="accepted"), "page")
    monkeypatch.undo()
    queue.heal()
    assert told(root) == [("claimed", "a"), ("proposed", "a")]


def test_what_another_told_meanwhile_is_not_told_again(root: Path) -> None:
    queue, other = DirectoryQueue(root), DirectoryQueue(root)
    made = verdict(queue, "a", "proposed")
    place = Journal(queue._base)
    with place.telling(replace(made, state="accepted"), marked=False):
        put = queue._done.put
        put("a.report.json", b'{"id": "a", "state": "accepted", "source": {"name": "x"}}')
        other.heal()
    assert told(root).count(("accepted", "a")) == 1


def test_a_full_journal_makes_room_and_says_what_is_lost(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "MOST_BYTES", 2000)
    queue, seen = DirectoryQueue(root), list[str]()
    for number in range(40):
        follower = Events(root)
        verdict(queue, f"b{number}", "rejected")
        assert [one["batch"] for one in follower.read()] == [f"b{number}"] * 2
        assert not follower.lost
        seen.append(follower.last)
    assert sum((root / name).stat().st_size for name in (journal.EVENTS, journal.BEFORE)) < 5000
    late, near = Events(root, seen[0]), Events(root, seen[-3])
    assert 4 < len(late.read()) < 60
    assert late.lost
    assert len(near.read()) == 4
    assert not near.lost


@pytest.mark.parametrize("tail", [b'{"kind":"app', b"\0" * 30, b'{"kind":"applied","id":"zz"}\n'])
def test_a_torn_tail_and_foreign_lines_are_passed_over(root: Path, tail: bytes) -> None:
    queue = DirectoryQueue(root)
    verdict(queue, "a", "rejected")
    with (root / journal.EVENTS).open("ab") as file:
        file.write(tail)
    verdict(queue, "b", "rejected")
    assert [batch for _, batch in told(root)] == ["a", "a", "b", "b"]


def test_a_clock_that_was_set_back_changes_no_order(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = DirectoryQueue(root)
    verdict(queue, "a", "rejected")
    monkeypatch.setattr("time.time_ns", lambda: 5)
    verdict(queue, "b", "rejected")
    ids = [one["id"] for one in Events(root, "").read()]
    assert ids == sorted(set(ids))


def test_reports_of_before_the_journal_are_not_told(root: Path) -> None:
    """As an older patchq left them, and as somebody else put them there."""
    queue = DirectoryQueue(root)
    verdict(queue, "old", "rejected")
    os.utime(root / "rejected/old.report.json", (1e9, 1e9))
    (root / "done/foreign.report.json").write_text('{"state": "applied"}')
    with (root / "verdicts").open("a") as file:
        file.write("foreign\n")
    (root / journal.EVENTS).unlink()
    queue.acquire()
    assert told(root) == []
    queue.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make another user's file")
def test_a_journal_that_another_user_began_is_put_away(root: Path) -> None:
    queue = DirectoryQueue(root)
    verdict(queue, "a", "rejected")
    for path in (root, *root.iterdir()):
        os.chown(path, 65534, 65534)
    os.chown(root / journal.EVENTS, 0, 0)
    pid = os.fork()
    if pid == 0:
        try:
            os.chdir(root)  # above it are places of root's own
            os.setresuid(65534, 65534, 65534)
            with Folder(Path()) as base:
                Journal(base).note(journal.claimed("b"))
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(pid, 0)[1] == 0
    assert told(root) == [("claimed", "a"), ("refused", "a"), ("claimed", "b")]


def test_what_is_held_back_is_not_told_behind_what_came_of_it(root: Path) -> None:
    """A group is told of at its end, and a person may have decided on one of it by then."""
    queue, other = DirectoryQueue(root), DirectoryQueue(root)
    queue.acquire()
    for number in range(20):
        (root / f"inbox/b{number:02}.md").write_text(f"{number}")
    made = []
    for claim in queue.claim(50):
        one = report(queue.reserve(claim, claim.source.name[:3]), "proposed", claim.source)
        queue.publish(claim, one, "page")
        made.append(one)
    other.rewrite(replace(made[3], state="accepted"), "page")
    queue.tell()
    assert told(root)[0] == ("accepted", "b03")
    assert [kind for kind, batch in told(root) if batch == "b03"] == ["accepted"]
    assert len(told(root)) == 1 + 2 * 19
    queue.close()
    queue.acquire()
    assert len(told(root)) == 1 + 2 * 19
    queue.close()
