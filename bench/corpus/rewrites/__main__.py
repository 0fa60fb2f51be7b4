"""Write certain changes in every form, with the slips that models make, and count what lands.

The changes come from a corpus's certain cases.  `patchq.apply` reads each response in this process.
Exit 0 when every outcome is the one that its slip allows, 1 when not, 2 when nothing could be run.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import patchq
from bench.console import command_line
from bench.corpus.cases import read_cases
from bench.corpus.rewrites.forms import AS_IT_IS, FORMS, Form
from bench.corpus.rewrites.slips import SLIPS, Slip
from bench.corpus.rewrites.tasks import Task, tasks_of
from bench.git import BenchError

OUTCOMES = ("exact", "refused", "wrong")


def outcome(task: Task, form: Form, slip: Slip) -> str | None:
    """Return what becomes of a task in a form, with the slip in its first change; None if unfit."""
    changes = task.whole_files if form.family == "files" else task.changes
    if form.family in slip.barred or not form.fits(task):
        return None
    first, *rest = changes
    damaged = slip.damage(first, task.before.get(first.path, ""))
    if damaged is None or (form.family == "files" and damaged is not first):
        return None
    before = {path: text.encode() for path, text in task.before.items()}
    result = patchq.apply(form.write([damaged, *rest], AS_IT_IS), before)
    if not result.ok:
        return "refused"
    made = {path: data for path, data in {**before, **result.files}.items() if data is not None}
    wanted = {path: text.encode() for path, text in task.result().items()}
    return "exact" if made == wanted and slip.certain else "wrong"


def judge(tasks: Sequence[Task], most: int) -> Iterator[tuple[str, Counter[str]]]:
    """Yield the outcomes of each slip, over all forms, `most` tasks of each."""
    for name, slip in SLIPS.items():
        counts = Counter[str]()
        for form in FORMS:
            found = (outcome(task, form, slip) for task in tasks)
            counts.update(one for one, _ in zip(filter(None, found), range(most), strict=False))
        yield name, counts


def main(words: Sequence[str] | None = None) -> int:
    parser = command_line("bench.corpus.rewrites", __doc__)
    parser.add_argument("files", nargs="+", type=Path, metavar="CASES", help="a corpus")
    parser.add_argument("--most", type=int, default=10, metavar="N", help="of each slip and form")
    args = parser.parse_args(words)
    try:
        tasks = tasks_of(case for path in args.files for case in read_cases(path))
        if not tasks:
            raise BenchError("the corpus has no certain change")
    except (BenchError, OSError) as error:
        print(f"rewrites: {error}", file=sys.stderr)
        return 2
    print("slip".ljust(24), *(name.rjust(8) for name in OUTCOMES))
    unexpected = 0
    for name, counts in judge(tasks, args.most):
        print(name.ljust(24), *(str(counts[one]).rjust(8) for one in OUTCOMES))
        unexpected += counts["wrong"] + (counts["refused"] if SLIPS[name].certain else 0)
    print(f"\n{unexpected} unexpected")
    return 1 if unexpected else 0


if __name__ == "__main__":
    sys.exit(main())
