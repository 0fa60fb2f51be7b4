"""The processes of a storm: agents that drop responses, a person who commits, one who collects.

Each is forked, writes what it did as JSON lines into `log`, and reads the repository by git alone.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import random
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from multiprocessing.process import BaseProcess as Process
from multiprocessing.synchronize import Event
from pathlib import Path

from bench.git import BenchError, environment, run
from bench.storm.author import Author
from bench.storm.facts import Facts
from bench.storm.intent import WAITING, Intent, Record, lines_of, misquoted
from bench.storm.phrase import phrase
from bench.storm.town import TARGET, Town, configure

PATIENCE = 120.0
"""Seconds to wait for one verdict."""
_LOOK = 0.01
_FORK = multiprocessing.get_context("fork")


def start(what: Callable[..., None], *args: object) -> Process:
    """A process of its own; its exit code is 1 if it failed."""
    process = _FORK.Process(target=_guarded, args=(what, *args))
    process.start()
    return process


def event() -> Event:
    return _FORK.Event()


def _guarded(what: Callable[..., None], *args: object) -> None:
    try:
        what(*args)
    except BaseException:
        traceback.print_exc()
        sys.exit(1)


@contextmanager
def _facts(town: Town) -> Iterator[Facts]:
    facts = Facts(town.repo, town.home)
    try:
        yield facts
    finally:
        facts.close()


# ---------------------------------------------------------------- agents


def agent(
    town: Town, name: str, responses: int, seed: int, log: Path, misquotes: bool = False
) -> None:
    """Drop one response after another, each once the one before it has its verdict."""
    with _facts(town) as facts, log.open("w") as out:
        author = Author(facts, town.files, name, seed, calm=misquotes)
        for number in range(responses):
            intent = author.think(number)
            if misquotes:
                intent = misquoted(intent)
            out.write(_send(town, facts, intent).dump())
            out.flush()


def propose(town: Town, count: int, seed: int, command: Sequence[str]) -> list[Record]:
    """So many proposals for the target, which wait from now on."""
    records = []
    with _facts(town) as facts:
        author, tip = Author(facts, town.files, "w", seed, calm=True), facts.oid(TARGET)
        for number in range(count):
            intent = replace(author.think(number), aim=WAITING)
            suffix, content = phrase(intent)
            name, digest = intent.name + suffix, hashlib.sha256(content).hexdigest()
            drop(town.repo, name, content)
            records.append(Record(intent, name, digest, tip, tip, time.time()))
    configure(town.repo, "review")
    done = run([*command, "-q", "run"], town.repo, home=town.home)
    configure(town.repo, "auto")
    if done.code:
        raise BenchError(f"what is to wait was not proposed: {done.errors[-800:]}")
    return records


def _send(town: Town, facts: Facts, intent: Intent) -> Record:
    suffix, content = phrase(intent)
    before = facts.oid(f"refs/heads/{TARGET}")
    drop(town.repo, intent.name + suffix, content)
    reports = [town.repo / ".patchq" / where / f"{intent.name}.report.json" for where in ENDS]
    began = time.monotonic()
    while not any(report.exists() for report in reports):
        if time.monotonic() - began > PATIENCE:
            break
        time.sleep(_LOOK)
    after = facts.oid(f"refs/heads/{TARGET}")
    digest = hashlib.sha256(content).hexdigest()
    return Record(intent, intent.name + suffix, digest, before, after, time.time())


ENDS = ("done", "rejected")


def drop(repo: Path, name: str, content: bytes) -> None:
    """Put a response into the inbox at once, as any program can."""
    inbox = repo / ".patchq/inbox"
    part = inbox / f".{name}"
    part.write_bytes(content)
    part.rename(inbox / name)


# ---------------------------------------------------------------- a person


def person(town: Town, seed: int, pause: float, stop: Event, log: Path) -> None:
    """Edit and commit in the target's work tree until told to stop, as people do: a file that
    changed while one was writing is taken back, and a commit that git refuses, for a lock or for a
    directory that `git gc` has just removed, is tried again."""
    rng = random.Random(f"person {seed}")
    with _facts(town) as facts, log.open("w") as out:
        number = 0
        while not stop.wait(pause * rng.random() * 2):
            number += 1
            path = rng.choice(town.files)
            done = _commit_by_hand(town, facts, path, number, rng)
            if done is not None:
                oid, text = done
                out.write(json.dumps({"commit": oid, "path": path, "text": text}) + "\n")
                out.flush()


def _commit_by_hand(
    town: Town, facts: Facts, path: str, number: int, rng: random.Random
) -> tuple[str, str] | None:
    file = town.hand / path
    tip = facts.oid(f"refs/heads/{TARGET}")
    text = facts.text(tip, path)
    if text is None or not file.exists() or file.read_text() != text:
        return None
    edited = _by_hand(text, number, rng)
    file.write_text(edited)
    if facts.text(f"refs/heads/{TARGET}", path) != text:
        _git(town, "checkout", "-q", "HEAD", "--", path)
        return None
    for _ in range(200):
        done = _git(town, "commit", "-q", "-m", f"By hand {number}", "--", path)
        if done.returncode == 0:
            return _made(facts, f"By hand {number}"), edited
        time.sleep(0.002 + 0.01 * rng.random())
    raise BenchError(f"git commit fails for ever: {done.stderr}")


def _made(facts: Facts, subject: str) -> str:
    """The commit of that subject; others may stand on it by now."""
    words = ("log", "-1", "--format=%H", f"--grep=^{subject}$", f"refs/heads/{TARGET}")
    return facts.git(*words).strip()


def _by_hand(text: str, number: int, rng: random.Random) -> str:
    """The text with a remark, or with a function copied to its end, or moved there."""
    lines = lines_of(text)
    tops = [at for at, line in enumerate(lines) if line.startswith("def ")]
    how = rng.random()
    if tops and how < 0.4:
        at = rng.choice(tops)
        end = next((n for n in range(at + 1, len(lines)) if lines[n][:1].strip()), len(lines))
        block = lines[at:end]
        rest = [*lines[:at], *lines[end:]] if how < 0.15 else lines
        return "".join([*rest, "\n", "\n", *block])
    at = rng.randrange(len(lines))
    lines[at:at] = [f"{_indent(lines[at])}# by hand {number}\n"]
    return "".join(lines)


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())].strip("\n")


def _git(town: Town, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["git", *words],
        cwd=town.hand,
        env=environment(town.home),
        capture_output=True,
        text=True,
        check=False,
    )


def collector(town: Town, pause: float, stop: Event, log: Path) -> None:
    """Run `git gc` again and again."""
    times = 0
    while not stop.wait(pause):
        done = subprocess.run(
            ["git", "gc", "--quiet"],
            cwd=town.repo,
            env=environment(town.home),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise BenchError(f"git gc: {done.stderr}")
        times += 1
    log.write_text(f"{times}\n")
