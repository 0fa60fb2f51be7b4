"""What a power cut, a crash or a careless hand does to the store."""

from __future__ import annotations

import json
from contextlib import closing, suppress
from pathlib import Path

import pytest

from patchq.gate.errors import DiskFault, LaneLost
from patchq.gate.queue import store
from patchq.gate.queue.engine import StoreQueue
from patchq.gate.queue.events import Events
from patchq.gate.queue.shelf import Shelf
from patchq.gate.queue.spool import create, digest
from patchq.gate.report.document import plain
from tests.helpers.claims import claimed, finish, hold, report
from tests.helpers.stores import sql


@pytest.fixture
def root(tmp_path: Path) -> Path:
    create(tmp_path)
    return tmp_path


def reopened(root: Path) -> StoreQueue:
    queue = StoreQueue(root, settle_seconds=0)
    queue.acquire()
    return queue


def test_g13_response_whose_row_was_lost_is_entered_again(root: Path) -> None:
    with closing(reopened(root)) as queue:
        claim = claimed(queue)
    sql(root, "delete from responses")
    sql(root, "delete from papers")
    with closing(reopened(root)) as queue:
        (back,) = queue.recover()
        assert (back.token, back.source, back.data) == (claim.token, claim.source, b"text")


def test_g13_what_belongs_to_a_held_batch_whose_row_was_lost_goes(root: Path) -> None:
    like_a_claim = "0000000000000000-1.y"
    with closing(reopened(root)) as queue:
        claim, kept = claimed(queue), claimed(queue, name="y.md")
        hold(queue, claim, "x")
        hold(queue, kept, like_a_claim)
        sql(root, "delete from responses where number = 1")
        sql(root, "delete from papers where number = 1")
    (root / "active/x.report.md.tmp").write_bytes(b"# pa")
    (root / f"active/{claim.token}.x.md.tmp").write_bytes(b"te")
    with closing(reopened(root)) as queue:
        found = {each.token: each for each in queue.recover()}
        back = found[claim.token]
        assert (len(found), back.held, found[kept.token].held) == (2, False, True)
        finish(queue, back, "x")
        names = sorted(path.name for path in (root / "active").iterdir())
        assert names == [f"{like_a_claim}.report.json", f"{like_a_claim}.report.md",
                         f"{kept.token}.y.md"]  # fmt: skip


def test_verdict_without_its_files_is_shown_again(root: Path) -> None:
    with closing(reopened(root)) as queue:
        finish(queue, claimed(queue), "x")
    for path in root.glob("done/*"):
        path.write_bytes(b"")
    with closing(reopened(root)) as queue:
        assert queue.recover() == []
        assert (root / "done/x.md").read_bytes() == b"text"
        assert json.loads((root / "done/x.report.json").read_bytes()) == plain(queue.load("x"))
        assert (root / "done/x.report.md").read_text().startswith("# `x`: applied\n")


def test_files_count_as_shown_only_after_a_later_flush(root: Path) -> None:
    def shown() -> list[int]:
        return [row[0] for row in sql(root, "select shown from responses order by number")]

    with closing(reopened(root)) as queue:
        finish(queue, claimed(queue), "x")
        claimed(queue, name="y.md")
        assert shown() == [0, 1]
        queue.sync()
        claimed(queue, name="z.md")
        assert shown() == [1, 1, 1]


def test_verdict_comes_with_its_event_or_not_at_all(root: Path) -> None:
    with closing(reopened(root)) as queue:
        claim = claimed(queue)
        queue.reserve(claim, "x")
        with suppress(KeyboardInterrupt), queue.together():
            queue.publish(claim, report(claim))
            raise KeyboardInterrupt
        assert queue.load("x") is None
        assert [event["kind"] for event in Events(root, "0").read()] == ["claimed"]
        assert list((root / "done").iterdir()) == []
        queue.publish(claim, report(claim))
        kinds = [event["kind"] for event in Events(root, "0").read()]
        assert kinds == ["claimed", "applied"]


def test_who_was_taken_over_changes_nothing(root: Path) -> None:
    with closing(reopened(root)) as queue:
        claim = claimed(queue)
        queue.reserve(claim, "x")
        sql(root, "update responses set session = 99")
        for step in (queue.intend, queue.publish, queue.hold):
            with pytest.raises(LaneLost):
                step(claim, report(claim))
        assert queue.load("x") is None


def test_events_go_on_in_a_store_that_is_made_again(root: Path) -> None:
    with closing(reopened(root)) as queue:
        finish(queue, claimed(queue), "x")
    last = Events(root).last
    for path in root.glob("store.db*"):
        path.unlink()
    with closing(reopened(root)) as queue:
        queue.rebuild()
        told = queue.load("x")
        assert told
        assert told.state == "applied"
        assert queue.body("x") == b"text"
        assert [event["batch"] for event in Events(root, last).read()] == ["x"]
        assert queue.reserve(claimed(queue), "x") == "x-2"


def test_store_that_is_removed_under_a_process_stops_it(root: Path) -> None:
    with closing(reopened(root)) as queue:
        (root / store.STORE).unlink()
        with pytest.raises(DiskFault, match="removed or replaced"):
            claimed(queue)


def test_values_are_bounded_and_the_latest_stay(tmp_path: Path) -> None:
    shelf, other = Shelf(tmp_path, "pass", 10), Shelf(tmp_path, "answer", 10)
    shelf.put("0", b"no store yet")
    assert shelf.get("0") is None
    create(tmp_path)
    with closing(StoreQueue(tmp_path)):
        other.put("29", b"other")
        for number in range(30):
            shelf.put(str(number), b"%d" % number)
        assert [shelf.get(str(number)) for number in (19, 20, 29)] == [None, b"20", b"29"]
        assert other.get("29") == b"other"


def test_no_two_lists_share_a_name() -> None:
    assert len({digest(), digest(""), digest("", ""), digest("a", "bc"), digest("ab", "c")}) == 5


def test_backup_that_fails_leaves_no_file(root: Path, tmp_path: Path) -> None:
    kept = store.opened(root)
    with kept.transaction(), pytest.raises(DiskFault):  # in which SQLite copies nothing
        kept.backup(tmp_path / "copy")
    assert not (tmp_path / "copy").exists()
