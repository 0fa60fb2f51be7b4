"""Decisions of people: on one change or several, or asked for by `confirm: true`."""

from __future__ import annotations

import os
import signal
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Iterator
from select import select

from patchq.cli import arguments, output
from patchq.cli.arguments import Argument, Table, agreed, edit_ids
from patchq.cli.command import tell
from patchq.core.model.names import suggestion
from patchq.core.text.quote import visible
from patchq.gate.api import Gate, words
from patchq.gate.api.deciding import Ask, Question, Trial, candidates
from patchq.gate.api.rows import ChangeRow, seconds
from patchq.gate.config.schema import Config
from patchq.gate.errors import Fault, TimeIsUp, UsageError
from patchq.gate.report.schema import CommentEntry, Report
from patchq.gate.review.decide import Decided
from patchq.gate.review.errands import MAX_REVIEW, read_comments

# ---------------------------------------------------------------- several


BATCHES = (
    Argument("ids", metavar="ID", nargs="*", help="one change or several"),
    Argument("--all-from", metavar="AGENT", help="all of this agent, after asking"),
    Argument("--yes", action="store_true", help="do not ask (for scripts)"),
    Argument("--fail-fast", action="store_true", help="leave the others where one fails"),
)
_MOST_LISTED = 50


def chosen(args: Namespace, gate: Gate) -> list[str]:
    """Return the ids to decide on, or those of an agent, if agreed to.

    Raises `UsageError` where ids are missing, unknown or beside an agent, and where there is no
    terminal to ask on.
    """
    if args.all_from is None:
        if not args.ids:
            raise UsageError(
                f"name a change: `patchq {args.verb} ID`", "or several, or --all-from AGENT"
            )
        ids = list(dict.fromkeys(map(gate.identify, args.ids)))
        gate.check_known(ids if len(ids) > 1 else ())
        return ids
    if args.ids:
        raise UsageError("--all-from names the changes already", "leave the ids out, or --all-from")
    there = candidates(gate.context(), args.verb)
    everyone = sorted(there, key=lambda report: seconds(report.received, report.decided))
    found = [report for report in everyone if report.agent == args.all_from]
    these = f"these {len(found)} changes" if len(found) > 1 else "this change"
    if not found:
        if near := suggestion(args.all_from, sorted(r.agent for r in everyone if r.agent)):
            raise UsageError(f"there is nothing of {args.all_from!r} to {args.verb}", near)
        output.notice(args, f"nothing of {args.all_from} to {args.verb}")
    elif not agreed(args, f"{args.verb} {these}", *map(_listed, found[:_MOST_LISTED])):
        output.notice(args, "nothing was done")
        return []
    return [report.id for report in found]


def _listed(report: Report) -> str:
    row = ChangeRow(report=report)
    size = f"{words.size_of(row)} {words.files_of(row)}".strip()
    parts = (report.state, report.id, words.age(report.received), size, report.message)
    return visible("  ".join(filter(None, parts)))


def decide_each(args: Namespace, ids: list[str], one: Callable[[str], int]) -> int:
    """Decide on each change, and return the worst exit code.

    One that fails leaves the others to be decided, unless `--fail-fast` is given.
    """
    worst = 0
    for number, id in enumerate(ids, 1):
        try:
            code = one(id)
        except Fault as fault:
            if len(ids) == 1:
                raise
            tell(fault, json=args.json, id=id)
            code = fault.exit_status
        worst = max(worst, code)
        if code and args.fail_fast and number < len(ids):
            output.notice(args, f"left as they were: {', '.join(ids[number:])}")
            break
    return worst


def only_one(args: Namespace, *flags: str) -> None:
    """Raise `UsageError` for edit flags if several changes may be meant."""
    given = [flag for flag in flags if getattr(args, flag)]
    if given and (len(args.ids) > 1 or args.all_from is not None):
        raise UsageError(f"--{given[0]} names edits of one change", "name one change with it")


