"""What a killed process did not tell is told once, and who starts often reads little for that."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from msgspec import convert
from msgspec.structs import replace

from patchq.core.model.values import Outcome, Source
from patchq.gate.queue import Claim, journal, untold
from patchq.gate.queue.directory import DirectoryQueue
from patchq.gate.queue.journal import Events
from patchq.gate.queue.layout import create
from patchq.gate.queue.spool import Folder, encode
from patchq.gate.report.document import to_json
from patchq.gate.report.schema import Report, kind_of

LIVES = 40


class Killed(BaseException):
    """The process ends here."""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    create(tmp_path / "queue")
    return tmp_path / "queue"


def report(id: str, state: Any, source: Source) -> Report:
    return to_json(Outcome(id, state, source, "review"))


def drop(root: Path, *names: str) -> None:
    for name in names:
        (root / f"inbox/{name}.md").write_text(name)


def land(queue: DirectoryQueue, claims: Sequence[Claim], state: str) -> list[Report]:
    """Give the claims their verdicts as a group, in the order that survives power cuts."""
    ids = [claim.id or queue.reserve(claim, Path(claim.source.name).stem) for claim in claims]
    made = [report(id, state, claim.source) for id, claim in zip(ids, claims, strict=True)]
    for claim, one in zip(claims, made, strict=True):
        queue.intend(claim, one, "page")
    queue.enlist([(claim, one.id) for claim, one in zip(claims, made, strict=True)])
    for claim, one in zip(claims, made, strict=True):
        queue.publish(claim, one, "page")
    queue.tell()
    return made


def told(root: Path) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for event in Events(root, "").read():
        if event["kind"] != "claimed":
            found.setdefault(event["batch"], []).append(event["kind"])
    return found


def reports(root: Path) -> Iterator[Report]:
    for folder in ("active", "done", "rejected"):
        for path in (root / folder).glob("*.report.json"):
            yield convert(json.loads(path.read_bytes()), Report)


@pytest.fixture
def killer(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Ends the process before so many more of its writes."""
    left = [-1]

    def guarded(write: Callable[..., Any]) -> Callable[..., Any]:
        def guard(*args: Any, **more: Any) -> Any:
            left[0] -= 1
            if left[0] == 0:
                raise Killed
            return write(*args, **more)

        return guard

    for name in ("move", "append", "put", "write"):
        monkeypatch.setattr(Folder, name, guarded(getattr(Folder, name)))
    monkeypatch.setattr(journal, "_write", guarded(journal._write))

    def kill_after(writes: int) -> None:
        left[0] = writes

    return kill_after


def life(root: Path, number: int, rng: random.Random) -> None:
    """A daemon's, with what a command does beside it."""
    queue = DirectoryQueue(root)
    try:
        queue.acquire()
        left = queue.recover()
        waiting = [claim for claim in left if claim.held]
        land(queue, [claim for claim in left if not claim.held], "applied")
        for claim in waiting[: rng.randrange(3)]:
            land(queue, [claim], "rejected")
        drop(root, *(f"b{number}-{n}" for n in range(rng.choice((1, 3, 20)))))
        claims = queue.claim(50)
        for claim in claims[:1]:
            queue.hold(claim, report(queue.reserve(claim, f"h{number}"), "held", claim.source), "p")
        made = land(queue, claims[1:], "proposed")
        for one in made[:2] if number % 7 == 6 else ():
            DirectoryQueue(root).rewrite(replace(one, state="accepted"), "page")
    finally:
        queue.close()


