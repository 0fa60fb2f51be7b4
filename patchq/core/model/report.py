"""The report on one response (`<id>.report.json`, schema `patchq.report/1`), part by part, the plan
that hooks get, and the groups of states.

A report is a value: who wants another one builds it.  Nothing is ever absent; what is unused or not
known is null or empty.  What git alone tells of a batch has no name, size, mode or place in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal, TypedDict, TypeGuard, get_args

from patchq.core.model.values import EditState, Mode, Origin, Severity, State

if TYPE_CHECKING:
    from typing_extensions import ReadOnly  # for type checkers alone: annotations are not evaluated

# ---------------------------------------------------------------- groups of states

LANDED: frozenset[State] = frozenset({"applied", "accepted"})
"""The edits are on the target."""
WAITING: frozenset[State] = frozenset({"proposed", "held"})
"""A person, another batch or a work tree is waited for."""
COMMITTED: frozenset[State] = frozenset({"applied", "proposed"})
"""The verdicts that come with a commit."""
STANDING: frozenset[State] = COMMITTED | LANDED
"""There is a commit that may be on the target."""
REPLACING: frozenset[State] = COMMITTED | {"held"}
"""The verdicts of a batch that takes the place of another one."""
REPLACED: frozenset[State] = frozenset({"duplicate", "superseded"})
"""Another batch may stand for this one."""
STOPPED: frozenset[State] = frozenset({"rejected", "held"})
"""The problems say why nothing was done."""
OVER: frozenset[State] = frozenset({"rejected", "discarded", "reverted"})
"""The edits are not on the target and will not be by themselves."""
NOTED: frozenset[State] = frozenset({"accepted", "discarded", "superseded", "reverted"})
"""The later states, which git notes tell of."""
VERDICTS: tuple[State, ...] = ("applied", "proposed", "duplicate", "rejected")
"""What a report may say when it first appears among the finished ones."""

USABLE: frozenset[EditState] = frozenset({"applied", "ready"})
"""The edit changes the file, or would in a batch that is not refused."""
IDLE: frozenset[EditState] = frozenset({"skipped", "cancelled"})
"""The edit is left out."""

CHANGES = "review.changes"
"""The code of the warning that a person asks for changes."""
EventKind = Literal[
    "claimed", "held", "applied", "proposed", "duplicate", "refused",
    "changes_requested", "accepted", "discarded", "superseded", "reverted",
]  # fmt: skip
EVENT_KINDS: tuple[EventKind, ...] = get_args(EventKind)
"""What may happen to a batch, each told as an event."""

PENDING_CONFLICT = "conflict.pending"
"""The code of the warning that another proposal cannot land beside this one."""

# ---------------------------------------------------------------- the parts


class SourceDigest(TypedDict):
    """What the response was: the sha256 (hex) of its bytes."""

    sha256: ReadOnly[str]


class SourceEntry(TypedDict):
    """The response's file name, digest, and size in bytes."""

    name: ReadOnly[str | None]
    sha256: ReadOnly[str]
    bytes: ReadOnly[int | None]


class Moment(TypedDict):
    """A time: seconds since the epoch, and the same for people (UTC)."""

    unix: ReadOnly[float]
    iso: ReadOnly[str]


class SizeEntry(TypedDict):
    """How much a batch changes: files, and the lines that it adds and takes away."""

    files: ReadOnly[int]
    added: ReadOnly[int]
    deleted: ReadOnly[int]


RulesEntry = TypedDict("RulesEntry", {"from": str, "blob": str | None})
"""Where the configuration is from that judged the batch, and git's id of that file."""


class BaseCommit(TypedDict):
    """The commit (hex) that the edits were resolved on."""

    commit: ReadOnly[str]


class BaseEntry(BaseCommit):
    """The same, and how it was found."""

    how: ReadOnly[Origin | None]


class EditSummary(TypedDict):
    """What every plan says of an edit."""

    id: ReadOnly[str]
    path: ReadOnly[str]
    op: ReadOnly[str]
    state: ReadOnly[EditState]


