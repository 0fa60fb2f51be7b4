"""`patchq review --next`: what waits for a person, one after the other, in the terminal.

The riskiest comes first.  Each is shown side by side, with its risk, and the person accepts it,
whole or in part, sends it back, discards it, leaves it for later, or quits.  What was shown is what
is decided on: a proposal that moved meanwhile is shown again.
"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Callable, Iterator

from msgspec import Struct

from patchq.cli import accept, listing, opening, screen, split
from patchq.cli.arguments import edit_ids
from patchq.core.text.quote import visible
from patchq.gate.api import deciding
from patchq.gate.api.rows import ChangeRow, with_risk
from patchq.gate.errors import Fault, UsageError
from patchq.gate.git import records
from patchq.gate.pipeline import depends, history
from patchq.gate.pipeline.session import Session
from patchq.gate.report.schema import PENDING_CONFLICT, Report, waits_for_its_agent
from patchq.gate.review import comment_file, comparison
from patchq.gate.review.accept import preview
from patchq.gate.review.decide import Decided
from patchq.gate.review.errands import Accept, Discard, Errand, SendBack

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
    return Walk(args, opening.gate(args).session(targeted=False), _line).all()


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
    session: Session
    ask: Ask

    def all(self) -> int:
        """Every proposal that waits for a person now; the exit code."""
        ids = self._waiting()
        try:
            for number, id in enumerate(ids, 1):
                print(f"\n{number} of {len(ids)}")
                while self._one(id):
                    pass
        except WalkEnds:
            pass
        if not ids:
            print("nothing waits for a person")
        return 0

    def _waiting(self) -> list[str]:
        found = [
            report
            for report in history.waiting(self.session)
            if history.observe(self.session, report).state == "proposed"
            and not waits_for_its_agent(report)
        ]
        order = {it.id: comparison.risk_of(self.session, it).order for it in found}
        found.sort(key=lambda it: (*(-number for number in order[it.id]), it.id))
        return [report.id for report in depends.in_order(found)]

    def _one(self, id: str) -> bool:
        """Show a proposal and ask; whether it is to be shown again."""
        report = self.session.queue.load(id)
        seen = self.session.branches.tip(records.branch(id))
        if report is None or report.state != "proposed" or seen is None:
            print(visible(f"{id} does not wait any more"))
            return False
        self._show(report)
        while True:
            question = _IN_A_STACK if report.stands_on else _ANSWERS
            answer = self.ask(question).strip().lower()[:1]
            try:
                if answer == "q":
                    raise WalkEnds
                if answer == "s":
                    return False
                if answer in _DEEDS:
                    return _DEEDS[answer](self, report, seen)
            except Fault as fault:
                print(visible("; ".join(filter(None, (fault.message, fault.hint))), keep="\n"))

    def _show(self, report: Report) -> None:
        row = with_risk(self.session, ChangeRow(report=report))
        lines = [visible(report.id), *listing.heading(row)]
        lines += [visible(f"{'warning':<10} {text}") for text in _warnings(report)]
        print("\n".join(lines))
        files, changes = comparison.rows_of(self.session, report)
        if files:
            # Not through a pager: the question comes below what it is about.
            screen.show(split.lines(files, changes), None, paged=False)
        else:
            print(visible(report.diff, keep="\n\t"))

    def land(self, report: Report, seen: str) -> bool:
        return self._undecided(self._decided(Accept((report.id,), seen={report.id: seen})))

    def land_stack(self, report: Report, seen: str) -> bool:
        return self._undecided(
            self._decided(Accept((report.id,), stack=True, seen={report.id: seen}))
        )

    def land_some(self, report: Report, seen: str) -> bool:
        ids = ", ".join(edit.id for edit in report.edits)
        only = edit_ids(self.ask(visible(f"Which of the edits {ids}? ")))
        if not only:
            return True
        shown = preview(self.session, report.id, only)
        if shown.problems:
            return self._undecided(shown)
        print(visible(shown.report.diff, keep="\n\t").rstrip("\n"))
        if self.ask("Land this? [y]es, [n]o: ").strip().lower()[:1] != "y":
            return True
        return self._undecided(
            self._decided(Accept((report.id,), tuple(sorted(only)), seen={report.id: seen}))
        )

    def ask_for_changes(self, report: Report, seen: str) -> bool:
        print(_HOW)
        lines: list[str] = []
        while line := self.ask("> "):
            lines.append(line)
        if not lines:
            return True
        commit = seen if seen == report.commit else None
        comments = comment_file.read("\n".join(lines).encode("utf-8", "surrogateescape"))
        errand = SendBack(report.id, tuple(comments), self.session.identity().name, commit)
        decided = self._decided(errand)
        print(visible(f"sent back  {decided.report.id}"))
        return False

    def take_away(self, report: Report, seen: str) -> bool:
        why = self.ask("Why? (its agent sees it; empty for nothing) ").strip()
        return self._undecided(self._decided(Discard(report.id, why or None, seen)))

    def _decided(self, errand: Errand) -> Decided:
        return deciding.decide(self.session, errand)

    def _undecided(self, decided: Decided) -> bool:
        """Print what came of a decision; return True if it is still to be made."""
        return accept.report(self.args, decided) != 0


_DEEDS: dict[str, Callable[[Walk, Report, str], bool]] = {
    "a": Walk.land,
    "t": Walk.land_stack,
    "o": Walk.land_some,
    "b": Walk.ask_for_changes,
    "d": Walk.take_away,
}


def _warnings(report: Report) -> Iterator[str]:
    for problem in report.problems:
        if problem.code != PENDING_CONFLICT:
            yield f"{problem.code}: {problem.message}"