@pytest.mark.parametrize("seed", range(2))
def test_each_change_is_told_once_whoever_is_killed_when(
    root: Path, seed: int, killer: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(untold, "_WORTH", 4)
    rng = random.Random(seed)
    for number in range(LIVES):
        killer(rng.choice((-1, rng.randrange(1, 40), rng.randrange(1, 160))))
        with suppress(Killed):
            life(root, number, rng)
    killer(-1)
    queue = DirectoryQueue(root)
    queue.acquire()
    queue.close()
    known = told(root)
    for one in reports(root):
        kinds = known.get(one.id, [])
        assert kinds[-1:] == [kind_of(one)]
        assert len(set(kinds)) == len(kinds)


def test_a_verdict_is_told_though_its_process_and_the_next_are_killed(
    tmp_path: Path, killer: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first process at every third write, the second at every one, and none leaves out a
    summary."""
    monkeypatch.setattr(untold, "_WORTH", 0)
    ends = 0
    for first in range(3, 30, 3):
        second, killed = 0, True
        while killed:
            second += 1
            root = tmp_path / f"{first}-{second}"
            create(root)
            drop(root, "a", "b")
            killer(first)
            ends += work_off(root)
            killer(second)
            ends += (killed := work_off(root))
            killer(-1)
            work_off(root)
            assert told(root) == {"a": ["applied"], "b": ["applied"]}
    assert ends > 100


def work_off(root: Path) -> bool:
    """Give all their verdicts; whether the process was killed."""
    queue = DirectoryQueue(root)
    try:
        queue.acquire()
        land(queue, queue.recover() + queue.claim(10), "applied")
        return False
    except Killed:
        return True
    finally:
        queue.close()


@pytest.fixture
def proposed(root: Path, monkeypatch: pytest.MonkeyPatch) -> Report:
    """The report of a batch that waits, and is told of before a summary."""
    monkeypatch.setattr(untold, "_WORTH", 0)
    queue = DirectoryQueue(root)
    queue.acquire()
    drop(root, "a")
    (made,) = land(queue, queue.claim(1), "proposed")
    queue.close()
    start(root)
    assert '"told":' in (root / journal.EVENTS).read_text()
    return made


def start(root: Path) -> None:
    queue = DirectoryQueue(root)
    queue.acquire()
    queue.close()


def test_what_began_before_a_start_and_is_seen_behind_it_is_told(
    root: Path, proposed: Report, killer: Callable[[int], None]
) -> None:
    """A command that says what it means to do, waits while daemons start, and dies in the end."""
    command = DirectoryQueue(root)
    with (
        suppress(Killed),
        command._told(proposed, replace(proposed, state="accepted"), marked=False),
    ):
        start(root)
        start(root)
        command._done.put("a.report.json", encode(replace(proposed, state="accepted")))
        killer(1)
    killer(-1)
    assert told(root) == {"a": ["proposed"]}
    for _ in range(2):
        start(root)
        assert told(root) == {"a": ["proposed", "accepted"]}


def test_what_never_came_to_be_is_not_told_behind_a_summary(
    root: Path, proposed: Report, killer: Callable[[int], None]
) -> None:
    killer(2)
    with pytest.raises(Killed):
        DirectoryQueue(root).rewrite(replace(proposed, state="accepted"), "page")
    killer(-1)
    for _ in range(3):
        start(root)
    assert told(root) == {"a": ["proposed"]}


def looked_at(queue: DirectoryQueue, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many lines of the journal a start looks through."""
    lines = list[object]()
    take = untold._LookBack._take

    def counted(look: untold._LookBack, line: journal.Entry) -> None:
        lines.append(line)
        take(look, line)

    with monkeypatch.context() as counting:
        counting.setattr(untold._LookBack, "_take", counted)
        queue.acquire()
    queue.close()
    return len(lines)


def test_a_start_looks_at_what_came_since_the_one_before(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(12):
        queue = DirectoryQueue(root)
        assert looked_at(queue, monkeypatch) < 4 * untold._WORTH
        queue.acquire()
        drop(root, *(f"b{number}-{n}" for n in range(60)))
        claims = queue.claim(60)
        land(queue, claims, "applied")
        queue.close()


def test_who_starts_and_finds_nothing_new_writes_nothing(root: Path) -> None:
    for number in range(40):
        queue = DirectoryQueue(root)
        queue.acquire()
        drop(root, f"b{number}")
        land(queue, queue.claim(1), "applied")
        queue.close()
    size = (root / journal.EVENTS).stat().st_size
    for _ in range(3):
        queue = DirectoryQueue(root)
        queue.acquire()
        queue.close()
    assert (root / journal.EVENTS).stat().st_size == size


def test_a_summary_of_an_earlier_start_of_the_machine_counts_for_nothing(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a power cut, which took the lines of a verdict, and not those behind them."""
    monkeypatch.setattr(untold, "_WORTH", 0)
    queue = DirectoryQueue(root)
    queue.acquire()
    drop(root, "a", "b")
    land(queue, queue.claim(2), "applied")
    queue.close()
    queue.acquire()
    queue.close()
    path = root / journal.EVENTS
    assert '"told":' in path.read_text()
    kept = [
        line for line in path.read_text().splitlines(True) if '"applied","batch":"b"' not in line
    ]
    path.write_text("".join(kept))
    queue.acquire()
    queue.close()
    assert "b" not in told(root)
    monkeypatch.setattr(untold, "boot", lambda: "another")
    queue.acquire()
    queue.close()
    assert told(root) == {"a": ["applied"], "b": ["applied"]}
