"""Write the table of docs/certainty.md: every kind of rewrite, and what came of its cases.

The kinds are those of `bench.corpus.rewrites`, run on patchq and, for the forms that they read, on
other programs.  Exit 0 when the table was written, 2 when nothing could be run.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.console import command_line, say
from bench.corpus.rewrites.__main__ import by_kind, share_exact
from bench.corpus.rewrites.kinds import KINDS
from bench.corpus.rewrites.shares import run_shares
from bench.corpus.rewrites.trial import Result
from bench.git import BenchError

CHECKOUT = Path(__file__).resolve().parents[2]
PAGE = CHECKOUT / "docs" / "certainty.md"
BEGIN, END = "<!-- the table begins -->\n", "<!-- the table ends -->\n"
OWN = ("cases", "exact", "refused", "wrong", "lost", "other", "as expected", "kept %")
OTHERS = ("cases", "exact", "refused", "wrong")


def arguments(words: Sequence[str] | None) -> argparse.Namespace:
    parser = command_line("bench.corpus.certainty", __doc__)
    add = parser.add_argument
    add("files", nargs="+", type=Path, metavar="CASES", help="a corpus of bench.corpus")
    add("--most", type=int, default=4, metavar="N", help="cases of each kind and form (4)")
    add("--least", type=int, default=200, metavar="N", help="cases of each kind (200)")
    add("--jobs", type=int, default=2, metavar="N", help="processes (2)")
    add("--tree", type=Path, default=CHECKOUT, metavar="DIR", help="the checkout that is judged")
    add("--aider", type=Path, metavar="DIR", help="a checkout of aider, to be tried as well")
    add("--page", type=Path, default=PAGE, metavar="FILE", help="where the table stands")
    return parser.parse_args(words)


def runs(args: argparse.Namespace) -> dict[str, list[Result]]:
    """The results of patchq, and of every other program, by its name."""
    words = [str(path.resolve()) for path in args.files]
    words += ["--most", str(args.most), "--least", str(args.least)]
    others = ["git apply", "patch", *([f"aider:{args.aider.resolve()}"] if args.aider else [])]
    found: dict[str, list[Result]] = {}
    for name in ("patchq", *others):
        say(f"{name.partition(':')[0]} ...")
        by = [] if name == "patchq" else ["--by", name]
        with tempfile.TemporaryDirectory(prefix="patchq-certainty-") as room:
            results = run_shares([*words, *by], args.jobs, args.tree, Path(room).resolve())
        found[name.partition(":")[0]] = results
    return found


def own_cells(results: Sequence[Result]) -> list[str]:
    counts = Counter(result.outcome for result in results)
    fit = sum(result.expected for result in results)
    rest = counts["crashed"] + counts["duplicate"]
    named = [counts["exact"], counts["refused"], counts["wrong"], counts["lost"], rest]
    return [*map(str, (len(results), *named, fit)), share_exact(results)]


def other_cells(results: Sequence[Result]) -> list[str]:
    if not results:
        return [""] * len(OTHERS)
    counts = Counter(result.outcome for result in results)
    refused = counts["refused"] + counts["duplicate"]  # either way nothing lands
    wrong = len(results) - counts["exact"] - refused
    return list(map(str, (len(results), counts["exact"], refused, wrong)))


def table(found: Mapping[str, Sequence[Result]]) -> str:
    """The whole text between the marks of the page."""
    own, others = by_kind(found["patchq"]), [name for name in found if name != "patchq"]
    beside = {name: by_kind(found[name]) for name in others}
    lines = ["## In short", "", *_head(["program", *OTHERS, "patchq on the same cases"])]
    for name in others:
        keys = {_key(result) for result in found[name]}
        same = [result for result in found["patchq"] if _key(result) in keys]
        lines.append(_row([name, *other_cells(found[name]), " / ".join(other_cells(same)[1:])]))
    lines += ["", "patchq, all kinds:", "", *_head(list(OWN)), _row(own_cells(found["patchq"]))]
    for group in dict.fromkeys(kind.group for kind in KINDS.values()):
        kinds = [kind.name for kind in KINDS.values() if kind.group == group]
        tried = [name for name in others if any(kind in beside[name] for kind in kinds)]
        titles = [f"{name}: exact / refused / wrong" for name in tried]
        lines += ["", f"## {group[0].upper()}{group[1:]}", "", *_head(["kind", *OWN, *titles])]
        for kind in kinds:
            cells = [" / ".join(other_cells(beside[name].get(kind, ()))[1:]) for name in tried]
            cells = ["" if cell.strip(" /") == "" else cell for cell in cells]
            lines.append(_row([_code(kind), *own_cells(own.get(kind, ())), *cells]))
    return "\n".join(lines) + "\n"


def _key(result: Result) -> tuple[str, str, str]:
    return result.kind, result.form, result.task


def _code(name: str) -> str:
    return name.replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")


def _head(titles: Sequence[str]) -> list[str]:
    rule = ["---", *["---:"] * (len(titles) - 1)]
    return [_row(titles), "|" + "|".join(rule) + "|"]


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def rewritten(page: str, text: str, note: str) -> str:
    """The page with another table."""
    head, begin, rest = page.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        raise BenchError("the page has no place for the table")
    return f"{head}{BEGIN}\n{note}\n\n{text}\n{END}{tail}"


def note_of(args: argparse.Namespace) -> str:
    """Of what the table was made."""
    note = f"Made of patchq {_commit(args.tree)}"
    return f"{note}, aider {_commit(args.aider)}." if args.aider else f"{note}."


def _commit(checkout: Path) -> str:
    words = ["git", "-C", str(checkout), "log", "-1", "--format=%h of %cs"]
    ended = subprocess.run(words, capture_output=True, text=True, check=False)
    return ended.stdout.strip() or "without a commit"


def main(words: Sequence[str] | None = None) -> int:
    args = arguments(words)
    try:
        page = args.page.read_text()
        text = rewritten(page, table(runs(args)), note_of(args))
        args.page.write_text(text)
    except (BenchError, OSError) as error:
        print(f"certainty: {error}", file=sys.stderr)
        return 2
    say(f"{args.page} is written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
