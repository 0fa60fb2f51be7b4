"""The types of a report (`<id>.report.json`), and the groups of states.

A report is a value: who wants another one builds it.  No key is ever absent; what is unused or not
known is null or empty.  A report made from git alone has no name, size or mode of a response.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypeGuard, get_args

from msgspec import Struct
from msgspec.json import Decoder

from patchq.core.model.values import (
    Attempt,
    Base,
    Candidate,
    Collision,
    Correction,
    EditOutcome,
    EditState,
    HookRun,
    Mode,
    RulesOrigin,
    Severity,
    StandsOn,
    State,
)

SCHEMA: Literal["patchq.report/1"] = "patchq.report/1"

# ---------------------------------------------------------------- groups of states

LANDED: frozenset[State] = frozenset({"applied", "accepted"})  # the edits are on the target
# A person, another batch or a work tree is waited for.
WAITING: frozenset[State] = frozenset({"proposed", "held"})
# The verdicts that come with a commit.
COMMITTED: frozenset[State] = frozenset({"applied", "proposed"})
STANDING: frozenset[State] = COMMITTED | LANDED  # there is a commit that may be on the target
# The verdicts of a batch that takes the place of another one.
REPLACING: frozenset[State] = COMMITTED | {"held"}
# Another batch may stand for this one.
REPLACED: frozenset[State] = frozenset({"duplicate", "superseded"})
STOPPED: frozenset[State] = frozenset({"rejected", "held"})  # the problems say why nothing was done
# The edits are not on the target and will not be by themselves.
OVER: frozenset[State] = frozenset({"rejected", "discarded", "reverted"})
# The later states, which git notes tell of.
NOTED: frozenset[State] = frozenset({"accepted", "discarded", "superseded", "reverted"})
# The states in which a report first appears among the finished ones.
VERDICTS: tuple[State, ...] = ("applied", "proposed", "duplicate", "rejected")

# The edit changes the file, or would in a batch that is not refused.
USABLE: frozenset[EditState] = frozenset({"applied", "ready"})
IDLE: frozenset[EditState] = frozenset({"skipped", "cancelled"})  # the edit is left out

CHANGES = "review.changes"  # the code of the warning that a person asks for changes
NotifiedKind = Literal[
    "held", "applied", "proposed", "duplicate", "refused",
    "changes_requested", "boarded", "left_out", "accepted", "discarded", "superseded", "reverted",
]  # fmt: skip
EventKind = Literal["claimed", NotifiedKind]
EVENT_KINDS: tuple[EventKind, ...] = get_args(EventKind)  # the kinds of events in a batch's life

# The code of the warning that another proposal cannot land beside this one.
PENDING_CONFLICT = "conflict.pending"

# ---------------------------------------------------------------- the parts


class SourceEntry(Struct, frozen=True, kw_only=True):
    """The response's file name, digest, and size in bytes."""

    name: str | None
    sha256: str
    bytes: int | None


class Moment(Struct, frozen=True, kw_only=True):
    """A time: seconds since the epoch, and the same for people (UTC)."""

    unix: float
    iso: str


class SizeEntry(Struct, frozen=True, kw_only=True):
    files: int
    added: int
    deleted: int


class ProblemEntry(Struct, frozen=True, kw_only=True):
    """One thing to tell; an error refuses the batch."""

    code: str
    alias: str | None
    severity: Severity
    edit: str | None
    path: str | None
    line: int | None
    message: str
    hint: str | None
    candidates: Sequence[Candidate]
    conflicts_with: Collision | None


ReviewState = Literal["changes_requested", "answered"]
ThreadState = Literal["open", "answered", "resolved"]


class ReplyEntry(Struct, frozen=True, kw_only=True):
    """A reply in the thread of a comment; `commit` is the proposal's when it came."""

    by: str
    at: Moment
    text: str
    commit: str | None


