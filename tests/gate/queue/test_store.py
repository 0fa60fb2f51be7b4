"""What a power cut, a crash or a careless hand does to the store."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

import pytest

from patchq.gate.errors import Busy, DiskFault, LaneLost
from patchq.gate.queue import Claim, store
from patchq.gate.queue.engine import StoreQueue
from patchq.gate.queue.events import Events
from patchq.gate.queue.spool import create
from patchq.gate.report.document import plain, with_state
from patchq.gate.report.schema import Report
from tests.helpers.outcomes import Outcome, to_json
from tests.helpers.stores import sql


@pytest.fixture
def root(tmp_path: Path) -> Path:
    create(tmp_path)
    return tmp_path


def reopened(root: Path) -> StoreQueue:
    queue = StoreQueue(root, settle_seconds=0)
    queue.acquire()
    return queue


def claimed(queue: StoreQueue, name: str = "x.md") -> Claim:
    queue.submit(b"text", name)
    (claim,) = queue.claim(1)
    return claim


def report(claim: Claim, id: str = "x") -> Report:
    return to_json(Outcome(id, "applied", claim.source, "review"))


def publish(queue: StoreQueue) -> Claim:
    claim = claimed(queue)
    queue.publish(claim, report(claim, queue.reserve(claim, "x")), "# page\n")
    return claim


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
        claim, kept = claimed(queue), claimed(queue, "y.md")
        for each, id in ((claim, "x"), (kept, like_a_claim)):
            held = with_state(report(each, queue.reserve(each, id)), "held")
            queue.hold(each, held, "# waits\n")
        sql(root, "delete from responses where number = 1")
        sql(root, "delete from papers where number = 1")
    (root / "active/x.report.md.tmp").write_bytes(b"# pa")
    (root / f"active/{claim.token}.x.md.tmp").write_bytes(b"te")
    with closing(reopened(root)) as queue:
        found = {each.token: each for each in queue.recover()}
        assert {token: each.held for token, each in found.items()} == {
            claim.token: False,
            kept.token: True,
        }
        back = found[claim.token]
        queue.publish(back, report(back, queue.reserve(back, "x")), "# page\n")
        assert {path.name for path in (root / "active").iterdir()} == {
            f"{kept.token}.y.md",
            f"{like_a_claim}.report.json",
            f"{like_a_claim}.report.md",
        }


def test_verdict_without_its_files_is_shown_again(root: Path) -> None:
    with closing(reopened(root)) as queue:
        publish(queue)
    for path in root.glob("done/*"):
        path.write_bytes(b"")
    with closing(reopened(root)) as queue:
        assert queue.recover() == []
        assert (root / "done/x.md").read_bytes() == b"text"
        assert json.loads((root / "done/x.report.json").read_bytes()) == plain(queue.load("x"))
        assert (root / "done/x.report.md").read_text() == "# page\n"


def test_files_count_as_shown_only_after_a_later_flush(root: Path) -> None:
    def shown() -> list[int]:
        return [row[0] for row in sql(root, "select shown from responses order by number")]

    with closing(reopened(root)) as queue:
        publish(queue)
        claimed(queue, "y.md")
        assert shown() == [0, 1]
        queue.sync()
        claimed(queue, "z.md")
        assert shown() == [1, 1, 1]


def test_verdict_comes_with_its_event_or_not_at_all(root: Path) -> None:
    with closing(reopened(root)) as queue:
        claim = claimed(queue)
        queue.reserve(claim, "x")
        with suppress(KeyboardInterrupt), queue.together():
            queue.publish(claim, report(claim), "")
            raise KeyboardInterrupt
        assert queue.load("x") is None
        assert [event["kind"] for event in Events(root, "0").read()] == ["claimed"]
        assert list((root / "done").iterdir()) == []
        queue.publish(claim, report(claim), "")
        kinds = [event["kind"] for event in Events(root, "0").read()]
        assert kinds == ["claimed", "applied"]


def test_who_was_taken_over_changes_nothing(root: Path) -> None:
    with closing(reopened(root)) as queue:
        claim = claimed(queue)
        queue.reserve(claim, "x")
        sql(root, "update responses set session = 99")
        for step in (queue.intend, queue.publish, queue.hold):
            with pytest.raises(LaneLost):
                step(claim, report(claim), "# page\n")
        assert queue.load("x") is None


def test_events_go_on_in_a_store_that_is_made_again(root: Path) -> None:
    with closing(reopened(root)) as queue:
        publish(queue)
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


def test_locked_store_is_busy_and_nothing_is_lost(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "BUSY_SECONDS", 0.05)
    with closing(reopened(root)) as queue, closing(sqlite3.connect(root / store.STORE)) as other:
        queue.submit(b"text", "x.md")
        other.execute("begin immediate")
        with pytest.raises(Busy, match="locked"):
            queue.claim(1)
        other.rollback()
        assert [claim.data for claim in queue.recover()] == [b"text"]


def test_store_that_is_removed_under_a_process_stops_it(root: Path) -> None:
    with closing(reopened(root)) as queue:
        (root / store.STORE).unlink()
        with pytest.raises(DiskFault, match="removed or replaced"):
            claimed(queue)


def test_statements_use_the_indices(root: Path) -> None:
    """A partial index counts only where its condition stands in the statement word for word."""
    create(root)
    with closing(StoreQueue(root)):
        plans = {
            "responses_state": "select number from responses where state in ('claimed', 'held')",
            "responses_sha256": "select id from responses r where sha256 = 'x'",
            "responses_ending": "select id from responses where ending is not null and ending < 9"
            " order by ending desc limit 9",
            "responses_shown": "select number from responses where shown = 0 order by number",
        }
        for index, statement in plans.items():
            plan = sql(root, f"explain query plan {statement}")
            assert any(index in row[-1] for row in plan), (index, plan)
