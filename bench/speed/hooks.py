"""Measure what hooks cost: ten candidates with a hook of a second, and moving a warm work tree on.

The repositories are those of `bench.speed`.  Every result is verified against a tree that git
built by itself.  Exit 0 when all was measured, 1 with `--gate` when a goal is missed, 2 when it
cannot be used.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from bench.console import command_line
from bench.git import BenchError, find_command
from bench.speed.measure import drop, timed, verify_reports
from bench.speed.repos import Change, Site, changes
from tests.helpers.gitrepo import write_config

TEN, SECONDS = 10, 7.0
MANY = 20


def configure(repo: Path, mode: str, *hooks: str) -> None:
    told = [
        {"id": f"h{number}", "stage": "pre-commit", "run": line, "cache": False}
        for number, line in enumerate(hooks)
    ]
    config = {"version": 1, "target": "main", "mode": mode, "hooks": told}
    write_config(repo, json.dumps(config))


def ten(command: Sequence[str], site: Site, mode: str, checked_out: bool) -> float:
    """Seconds from the start of `run` to its end, ten disjoint responses and a hook of a second."""
    repo = site.fresh_tree() if checked_out else site.fresh_plain(mode)
    configure(repo, mode, "true")
    made = [change for change in changes(TEN * 2, site.files) if change.number % 10 != 9][:TEN]
    warm_up(command, site, repo)
    configure(repo, mode, "sleep 1")
    drop(repo, made)
    seconds = timed([*command, "run"], site, repo).seconds
    verify_reports(repo, TEN + 1, "applied" if mode == "auto" else "proposed")
    return seconds


def warm_up(command: Sequence[str], site: Site, repo: Path) -> float:
    """Seconds of the first candidate, for which a work tree has to be made."""
    drop(repo, [last_change(site)])
    return timed([*command, "run"], site, repo).seconds


def last_change(site: Site) -> Change:
    """One that none of the others meets."""
    return changes(500, site.files)[-2]


def moving_on(command: Sequence[str], site: Site) -> tuple[float, float]:
    """Seconds of the first candidate, and of each of many behind it, by a hook that does nothing;
    what they take without a hook is subtracted."""
    repo = site.fresh_plain("auto")
    configure(repo, "auto", "true")
    first = warm_up(command, site, repo)
    made = changes(MANY * 2, site.files)
    drop(repo, made[:MANY])
    timed([*command, "run"], site, repo)
    drop(repo, made[MANY:])
    hooked = timed([*command, "run"], site, repo).seconds
    repo = site.fresh_plain("auto")
    drop(repo, made[:MANY])
    plain = timed([*command, "run"], site, repo).seconds
    return first, (hooked - plain) / MANY


def main(argv: Sequence[str] | None = None) -> int:
    parser = command_line("bench.speed.hooks", __doc__)
    parser.add_argument("--command", default="patchq")
    parser.add_argument("--sizes", default="1000,100000")
    parser.add_argument("--gate", action="store_true", help="exit 1 when a goal is missed")
    args = parser.parse_args(argv)
    try:
        command = find_command(args.command)
        missed = False
        with tempfile.TemporaryDirectory(prefix="patchq-bench-") as room:
            home = Path(room, "home")
            home.mkdir()
            for files in map(int, args.sizes.split(",")):
                missed |= measure(command, Site(Path(room, str(files)), files, home))
    except BenchError as error:
        print(f"bench.speed.hooks: {error}", file=sys.stderr)
        return 2
    return int(missed and args.gate)


def measure(command: Sequence[str], site: Site) -> bool:
    """Print the figures of one repository; whether a goal was missed."""
    missed = False
    rows: list[tuple[str, Callable[[], float]]] = [
        ("review", lambda: ten(command, site, "review", checked_out=False)),
        ("auto", lambda: ten(command, site, "auto", checked_out=False)),
        ("auto, target checked out", lambda: ten(command, site, "auto", checked_out=True)),
    ]
    for name, figure in rows:
        seconds = figure()
        missed |= seconds > SECONDS
        print(f"{site.files} files, ten, a hook of 1 s, {name}: {seconds:.2f} s (<= {SECONDS:g})")
    first, each = moving_on(command, site)
    print(
        f"{site.files} files, first candidate: {first:.2f} s, each next one: {each * 1000:.0f} ms"
    )
    return missed


if __name__ == "__main__":
    sys.exit(main())
