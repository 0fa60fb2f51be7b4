"""`conflict.pending`: proposals for one target that cannot both land as they are.

Two batches that wait collide where their changed lines share a line or border on each other, and
where one of them makes or removes a file that the other one touches.  Both reports say so, each
with the other's edit and lines.  It is a warning: whichever is accepted first lands, and the other
is made again on top of it or asks for a retry.

Lines are compared in the texts that the commits change.  Where those differ, since the target moved
between the two, the lines of one are carried to the other's text first.

Everything is computed from the commits that wait, so a report that a crash left behind is put right
by the next `refresh`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import islice
from pathlib import PurePosixPath
from weakref import WeakKeyDictionary

from patchq.git import records
from patchq.git.merges import line_hunks
from patchq.git.repository import Repository
from patchq.land import reports
from patchq.model.errors import ObjectDamaged
from patchq.model.report import PENDING_CONFLICT, Report, has_commit
from patchq.model.values import Collision, Problem
from patchq.pipeline.progress import CandidateCommit, Decision
from patchq.pipeline.rebase.lines import Lines, image, in_words, inclusive
from patchq.pipeline.world import World
from patchq.report import document

Blobs = tuple[str | None, str | None]
"""The ids of a file's text before and after; None where there is no file."""
EditLines = tuple[str, str, tuple[int, int] | None]
"""Id, path and lines (1-based, inclusive, of the base) of an edit."""


@dataclass(frozen=True, slots=True)
class ProposedChange:
    """What a batch changes there, in the terms of its report: `lines` are 1-based and inclusive, of
    its base; None where it is the file as a whole.  An insertion has the line before it."""

    path: str
    does: str
    edit: str | None = None
    lines: tuple[int, int] | None = None


@dataclass
class Proposal:
    """A batch that waits: its commit, made of the target's tip of that time, and its edits."""

    id: str
    target: str
    agent: str | None
    commit: str
    base: str
    edits: tuple[EditLines, ...]
    changes: Mapping[str, Blobs]
    """What its commit does, path by path."""
    _spans: dict[str, list[Lines]] = field(default_factory=dict)

    @cached_property
    def above(self) -> frozenset[str]:
        """The directories of the files that it makes."""
        return frozenset(
            str(parent)
            for path, (before, _) in self.changes.items()
            if before is None
            for parent in PurePosixPath(path).parents[:-1]
        )

    @property
    def reach(self) -> set[str]:
        """The paths at which it may collide with others."""
        return {*self.changes, *self.above}

    def spans(self, repo: Repository, path: str) -> list[Lines]:
        """The changed lines of a file that it edits, in the text before."""
        if path not in self._spans:
            before, after = self.changes[path]
            self._spans[path] = [
                (a0, a1) for a0, a1, _, _ in line_hunks(_text(repo, before), _text(repo, after))
            ]
        return self._spans[path]

    def place(self, repo: Repository, path: str, span: Lines | None = None) -> ProposedChange:
        """What the report calls these lines, or the file as a whole."""
        before, after = self.changes[path]
        does = "creates" if before is None else "deletes" if after is None else "changes"
        if span is None:
            own = [id for id, of, _ in self.edits if of == path]
            return ProposedChange(path, does, own[0] if own else self._only_edit())
        first, end = self._on_base(repo, path, span)
        near = [
            id
            for id, of, lines in self.edits
            if of == path and lines and lines[0] - 1 <= end and first <= lines[1]
        ]
        return ProposedChange(
            path, does, near[0] if near else self._only_edit(path), inclusive((first, end))
        )

    def _on_base(self, repo: Repository, path: str, span: Lines) -> Lines:
        """The lines as its base has them: the file may have changed before the commit was made."""
        entry = repo.tree(self.base).entry(path)
        before = self.changes[path][0]
        if entry is None or entry.kind != "file" or entry.oid == before:
            return span
        return image(span, line_hunks(_text(repo, before), _text(repo, entry.oid)))

    def _only_edit(self, path: str | None = None) -> str | None:
        """The id of the edit, if there is one only (of the path)."""
        ids = [id for id, of, _ in self.edits if path in (None, of)]
        return ids[0] if len(ids) == 1 else None


def changes(repo: Repository, commit: str) -> dict[str, Blobs]:
    """What a commit does to its parent's files."""
    return {
        path: (before and before[1], after and after[1])
        for path, (before, after) in repo.changes(repo.parents(commit)[0], commit).items()
    }


