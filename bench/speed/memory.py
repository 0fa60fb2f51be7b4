"""Does a daemon grow?  `watch` lands one response after the other, and its memory is looked at.

    python -m bench.speed.memory [--landings 50000] [--each 2000] [--command CMD]

Prints the resident memory (VmRSS) after each piece, and its ratio to that after the first, from
which on nothing should grow.  Exit 1 when the largest ratio is above 1.1, 3 when it cannot measure.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench.console import command_line, say, work_option
from bench.git import CONFIG, BenchError, environment, find_command, git
from tests.helpers.gitrepo import write_config

FIRST = 2000
MOST_GROWTH = 1.1
_DIRECTORIES, _FILES = 20, 50
_AHEAD = 100
"""Responses that lie in the inbox before more come."""
_SECONDS = 300.0
"""Without a landing for so long, it hangs."""


class Flood:
    """A repository whose files are edited in turn, one line of each, by one response after the
    other, and `watch` that lands them on a branch that is not checked out."""

    def __init__(self, room: Path, home: Path, command: Sequence[str]) -> None:
        self._repo, self._sent = room / "repo", 0
        git(room, "init", "-q", "-b", "main", "repo", home=home)
        (self._repo / ".git/config").write_text(CONFIG.format(bare="false"))
        text = "".join(f"line {n}\n" for n in range(30)).replace("line 15", "line 15 v0")
        for n in range(_DIRECTORIES * _FILES):
            file = self._repo / _path(n)
            file.parent.mkdir(exist_ok=True)
            file.write_text(text)
        write_config(self._repo, "version: 1\nmode: auto\ntarget: trunk\n")
        for words in (("add", "."), ("commit", "-q", "-m", "Start"), ("branch", "trunk")):
            git(self._repo, *words, home=home)
        env = environment(home)
        subprocess.run([*command, "init"], cwd=self._repo, env=env, check=True, capture_output=True)
        with (room / "watch.txt").open("wb") as out:
            self.daemon = subprocess.Popen(
                [*command, "watch"], cwd=self._repo, env=env, stdout=out, stderr=out
            )

    def land(self, count: int) -> None:
        """Have so many more land; BenchError where that does not go on."""
        inbox, until = self._repo / ".patchq/inbox", self._sent + count
        waits, since = -1, time.monotonic()
        while self._sent < until or waits:
            now = len(os.listdir(inbox))
            if now != waits:
                waits, since = now, time.monotonic()
            if self.daemon.poll() is not None or time.monotonic() - since > _SECONDS:
                raise BenchError("watch ended, or hangs")
            if now > _AHEAD or self._sent >= until:
                time.sleep(0.01)
                continue
            for _ in range(min(_AHEAD, until - self._sent)):
                self._send(inbox)
            waits = -1

    def _send(self, inbox: Path) -> None:
        n = self._sent
        turn = n // (_DIRECTORIES * _FILES)
        old, new = f"line 15 v{turn}\n", f"line 15 v{turn + 1}\n"
        block = f"<<<<<<< SEARCH\n{old}=======\n{new}>>>>>>> REPLACE\n"
        scratch = inbox / f".{n}.tmp"
        scratch.write_text(f"{_path(n)}\n{block}")
        scratch.rename(inbox / f"b{n}.md")
        self._sent += 1

    def resident(self) -> int:
        """VmRSS of the daemon, in KiB."""
        lines = Path(f"/proc/{self.daemon.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:"))

    def close(self) -> None:
        self.daemon.terminate()
        try:
            self.daemon.wait(60)
        except subprocess.TimeoutExpired:
            self.daemon.kill()
            self.daemon.wait()


def _path(n: int) -> str:
    return f"d{n % _DIRECTORIES}/f{n // _DIRECTORIES % _FILES}.txt"


def growth(
    room: Path, home: Path, command: Sequence[str], landings: int, each: int
) -> Iterator[tuple[int, int]]:
    """Landings so far and resident memory in KiB, from the first 2,000 landings on."""
    flood = Flood(room, home, command)
    try:
        done = min(FIRST, landings // 2)
        flood.land(done)
        yield done, flood.resident()
        while done < landings:
            flood.land(min(each, landings - done))
            done = min(done + each, landings)
            yield done, flood.resident()
    finally:
        flood.close()


def arguments(words: Sequence[str] | None) -> argparse.Namespace:
    parser = command_line("bench.speed.memory", __doc__)
    parser.add_argument("--landings", type=int, default=50_000, metavar="N")
    parser.add_argument("--each", type=int, default=2000, metavar="N", help="between two looks")
    parser.add_argument("--command", default="patchq", metavar="CMD")
    work_option(parser, "where the repository is made")
    return parser.parse_args(words)


def main(words: Sequence[str] | None = None) -> int:
    args = arguments(words)
    try:
        with tempfile.TemporaryDirectory(prefix="patchq-memory-", dir=args.work) as place:
            home = Path(place, "home")
            home.mkdir()
            command, first, most = find_command(args.command), 0, 0.0
            for done, kib in growth(Path(place), home, command, args.landings, args.each):
                first = first or kib
                most = max(most, kib / first)
                say(f"{done:>7,} landings {kib / 1024:7.1f} MiB {kib / first:6.2f}")
    except (BenchError, OSError, subprocess.SubprocessError) as error:
        print(f"memory: {error}", file=sys.stderr)
        return 3
    print(f"grows to {most:.2f} of the first ({'met' if most <= MOST_GROWTH else 'MISSED'})")
    return 0 if most <= MOST_GROWTH else 1


if __name__ == "__main__":
    sys.exit(main())
