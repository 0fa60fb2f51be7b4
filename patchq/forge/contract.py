"""A forge as the round sees it: pull requests, what people say of them, and checks.

An adapter has the methods of `github.GitHub`; each makes requests and may raise a `Fault`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

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


class Rights(Struct, frozen=True):
    """The rights of the token, and the checks that a target's protection requires."""

    login: str
    can_write: bool
    required: Sequence[str] | None


class CommitCheck(Struct, frozen=True):
    name: str
    state: CheckState
    url: str


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
