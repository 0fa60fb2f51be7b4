"""The common part of `run` and `watch`: signals, upkeep and questions."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Callable
from functools import partial

from msgspec.structs import replace

from patchq.cli import confirm, opening, output
from patchq.gate.errors import Fault, disk_fault
from patchq.gate.pipeline.session import Session
from patchq.gate.queue.hand import Hand
from patchq.gate.report.schema import Report
from patchq.gate.service.serve import Control
from patchq.gate.service.upkeep import Manager, Upkeep


def _release(session: Session, kind: object, error: BaseException | None, trace: object) -> None:
    """Let go of the queue, with a word on the fault that ends the work, if one does."""
    fault = disk_fault(error) if isinstance(error, OSError) else error
    session.queue.release(fault if isinstance(fault, Fault) else None)


class Tenure:
    """Holds the queue until the command ends; a daemon is `lasting`.

    Each verdict goes to `say`.
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
        self._asker: confirm.Asker | None = None
        if lasting and sys.stderr.isatty():
            output.notice(args, f"watching {session.config.queue.path}/inbox for {session.target}")
        if confirm.possible(args, session.config):
            self._asker = confirm.Asker(session, lambda: self.control.stop)
            self.session = self.upkeep.session = replace(session, ask=self._asker)

    def tell(self, report: Report) -> None:
        """Take note of a verdict, and show it."""
        self.upkeep.count(report)
        self._say(report)

    @property
    def ended_early(self) -> bool:
        """Return True if a person interrupted the work, or quit when asked."""
        return self.control.interrupted or bool(self._asker and self._asker.quit)
