"""Agents, a person and `git gc` at work on one repository at once, and a referee afterwards.

Twenty processes drop responses of all formats under `patchq watch` in auto mode, from bases up to
thirty commits old; a third of them collide on purpose.  Meanwhile one process commits by hand to
the target and one runs `git gc`.  Exit 0 when the referee has nothing to object, 1 when it has, 2
when the bench cannot be used, 3 when it could not be run to its end.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.process import BaseProcess as Process
from pathlib import Path
from typing import Any

from bench.console import command_line, say, trial_options, tried
from bench.git import BenchError, environment
from bench.storm import people
from bench.storm.intent import load_record
from bench.storm.picks import Picked, pick
from bench.storm.referee import Finding, Storm, judge
from bench.storm.town import TARGET, Town, build

_STATES = ("applied", "rejected", "proposed")


@dataclass(frozen=True, slots=True)
class Weather:
    """A storm that is over: what was done, in how many seconds."""

    storm: Storm
    seconds: float


@dataclass(frozen=True, slots=True)
class Burden:
    """What a storm has to bear beside its agents."""

    waiting: int = 0
    misquote: float = 0.0


GOAL = 0.8
"""Of the landings per second without a burden, those with it."""


def arguments(words: Sequence[str] | None) -> argparse.Namespace:
    parser = command_line("bench.storm", __doc__)
    add = parser.add_argument
    add("--agents", type=int, default=20, metavar="N")
    add("--responses", type=int, default=50, metavar="N", help="of each agent (50)")
    add("--files", type=int, default=3000, metavar="N", help="of a generated repository (3000)")
    add("--clone", type=Path, metavar="PATH", help="go over the HEAD of this repository instead")
    add("--seed", type=int, default=0, metavar="N")
    add("--pause", type=float, default=0.3, metavar="S", help="between commits by hand (0.3)")
    add("--waiting", type=int, default=0, metavar="N", help="proposals that wait meanwhile")
    add(
        "--misquote",
        type=float,
        default=0.0,
        metavar="SHARE",
        help="of the agents: they only misquote",
    )
    add("--picks", type=int, metavar="N", help="cherry-pick only so many responses; 0: none")
    add("--keep", action="store_true", help="leave the repositories there")
    trial_options(parser, json=True)
    return parser.parse_args(words)


def rage(
    args: argparse.Namespace, room: Path, town: Town, command: Sequence[str], burden: Burden
) -> Weather:
    """Let everybody work; ends when every agent has got its last verdict."""
    waiting = people.propose(town, burden.waiting, args.seed, command) if burden.waiting else []
    misquoting = round(args.agents * burden.misquote)
    logs = room / "logs"
    logs.mkdir()
    stop = people.event()
    with _daemon(command, town, logs / "watch.txt") as daemon:
        others = [
            people.start(people.person, town, args.seed, args.pause, stop, logs / "person.jsonl"),
            people.start(people.collector, town, 1.0, stop, logs / "gc.txt"),
        ]
        began = time.perf_counter()
        agents = [
            people.start(
                people.agent,
                town,
                f"a{n:02d}",
                args.responses,
                args.seed,
                logs / f"a{n:02d}.jsonl",
                n < misquoting,
            )
            for n in range(args.agents)
        ]
        try:
            _wait(agents, others, town, args.agents * args.responses + len(waiting), daemon)
            seconds = time.perf_counter() - began
            stop.set()
            _wait(others, [], town, 0, daemon)
        finally:
            for process in (*agents, *others):
                process.kill()
                process.join()
    lines = [line for log in sorted(logs.glob("a*.jsonl")) for line in log.open()]
    said = [json.loads(line) for line in (logs / "person.jsonl").open()]
    by_hand = {entry["commit"]: {entry["path"]: entry["text"]} for entry in said}
    records = [*waiting, *(load_record(line) for line in lines)]
    say(f"  git gc ran {(logs / 'gc.txt').read_text().strip()} times")
    return Weather(Storm(town.repo, TARGET, town.start, records, by_hand), seconds)


def _wait(
    processes: Sequence[Process],
    others: Sequence[Process],
    town: Town,
    count: int,
    daemon: subprocess.Popen[bytes],
) -> None:
    """Wait until `processes` have ended well, as long as the daemon and `others` live."""
    told = time.monotonic()
    while any(process.is_alive() for process in processes):
        time.sleep(0.05)
        if daemon.poll() is not None:
            raise BenchError("watch ended")
        if any(process.exitcode for process in (*processes, *others)):
            raise BenchError("one of the processes failed; see above")
        if count and time.monotonic() - told > 5:
            told = time.monotonic()
            done = sum(1 for end in people.ENDS for _ in _reports(town, end))
            say(f"  {done} of {count} responses have a verdict")
    if any(process.exitcode for process in processes):
        raise BenchError("one of the processes failed; see above")


def _reports(town: Town, end: str) -> Iterator[Path]:
    return (town.repo / ".patchq" / end).glob("*.report.json")


@contextmanager
def _daemon(command: Sequence[str], town: Town, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as errors:
        process = subprocess.Popen(
            [*command, "watch"],
            cwd=town.repo,
            env=environment(town.home),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
        )
    try:
        yield process
        if process.poll() is None:
            process.terminate()
        if process.wait(30):
            raise BenchError(f"watch ended with {process.returncode}")
    except BenchError as error:
        raise BenchError(
            f"{error}; watch said: {log.read_text(errors='replace')[-800:]}"
        ) from error
    finally:
        process.kill()
        process.wait()


def table(weather: Weather, found: Finding) -> str:
    """What happened, by what was tried and by format, and every objection."""
    rows = [f"{'':<24}" + "".join(f"{state:>10}" for state in _STATES)]
    for title, key in (("tried", "aim"), ("format", "form")):
        counts: Counter[tuple[str, str]] = Counter()
        for record in weather.storm.records:
            state = found.states.get(record.intent.name, "none")
            counts[getattr(record.intent, key), state] += 1
        rows.append(title)
        for name in sorted({name for name, _ in counts}):
            rows.append(f"  {name:<22}" + "".join(f"{counts[name, s]:>10}" for s in _STATES))
    landed, total = len(found.landed), len(weather.storm.records)
    rows += [
        "",
        f"landed by the queue     {landed} of {total}, {landed / weather.seconds:.1f} per second",
        f"commits by hand         {len(weather.storm.by_hand)}",
        f"on a moved base         {found.counts['merges clean']} that git merges alike, "
        f"{found.counts['merges with conflicts']} that it does not merge",
        f"violations              {len(found.violations)}",
        *(f"  {violation[:600]}" for violation in found.violations[:50]),
    ]
    return "\n".join(rows)


def compared(picked: Picked, landed: frozenset[str]) -> str:
    return (
        f"landed by cherry-picks  {len(picked.landed)} of {len(picked.tried)}, "
        f"{len(picked.landed) / picked.seconds:.1f} per second; of these responses the queue "
        f"landed {len(landed & picked.tried)}, {len(landed & picked.tried - picked.landed)} of "
        "them alone"
    )


def run(args: argparse.Namespace, room: Path, command: Sequence[str]) -> int:
    """One storm; with a burden, first the same one without it, and their rates side by side."""
    burden = Burden(args.waiting, args.misquote)
    if burden == Burden():
        told = storm(args, room, command, burden)
        ratio = None
    else:
        rooms = room / "without", room / "with"
        without, told = (
            storm(args, place, command, one)
            for place, one in zip(rooms, (Burden(), burden), strict=True)
        )
        ratio = told["rate"] / without["rate"]
        told |= {"without": without, "ratio": ratio}
        verdict = "met" if ratio >= GOAL else "MISSED"
        print(
            f"{burden.waiting} waiting, {burden.misquote:.0%} misquoting: {told['rate']:.1f} "
            f"landings per second, {without['rate']:.1f} without; ratio {ratio:.2f} (>= {GOAL}) "
            f"{verdict}"
        )
    if args.json:
        args.json.write_text(json.dumps(told, indent=1) + "\n")
    objected = told["violations"] or (ratio is not None and told["without"]["violations"])
    return 1 if objected or (ratio is not None and ratio < GOAL) else 0


def storm(
    args: argparse.Namespace, room: Path, command: Sequence[str], burden: Burden
) -> dict[str, Any]:
    """One storm in a repository of its own, judged; its numbers."""
    home = room / "home"
    home.mkdir(parents=True)
    say("making the repository")
    town = build(room, home, args.files, args.clone, args.seed)
    say(f"{args.agents} agents, {args.responses} responses each, {len(town.files)} files")
    weather = rage(args, room, town, command, burden)
    say("judging")
    found = judge(weather.storm, home, room / "merges.git")
    print(table(weather, found), flush=True)
    told = {
        "responses": len(weather.storm.records),
        "seconds": weather.seconds,
        "landed": len(found.landed),
        "rate": len(found.landed) / weather.seconds,
        "violations": found.violations,
    }
    if args.picks != 0 and burden == Burden(args.waiting, args.misquote):
        say("the same by cherry-picks")
        picked = pick(weather.storm, home, room, args.picks, say)
        print(compared(picked, found.landed))
        told |= {"picked": len(picked.landed), "picking seconds": picked.seconds}
    return told


def main(words: Sequence[str] | None = None) -> int:
    args = arguments(words)

    def trial(command: list[str]) -> int:
        room = Path(tempfile.mkdtemp(prefix="patchq-storm-", dir=args.work)).absolute()
        try:
            return run(args, room, command)
        finally:
            if args.keep:
                say(f"kept {room}")
            else:
                shutil.rmtree(room)

    return tried("storm", args.command, trial)


if __name__ == "__main__":
    sys.exit(main())
