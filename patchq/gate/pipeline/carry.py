"""A batch's changes, file by file, carried from its base to the tip.

A batch lands when no line that it changes, nor the line on either side, was touched since, and
wherever an edit has a place on the tip by itself, it is the carried one; what it only quotes may
have changed.  Git's own three-way merge, where it is clean, must give the same tree.  The reasons
are in `docs/decisions/0004-moved-bases.md`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from itertools import islice
from pathlib import PurePosixPath
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from patchq.core.model.ops import (
    DIFF,
    InsertAt,
    ReplaceText,
    SetMode,
    Write,
    WriteBytes,
    halves,
)
from patchq.core.model.values import (
    Base,
    Collision,
    Edit,
    EditOutcome,
    EditState,
    Entry,
    ErrorProblem,
    FileChange,
    LineHunk,
    Plan,
    Problem,
)
from patchq.core.plan import batch
from patchq.core.text.lines import content, split_lines
from patchq.core.text.quote import line_words
from patchq.gate.git import merges, records
from patchq.gate.git.merges import line_hunks
from patchq.gate.git.objects import digest, digest_of
from patchq.gate.git.repository import Repository
from patchq.gate.pipeline import history
from patchq.gate.pipeline.lines import (
    Lines,
    Touch,
    carry_lines,
    image,
    inclusive,
    shifted,
)
from patchq.gate.pipeline.progress import EndedEarly, Response
from patchq.gate.report.schema import LANDED, STANDING, USABLE, Report

_EXCERPT = 3
_MOST_TOUCHING = 300


class Move:
    """A move of a batch from its base to a commit (hex), `tip`.

    `problems` are what prevents it, and `accepted` is the id of the change if it waited, and was
    accepted.
    """

    def __init__(
        self,
        repo: Repository,
        origin: Base,
        tip: str,
        load: Callable[[str], Report | None],
        accepted: str,
    ) -> None:
        self.repo, self.origin, self.tip, self._load = repo, origin, tip, load
        self.base = origin.commit
        again = f"`retries: {accepted}` and " if accepted else ""
        self.cure = (
            f"read the files again as they are in {tip[:12]}, and send the change with {again}"
            f"`base: {tip[:12]}`"
        )
        self.problems: list[ErrorProblem] = []
        self.beside = False
        """True if lines were changed beside others'."""

    @cached_property
    def changes(self) -> dict[str, tuple[object, object]]:
        """Path -> the entry on the base, and the entry now."""
        return dict(self.repo.changes(self.base, self.tip))

    @property
    def since(self) -> str:
        how = " that its quotes fit" if self.origin.how == "inferred" else ""
        return f"since the base {self.base[:12]}{how}"

    def leaves_alone(self, changes: Sequence[FileChange]) -> bool:
        """Return True if no path of the batch was changed in between.

        Nor may a changed path be above or below a new file's.
        """
        return all(
            path not in self.changes and not (change.before is None and self._meets_new(path))
            for change in changes
            for path in change.paths
        )

    def _meets_new(self, path: str) -> bool:
        above = {str(parent) for parent in PurePosixPath(path).parents}
        return any(name in above or name.startswith(f"{path}/") for name in self.changes)

    def may_meet(self, changes: Sequence[FileChange]) -> bool:
        """Return True if a merge could say anything about these changes.

        Both sides change a file, or, as a renamed directory takes new files with it, one deletes
        and the other creates.
        """
        ours = {path for change in changes for path in change.paths}
        if ours & self.changes.keys():
            return True
        their_gone = any(now is None for _, now in self.changes.values())
        their_new = any(was is None for was, _ in self.changes.values())
        our_new = any(c.before is None or c.renamed_from for c in changes)
        our_gone = any(c.after is None or c.renamed_from for c in changes)
        return (their_gone and our_new) or (our_gone and their_new)

    def who(self, path: str, lines: Lines | None = None) -> Collision:
        """Return the collision at a path, with the edit that made it.

        The edit is given if only one of the other batch changed the path.
        """
        collision = history.collides_with(self.repo, self.base, self.tip, path, lines)
        report = self._load(collision.batch) if collision.batch else None
        ids = [edit.id for edit in (report.edits if report else ()) if edit.path == path]
        return replace(collision, edit=ids[0] if len(ids) == 1 else None)

    def refuse(self, message: str, edit: str | None, collision: Collision, **more: Any) -> None:
        problem = ErrorProblem(
            "conflict.base",
            message,
            self.cure,
            edit=edit,
            path=collision.path,
            conflicts_with=collision,
            **more,
        )
        self.problems.append(problem)


