"""What it costs to accept many proposals: runs of the hooks, and seconds.

    python -m bench.trains [--old DIR] [--only WORD]
    python -m bench.trains --flaky 200
    python -m bench.trains --project DIR [--tests COMMAND]

`--old` is another checkout of patchq, which does the same beside this one.  `--flaky` lands so
many trains of ten, of which some are bad, by a hook that refuses one good tree of twenty.
`--project` is a clone: 40 of its last commits are handed in, one of them broken, and accepted with
its tests as the hook.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from patchq.gate.hooks.sandbox import NO_SANDBOX

ROOT = Path(__file__).parent.parent
_COMMITS = 40  # of a project; some of the last ones do not apply on the one before them all
_PICKED_FROM = 80
_LONGEST_SECONDS = 300
PAIR = "! { grep -q new f07.txt && grep -q new f23.txt; }"


class Case(Struct, frozen=True):
    """A train: how many proposals, and what the hook does, if there is one."""

    name: str
    count: int
    line: str | None


class Cost(Struct, frozen=True):
    """What one train cost, and what came of it."""

    seconds: float
    runs: int
    landed: int


CASES = (
    Case("40, a bad pair, hook of 2 s", 40, f"sleep 2; {PAIR}"),
    Case("40 good ones, hook of 2 s", 40, "sleep 2"),
    Case("200 without a hook", 200, None),
    Case("1 with a hook of 2 s", 1, "sleep 2"),
)


def patchq(code: Path, repo: Path, *words: str) -> str:
    """Return the output of patchq of the checkout `code`; a refusal is no failure here."""
    env = {**os.environ, "PYTHONPATH": str(code), NO_SANDBOX: "1", "PATCHQ_NO_JAIL": "1"}
    command = [sys.executable, "-m", "patchq", *words]
    done = subprocess.run(command, cwd=repo, env=env, check=False, capture_output=True, text=True)
    if done.returncode not in (0, 1):
        raise SystemExit(done.stdout + done.stderr)
    return done.stdout + done.stderr


def git(repo: Path, *words: str) -> str:
    return subprocess.check_output(["git", *words], cwd=repo, text=True)


def made(code: Path, repo: Path, count: int) -> None:
    """Make a repository with so many proposals by one agent."""
    repo.mkdir()
    git(repo, "init", "-q", "-b", "main")
    git(repo, "config", "user.name", "bench")
    git(repo, "config", "user.email", "bench@example.org")
    for number in range(count):
        (repo / f"f{number:02}.txt").write_text("old\n")
    git(repo, "add", "-A")
    git(repo, "commit", "-q", "-m", "Base")
    patchq(code, repo, "init")
    (repo / ".patchq.yaml").unlink(missing_ok=True)
    own = repo / ".git/patchq.yaml"
    own.write_text("version: 1\nmode: review\n")
    for number in range(count):
        text = f"f{number:02}.txt\n```\n<<<<<<< SEARCH\nold\n=======\nnew\n>>>>>>> REPLACE\n```\n"
        (repo / f".patchq/inbox/p{number:03}.md").write_text(f"---\nagent: codex\n---\n{text}")
    patchq(code, repo, "run")


def cost(code: Path, case: Case, place: Path) -> Cost:
    """Return what the train costs by the code of that checkout."""
    repo, runs = place / "repo", place / "runs"
    made(code, repo, case.count)
    runs.touch()
    if case.line:
        hook = f"id: tests, stage: pre-commit, unconfined: true, run: 'printf x >> {runs}"
        text = f"version: 1\nmode: review\nhooks: [{{{hook}; {case.line}'}}]\n"
        (repo / ".git/patchq.yaml").write_text(text)
    began = time.monotonic()
    patchq(code, repo, "accept", "--all-from", "codex", "--yes")
    seconds = time.monotonic() - began
    landed = len(git(repo, "log", "--format=%h").split()) - 1
    return Cost(seconds, runs.stat().st_size, landed)


def flaky(trains: int, place: Path) -> str:
    """Return the number of trains of which an innocent change was named, and the hook's runs."""
    repo, runs, luck = place / "repo", place / "runs", random.Random(1)
    made(ROOT, repo, 1)
    patchq(ROOT, repo, "discard", "p000")
    runs.touch()
    seed = f"$(wc -c < {runs})"
    fails = f"awk -v seed={seed} 'BEGIN {{ srand(seed); exit rand() < 0.05 }}'"
    script = place / "tests.sh"
    script.write_text(f"#!/bin/sh\nprintf x >> {runs}\n! grep -q bad *.txt || exit 1\n{fails}\n")
    script.chmod(0o755)
    config, rules = repo / ".git/patchq.yaml", "version: 1\nmode: review\n"
    hook = f"id: tests, stage: pre-commit, unconfined: true, run: {script}"
    wrong = found = bad = 0
    for train in range(trains):
        contents = {f"p{train}-{n}": luck.choices(("good", "bad"), (39, 1))[0] for n in range(10)}
        config.write_text(rules)
        for id, word in contents.items():
            text = f"{id}.txt\n<<<<<<< SEARCH\n=======\n{word}\n>>>>>>> REPLACE\n"
            (repo / f".patchq/inbox/{id}.md").write_text(f"---\nagent: codex\n---\n{text}")
        patchq(ROOT, repo, "run")
        config.write_text(f"{rules}hooks: [{{{hook}}}]\n")
        patchq(ROOT, repo, "accept", "--all-from", "codex", "--yes")
        names = git(repo, "for-each-ref", "--format=%(refname:lstrip=3)", "refs/patchq/waiting")
        left = names.split()
        wrong += any(contents[id] == "good" for id in left)
        found += sum(contents[id] == "bad" for id in left)
        bad += sum(word == "bad" for word in contents.values())
        if left:
            patchq(ROOT, repo, "discard", *left)
    return (
        f"{trains} trains of 10: {wrong} with an innocent one named, {found} of {bad} bad ones "
        f"named, {runs.stat().st_size} runs"
    )


