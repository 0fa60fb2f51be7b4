"""The values that flow through the pipeline, from a response to its outcome.

Everything here is frozen and knows nothing of git, files or clocks.  Lines are 1-based and
inclusive, as people count them; offsets are 0-based bytes and half-open, as slices count them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal, Protocol

from msgspec import Struct, field
from msgspec.structs import asdict, force_setattr

from patchq.core.model.listing import Listing
from patchq.core.model.ops import Op

Severity = Literal["error", "warning"]
EditState = Literal["applied", "ready", "already_applied", "skipped", "cancelled", "failed"]
State = Literal[
    "applied", "proposed", "duplicate", "held", "rejected",
    "accepted", "discarded", "superseded", "reverted",
]  # fmt: skip
Mode = Literal["review", "auto"]
Origin = Literal["declared", "inferred", "tip"]  # how a base was found


# ---------------------------------------------------------------- what a response says


class Source(Struct, frozen=True):
    """The name, sha256 (hex) and size (bytes) of a response file, as taken."""

    name: str
    sha256: str
    size: int


class Header(Struct, frozen=True):
    """Fields of the front matter, None or empty if not given."""

    id: str | None = None
    target: str | None = None
    base: str | None = None
    message: str | None = None
    author: str | None = None
    agent: str | None = None
    model: str | None = None
    file: str | None = None
    retries: str | None = None
    depends_on: tuple[str, ...] = ()
    answers: Mapping[str, str] = {}
    """Words on the comments of the change that it answers, by their ids."""
    whole_files: bool = False
    """True if a path line over a fence replaces the file."""
    blank: bool = False
    """True for empty front matter; anything like it further down is text."""


class Envelope(Struct, frozen=True):
    """An opened response: the header, and the text that holds the edits.

    `first_line` is the line of the response on which `text` begins.
    """

    header: Header
    text: str
    first_line: int = 1


class Edit(Struct, frozen=True):
    """One edit as it is in the response.

    `at` are its first and last line there.
    """

    id: str
    format: str
    at: tuple[int, int]
    path: str
    op: Op
    description: str | None = None
    confidence: float | None = None
    depends_on: tuple[str, ...] = ()
    """Edits of the batch that, if they are applied, cancel this one."""
    cascades: tuple[str, ...] = ()
    """Edits of the batch that this one cancels, if it is applied."""
    fallback_of: str | None = None
    """The edit that this one is the backup of."""
    section: int = 0
    """The hunks of one file, in its order, that it is one of: a number of theirs alone, or 0."""
    called: bool = False
    """True for an edit call, or an edit in a tool call: calls are meant in their order."""

    def but(
        self,
        id: str | None = None,
        at: tuple[int, int] | None = None,
        section: int | None = None,
        *,
        called: bool = False,
    ) -> Edit:
        """Return a copy with another id, place or section, or as a call.

        Every edit of a response gets one, and `replace` takes ten times as long.
        """
        return Edit(
            self.id if id is None else id,
            self.format,
            at or self.at,
            self.path,
            self.op,
            self.description,
            self.confidence,
            self.depends_on,
            self.cascades,
            self.fallback_of,
            self.section if section is None else section,
            called or self.called,
        )


# Code in a fence, a command that changes files, bare text for a file or a program, a new file of
# an unlikely name, and a part of the edits between tags.
ShownKind = Literal["code", "command", "text", "file", "tags"]


class ShownPlace(Struct, frozen=True):
    """Numbered lines of prose that may have been meant as an edit."""

    what: ShownKind
    lines: tuple[tuple[int, str], ...]


class Parsed(Struct, frozen=True):
    """The edits of a response in their order, and the prose around them."""

    edits: tuple[Edit, ...] = ()
    prose: str = ""
    problems: tuple[Problem, ...] = ()
    summary: str | None = None
    """The response's own summary."""
    author: str | None = None
    """The change's author, `Name <address>`, where a mail's head has one."""
    shown: tuple[ShownPlace, ...] = ()
    """Places beside the edits that may have been meant as one."""
    named: tuple[str, ...] = ()
    """The paths of the base that the prose names, where something is shown."""


# ---------------------------------------------------------------- what the repository says

EntryKind = Literal["file", "link", "tree", "submodule"]


class Entry(Struct, frozen=True):
    """An object at a path of a tree.

    `oid` is hex, `executable` is the file mode's bit.
    """

    kind: EntryKind
    oid: str
    executable: bool = False


class Tree(Protocol):
    """A commit's tree, as resolving sees it.

    Paths are `str`, with `/`, relative and plain.  Unreadable objects raise `Unreadable`.
    """

    def entry(self, path: str) -> Entry | None:
        """Return the object at `path`, or None."""

    def read(self, path: str) -> bytes:
        """Return the bytes of the file at `path`."""

    def names(self, directory: str) -> tuple[str, ...]:
        """Return the names in `directory` ("" is the root), if it exists."""

    def paths(self) -> Iterator[str]:
        """Yield every file's path, for suggestions only."""

    def listing(self) -> Listing:
        """Return the listing of the paths, which is made only once."""

    def filtered(self, path: str) -> str | None:
        """Return the path's `filter` attribute (LFS, git-crypt), or None."""


# ---------------------------------------------------------------- what becomes of it


class Candidate(Struct, frozen=True):
    """A place that an edit may have meant.

    `disambiguate` is text to add to the quote.
    """

    path: str
    line: int
    symbol: str | None = None
    text: str = ""
    disambiguate: str | None = None


