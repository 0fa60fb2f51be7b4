"""Responses without end, daemons killed again and again, a person and git at work on the branch.

Four daemons stand by one queue: one works, the others ask for its lock again and again.  Whoever
works is killed at a random moment.  Meanwhile a person commits, resets and rebases, and git packs
and collects.  Afterwards the history is checked against what everybody did: exit 0 when nothing is
lost and nothing twice, 1 when something is, 3 when it could not be run to its end.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from bench.console import command_line, work_option
from bench.crash import aftermath, children, person
from bench.crash.aftermath import Report, git
from bench.crash.flood import Pack, Soak, build
from bench.crash.person import TARGET
from bench.git import HERMETIC

Move = Mapping[str, object]
"""What the person's log says of one move of the branch."""
_AHEAD = 20
"""Kills keep pace with responses, and are at most this many of those ahead."""
_STALLED_SECONDS = 300.0
_PARTS = 5
"""Of the run, each with its own figure of what a response cost."""


def arguments(words: Sequence[str] | None) -> argparse.Namespace:
    parser = command_line("bench.crash.soak", __doc__)
    add = parser.add_argument
    add("--responses", type=int, default=10_000, metavar="N")
    add("--kills", type=int, default=1_000, metavar="N")
    add("--daemons", type=int, default=4, metavar="N")
    add("--seconds", type=float, metavar="S", help="come to an end after that time")
    add("--pause", type=float, default=1.0, metavar="S", help="between the person's moves, at most")
    add("--upkeep", type=float, default=4.0, metavar="S", help="between git's upkeeps, at most")
    add("--seed", type=int, default=0, metavar="N")
    work_option(parser, "where it works")
    return parser.parse_args(words)


class Stalled(Exception):
    """The soak does not come to its end."""


def torment(soak: Soak, pack: Pack, kills: int, seconds: float | None) -> list[float]:
    """Until all responses have their verdict, and that many daemons were killed.  Milliseconds of
    the processor that the daemons took for each response, in parts of the run: what others do on
    the machine changes these less than the rate."""
    costs, then = list[float](), (0, pack.spent())
    began = moved = time.monotonic()
    next_kill, seen, shown = began, (0, 0), 0.0
    while True:
        pack.tend()
        soak.feed()
        now = time.monotonic()
        if seconds and now - began > seconds:
            soak.wanted, kills = len(soak.dropped), pack.killed
        due = kills * min(1.0, (len(soak.dropped) + _AHEAD) / soak.wanted)
        if pack.killed < due and now >= next_kill:
            pack.kill()
            next_kill = now + pack.rng.choice((0.05, 0.2, 0.5, 0.9)) * pack.rng.random() + 0.05
        left = sum(len(os.listdir(soak.queue / place)) for place in ("inbox", "active"))
        done, took = len(soak.dropped), pack.spent()
        if done > then[0] and done * _PARTS >= soak.wanted * (len(costs) + 1):
            costs.append(1000 * (took - then[1]) / (done - then[0]))
            then = done, took
        if len(soak.dropped) == soak.wanted and pack.killed >= kills and not left:
            return costs
        if (state := (len(soak.dropped), pack.killed)) != seen:
            seen, moved = state, now
        if now - moved > _STALLED_SECONDS:
            raise Stalled(f"nothing moves: {seen} responses and kills, {left} entries are left")
        if now - shown > 5:
            shown = now
            end = "\r" if sys.stderr.isatty() else "\n"
            line = f"{seen[0]}/{soak.wanted} responses, {pack.killed}/{kills} kills"
            print(f"{line}, {now - began:.0f} s ", end=end, file=sys.stderr, flush=True)
        time.sleep(0.02)


@contextmanager
def bystanders(repo: Path, log: Path, args: argparse.Namespace) -> Iterator[None]:
    """The person and git's upkeep, until the end of the block."""
    context = multiprocessing.get_context("fork")
    over = context.Event()
    others = [
        context.Process(target=person.person, args=(repo, log, args.seed, args.pause, over)),
        context.Process(target=person.upkeep, args=(repo, args.seed, args.upkeep, over)),
    ]
    for other in others:
        other.start()
    try:
        yield
    finally:
        over.set()
        for other in others:
            other.join()
    if others[0].exitcode:
        raise Stalled("the person could not work")


# ---------------------------------------------------------------- the history


def violations(soak: Soak, log: Path) -> Iterator[str]:
    """Everything that somebody did and that is not there, or that is there and nobody did."""
    told = aftermath.reports(soak.queue)
    moves = [json.loads(line) for line in log.read_text().splitlines()]
    yield from aftermath.verdicts(soak.queue, soak.dropped, told)
    yield from aftermath.store(soak.queue)
    yield from history(soak.repo, told, moves)
    yield from _decisions(soak, told, moves)
    yield from _effects(soak, told)
    yield from aftermath.repository(soak.repo)