def collisions(
    repo: Repository, one: Proposal, other: Proposal
) -> Iterator[tuple[ProposedChange, ProposedChange]]:
    """The places where both change something that touches: lines that they share or that border
    on each other, and files that one of them makes or removes."""
    for path in sorted(one.changes.keys() & other.changes.keys()):
        if None in (*one.changes[path], *other.changes[path]):
            yield one.place(repo, path), other.place(repo, path)
            continue
        theirs = _carried(repo, other, path, one)
        for ours in one.spans(repo, path):
            for span, there in theirs:
                if ours[0] <= there[1] and there[0] <= ours[1]:
                    yield one.place(repo, path, ours), other.place(repo, path, span)
    yield from _file_and_directory(repo, one, other)
    yield from ((ours, theirs) for theirs, ours in _file_and_directory(repo, other, one))


def _file_and_directory(
    repo: Repository, one: Proposal, other: Proposal
) -> Iterator[tuple[ProposedChange, ProposedChange]]:
    """A file of the one where the other has a directory."""
    for path in sorted(one.changes.keys() & other.above if other.above else ()):
        if one.changes[path][1] is not None:
            below = next(new for new in sorted(other.changes) if new.startswith(f"{path}/"))
            yield one.place(repo, path), other.place(repo, below)


def _carried(
    repo: Repository, batch: Proposal, path: str, to: Proposal
) -> list[tuple[Lines, Lines]]:
    """The batch's changed lines of a file, and where they are in the text that `to` changes."""
    spans, before, there = batch.spans(repo, path), batch.changes[path][0], to.changes[path][0]
    if before == there:
        return [(span, span) for span in spans]
    since = line_hunks(_text(repo, before), _text(repo, there))
    return [(span, image(span, since)) for span in spans]


def _text(repo: Repository, blob: str | None) -> bytes:
    return repo.raw(blob) if blob else b""


_MOST_BATCHES = 16
"""Other batches that a report names; what waits beyond them would only be rewritten again and again
as more come."""
_MOST_PLACES = 4
"""Pairs of edits that are named of each."""

_known: WeakKeyDictionary[Repository, dict[tuple[str, str], Proposal | None]] = WeakKeyDictionary()
"""What waits, by id and commit: reading each report again for each response would cost the square
of them."""


def warned(decisions: Sequence[Decision], world: World) -> list[Decision]:
    """The decisions, each that proposes with what it collides with: what waits, and the others."""
    proposed = [d for d in decisions if d.state == "proposed" and d.candidate]
    if not proposed:
        return list(decisions)
    board = _board(world)
    for decision in proposed:
        for id in reports.replaced(decision.id, decision.header, world):
            board.pop(id, None)
    board |= {d.id: _proposal(d, d.candidate, world.repo) for d in proposed if d.candidate}
    by_path = _by_path(board.values())
    made = []
    for decision in decisions:
        if decision.state == "proposed" and decision.candidate:
            others = [p for p in decision.problems if p.code != PENDING_CONFLICT]
            decision = replace(
                decision,
                problems=(*others, *_problems(world.repo, board[decision.id], board, by_path)),
            )
        made.append(decision)
    return made


def spread(decisions: Sequence[Decision], world: World) -> None:
    """Tell the batches that waited before of those which have landed, and of those superseded."""
    pending = [p for one in decisions for p in one.problems if p.code == PENDING_CONFLICT]
    named = {problem.conflicts_with.batch for problem in pending if problem.conflicts_with}
    headers = [decision.header for decision in decisions]
    if any(header.retries or (header.id and header.agent) for header in headers):
        named |= _beside_what_is_gone(world)  # they may have taken the place of another
    if named:
        refresh(world, {id for id in named if id})


def _beside_what_is_gone(world: World) -> set[str]:
    """The batches that touch a path of one which waited when this was last looked at."""
    before = _known.get(world.repo)
    if before is None:
        return set(_board(world))
    there = {name.removeprefix(records.WAITING) for name in world.repo.refs(records.WAITING)}
    by_path = _by_path(filter(None, before.values()))
    gone = [proposal for proposal in before.values() if proposal and proposal.id not in there]
    return {
        id for proposal in gone for path in proposal.reach for id in by_path[proposal.target, path]
    }


def refresh(world: World, ids: Collection[str] | None = None) -> None:
    """Have the reports of what waits (`ids`, or all) name what each collides with now."""
    board = _board(world)
    by_path = _by_path(board.values())
    for id in sorted(board.keys() if ids is None else board.keys() & set(ids)):
        report = world.queue.load(id)
        if report is None or report["state"] != "proposed":
            continue
        problems = _problems(world.repo, board[id], board, by_path, named(report))
        if _with(problems, report) is not None:
            reports.amend(world, id, partial(_with, problems))


