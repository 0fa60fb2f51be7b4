"""What is known of a response after each stage, up to the decision on it; the types say which stage
that is.

A stage takes one of these values and gives the next, or a `Decision` where the verdict is known
before the end.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import field, replace
from pathlib import PurePath
from time import perf_counter
from typing import Any, Self, TypeVar

from patchq.core import formats
from patchq.core.model.errors import (
    CannotFollow,
    CannotSign,
    Declined,
    Fault,
    ObjectDamaged,
    disk_fault,
)
from patchq.core.model.frozen import frozen
from patchq.core.model.names import response_name
from patchq.core.model.report import COMMITTED, ReviewEntry
from patchq.core.model.values import (  # fmt: skip
    Base,
    Correction,
    EditOutcome,
    Envelope,
    FileChange,
    Generation,
    Header,
    Mode,
    Outcome,
    Parsed,
    Plan,
    Problem,
    ResponseVerdict,
    StandsOn,
    State,
    Tree,
)
from patchq.core.text.quote import visible
from patchq.gate.git import records
from patchq.gate.pipeline.world import Choice, Tips, World
from patchq.gate.queue import Claim, spool
from patchq.gate.report import secrecy


@frozen
class CandidateCommit:
    """A commit that can land; ids in hex.  Nothing reaches it yet."""

    target: str
    parent: str
    """The target's tip, or the proposal, that it was built on."""
    base: str
    """The commit that its edits were resolved on; `parent` where nothing else is known."""
    commit: str
    tree: str
    paths: tuple[str, ...]
    follows: bool = False
    """Whether a work tree that has the target checked out has to follow."""


@frozen(slots=False, kw_only=True)
class Decision(ResponseVerdict):
    """The verdict on one response: `state` is what it is once the `candidate`, if there is one, has
    landed.  What was not known when the decision fell is empty."""

    claim: Claim
    choice: Choice
    header: Header = field(default_factory=Header)
    tip: str | None = None
    """The target's tip (hex) that was looked at, or what stands for it: see `Aimed`."""
    on: str | None = None
    """The proposal that it stands on."""
    candidate: CandidateCommit | None = None
    changes: tuple[FileChange, ...] = ()
    """What a dry run would have committed, now or once it is not held; with a candidate, that has
    it."""
    review: ReviewEntry | None = None
    """What a person asked for that this answers, and what it makes of it."""
    subject: str = ""

    def then(self, stage: Callable[..., object]) -> Decision:
        """The stages that would follow have nothing to do."""
        return self

    @property
    def lands(self) -> bool:
        """Whether it is one for a commit: nothing speaks against it so far."""
        return self.state in COMMITTED

    @property
    def commit(self) -> str | None:
        return self.candidate.commit if self.candidate else None

    @property
    def follows(self) -> bool:
        return self.candidate is not None and self.candidate.follows

    def ended(self, state: State, *problems: Problem) -> Decision:
        """The same batch with a verdict under which nothing lands."""
        return replace(self, state=state, candidate=None, problems=(*self.problems, *problems))

    def held(self, message: str, hint: str) -> Decision:
        """The same batch, which waits until nobody's hands are on its branch."""
        return self.ended("held", Problem("target.busy", message, hint, severity="warning"))

    def unsigned(self, fault: CannotSign) -> Decision:
        """The same batch, which waits until its commit can be signed."""
        problem = Problem(fault.code, fault.message, fault.hint, severity="warning")
        return self.ended("held", problem)

    def declined(self, fault: Declined) -> Decision:
        """The same batch, which a hook of the remote refused."""
        words = secrecy.without(visible(fault.message))
        problem = Problem(
            "hook.refused",
            f"a hook of the remote refused the push: {words}",
            "do what its output asks for, then send the whole response again",
        )
        return self.ended("rejected", problem)

    def damaged(self, damage: ObjectDamaged | CannotFollow) -> Decision:
        """The same batch, which waits until somebody restores what it needs."""
        what = "the batch needs what the repository cannot give"
        if isinstance(damage, CannotFollow):
            what = "a work tree cannot follow"
        message = f"{what}: {damage.message}"
        again = f", and at once by `patchq retry {self.id}`"
        hint = (
            f"nothing to send: {damage.hint}; the batch is tried again by itself"
            f"{again * (not self.choice.dry_run)}"
        )
        return self.ended("held", Problem(damage.code, message, hint, severity="warning"))

    def outcome(self) -> Outcome:
        """The report's view of it."""
        generation = self.claim.generation or Generation()
        waits = self.state == "proposed" and not self.choice.dry_run
        # What did not come to be is good as it is, and not applied.
        ready = (replace(e, state="ready") if e.state == "applied" else e for e in self.edits)
        shared = {name: getattr(self, name) for name in ResponseVerdict.__dataclass_fields__}
        shared["edits"] = self.edits if self.lands else tuple(ready)
        return Outcome(
            **shared,
            agent=self.header.agent,
            model=self.header.model,
            commit=self.commit,
            tree=self.candidate.tree if self.candidate else None,
            branch=records.branch(self.id) if waits else None,
            stands_on=StandsOn(self.on, self.tip) if waits and self.on and self.tip else None,
            subject=self.subject,
            received=spool.claimed(self.claim.token),
            decided=None if self.state == "held" or self.choice.dry_run else time.time(),
            retries=self.header.retries,
            attempts=generation.attempts,
            prompt=generation.prompt,
            instructions=self._instructions() if self.state == "rejected" else "",
            foreseen=self.choice.dry_run,
        )

    def _instructions(self) -> str:
        """How the response's edits are written, in the form of the first that is wrong; the path
        in it is one that the response may well name again.

        A script that cannot be applied, and a file that was cut, are asked for as blocks.
        """
        errors = [problem for problem in self.problems if problem.severity == "error"]
        by_id = {edit.id: edit for edit in self.edits}
        wrong = [by_id[problem.edit] for problem in errors if problem.edit in by_id]
        forms = [
            *(problem.format for problem in errors),
            *(e.format for e in (*wrong, *self.edits)),
        ]
        form = next(filter(None, forms), None)
        cut = any(problem.code == "response.truncated" for problem in errors)
        if form == "edit_script" or (cut and form == "whole_file"):
            form = None
        bad = {problem.path for problem in errors if problem.code.startswith("path.")}
        paths = [*(problem.path for problem in errors), *(edit.path for edit in self.edits)]
        return formats.instructions(form, next((p for p in paths if p and p not in bad), None))


