"""What is finished: the verbs that look at it, and what it leaves in the queue's folder."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from bench.git import BenchError
from bench.speed.cost.ground import Ground
from bench.speed.goal import Goal
from tests.helpers.gitrepo import write_config

FEW, MANY, EXPIRED = 100, 10_000, 2_000
EACH = 3
"""Starts in a row whose sum is one measurement."""
LANDS = 5
"""One response of so many makes a file; the others hold no edit."""
DAYS = 40
VERBS = {
    "status": ("status",),
    "log": ("log",),
    "show": ("show", "task-00007"),
    "stats": ("stats",),
    "doctor": ("doctor", "--before-start"),
}


def finished(ground: Ground) -> Iterator[Goal]:
    """Each verb with many finished batches, to the same with few; the files that a batch has, and
    the bytes that are left of it once it expired."""
    many, expired = (MANY, EXPIRED) if not ground.quick else (MANY // 10, EXPIRED // 10)
    repos = {count: _worked_off(ground, count) for count in (FEW, many)}
    ratios: dict[str, list[float]] = {verb: [] for verb in VERBS}
    for _ in range(ground.rounds):
        for verb, words in VERBS.items():
            few, more = (
                sum(ground.spent([*ground.command, *words], repo) for _ in range(EACH))
                for repo in repos.values()
            )
            ratios[verb].append(more / few)
    for verb, values in ratios.items():
        yield Goal(f"{verb}, {many:,} finished / {FEW}", values, 1.5)
    shared = 0.06 if many == MANY else 0.6
    yield Goal(f"files a batch, {many:,} finished", [len(_files(repos[many])) / many], 3 + shared)
    repo = _worked_off(ground, expired)
    _expire(ground, repo)
    left = _files(repo)
    shared = 0.3 if expired == EXPIRED else 3
    yield Goal(f"files a batch, {expired:,} expired", [len(left) / expired], shared)
    with closing(_store(repo)) as store:  # free pages are used again
        kinds = ("page_count", "freelist_count", "page_size")
        pages, free, each = (store.execute(f"pragma {kind}").fetchone()[0] for kind in kinds)
    size = (pages - free) * each
    yield Goal(f"bytes a batch, {expired:,} expired", [size / expired], 200)


def _worked_off(ground: Ground, count: int) -> Path:
    """A repository in which so many responses have their verdict, by one `patchq run`."""
    repo = ground.repository(f"{count}")
    ground.spent([*ground.command, "init"], repo)
    _configure(repo, 0)
    for number in range(count):
        path = f"d{number // 100:03}/f{number}.txt"
        lands = f"{path}\n<<<<<<< SEARCH\n=======\nline {number}\n>>>>>>> REPLACE\n"
        text = f"nothing to do, for the {number}th time\n" if number % LANDS else lands
        head = f"---\nagent: writer-{number % 7}\n---\n"
        (repo / f".patchq/inbox/task-{number:05}.md").write_text(head + text)
    _run(ground, repo)
    found = sum(name.endswith(".json") for at in ("done", "rejected") for name in _names(repo, at))
    if found != count:
        raise BenchError(f"{found} of {count} responses have a verdict")
    ground.spent([*ground.command, "fsck"], repo)
    return repo


def _run(ground: Ground, repo: Path) -> None:
    """`patchq run`, which gives 1 where something was refused."""
    words = '"$@"; test $? -le 1'
    ground.spent(["sh", "-c", words, "sh", *ground.command, "-q", "run"], repo)


def _configure(repo: Path, days: int) -> None:
    """The target is not checked out, and finished batches stay for so many days."""
    text = f"version: 1\nmode: auto\ntarget: main\nqueue: {{retention_days: {days}}}\n"
    write_config(repo, text)
    (repo / ".git/HEAD").write_text("ref: refs/heads/elsewhere\n")


def _names(repo: Path, place: str) -> list[str]:
    return os.listdir(repo / ".patchq" / place)


def _store(repo: Path) -> sqlite3.Connection:
    return sqlite3.connect(repo / ".patchq/store.db", isolation_level=None)


def _files(repo: Path) -> list[Path]:
    """Everything in the queue's folder but its directories, and what hooks have there."""
    walked = os.walk(repo / ".patchq")
    paths = [Path(at, name) for at, folders, names in walked for name in (*names, *folders)]
    kept = (p for p in paths if "hooks" not in p.parts)
    return [path for path in kept if path.is_symlink() or not path.is_dir()]


def _expire(ground: Ground, repo: Path) -> None:
    """Let every verdict be old, and have patchq remove what is."""
    seconds = DAYS * 86_400
    with closing(_store(repo)) as store:
        aged = "update responses set ended = ended - ?, ending = ending - ?"
        store.execute(aged, (seconds, seconds * 10**9))
        store.execute("update events set number = number - ?", (seconds * 10**9,))
        store.execute("delete from meta where key like 'clock.%'")
    _configure(repo, DAYS - 10)
    before = -1
    while (left := len(_names(repo, "done") + _names(repo, "rejected"))) and left != before:
        before = left
        _run(ground, repo)
    if left:
        raise BenchError(f"{left} files of expired batches stay")
