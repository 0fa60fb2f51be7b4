"""Commands on a batch as values, which are carried out here or sent to the worker of its branch.

One machine carries them out itself; in a cluster the worker does that serves the branch, and its
answer comes back.  Words and answers are JSON.  A command that is carried out again, since its
worker died before it answered, finds that it is done, and answers with the report as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from msgspec import Struct, ValidationError, convert, to_builtins

from patchq.core.model.values import HookRun
from patchq.gate.errors import Fault, InDoubt, UsageError
from patchq.gate.land import reports, worker
from patchq.gate.pipeline import history
from patchq.gate.pipeline.session import Session
from patchq.gate.report.schema import Report
from patchq.gate.review import accept, boarding, decide, revert, send_back
from patchq.gate.review.comment_file import DraftComment
from patchq.gate.review.decide import Decided


class Accept(boarding.Acceptance, frozen=True, tag_field="verb", tag="accept"):
    """Land proposals of one target as one train."""

    ends: ClassVar = "accepted"

    def carry_out(
        self,
        session: Session,
        tell: worker.Tell = lambda report: None,
        watch: accept.Watch = accept.unwatched,
    ) -> Decided:
        return accept.accept(session, self, watch)


class TakeBack(Struct, frozen=True, tag_field="verb", tag="take-back"):
    """Take the last decision on a change back: see `boarding.take_back`."""

    ends: ClassVar = None
    id: str

    def carry_out(self, session: Session, tell: worker.Tell) -> Decided:
        return boarding.take_back(session, self.id)


class Discuss(Struct, frozen=True, tag_field="verb", tag="discuss"):
    """Resolve the thread of a comment, or reply to it; `by` is who does."""

    ends: ClassVar = None
    id: str
    comment: str
    text: str
    by: str
    resolves: bool = False

    def carry_out(self, session: Session, tell: worker.Tell) -> Decided:
        return send_back.discuss(
            session, self.id, self.comment, self.text, self.by, resolves=self.resolves
        )


class Discard(Struct, frozen=True, tag_field="verb", tag="discard"):
    """Take a proposal or a held batch away, and say `why`."""

    ends: ClassVar = "discarded"
    id: str
    why: str | None = None
    seen: str | None = None

    def carry_out(self, session: Session, tell: worker.Tell) -> Decided:
        return decide.discard(session, self.id, self.seen, self.why)


class SendBack(Struct, frozen=True, tag_field="verb", tag="send-back"):
    """Ask for changes of a proposal; `by` is who asks."""

    ends: ClassVar = None
    id: str
    comments: tuple[DraftComment, ...]
    by: str
    seen: str | None = None

    def carry_out(self, session: Session, tell: worker.Tell) -> Decided:
        return send_back.send_back(session, self.id, self.comments, self.seen, self.by)


class Revert(Struct, frozen=True, tag_field="verb", tag="revert"):
    """Take a batch that landed back; `tell` gets the verdict on the batch that does it."""

    ends: ClassVar = "reverted"
    id: str

    def carry_out(self, session: Session, tell: worker.Tell) -> Decided:
        return revert.revert(session, self.id, tell)


class Supersede(Struct, frozen=True, tag_field="verb", tag="supersede"):
    """Have the batch `by`, of another branch, take its place: see `reports.supersede`."""

    ends: ClassVar = "superseded"
    id: str
    by: str

    def carry_out(self, session: Session, tell: worker.Tell) -> Decided:
        reports.supersede_one(self.id, self.by, session)
        return Decided(_known(session, self.id))


class KeepTold(Struct, frozen=True, tag_field="verb", tag="keep-outputs"):
    """Keep in its report the outputs of hooks that another worker notified."""

    ends: ClassVar = None
    id: str
    runs: tuple[HookRun, ...]

    def carry_out(self, session: Session, tell: worker.Tell) -> Decided:
        reports.keep_runs(session, {self.id: self.runs})
        return Decided(_known(session, self.id))


def _known(session: Session, id: str) -> Report:
    report = session.queue.load(id)
    if report is None:
        raise history.unknown(session, id)
    return report


Errand = Accept | TakeBack | Discuss | Discard | SendBack | Revert | Supersede | KeepTold


class ErrandDone(Struct, frozen=True):
    """The result of a command, with the verdicts on batches that it made."""

    decided: Decided
    verdicts: Sequence[Report] = ()


class FarFault(Fault):
    """A fault that kept the worker from carrying the command out."""

    def __init__(self, fault: Mapping[str, Any]) -> None:
        super().__init__(fault["message"], fault["hint"])
        self.code, self.exit_status = fault["code"], fault["exit_status"]
        self.retryable = fault["retryable"]


_FAULT = ("code", "message", "hint", "exit_status", "retryable")


def carry_out(session: Session, words: Mapping[str, Any], *, again: bool) -> Mapping[str, Any]:
    """Do what the words say, perhaps once more; the answer, which may be a fault that concerns this
    alone.  `errors.InDoubt` goes up: what was pushed is to be recovered first."""
    try:
        errand = convert(words, Errand)
    except ValidationError:
        return _refused(
            UsageError(
                "the worker that serves the branch does not know what is asked of it",
                "install the same patchq on all machines, then say it again",
            )
        )
    verdicts: list[Report] = []
    try:
        decided = errand.carry_out(session, verdicts.append)
    except InDoubt:
        raise
    except Fault as fault:
        report = session.queue.load(errand.id)
        if not (report and report.state == errand.ends and again):
            return _refused(fault)
        decided = Decided(report)
    done: Mapping[str, Any] = to_builtins(ErrandDone(decided, verdicts))
    return done


def _refused(fault: Fault) -> Mapping[str, Any]:
    return {"fault": {name: getattr(fault, name) for name in _FAULT}}


def answered(answer: Mapping[str, Any]) -> ErrandDone:
    """Return the result in the answer, or raise its fault."""
    if fault := answer.get("fault"):
        if fault["code"] == UsageError.code:
            raise UsageError(fault["message"], fault["hint"])
        raise FarFault(fault)
    return convert(answer, ErrandDone)
