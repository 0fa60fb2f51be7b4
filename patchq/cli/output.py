"""Output of the verbs: verdicts, a line or a JSON object each, and answers."""

from __future__ import annotations

import logging
import sys
from argparse import Namespace

from patchq.cli.streams import put
from patchq.core.text.quote import visible
from patchq.gate.api.words import line
from patchq.gate.report import logs
from patchq.gate.report.document import printed
from patchq.gate.report.page import to_markdown
from patchq.gate.report.schema import Report, waits_for_its_agent

_LOG = logging.getLogger("patchq")


def notice(args: Namespace, text: str) -> None:
    """Tell a person, beside what the command prints."""
    if not args.quiet:
        print(visible(f"patchq: {text}"), file=sys.stderr)


def say(args: Namespace, report: Report) -> None:
    """Print a verdict: a JSON object a line, or one plain line."""
    if args.json:
        put(printed(report))
    elif not args.quiet or report.state == "rejected":
        put(line(report))


def log_and_say(args: Namespace, report: Report) -> None:
    """Log a verdict, with fields for programs, and print it unless both go to the same place."""
    about = {
        "batch": report.id,
        "state": report.state,
        "target": report.target,
        "commit": report.commit,
        "codes": [problem.code for problem in report.problems],
    }
    level = logging.WARNING if report.state == "rejected" else logging.INFO
    _LOG.log(level, "%s", line(report), extra=about)
    if args.json or args.quiet or not logs.shares_output():
        say(args, report)


def done(args: Namespace, report: Report, text: str) -> int:
    """Print what was done to a change, or its report as JSON; the exit code of that."""
    if args.json:
        say(args, report)
    elif not args.quiet:
        put(visible(text))
    return 0


class Verdicts:
    """Prints each verdict that it is called with, and with `pages` of what is to be answered its
    page, which says what to send; `states` are those so far."""

    def __init__(self, args: Namespace, *, pages: bool = False, again: str = "") -> None:
        self._args, self._pages, self._again = args, pages, again
        self.states: list[str] = []

    def __call__(self, report: Report) -> None:
        self.states.append(report.state)
        say(self._args, report)
        to_answer = report.state == "rejected" or waits_for_its_agent(report)
        if self._pages and to_answer and not self._args.json:
            send = None
            if self._again:
                command = self._again.replace("ID", report.id)
                send = f"Correct it there, commit it, then hand it in again:\n\n    {command}"
            put("\n" + to_markdown(report, send=send), end="")

    @property
    def exit_code(self) -> int:
        """1 if any response was refused."""
        return int("rejected" in self.states)


def emit(args: Namespace, value: object, *lines: str) -> int:
    """Print an answer, as JSON or as the lines say it; the exit code of who has it."""
    put(printed(value, indent=1) if args.json else "\n".join(lines))
    return 0
