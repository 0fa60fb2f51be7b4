"""`patchq accept`: land a proposal, whole or the chosen edits of it."""

from __future__ import annotations

import sys
import time
from argparse import Namespace
from collections.abc import Iterator

from patchq.cli import opening, output, several
from patchq.cli.arguments import Argument, edit_ids, seconds
from patchq.cli.several import BATCHES
from patchq.cli.telling import tell
from patchq.core.text.quote import visible
from patchq.gate.api import Gate, words
from patchq.gate.api.deciding import Trial
from patchq.gate.errors import Fault, TimeIsUp, UsageError
from patchq.gate.review.decide import Decided

ARGUMENTS = (
    *BATCHES,
    (
        Argument("--only", metavar="E,…", type=edit_ids, help="these edits and what they need"),
        Argument("--without", metavar="E,…", type=edit_ids, help="all but these edits"),
        Argument("--stack", action="store_true", help="and the proposals that it is on top of"),
        Argument("--no-wait", action="store_true", help="return once they wait for their train"),
        Argument(
            "--undo", action="store_true", help="take back the last acceptance, request or discard"
        ),
    ),
    (Argument("--timeout", metavar="S", type=seconds, help="wait so long, then exit 124"),),
)


def run(args: Namespace) -> int:
    several.only_one(args, "only", "without")
    gate = opening.gate(args)
    ids = several.chosen(args, gate)
    if args.undo:
        return several.decide(args, ids, lambda id: report(args, gate.undo(id), len(ids)))
    leaves = args.no_wait or args.timeout is not None
    trains = {train[-1]: train for train in gate.by_target(ids)}

    def land(last: str) -> int:
        progress = Progress(args)
        decided = gate.accept(
            trains[last],
            args.only,
            args.without or (),
            stack=args.stack,
            fail_fast=args.fail_fast,
            wait=not leaves,
            watch=progress.say,
        )
        every = (*decided.others, decided)
        code = max(report(args, one, max(len(ids), len(every))) for one in every)
        if waiting := [id for id in trains[last] if id not in {one.report.id for one in every}]:
            output.notice(args, f"left as they were: {', '.join(waiting)}")
        progress.end()
        return code

    code = several.decide(args, list(trains), land)
    if args.timeout is None or gate.context().config.has_cluster:
        return code
    return max(code, _wait(args, gate, ids))


_LOOK_SECONDS = 0.1


def _wait(args: Namespace, gate: Gate, ids: list[str]) -> int:
    """Wait until nothing of these waits for its train; return the exit code."""
    until = time.monotonic() + args.timeout
    code, late = 0, list[str]()
    for id in ids:
        while (decided := gate.outcome(id)) is None and time.monotonic() < until:
            time.sleep(_LOOK_SECONDS)
        if decided is None:
            late.append(id)
        else:
            code = max(code, report(args, decided, len(ids)))
    if late:
        raise TimeIsUp(
            f"{', '.join(late)}: not landed after {args.timeout:g} s",
            "the train goes on; `patchq status` shows it",
        )
    return code


class Progress:
    """Prints the course of a train while it runs."""

    def __init__(self, args: Namespace) -> None:
        self._silent, self._runs, self._began = args.json or args.quiet, 0, time.monotonic()
        self._size = 0

    def say(self, target: str, size: int, trial: Trial) -> None:
        """Print one run of the hooks."""
        if (size == 1 and not self._size) or not trial.asked or self._silent:
            return
        if not self._size:
            self._size = size
            print(visible(f"{target}: {size} accepted, joined as one train"), flush=True)
        self._runs += 1
        names = ", ".join(run.id for run in trial.runs if bool(run.exit != 0) != trial.passed)
        known = {size: f"checked {size} together", 0: f"checked {target} itself"}
        what = known.get(trial.size, f"checked the first {trial.size}")
        verdict = "passed" if trial.passed else "refused"
        print(
            visible(f"  {what:<24} {verdict:<8} {names}  {words.clock(trial.seconds)}"), flush=True
        )

    def end(self) -> None:
        """Print how many runs it took."""
        if self._runs > 1:
            took = words.clock(time.monotonic() - self._began)
            print(f"{self._runs} runs, {took}; one by one: {self._size} runs")


def report(args: Namespace, decided: Decided, of: int = 1) -> int:
    """Print what was decided, one of so many, or why nothing was; the exit code."""
    if not decided.problems and decided.report.boarded:
        text = f"{decided.report.id} is accepted, and waits to land"
        return output.done(args, decided.report, text)
    if not decided.problems:
        output.say(args, decided.report)
        if not args.json and not args.quiet:
            for line in _beside(decided):
                print(visible(f"  {line}"))
        return 0
    id = decided.report.id if of > 1 else None
    misused = any(problem.code == UsageError.code for problem in decided.problems)
    for problem in decided.problems:
        if args.json:
            fault = Fault(problem.message, problem.hint or "")
            fault.code = problem.code
            tell(fault, json=True, id=id)
            continue
        first, *more = problem.message.split("\n")  # what a hook printed
        about = f"{id}: " if id else ""
        lines = [f"patchq: {about}{problem.code}: {first}", *(f"  | {text}" for text in more)]
        lines += [f"  {problem.hint}"] if problem.hint else []
        print(*map(visible, lines), sep="\n", file=sys.stderr)
    return UsageError.exit_status if misused else 1


def _beside(decided: Decided) -> Iterator[str]:
    """Yield the side effects of the choice."""
    if decided.back:
        yield f"with edit {', '.join(decided.back)}, which the choice brings back"
    for id, need in decided.along:
        yield f"without edit {id} either, which needs edit {need}"
