"""What every queue promises, whatever keeps it: one contract, run for every engine."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Protocol
from unittest.mock import Mock

import pytest

from patchq.core.model.values import State
from patchq.gate.errors import Busy, DiskFault
from patchq.gate.queue.engine import StoreQueue
from patchq.gate.queue.ledger import QueueEngine
from patchq.gate.queue.spool import create
from tests.helpers.claims import claimed, finish, hold, report

Known = Callable[[str], bool]


class Open(Protocol):
    """Opens the same queue again, as another process would."""

    def __call__(self, is_known: Known = ...) -> QueueEngine: ...


def sqlite(root: Path, request: pytest.FixtureRequest) -> Open:
    create(root)
    return partial(StoreQueue, root, settle_seconds=0)


def postgres(root: Path, request: pytest.FixtureRequest) -> Open:
    from patchq.gate.queue.postgres.engine import PostgresQueue  # its driver is an extra

    return partial(PostgresQueue, request.getfixturevalue("database"))


ENGINES = [sqlite, postgres]


@pytest.fixture(params=ENGINES, ids=lambda engine: engine.__name__)
def again(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Open]:
    opened: list[QueueEngine] = []
    engine: Open = request.param(tmp_path / "queue", request)

    def another(is_known: Known = lambda id: False) -> QueueEngine:
        opened.append(engine(is_known=is_known))
        return opened[-1]

    yield another
    for queue in opened:
        queue.close()


@pytest.fixture
def queue(again: Open) -> QueueEngine:
    queue = again()
    queue.acquire()
    return queue


def test_a_response_comes_out_as_it_went_in(queue: QueueEngine) -> None:
    assert queue.submit(b"a\0b\r\n", "fix.md") == "fix.md"
    [claim] = queue.claim(10)
    assert claim.data == b"a\0b\r\n"
    assert claim.source.name == "fix.md"
    assert claim.source.sha256 == sha256(b"a\0b\r\n").hexdigest()
    assert claim.source.size == 5
    assert (claim.problem, claim.id, claim.intended, claim.held) == (None, None, None, False)


def test_what_is_forgotten_leaves_its_id_and_its_source(queue: QueueEngine, again: Open) -> None:
    assert queue.ended("fix") is None
    claim = claimed(queue)
    id = finish(queue, claim)
    kept = finish(queue, claimed(queue, b"other"), "other", "rejected")
    queue.store.run("update responses set ended = ended + 10000")  # as a later state does
    assert abs((queue.ended(id) or 0) - time.time()) < 1000
    queue.forget(id)
    queue.forget(id)
    queue.forget("nobody")
    assert (queue.load(id), queue.body(id), queue.ended(id)) == (None, None, None)
    assert list(queue.newest()) == [kept, id]
    assert queue.body(kept) == b"other"
    assert list(queue.by_source(claim.source.sha256)) == [id]
    assert queue.reserve(claimed(queue), "fix") == "fix-2"


def test_the_newest_come_first_whatever_was_forgotten(queue: QueueEngine) -> None:
    ids = [finish(queue, claimed(queue, b"%d" % n, "fix.md")) for n in range(4)]
    held = claimed(queue, b"held", "fix.md")
    hold(queue, held)
    queue.forget(*ids[:2])
    assert list(queue.newest()) == ["fix-5", *reversed(ids)]
    past = queue.past("fix")
    assert past
    assert (past.state, past.code) == ("applied", None)
    assert abs(past.at - time.time()) < 1000
    assert [queue.past(id) for id in (ids[3], "fix-5", "nobody")] == [None] * 3


def test_claims_come_oldest_first_and_no_more_than_asked(queue: QueueEngine) -> None:
    for number in range(5):
        queue.submit(b"%d" % number, f"{9 - number}.md")
    assert [claim.data for claim in queue.claim(2)] == [b"0", b"1"]
    assert queue.claim(0) == []
    assert [claim.data for claim in queue.claim(9)] == [b"2", b"3", b"4"]
    assert queue.claim(9) == []


def test_an_id_is_never_given_twice(queue: QueueEngine) -> None:
    claims = [claimed(queue, b"%d" % number) for number in range(12)]
    ids = [queue.reserve(claim, "fix") for claim in claims]
    assert ids == ["fix", *(f"fix-{number}" for number in range(2, 13))]
    assert [queue.reserve(claim, "fix") for claim in claims] == ids


def test_an_id_stays_used_after_its_verdict_and_after_a_restart(again: Open) -> None:
    first = again()
    assert finish(first, claimed(first)) == "fix"
    first.close()
    second = again()
    assert finish(second, claimed(second)) == "fix-2"


def test_an_id_that_the_repository_knows_is_taken(again: Open) -> None:
    queue = again(is_known=lambda id: id in ("fix", "fix-2"))
    assert queue.reserve(claimed(queue), "fix") == "fix-3"


def test_a_numbered_id_stays_within_100_bytes(queue: QueueEngine) -> None:
    long = "x" * 100
    assert queue.reserve(claimed(queue), long) == long
    assert queue.reserve(claimed(queue), long) == "x" * 98 + "-2"


def test_no_body_can_have_the_name_of_a_report(queue: QueueEngine) -> None:
    plain, tricky = claimed(queue, b"1", "x.json"), claimed(queue, b"2", "x.report.json")
    assert queue.reserve(tricky, "x.report") == "x.report-2"
    assert queue.reserve(plain, "x") == "x"
    queue.publish(tricky, report(tricky, "x.report-2"))
    queue.publish(plain, report(plain, "x"))
    assert queue.load("x") == report(plain, "x")
    assert queue.body("x.report-2") == b"2"


@pytest.mark.parametrize("state", ["applied", "rejected"])
def test_a_verdict_ends_the_claim(again: Open, state: State) -> None:
    queue = again()
    claim = claimed(queue)
    id = finish(queue, claim, state=state)
    assert queue.load(id) == report(claim, id, state)
    assert queue.body(id) == b"text"
    assert list(queue.newest()) == [id]
    queue.close()
    assert again().recover() == []


def test_a_dead_owners_claims_come_back_in_order(again: Open) -> None:
    dead = again()
    claims = [claimed(dead, b"%d" % number, f"{number}.md") for number in range(3)]
    id = dead.reserve(claims[1], "fix")
    dead.intend(claims[1], report(claims[1], id, commit="c"))
    reserved = dead.reserve(claims[2], "fix")
    dead.close()
    queue = again()
    back = queue.recover()
    assert [claim.data for claim in back] == [b"0", b"1", b"2"]
    assert [claim.source for claim in back] == [claim.source for claim in claims]
    assert [claim.id for claim in back] == [None, "fix", None]
    assert [claim.intended for claim in back] == [None, report(claims[1], id, commit="c"), None]
    assert queue.reserve(back[2], "fix") == reserved == "fix-2"
    assert queue.recover() == []
    for claim in back:
        finish(queue, claim)
    queue.close()
    assert again().recover() == []


def test_each_process_that_decides_on_a_response_counts_once(again: Open) -> None:
    dead = again()
    claimed(dead)
    dead.close()
    queue = again()
    [claim] = queue.recover()
    with pytest.MonkeyPatch.context() as broken:
        broken.setattr(queue.store, "each", Mock(side_effect=Busy("locked")))
        with pytest.raises(Busy):
            queue.attempt([claim])
    queue.attempt([claim])
    queue.attempt([claim])
    queue.close()
    [back] = again().recover()
    assert (claim.deaths, back.deaths) == (0, 1)


def test_a_held_batch_waits_with_its_report(again: Open) -> None:
    queue = again()
    claim = claimed(queue)
    queue.intend(claim, report(claim, queue.reserve(claim, "fix")))
    queue.hold(claim, report(claim, "fix", "held"))
    assert queue.load("fix") == report(claim, "fix", "held")
    assert queue.body("fix") == b"text"
    assert list(queue.newest()) == ["fix"]
    assert list(queue.by_source(claim.source.sha256)) == ["fix"]
    [waiting] = queue.held()
    assert (waiting.held, waiting.id, waiting.data) == (True, "fix", b"text")
    assert waiting.intended is None
    since = waiting.held_since
    assert since is not None

    queue.hold(waiting, report(claim, "fix", "held", diff="+a\n"))
    queue.close()
    later = again()
    [back] = later.recover()
    assert (back.held, back.held_since, back.id) == (True, since, "fix")
    assert later.held() == [back]
    assert later.recover() == []

    later.publish(back, report(back, "fix"))
    assert later.load("fix") == report(claim, "fix")
    assert later.held() == []
    assert list(later.newest()) == ["fix"]
    assert list(later.by_source(claim.source.sha256)) == ["fix"]


def test_of_two_who_decide_on_a_held_batch_one_wins(again: Open) -> None:
    daemon, command = again(), again()
    claim = claimed(daemon)
    hold(daemon, claim)
    [mine], [theirs] = daemon.held(), command.held()
    command.publish(theirs, report(theirs, "fix", "discarded"))
    with pytest.raises(Busy):
        daemon.publish(mine, report(mine, "fix"))
    assert daemon.load("fix") == report(claim, "fix", "discarded")
    assert daemon.held() == []


def test_who_means_to_end_a_held_batch_is_alone_with_it(again: Open) -> None:
    daemon, command = again(), again()
    claim = claimed(daemon)
    hold(daemon, claim)
    [mine], [theirs] = daemon.held(), command.held()
    daemon.intend(mine, report(mine, "fix"))
    with pytest.raises(Busy):
        command.publish(theirs, report(theirs, "fix", "discarded"))
    [still] = command.held()
    assert (still.held, still.held_since) == (True, mine.held_since)
    daemon.hold(mine, report(mine, "fix", "held"))  # it did not land after all
    [again_held] = command.held()
    assert again_held == mine
    command.publish(again_held, report(again_held, "fix", "discarded"))
    with pytest.raises(Busy):
        daemon.intend(mine, report(mine, "fix"))
    assert daemon.load("fix") == report(claim, "fix", "discarded")


def test_a_choice_stays_with_its_response(again: Open) -> None:
    daemon, command = again(), again()
    daemon.acquire()
    choice = {"edits": ["1"], "target": None}
    claim = command.adopt(b"text", "fix.md", choice)
    assert claim.choice == choice
    command.close()
    [back] = daemon.recover()
    assert back.choice == choice
    hold(daemon, back)
    [held] = daemon.held()
    assert held.choice == choice
    finish(daemon, held)
    assert finish(daemon, claimed(daemon)) == "fix-2"
    assert daemon.recover() == []


def test_an_adopted_response_is_left_alone_while_its_owner_lives(again: Open) -> None:
    daemon, command = again(), again()
    daemon.acquire()
    claim = command.adopt(b"text", "-")
    assert (claim.data, claim.source.name, claim.source.size) == (b"text", "-", 4)
    assert daemon.recover() == []
    command.close()
    [back] = daemon.recover()
    assert (back.data, back.source) == (b"text", claim.source)


def test_an_adopted_response_comes_back_once_its_owner_leaves_it(again: Open) -> None:
    daemon = again()
    daemon.acquire()
    claim = daemon.adopt(b"text", "-")
    daemon.reserve(claim, "fix")
    daemon.release()
    daemon.acquire()
    [back] = daemon.recover()
    assert (back.token, daemon.reserve(back, "other")) == (claim.token, "fix")


def test_an_adopted_response_that_is_held_passes_to_the_daemon(again: Open) -> None:
    daemon, command = again(), again()
    daemon.acquire()
    claim = command.adopt(b"text", "fix.md")
    hold(command, claim)
    assert daemon.held() == []
    assert [held.id for held in command.held()] == ["fix"]
    command.close()
    assert [held.id for held in daemon.held()] == ["fix"]


def test_later_states_replace_the_report(queue: QueueEngine) -> None:
    claim = claimed(queue)
    id = finish(queue, claim, state="proposed")
    queue.rewrite(report(claim, id, "accepted"))
    assert queue.load(id) == report(claim, id, "accepted")
    assert queue.body(id) == b"text"
    with pytest.raises(DiskFault):
        queue.rewrite(report(claim, "nobody", "accepted"))


@pytest.mark.parametrize("id", ["nobody", "../fix", "a\0b"])
def test_an_unknown_id_has_nothing(queue: QueueEngine, id: str) -> None:
    assert queue.load(id) is None
    assert queue.body(id) is None
