"""Persons asked: `review` on a page or in the terminal, and `confirm: true`."""

from __future__ import annotations

import os
import signal
import sys
from argparse import Namespace
from collections.abc import Callable
from select import select

from msgspec import Struct

from patchq.cli import decide, look, opening, output, show
from patchq.cli.arguments import Argument, Table, edit_ids
from patchq.core.model.values import EditOutcome
from patchq.core.text.quote import visible
from patchq.gate.api import Gate
from patchq.gate.api.deciding import Ask, Question
from patchq.gate.api.rows import ChangeRow
from patchq.gate.config.schema import Config
from patchq.gate.errors import Fault, UsageError
from patchq.gate.report.schema import PENDING_CONFLICT, USABLE, Report
from patchq.gate.review.decide import Decided
from patchq.gate.review.send_back import read_comments

ARGUMENTS: Table = {
    "review": (
        Argument("--next", action="store_true", help="here in the terminal, one after the other"),
        Argument("--port", metavar="N", help="of the page; 0 for any that is free"),
        Argument("--no-open", action="store_true", help="print the address, and open no browser"),
    ),
}


def review(args: Namespace) -> int:
    if args.next:
        return _walk(args)
    from patchq import page

    return page.serve(args, opening.options(args))


# ---------------------------------------------------------------- walk


_ANSWERS = "[a]ccept, accept [o]nly some edits, send [b]ack, [d]iscard, [s]kip, [q]uit: "
_IN_A_STACK = f"accept the s[t]ack, {_ANSWERS}"
_HOW = "Lines like `path:12: text` or `edit 2: text`, or text in general; an empty line ends it."


def _walk(args: Namespace) -> int:
    if args.json or not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError(
            "`review --next` asks, and there is no terminal", "see `patchq status --by risk`"
        )
    return Walk(args, opening.gate(args)).all()


class Walk(Struct, frozen=True, dict=True):
    args: Namespace
    gate: Gate
    ask: Callable[[str], str] = input
    """Asks a question, and returns the line that answers it; `EOFError` where input ends."""

    def all(self) -> int:
        """Ask about every proposal that waits for a person.

        Returns the exit code.
        """
        rows = self.gate.status(limit=None).block("for_you")
        try:
            for number, row in enumerate(rows, 1):
                print(f"\n{number} of {len(rows)}")
                while self._one(row.id):
                    pass
        except EOFError:  # what is not decided waits
            print()
        if not rows:
            print("nothing waits for a person")
        return 0

    def _one(self, id: str) -> bool:
        """Show a proposal and ask.

        Returns True if it is to be shown again.
        """
        row = self.gate.find(id)
        if not isinstance(row, ChangeRow) or row.waits_for != "person":
            print(visible(f"{id} does not wait any more"))
            return False
        self._show(row)
        while True:
            question = _IN_A_STACK if row.report.stands_on else _ANSWERS
            answer = self.ask(question).strip().lower()[:1]
            try:
                if answer == "q":
                    raise EOFError
                if answer == "s":
                    return False
                if answer in _DEEDS:
                    return _DEEDS[answer](self, row.report)
            except Fault as fault:
                print(visible("; ".join(filter(None, (fault.message, fault.hint))), keep="\n"))

    def _show(self, row: ChangeRow) -> None:
        lines = [visible(row.id), *look.heading(row)]
        lines += [
            visible(f"{'warning':<10} {one.code}: {one.message}")
            for one in row.report.problems
            if one.code != PENDING_CONFLICT
        ]
        print("\n".join(lines))
        files = self.gate.sides(row.report)
        if files:
            # Not through a pager: the question comes below what it is about.
            output.show(show.side_by_side(files), paged=False)
        else:
            print(visible(row.report.diff, keep="\n\t"))

    def land(
        self, report: Report, only: frozenset[str] | None = None, *, stack: bool = False
    ) -> bool:
        seen = {report.id: report.commit or ""}
        decided = self.gate.accept([report.id], only, stack=stack, seen=seen, wait=True)
        return self._undecided(decided)

    def land_stack(self, report: Report) -> bool:
        return self.land(report, stack=True)

    def land_some(self, report: Report) -> bool:
        ids = ", ".join(edit.id for edit in report.edits)
        only = edit_ids(self.ask(visible(f"Which of the edits {ids}? ")))
        if not only:
            return True
        shown = self.gate.preview(report.id, only)
        if shown.problems:
            return self._undecided(shown)
        print(visible(shown.report.diff, keep="\n\t").rstrip("\n"))
        if self.ask("Land this? [y]es, [n]o: ").strip().lower()[:1] != "y":
            return True
        return self.land(report, only)

    def ask_for_changes(self, report: Report) -> bool:
        print(_HOW)
        lines: list[str] = []
        while line := self.ask("> "):
            lines.append(line)
        if not lines:
            return True
        comments = read_comments("\n".join(lines).encode("utf-8", "surrogateescape"))
        decided = self.gate.send_back(report.id, comments, report.commit)
        print(visible(f"sent back  {decided.report.id}"))
        return False

    def take_away(self, report: Report) -> bool:
        why = self.ask("Why? (its agent sees it; empty for nothing) ").strip()
        return self._undecided(self.gate.discard(report.id, why or None, report.commit))

    def _undecided(self, decided: Decided) -> bool:
        return decide.print_decision(self.args, decided) != 0


_DEEDS: dict[str, Callable[[Walk, Report], bool]] = {
    "a": Walk.land,
    "t": Walk.land_stack,
    "o": Walk.land_some,
    "b": Walk.ask_for_changes,
    "d": Walk.take_away,
}


# ---------------------------------------------------------------- confirm


_LOOK_SECONDS = 0.2
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
        *(f"  edit {_edit(edit)}" for edit in report.edits),
        report.diff.removesuffix("\n"),
    )


def _edit(edit: EditOutcome) -> str:
    lines = f" lines {edit.lines[0]}-{edit.lines[1]}" if edit.lines else ""
    description = f": {edit.description}" if edit.description else ""
    state = "" if edit.state in USABLE else f" ({edit.state})"
    return f"{edit.id}  {edit.op} {edit.path}{lines}{state}{description}"


def _answer(question: Question, text: str) -> str:
    """Return a line from the terminal.

    Raises `Quit` at its end, and when a signal stops the command.
    """
    print(text, end="", flush=True)
    while not question.stopped():
        if select([sys.stdin], [], [], _LOOK_SECONDS)[0]:
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
