"""Feed a corpus of responses with known outcomes through the installed command, and count.

Each case gets a fresh repository with the files as they stood, its response in the inbox, and one
`patchq run` in review mode.  The outcome is `exact` (one commit on a branch `patchq/<id>` with
exactly the bytes wanted and nothing else changed), `refused` (a verdict, no ref, no change) or
`wrong` (everything else).  Exit 0 when every outcome is one that its case allows, 1 when not, 2
when the corpus or the command cannot be used.  With `--library` each case goes through
`patchq.apply` in this process, without a repository.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bench.console import command_line
from bench.corpus.cases import Case, Court, Result, read_cases, safe_name
from bench.corpus.library import try_case
from bench.corpus.logs.aider import aider_cases
from bench.corpus.logs.claude import claude_cases
from bench.git import BenchError, find_command, git

COLUMNS = ("cases", "exact", "refused", "wrong", "as expected")


def arguments(words: Sequence[str] | None) -> argparse.Namespace:
    parser = command_line("bench.corpus", __doc__)
    add = parser.add_argument
    add("files", nargs="*", type=Path, metavar="CASES", help="JSON lines, plain or gzipped")
    add(
        "--aider-history",
        type=Path,
        metavar="REPO",
        action="append",
        default=[],
        help="make cases of aider's chat history there, and of its commits",
    )
    add(
        "--claude-log",
        type=Path,
        metavar="FILE",
        action="append",
        default=[],
        help="make cases of a log of Claude Code, or of all in a folder",
    )
    add("--format", default="", metavar="PREFIX", help="only formats that begin so")
    add("--slip", metavar="S", help="only this slip")
    add("--id", default="", metavar="TEXT", help="only cases whose id holds this")
    add("--limit", type=int, metavar="N", help="at most N cases, spread over all that are chosen")
    add("--jobs", type=int, default=2, metavar="N", help="cases at a time (2)")
    add("--command", default="patchq", metavar="CMD", help="the command to judge (patchq)")
    add("--library", action="store_true", help="judge `patchq.apply` in place of the command")
    add("--bare", action="store_true", help="in bare repositories instead of checked-out ones")
    add("--json", type=Path, metavar="OUT", help="write every result there")
    add("--failures", type=Path, metavar="DIR", help="keep what belongs to an unexpected case")
    return parser.parse_args(words)


def all_cases(args: argparse.Namespace) -> Iterator[Case]:
    for paths, read in (
        (args.files, read_cases),
        (args.aider_history, aider_cases),
        (args.claude_log, claude_cases),
    ):
        for path in paths:
            yield from read(path)


def chosen(args: argparse.Namespace) -> list[Case]:
    cases = [
        case
        for case in all_cases(args)
        if case.format.startswith(args.format)
        and args.slip in {None, case.slip}
        and args.id in case.id
    ]
    doubles = [name for name, count in Counter(case.id for case in cases).items() if count > 1]
    if doubles:
        raise BenchError(f"case ids stand twice: {', '.join(doubles[:5])}")
    if args.limit is None or args.limit >= len(cases):
        return cases
    return [cases[n * len(cases) // args.limit] for n in range(args.limit)]


def row(name: str, results: Sequence[Result]) -> list[str]:
    counts: Counter[str] = Counter(result.outcome for result in results)
    fit = sum(result.expected for result in results)
    numbers = (len(results), counts["exact"], counts["refused"], counts["wrong"], fit)
    return [name, *map(str, numbers)]


def table(results: Sequence[Result]) -> str:
    """A line for each source, format and slip, and one for all."""
    groups: dict[str, list[Result]] = {}
    for result in results:
        case = result.case
        groups.setdefault(f"{case.source}  {case.format}  {case.slip}", []).append(result)
    rows = [["source  format  slip", *COLUMNS], *(row(n, groups[n]) for n in sorted(groups))]
    rows.append(row("total", results))
    first = max(len(line[0]) for line in rows)
    return "\n".join(
        line[0].ljust(first)
        + "".join(cell.rjust(len(title) + 2) for cell, title in zip(line[1:], COLUMNS, strict=True))
        for line in rows
    )


def describe(result: Result) -> str:
    case = result.case
    head = f"{case.id}: {result.outcome}, expected {case.expect}"
    notes = [result.why] if result.why else []
    return "\n    ".join([head, *notes, *result.problems])


def keep(court: Court, result: Result, repo: Path, into: Path) -> None:
    """Copy what one needs to look into an unexpected case, and into nothing else."""
    case, place = result.case, into / safe_name(result.case.id)
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    (place / "verdict.txt").write_text(describe(result) + "\n")
    (place / "response.md").write_bytes(case.response)
    _write_files(place / "before", case.before)
    _write_files(place / "after", {p: c for p, c in case.after.items() if c is not None})
    for report in (repo / ".patchq").glob("*/*.report.*"):
        shutil.copy(report, place / ("report" + report.suffix))
    for ref in court.refs(repo):
        if ref.startswith("refs/heads/patchq/"):
            entries = court.listing(repo, ref).items()
            blobs = {path: entry.split()[2] for path, entry in entries if " blob " in entry}
            contents = {
                p: git(repo, "cat-file", "blob", b, home=court.home) for p, b in blobs.items()
            }
            _write_files(place / "got", contents)


def _write_files(directory: Path, files: dict[str, bytes]) -> None:
    for path, content in files.items():
        target = directory / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)


def judge_all(court: Court, cases: Sequence[Case], args: argparse.Namespace) -> list[Result]:
    def one(case: Case) -> Result:
        result, repo = court.try_case(case)
        if args.failures and not result.expected:
            keep(court, result, repo, args.failures)
        shutil.rmtree(repo)
        return result

    with ThreadPoolExecutor(args.jobs) as pool:
        return list(pool.map(one, cases))


def judged_by_command(
    cases: Sequence[Case], command: list[str], args: argparse.Namespace
) -> list[Result]:
    with tempfile.TemporaryDirectory(prefix="patchq-corpus-") as room:
        return judge_all(Court(Path(room), cases, command, args.bare), cases, args)


def record(results: Sequence[Result]) -> list[dict[str, object]]:
    return [
        {
            "id": result.case.id,
            "source": result.case.source,
            "format": result.case.format,
            "slip": result.case.slip,
            "expect": result.case.expect,
            "outcome": result.outcome,
            "expected": result.expected,
            "why": result.why,
            "problems": result.problems,
            "seconds": round(result.seconds, 4),
        }
        for result in results
    ]


def main(words: Sequence[str] | None = None) -> int:
    args = arguments(words)
    try:
        command = find_command(args.command)
        cases = chosen(args)
        if not cases:
            raise BenchError("no case is left to run; see --format, --slip, --id")
        began = time.perf_counter()
        if args.library:
            results = list(map(try_case, cases))
        else:
            results = judged_by_command(cases, command, args)
    except (BenchError, OSError) as error:
        print(f"corpus: {error}", file=sys.stderr)
        return 2
    seconds = time.perf_counter() - began
    print(table(results))
    unexpected = [result for result in results if not result.expected]
    if unexpected:
        print("\nunexpected:")
        print("\n".join(describe(result) for result in unexpected))
    print(f"\n{len(results)} cases in {seconds:.1f} s, {len(unexpected)} unexpected")
    if args.json:
        args.json.write_text(json.dumps(record(results), indent=1) + "\n")
    return 1 if unexpected else 0


if __name__ == "__main__":
    sys.exit(main())
