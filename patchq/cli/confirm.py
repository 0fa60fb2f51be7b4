"""`confirm: true` on a terminal: a person sees what a response would do, and decides.

Yes lands it, no lets it wait for review, quitting leaves it undecided and stops.  Some of the edits
are shown anew before they land.  What is refused anyway, or cannot land now, is not asked about.
"""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from select import select

from msgspec.structs import replace

from patchq.cli.arguments import edit_ids
from patchq.core.model.values import EditOutcome
from patchq.core.text.quote import visible
from patchq.gate.api import dry_run
from patchq.gate.config.schema import Config
from patchq.gate.errors import UsageError
from patchq.gate.pipeline import selection
from patchq.gate.pipeline.progress import Decision
from patchq.gate.pipeline.session import Choice, Session
from patchq.gate.queue import Claim
from patchq.gate.report import document
from patchq.gate.report.schema import USABLE

_LOOK_SECONDS = 0.2
_ANSWERS = "[y]es, [n]o: it waits for review, [c]hoose edits, [q]uit"


class Quit(Exception):
    """The person stops here; the response in question is undecided."""


def possible(args: Namespace, config: Config) -> bool:
    """Return True if a person is to be asked, and at the terminal."""
    there = sys.stdin.isatty() and sys.stdout.isatty()
    return config.confirm and there and not args.json and not args.quiet


@dataclass(eq=False)
class Asker:
    """Asks about one response after the other; `stopped` tells of signals meanwhile."""

    session: Session
    stopped: Callable[[], bool] = lambda: False
    quit: bool = False

    def __call__(self, claim: Claim) -> Choice | None:
        """Ask how to take the response; None for as it says itself.  Raises `Quit`."""
        choice: Choice | None = None
        while True:
            decision = dry_run.preview(self.session, claim, choice)
            stuck = any(problem.code.startswith("worktree.") for problem in decision.problems)
            # A work tree keeps it from landing, or the proposal below it, which waits.
            if decision.state != "proposed" or stuck or decision.on:
                if choice is None:
                    return None
                self._say(*(f"{p.code}: {p.message}" for p in decision.problems))
                choice = None
                continue
            self._show(decision)
            answer = self._line(f"Land it on {decision.target}? {_ANSWERS}: ").strip().lower()[:1]
            if answer == "y":
                return replace(choice or Choice(), accepted=True)
            if answer == "n":
                return None
            if answer == "q":
                self.quit = True
                raise Quit
            if answer == "c":
                names = edit_ids(self._line(f"Which of the edits {self._names(claim)}? "))
                choice = self._choice(self._edits(claim), names)

    def _show(self, decision: Decision) -> None:
        report = document.to_json(decision.outcome())
        self._say(
            f"\n{decision.id}: {decision.subject}",
            *(f"warning {p.code}: {p.message}" for p in decision.problems),
            *(f"  edit {_edit(edit)}" for edit in report.edits),
            report.diff.removesuffix("\n"),
        )

    def _edits(self, claim: Claim) -> Sequence[EditOutcome]:
        """The batch's edits, if all of them were taken."""
        return document.to_json(dry_run.preview(self.session, claim).outcome()).edits

    def _names(self, claim: Claim) -> str:
        return ", ".join(edit.id for edit in self._edits(claim))

    def _choice(self, edits: Sequence[EditOutcome], only: frozenset[str]) -> Choice | None:
        """To take the edits that the person names; None for all, where that cannot be."""
        try:
            chosen = selection.select(edits, only, frozenset())
        except UsageError as error:
            self._say(error.message)
            return None
        return Choice(edits=chosen.taken, left=chosen.left)

    def _line(self, question: str) -> str:
        """A line from the terminal; raises `Quit` at its end, and when a signal says to stop."""
        print(question, end="", flush=True)
        while not self.stopped():
            if select([sys.stdin], [], [], _LOOK_SECONDS)[0]:
                # Not through `sys.stdin`, whose buffer would hide lines from `select`.
                data = os.read(sys.stdin.fileno(), 4096)
                if not data:
                    break
                return data.decode("utf-8", "replace")
        print(flush=True)
        raise Quit

    def _say(self, *lines: str) -> None:
        for line in lines:
            print(visible(line, keep="\n\t"), flush=True)


def _edit(edit: EditOutcome) -> str:
    lines = f" lines {edit.lines[0]}-{edit.lines[1]}" if edit.lines else ""
    description = f": {edit.description}" if edit.description else ""
    state = "" if edit.state in USABLE else f" ({edit.state})"
    return f"{edit.id}  {edit.op} {edit.path}{lines}{state}{description}"
