"""The row of a change, which every list shows, and the choice and order of rows."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from itertools import islice
from posixpath import normpath
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from patchq.core.model.values import HookRun, StandsOn
from patchq.gate.pipeline.context import RepoContext
from patchq.gate.report.document import plain
from patchq.gate.report.schema import (
    PENDING_CONFLICT,
    Moment,
    ProblemEntry,
    Report,
    waits_for_its_agent,
)
from patchq.gate.review import comparison
from patchq.gate.review.pull_requests import ShownRequest
from patchq.gate.review.risk import Risk

Block = Literal["for_you", "accepted", "for_agents", "held"]
# The checks that `patchq init` configures by itself.
_BUILT_IN = ("gate", "secrets", "protected-paths", "size-limits")
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
        return [run for run in self.report.hooks if run.id not in _BUILT_IN]

    @property
    def renames(self) -> dict[str, str]:
        """The new names of renamed files, with the old ones."""
        found = re.findall(r"^rename from (.+)\nrename to (.+)$", self.report.diff, re.MULTILINE)
        return {new: old for old, new in found}

    @property
    def waits_for(self) -> Literal["person", "agent", "other"] | None:
        if self.report.state == "held" or self.report.boarded:
            return "other"
        if self.report.state != "proposed" or self.report.boarded:
            return None
        return "agent" if waits_for_its_agent(self.report) else "person"

    @property
    def block(self) -> Block:
        """Its block in `status`."""
        if self.report.state == "held":
            return "held"
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
            "collides": [{"edit": one.edit, **plain(one.conflicts_with)} for one in self.collides],
            "stands_on": self.stands_on and plain(self.stands_on),
            "carries": self.carries,
            "needs": [{"id": id, "state": state} for id, state in self.needs.items()],
            "waited_for_by": self.waited_for_by,
            "request": self.request and plain(self.request),
        }


class Rows(Struct, frozen=True, kw_only=True):
    """A bounded list of changes; `left_out` is the number of others, -1 if not counted."""

    rows: list[ChangeRow]
    left_out: int = 0
    agents: frozenset[str] = frozenset()
    """The agents of all that were looked at, to suggest from where a filter matches none."""
    paths: frozenset[str] = frozenset()


class Filter(Struct, frozen=True):
    """The changes that are wanted, and their order; `since` is in seconds since the epoch."""

    state: str | None = None
    agent: str | None = None
    path: str | None = None
    since: float | None = None
    by: str | None = None

    def fits(self, report: Report) -> bool:
        """True if the report's agent, files and time are wanted; its state is another matter."""
        if self.agent not in (None, report.agent):
            return False
        if self.since is not None and seconds(report.decided, report.received) < self.since:
            return False
        wanted = "." if self.path is None else normpath(self.path)
        return wanted == "." or any(_is_at(path, wanted) for path in ChangeRow(report=report).paths)

    def has_state(self, row: ChangeRow) -> bool:
        states = {row.report.state, "changes_requested" if row.waits_for == "agent" else None}
        return self.state in (None, *states, "boarded" if row.report.boarded else None)

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


def _is_at(path: str, wanted: str) -> bool:
    return path == wanted or path.startswith(f"{wanted}/") or fnmatchcase(path, wanted)


def collect(
    context: RepoContext,
    found: Iterator[tuple[Report, str]],
    where: Filter,
    limit: int | None,
    skip: int = 0,
) -> Rows:
    """Return the wanted rows of what is found, in its order unless `where` has one."""
    agents, paths = set[str | None](), set[str]()

    def wanted() -> Iterator[ChangeRow]:
        for report, note in found:
            row = ChangeRow(report=report, note=note, ended=context.queue.ended(report.id))
            agents.add(report.agent)
            paths.update(row.paths if where.path else ())
            if where.has_state(row) and where.fits(report):
                yield row

    rows = wanted()
    if where.by is not None:
        everyone = list(rows)
        if where.by == "risk":
            everyone = [with_risk(context, row) for row in everyone]
        rows = iter(where.ordered(everyone, where.by))
    shown = [with_sizes(context, row) for row in islice(rows, skip, limit and skip + limit)]
    more = next(rows, None) is not None
    names = frozenset(filter(None, agents))
    return Rows(rows=shown, left_out=-more, agents=names, paths=frozenset(paths))


def with_risk(context: RepoContext, row: ChangeRow) -> ChangeRow:
    """Return the row with its risk, as its target is now."""
    return replace(row, risk=comparison.risk_of(context, row.report))


def with_sizes(context: RepoContext, row: ChangeRow) -> ChangeRow:
    """Return the row with the bytes of the binary files that it changes."""
    if "\nBinary files " not in row.report.diff and "\nGIT binary patch" not in row.report.diff:
        return row
    found = comparison.compare(context, row.report)
    sizes = {
        change.path: (len(change.before or b""), len(change.after or b""))
        for change in (found.changes if found else ())
        if b"\0" in (change.before or b"") + (change.after or b"")
    }
    return replace(row, binaries=sizes)


def collisions(report: Report) -> list[ProblemEntry]:
    """Return the warnings that name a proposal with which a change collides."""
    return [one for one in report.problems if one.code == PENDING_CONFLICT and one.conflicts_with]
