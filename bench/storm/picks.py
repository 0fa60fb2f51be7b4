"""The usual way without a queue: for every change a work tree and `git cherry-pick`."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bench.git import environment, git
from bench.storm.facts import Facts
from bench.storm.ort import apart, changed, write_commits
from bench.storm.referee import Storm

_WHO = ("-c", "user.name=Bench", "-c", "user.email=bench@example.org")


@dataclass(frozen=True, slots=True)
class Picked:
    """The responses that this way landed, of those tried, and the time that it took; the commits by
    hand between them are not counted."""

    landed: frozenset[str]
    tried: frozenset[str]
    seconds: float


def pick(
    storm: Storm, home: Path, room: Path, most: int | None, say: Callable[[str], None]
) -> Picked:
    """The responses of a storm, in the order in which they were decided, and the commits by hand
    between them; each as a commit on the base that its author saw."""
    facts = Facts(storm.repo, home)
    records = sorted(storm.records, key=lambda record: record.when)[:most]
    store = apart(room / "picks.git", storm.repo, home)
    asked = [(r.intent.base, changed(facts, r.intent)) for r in records]
    made = write_commits(store, asked, home)
    order = [commit.oid for commit in facts.history(storm.start, f"refs/heads/{storm.target}")]
    facts.close()
    hands = [oid for oid in order if oid in storm.by_hand]
    seen = {oid: number for number, oid in enumerate(order)}
    git(store, "update-ref", f"refs/heads/{storm.target}", storm.start, home=home)
    landed, seconds = [], 0.0
    for number, (record, commit) in enumerate(zip(records, made, strict=True)):
        if number % 100 == 0:
            say(f"  {number} of {len(records)} responses picked")
        while hands and seen[hands[0]] <= seen.get(record.after, -1):
            _pick(store, storm.target, hands.pop(0), home, room)
        began = time.perf_counter()
        if _pick(store, storm.target, commit, home, room):
            landed.append(record.intent.name)
        seconds += time.perf_counter() - began
    tried = frozenset(record.intent.name for record in records)
    return Picked(frozenset(landed), tried, seconds)


def _pick(store: Path, target: str, commit: str, home: Path, room: Path) -> bool:
    tree = room / "picking"
    tip = git(store, "rev-parse", f"refs/heads/{target}", home=home).decode().strip()
    git(store, "worktree", "add", "-q", "--detach", str(tree), tip, home=home)
    try:
        done = subprocess.run(
            ["git", *_WHO, "cherry-pick", "--allow-empty", commit],
            cwd=tree,
            env=environment(home),
            capture_output=True,
            check=False,
        )
        if done.returncode:
            return False
        new = git(tree, "rev-parse", "HEAD", home=home).decode().strip()
        git(store, "update-ref", f"refs/heads/{target}", new, tip, home=home)
        return True
    finally:
        shutil.rmtree(tree)
        git(store, "worktree", "prune", home=home)
