"""Show that the daemon misses no response and blocks nobody: two goals, each by one number.

`overflow`: the daemon is stopped, more responses come in than the kernel keeps events of, and it
goes on.  `unblocked`: the daemon is killed at each system call while it holds a lock of git's, and
started again; a person waits to commit on the branch that it was moving.  Exit 0 when every goal is
met, 1 when one is missed, 2 when the bench cannot be used, 3 when it could not be run to its end.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from statistics import median

from bench.console import command_line, say, trial_options
from bench.crash import aftermath, strace
from bench.crash.aftermath import GitFailed
from bench.crash.strace import CALLS, NoStrace, Point
from bench.git import HERMETIC, BenchError, find_command
from bench.speed.events import Witness, longest_queue
from bench.speed.serving import PATIENCE, Row, block, has_verdict, make, wait_for, watching

PARTS = ("overflow", "unblocked")
UNBLOCKED_SECONDS = 10.0
_STALLED_SECONDS = 120.0
_BAD_EVERY = 100
_LOCKS = ("index.lock", "refs/heads/main.lock")
"""What git itself takes to commit on a branch that is checked out."""


def arguments(words: Sequence[str] | None) -> argparse.Namespace:
    parser = command_line("bench.speed.daemon", __doc__)
    add = parser.add_argument
    add("--responses", type=int, default=20_000, metavar="N", help="in the flood (20000)")
    add("--points", type=int, metavar="N", help="kill at only so many calls, spread evenly")
    add("--only", choices=PARTS, help="one part")
    trial_options(parser)
    return parser.parse_args(words)


# ---------------------------------------------------------------- overflow


def overflow(command: Sequence[str], room: Path, count: int) -> Iterator[Row]:
    """Let `count` responses come in while the daemon is stopped."""
    repo = make(room / "repo", command, "trunk")
    bodies = {f"r{n}.md": _response(n) for n in range(count)}
    inbox, ready = repo / ".patchq/inbox", room / "ready"
    ready.mkdir()
    for name, body in bodies.items():
        (ready / name).write_bytes(body)
    with watching(command, repo) as daemon:
        bodies["first.md"] = block("first.txt", "", "new\n")
        (inbox / "first.md").write_bytes(bodies["first.md"])
        wait_for(lambda: has_verdict(repo, "first"), "no verdict on the first response")
        daemon.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, daemon.pid, os.WSTOPPED)
        witness = Witness(inbox)
        for name in bodies.keys() - {"first.md"}:
            (ready / name).rename(inbox / name)
        kept, lost = witness.close()
        began = time.monotonic()
        daemon.send_signal(signal.SIGCONT)
        _await_all(repo, len(bodies))
        seconds = time.monotonic() - began
    found = list(_violations(repo, bodies))
    for sentence in found[:20]:
        say(f"  {sentence}")
    reports = len(aftermath.reports(repo / ".patchq")) - 1
    goal = "an overflow" if count > longest_queue() else ""
    yield Row("events that the kernel kept", f"{kept:,} of {count:,}", goal, lost or not goal)
    yield Row("responses handled", f"{reports:,} of {count:,}", "all, once", not found)
    yield Row("from going on to the last report", f"{seconds:.1f} s")
    yield Row("rate", f"{count / seconds:.0f} /s")


def _response(number: int) -> bytes:
    """A new small file; now and then what is to be refused."""
    if number % _BAD_EVERY == 9:
        return block("a.txt", f"{number}\n", "no\n")
    return block(f"new/{number // 100}/{number}.txt", "", f"{number}\n")


def _await_all(repo: Path, count: int) -> None:
    """Until there are so many reports, or none came for long."""
    done, moved, shown = 0, time.monotonic(), 0.0
    while done < count:
        time.sleep(min(1.0, count / 5000))
        places = [repo / ".patchq" / place for place in ("done", "rejected")]
        now = sum(name.endswith(".report.json") for at in places for name in os.listdir(at))
        if now != done:
            done, moved = now, time.monotonic()
        elif time.monotonic() - moved > _STALLED_SECONDS:
            return
        if time.monotonic() - shown > 5:
            shown = time.monotonic()
            say(f"  {done:,} of {count:,} have their verdict")


def _violations(repo: Path, bodies: dict[str, bytes]) -> Iterator[str]:
    sent = {(name, sha256(body).hexdigest()): name for name, body in bodies.items()}
    told = aftermath.reports(repo / ".patchq")
    yield from aftermath.verdicts(repo / ".patchq", sent, told)
    yield from aftermath.history(repo, "trunk", told)
    yield from aftermath.repository(repo)
    for report in told:
        bad = bodies[report["source"]["name"]].startswith(b"a.txt")
        if report["state"] != ("rejected" if bad else "applied"):
            yield f"{report['id']} is {report['state']}"


# ---------------------------------------------------------------- unblocked


def unblocked(command: Sequence[str], room: Path, most: int | None) -> Iterator[Row]:
    """Kill a daemon where it holds a lock; then time, from the next start, a person's commit."""
    ready = make(room / "ready", command, "main")
    (ready / ".patchq/inbox/x.md").write_bytes(block("a.txt", "two\n", "2\n"))
    points = _points(command, ready, room)
    step = max(1, len(points) // (most or len(points)))
    left: Counter[str] = Counter()
    seconds: list[float] = []
    wrong = 0
    for point in points[::step]:
        repo = _copy(ready, room)
        _killed_at(point, command, repo)
        locks = [name for name in _LOCKS if (repo / ".git" / name).exists()]
        left.update(locks)
        seconds.append(_until_commit(command, repo, locks))
        found = [*_aftermath(repo)]
        say(f"  killed at {point}: {', '.join(locks) or 'no lock'} left, {seconds[-1]:.2f} s")
        for sentence in found:
            say(f"    {sentence}")
        wrong += bool(found)
    for name in _LOCKS:
        yield Row(f"kills that left {name}", f"{left[name]} of {len(seconds)}")
    yield Row("from the start to the commit, median", f"{median(seconds):.2f} s")
    met = max(seconds) <= UNBLOCKED_SECONDS
    yield Row("maximum", f"{max(seconds):.2f} s", f"<= {UNBLOCKED_SECONDS:.0f} s", met)
    whole = f"{len(seconds) - wrong} of {len(seconds)}"
    yield Row("landed once, and apart from the commit", whole, "all", not wrong)
    with ThreadPoolExecutor() as pool:
        seen = pool.map(lambda name: _foreign(command, _copy(ready, room / name), name), _LOCKS)
        for name, (kept, said) in zip(_LOCKS, seen, strict=True):
            yield Row(f"foreign {name}", said, "kept, named", kept)


def _copy(ready: Path, room: Path) -> Path:
    shutil.rmtree(room / "at", ignore_errors=True)
    (room / "at").mkdir(parents=True)
    subprocess.run(["cp", "-a", str(ready), str(room / "at/repo")], check=True)
    return room / "at/repo"


def _points(command: Sequence[str], ready: Path, room: Path) -> list[Point]:
    """The calls of a landing from behind the one that takes the first lock to the one that gives
    back the last."""
    repo, log = _copy(ready, room), room / "trace"
    tracer = _traced(command, repo, log)
    try:
        wait_for(lambda: has_verdict(repo, "x"), "no verdict under strace")
        _end(tracer, repo)
    finally:
        tracer.kill()
        tracer.wait()
    every = strace.points(log, repo)
    held = [p for name in _LOCKS for p in strace.points(log, repo / ".git" / name)]
    places = sorted(every.index(point) for point in held)
    return every[places[0] + 1 : places[-1] + 1]


def _traced(
    command: Sequence[str], repo: Path, log: Path, *injections: str
) -> subprocess.Popen[bytes]:
    words = ["strace", "-qq", "-y", "-o", str(log), "-e", f"trace={','.join(CALLS)}"]
    words += [word for injection in injections for word in ("-e", f"inject={injection}")]
    with repo.with_name("traced.txt").open("wb") as out:
        return subprocess.Popen([*words, *command, "watch"], cwd=repo, stdout=out, stderr=out)


def _end(tracer: subprocess.Popen[bytes], repo: Path) -> None:
    """Tell the traced daemon to stop, which its own word on the queue's lock finds."""
    os.kill(json.loads((repo / ".patchq/lock").read_bytes())["pid"], signal.SIGTERM)
    tracer.wait(PATIENCE)


def _killed_at(point: Point, command: Sequence[str], repo: Path) -> None:
    injection = f"{point.call}:signal=KILL:when={point.number}"
    tracer = _traced(command, repo, repo.with_name("trace"), injection)
    try:
        code = tracer.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        _end(tracer, repo)
        raise BenchError(f"{point} was not met") from None
    if code != -signal.SIGKILL:
        raise BenchError(f"killed at {point}, the daemon ended with {code}")


def _until_commit(command: Sequence[str], repo: Path, locks: Sequence[str]) -> float:
    """Seconds from the daemon's start until a person's `git commit` succeeds, or patience ends."""
    if bool(locks) == _commits(repo):
        raise BenchError(f"a person {'can' if locks else 'cannot'} commit beside {locks}")
    began = time.perf_counter()
    with watching(command, repo):
        while not _commits(repo) and time.perf_counter() - began < PATIENCE:
            time.sleep(0.005)
        seconds = time.perf_counter() - began
        wait_for(lambda: has_verdict(repo, "x"), "no verdict")
    return seconds


def _commits(repo: Path) -> bool:
    words = ["git", "commit", "-q", "--allow-empty", "-m", "Mine"]
    return subprocess.run(words, cwd=repo, capture_output=True).returncode == 0


def _aftermath(repo: Path) -> Iterator[str]:
    """The batch landed once, and the person's commits hold nothing of it."""
    told = aftermath.reports(repo / ".patchq")
    if [report["state"] for report in told] != ["applied"]:
        yield f"the verdicts are {[report['state'] for report in told]}"
    yield from aftermath.history(repo, "main", told)
    yield from aftermath.repository(repo)
    yield from aftermath.work_tree(repo)


def _foreign(command: Sequence[str], repo: Path, name: str) -> tuple[bool, str]:
    """Whether a lock of nobody's stays, and the batch that waits for it says so; and how long it
    took to say so."""
    lock, held = repo / ".git" / name, repo / ".patchq/active/x.report.json"
    lock.touch()
    began = time.perf_counter()
    with watching(command, repo):
        wait_for(held.exists, "the batch is not held")
        said = f"held in {time.perf_counter() - began:.1f} s"
        (problem,) = json.loads(held.read_bytes())["problems"]
        kept = lock.exists() and problem["code"] == "target.busy"
        kept = kept and str(lock) in problem["message"] and " s" in problem["message"]
        say(f"  {problem['message']}")
        lock.unlink()
        wait_for(lambda: has_verdict(repo, "x"), "no verdict once the lock was gone")
    return kept, said


# ---------------------------------------------------------------- the whole


def main(words: Sequence[str] | None = None) -> int:
    args = arguments(words)
    try:
        command = find_command(args.command)
        if args.only != "overflow":
            strace.require()
    except (BenchError, NoStrace) as error:
        say(f"bench.speed.daemon: {error}")
        return 2
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="patchq-daemon-", dir=args.work) as scratch:
        room = Path(scratch)
        os.environ.update(HERMETIC | {"HOME": scratch, "TMPDIR": scratch})
        try:
            if args.only != "unblocked":
                rows += overflow(command, room / "overflow", args.responses)
            if args.only != "overflow":
                rows += unblocked(command, room / "unblocked", args.points)
        except (BenchError, GitFailed, OSError) as error:
            say(f"bench.speed.daemon: {error}")
            return 3
    print("\n".join(map(str, rows)))
    return int(not all(row.met for row in rows))


if __name__ == "__main__":
    sys.exit(main())
