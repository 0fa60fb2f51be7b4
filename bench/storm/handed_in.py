"""Real commits, handed in as they are, for a branch that stands elsewhere.

Commits of a clone, those first that change links, then those that rename, change modes or binary
files, are handed in by
`patchq submit --range`, each for a branch that stands `--behind` commits before the commit's
parent.  What lands must be the tree that git's own merge makes there, and nothing may where
git does not merge.  Exit 0 when no result is
wrong and nine in ten of those that git merges cleanly land, 1 otherwise, 2 when the bench cannot be
used, 3 when it could not be run to its end.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.console import command_line, say, trial_options, tried
from bench.git import BenchError, environment, git, new_repository, run, store_of
from tests.helpers.gitrepo import write_config

LEAST = 0.9
"""The share of clean merges that has to land."""
_ODD = re.compile(r"^:(\d{6}) (\d{6}) \S+ \S+ ([A-Z])", re.MULTILINE)
_BINARY = re.compile(r"\.(?:png|gif|ico|jpe?g|woff2?|mp4|pdf|zip|gz)$", re.MULTILINE)
WHO = ("-c", "user.name=Bench", "-c", "user.email=bench@example.org")
_CONFIG = """version: 1
target: main
mode: auto
targets: ['case-*']
validate: {syntax: false, elision: false}
paths: {review: ['!**']}
limits: {files: 5000, edits: 50000, response_bytes: 50000000, file_bytes: 50000000}
"""


@dataclass(frozen=True, slots=True)
class Case:
    """A commit, its parent, and where the branch `name` stands (ids in hex)."""

    name: str
    commit: str
    parent: str
    tip: str
    odd: bool


def cases(repo: Path, home: Path, count: int, behind: int, seed: int) -> list[Case]:
    """Commits with one parent; half of them, if there are so many, change more than lines, and half
    of these links."""
    log = git(
        repo, "log", "--no-merges", "--raw", "-M", "--no-abbrev", "--format=%x00%H %P", home=home
    )
    plain, odd, links = (list[tuple[str, str]]() for _ in range(3))
    for entry in log.decode(errors="replace").split("\0")[1:]:
        head, _, raw = entry.partition("\n")
        commit, *parents = head.split()
        if len(parents) == 1 and raw.strip():
            kind = links if _changes_links(raw) else odd if _is_rare(raw) else plain
            kind.append((commit, parents[0]))
    chance = random.Random(seed)
    chosen = chance.sample(links, min(len(links), count // 4))
    say(f"{len(links)} commits change links")
    chosen += chance.sample(odd, min(len(odd), count // 2 - len(chosen)))
    rare_ones = set(chosen)
    chosen += chance.sample(plain, min(len(plain), count - len(chosen)))
    found: list[Case] = []
    for commit, parent in chosen:
        steps = chance.randint(1, behind)
        named = subprocess.run(
            ["git", "rev-parse", "-q", "--verify", f"{parent}~{steps}"],
            cwd=repo, env=environment(home), capture_output=True, check=False,
        )  # fmt: skip
        if named.returncode == 0:
            tip = named.stdout.decode().strip()
            name = f"case-{len(found)}"
            found.append(Case(name, commit, parent, tip, (commit, parent) in rare_ones))
    return found


def _is_rare(raw: str) -> bool:
    """Whether what `git log --raw` tells of a commit is more than lines of files."""
    entries = _ODD.findall(raw)
    modes = {(old, new) for old, new, _ in entries if old != new and "000000" not in (old, new)}
    renames = any(kind == "R" for *_, kind in entries)
    return bool(modes or renames or _BINARY.search(raw))


def _changes_links(raw: str) -> bool:
    return any("120000" in entry for entry in _ODD.findall(raw))


def merged(repo: Path, home: Path, case: Case) -> str | None:
    """The tree that git makes of the branch and the commit; None where they conflict."""
    # Of two children of the parent, that is the base, whatever git.
    words = ("commit-tree", f"{case.tip}^{{tree}}", "-p", case.parent, "-m", "x")
    there = git(repo, *WHO, *words, home=home).decode().strip()
    done = subprocess.run(
        ["git", "merge-tree", "--write-tree", there, case.commit],
        cwd=repo, env=environment(home), capture_output=True, check=False,
    )  # fmt: skip
    if done.returncode > 1:
        raise BenchError(done.stderr.decode(errors="replace"))
    return done.stdout.decode().split("\n")[0] if done.returncode == 0 else None


def hand_in(
    args: argparse.Namespace, room: Path, command: Sequence[str]
) -> Iterator[tuple[Case, str, str]]:
    """Each case with its outcome, and what is to be said of it."""
    home = room / "home"
    home.mkdir()
    store, head = store_of(args.clone, room, home=home)
    repo = room / "repo"
    new_repository(repo, store, {"main": head}, head="main")
    write_config(repo, _CONFIG)
    found = cases(repo, home, args.commits, args.behind, args.seed)
    stdin = "".join(f"create refs/heads/{case.name} {case.tip}\n" for case in found)
    git(repo, "update-ref", "--stdin", home=home, data=stdin.encode())
    say(f"handing in {len(found)} commits, {sum(case.odd for case in found)} of more than lines")
    doors = {case: _submitted(command, repo, home, case) for case in found}
    ended = run([*command, "run"], repo, home=home)
    if ended.code not in (0, 1):
        raise BenchError(f"run ended with {ended.code}: {ended.errors[-800:]}")
    for case in found:
        yield case, *_outcome(repo, home, case, doors[case])


@dataclass(frozen=True, slots=True)
class Door:
    """What `submit` said: the batch's id, or why there is none."""

    id: str | None
    said: str = ""


