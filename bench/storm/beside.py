"""A person commits to the branch that they have checked out while responses land on it.

The same stream of responses goes to a branch that is not checked out, and both rates are compared.
Exit 0 when few commits fail, none is lost, each response has one verdict, and the rate holds; 1
when not; 2 when the bench cannot be used, 3 when it could not be run to its end.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from statistics import median
from threading import Event, Thread

from bench.console import command_line, say, trial_options, tried
from bench.crash import aftermath
from bench.git import HERMETIC
from bench.speed.serving import block, has_verdict, make, wait_for, watching

MOST_FAILING, LEAST_RATIO = 0.06, 0.5
_PAUSE_SECONDS = 0.1, 0.6
"""A person's pauses between two commits."""


@dataclass
class Stream:
    """What became of the responses, and of the person's commits, where there was a person."""

    tries: int = 0
    failed: int = 0
    responses: int = 0
    rate: float = 0.0
    """Landed a second, from the first response to the last verdict."""
    median: float = 0.0
    worst: float = 0.0
    """Seconds from a response to its report."""


def arguments(words: Sequence[str] | None) -> argparse.Namespace:
    parser = command_line("bench.storm.beside", __doc__)
    add = parser.add_argument
    add("--commits", type=int, default=60, metavar="N", help="that the person tries (60)")
    add("--rate", type=float, default=10.0, metavar="N", help="responses a second (10)")
    add("--seed", type=int, default=1, metavar="N", help="of the person's pauses (1)")
    trial_options(parser, json=True)
    return parser.parse_args(words)


class Feed(Thread):
    """Drops a response every so often, until it is over."""

    def __init__(self, repo: Path, rate: float) -> None:
        super().__init__()
        self.sent: dict[str, float] = {}
        self.over = Event()
        self._inbox, self._pause = repo / ".patchq/inbox", 1 / rate

    def run(self) -> None:
        due = time.monotonic()
        while not self.over.wait(max(0.0, due - time.monotonic())):
            id, due = f"r{len(self.sent)}", due + self._pause
            temporary = self._inbox / f".{id}.tmp"
            temporary.write_bytes(response(id))
            self.sent[id] = time.time()
            temporary.rename(self._inbox / f"{id}.md")


def response(id: str) -> bytes:
    return block(f"new/{id}.txt", "", f"{id}\n")


def person(repo: Path, count: int, seed: int) -> tuple[dict[str, str], int]:
    """Try `count` commits; those made, each with its file, and how many failed."""
    rng, made = random.Random(seed), dict[str, str]()
    for number in range(count):
        time.sleep(rng.uniform(*_PAUSE_SECONDS))
        name = f"mine-{number}.txt"
        (repo / name).write_text(f"{number}\n")
        while not _git(repo, "add", name):
            time.sleep(0.01)
        if _git(repo, "commit", "-q", "-m", f"Mine {number}", "--", name):
            made[aftermath.git(repo, "log", "-1", "--format=%H", "--", name)] = name
    return made, count - len(made)


def _git(repo: Path, *words: str) -> bool:
    return not subprocess.run(["git", *words], cwd=repo, capture_output=True).returncode


def stream(
    command: Sequence[str], room: Path, rate: float, commits: int, seed: int
) -> tuple[Stream, list[str], float]:
    """Let responses come beside a person for so many commits: the figures, what was lost, and the
    seconds that it took."""
    repo = make(room / "repo", command, "main")
    feed, began = Feed(repo, rate), time.monotonic()
    with watching(command, repo):
        feed.start()
        try:
            made, failed = person(repo, commits, seed)
        finally:
            feed.over.set()
            feed.join()
        seconds = time.monotonic() - began
        _await(repo, feed)
    lost = [*_lost(repo, "main", feed), *_lost_commits(repo, made)]
    return _figures(repo, feed, commits, failed), lost, seconds


def alone(
    command: Sequence[str], room: Path, rate: float, seconds: float
) -> tuple[Stream, list[str]]:
    """The same for a branch that nobody has checked out."""
    repo = make(room / "repo", command, "trunk")
    feed = Feed(repo, rate)
    with watching(command, repo):
        feed.start()
        time.sleep(seconds)
        feed.over.set()
        feed.join()
        _await(repo, feed)
    return _figures(repo, feed, 0, 0), list(_lost(repo, "trunk", feed))


def _await(repo: Path, feed: Feed) -> None:
    wait_for(lambda: all(has_verdict(repo, id) for id in feed.sent), "no verdict on some")


def _figures(repo: Path, feed: Feed, tries: int, failed: int) -> Stream:
    ended = {id: (repo / f".patchq/done/{id}.report.json").stat().st_mtime for id in feed.sent}
    latencies = [ended[id] - sent for id, sent in feed.sent.items()]
    seconds = max(ended.values()) - min(feed.sent.values())
    count = len(feed.sent)
    return Stream(tries, failed, count, count / seconds, median(latencies), max(latencies))


def _lost(repo: Path, target: str, feed: Feed) -> Iterator[str]:
    """What is wrong with the responses."""
    sent = {(f"{id}.md", sha256(response(id)).hexdigest()): id for id in feed.sent}
    told = aftermath.reports(repo / ".patchq")
    yield from aftermath.verdicts(repo / ".patchq", sent, told)
    yield from aftermath.history(repo, target, told)
    yield from aftermath.repository(repo)
    yield from (f"{one['id']} is {one['state']}" for one in told if one["state"] != "applied")


def _lost_commits(repo: Path, made: dict[str, str]) -> Iterator[str]:
    """What is missing of the person's commits."""
    there = set(aftermath.git(repo, "log", "--format=%H", "main").split("\n"))
    for commit, name in made.items():
        if commit not in there:
            yield f"the commit of {name} is not in the history"
        if not _git(repo, "diff", "--quiet", commit, "main", "--", name):
            yield f"{name} is not as it was committed"


def main(words: Sequence[str] | None = None) -> int:
    args = arguments(words)
    os.environ.update(HERMETIC)

    def trial(command: list[str]) -> int:
        with tempfile.TemporaryDirectory(dir=args.work) as room:
            beside, lost, seconds = stream(
                command, Path(room, "beside"), args.rate, args.commits, args.seed
            )
            bare, more = alone(command, Path(room, "alone"), args.rate, seconds)
        lost += more
        share, ratio = beside.failed / beside.tries, beside.rate / bare.rate
        for sentence in lost[:20]:
            say(f"  {sentence}")
        print(f"failing commits   {beside.failed} of {beside.tries}, {share:.1%}")
        print(f"landed a second   {beside.rate:.1f} beside, {bare.rate:.1f} alone: {ratio:.2f}")
        for name, one in (("beside", beside), ("alone", bare)):
            print(f"latency {name:9} median {one.median:.2f} s, worst {one.worst:.2f} s")
        print(f"lost              {len(lost)}")
        print(f"load              {os.getloadavg()[0]:.1f}")
        if args.json:
            told = {"beside": asdict(beside), "alone": asdict(bare), "lost": lost}
            args.json.write_text(json.dumps(told, indent=2) + "\n")
        return int(bool(lost) or share > MOST_FAILING or ratio < LEAST_RATIO)

    return tried("bench.storm.beside", args.command, trial)


if __name__ == "__main__":
    sys.exit(main())
