"""Write certain changes in every form and in many other ways, and count what patchq makes of them.

The changes come from a corpus's certain cases.  Each kind of rewrite keeps their meaning (the
result must be exact) or takes it away (nothing may land).  All is decided in this process, by the
checkout's own pipeline, up to the commit that would land.  Exit 0 when every outcome is one that
its kind allows, 1 when not, 2 when nothing could be run.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench.console import command_line, say
from bench.corpus.cases import read_cases
from bench.corpus.rewrites.cases import cases_of
from bench.corpus.rewrites.forms import FORMS
from bench.corpus.rewrites.kinds import KINDS
from bench.corpus.rewrites.others import OtherTrial, other_trial
from bench.corpus.rewrites.registry import Kind, Outcome
from bench.corpus.rewrites.shares import run_shares
from bench.corpus.rewrites.tasks import tasks_of
from bench.corpus.rewrites.trial import Result, Trial
from bench.git import BenchError

OUTCOMES: tuple[Outcome, ...] = ("exact", "refused", "wrong", "lost", "crashed", "duplicate")
COLUMNS = ("cases", *OUTCOMES, "as expected", "kept %")
MOST_SHOWN = 40
"""Lines of a response that are shown."""


def arguments(words: Sequence[str] | None) -> argparse.Namespace:
    parser = command_line("bench.corpus.rewrites", __doc__)
    add = parser.add_argument
    add("files", nargs="+", type=Path, metavar="CASES", help="a corpus of bench.corpus")
    add("--most", type=int, default=10, metavar="N", help="cases of each kind and form (10)")
    add("--least", type=int, default=0, metavar="N", help="cases of each kind, where there are (0)")
    add("--kind", default="", metavar="TEXT", help="only kinds whose name or group holds this")
    add("--form", default="", metavar="TEXT", help="only forms whose name holds this")
    add("--seed", type=int, default=1, metavar="N", help="other cases for another number (1)")
    add("--show", type=int, default=0, metavar="N", help="show N unexpected cases of each kind")
    add("--jobs", type=int, default=1, metavar="N", help="processes (1)")
    add("--tree", type=Path, metavar="DIR", help="the checkout whose patchq is judged (this one)")
    add("--by", default="", metavar="PROGRAM", help="judge it: git apply, patch, aider:CHECKOUT")
    add("--share", type=_share, default=(0, 1), metavar="I/N", help=argparse.SUPPRESS)
    add("--json", type=Path, metavar="OUT", help="write every result there")
    return parser.parse_args(words)


def _share(text: str) -> tuple[int, int]:
    number, _, count = text.partition("/")
    return int(number), int(count)


def results_of(args: argparse.Namespace, home: Path) -> Iterator[Result]:
    """What becomes of the cases that the command line names, a kind at a time."""
    tasks = tasks_of(case for path in args.files for case in read_cases(path))
    if not tasks:
        raise BenchError("no case of the corpus has a change that every form can write")
    say(f"{len(tasks)} tasks")
    forms = [form for form in FORMS if args.form in form.name]
    place = home / "repository"
    number, count = args.share
    trial: Trial | OtherTrial = other_trial(args.by, home) if args.by else Trial(place, home)
    try:
        for kind in kinds_of(args)[number::count]:
            cases = cases_of(kind, forms, tasks, args.most, args.seed, str(place), args.least)
            yield from trial.decide_all(list(cases))
    finally:
        trial.close()


def kinds_of(args: argparse.Namespace) -> list[Kind]:
    return [kind for kind in KINDS.values() if args.kind in kind.name or args.kind in kind.group]


def shared_results(args: argparse.Namespace, home: Path) -> list[Result]:
    """The same from processes of their own, in the order of the kinds."""
    words = [str(path.resolve()) for path in args.files]
    for name in ("most", "least", "kind", "form", "seed", "by"):
        words += [f"--{name}", str(getattr(args, name))]
    tree = args.tree or Path(__file__).resolve().parents[3]
    found = by_kind(run_shares(words, args.jobs, tree, home))
    return [result for name in KINDS for result in found.get(name, ())]


def row(name: str, group: str, results: Sequence[Result]) -> list[str]:
    counts = Counter(result.outcome for result in results)
    fit = sum(result.expected for result in results)
    numbers = (len(results), *(counts[outcome] for outcome in OUTCOMES), fit)
    return [name, group, *map(str, numbers), share_exact(results)]


def share_exact(results: Sequence[Result]) -> str:
    """How many of those that keep their meaning are exact, in hundredths, never rounded up."""
    preserving = [result for result in results if result.preserving]
    if not preserving:
        return ""
    exact = sum(result.outcome == "exact" for result in preserving)
    return f"{exact * 1000 // len(preserving) / 10:.1f}"


def table(results: Sequence[Result]) -> str:
    """A line for each kind, and one for all."""
    rows = [["kind", "group", *COLUMNS]]
    for name, own in by_kind(results).items():
        rows.append(row(name, own[0].group, own))
    rows.append(row("total", "", results))
    widths = [max(len(line[column]) for line in rows) for column in range(2)]
    return "\n".join(
        f"{line[0].ljust(widths[0])}  {line[1].ljust(widths[1])}"
        + "".join(cell.rjust(len(title) + 2) for cell, title in zip(line[2:], COLUMNS, strict=True))
        for line in rows
    )


def by_kind(results: Sequence[Result]) -> dict[str, list[Result]]:
    groups: dict[str, list[Result]] = {}
    for result in results:
        groups.setdefault(result.kind, []).append(result)
    return groups


def description(result: Result) -> str:
    """An unexpected case: what was said of it, its response, and the difference."""
    place = f"{result.kind} | {result.form} | {result.task}"
    head = f"== {place}: {result.outcome}, expected {' or '.join(result.allowed)}"
    notes = [result.why] if result.why else []
    response = result.response.splitlines()[:MOST_SHOWN]
    return "\n    ".join([head, *notes, *result.problems, "", *response, "", *result.difference])


def main(words: Sequence[str] | None = None) -> int:
    args = arguments(words)
    began = time.perf_counter()
    try:
        with tempfile.TemporaryDirectory(prefix="patchq-rewrites-") as room:
            alone = args.jobs == 1 and args.tree is None
            find = results_of if alone else shared_results
            results = list(find(args, Path(room).resolve()))
        if not results:
            raise BenchError("no case is left to run; see --kind, --form, --most")
    except (BenchError, OSError) as error:
        print(f"rewrites: {error}", file=sys.stderr)
        return 2
    seconds = time.perf_counter() - began
    print(table(results))
    unexpected = [result for result in results if not result.expected]
    for group in by_kind(unexpected).values():
        for result in group[: args.show]:
            print("\n" + description(result))
    print(f"\n{len(results)} cases in {seconds:.1f} s, {len(unexpected)} unexpected")
    if args.json:
        args.json.write_text(json.dumps([result.record() for result in results], indent=1) + "\n")
    return 1 if unexpected else 0


if __name__ == "__main__":
    sys.exit(main())