_LOG = logging.getLogger("patchq")
_NOBODY_ASKED = Generation()
_Next = TypeVar("_Next")


@frozen(slots=False, kw_only=True)
class Incoming:
    """A response as it came, and how it is to be taken; `problems` are warnings so far."""

    claim: Claim
    world: World
    tips: Tips
    choice: Choice
    problems: tuple[Problem, ...] = ()
    timings: Mapping[str, float] = field(default_factory=dict)
    """Milliseconds, by stage."""
    subject: str = ""
    """Of its commit, as far as the response says it itself."""

    def then(self, stage: Callable[[Self], _Next]) -> _Next | Decision:
        """The next stage.  A defect of patchq's own refuses the response, so that it is neither
        lost nor retried for ever.  An object that cannot be read holds it, as others may do without
        that one; every other fault is raised."""
        try:
            return stage(self)
        except ObjectDamaged as damage:
            return self.end("rejected").damaged(damage)
        except Fault:
            raise
        except Exception as error:
            if isinstance(error, OSError) and (broken := disk_fault(error)):
                raise broken from error
            return crashed(self.end("rejected"), error)

    def end(self, state: State, *problems: Problem) -> Decision:
        """The verdict, with what is known of the response by now: all of it that has a name in a
        decision."""
        known = {
            name: value
            for name, value in vars(self).items()
            if name in Decision.__dataclass_fields__
        }
        if "id" not in known:
            known["id"] = self.claim.id or self.world.queue.reserve(self.claim, "response")
        known["problems"] = (*self.problems, *problems)
        known["rules"] = self.world.judged_by.origin
        return Decision(state=state, source=self.claim.source, mode=self.mode, **known)

    def refuse(self, *problems: Problem) -> Decision:
        return self.end("rejected", *problems)

    def warned(self, *problems: Problem) -> Self:
        return replace(self, problems=(*self.problems, *problems)) if problems else self

    def timed(self, name: str, since: float) -> Self:
        return replace(self, timings=timed(self.timings, name, since))

    def but(self, **changes: object) -> dict[str, Any]:
        """What is known, with changes: what the value of the next stage is made of at once."""
        return {**vars(self), **changes}

    @property
    def stem(self) -> str:
        """The name of the response's file, without its suffix."""
        return PurePath(response_name(self.claim.source.name)).stem

    @property
    def generation(self) -> Generation:
        """What came of asking a model, if one was."""
        return self.claim.generation or _NOBODY_ASKED

    @property
    def mode(self) -> Mode:
        """The configuration's mode; a request may ask for a review where it says `auto`."""
        return "review" if self.generation.mode == "review" else self.world.config.mode


@frozen(slots=False, kw_only=True)
class Response(Incoming):
    """Opened: it has an id, and its text can be read."""

    id: str
    header: Header
    envelope: Envelope


@frozen(slots=False, kw_only=True)
class Aimed(Response):
    """It has a branch to land on, and that branch a tip (hex).  Where it stands on a proposal that
    waits (`on`), it is made on the tip of that one's branch, which will be the target's."""

    target: str
    tip: str
    on: str | None = None


@frozen(slots=False, kw_only=True)
class Based(Aimed):
    """The commit is known that its author saw, or is taken to have seen, with its tree."""

    base: Base
    tree: Tree

    @property
    def declared(self) -> bool:
        return self.base.how == "declared"


@frozen(slots=False, kw_only=True)
class Read(Based):
    """Its edits and its prose are known, as it says them."""

    parsed: Parsed


@frozen(slots=False, kw_only=True)
class Planned(Read):
    """It is known what becomes of each edit, and of the tree."""

    plan: Plan
    edits: tuple[EditOutcome, ...]
    """Those that a choice leaves out as well."""
    corrections: tuple[Correction, ...]


@frozen(slots=False, kw_only=True)
class Checked(Planned):
    """Nothing speaks against the results; `decision` is the verdict but for its commit."""

    decision: Decision
    paths: tuple[str, ...]
    follows: bool = False

    def end(self, state: State, *problems: Problem) -> Decision:
        return self.decision.ended(state, *problems)


def timed(timings: Mapping[str, float], name: str, since: float) -> Mapping[str, float]:
    """The timings with the milliseconds since then."""
    return {**timings, name: round((perf_counter() - since) * 1000, 3)}


def crashed(decision: Decision, error: Exception) -> Decision:
    """The refusal of a response on which patchq failed; the log has the traceback."""
    _LOG.error("%s: %s", decision.id, error, exc_info=error)
    return decision.ended(
        "rejected",
        Problem(
            "fault.crashed",
            f"patchq failed on this response ({type(error).__name__}); nothing was applied",
            "send the changes in another form or in smaller parts, and report the defect with the "
            "log's traceback",
        ),
    )
