"""The values between a response and its verdict: Response and Decision.

Each stage returns the response with what it found.  One that knows the verdict before the end
raises `EndedEarly`.
"""

from __future__ import annotations

import logging
from functools import cached_property, partial
from time import perf_counter
from typing import Any

from msgspec import Struct, field
from msgspec.structs import asdict, replace

from patchq.core import formats
from patchq.core.model.values import (  # fmt: skip
    Base,
    Correction,
    EditOutcome,
    Envelope,
    FileChange,
    Header,
    HookRun,
    Mode,
    Parsed,
    Plan,
    Problem,
    StandsOn,
    State,
)
from patchq.core.text.quote import visible
from patchq.gate.errors import CannotFollow, Declined, ObjectDamaged
from patchq.gate.git import records
from patchq.gate.pipeline.session import AS_SENT, Choice, Session
from patchq.gate.queue import Claim, spool
from patchq.gate.report import document, message, secrecy
from patchq.gate.report.schema import COMMITTED, Report, RetryEntry, ReviewEntry, SourceEntry

_LOG = logging.getLogger("patchq")
_NO_BASE = Base("", None)


class Response(Struct, frozen=True, kw_only=True):
    """A response, how it is taken, and what the stages found so far; the rest is empty.

    Its commit is for the branch `target`, on the commit (hex) `tip`: that of the branch, or of the
    proposal `on` below it.  `parsed` has the edits as they were corrected, or why nothing can be
    read; `edits` has the outcomes also of those that a choice leaves out.  `on_base` are the
    changes on the base; those of the `plan` are on the tip in the end.  `warnings` and `timings`
    (milliseconds, by stage) grow from stage to stage.
    """

    claim: Claim
    session: Session
    choice: Choice = AS_SENT
    id: str = ""
    envelope: Envelope = field(default_factory=partial(Envelope, Header(), ""))
    target: str = ""
    tip: str = ""
    on: str | None = None
    base: Base = _NO_BASE
    parsed: Parsed = Parsed()
    plan: Plan = Plan()
    on_base: tuple[FileChange, ...] = ()
    edits: tuple[EditOutcome, ...] = ()
    corrections: tuple[Correction, ...] = ()
    warnings: list[Problem] = field(default_factory=list)
    timings: dict[str, float] = field(default_factory=dict)

    @property
    def header(self) -> Header:
        return self.envelope.header

    @property
    def mode(self) -> Mode:
        """The configuration's mode; a request may ask for a review where it says `auto`."""
        return "review" if self.claim.generation.mode == "review" else self.session.config.mode