ARGUMENTS: Table = {
    "accept": (
        *BATCHES,
        (
            Argument("--only", metavar="E,…", type=edit_ids, help="these edits and what they need"),
            Argument("--without", metavar="E,…", type=edit_ids, help="all but these edits"),
            Argument("--stack", action="store_true", help="and the proposals that it is on top of"),
            Argument(
                "--no-wait", action="store_true", help="return once they wait for their train"
            ),
            Argument(
                "--undo",
                action="store_true",
                help="take back the last acceptance, request or discard",
            ),
        ),
        (
            Argument(
                "--timeout", metavar="S", type=arguments.seconds, help="wait so long, then exit 124"
            ),
        ),
    ),
    "discard": (
        *BATCHES,
        Argument(
            "-m",
            "--message",
            metavar="WHY",
            help="the reason, which its agent sees",
        ),
    ),
    "retry": (
        *BATCHES,
        Argument(
            "--without",
            metavar="E,…",
            type=arguments.edit_ids,
            help="all but these edits",
            default=frozenset(),
        ),
    ),
    "revert": (arguments.BATCH,),
    "send-back": (
        *BATCHES,
        Argument("-m", "--message", metavar="TEXT", help="what is to be different, in general"),
        Argument(
            "--comments",
            metavar="FILE",
            help="comments on lines and edits, as lines like `path:12: text` and `edit 2: text`; "
            "- for standard input",
        ),
        Argument("--forge", action="store_true", help="what people wrote on its pull request"),
    ),
}


def accept(args: Namespace) -> int:
    only_one(args, "only", "without")
    gate = output.gate(args)
    ids = chosen(args, gate)
    if args.undo:
        return decide_each(args, ids, lambda id: print_decision(args, gate.undo(id), len(ids)))
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
        code = max(print_decision(args, one, max(len(ids), len(every))) for one in every)
        if waiting := [id for id in trains[last] if id not in {one.report.id for one in every}]:
            output.notice(args, f"left as they were: {', '.join(waiting)}")
        progress.end()
        return code

    code = decide_each(args, list(trains), land)
    if args.timeout is None or gate.context().config.has_cluster:
        return code
    return max(code, _wait_for_trains(args, gate, ids))


_LOOK_SECONDS = 0.1


def _wait_for_trains(args: Namespace, gate: Gate, ids: list[str]) -> int:
    until = time.monotonic() + args.timeout
    code, late = 0, list[str]()
    for id in ids:
        while (decided := gate.outcome(id)) is None and time.monotonic() < until:
            time.sleep(_LOOK_SECONDS)
        if decided is None:
            late.append(id)
        else:
            code = max(code, print_decision(args, decided, len(ids)))
    if late:
        raise TimeIsUp(
            f"{', '.join(late)}: not landed after {args.timeout:g} s",
            "the train goes on; `patchq status` shows it",
        )
    return code


class Progress:
    def __init__(self, args: Namespace) -> None:
        self._silent, self._runs, self._began = args.json or args.quiet, 0, time.monotonic()
        self._size = 0

    def say(self, target: str, size: int, trial: Trial) -> None:
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
        if self._runs > 1:
            took = words.clock(time.monotonic() - self._began)
            print(f"{self._runs} runs, {took}; one by one: {self._size} runs")


def print_decision(args: Namespace, decided: Decided, of: int = 1) -> int:
    """Print a decision or its problems, and return the exit code.

    `of` is the number of changes that are decided on.
    """
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
        # A message of several lines has the output of a hook.
        message = problem.message if args.json else problem.message.replace("\n", "\n  | ")
        fault = Fault(message, problem.hint or "")
        fault.code = problem.code
        tell(fault, json=args.json, id=id)
    return UsageError.exit_status if misused else 1


def _beside(decided: Decided) -> Iterator[str]:
    if decided.note:
        yield decided.note
    if decided.back:
        yield f"with edit {', '.join(decided.back)}, which the choice brings back"
    for id, need in decided.along:
        yield f"without edit {id} either, which needs edit {need}"


# ---------------------------------------------------------------- discard


def discard(args: Namespace) -> int:
    gate = output.gate(args)
    ids = chosen(args, gate)
    why = args.message
    return decide_each(args, ids, lambda id: print_decision(args, gate.discard(id, why), len(ids)))


# ---------------------------------------------------------------- retry