class Collision(Struct, frozen=True):
    """Another change that an edit collides with; unknown parts are None."""

    batch: str | None = None
    edit: str | None = None
    commit: str | None = None
    agent: str | None = None
    path: str | None = None
    lines: tuple[int, int] | None = None


class Problem(Struct, frozen=True):
    """One problem of a response; an `error` refuses the whole batch.

    `line` is a line of the base's file, or of the response where there is no `path`.
    """

    code: str
    message: str
    hint: str | None = None
    severity: Severity = "error"
    edit: str | None = None
    path: str | None = None
    line: int | None = None
    candidates: tuple[Candidate, ...] = ()
    conflicts_with: Collision | None = None
    excerpt: tuple[int, tuple[str, ...]] | None = None
    """The base file's lines to show beside the problem: the first one's number, and the lines."""
    quote: str | None = None
    """The lines of the edit that stand nowhere."""
    format: str | None = None
    """The form of an edit that cannot be read, where it is known."""

    def __post_init__(self) -> None:
        if len(self.message) > 4000:
            force_setattr(self, "message", self.message[:4000] + " …")


class ErrorProblem(Problem, frozen=True):
    """Problem that refuses the batch, whatever else is known of it."""

    severity: Literal["error"] = "error"


class WarningProblem(Problem, frozen=True):
    """Problem that a person sees, and that refuses nothing."""

    severity: Literal["warning"] = "warning"


def refusal(problem: Problem) -> ErrorProblem:
    """Return the problem as an error."""
    return ErrorProblem(**{**asdict(problem), "severity": "error"})


class Hunk(Struct, frozen=True):
    """Put `new` in place of the bytes `start:end` of a text."""

    start: int
    end: int
    new: bytes


# `a[a0:a1]` became `b[b0:b1]`: lines, 0-based, half-open, at least one side not empty.
LineHunk = tuple[int, int, int, int]


class EditOutcome(Struct, frozen=True):
    """The outcome of one edit.

    `lines` are its lines on the base, `match` is the match level.
    """

    id: str
    format: str | None
    at: tuple[int, int] | None
    path: str
    op: str
    state: EditState
    match: str | None = None
    lines: tuple[int, int] | None = None
    needs: tuple[str, ...] = ()
    cancelled_by: str | None = None
    confidence: float | None = None
    description: str | None = None


class FileChange(Struct, frozen=True):
    """The change of one path from base to result.

    `before` is None for a creation, `after` for a deletion.  A rename is the deletion of
    `renamed_from` together with this change.  The content of a link is where it leads.
    """

    path: str
    before: bytes | None
    after: bytes | None
    executable: bool = False
    renamed_from: str | None = None
    was_executable: bool | None = None
    """The earlier value of `executable`; None if it is unchanged or unknown."""
    link: bool = False
    """True for a symbolic link, also a deleted one."""
    was_link: bool | None = None
    """The earlier value of `link`; None if it is unchanged."""

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths on which something changes."""
        return (self.path,) if self.renamed_from is None else (self.renamed_from, self.path)

    @property
    def from_link(self) -> bool:
        """Return whether what was there before is a symbolic link."""
        return self.link if self.was_link is None else self.was_link


class Plan(Struct, frozen=True):
    """Changes that a batch makes to the tree, decided and not yet made."""

    changes: tuple[FileChange, ...] = ()
    edits: tuple[EditOutcome, ...] = ()
    errors: tuple[ErrorProblem, ...] = ()
    """The problems that refuse the batch; with one of them there are no changes."""
    warnings: tuple[WarningProblem, ...] = ()
    blind: tuple[str, ...] = ()
    """Paths of files that an edit changes without saying what it has seen of them."""

    @property
    def refused(self) -> bool:
        """True if the batch changes nothing since an edit cannot be applied."""
        return bool(self.errors)

    @property
    def problems(self) -> tuple[Problem, ...]:
        """The errors, and behind them the warnings."""
        return (*self.errors, *self.warnings)


class Base(Struct, frozen=True):
    """The commit (hex) that a batch was resolved on, and how it was found."""

    commit: str
    how: Origin | None


class HookRun(Struct, frozen=True):
    """A hook's run.

    It has the exit code, the seconds that it took, and the end of its output.
    An exit of 128 + n is signal n; None: its time was over.  `tree` is what it judged, `tip` where
    the change stood, and `others` (`with` in reports) the ids that it was joined to.
    """

    id: str
    stage: str
    exit: int | None
    seconds: float
    output: str = ""
    tree: str | None = None
    tip: str | None = None
    others: tuple[str, ...] = field(default=(), name="with")
    flaky: bool = False
    """The same hook refused the same tree before."""


class Correction(Struct, frozen=True):
    """A correction of one half of an edit, so that it can be applied."""

    edit: str
    what: Literal["old", "new"]
    by: Literal["program", "model"]


class Attempt(Struct, frozen=True):
    """One question to a model.

    `stop` is the stop reason or `llm.*` code of its end.
    """

    n: int
    form: str
    stop: str


class Generation(Struct, frozen=True):
    """Questions to a model for a response, as they are kept until the verdict.

    The attempts; what refuses the request, if anything does; the prompt to send by hand where
    there was no answer; the mode that was asked for; and the anchors to choose from, by path.
    """

    attempts: tuple[Attempt, ...] = ()
    problems: tuple[Problem, ...] = ()
    prompt: str | None = None
    mode: str | None = None
    candidates: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


class RulesOrigin(Struct, frozen=True):
    """The place and git id of the file whose rules judged a batch."""

    source: str = field(name="from")
    blob: str | None = None


class StandsOn(Struct, frozen=True):
    """The proposed batch that another one is built on, and its commit (hex)."""

    batch: str
    commit: str
