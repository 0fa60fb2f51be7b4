"""Break a cluster at a given point, in every way, and count what is lost, twice, or told wrongly.

A point is something that a process says to the database or to the remote, met in its gate.  There
whoever says it, a worker mostly, is killed; or stopped until its successor has given the verdicts;
or cut off from the database for as long; or the database, or the remote, gets SIGKILL.  A second
worker can be caught while it takes over from the first: both wake once a third one is done.
"""

from __future__ import annotations

import random
import re
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial

from bench.cluster.fleet import PATIENCE, Sent, edit
from bench.cluster.gate import Trap, When
from bench.cluster.gated import GatedFleet
from bench.cluster.ground import ClusterGround
from bench.cluster.judge import Violation, judge
from bench.cluster.server import ServerOnce
from bench.console import say
from bench.git import BenchError

_TAKEOVER = 1.0
_PUSH = 3.0
"""The product's own limits in these runs, in seconds."""
_WORKERS = 3
_FILES = 3
"""Responses of one trial: two that land, one that does not or that is there already."""
AWAY = 60.0
"""Seconds without a database, in its own trial."""


@dataclass(frozen=True, slots=True)
class Point:
    """`what` is said, and `when` it is caught; `where`: by whom, and to whom."""

    name: str
    what: str
    when: When
    where: str = "worker"

    def trap(self) -> Trap:
        return Trap(re.compile(self.what.encode(), re.DOTALL), self.when)


_CLAIM, _ID = "set state = 'claimed'", "responses set id = .1 where token"
_INTEND = "when 'held' then 'ending'"
_SYNC, _PUBLISH, _RECOVER = (
    "pg_logical_emit_message",
    "set state = 'ended'",
    "responses set adopted = 0",
)
POINTS = [
    Point("before claim", _CLAIM, "before"),
    Point("after claim", _ID, "before"),
    Point("after id", _ID, "behind"),
    Point("before intend", _INTEND, "before"),
    Point("after intend", _INTEND, "behind"),
    Point("after flush", _SYNC, "behind"),
    Point("before push", "^push: asked", "before", "push"),
    Point("in mid-push", "^push: half", "before", "push"),
    Point("after push, unheard", "^push: .*all", "behind", "push"),
    Point("before publish", _PUBLISH, "before"),
    Point("after publish", _PUBLISH, "behind"),
    Point("before commit", "select tell..verdict", "behind"),
    Point("before enter", "insert into responses", "before", "feeder"),
    Point("after enter", "insert into responses", "behind", "feeder"),
    Point("before seen", "update responses set shown = 1", "before", "feeder"),
    Point("after seen", "update responses set shown = 1", "behind", "feeder"),
]
RECOVERED = Point("after take-over", _RECOVER, "behind")
_BY_NAME = {point.name: point for point in [*POINTS, RECOVERED]}
_LATER = {
    "after claim": ["after take-over", "before intend", "after intend", "before push",
                    "after push, unheard", "before publish", "after publish"],
    "after intend": ["after take-over", "before intend", "after intend", "before push",
                     "in mid-push", "after push, unheard", "before publish", "after publish"],
    "before push": ["after take-over", "before push", "in mid-push", "after push, unheard",
                    "before publish", "after publish"],
    "in mid-push": ["after take-over", "before push", "after push, unheard", "before publish"],
    "after push, unheard": ["after take-over", "before publish", "after publish"],
    "before publish": ["after take-over", "before publish", "after publish"],
}  # fmt: skip
"""Where a successor can be caught, by where its forerunner was."""


@dataclass
class Row:
    """How often it was done, and what came of the responses of that."""

    point: str
    fault: str
    times: int = 0
    ids: set[str] = field(default_factory=set)
    wrong: list[Violation] = field(default_factory=list)

    def line(self) -> str:
        kinds = Counter(one.kind for one in self.wrong)
        counts = " ".join(f"{kinds[kind]:6}" for kind in ("lost", "twice", "wrong"))
        return f"{self.point:32} {self.fault:22} {self.times:5} {counts}"


HEAD = f"{'point':32} {'fault':22} {'times':>5} {'lost':>6} {'twice':>6} {'wrong':>6}"