class Decision(Response, frozen=True, dict=True, kw_only=True):
    """The verdict on one response: `state` is what it is once its `commit`, if any, has landed.

    The commit, which nothing reaches before that, is built on `tip`; all are in hex.  `follows`: a
    work tree that has the target checked out has to follow.  `changes` are those that a dry run
    would commit, now or once not held.
    """

    state: State
    duplicate_of: str | None = None
    problems: tuple[Problem, ...] = ()
    diff: str = ""
    hooks: tuple[HookRun, ...] = ()
    commit: str = ""
    tree: str = ""
    paths: tuple[str, ...] = ()
    follows: bool = False
    changes: tuple[FileChange, ...] = ()
    review: ReviewEntry | None = None
    subject: str = ""

    @property
    def lands(self) -> bool:
        return self.state in COMMITTED

    @property
    def errors(self) -> list[Problem]:
        return [problem for problem in self.problems if problem.severity == "error"]

    @property
    def log(self) -> str:
        return f"patchq: {self.id}: {self.subject}"

    @property
    def base_commit(self) -> str:
        return self.base.commit or self.tip

    def with_verdict(self, state: State, *problems: Problem) -> Decision:
        """Return the same batch with a verdict under which nothing lands."""
        problems = (*self.problems, *problems)
        return replace(self, state=state, commit="", follows=False, problems=problems)

    def held(self, message: str, hint: str | None, code: str = "target.busy") -> Decision:
        """Return the same batch, waiting until the cause is gone."""
        return self.with_verdict("held", Problem(code, message, hint, severity="warning"))

    def declined(self, fault: Declined) -> Decision:
        words = secrecy.without(visible(fault.message))
        problem = Problem(
            "hook.refused",
            f"a hook of the remote refused the push: {words}",
            "do what its output asks for, then send the whole response again",
        )
        return self.with_verdict("rejected", problem)

    def damaged(self, damage: ObjectDamaged | CannotFollow) -> Decision:
        """Return the same batch, held until what it needs is restored."""
        message = f"the change waits: {damage.message}"
        again = "" if self.choice.dry_run else f", and at once by `patchq retry {self.id}`"
        hint = f"nothing to send: {damage.hint}; the change is tried again by itself{again}"
        return self.held(message, hint, damage.code)

    @cached_property
    def report(self) -> Report:
        """The report on it, made when it is first asked for."""
        instructions = ""
        if self.state == "rejected":
            instructions = formats.instructions_after(self.problems, self.edits)
        prompt, foreseen = self.claim.generation.prompt, self.choice.dry_run
        return document.to_json(
            self._facts(), self.problems, prompt, instructions, tip=self.tip, foreseen=foreseen
        )

    def hook_plan(self) -> dict[str, Any]:
        """Return `patchq.plan/1`, as hooks get it."""
        return document.to_plan(self._facts(), self.problems)

    def _facts(self) -> Report:
        waits = self.state == "proposed" and not self.choice.dry_run
        received, source = spool.claimed(self.claim.token), self.claim.source
        # What did not come to be is good as it is, and not applied.
        ready = (replace(e, state="ready") if e.state == "applied" else e for e in self.edits)
        return Report(
            id=self.id,
            state=self.state,
            duplicate_of=self.duplicate_of,
            source=SourceEntry(name=source.name, sha256=source.sha256, bytes=source.size),
            agent=self.header.agent,
            model=self.header.model,
            message=self.subject,
            received=None if received is None else document.moment(received),
            decided=None if self.state == "held" or self.choice.dry_run else document.now(),
            mode=self.mode,
            rules=self.session.judged_by.origin(),
            target=self.target or None,
            base=self.base if self.base.commit else None,
            commit=self.commit or None,
            tree=self.tree if self.commit else None,
            branch=records.branch(self.id) if waits else None,
            stands_on=StandsOn(self.on, self.tip) if waits and self.on else None,
            edits=self.edits if self.lands else list(ready),
            corrections=self.corrections,
            attempts=self.claim.generation.attempts,
            hooks=self.hooks,
            diff=self.diff,
            review=self.review,
            retry=RetryEntry(of=self.header.retries),
            timings=self.timings,
        )


class EndedEarly(Exception):
    """The known end of a response: a refusal, a duplicate or a hold.

    `known` has fields of the decision which no stage has returned.
    """

    def __init__(self, state: State, *problems: Problem, **known: Any) -> None:
        super().__init__(state)
        self.state, self.problems, self.known = state, problems, known


def refused(code: str, message: str, hint: str, **known: Any) -> EndedEarly:
    """Return the end of a response by an error of its own."""
    return EndedEarly("rejected", Problem(code, message, hint), **known)


def decide(response: Response, state: State, *problems: Problem, **known: Any) -> Decision:
    """Return the verdict on a response, with all findings but the files' texts."""
    claim = response.claim
    found = asdict(response) | {"parsed": Parsed(), "plan": Plan(), "on_base": ()}
    found["id"] = response.id or claim.id or response.session.queue.reserve(claim, "response")
    found["subject"] = message.headline(response.header, response.parsed.summary)
    found["problems"] = (*response.warnings, *problems)
    return Decision(state=state, **{**found, **known})


def milliseconds(since: float) -> float:
    return round((perf_counter() - since) * 1000, 3)


def crashed(decision: Decision, error: Exception) -> Decision:
    """Return the refusal of a response on which patchq failed; the log has the traceback."""
    _LOG.error("%s: %s", decision.id, error, exc_info=error)
    return decision.with_verdict(
        "rejected",
        Problem(
            "fault.crashed",
            f"patchq failed on this response ({type(error).__name__}); nothing was applied",
            "send the changes in another form or in smaller parts, and report the defect with the "
            "log's traceback",
        ),
    )