def named(report: Report) -> list[str]:
    """The batches with which a report says that its batch collides, in its order."""
    others = [p["conflicts_with"] for p in report["problems"] if p["code"] == PENDING_CONFLICT]
    return list(dict.fromkeys(batch for other in others if other and (batch := other["batch"])))


def _with(problems: Sequence[Problem], report: Report) -> Report | None:
    """The report with these collisions; None if it has them."""
    if report["state"] != "proposed":
        return None
    others = [problem for problem in report["problems"] if problem["code"] != PENDING_CONFLICT]
    updated = document.with_problems({**report, "problems": others}, *problems)
    return updated if updated["problems"] != report["problems"] else None


def _board(world: World) -> dict[str, Proposal]:
    known, board = _known.get(world.repo, {}), {}
    now: dict[tuple[str, str], Proposal | None] = {}
    for name, commit in world.repo.refs(records.WAITING).items():
        key = name.removeprefix(records.WAITING), commit
        now[key] = known[key] if key in known else _read(world, *key)
        proposal = now[key]
        if proposal is not None:
            board[proposal.id] = proposal
    # One whose report is not there yet, or that was decided meanwhile, is looked at again.
    _known[world.repo] = {key: proposal for key, proposal in now.items() if proposal}
    return board


def _read(world: World, id: str, commit: str) -> Proposal | None:
    report = world.queue.load(id)
    if report is None or report["state"] != "proposed" or not has_commit(report):
        return None
    edits = tuple(
        (e["id"], e["path"], (e["lines"][0], e["lines"][1]) if e["lines"] else None)
        for e in report["edits"]
    )
    target, agent, base = report["target"], report["agent"], report["base"]["commit"]
    try:
        changed = changes(world.repo, commit)
    except ObjectDamaged:
        return None
    return Proposal(id, target, agent, commit, base, edits, changed)


def _proposal(decision: Decision, candidate: CandidateCommit, repo: Repository) -> Proposal:
    return Proposal(
        decision.id,
        candidate.target,
        decision.header.agent,
        candidate.commit,
        candidate.base,
        tuple((edit.id, edit.path, edit.lines) for edit in decision.edits),
        changes(repo, candidate.commit),
    )


def _by_path(proposals: Iterable[Proposal]) -> Mapping[tuple[str, str], list[str]]:
    """The ids of the proposals that touch a path of a target."""
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    for proposal in proposals:
        for path in proposal.reach:
            found[proposal.target, path].append(proposal.id)
    return found


def _problems(
    repo: Repository,
    own: Proposal,
    board: Mapping[str, Proposal],
    by_path: Mapping[tuple[str, str], list[str]],
    first: Sequence[str] = (),
) -> list[Problem]:
    """The warnings for one proposal; others that are named already come `first`, so that a report
    which names as many as it may does not change with each that comes."""
    near = {id for path in own.reach for id in by_path[own.target, path]} - {own.id}
    order = [*(id for id in first if id in near), *sorted(near - set(first))]
    problems: list[Problem] = []
    batches = 0
    for id in order:
        try:
            found = list(islice(_warnings(repo, own, board[id]), _MOST_PLACES))
        except ObjectDamaged:  # the batch that needs it says so when it is looked at
            continue
        problems += found
        batches += bool(found)
        if batches == _MOST_BATCHES:
            break
    return problems


def _warnings(repo: Repository, own: Proposal, other: Proposal) -> Iterator[Problem]:
    for ours, theirs in collisions(repo, own, other):
        yield Problem(
            PENDING_CONFLICT,
            _message(ours, theirs, other.id),
            f"nothing to send now: once {other.id} is accepted, this batch is made again on top of "
            "it if it can be, and asks for a retry if not",
            severity="warning",
            edit=ours.edit,
            path=ours.path,
            line=ours.lines and ours.lines[0],
            conflicts_with=Collision(
                other.id, theirs.edit, other.commit, other.agent, theirs.path, theirs.lines
            ),
        )


def _message(ours: ProposedChange, theirs: ProposedChange, other: str) -> str:
    waits = f"batch {other}, which waits for review, too"
    if ours.lines and theirs.lines:
        are = "is" if ours.lines[0] == ours.lines[1] else "are"
        return (
            f"{in_words(ours.lines)} of {ours.path} {are} changed here, and "
            f"{in_words(theirs.lines)} by {waits}"
        )
    return f"this batch {ours.does} {ours.path}, and {waits}, {theirs.does} {theirs.path}"
