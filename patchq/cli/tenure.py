"""The common part of `run` and `watch`: signals, upkeep, questions, and lines on a terminal."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from patchq.cli import confirm, opening
from patchq.gate.api import words
from patchq.gate.errors import Fault, disk_fault
from patchq.gate.pipeline.session import Session
from patchq.gate.queue.hand import Hand
from patchq.gate.report.schema import Report
from patchq.gate.service.serve import Control
from patchq.gate.service.upkeep import Manager, Upkeep

if TYPE_CHECKING:
    from patchq.cli.live import Bar, LiveLine


def _release(session: Session, kind: object, error: BaseException | None, trace: object) -> None:
    """Let go of the queue, with a word on the fault that ends the work, if one does."""
    fault = disk_fault(error) if isinstance(error, OSError) else error
    session.queue.release(fault if isinstance(fault, Fault) else None)


class Tenure:
    """Holds the queue until the command ends; a daemon is `lasting`.

    Each verdict goes to `say`, or to the screen where there is a terminal on which no
    questions are asked.
    """

    def __init__(
        self, args: Namespace, session: Session, say: Callable[[Report], None], *, lasting: bool
    ) -> None:
        self.control = Control()
        self.control.install()
        self.control.end_now = session.cut.set
        session.queue.acquire(session.target)
        args.opened.push(partial(_release, session))
        session = replace(session, hand=Hand(session.queue_root))
        self.location = opening.gate(args).location
        self.upkeep = Upkeep(session, self.location.home, Manager() if lasting else Manager({}))
        self.session, self._say = session, say
        self._screen: Bar | LiveLine | None = None
        self._asker: confirm.Asker | None = None
        if confirm.possible(args, session.config):
            self._asker = confirm.Asker(session, lambda: self.control.stop)
            self.session = self.upkeep.session = replace(session, ask=self._asker)
        elif sys.stdout.isatty() and not args.json and not args.quiet:
            from patchq.cli.live import Bar, LiveLine  # only a terminal needs rich

            self._screen = LiveLine() if lasting else Bar()
            args.opened.callback(self._screen.close)

    def tell(self, report: Report) -> None:
        """Take note of a verdict, and show it."""
        self.upkeep.count(report)
        if self._screen is None:
            self._say(report)
        else:
            self._screen.tell(words.line(report))

    def refresh(self) -> None:
        """Show how far the work is, where something is shown."""
        if self._screen is not None:
            self._screen.refresh(self.upkeep)

    @property
    def ended_early(self) -> bool:
        """Return True if a person interrupted the work, or quit when asked."""
        return self.control.interrupted or bool(self._asker and self._asker.quit)
