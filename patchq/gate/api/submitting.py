"""Handing changes in: a response, edits of files, or commits become a file of the inbox."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, ClassVar, TypedDict

from msgspec import Struct
from msgspec.structs import replace

from patchq.core.formats.envelope.front_matter import open_response
from patchq.core.model.names import REQUEST, response_name
from patchq.core.model.values import Envelope, Problem
from patchq.gate.errors import UsageError
from patchq.gate.pipeline.context import RepoContext
from patchq.gate.queue.engine import store_queue
from patchq.gate.queue.inbox import too_large
from patchq.gate.report.message import from_environment, with_header
from patchq.gate.report.secrecy import batch_id, file_name

if TYPE_CHECKING:  # only commits need it
    from patchq.gate.pipeline.session import Session

NAMESPACE = "refs/for/"  # of the refs that a push hands in by
_PATH = re.compile(r"[^\x00-\x1f\x7f]{1,1024}")


@dataclass(frozen=True)
class FileEdit:
    """One edit of a file; raises `ValueError` where it asks for nothing, or for two things."""

    path: str
    old: str | None = None
    """exact text of the file, once in it"""
    new: str | None = None
    """what takes its place; without `old`, the whole file"""
    replace_all: bool = False
    delete: bool = False
    """delete the file"""
    rename_to: str | None = None
    __pydantic_config__: ClassVar = {"extra": "forbid", "use_attribute_docstrings": True}

    def __post_init__(self) -> None:
        paths = [self.path] if self.rename_to is None else [self.path, self.rename_to]
        if not all(map(_PATH.fullmatch, paths)):
            raise ValueError("expected a path of 1 to 1024 characters, none of them a control")
        if self.delete and (self.old is not None or self.new is not None or self.rename_to):
            raise ValueError("`delete` goes with `path` alone")
        if not self.delete and self.new is None and (self.old is not None or not self.rename_to):
            raise ValueError("expected `new`, `delete` or `rename_to`")
        if self.replace_all and not self.old:
            raise ValueError("`replace_all` needs `old`")

    def calls(self) -> Iterator[Mapping[str, Any]]:
        """Yield the calls of editing tools that do it."""
        if self.delete:
            yield _patch(f"Delete File: {self.path}")
        elif self.new is not None and self.old is None:
            yield {"name": "write", "arguments": {"file_path": self.path, "content": self.new}}
        elif self.new is not None:
            given = {"file_path": self.path, "old_string": self.old, "new_string": self.new}
            every = {"replace_all": True} if self.replace_all else {}
            yield {"name": "replace", "arguments": {**given, **every}}
        if self.rename_to:
            yield _patch(f"Update File: {self.path}", f"Move to: {self.rename_to}")


def _patch(*lines: str) -> Mapping[str, Any]:
    patch = "".join(f"*** {line}\n" for line in ("Begin Patch", *lines, "End Patch"))
    return {"name": "apply_patch", "arguments": {"input": patch}}


def response(edits: Iterable[FileEdit]) -> str:
    """Return the edits as calls of an editing tool; equal edits give equal text."""
    calls = (json.dumps(call, ensure_ascii=False) for edit in edits for call in edit.calls())
    return "[\n" + ",\n".join(calls) + "\n]\n"


Change = str | bytes | Sequence[FileEdit]


class Keys(TypedDict, total=False):
    """Keys of the front matter, which win over those that the response has."""

    id: str | None
    agent: str | None
    model: str | None
    target: str | None
    base: str | None
    message: str | None
    retries: str | None
    depends_on: Sequence[str] | None
    answers: Mapping[str, str] | None


class Ticket(Struct, frozen=True):
    """A change in the inbox, under the id that it gets."""

    id: str
    file: str
    sha256: str
    replaced: tuple[str, ...] = ()
    """The keys that the front matter had otherwise."""


class Commits(Struct, frozen=True):
    """Commits to hand in: a branch, a range `A..B`, or a work tree as it is."""

    branch: str | None = None
    range: str | None = None
    worktree: Path | None = None


def written(change: Change, keys: Keys, client: str | None = None) -> tuple[bytes, list[str]]:
    """Return the response with its keys, and those that it had otherwise.

    `client` is the agent if neither the keys, the response nor the environment name one.
    """
    text = change if isinstance(change, str | bytes) else response(change)
    try:
        data = text.encode() if isinstance(text, str) else text
    except UnicodeEncodeError:
        raise UsageError("the text holds half of a surrogate pair", "send UTF-8") from None
    given = {key: value for key, value in keys.items() if value}
    return with_header(data, given, {"agent": client} | from_environment())


def submit(
    context: RepoContext, change: Change, name: str, keys: Keys, client: str | None
) -> Ticket:
    """Put a change into the inbox; a request is put there as it is."""
    if not change:  # the queue would wait for what its writer has still to write
        raise UsageError(f"the response is empty: {name}", "see `patchq formats` for what to send")
    if name.endswith(REQUEST) and isinstance(change, bytes):
        return drop(context, change, name)
    data, replaced = written(change, keys, client)
    return drop(context, data, name, replaced)


def oversize(context: RepoContext, data: bytes) -> Problem | None:
    """Return a problem if a response is too large for the inbox."""
    most = context.config.limits.response_bytes
    return too_large(len(data), most) if len(data) > most else None


def refusal(problem: Problem) -> UsageError:
    """Return the error for what is never taken, for this problem."""
    error = UsageError(problem.message, problem.hint)
    error.code = problem.code
    return error


def drop(context: RepoContext, data: bytes, name: str, replaced: Sequence[str] = ()) -> Ticket:
    """Put a response into the inbox, and return its ticket.

    The id is the response's own, or made of the name.
    """
    if problem := oversize(context, data):
        raise refusal(problem)
    queue = store_queue(context.queue)
    opened = None if name.endswith(REQUEST) else open_response(data)
    wanted = opened.header.id if isinstance(opened, Envelope) else None
    suffix = REQUEST if opened is None else PurePath(file_name(name)).suffix or ".md"
    free = queue.next_id(batch_id(wanted or PurePath(response_name(name)).stem))
    file = queue.submit(data, free + suffix)
    id = free if wanted else batch_id(PurePath(response_name(file)).stem)
    return Ticket(id, file, sha256(data).hexdigest(), tuple(replaced))


def of_commits(
    session: Session, work: Commits, keys: Mapping[str, object], *, series: bool
) -> Iterator[tuple[bytes, str]]:
    """Yield the response made of commits, or one per commit, with names.

    A `series` has one response for each commit, depending on the one before.
    """
    from patchq.gate.intake import commits  # only who hands in commits reads trees
    from patchq.gate.report.message import subject

    repo, target = session.repo, str(keys.get("target") or session.target)
    if work.branch is not None:
        whole, name = commits.of_branch(session, work.branch, target), work.branch
    elif work.range is not None:
        whole = commits.of_range(repo, work.range)
        name = subject(repo.message(whole.result)) or whole.result[:12]
    else:
        place = work.worktree or Path()
        whole, name = commits.of_worktree(session, place, target), place.resolve().name
    name, before = str(keys.get("id") or batch_id(name)), list[str]()
    keys = {**from_environment(), **{key: value for key, value in keys.items() if value}}
    if not series:
        yield commits.as_response(session, whole, keys), name
        return
    queue = store_queue(session.queue)
    for number, one in enumerate(commits.each(repo, whole), 1):
        id = queue.next_id(f"{name}-{number}")
        own = {**keys, "id": id, "depends_on": before}
        yield commits.as_response(session, one, own), id
        before = [id]


def of_push(
    session: Session, commit: str, target: str, keys: Mapping[str, object], objects: Path
) -> tuple[bytes, str]:
    """Return the response made of a pushed commit, and a name for it.

    The commit's objects are read from the directory `objects` if there is one.
    """
    from patchq.gate.intake import commits
    from patchq.gate.pipeline import process
    from patchq.gate.report.message import subject

    if objects.is_dir():
        session.repo.borrowed = objects.absolute()
        session.repo.renew()
    allowed = [session.target, *session.config.targets]
    if problem := process.not_a_target(target, allowed):
        raise refusal(replace(problem, hint=f"push to {NAMESPACE}{allowed[0]}"))
    change = commits.of_commit(session, commit, target)
    if not change.commits:
        raise UsageError(f"{target} has all of it already", "commit something, then push")
    own = {**from_environment(), **keys, "target": target}
    data = commits.as_response(session, change, own)
    return data, str(keys.get("message") or subject(session.repo.message(change.result)))