def retry(args: Namespace) -> int:
    only_one(args, "without")
    gate = output.gate(args)

    def one(id: str) -> int:
        verdicts = output.Verdicts(args)
        gate.retry(id, args.without, verdicts)
        return verdicts.exit_code

    return decide_each(args, chosen(args, gate), one)


# ---------------------------------------------------------------- revert


def revert(args: Namespace) -> int:
    verdicts = output.Verdicts(args)
    gate = output.gate(args)
    decided = gate.revert(args.id)
    for verdict in decided.verdicts:
        verdicts(verdict)
    if decided.problems or decided.report.state == "reverted":
        return print_decision(args, decided)
    return verdicts.exit_code


# ---------------------------------------------------------------- send_back


def send_back(args: Namespace) -> int:
    only_one(args, "comments")
    comments = tuple(drafts(args))
    gate = output.gate(args)
    ids = chosen(args, gate)

    sync = output.synced(args, gate) if args.forge else None

    def send(id: str) -> int:
        there = sync.comments(gate, id) if sync else ()
        report = gate.send_back(id, (*comments, *there)).report
        count = len(report.review.comments) if report.review else 0
        to = f"  to {report.agent}" if report.agent else ""
        text = f"sent back  {id}{to}  {words.count(count, 'comment')}"
        return output.done(args, report, text)

    return decide_each(args, ids, send)


def drafts(args: Namespace) -> list[CommentEntry]:
    """Return the comments in the arguments.

    Raises `UsageError` if there are none.
    """
    if args.message is None and args.comments is None and not args.forge:
        raise UsageError("there is no comment", "give -m TEXT, --comments FILE, or --forge")
    comments = [] if args.message is None else [CommentEntry(text=args.message)]
    if args.comments is not None:
        comments += read_comments(arguments.read(args.comments, 4 * MAX_REVIEW))
    return comments


# ---------------------------------------------------------------- confirm


_KEY_SECONDS = 0.2
_CONFIRM_ANSWERS = "[y]es, [n]o: it waits for review, [c]hoose edits, [q]uit"


class Quit(Exception):
    """The person stops here, with the response undecided."""


def asker(args: Namespace, config: Config) -> Ask | None:
    """Return the function that asks a person, or None.

    None where the configuration wants no confirmation, or no person is at the terminal.
    """
    there = sys.stdin.isatty() and sys.stdout.isatty()
    return _confirm if config.confirm and there and not args.json and not args.quiet else None


def _confirm(question: Question) -> bool:
    """Return a person's decision.

    `q` interrupts as Ctrl-C does, and raises `Quit`.
    """
    while question.lands or question.choice:
        if not question.lands:
            _say(*(f"{one.code}: {one.message}" for one in question.report.problems))
            question.choose(None)
            continue
        _show_question(question)
        answer = _answer(question, f"Land it on {question.report.target}? {_CONFIRM_ANSWERS}: ")
        match answer.strip().lower()[:1]:
            case "y":
                return True
            case "n":
                return False
            case "q":
                signal.raise_signal(signal.SIGINT)
                raise Quit
            case "c":
                ids = ", ".join(question.ids)
                names = edit_ids(_answer(question, f"Which of the edits {ids}? "))
                try:
                    question.choose(names)
                except UsageError as error:
                    _say(error.message)
                    question.choose(None)
    return False


def _show_question(question: Question) -> None:
    report = question.report
    _say(
        f"\n{report.id}: {report.message}",
        *(f"warning {one.code}: {one.message}" for one in report.problems),
        *(f"  edit {edit.id}  {edit.op} {edit.path}" for edit in report.edits),
        report.diff.removesuffix("\n"),
    )


def _answer(question: Question, text: str) -> str:
    """Return a line from the terminal.

    Raises `Quit` at its end, and when a signal stops the command.
    """
    print(text, end="", flush=True)
    while not question.stopped():
        if select([sys.stdin], [], [], _KEY_SECONDS)[0]:
            # Not through `sys.stdin`, whose buffer would hide lines from `select`.
            data = os.read(sys.stdin.fileno(), 4096)
            if not data:
                break
            return data.decode("utf-8", "replace")
    print(flush=True)
    raise Quit


def _say(*lines: str) -> None:
    for line in lines:
        print(visible(line, keep="\n\t"), flush=True)