class EditEntry(TypedDict):
    """What became of one edit; `at` are lines of the response, `lines` those of the base: the first
    and the last."""

    id: ReadOnly[str]
    format: ReadOnly[str | None]
    at: ReadOnly[Sequence[int] | None]
    path: ReadOnly[str]
    op: ReadOnly[str]
    state: ReadOnly[EditState]
    match: ReadOnly[str | None]
    lines: ReadOnly[Sequence[int] | None]
    needs: ReadOnly[Sequence[str]]
    cancelled_by: ReadOnly[str | None]
    confidence: ReadOnly[float | None]
    description: ReadOnly[str | None]


class CandidateEntry(TypedDict):
    """A place that an edit may have meant."""

    path: ReadOnly[str]
    line: ReadOnly[int]
    symbol: ReadOnly[str | None]
    text: ReadOnly[str]
    disambiguate: ReadOnly[str | None]


class CollisionEntry(TypedDict):
    """What an edit collides with."""

    batch: ReadOnly[str | None]
    edit: ReadOnly[str | None]
    commit: ReadOnly[str | None]
    agent: ReadOnly[str | None]
    path: ReadOnly[str | None]
    lines: ReadOnly[Sequence[int] | None]


class ProblemEntry(TypedDict):
    """One thing to tell; an error refuses the batch."""

    code: ReadOnly[str]
    alias: ReadOnly[str | None]
    severity: ReadOnly[Severity]
    edit: ReadOnly[str | None]
    path: ReadOnly[str | None]
    line: ReadOnly[int | None]
    message: ReadOnly[str]
    hint: ReadOnly[str | None]
    candidates: ReadOnly[Sequence[CandidateEntry]]
    conflicts_with: ReadOnly[CollisionEntry | None]


class CorrectionEntry(TypedDict):
    """Which half of an edit was corrected, and by what."""

    edit: ReadOnly[str]
    what: ReadOnly[Literal["old", "new"]]
    by: ReadOnly[Literal["program", "model"]]


class AttemptEntry(TypedDict):
    """One question to a model."""

    n: ReadOnly[int]
    form: ReadOnly[str]
    stop: ReadOnly[str]


class HookEntry(TypedDict):
    """One hook's run; no exit code: its time was over."""

    id: ReadOnly[str]
    stage: ReadOnly[str]
    exit: ReadOnly[int | None]
    seconds: ReadOnly[float]
    output: ReadOnly[str]


ReviewState = Literal["changes_requested", "answered"]


class CommentEntry(TypedDict):
    """What a person says of a proposal: of one line, of one edit, of one file, or of all of it.

    `line` is one of the proposal's commit (`side` is `new`) or of that commit's parent (`base`),
    and is carried along when the proposal follows its target; null where it is there no more.
    `changed` says whether an answer changed what the comment speaks of; null as long as there is
    none, and where it speaks of all.
    """

    path: ReadOnly[str | None]
    line: ReadOnly[int | None]
    side: ReadOnly[Literal["base", "new"] | None]
    edit: ReadOnly[str | None]
    text: ReadOnly[str]
    by: ReadOnly[str]
    changed: ReadOnly[bool | None]


class ReviewEntry(TypedDict):
    """The changes that people ask for; `by` and `at` are of the last who did.  In the report of a
    batch that answers them, and of the one that it answers, they are `answered`."""

    state: ReadOnly[ReviewState]
    by: ReadOnly[str]
    at: ReadOnly[Moment]
    comments: ReadOnly[Sequence[CommentEntry]]


class FootingEntry(TypedDict):
    """The proposal on which another one's branch is built, and the commit of it."""

    batch: ReadOnly[str]
    commit: ReadOnly[str]


class RetryEntry(TypedDict):
    """The text that lets a model send a correct response; the batch that this one tries again."""

    prompt: ReadOnly[str | None]
    of: ReadOnly[str | None]


# ---------------------------------------------------------------- the whole