def _excerpt(text: bytes, lines: Lines) -> tuple[int, tuple[str, ...]]:
    first = max(lines[0] - _EXCERPT, 0)
    shown = text.decode("utf-8", "backslashreplace").split("\n")[first : lines[1] + _EXCERPT]
    return first + 1, tuple(shown[:40])


def to_tip(response: Response) -> Response:
    """Return the response with its plan on the target's tip; refuse each file that is in doubt."""
    session, plan, tip = response.session, response.plan, response.tip
    base, edits, changes = response.base, response.edits, plan.changes
    if base.commit == tip or not changes:
        return response
    accepted = response.id if response.choice.accepted else ""
    move = Move(session.repo, base, tip, session.queue.load, accepted)
    if not move.leaves_alone(changes):
        _refuse_delivered(response)
        taken = response.choice.among(response.parsed.edits)
        tree = session.repo.tree(tip)
        on_tip = batch.plan(taken, tree, session.rules, diagnosed=False)
        if not (on_tip.refused or on_tip.changes):  # others have made all of it
            return replace(response, plan=on_tip, edits=_now(edits, on_tip.edits))
        carried = _carried(taken, plan, on_tip, move)
        edits, changes = _now(edits, carried.edits), carried.changes
        if carried.refused:
            raise EndedEarly("rejected", *carried.problems, edits=edits)
    if (
        changes
        and move.may_meet(plan.changes)
        and (problem := _merged_otherwise(session.repo, plan.changes, changes, move))
    ):
        raise EndedEarly("rejected", problem, edits=edits)
    return replace(response, plan=replace(plan, changes=changes), edits=edits)


def _now(edits: Sequence[EditOutcome], now: Sequence[EditOutcome]) -> tuple[EditOutcome, ...]:
    by_id = {edit.id: edit for edit in now}
    return tuple(by_id.get(edit.id, edit) for edit in edits)


def refuse_known(response: Response, id: str, sha256: str) -> None:
    """End a response whose edits wait as the batch, or have landed as it.

    `sha256` (hex) is of the bytes that the batch was made of.
    """
    session, target, tip = response.session, response.target, response.tip
    repo = session.repo
    report = session.queue.load(id) or history.landed(session, id, sha256, target, tip)
    if report is None or report.target != target:
        return
    if id == response.header.retries and history.examine(session, report).state not in LANDED:
        return
    proposed = report.state == "proposed" and session.branches.tip(records.branch(report.id))
    if report.state == "held" or proposed:
        raise EndedEarly("duplicate", duplicate_of=report.id)
    commit = history.landing(report, repo, tip) if report.state in STANDING else None
    if commit is None:
        return
    if touched := history.touched_paths(repo, commit, tip):
        collision = history.collides_with(repo, commit, tip, touched[0])
        problem = Problem(
            "conflict.base",
            f"these edits landed as change {report.id}, and what they wrote into {touched[0]} was "
            f"changed since by {history.commit_in_words(collision)}",
            "read the file again and send a new response, if it is still to change",
            path=touched[0],
            conflicts_with=collision,
        )
        raise EndedEarly("rejected", problem)
    raise EndedEarly("duplicate", duplicate_of=report.id)


def _refuse_delivered(response: Response) -> None:
    session = response.session
    commit = delivery(session.repo, response.on_base, response.base.commit, response.tip)
    if commit is None:
        return
    named = history.trailers(session.repo, commit)
    sources = named.get("Patchq-Source", ())
    for id, source in zip(named.get("Patchq-Batch", ()), sources, strict=False):
        if id != response.id:
            refuse_known(response, id, source.removeprefix("sha256:"))
    if "Patchq-Batch" not in named and not history.touched_paths(
        session.repo, commit, response.tip
    ):
        raise EndedEarly("duplicate", duplicate_of=commit)


def delivery(repo: Repository, changes: Sequence[FileChange], base: str, tip: str) -> str | None:
    """Return the newest commit since the base that makes the same changes.

    A batch's trailer says what its edits made on its own base, wherever it landed.
    """
    wanted = digest_of(changes)
    for commit in islice(repo.touching(tip, base, changes[0].path), _MOST_TOUCHING):
        parents = repo.parents(commit)
        if f"sha256:{wanted}" in history.trailers(repo, commit).get("Patchq-Edits", ()):
            return commit
        made = repo.changes(parents[0], commit) if len(parents) == 1 else {}
        sides = {path: (was and was[1], now) for path, (was, now) in made.items()}
        if sides.keys() == {path for change in changes for path in change.paths} and (
            digest(sides) == wanted
        ):
            return commit
    return None