@dataclass
class Trials:
    """Trials on one fleet, one behind the other."""

    fleet: GatedFleet
    server: ServerOnce
    dice: random.Random
    sent: list[Sent] = field(default_factory=list)
    rows: dict[tuple[str, str], Row] = field(default_factory=dict)

    def run(self, point: str, fault: str, trial: Trial) -> None:
        """One trial with new responses, all of which have a verdict in the end."""
        self.stand()
        row = self.rows.setdefault((point, fault), Row(point, fault))
        some = self._some()
        self.sent += some
        row.ids.update(one.id for one in some)
        try:
            trial(self, some)
            self.verdicts(some)
        except BenchError as error:
            said = f"{point}, {fault}, trial {row.times + 1}: {error}\n{self._state()}"
            raise BenchError(said) from error
        finally:
            self.fleet.lay(None)
        row.times += 1

    def judge(self) -> None:
        """Give each row what is wrong with its responses by now."""
        wrong = judge(self.fleet, self.sent)
        for row in self.rows.values():
            row.wrong = [one for one in wrong if row.ids.intersection(one.of)]
        known = {id for row in self.rows.values() for id in row.ids}
        if others := [str(one) for one in wrong if not known.intersection(one.of)]:
            raise BenchError("of no response of these trials: " + "; ".join(others))

    def _state(self) -> str:
        """What everybody said last, and what the database has."""
        lines = [f"{name}: {self.fleet.log(name)}" for name in self.fleet.gates]
        for query in (
            "select number, name, epoch() - beat, alive(number) from sessions",
            "select name, session, holder(lane_key(name)) from lanes",
            "select pid, application_name, state, wait_event, pg_blocking_pids(pid), query"
            " from pg_stat_activity where datname = current_database()",
            "select number, name, state, session, feeder from responses where state <> 'ended'",
        ):
            lines += [str(row) for row in self.fleet.ask(query)]
        return "\n".join(lines)

    def stand(self) -> None:
        """Wait until everybody works."""
        names = {f"w{number}" for number in range(1, _WORKERS + 1)}
        feeders = [("feeder",) for _ in self.fleet.feeders]
        alive = (
            "select name from sessions where not gone(number, 0.9) union all select 'feeder'"
            " from pg_stat_activity where application_name = 'patchq feeder'"
        )

        def all_do() -> bool:
            there = self.fleet.ask(alive)
            return names <= {row[0] for row in there} and there.count(feeders[0]) >= len(feeders)

        self.fleet.soon(all_do, "everybody works", 0.05)

    def _some(self) -> list[Sent]:
        number = len(self.sent)
        first = edit(number, "main")
        second = edit(number + 1, "main")
        third = self.dice.choice(
            [
                edit(number + 2, "main", good=False),
                replace(first, id=f"a{number + 2:05}-main"),
                replace(first, id=f"a{number + 2:05}-main", feeder="feeder2"),
                edit(number + 2, "main"),
            ]
        )
        return [first, replace(second, feeder="feeder2"), third]

    def drop(self, some: Sequence[Sent]) -> None:
        for one in some:
            self.fleet.drop([one], one.feeder)

    def verdicts(self, some: Sequence[Sent]) -> None:
        for feeder in self.fleet.feeders:
            self.fleet.verdicts([one for one in some if one.feeder == feeder], feeder)

    def caught(self, point: Point) -> Trap:
        trap = point.trap()
        self.fleet.lay(trap, for_feeders=point.where == "feeder")
        return trap

    def meet(self, trap: Trap) -> None:
        if not trap.met.wait(PATIENCE):
            raise BenchError(f"nobody came by {trap.what.pattern!r}")

    def start(self, name: str) -> None:
        words = ("watch",) if name in self.fleet.feeders else ("worker", "--name", name)
        self.fleet.start(name, *words)

    # ------------------------------------------------------------ the faults

    def kill(self, point: Point, some: list[Sent]) -> None:
        """SIGKILL; a push that was under way goes on, at once or when others are done, or ends."""
        trap = self._at(point, some)
        self.fleet.kill(trap.who)
        late = point.where == "push" and self.dice.random() < 0.5
        if not late:
            trap.go(self.dice.random() < 0.5)
        if point.where == "feeder":
            self.start(trap.who)
        self.verdicts(some)
        trap.go(self.dice.random() < 0.7)
        if point.where != "feeder":
            self.start(trap.who)

    def freeze(self, point: Point, some: list[Sent]) -> None:
        """SIGSTOP until others are done; what was under way arrives before it wakes, or then."""
        trap = self._at(point, some)
        process = self.fleet.running[trap.who]
        process.send_signal(signal.SIGSTOP)
        if point.where == "push" and self.dice.random() < 0.3:
            time.sleep(self.dice.uniform(0, 1.5 * _TAKEOVER))
            trap.go()
        if point.where == "feeder":
            time.sleep(self.dice.uniform(0, 2 * _TAKEOVER))
        else:
            self.verdicts(some)
        if self.dice.random() < 0.5:
            trap.go()
            time.sleep(self.dice.uniform(0, 0.05))
        process.send_signal(signal.SIGCONT)
        time.sleep(self.dice.uniform(0, 0.05))
        trap.go(self.dice.random() < 0.8)

    def cut(self, point: Point, some: list[Sent]) -> None:
        """Nothing passes to the database or back until others are done."""
        trap = self._at(point, some)
        gate, _ = self.fleet.gates[trap.who]
        gate.cut()
        if point.where == "push":
            trap.go()
        if point.where == "feeder":
            time.sleep(self.dice.uniform(0, 2 * _TAKEOVER))
        else:
            self.verdicts(some)
        trap.go(self.dice.random() < 0.5)
        gate.mend()

    def database(self, point: Point, some: list[Sent]) -> None:
        """SIGKILL of its main process; what was said reached it, or did not."""
        trap = self._at(point, some)
        self.server.end(signal.SIGKILL)
        trap.go(self.dice.random() < 0.8)
        time.sleep(self.dice.choice([0.0, self.dice.uniform(0, 2 * _TAKEOVER)]))
        self.server.start()

    def remote(self, point: Point, some: list[Sent]) -> None:
        """SIGKILL of what answers the push there, at once or as it works on it."""
        trap = self._at(point, some)
        assert trap.line
        if self.dice.random() < 0.7:
            trap.go()
            time.sleep(self.dice.uniform(0, 0.012))
        gate = trap.line.gate
        gate.cut()  # nobody pushes again before it is mended
        trap.line.upstream.kill()
        for lock in (self.fleet.hub / "refs").rglob("*.lock"):  # as its next start does
            lock.unlink(missing_ok=True)
        trap.go(passes=False)
        gate.mend()

    def network(self, point: Point, some: list[Sent]) -> None:
        """The push's own connection passes nothing more; its rest may arrive when others think it
        is over, or never."""
        trap = self._at(point, some)
        time.sleep(self.dice.choice([0.0, _PUSH * self.dice.uniform(0.8, 1.4)]))
        if self.dice.random() < 0.5:
            self.verdicts(some)
        trap.go(self.dice.random() < 0.7)

    def zombies(self, first: Point, second: Point, some: list[Sent]) -> None:
        """Two are stopped, one as it takes over from the other; a third one is done before they
        wake in this order."""
        for one in self._stopped(first, second, some):
            self._wake(one)

    def zombies_back(self, first: Point, second: Point, some: list[Sent]) -> None:
        """The same, and the one that took over wakes first."""
        for one in reversed(self._stopped(first, second, some)):
            self._wake(one)

    def _stopped(self, first: Point, second: Point, some: list[Sent]) -> list[Trap]:
        trap = self._at(first, some)
        self.fleet.running[trap.who].send_signal(signal.SIGSTOP)
        other = self.caught(second)
        self.meet(other)
        self.fleet.running[other.who].send_signal(signal.SIGSTOP)
        self.verdicts(some)
        return [trap, other]

    def _wake(self, trap: Trap) -> None:
        trap.go()
        self.fleet.running[trap.who].send_signal(signal.SIGCONT)
        time.sleep(self.dice.choice([0.0, 0.3]))

    def deaths(self, first: Point, second: Point, some: list[Sent]) -> None:
        """SIGKILL, and of the successor as it takes over."""
        trap = self._at(first, some)
        other = self.caught(second)
        for one in (trap, other):
            self.meet(one)
            self.fleet.kill(one.who)
            one.go(passes=False)
        self.verdicts(some)
        for one in (trap, other):
            self.start(one.who)

    def away(self, some: list[Sent], seconds: float) -> None:
        """No database for so long, in which responses come in, and all processes but one worker are
        killed and start again."""
        self.server.end(signal.SIGKILL)
        began = time.monotonic()
        self.drop(some)
        for name in ("feeder", "w1", "w2"):
            time.sleep(seconds / 6)
            self.fleet.kill(name)
            self.start(name)
        time.sleep(max(0.0, began + seconds - time.monotonic()))
        self.server.start()

    def _at(self, point: Point, some: list[Sent]) -> Trap:
        trap = self.caught(point)
        self.drop(some)
        self.meet(trap)
        return trap


