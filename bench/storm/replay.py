"""Real commits as responses, on branches that have moved past their bases.

For pairs of neighbouring commits of a clone: the later one's change becomes a response, formats in
rotation, that declares the earlier one as its base; it is for a branch that stands on the earlier
one with changes of later commits on top, and, for every fourth pair, with a change in its way.
What lands must be what git's own merge makes, or what the rule of moved bases does; a conflict
must be one by that rule.  Exit 0 when all are, 1 when one is not, 2 when the bench cannot be used,
3 when it could not be run to its end.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from bench.console import command_line, trial_options, tried
from bench.git import BenchError, new_repository, run, store_of
from bench.storm.facts import Facts
from bench.storm.ort import merged, write_commits
from bench.storm.pairs import Pair, move_on, pairs
from bench.storm.people import drop
from bench.storm.phrase import phrase
from bench.storm.rule import Judge
from tests.helpers.gitrepo import write_config


def verdict(judge: Judge, pair: Pair, report: dict[str, object] | None) -> tuple[str, str]:
    """What became of a pair: `exact`, `conflict`, `refused` for another reason, or `wrong`."""
    facts = judge.facts
    if report is None:
        return "wrong", "no verdict"
    tip = facts.oid(f"refs/heads/{pair.branch}")
    if report["state"] == "applied":
        commit = facts.commit(tip)
        if commit.parents != (pair.tip,):
            return "wrong", f"{tip} does not stand on {pair.tip}"
        tree = facts.oid(f"{tip}^{{tree}}")
        clean = merged(facts, facts.repo, [(pair.intent, pair.tip)])[0]
        wanted = _trees(judge, pair)
        if tree == clean or (clean is None and tree in wanted):
            return "exact", "as git merges it" if clean else "where git does not merge"
        return "wrong", f"{tip} is neither git's merge {clean} nor one of {wanted}"
    if tip != pair.tip:
        return "wrong", "refused, but its branch moved"
    problems = report["problems"]
    assert isinstance(problems, list)
    codes = sorted({problem["code"] for problem in problems if problem["severity"] == "error"})
    if codes != ["conflict.base"]:
        return "refused", f"{report['state']}: {', '.join(codes)}: {problems[:1]}"
    why = judge.refusal(pair.intent, pair.intent.base, pair.tip)
    return ("conflict", why) if why else ("wrong", f"refused without reason: {problems[0]}")


def _trees(judge: Judge, pair: Pair) -> list[str]:
    results = list(judge.results(pair.intent, pair.intent.base, pair.tip))
    made = write_commits(judge.facts.repo, [(pair.tip, r) for r in results], judge.facts.home)
    return [judge.facts.oid(f"{commit}^{{tree}}") for commit in made]


def replay(args: argparse.Namespace, room: Path, command: Sequence[str]) -> Counter[str]:
    home = room / "home"
    home.mkdir()
    store, head = store_of(args.clone, room, home=home)
    repo = room / "repo"
    new_repository(repo, store, {"main": head, "side": head}, head="side")
    (repo / ".patchq/inbox").mkdir(parents=True)
    write_config(
        repo,
        "version: 1\ntarget: main\nmode: auto\ntargets: ['pair-*']\nvalidate: {syntax: false}\n"
        "paths: {review: ['!*']}\n",
    )
    facts = Facts(repo, home)
    try:
        found = list(pairs(facts, args.pairs))
        print(f"{len(found)} pairs; moving the branches on", file=sys.stderr)
        move_on(facts, found)
        for pair in found:
            suffix, content = phrase(pair.intent, pair.branch)
            drop(repo, pair.branch + suffix, content)
        ended = run([*command, "run"], repo, home=home)
        if ended.code not in (0, 1):
            raise BenchError(f"run ended with {ended.code}: {ended.errors[-800:]}")
        print("judging", file=sys.stderr)
        return _judged(facts, found, repo)
    finally:
        facts.close()


def _judged(facts: Facts, found: Sequence[Pair], repo: Path) -> Counter[str]:
    judge, counts = Judge(facts), Counter[str]()
    for pair in found:
        told = [*(repo / ".patchq").glob(f"*/{pair.branch}.report.json")]
        report = json.loads(told[0].read_bytes()) if len(told) == 1 else None
        what, why = verdict(judge, pair, report)
        counts[what] += 1
        counts[f"{pair.intent.form}: {what}"] += 1
        counts["moved past"] += pair.tip != pair.intent.base
        if what in ("wrong", "refused"):
            print(f"{what}: {pair.branch} ({pair.intent.form}): {why[:600]}")
    return counts


def main(words: Sequence[str] | None = None) -> int:
    parser = command_line("bench.storm.replay", __doc__)
    add = parser.add_argument
    add("--clone", type=Path, required=True, metavar="PATH", help="a repository with a history")
    add("--pairs", type=int, default=200, metavar="N", help="at most (200)")
    trial_options(parser)
    args = parser.parse_args(words)

    def trial(command: list[str]) -> int:
        with tempfile.TemporaryDirectory(prefix="patchq-replay-", dir=args.work) as room:
            counts = replay(args, Path(room).absolute(), command)
        for name in sorted(counts, key=lambda name: (":" in name, name)):
            print(f"{name:<28}{counts[name]:>6}")
        return 1 if counts["wrong"] or counts["refused"] else 0

    return tried("replay", args.command, trial)


if __name__ == "__main__":
    sys.exit(main())