def history(repo: Path, told: Sequence[Report], moves: Sequence[Move]) -> Iterator[str]:
    """Each landing and each of the person's commits is in the history once, or was taken away by
    one of the person's own moves."""
    there = [person.Commit(*commit) for commit in person.commits(repo, TARGET)]
    balance: Counter[str] = Counter(commit.batch or commit.subject for commit in there)
    wanted = Counter(report["id"] for report in told if report["state"] == "applied")
    wanted["Start"] = 1
    for move in moves:
        come, gone = (_named(move[side]) for side in ("come", "gone"))
        rebased = come & gone
        balance += gone - rebased
        wanted += Counter(dict.fromkeys(come - rebased, 1))
    for name in balance.keys() | wanted.keys():
        if balance[name] != wanted[name]:
            yield f"{name!r} came {wanted[name]} times and is accounted for {balance[name]} times"


def _named(commits: object) -> Counter[str]:
    assert isinstance(commits, list)
    return Counter(batch or subject for batch, subject in commits)


def _decisions(soak: Soak, told: Sequence[Report], moves: Sequence[Move]) -> Iterator[str]:
    """What is good lands, once more only where the person took it away; what is bad is refused."""
    removed: Counter[str] = Counter()
    for move in moves:
        removed += _named(move["gone"]) - _named(move["come"])
    states: dict[int | None, list[Report]] = {}
    for report in told:
        slot = soak.dropped.get((report["source"]["name"], report["source"]["sha256"]))
        states.setdefault(slot, []).append(report)
    for slot, reports in states.items():
        count = Counter(report["state"] for report in reports)
        if not count.keys() <= ({"rejected"} if slot is None else {"applied", "duplicate"}):
            yield f"slot {slot} became {dict(count)}"
        again = sum(removed[report["id"]] for report in reports)
        if slot is not None and not 1 <= count["applied"] <= 1 + again:
            yield f"slot {slot} landed {count['applied']} times and was removed {again} times"


def _effects(soak: Soak, told: Sequence[Report]) -> Iterator[str]:
    """The files say what the history says."""
    batches = {commit.batch for commit in person.commits(soak.repo, TARGET)}
    filled = {
        soak.dropped[report["source"]["name"], report["source"]["sha256"]]
        for report in told
        if report["state"] == "applied" and report["id"] in batches
    }
    names = git(soak.repo, "ls-tree", "-r", "--name-only", TARGET).split("\n")
    found = {int(Path(name).stem) for name in names if name.startswith("new/")}
    for name in names:
        if name.startswith("part/"):
            lines = git(soak.repo, "show", f"{TARGET}:{name}").split("\n")
            found |= {int(line.split()[1][:-1]) for line in lines if line.endswith("done")}
    if found != filled:
        yield f"slots {sorted(found ^ filled, key=str)[:20]} are not as the history says"


def main(words: Sequence[str] | None = None) -> int:
    args = arguments(words)
    with tempfile.TemporaryDirectory(prefix="patchq-soak-", dir=args.work) as scratch:
        work = Path(scratch)
        os.environ.update(HERMETIC | {"HOME": scratch, "TMPDIR": scratch})
        soak, log, began = (
            build(work, args.responses, args.seed),
            work / "person.jsonl",
            time.monotonic(),
        )
        pack = Pack(soak, args.daemons, random.Random(args.seed))
        try:
            with bystanders(soak.repo, log, args):
                costs = torment(soak, pack, args.kills, args.seconds)
                time.sleep(0.5)
        except Stalled as stalled:
            print(f"bench.crash.soak: {stalled}", file=sys.stderr)
            return 3
        finally:
            pack.stop()
        code = children.run(["-C", str(soak.repo), "run"], work / "last.txt")
        found = [*violations(soak, log)]
        if code not in (0, 1):
            found.append(f"the last run gave {code}: {(work / 'last.txt').read_text()[-500:]}")
        tell(soak, pack, log, found, time.monotonic() - began)
        print(f"ms of the processor a response: {', '.join(f'{cost:.0f}' for cost in costs)}")
        return int(bool(found))


def tell(soak: Soak, pack: Pack, log: Path, found: Sequence[str], seconds: float) -> None:
    moves = Counter(json.loads(line)["how"] for line in log.read_text().splitlines())
    states = Counter(report["state"] for report in aftermath.reports(soak.queue))
    print(f"{len(soak.dropped)} responses, {pack.killed} kills, in {seconds:.0f} s: {dict(states)}")
    print(f"the person's moves: { {how.strip('_'): count for how, count in moves.items()} }")
    if pack.ended:
        print(f"daemons that ended by themselves, by exit code: {dict(pack.ended)}")
    print(f"VIOLATED {len(found)}")
    for sentence in found[:40]:
        print(f"  {sentence}")


if __name__ == "__main__":
    sys.exit(main())
