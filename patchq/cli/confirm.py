"""`confirm: true`, which has a person at the terminal asked about each response."""

from __future__ import annotations

import os
import signal
import sys
from argparse import Namespace
from select import select

from patchq.cli.arguments import edit_ids
from patchq.core.model.values import EditOutcome
from patchq.core.text.quote import visible
from patchq.gate.api.deciding import Ask, Question
from patchq.gate.config.schema import Config
from patchq.gate.errors import UsageError
from patchq.gate.report.schema import USABLE

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
