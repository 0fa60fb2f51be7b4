"""Changes as git shows them now, by their names and in rows; the choice and order of rows."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from fnmatch import fnmatchcase
from itertools import islice
from posixpath import normpath
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from patchq.core.model.values import HookRun, StandsOn
from patchq.gate.errors import ObjectDamaged, UsageError
from patchq.gate.git import records
from patchq.gate.pipeline import history
from patchq.gate.pipeline.context import RepoContext
from patchq.gate.pipeline.history import Sighting
from patchq.gate.queue.engine import store_queue
from patchq.gate.queue.inbox import Pending as Pending
from patchq.gate.report import document
from patchq.gate.report.schema import (
    Moment,
    ProblemEntry,
    Report,
    has_commit,
    waits_for_its_agent,
)
from patchq.gate.review import from_git
from patchq.gate.review.pull_requests import ShownRequest
from patchq.gate.review.risk import Risk, own_checks, risk_of
from patchq.gate.review.rows import compare

Block = Literal["for_you", "accepted", "for_agents", "held", "with_git"]
WAITING = records.WAITING  # refs below, one for each proposal
_LEAST = 4  # characters of an id or a commit that may stand for the whole
_PIECE = 1000
_LEFT_OUT = ("skipped", "cancelled")


class ChangeRow(Struct, frozen=True, kw_only=True):
    """A change in a list: its report as git shows it now, and its place among the others."""

    report: Report
    note: str = ""
    """The cause of its state, where that is not patchq."""
    ended: float | None = None
    """The time of its verdict, in seconds since the epoch."""
    risk: Risk | None = None
    collides: tuple[ProblemEntry, ...] = ()
    binaries: Mapping[str, tuple[int, int]] = {}
    """The binary files that it changes, with their bytes before and after."""
    stands_on: StandsOn | None = None
    carries: tuple[str, ...] = ()
    """The proposals on top of it."""
    needs: Mapping[str, str | None] = {}
    """The changes that it is held for, with their states."""
    waited_for_by: tuple[str, ...] = ()
    request: ShownRequest | None = None

    @property
    def id(self) -> str:
        return self.report.id

    @property
    def subject(self) -> str:
        """The first line of the message, or the id."""
        message: str = self.report.message or ""
        return message.partition("\n")[0] or self.id

    @property
    def paths(self) -> list[str]:
        """The files that it changes, each once; of a refusal those that it names."""
        edits = self.report.edits
        return list(dict.fromkeys(edit.path for edit in edits if edit.state not in _LEFT_OUT))

    @property
    def checks(self) -> list[HookRun]:
        """The runs of the project's own checks, not of those that come with patchq."""
        return own_checks(self.report)

    @property
    def renames(self) -> dict[str, str]:
        """The new names of renamed files, with the old ones."""
        found = re.findall(r"^rename from (.+)\nrename to (.+)$", self.report.diff, re.MULTILINE)
        return {new: old for old, new in found}

    @property
    def waits_for(self) -> Literal["person", "agent", "other"] | None:
        if self.report.state == "held" or self.report.boarded:
            return "other"
        if self.report.state != "proposed":
            return None
        return "agent" if waits_for_its_agent(self.report) else "person"

    @property
    def block(self) -> Block:
        """Its block in `status`."""
        if self.report.state == "held":
            return "held"
        if self.report.state != "proposed":
            return "with_git"
        blocks: Mapping[str | None, Block] = {"agent": "for_agents", "person": "for_you"}
        return blocks.get(self.waits_for, "accepted")

    @property
    def why(self) -> ProblemEntry | None:
        """The reason why it is refused or held."""
        errors = [one for one in self.report.problems if one.severity == "error"]
        return next(iter([*errors, *reversed(self.report.problems)]), None)

    @property
    def needs_retry(self) -> str | None:
        moved = (one.message for one in self.report.problems if one.code == "target.moved")
        return next(moved, None)

    def to_json(self) -> dict[str, Any]:
        report, why = self.report, self.why if self.report.state == "held" else None
        kept = ("id", "state", "branch", "target", "agent", "message", "received", "decided")
        return {
            **{key: getattr(report, key) for key in kept},
            "note": self.note,
            "paths": self.paths,
            "size": report.size,
            "checks": [
                {"id": run.id, "stage": run.stage, "exit": run.exit} for run in report.hooks
            ],
            "warnings": [problem.code for problem in report.problems],
            "code": why and why.code,
            "why": why and why.message,
            "hint": why and why.hint,
            "waits_for": self.waits_for,
            "risk": self.risk and self.risk.to_json(),
            "needs_retry": self.needs_retry,
            "collides": [
                {"edit": one.edit, **document.plain(one.conflicts_with)} for one in self.collides
            ],
            "stands_on": self.stands_on and document.plain(self.stands_on),
            "carries": self.carries,
            "needs": [{"id": id, "state": state} for id, state in self.needs.items()],
            "waited_for_by": self.waited_for_by,
            "request": self.request and document.plain(self.request),
        }


