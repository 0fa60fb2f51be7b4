"""Crash patchq everywhere: killed, refused by the disk, or without power, at every system call that
changes something, and look at what the next start makes of it.

Exit 0 when nothing was violated, and every negative control was caught; 1 otherwise; 2 when the
bench cannot be used; 3 when it could not be run to its end.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.pool import Pool
from pathlib import Path

from bench.console import command_line, say, work_option
from bench.crash import children, power, strace
from bench.crash.cases import CASES
from bench.crash.states import KINDS, Outcome, Points, Room, State, all_states, parse
from bench.git import HERMETIC

_CONTROLS = {
    "barrier": "power",
    "shown": "power",
    "healing": "kill",
    "intent": "kill",
    "dedupe": "kill",
}
"""What to run with each safeguard switched off."""
_SHOWN = 20


def arguments(words: Sequence[str] | None) -> argparse.Namespace:
    parser = command_line("bench.crash", __doc__)
    add = parser.add_argument
    add("--sample", type=int, metavar="N", help="only so many states, chosen by --seed")
    add("--only", choices=KINDS, help="one kind of crash")
    add("--case", choices=CASES, help="one way to land")
    add("--state", metavar="ID", action="append", help="this state and no other")
    add("--controls", type=int, default=200, metavar="N",
        help="states to notice a missing safeguard in (200); 0: not tried")  # fmt: skip
    add("--without", choices=children.SAFEGUARDS, default="", help="sweep with a safeguard off")
    add("--seconds", type=float, metavar="S", help="end each sweep after that time")
    add("--jobs", type=int, default=os.cpu_count(), metavar="N")
    add("--seed", type=int, default=0, metavar="N")
    work_option(parser, "where it works (in memory, for root)")
    return parser.parse_args(words)


# ---------------------------------------------------------------- the workers

_room: Room


def _settle_in(work: Path, without: str) -> None:
    global _room
    _room = Room(work / f"worker-{os.getpid()}", without)
    _room.path.mkdir()
    power.own_namespace()
    os.nice(5)


def _live_through(state: State) -> Outcome:
    return _room.live_through(state)


@contextmanager
def _workers(jobs: int, work: Path, without: str) -> Iterator[Pool]:
    """Processes that have loaded patchq already; `without` a safeguard, if any."""
    with multiprocessing.get_context("fork").Pool(jobs, _settle_in, (work, without)) as pool:
        yield pool
    pool.join()
    for room in work.glob("worker-*"):
        shutil.rmtree(room, ignore_errors=True)


# ---------------------------------------------------------------- counting


@dataclass
class Tally:
    """What came of many states."""

    lived: Counter[str] = field(default_factory=Counter)
    violated: list[Outcome] = field(default_factory=list)
    missed: int = 0
    untidy: list[Outcome] = field(default_factory=list)

    def add(self, outcome: Outcome) -> None:
        state = outcome.state
        kind = f"power, {state.system}, {state.how}" if state.kind == "power" else state.kind
        if len(state.points) > 1:
            kind += f", {len(state.points)} in a row"
        elif state.kind == "error":
            kind += f", {state.how}"
        self.missed += not outcome.met
        self.lived[kind] += outcome.met
        if outcome.violations:
            self.violated.append(outcome)
        elif outcome.untidy:
            self.untidy.append(outcome)


def sweep(states: Sequence[State], args: argparse.Namespace, work: Path, without: str) -> Tally:
    """Live through the states; with a safeguard switched off, until that is noticed."""
    tally, began = Tally(), time.monotonic()
    with _workers(args.jobs, work, without) as pool:
        for number, outcome in enumerate(pool.imap_unordered(_live_through, states), 1):
            tally.add(outcome)
            _progress(without, number, len(states), len(tally.violated), began)
            if outcome.violations and not without:
                _accuse(outcome)
            over = args.seconds and time.monotonic() - began > args.seconds
            if over or (without and outcome.violations):
                break
    if sys.stderr.isatty():
        say("")
    return tally


def _progress(without: str, number: int, of: int, violated: int, began: float) -> None:
    if not sys.stderr.isatty() and number % 250 and number != of:
        return
    spent = time.monotonic() - began
    left = spent / number * (of - number)
    bar = "#" * (30 * number // of)
    what = f"without {without}" if without else "crashing"
    line = f"{what} [{bar:30}] {number}/{of}, {violated} violated, {left:.0f} s left  "
    print(line, end="\r" if sys.stderr.isatty() else "\n", file=sys.stderr, flush=True)


def _accuse(outcome: Outcome) -> None:
    say(f"\nVIOLATED {outcome.state}")
    for violation in outcome.violations[:_SHOWN]:
        say(f"  {violation}")
    say("  | " + outcome.said.strip().replace("\n", "\n  | "))


def summary(tally: Tally, seconds: float) -> str:
    rows = [f"{kind:34} {count:6}" for kind, count in sorted(tally.lived.items())]
    total = sum(tally.lived.values())
    rows.append(f"{'states':34} {total:6}   in {seconds:.0f} s")
    if tally.missed:
        rows.append(f"{'points that were not met':34} {tally.missed:6}")
    if tally.untidy:
        names = ", ".join(str(outcome.state) for outcome in tally.untidy[:3])
        rows.append(f"{'ended in a traceback, recovered':34} {len(tally.untidy):6}   {names}")
    rows.append(f"{'VIOLATED':34} {len(tally.violated):6}")
    rows += [f"  --state {outcome.state}" for outcome in tally.violated[:_SHOWN]]
    return "\n".join(rows)


# ---------------------------------------------------------------- the whole


def main(words: Sequence[str] | None = None) -> int:
    args = arguments(words)
    try:
        strace.require()
        wanted = [parse(name) for name in args.state or ()]
    except (strace.NoStrace, ValueError) as error:
        say(f"bench.crash: {error}")
        return 2
    with tempfile.TemporaryDirectory(
        prefix="patchq-crash-", dir=_place(args), ignore_cleanup_errors=True
    ) as scratch:
        work = Path(scratch)
        os.environ.update(HERMETIC | {"HOME": str(work), "TMPDIR": str(work)})
        try:
            _load(work)
            return _sweeps(args, wanted, work)
        except (RuntimeError, strace.NoStrace, power.NoPower) as error:
            say(f"bench.crash: {error}")
            return 3


def _place(args: argparse.Namespace) -> Path | None:
    place: Path | None = args.work
    if place is None:
        return power.memory()
    power.own_namespace()
    return place


def _sweeps(args: argparse.Namespace, wanted: list[State], work: Path) -> int:
    systems = _systems(args, wanted, work)
    everything = [] if wanted else _plan(args, work, systems)
    states = wanted or everything[: args.sample]
    if not states:
        say("bench.crash: this machine offers nothing of what was asked for")
        return 2
    began = time.monotonic()
    tally = sweep(states, args, work, args.without)
    print(summary(tally, time.monotonic() - began), flush=True)
    noticed = wanted or args.without or _controls(everything, args, work)
    return int(bool(tally.violated) or not noticed)


def _systems(args: argparse.Namespace, wanted: Sequence[State], work: Path) -> list[str]:
    found = []
    for system in power.SYSTEMS if args.only in (None, "power") else ():
        try:
            power.require(system, work)
            found.append(system)
        except power.NoPower as reason:
            say(f"no power cuts on {system}: {reason}")
    missing = {state.system for state in wanted} - {"plain", *found}
    if missing:
        raise RuntimeError(f"this machine cannot cut the power of {', '.join(sorted(missing))}")
    return found


def _plan(args: argparse.Namespace, work: Path, systems: Sequence[str]) -> list[State]:
    """All states that were asked for, in an order of chance."""
    rng = random.Random(args.seed)
    states = list(all_states(_record(args, work), systems, rng))
    kind = {"errors": "error"}.get(args.only, args.only)
    states = [state for state in states if kind in (None, state.kind)]
    rng.shuffle(states)
    say(f"{len(states)} states")
    return states


def _record(args: argparse.Namespace, work: Path) -> Points:
    room = Room(work / "record")
    room.path.mkdir()
    points = {}
    for name in [args.case] if args.case else CASES:
        points[name] = room.record(CASES[name])
        say(f"{name}: {sum(point.changes for point in points[name])} calls change something")
    shutil.rmtree(room.path)
    return points


def _load(work: Path) -> None:
    """Import what the cases will need, before anything is forked."""
    for name in ("auto", "accept"):
        repo = work / "load" / name
        CASES[name].prepare(repo, work / "load.txt")
        children.load(CASES[name].words(repo), work)
    shutil.rmtree(work / "load")


def _controls(everything: Sequence[State], args: argparse.Namespace, work: Path) -> bool:
    """Whether the sweep notices that a safeguard is missing, for each of them."""
    noticed = True
    for safeguard, kind in _CONTROLS.items() if args.controls else ():
        states = [state for state in everything if state.kind == kind][: args.controls]
        if not states:
            print(f"without {safeguard}: not tried, as there are no states of kind {kind}")
            continue
        tally = sweep(states, args, work, safeguard)
        caught, tried = bool(tally.violated), sum(tally.lived.values()) + tally.missed
        verdict = f"caught in state {tried}" if caught else f"NOT CAUGHT in {tried} states"
        print(f"without {safeguard}: {verdict}", flush=True)
        noticed &= caught
    return noticed


if __name__ == "__main__":
    sys.exit(main())
