"""`revert`: a batch that takes another one back, through the same gate as every batch.

Git alone knows what to take back, so the queue may have lost the batch.  Whether it still can be
taken back is found out first; a revert that cannot leaves nothing behind, as with git.

Its response is a unified diff from what the commit made to what was there.  It names the commit as
its base, so that it is resolved on exactly those bytes and carried to the tip by the rule that
holds for every batch.  What a diff of text cannot say (other bytes, modes, links) is refused, and
so is a diff that patchq itself would read as another change.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import replace

from patchq import formats
from patchq.formats.envelope.opening import open_response
from patchq.git.objects import EXECUTABLE, Leaf, is_regular
from patchq.git.repository import Repository
from patchq.land import reports, worker
from patchq.model.errors import CannotFollow, UsageError
from patchq.model.names import batch_id
from patchq.model.report import LANDED, WAITING, CommittedReport, Report, has_commit
from patchq.model.values import Envelope, FileChange, Problem, Source
from patchq.pipeline import notes, traces
from patchq.pipeline.process import process
from patchq.pipeline.world import Choice, Tips, World
from patchq.plan import batch
from patchq.plan.targets import Rules
from patchq.queue import Claim
from patchq.report import document
from patchq.report.message import subject
from patchq.review import from_git, restack
from patchq.review.decide import Decided, discard
from patchq.text import unified
from patchq.text.line_diff import line_diff
from patchq.text.lines import is_utf8, split_lines

_REVERTS = re.compile(r"^This reverts commit ([0-9a-f]{40})\b", re.MULTILINE)
_MOST_COMMITS = 1000
_MOST = 10**6


def revert(world: World, id: str, tell: worker.Tell) -> Decided:
    """Take a batch that landed back; `tell` is called with the report on the batch that does it.

    Returns the report on the first batch as it is then, or why nothing was done.  `UsageError` for
    a batch that is not there to be taken back.
    """
    report, commit = _landed(world, id)
    target = report["target"]
    back = _changes_back(world, id, commit)
    if isinstance(back, Problem):
        return Decided(report, (back,))
    gate = _for_what_was_there(world)
    data = response(world.repo, id, target, commit, back)
    if not reads_back(data, world.repo, gate.rules, commit, back):
        return Decided(
            report,
            (
                Problem(
                    "response.unreadable_edit",
                    "what the batch changed cannot be taken back by a diff of text",
                    f"take it back with git: git revert {commit[:12]}",
                ),
            ),
        )
    name = f"{batch_id(f'revert-{id}')}.md"
    choice = Choice(target=target, accepted=True)
    if obstacle := _in_the_way(gate, data, name, choice):
        return Decided(report, (obstacle,))
    world.signer.try_out(world.identity())  # else it would land when nobody sees it any more
    verdicts: list[Report] = []
    worker.work([world.queue.adopt(data, name, choice.to_json())], gate, verdicts.append, choice)
    for verdict in verdicts:
        if verdict["state"] == "held" and worker.waits_for_mending(verdict) == CannotFollow.code:
            discard(world, verdict["id"])  # else it would land when nobody sees it any more
            why = verdict["problems"][-1]
            hint = f"see to that, then `patchq revert {id}` again"
            return Decided(report, (Problem(CannotFollow.code, why["message"], hint),))
        tell(verdict)
        if verdict["state"] == "applied" and has_commit(verdict):
            marked = _mark(world, report, verdict["id"], verdict["commit"])
            restack.settle(world)
            return Decided(marked)
    return Decided(report)


def _landed(world: World, id: str) -> tuple[CommittedReport, str]:
    """The report of the batch, and the commit by which it is on its target."""
    report = world.queue.load(id)
    if report is None and (known := from_git.gone(world, [id])):
        report, _ = known[id]
    if report is None:
        raise UsageError(f"there is no batch {id}", "see `patchq log`")
    sighting = traces.observe(world, report)
    if sighting.state == "duplicate" and report["duplicate_of"]:
        other = report["duplicate_of"]
        raise UsageError(f"batch {id} is a duplicate of {other}", f"patchq revert {other}")
    if sighting.state == "reverted":
        by = report["duplicate_of"]
        raise UsageError(
            f"batch {id} was reverted already",
            f"to have it again: patchq revert {by}" if by else None,
        )
    if sighting.state not in LANDED or not has_commit(report):
        raise UsageError(
            f"batch {id} has not landed: it is {sighting.state}",
            f"patchq discard {id}" if sighting.state in WAITING else None,
        )
    if report["state"] != sighting.state:  # a person merged it by git, and nobody noted it yet
        reports.reconcile(world)
        updated = world.queue.load(id)
        report = updated if updated and has_commit(updated) else report
    return report, _on_target(world, {**report, "commit": sighting.commit or report["commit"]})


def _on_target(world: World, report: CommittedReport) -> str:
    repo, id, target = world.repo, report["id"], report["target"]
    tip = repo.branch_tip(target)
    if tip is None:
        raise UsageError(f"the branch {target} is gone")
    commit = traces.landing(report, repo, tip)
    if commit is None:
        raise UsageError(f"batch {id} is not in the history of {target} any more")
    undone = _undone_by(world, commit, tip)
    if undone is not None:
        by = next(iter(traces.trailers(repo, undone).get("Patchq-Batch", [])), None)
        _mark(world, report, by, undone)
        raise UsageError(f"batch {id} was reverted already, by commit {undone[:12]}")
    return commit


def _undone_by(world: World, commit: str, tip: str) -> str | None:
    """The later commit that says it takes this one back, and was not taken back itself."""
    void: set[str] = set()
    for later in world.repo.commits(tip, commit, _MOST_COMMITS):
        for reverted in () if later.oid in void else _REVERTS.findall(later.message):
            if reverted == commit:
                return later.oid
            void.add(reverted)
    return None


def _changes_back(world: World, id: str, commit: str) -> tuple[FileChange, ...] | Problem:
    """The changes that undo the batch: of its own commit, and of those that a person put on top of
    it before it landed."""
    repo, start = world.repo, commit
    for _ in range(_MOST_COMMITS):
        named, parents = traces.trailers(repo, start).get("Patchq-Batch", []), repo.parents(start)
        if len(parents) != 1 or len(named) > 1:
            break
        start = parents[0]
        if named == [id]:
            return changes(repo, start, commit)
    return Problem(
        "conflict.base",
        f"commit {commit[:12]} holds more than batch {id}",
        f"take it back with git: git revert {commit[:12]}",
    )


def _for_what_was_there(world: World) -> World:
    """The same gate without its doubts about new text: what comes back stood there before."""
    config = world.config
    relaxed = {
        "validate_": config.validate_.but(elision=False, syntax=False),
        "limits": config.limits.but(files=_MOST, edits=_MOST),
        "paths": config.paths.but(new_directories=True),
    }
    return replace(world, config=config.but(**relaxed))


def _in_the_way(world: World, data: bytes, name: str, choice: Choice) -> Problem | None:
    """What keeps the batch from landing now, found without writing anything."""
    decision = process(
        Claim("", Source(name, "", len(data)), data, id=batch_id(name[:-3])),
        world,
        Tips(world),
        replace(choice, dry_run=True),
    )
    state, problems = decision.state, decision.problems
    if state == "applied":
        return None
    problem = next((p for p in problems if p.severity == "error"), None)
    if problem is None and problems:  # busy or dirty: a warning for what could wait
        last = problems[-1]
        otherwise = re.sub(r"`patchq \w+ [^`]+`", "revert again", last.hint or "")
        problem = replace(last, severity="error", hint=_HINTS.get(last.code, otherwise))
    return problem or Problem(
        "match.identical", f"nothing of the batch is left on {choice.target}", "nothing to do"
    )


_HINTS = {
    "worktree.dirty": "commit or stash them, then revert again",
    "target.busy": "finish or abort that, then revert again",
}


def _mark(world: World, report: Report, by: str | None, commit: str) -> Report:
    """Put down that the batch was reverted; its record stays on the commit by which it landed."""
    reason = f"reverted by {by or 'hand'}, commit {commit}"
    if world.queue.load(report["id"]):
        return reports.rewrite(world, report, "reverted", reason, duplicate_of=by)
    updated = document.with_state(report, "reverted", duplicate_of=by)
    notes.add(world, updated, reason)
    return updated


_ALIKE = 0.5
"""The least share of lines that a renamed file keeps, as git has it."""


def changes(repo: Repository, start: str, commit: str) -> tuple[FileChange, ...] | Problem:
    """What leads from `commit` back to `start`, or why text cannot say it."""
    found = []
    for path, (before, after) in repo.changes(commit, start).items():
        problem = _beyond_text(repo, path, before, after)
        if problem is not None:
            return replace(problem, hint=f"take it back with git: git revert {commit[:12]}")
        was, now = (repo.raw(leaf[1]) if leaf else None for leaf in (before, after))
        found.append(FileChange(path, was, now, before is not None and before[0] == EXECUTABLE))
    return tuple(_with_renames(found))


def _beyond_text(
    repo: Repository, path: str, before: Leaf | None, after: Leaf | None
) -> Problem | None:
    sides = [leaf for leaf in (before, after) if leaf]
    if not all(is_regular(leaf[0]) for leaf in sides):
        return Problem("path.not_a_file", f"{path} is a symbolic link or a submodule", path=path)
    if before is None and after is not None and after[0] == EXECUTABLE:
        return Problem("path.not_a_file", f"{path} was executable when it was deleted", path=path)
    if before and after and before[0] != after[0]:
        return Problem("path.not_a_file", f"the mode of {path} was changed", path=path)
    texts = [repo.raw(leaf[1]) for leaf in sides]
    if any(b"\0" in text for text in texts):
        return Problem("file.binary", f"{path} is binary", path=path)
    if not all(map(is_utf8, texts)):
        return Problem("file.encoding", f"{path} is not UTF-8", path=path)
    return None


def _with_renames(found: Iterable[FileChange]) -> list[FileChange]:
    """The changes, with a file that vanishes and one that appears with most of its lines as a
    rename, so that what later batches did to the file goes with it."""
    kept = list(found)
    for made in [change for change in kept if change.before is None]:
        alike = {_alike(gone, made): gone for gone in kept if gone.after is None}
        share = max(alike, default=0.0)
        if share >= _ALIKE and made.after:
            gone = alike[share]
            kept = [change for change in kept if change not in (gone, made)]
            kept.append(replace(gone, path=made.path, after=made.after, renamed_from=gone.path))
    return kept


def _alike(gone: FileChange, made: FileChange) -> float:
    """The share of lines that both files have."""
    old, new = split_lines(gone.before or b""), split_lines(made.after or b"")
    changed = sum(a1 - a0 for a0, a1, _, _ in line_diff(old, new))
    return (len(old) - changed) / max(len(old), len(new), 1)


def response(
    repo: Repository, id: str, target: str, commit: str, back: Iterable[FileChange]
) -> bytes:
    """The changes as a response for `target` that says what it takes back."""
    title = subject(repo.message(commit))
    again = title.removeprefix('Revert "')
    # As git says it; what was taken back once comes back.
    title = f'Reapply "{again}' if again != title else f'Revert "{title}"'
    message = f"{title}\n\nThis reverts commit {commit}.\nIt landed as batch {id}."
    fields = {"target": target, "base": commit, "message": message}
    header = "".join(
        f"{key}: {json.dumps(value, ensure_ascii=False)}\n" for key, value in fields.items()
    )
    return f"---\n{header}---\n{unified.unified(tuple(back))}".encode()


def reads_back(
    data: bytes, repo: Repository, rules: Rules, commit: str, back: Iterable[FileChange]
) -> bool:
    """Whether the response is read as exactly the changes."""
    opened, tree = open_response(data), repo.tree(commit)
    if not isinstance(opened, Envelope):
        return False
    parsed = formats.parse(
        opened.text, lambda path: tree.entry(path) is not None, opened.header, opened.first_line
    )
    if parsed.problems:
        return False
    plan = batch.plan(parsed.edits, tree, rules, declared=True)
    return _results(plan.changes) == _results(back)


def _results(changes: Iterable[FileChange]) -> set[tuple[str, bytes | None, str | None]]:
    return {(change.path, change.after, change.renamed_from) for change in changes}
