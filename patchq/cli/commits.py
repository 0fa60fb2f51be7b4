"""Responses that `patchq submit` makes of commits, or of a work tree."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Iterator
from pathlib import Path

from msgspec import Struct

from patchq.cli import opening
from patchq.gate.errors import UsageError
from patchq.gate.intake import commits
from patchq.gate.intake.commits import Range
from patchq.gate.pipeline.session import Session
from patchq.gate.report.message import subject
from patchq.gate.report.secrecy import batch_id
from patchq.gate.report.sender import Sender, from_environment


class HandedIn(Struct, frozen=True):
    """A response made of commits, and the name of its batch."""

    data: bytes
    name: str


def responses(args: Namespace, free: Callable[[str], str]) -> Iterator[HandedIn]:
    """Yield the response, or those of a series, the oldest commit first.

    `free` gives an id that no batch has, near to the one that is asked for.  Raises `UsageError`.
    """
    session = opening.gate(args).session(writes=False)
    if args.base:
        raise UsageError("what is handed in by commits has its base", "leave --base out")
    whole, name = _named(args, session)
    name = args.id or name
    if not args.series:
        yield HandedIn(_response(args, session, whole, {}), name)
        return
    if args.worktree is not None or args.message:
        raise UsageError(
            "--series hands in commits with their messages",
            "leave --message out, and name a --branch or --range",
        )
    before = list[str]()
    for number, one in enumerate(commits.each(session.repo, whole), 1):
        id = free(f"{name}-{number}")
        yield HandedIn(_response(args, session, one, {"id": id, "depends_on": before}), id)
        before = [id]


def _named(args: Namespace, session: Session) -> tuple[Range, str]:
    """Return the range to hand in, and a name for it."""
    repo = session.repo
    target = args.target or session.target
    if args.branch is not None:
        return commits.of_branch(session, args.branch, target), batch_id(args.branch)
    if args.range is not None:
        found = commits.of_range(repo, args.range)
        return found, batch_id(subject(repo.message(found.result)) or found.result[:12])
    place = Path(args.directory, args.worktree)
    return commits.of_worktree(session, place, target), batch_id(place.resolve().name)


def _response(args: Namespace, session: Session, change: Range, more: dict[str, object]) -> bytes:
    by = Sender(args.agent, args.model).or_else(from_environment())
    keys = ("id", "target", "message", "retries")
    keys_given = {**{key: getattr(args, key) for key in keys}, **by.keys(), **more}
    return commits.as_response(session.repo, session.rules, change, keys_given)
