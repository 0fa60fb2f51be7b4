"""Measure how fast the installed command is, against what libgit2 and `git am` need for the same.

Generated repositories of 1,000, 20,000 and 100,000 files; every contender makes the same changes,
and rounds are interleaved, so that a ratio compares neighbours in time.  Every result is verified
against a tree that git built by itself.  Exit 0 when all was measured, 1 with `--gate` when a goal
is missed, 2 when it cannot be used, 3 when a contender did something else than its work.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from math import ceil
from pathlib import Path
from statistics import median

from bench.console import command_line, trial_options, tried
from bench.git import BenchError
from bench.speed.goal import Goal
from bench.speed.measure import floor, git_am, latencies, patchq, patchq_checked_out, start_up
from bench.speed.repos import FUNCTIONS, Site, changes, mailbox

Figures = dict[tuple[str, int], list[float]]
"""Per name and repository size: a number for each round."""
ROWS = {
    "patchq": "patchq run, auto, responses/s",
    "floor": "libgit2 alone, fsync, commits/s",
    "floor-none": "libgit2 alone, no fsync",
    "am": "git am, patches/s",
    "checked-out": "patchq run, target checked out",
    "start-up": "patchq run, empty inbox, ms",
    "auto p50": "drop to report, auto: median ms",
    "auto p95": "drop to report, auto: p95 ms",
    "review p50": "drop to report, review: median ms",
    "review p95": "drop to report, review: p95 ms",
    "rss": "peak resident memory, MiB",
}
PARTS = ("rates", "latency", "waiting")


def arguments(words: Sequence[str] | None) -> argparse.Namespace:
    parser = command_line("bench.speed", __doc__)
    add = parser.add_argument
    add("--sizes", type=_numbers, default=[1_000, 20_000, 100_000], metavar="N,…", help="files")
    add("--rounds", type=int, default=3, metavar="N")
    add("--responses", type=int, default=500, metavar="N", help="waiting for one run (500)")
    add("--drops", type=int, default=100, metavar="N", help="under the daemon (100)")
    add("--waiting", type=_numbers, default=[100, 10_000], metavar="FEW,MANY")
    add("--only", metavar="PART", choices=PARTS, help="one of %(choices)s")
    add("--quick", action="store_true", help="a small version: two sizes, one round")
    add("--gate", action="store_true", help="exit 1 when a goal is missed")
    trial_options(parser, json=True)
    args = parser.parse_args(words)
    if args.quick:
        args.sizes, args.rounds, args.responses = [1_000, 5_000], 1, 100
        args.drops, args.waiting = 20, [50, 500]
    try:
        changes(max(args.responses, args.drops + 1), min(args.sizes))
    except BenchError as error:
        parser.error(str(error))
    return args


def _numbers(text: str) -> list[int]:
    return [int(word.replace("_", "")) for word in text.split(",")]


class Bench:
    """One run: the sites, and the figures as they come in."""

    def __init__(self, args: argparse.Namespace, room: Path, command: list[str]) -> None:
        self.args, self.room, self.command = args, room, command
        self.home = room / "home"
        self.home.mkdir()
        self.figures: Figures = defaultdict(list)

    def say(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    def note(self, name: str, size: int, value: float) -> None:
        self.figures[name, size].append(value)
        self.say(f"  {size:>7,} files  {name:<12} {value:,.1f}")

    def measure(self) -> Figures:
        parts = [self.args.only] if self.args.only else PARTS
        sites = []
        for size in self.args.sizes:
            self.say(f"making a repository of {size:,} files")
            sites.append(Site(self.room / str(size), size, self.home))
        for number in range(self.args.rounds):
            self.say(f"round {number + 1}")
            for site in sites:
                if "rates" in parts:
                    self.rates(site)
                if "latency" in parts:
                    self.latency(site)
            if "waiting" in parts:
                self.waiting(max(sites, key=lambda s: (s.files <= 20_000, s.files)))
        return self.figures

    def rates(self, site: Site) -> None:
        size, made = site.files, changes(self.args.responses, site.files)
        wanted = site.wanted_tree(made)
        some = made[: min(200, max(40, 2_000_000 // size))]
        self.note("start-up", size, 1000 * start_up(self.command, site))
        ended = patchq(self.command, site, made, wanted)
        self.note("patchq", size, len(made) / ended.seconds)
        self.note("rss", size, ended.peak_kib / 1024)
        self.note("floor", size, len(made) / floor(site, made, wanted, "fsync").seconds)
        self.note("floor-none", size, len(made) / floor(site, made, wanted, "none").seconds)
        mails = site.room / "changes.mbox"
        mails.write_bytes(mailbox(some))
        self.note("am", size, len(some) / git_am(site, mails, some, site.wanted_tree(some)).seconds)
        ended = patchq_checked_out(self.command, site, made, wanted)
        self.note("checked-out", size, len(made) / ended.seconds)

    def latency(self, site: Site) -> None:
        made = changes(self.args.drops + 1, site.files)
        for mode in ("review", "auto"):
            times = [1000 * t for t in latencies(self.command, site, made, mode)]
            self.note(f"{mode} p50", site.files, median(times))
            self.note(f"{mode} p95", site.files, sorted(times)[ceil(0.95 * len(times)) - 1])

    def waiting(self, site: Site) -> None:
        """The rate of many waiting responses and of few, with and without the start-up."""
        spent = start_up(self.command, site)
        for name, count in zip(("few", "many"), self.args.waiting, strict=True):
            made = changes(min(count, site.files * FUNCTIONS // 2), site.files)
            ended = patchq(self.command, site, made, site.wanted_tree(made))
            self.note(name, site.files, len(made) / ended.seconds)
            self.note(f"{name} net", site.files, len(made) / max(ended.seconds - spent, 1e-3))
            self.note(f"{name} rss", site.files, ended.peak_kib / 1024)


def ratios(upper: list[float], lower: list[float]) -> list[float]:
    return [above / below for above, below in zip(upper, lower, strict=True)]


def goals(figures: Figures, sizes: Sequence[int]) -> list[Goal]:
    """Every goal whose figures were measured."""
    small, big = min(sizes), max(sizes)
    found = [
        Goal(
            f"patchq / floor, {size:,} files",
            ratios(figures["patchq", size], figures["floor", size]),
            0.5,
            True,
        )
        for size in sizes
        if ("patchq", size) in figures
    ]
    if ("patchq", big) in figures and big >= 100_000:
        am = ratios(figures["patchq", big], figures["am", big])
        found.append(Goal(f"patchq / git am, {big:,} files", am, 30, True))
    if ("patchq", big) in figures and small < big:
        cost = ratios(figures["patchq", small], figures["patchq", big])
        found.append(Goal(f"cost per response, {big:,} / {small:,} files", cost, 1.5, False))
    peaks = [v for (name, _), values in figures.items() if name.endswith("rss") for v in values]
    if peaks:
        found.append(Goal("peak resident memory, MiB", [max(peaks)], 150, False))
    for mode in ("review", "auto"):
        if (f"{mode} p50", big) in figures:
            p50 = figures[f"{mode} p50", big]
            found.append(Goal(f"median latency, {mode}, {big:,} files, ms", p50, 50, False))
    for size in sizes:
        if ("many net", size) in figures:
            rate = ratios(figures["many net", size], figures["few net", size])
            found.append(Goal("rate of many waiting / of few, net of start-up", rate, 0.8, True))
    return found


def table(figures: Figures, sizes: Sequence[int]) -> str:
    names = dict(ROWS)
    for name, _ in figures:
        names.setdefault(name, f"waiting: {name}, {'MiB' if 'rss' in name else 'responses/s'}")
    lines = ["files".ljust(36) + "".join(f"{size:>12,}" for size in sizes)]
    for name, title in names.items():
        values = [figures.get((name, size)) for size in sizes]
        if any(values):
            cells = [f"{median(v):>12,.1f}" if v else " " * 11 + "-" for v in values]
            lines.append(title.ljust(36) + "".join(cells))
    return "\n".join(lines)


def main(words: Sequence[str] | None = None) -> int:
    args = arguments(words)
    return tried("speed", args.command, lambda command: measured(args, command))


def measured(args: argparse.Namespace, command: list[str]) -> int:
    """The exit code, once all was measured and shown."""
    with tempfile.TemporaryDirectory(prefix="patchq-speed-", dir=args.work) as room:
        figures = Bench(args, Path(room), command).measure()
    reached = goals(figures, args.sizes)
    print(f"medians of {args.rounds} rounds, {args.responses} responses\n")
    print(table(figures, args.sizes))
    print("\ngoals (median; each round)\n" + "\n".join(goal.line() for goal in reached))
    if args.json:
        rows = [{"name": n, "files": size, "rounds": v} for (n, size), v in figures.items()]
        args.json.write_text(json.dumps(rows, indent=1) + "\n")
    return 1 if args.gate and not all(goal.met for goal in reached) else 0


if __name__ == "__main__":
    sys.exit(main())