class CommentEntry(Struct, frozen=True, kw_only=True):
    """A person's comment on a proposal: on one line, one edit, one file, or all of it.

    The agent answers it, by words or by a change of its lines; a person resolves it or replies,
    which opens it again.  What is not resolved goes along with the next request for changes.

    `line` is one of the proposal's commit (`side` is `new`) or of that commit's parent (`base`),
    and is carried along when the proposal follows its target; null where it is there no more.
    `changed` says whether an answer changed what the comment speaks of; null as long as there is
    none, and where it speaks of all.  `lines` are the first and the last of the lines that it is
    about, the last being `line`.  `quote` has those lines once they are there no more.  `origin`
    is the address of one that was made on a forge.

    Before it is sent it has a text, and perhaps `lines` of a path, or an edit.
    """

    id: str = ""
    state: ThreadState = "open"
    at: Moment = Moment(unix=0.0, iso="")
    replies: tuple[ReplyEntry, ...] = ()
    quote: str | None = None
    path: str | None = None
    line: int | None = None
    lines: tuple[int, int] | None = None
    side: Literal["base", "new"] | None = None
    edit: str | None = None
    text: str
    by: str = ""
    changed: bool | None = None
    origin: str | None = None

    @property
    def span(self) -> tuple[int, int] | None:
        """Its lines, 0-based and half-open."""
        first, last = self.lines or (self.line, self.line)
        return None if first is None or last is None else (first - 1, last)


class ReviewEntry(Struct, frozen=True, kw_only=True):
    """The changes that people ask for; `by` and `at` are of the last who did.  In the report of a
    batch that answers them, and of the one that it answers, they are `answered`."""

    state: ReviewState
    by: str
    at: Moment
    comments: Sequence[CommentEntry]

    @property
    def unresolved(self) -> list[CommentEntry]:
        return [one for one in self.comments if one.state != "resolved"]


class BoardedEntry(Struct, frozen=True, kw_only=True):
    """The acceptance of a proposal that waits for its train: by whom, when, and of which commit."""

    by: str
    at: Moment
    commit: str


class RetryEntry(Struct, frozen=True, kw_only=True):
    """The text that lets a model send a correct response; the batch that this one tries again."""

    prompt: str | None = None
    of: str | None = None


# ---------------------------------------------------------------- the whole


class Report(Struct, frozen=True, kw_only=True):
    """The content of `<id>.report.json`, its keys in their order.

    `message` is the subject of the commit, or what it would have been.  `received` is when the
    queue took the response, `decided` when the batch came to the state that it has, and
    `reason` why, in the words of the person who discarded it.  `rules` says where the configuration
    is from that judged the batch (`from`), and git's id of that file (`blob`).  `stands_on` is null
    unless the batch waits for review on top of another one that does.
    """

    schema: Literal["patchq.report/1"] = SCHEMA
    id: str
    state: State
    duplicate_of: str | None = None
    source: SourceEntry
    agent: str | None = None
    model: str | None = None
    message: str | None = None
    received: Moment | None = None
    decided: Moment | None = None
    reason: str | None = None
    mode: Mode | None = None
    rules: RulesOrigin | None = None
    target: str | None = None
    base: Base | None = None
    commit: str | None = None
    tree: str | None = None
    branch: str | None = None
    stands_on: StandsOn | None = None
    edits: Sequence[EditOutcome] = ()
    problems: Sequence[ProblemEntry] = ()
    corrections: Sequence[Correction] = ()
    attempts: Sequence[Attempt] = ()
    hooks: Sequence[HookRun] = ()
    size: SizeEntry | None = None
    diff: str = ""
    review: ReviewEntry | None = None
    boarded: BoardedEntry | None = None
    retry: RetryEntry = RetryEntry()
    timings: Mapping[str, float] = {}

    @property
    def errors(self) -> list[ProblemEntry]:
        return [problem for problem in self.problems if problem.severity == "error"]


class CommittedReport(Report, frozen=True, kw_only=True):
    """A report on a batch that has a commit."""

    target: str
    base: Base
    commit: str
    tree: str


def has_commit(report: Report) -> TypeGuard[CommittedReport]:
    """Return True if the report has a commit, tree, target and base."""
    return None not in (report.commit, report.tree, report.target, report.base)


def waits_for_its_agent(report: Report) -> bool:
    """Return True if a proposal was sent back and not answered yet."""
    review = report.review
    return report.state == "proposed" and review is not None and review.state == "changes_requested"


def kind_of(report: Report, before: Report | None = None) -> EventKind | None:
    """Return the kind of event that brought a batch to this state.

    `before` is the report that this one replaces.  None where the state is no event.
    """
    if report.boarded:
        return "boarded"
    if report.state == "proposed" and before and before.boarded:
        return "left_out"
    if waits_for_its_agent(report):
        return "changes_requested"
    kind = "refused" if report.state == "rejected" else report.state
    return kind if kind in EVENT_KINDS else None


Decoder(Report)
"""Makes the class known to msgspec while there is one thread: it learns a class when it first
reads one, and two threads that do so at once end the process with a segmentation fault."""
