"""What the speed bench measures, each as one function: set up, time, verify, give a number.

Whatever was set up is flushed to disk before the clock starts, so that no measured process pays
for it; what was measured is verified after it stopped, against a tree that git built by itself.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from bench.git import BenchError, Run, environment, run
from bench.speed.repos import Change, Site
from bench.speed.serving import PATIENCE, watching

FLOOR = Path(__file__).with_name("floor.py")


def drop(repo: Path, made: Sequence[Change]) -> None:
    for change in made:
        (repo / ".patchq/inbox" / f"c{change.number:05d}.md").write_bytes(change.response())


def timed(command: Sequence[str], site: Site, cwd: Path) -> Run:
    os.sync()
    ended = run(command, cwd, home=site.home)
    if ended.code != 0:
        raise BenchError(f"{' '.join(command)} ended with {ended.code}: {ended.errors[-800:]}")
    return ended


def verify_reports(repo: Path, count: int, state: str) -> None:
    """Raise BenchError unless there are `count` reports, all with this state."""
    found: dict[str, int] = {}
    for place in ("done", "rejected"):
        for path in (repo / ".patchq" / place).glob("*.report.json"):
            said = str(json.loads(path.read_bytes()).get("state"))
            found[said] = found.get(said, 0) + 1
    if found != {state: count}:
        raise BenchError(f"{repo}: reports {found} instead of {count} {state}")


def start_up(command: Sequence[str], site: Site) -> float:
    """Seconds of `run` over an empty inbox."""
    return timed([*command, "run"], site, site.fresh_plain("auto")).seconds


def patchq(command: Sequence[str], site: Site, made: Sequence[Change], wanted: str) -> Run:
    """One `run` over waiting responses; the target is not checked out."""
    repo = site.fresh_plain("auto")
    drop(repo, made)
    ended = timed([*command, "run"], site, repo)
    verify_reports(repo, len(made), "applied")
    site.verify(repo, "main", made, wanted)
    return ended


def patchq_checked_out(
    command: Sequence[str], site: Site, made: Sequence[Change], wanted: str
) -> Run:
    """The same with the target checked out, so that its work tree follows."""
    repo = site.fresh_tree()
    drop(repo, made)
    ended = timed([*command, "run"], site, repo)
    verify_reports(repo, len(made), "applied")
    site.verify(repo, "main", made, wanted)
    site.verify_checkout(repo)
    return ended


def git_am(site: Site, mails: Path, made: Sequence[Change], wanted: str) -> Run:
    """`git am` of the same changes, in a linked worktree with its target checked out."""
    ended = timed(["git", "am", "-q", str(mails)], site, site.fresh_mail())
    site.verify(site.mail, "mail", made, wanted)
    return ended


def floor(site: Site, made: Sequence[Change], wanted: str, durability: str) -> Run:
    """The bare libgit2 loop, with (`fsync`) or without (`none`) its flushes."""
    repo = site.fresh_plain("auto")
    listing = site.room / "changes.json"
    listing.write_text(json.dumps([asdict(change) for change in made]))
    ended = timed([sys.executable, str(FLOOR), str(repo), str(listing), durability], site, repo)
    site.verify(repo, "main", made, wanted)
    return ended


def latencies(command: Sequence[str], site: Site, made: Sequence[Change], mode: str) -> list[float]:
    """Seconds from the rename into the inbox to the report, one drop after another.

    The first change only tells that the daemon is up, and is not among them.
    """
    repo = site.fresh_plain(mode)
    os.sync()
    with watching(command, repo, environment(site.home)) as process:
        times = [one_latency(process, repo, change) for change in made]
    verify_reports(repo, len(made), "applied" if mode == "auto" else "proposed")
    return times[1:]


def one_latency(process: subprocess.Popen[bytes], repo: Path, change: Change) -> float:
    queue, name = repo / ".patchq", f"drop-{change.number:05d}"
    part, report = queue / "inbox" / f".{name}", queue / "done" / f"{name}.report.json"
    part.write_bytes(change.response())
    began = time.perf_counter()
    part.rename(queue / "inbox" / f"{name}.md")
    while not report.exists():
        if process.poll() is not None or time.perf_counter() - began > PATIENCE:
            raise BenchError(f"no {report.name} after {time.perf_counter() - began:.1f} s")
        time.sleep(0.0002)
    seconds = time.perf_counter() - began
    time.sleep(0.01)
    return seconds