def _merged_otherwise(
    repo: Repository, on_base: Sequence[FileChange], changes: Sequence[FileChange], move: Move
) -> Problem | None:
    """Return the problem if git's own merge gives another tree, or finds a conflict.

    One of lines beside each other does not count.
    """
    with repo.buffer.tentative():
        theirs = repo.write_tree(move.base, on_base)
        ours, made = repo.tree(move.tip).root, repo.write_tree(move.tip, changes)
        merged = merges.merge(repo, repo.tree(move.base).root, ours, theirs)
    if merged.tree == made or (move.beside and merged.tree is None and not merged.beyond_lines):
        return None
    how = "merges them to another result" if merged.tree else "finds a conflict between them"
    return Problem(
        "conflict.base",
        f"what this change changes was changed {move.since}, too, and git's own merge {how}",
        move.cure,
        path=changes[0].path,
    )


# ---------------------------------------------------------------- carrying


def _carried(edits: Sequence[Edit], plan: Plan, on_tip: Plan, move: Move) -> Plan:
    """Return the plan with its changes made on the tip.

    `on_tip` is the plan of the same edits there.  A plan that is refused says why, one problem for
    each place.
    """
    placed = [_Placed(*it) for it in zip(edits, plan.edits, on_tip.edits, strict=True)]
    report = {change.path: change for change in on_tip.changes}
    changes: list[FileChange] = []
    states: dict[str, EditState] = {}
    for change in plan.changes:
        file, wrong = _File(change, placed, move), len(move.problems)
        result = file.carried()
        is_there = result is None and len(move.problems) == wrong
        made = {it.was.id for it in file.placed} if is_there else file.made_before
        states |= dict.fromkeys(made, "already_applied")
        if result is None:
            continue
        changes.append(result)
        alone = report.get(result.path, result)  # what the edits do, taken for ones of the tip
        differs = alone.after != result.after and all(it.quotes for it in file.placed)
        if differs and len(move.problems) == wrong:
            file.refuse("was changed so that these edits mean something else", file.source)
    states |= {problem.edit: "failed" for problem in move.problems if problem.edit}
    outcomes = tuple(replace(edit, state=states.get(edit.id, edit.state)) for edit in plan.edits)
    return Plan(() if move.problems else tuple(changes), outcomes, tuple(move.problems))


class _Placed(Struct, frozen=True):
    """An edit, with its outcomes on the base and on the tip."""

    edit: Edit
    was: EditOutcome
    now: EditOutcome

    @property
    def quotes(self) -> bool:
        """True if it quotes what it means: otherwise it has a place on any text."""
        op = self.edit.op
        by_number = isinstance(op, ReplaceText) and op.at is not None
        return not (by_number or isinstance(op, Write | WriteBytes | SetMode | InsertAt))

    def quoted_lines(self, lines: Sequence[bytes]) -> Lines | None:
        """Return the tip's `lines` that it quotes as a whole."""
        if self.now.lines is None or self.now.state not in USABLE:
            return None
        first, end = self.now.lines[0] - 1, self.now.lines[1]
        if isinstance(self.edit.op, ReplaceText):
            quote = halves(self.edit.op)[0].encode("utf-8", "surrogateescape").split(b"\n")
            first += content(lines[first]) != quote[0]
            end -= bool(quote[-1]) and content(lines[end - 1]) != quote[-1]
        return first, end