class Rows(Struct, frozen=True, kw_only=True):
    """A bounded list of changes; `more` is true if there are others."""

    rows: list[ChangeRow]
    more: bool


class Filter(Struct, frozen=True):
    """The changes that are wanted, and their order; `since` is in seconds since the epoch."""

    state: str | None = None
    agent: str | None = None
    path: str | None = None
    since: float | None = None
    by: str | None = None

    def takes(self, row: ChangeRow) -> bool:
        """Return True if the row's agent, time, files and state are wanted."""
        report = row.report
        states = {report.state, "changes_requested" if row.waits_for == "agent" else None}
        if self.state not in (None, *states, "boarded" if report.boarded else None):
            return False
        if self.agent not in (None, report.agent):
            return False
        if self.since is not None and seconds(report.decided, report.received) < self.since:
            return False
        wanted = "." if self.path is None else normpath(self.path)
        return wanted == "." or any(
            path == wanted or path.startswith(f"{wanted}/") or fnmatchcase(path, wanted)
            for path in row.paths
        )

    def ordered(self, rows: Iterable[ChangeRow], by: str) -> list[ChangeRow]:
        """Return the rows in the order of `self.by`, or else `by`."""
        return sorted(rows, key=SORTS[self.by or by])


ALL = Filter()


def seconds(*moments: Moment | None) -> float:
    """Return the first time that is known; none is later than all."""
    return next((moment.unix for moment in moments if moment), float("inf"))


def _age(row: ChangeRow) -> float:
    return seconds(row.report.received, row.report.decided)


def _size(row: ChangeRow) -> tuple[int, int]:
    size = row.report.size
    return (-size.added - size.deleted, -size.files) if size else (1, 0)


def _agent(row: ChangeRow) -> tuple[bool, str, float]:
    return row.report.agent is None, row.report.agent or "", _age(row)


def _risk(row: ChangeRow) -> tuple[Any, ...]:
    return (*(-number for number in row.risk.order), _age(row)) if row.risk else (1, _age(row))


# The orders of rows: the oldest, the largest, the agents' names, the riskiest first. A change of
# which that is unknown comes last.
SORTS: Mapping[str, Callable[[ChangeRow], Any]] = {
    "age": _age,
    "size": _size,
    "agent": _agent,
    "risk": _risk,
}


def collect(
    context: RepoContext,
    found: Iterator[tuple[Report, str]],
    where: Filter,
    limit: int | None,
    skip: int = 0,
) -> Rows:
    """Return the rows that match the filter, in its order or as found."""
    every = (
        ChangeRow(report=report, note=note, ended=context.queue.ended(report.id))
        for report, note in found
    )
    rows: Iterator[ChangeRow] = filter(where.takes, every)
    if where.by is not None:
        everyone = list(rows)
        if where.by == "risk":
            everyone = [with_risk(context, row) for row in everyone]
        rows = iter(where.ordered(everyone, where.by))
    shown = [with_sizes(context, row) for row in islice(rows, skip, limit and skip + limit)]
    return Rows(rows=shown, more=next(rows, None) is not None)