def _submitted(command: Sequence[str], repo: Path, home: Path, case: Case) -> Door:
    words = ("submit", "--range", f"{case.parent}..{case.commit}", "--target", case.name)
    done = subprocess.run(
        [*command, "--json", *words], cwd=repo, env=environment(home), capture_output=True,
        check=False,
    )  # fmt: skip
    if done.returncode:
        return Door(None, done.stderr.decode(errors="replace").strip())
    return Door(json.loads(done.stdout)["id"])


def _outcome(repo: Path, home: Path, case: Case, door: Door) -> tuple[str, str]:
    tree = merged(repo, home, case)
    clean = "" if tree else ", as git"
    tip = git(repo, "rev-parse", f"refs/heads/{case.name}", home=home).decode().strip()
    if door.id is None:
        return ("refused at the door" if tip == case.tip else "wrong"), door.said
    told = [*(repo / ".patchq").glob(f"*/{door.id}.report.json")]
    report: dict[str, Any] = {"state": "none"}
    if len(told) == 1:
        report = json.loads(told[0].read_bytes())
    codes = sorted({problem["code"] for problem in report.get("problems", ())})
    said = f"{report['state']} {' '.join(codes)}: {report.get('problems', [])[:1]}"
    at = {"applied": tip, "proposed": report.get("commit")}.get(str(report["state"]))
    if at is None:
        same = report["state"] in ("rejected", "duplicate") and tip == case.tip
        if not same:
            return "wrong", said
        if report["state"] == "duplicate":
            base = git(repo, "rev-parse", f"{case.tip}^{{tree}}", home=home).decode().strip()
            return ("exact" if tree == base else "wrong"), "there already"
        return f"{report['state']} {' '.join(codes)}{clean}", said
    made = git(repo, "rev-parse", f"{at}^{{tree}}", home=home).decode().strip()
    if made == tree:
        return "exact", report["state"]
    return "wrong", f"{said} {made} {tree or 'where git does not merge'}"


def main(words: Sequence[str] | None = None) -> int:
    parser = command_line("bench.storm.handed_in", __doc__)
    add = parser.add_argument
    add("--clone", type=Path, required=True, metavar="PATH", help="a repository with a history")
    add("--commits", type=int, default=300, metavar="N", help="at most (300)")
    add("--behind", type=int, default=20, metavar="N", help="commits, at most (20)")
    add("--seed", type=int, default=1, metavar="N")
    trial_options(parser)
    args = parser.parse_args(words)

    return tried("handed_in", args.command, lambda command: judged(args, command))


def judged(args: argparse.Namespace, command: list[str]) -> int:
    """The exit code, once all was handed in and compared with what git makes of it."""
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="patchq-handed-in-", dir=args.work) as room:
        for case, what, said in hand_in(args, Path(room).absolute(), command):
            counts[what] += 1
            if what != "exact":
                print(f"{what}: {case.name} {case.commit[:12]}: {said[:500]}")
    for name, count in counts.most_common():
        print(f"{count:>6}  {name}")
    clean = sum(n for name, n in counts.items() if not name.endswith(", as git"))
    share = counts["exact"] / clean if clean else 1.0
    print(f"{share:.1%} of the {clean} that git merges cleanly landed as git merges them")
    return 1 if counts["wrong"] or share < LEAST else 0


if __name__ == "__main__":
    sys.exit(main())
