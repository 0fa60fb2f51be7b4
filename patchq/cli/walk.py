"""`patchq review --next`: what waits for a person, one after the other, in the terminal.

The riskiest comes first.  Each is shown side by side, with its risk, and the person accepts it,
whole or in part, sends it back, discards it, leaves it for later, or quits.  What was shown is what
is decided on: a proposal that moved meanwhile is shown again.
"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Callable

from msgspec import Struct

from patchq.cli import accept, listing, opening, screen, split
from patchq.cli.arguments import edit_ids
from patchq.core.text.quote import visible
from patchq.gate.api import Gate
from patchq.gate.api.rows import ChangeRow
from patchq.gate.errors import Fault, UsageError
from patchq.gate.report.schema import PENDING_CONFLICT, Report
from patchq.gate.review import comment_file
from patchq.gate.review.decide import Decided

_ANSWERS = "[a]ccept, accept [o]nly some edits, send [b]ack, [d]iscard, [s]kip, [q]uit: "
_IN_A_STACK = f"accept the s[t]ack, {_ANSWERS}"
_HOW = "Lines like `path:12: text` or `edit 2: text`, or text in general; an empty line ends it."
# Asks a question, and returns the line that answers it; raises `WalkEnds` where input ends.
Ask = Callable[[str], str]


class WalkEnds(Exception):
    """The person leaves; what is not decided waits."""


def run(args: Namespace) -> int:
    if args.json or not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError(
            "`review --next` asks, and there is no terminal", "see `patchq status --by risk`"
        )
    return Walk(args, opening.gate(args), _line).all()


def _line(question: str) -> str:
    print(question, end="", flush=True)
    line = sys.stdin.readline()
    if not line:
        print()
        raise WalkEnds
    return line.rstrip("\n")


class Walk(Struct, frozen=True, dict=True):
    """Goes through what waits."""

    args: Namespace
    gate: Gate
    ask: Ask

    def all(self) -> int:
        """Ask about every proposal that waits for a person now; return the exit code."""
        rows = self.gate.status(limit=None).block("for_you")
        try:
            for number, row in enumerate(rows, 1):
                print(f"\n{number} of {len(rows)}")
                while self._one(row.id):
                    pass
        except WalkEnds:
            pass
        if not rows:
            print("nothing waits for a person")
        return 0

    def _one(self, id: str) -> bool:
        """Show a proposal and ask; return True if it is to be shown again."""
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
                    raise WalkEnds
                if answer == "s":
                    return False
                if answer in _DEEDS:
                    return _DEEDS[answer](self, row.report)
            except Fault as fault:
                print(visible("; ".join(filter(None, (fault.message, fault.hint))), keep="\n"))

    def _show(self, row: ChangeRow) -> None:
        lines = [visible(row.id), *listing.heading(row)]
        lines += [
            visible(f"{'warning':<10} {one.code}: {one.message}")
            for one in row.report.problems
            if one.code != PENDING_CONFLICT
        ]
        print("\n".join(lines))
        files = self.gate.sides(row.report)
        if files:
            # Not through a pager: the question comes below what it is about.
            screen.show(split.lines(files), paged=False)
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
        comments = comment_file.read("\n".join(lines).encode("utf-8", "surrogateescape"))
        decided = self.gate.send_back(report.id, comments, report.commit)
        print(visible(f"sent back  {decided.report.id}"))
        return False

    def take_away(self, report: Report) -> bool:
        why = self.ask("Why? (its agent sees it; empty for nothing) ").strip()
        return self._undecided(self.gate.discard(report.id, why or None, report.commit))

    def _undecided(self, decided: Decided) -> bool:
        """Print what came of a decision; return True if it is still to be made."""
        return accept.report(self.args, decided) != 0


_DEEDS: dict[str, Callable[[Walk, Report], bool]] = {
    "a": Walk.land,
    "t": Walk.land_stack,
    "o": Walk.land_some,
    "b": Walk.ask_for_changes,
    "d": Walk.take_away,
}