class BatchDocument(TypedDict):
    """What a report and a plan have, in their order.

    `message` is the subject of the commit, or what it would have been.  `received` is when the
    queue took the response, `decided` when the batch came to the state that it has, and
    `reason` why, in the words of the person who discarded it.  `rules` says where the configuration
    is from that judged the batch (`from`), and git's id of that file (`blob`).  `stands_on` is null
    unless the batch waits for review on top of another one that does.
    """

    schema: ReadOnly[str]
    id: ReadOnly[str]
    state: ReadOnly[State | None]
    duplicate_of: ReadOnly[str | None]
    source: ReadOnly[SourceEntry]
    agent: ReadOnly[str | None]
    model: ReadOnly[str | None]
    message: ReadOnly[str | None]
    received: ReadOnly[Moment | None]
    decided: ReadOnly[Moment | None]
    reason: ReadOnly[str | None]
    mode: ReadOnly[Mode | None]
    rules: ReadOnly[RulesEntry | None]
    target: ReadOnly[str | None]
    base: ReadOnly[BaseEntry | None]
    commit: ReadOnly[str | None]
    tree: ReadOnly[str | None]
    branch: ReadOnly[str | None]
    stands_on: ReadOnly[FootingEntry | None]
    edits: ReadOnly[Sequence[EditEntry]]
    problems: ReadOnly[Sequence[ProblemEntry]]
    corrections: ReadOnly[Sequence[CorrectionEntry]]
    attempts: ReadOnly[Sequence[AttemptEntry]]
    hooks: ReadOnly[Sequence[HookEntry]]
    size: ReadOnly[SizeEntry | None]
    diff: ReadOnly[str]
    review: ReadOnly[ReviewEntry | None]
    retry: ReadOnly[RetryEntry]
    timings: ReadOnly[Mapping[str, float]]


class Report(BatchDocument):
    """The parsed content of `<id>.report.json`."""

    state: ReadOnly[State]


ADDED = frozenset(
    {"message", "received", "decided", "reason", "size", "review", "stands_on", "rules"}
)
"""The keys that reports of an older patchq do not have; they are null when one is read."""


class CommittedReport(Report):
    """A report on a batch that has a commit, on the branch or waiting for it."""

    target: ReadOnly[str]
    base: ReadOnly[BaseEntry]
    commit: ReadOnly[str]
    tree: ReadOnly[str]


def has_commit(report: Report) -> TypeGuard[CommittedReport]:
    """Whether the batch has a commit, and with it a target, a base and a tree."""
    return None not in (report["commit"], report["tree"], report["target"], report["base"])


def waits_for_its_agent(report: Report) -> bool:
    """Whether a person has sent the proposal back, and no answer has come."""
    review = report["review"]
    return (
        report["state"] == "proposed"
        and review is not None
        and review["state"] == "changes_requested"
    )


def kind_of(report: Report) -> EventKind | None:
    """The kind of the event that a report in this state tells of; None for what is no report, as
    somebody else may have put it there."""
    state, review = report.get("state"), report.get("review")
    if state == "proposed" and review and review.get("state") == "changes_requested":
        return "changes_requested"
    kind = "refused" if state == "rejected" else state
    return kind if kind in EVENT_KINDS else None


class Delivery(TypedDict):
    """What tells whether the batch is on a branch: a report's part that git knows as well."""

    id: ReadOnly[str]
    state: ReadOnly[State]
    target: ReadOnly[str | None]
    commit: ReadOnly[str | None]
    source: ReadOnly[SourceDigest]
    base: ReadOnly[BaseCommit | None]


class ReportChanges(TypedDict, total=False):
    """What a later state may change in a report."""

    duplicate_of: ReadOnly[str | None]
    message: ReadOnly[str | None]
    decided: ReadOnly[Moment | None]
    reason: ReadOnly[str | None]
    base: ReadOnly[BaseEntry | None]
    commit: ReadOnly[str | None]
    tree: ReadOnly[str | None]
    branch: ReadOnly[str | None]
    stands_on: ReadOnly[FootingEntry | None]
    edits: ReadOnly[Sequence[EditEntry]]
    problems: ReadOnly[Sequence[ProblemEntry]]
    hooks: ReadOnly[Sequence[HookEntry]]
    size: ReadOnly[SizeEntry | None]
    diff: ReadOnly[str]
    review: ReadOnly[ReviewEntry | None]
    retry: ReadOnly[RetryEntry]


class HookPlan(TypedDict):
    """What hooks are told of a batch at least (`patchq.plan/1`); a whole plan is a
    `BatchDocument`."""

    schema: ReadOnly[str]
    id: ReadOnly[str]
    agent: ReadOnly[str | None]
    model: ReadOnly[str | None]
    mode: ReadOnly[Mode | None]
    target: ReadOnly[str | None]
    base: ReadOnly[BaseEntry | None]
    edits: ReadOnly[Sequence[EditSummary]]
    diff: ReadOnly[str]