Deed = Callable[[Trials, Point, list[Sent]], None]
Trial = Callable[[Trials, list[Sent]], None]
_FAULTS: tuple[tuple[str, Deed, Sequence[str]], ...] = (
    ("kill -9", Trials.kill, ("worker", "push", "feeder")),
    ("stopped, wakes late", Trials.freeze, ("worker", "push", "feeder")),
    ("cut from database", Trials.cut, ("worker", "push", "feeder")),
    ("kill -9 of database", Trials.database, ("worker", "push", "feeder")),
    ("kill -9 of remote", Trials.remote, ("push",)),
    ("push cut", Trials.network, ("push",)),
)


def points(
    ground: ClusterGround, times: int, seed: int, only: str = "", away: float = AWAY
) -> list[Row]:
    """Each fault at each point so many times; `only` is a pattern of rows, `POINT, FAULT`."""
    if ground.server is None:
        raise BenchError("--points kills its database, so it takes no other")
    rows: list[Row] = []
    for number, (named, trials) in enumerate(_plan(away)):
        wanted = [one for one in trials if re.search(only, f"{one[0]}, {one[1]}")]
        if not wanted:
            continue
        dice = random.Random(f"{seed} {named}")
        config = f", takeover_seconds: {_TAKEOVER:g}, push_timeout_seconds: {_PUSH:g}"
        fleet = GatedFleet(
            ground.room / f"points{number}",
            ground.command,
            ground.database,
            files=times * len(wanted) * _FILES,
            config=config,
            feeders=("feeder", "feeder2"),
        )
        with closing(fleet):
            fleet.workers(_WORKERS)
            found = Trials(fleet, ground.server, dice)
            for point, fault, trial in wanted:
                for _ in range(times):
                    found.run(point, fault, trial)
                found.judge()
                say(found.rows[point, fault].line())
            found.stand()
            fleet.stop(sorted(fleet.running))
            found.judge()
            rows += found.rows.values()
    return rows


