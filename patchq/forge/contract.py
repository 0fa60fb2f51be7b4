"""A forge as the round sees it: pull requests, what people say of them, and checks."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Literal, Protocol

from msgspec import Struct
from msgspec.structs import replace

from patchq.forge.wire import Wire

Stance = Literal["approved", "changes", "comment", "dismissed"]
StatusState = Literal["pending", "success", "failure"]
CheckState = Literal["pending", "success", "failure", "skipped"]
CONTEXT = "patchq/reviewed"
COMMAND = "/patchq "
_VERBS = ("accept", "send-back")


class PullRequest(Struct, frozen=True):
    number: int
    url: str
    branch: str
    base: str
    head: str
    is_open: bool
    merged: bool
    title: str
    body: str
    author: str
    updated: str


class Remark(Struct, frozen=True):
    """A comment or a review; `id` is its address, `review` the review that it belongs to.

    A decision names its `commit`; `command` is True where it is a comment that begins with
    `/patchq`.
    """

    id: str
    by: str
    text: str
    bot: bool = False
    review: str = ""
    what: Stance = "comment"
    commit: str = ""
    at: str = ""
    command: bool = False


class Thread(Struct, frozen=True):
    """Comments on lines `first` to `line` of a commit; without lines on a file.

    `id` is empty where the forge cannot resolve it.
    """

    id: str
    reply_to: str
    resolved: bool
    path: str
    line: int | None
    first: int | None
    side: Literal["base", "new"]
    commit: str
    texts: tuple[Remark, ...]


class Conversation(Struct, frozen=True):
    """Comments and reviews of a request; `remarks` are those outside its lines.

    The oldest remark comes first.
    """

    threads: tuple[Thread, ...] = ()
    remarks: tuple[Remark, ...] = ()
    conflicts: bool = False


class CommitStatus(Struct, frozen=True):
    state: StatusState
    text: str


class Rights(Struct, frozen=True):
    """The rights of the token, and the checks that a target's protection requires."""

    login: str
    can_write: bool
    required: Sequence[str] | None


class CommitCheck(Struct, frozen=True):
    name: str
    state: CheckState
    url: str


class Project(Protocol):
    """One project on a forge; each call makes requests and may raise a `Fault`."""

    wire: Wire

    def me(self) -> str:
        """Return the login of the token's account, empty for an app."""

    def rights(self, target: str) -> Rights:
        """Return the token's rights, and the checks that the target requires."""

    def changed(self, since: str | None) -> Sequence[PullRequest]:
        """Return requests changed since then, newest first; for None all open ones."""

    def of_branch(self, branch: str) -> Sequence[PullRequest]:
        """Return the requests of a branch, open and closed."""

    def open(self, branch: str, base: str, title: str, body: str) -> PullRequest | None:
        """Open a request; return None if the branch has one."""

    def edit(self, number: int, **what: str) -> None:
        """Set `title`, `body`, `base` or `state`."""

    def conversation(self, number: int) -> Conversation:
        """Return all comments and reviews of a request."""

    def closed_by(self, number: int) -> str:
        """Return the login of the account that closed a request, empty if unknown."""

    def may(self, login: str) -> bool:
        """Return True if the account may write to the project."""

    def is_member(self, team: str, login: str) -> bool:
        """Return True if the account belongs to `organisation/team`."""

    def reply(self, number: int, thread: Thread, text: str) -> None:
        """Reply in a thread."""

    def resolve(self, thread: Thread) -> None:
        """Resolve a thread."""

    def note(self, number: int, text: str) -> None:
        """Comment on a request."""

    def merge(self, number: int, head: str, message: str) -> str:
        """Merge a request with this head; return the resulting commit."""

    def status(self, sha: str) -> CommitStatus | None:
        """Return patchq's status of a commit."""

    def set_status(self, sha: str, status: CommitStatus) -> None:
        """Set patchq's status of a commit."""

    def checks(self, sha: str) -> Sequence[CommitCheck]:
        """Return the checks of a commit so far, without patchq's own status."""


def as_decision(remark: Remark) -> Remark:
    """Return a comment that begins with `/patchq` as a decision, others unchanged."""
    first, _, rest = remark.text.strip().partition("\n")
    verb, _, commit = first.strip().removeprefix(COMMAND).strip().partition(" ")
    if not first.startswith(COMMAND) or verb not in _VERBS:
        return remark
    if verb == "accept":
        return replace(remark, what="approved", commit=commit.strip(), text=rest, command=True)
    return replace(remark, what="changes", text=f"{commit}\n{rest}".strip(), command=True)


def seconds(moment: str) -> float:
    """Return a time of the forge in seconds since 1970, 0 without one."""
    plain = moment.replace(" UTC", "Z").replace(" +", "+").replace(" -", "-")
    try:
        return datetime.fromisoformat(plain).timestamp()
    except ValueError:
        return 0.0