def with_risk(context: RepoContext, row: ChangeRow) -> ChangeRow:
    """Return the row with its risk, as its target is now."""
    return replace(row, risk=risk_of(context, row.report))


def with_sizes(context: RepoContext, row: ChangeRow) -> ChangeRow:
    """Return the row with the bytes of the binary files that it changes."""
    if "\nBinary files " not in row.report.diff and "\nGIT binary patch" not in row.report.diff:
        return row
    found = compare(context, row.report)
    sizes = {
        change.path: (len(change.before or b""), len(change.after or b""))
        for change in (found.changes if found else ())
        if b"\0" in (change.before or b"") + (change.after or b"")
    }
    return replace(row, binaries=sizes)


# ---------------------------------------------------------------- one change


def identify(context: RepoContext, name: str) -> str:
    """Return the id that a name means: an id, its branch, its commit, or its unique beginning.

    Raises `UsageError` where several changes begin so; a name that means none comes back.
    """
    id = name.removeprefix("refs/heads/").removeprefix(records.branch(""))
    if any(_is_here(context, one) for one in (name, id)):
        return name if _is_here(context, name) else id
    if len(id) < _LEAST:
        return id
    if re.fullmatch("[0-9a-f]{4,40}", id) and (commit := context.repo.resolve_commit(id)):
        named = history.trailers(context.repo, commit).get("Patchq-Batch", [])
        if len(named) == 1:
            return named[0]
    known = {*context.queue.newest(), *history.ids(context.repo)}
    begun = sorted(one for one in known if one.startswith(id))
    if not begun or id in history.landed_commits(context):  # git knows it, and the queue is lost
        return id
    if len(begun) > 1:
        several = ", ".join(begun[:5]) + (", …" if len(begun) > 5 else "")
        raise UsageError(f"{len(begun)} changes begin with {id}", f"name one: {several}")
    return begun[0]


def _is_here(context: RepoContext, id: str) -> bool:
    queue = store_queue(context.queue)
    # First: one that is not pending any more has its report.
    return bool(queue.pending(id) or queue.load(id) or queue.past(id))


def seen(
    context: RepoContext,
    report: Report,
    note: str = "",
    look: Callable[[RepoContext, Report], Sighting] = history.observe,
) -> tuple[Report, str]:
    """Return the report with its present state in git, and an explanation.

    If its branch was changed, the commit, tree and diff are the branch's.
    """
    now, changes = look(context, report), dict[str, Any]()
    if now.commit and now.commit != report.commit and has_commit(report):
        with suppress(ObjectDamaged):  # the note says so
            changes = history.as_changed(context, report, now.commit)
    if changes:
        report = document.with_state(report, report.state, **changes)  # as much as it holds
    return replace(report, state=now.state), "; ".join(filter(None, (now.note, note)))


def examined(context: RepoContext, name: str) -> tuple[Report, str]:
    """Return the report of one change as git shows it now, and an explanation.

    For one that landed, the history is looked at.
    """
    return seen(context, *from_git.find(context, identify(context, name)), history.examine)


def newest_first(context: RepoContext, most: int | None) -> Iterator[tuple[Report, str]]:
    """Yield reports and notes, the newest verdict first; `most` are probably wanted.

    Those that git alone knows come last, by the times of their commits.
    """
    ids, listed = context.queue.newest(), set[str]()
    while piece := list(islice(ids, min((most or sys.maxsize - 1) + 1, _PIECE))):
        listed.update(piece)
        reports = {id: report for id in piece if (report := context.queue.load(id))}
        gone = from_git.reports(context, set(piece) - reports.keys())
        for id in piece:
            if report := reports.get(id):
                yield seen(context, report)
            elif id in gone:
                yield seen(context, *gone[id])
    for report in from_git.missing(context, listed):
        yield seen(context, report, from_git.FROM_GIT_NOTE)