class _File:
    def __init__(self, change: FileChange, placed: Sequence[_Placed], move: Move) -> None:
        self.change, self.move = change, move
        self.source = change.renamed_from or change.path
        self.placed = [it for it in placed if it.was.path in (self.source, change.path)]
        self.base, self.tip = (move.repo.tree(commit) for commit in (move.base, move.tip))
        self.made_before: set[str] = set()
        """The edits that the tip has already, where it has not all of them."""

    def carried(self) -> FileChange | None:
        """Return the file's change on the tip; None where the tip has it, or nothing may."""
        change, move = self.change, self.move
        if change.before is None or change.renamed_from:
            if taken := self._taken():
                if not self._is_there():
                    self.refuse("was made", taken)
                return None
            if change.before is None:
                return change
        base, tip = self.base.entry(self.source), self.tip.entry(self.source)
        if tip is None or base is None or tip.kind != base.kind:
            self.refuse("was deleted or renamed", self.source)
            return None
        change = _with_mode(change, tip)
        moved = change.renamed_from or (change.was_executable, change.was_link) != (None, None)
        if tip.oid == base.oid:
            return change if moved or change.before != change.after else None
        by_bytes = any(isinstance(it.edit.op, WriteBytes) for it in self.placed)
        if change.before is None or change.after is None or by_bytes:
            self.refuse("was changed", self.source)
            return None
        now, before = self.tip.read(self.source), change.before
        theirs, ours = line_hunks(before, now), line_hunks(before, change.after)
        text, touches = carry_lines(before, change.after, now, ours, theirs)
        move.beside |= any(touch.beside for touch in touches)
        same = {touch.ours for touch in touches if touch.same}
        self.made_before = self._editing(same) - self._editing({it[:2] for it in ours} - same)
        wrong = len(move.problems)
        self._check_touches(touches, now, theirs)
        if len(move.problems) == wrong:
            self._check_places(theirs)
        if text == now and not moved and len(move.problems) == wrong:
            return None
        return replace(change, before=now, after=text)

    def _taken(self) -> str | None:
        """Return the changed path on the tip that is in a new file's way."""
        path = self.change.path
        for name in (path, *map(str, list(PurePosixPath(path).parents)[:-1])):
            there = self.tip.entry(name)
            blocks = there is not None and (name == path or there.kind != "tree")
            if blocks and there != self.base.entry(name):  # else it goes, or is refused
                return name
        return None

    def _is_there(self) -> bool:
        """Return True if the tip has the file that the batch makes."""
        change, there = self.change, self.tip.entry(self.change.path)
        if change.renamed_from or there is None:
            return False
        kind = "link" if change.link else "file"
        same = (there.kind, there.executable) == (kind, change.executable)
        return same and self.tip.read(change.path) == change.after

    def _check_touches(
        self, touches: Sequence[Touch], now: bytes, theirs: Sequence[LineHunk]
    ) -> None:
        """Refuse the changes of lines that were touched since."""
        lines = split_lines(now)
        for touch in touches:
            it = self._at(touch.ours)
            if touch.same or (touch.beside and it and _has_seen(it, touch, lines, theirs)):
                continue
            who = self.move.who(self.source, touch.now)
            ours, there = inclusive(touch.ours), inclusive(touch.theirs)
            where = line_words(there) + (", right beside," if touch.beside else "")
            self.move.refuse(
                f"{f'edit {it.was.id}' if it else 'the batch'} changes {line_words(ours)} of "
                f"{self.source}, and {history.commit_in_words(who)} changed {where} "
                f"{self.move.since}",
                it.was.id if it else None,
                replace(who, lines=there),
                line=ours[0],
                excerpt=_excerpt(now, touch.now),
            )

    def _at(self, lines: Lines) -> _Placed | None:
        for it in self.placed:
            quoted = it.was.lines
            if quoted and quoted[0] - 1 <= lines[0] and lines[1] <= quoted[1]:
                return it
        return self.placed[0] if len(self.placed) == 1 else None

    def _editing(self, runs: Iterable[Lines]) -> set[str]:
        return {it.was.id for run in runs if (it := self._at(run))}

    def _check_places(self, theirs: Sequence[LineHunk]) -> None:
        """Refuse each edit that resolves elsewhere on the tip."""
        for it in self.placed:
            was, now = it.was.lines, it.now.lines
            if not (it.quotes and was and now and it.now.state in USABLE):
                continue
            first, end = image((was[0] - 1, was[1]), theirs)
            if not (now[0] - 1 < max(end, first + 1) and first < now[1]):
                self.move.refuse(
                    f"edit {it.was.id} means {line_words(was)} of {self.source} on its base "
                    f"{self.move.base[:12]}, which is {line_words((first + 1, end))} today, and "
                    f"what it quotes is at {line_words(now)} today",
                    it.was.id,
                    self.move.who(self.source),
                    line=was[0],
                )

    def refuse(self, what: str, path: str) -> None:
        who = self.move.who(path)
        by = history.commit_in_words(who)
        edit = self.placed[0].was.id if self.placed else None
        self.move.refuse(f"{path} {what} {self.move.since} by {by}", edit, who)


def _with_mode(change: FileChange, tip: Entry) -> FileChange:
    if change.link or change.was_link is not None:
        return change
    if change.was_executable is None:
        return replace(change, executable=tip.executable)
    same = tip.executable == change.executable
    return replace(change, was_executable=None if same else tip.executable)


def _has_seen(
    it: _Placed, touch: Touch, lines: Sequence[bytes], theirs: Sequence[LineHunk]
) -> bool:
    """Return True if the edit's author has seen the changed line beside it.

    The edit has its carried place on the tip by itself, and in its quote that line.  The quote has
    to be the base's own lines, carried: where lines were put into it, or taken out, and it fits all
    the same, it meets others that are like them.  A diff's context shows what stood on the base,
    and nothing of what its author has seen since.
    """
    quoted = it.quoted_lines(lines)
    was, now = it.was.lines, it.now.lines
    if quoted is None or was is None or now is None or it.edit.format == DIFF:
        return False
    if now != tuple(shifted(line - 1, theirs) + 1 for line in was):
        return False
    first, end = image(touch.ours, theirs)
    if touch.theirs[0] >= touch.ours[1]:
        end += 1
    else:
        first -= 1
    return quoted[0] <= first and end <= quoted[1]