def project(clone: Path, tests: str, place: Path) -> str:
    """Return the output of `accept` of 40 commits of the clone's history, on one before them."""
    repo = place / "repo"
    subprocess.run(["git", "clone", "-q", clone, repo], check=True, timeout=_LONGEST_SECONDS)
    commits = git(repo, "rev-list", "--no-merges", "-n", str(_PICKED_FROM), "HEAD").split()[::-1]
    git(repo, "config", "user.name", "bench")
    git(repo, "config", "user.email", "bench@example.org")
    git(repo, "reset", "-q", "--hard", f"{commits[0]}^")
    target = git(repo, "branch", "--show-current").strip()
    patchq(ROOT, repo, "init", "--target", target)
    rules = repo / ".git/patchq.yaml"
    rules.write_text("version: 1\nmode: review\n")
    picked = list[str]()
    for commit in commits:
        name = f"c{len(picked):02}"
        git(repo, "checkout", "-q", "-B", name, target)
        words = ["git", "cherry-pick", commit]
        if subprocess.run(
            words, cwd=repo, capture_output=True, timeout=_LONGEST_SECONDS
        ).returncode:
            git(repo, "cherry-pick", "--abort")
            continue
        if len(picked) == _COMMITS // 2:  # broken on purpose
            changed = git(repo, "ls-files", "*/__init__.py").split()[0]
            with (repo / changed).open("a") as file:
                file.write("\nraise SystemError\n")
            git(repo, "commit", "-q", "-a", "--amend", "--no-edit")
        git(repo, "checkout", "-q", target)
        patchq(ROOT, repo, "submit", "--branch", name, "--agent", "project")
        picked.append(name)
        if len(picked) == _COMMITS:
            break
    git(repo, "checkout", "-q", target)
    patchq(ROOT, repo, "run")
    hook = f"id: tests, stage: pre-commit, unconfined: true, run: '{tests}'"
    rules.write_text(f"version: 1\nmode: review\nhooks: [{{{hook}}}]\n")
    return patchq(ROOT, repo, "accept", "--all-from", "project", "--yes")


def rows(cases: tuple[Case, ...], old: Path | None) -> Iterator[str]:
    for case in cases:
        found = []
        for code in filter(None, (ROOT, old)):
            place = Path(tempfile.mkdtemp(prefix="trains-", dir="/dev/shm"))
            try:
                found.append(cost(code, case, place))
            finally:
                shutil.rmtree(place)
        cells = [f"{one.landed} landed, {one.runs} runs, {one.seconds:.1f} s" for one in found]
        share = f"{found[0].seconds / found[1].seconds:.3f} x" if len(found) > 1 else ""
        yield " | ".join((case.name, *cells, share))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--old", type=Path, help="another checkout, to compare with")
    parser.add_argument("--only", metavar="WORD", default="", help="cases whose name has the word")
    parser.add_argument("--flaky", type=int, metavar="N", help="so many trains by a flaky hook")
    parser.add_argument("--project", type=Path, metavar="DIR", help="a clone of a project")
    parser.add_argument("--tests", default="python -m pytest -q -x", help="the project's tests")
    args = parser.parse_args()
    if args.project:
        with tempfile.TemporaryDirectory(prefix="trains-", dir="/dev/shm") as place:
            print(project(args.project.resolve(), args.tests, Path(place)))
        return
    if args.flaky:
        with tempfile.TemporaryDirectory(prefix="trains-", dir="/dev/shm") as place:
            print(flaky(args.flaky, Path(place)))
        return
    for row in rows(tuple(case for case in CASES if args.only in case.name), args.old):
        print(row, flush=True)


if __name__ == "__main__":
    main()