def _plan(away: float) -> Iterator[tuple[str, list[tuple[str, str, Trial]]]]:
    """The trials of each fleet, with their points and faults."""
    for fault, deed, wheres in _FAULTS:
        trials = [(it.name, fault, _at(deed, it)) for it in POINTS if it.where in wheres]
        yield fault, trials
    twice = "any, and at take-over"
    deaths = [(twice, "two kill -9", _at_two(Trials.deaths))]
    zombies = [
        (twice, f"two stopped, {name} wakes first", _at_two(deed))
        for name, deed in (("first", Trials.zombies), ("last", Trials.zombies_back))
    ]
    yield "deaths", deaths
    yield "zombies", zombies
    trial = partial(Trials.away, seconds=away)
    yield "away", [("with starts meanwhile", f"database away {away:g} s", trial)]


def _at(deed: Deed, point: Point) -> Trial:
    return lambda trials, some: deed(trials, point, some)


def _at_two(deed: Callable[[Trials, Point, Point, list[Sent]], None]) -> Trial:
    return lambda trials, some: deed(trials, *_two(trials.dice), some)


def _two(dice: random.Random) -> tuple[Point, Point]:
    first = dice.choice(list(_LATER))
    return _BY_NAME[first], _BY_NAME[dice.choice(_LATER[first])]
