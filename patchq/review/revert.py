"""`revert`: a batch that takes another one back, through the same gate as every batch.

Git alone knows what to take back, so the queue may have lost the batch.  Whether it still can be
taken back is found out first; a revert that cannot leaves nothing behind, as with git.
"""

from __future__ import annotations

import re
from dataclasses import replace

from patchq.land import worker
from patchq.model.errors import UsageError
from patchq.model.names import batch_id
from patchq.model.report import Report
from patchq.model.values import LANDED, FileChange, Problem, Source
from patchq.pipeline import notes
from patchq.pipeline import overrides as chosen
from patchq.pipeline.overrides import Choice
from patchq.pipeline.process import process
from patchq.pipeline.rebase import history
from patchq.pipeline.world import Tips, World
from patchq.queue import Claim
from patchq.report import document as report
from patchq.report.message import trailers
from patchq.review import from_git as rebuilt
from patchq.review import reconcile as observed
from patchq.review import restack as waiting
from patchq.review import revert_patch as inverse
from patchq.review.decide import Decided

_REVERTS = re.compile(r"^This reverts commit ([0-9a-f]{40})\b", re.MULTILINE)
_MOST_COMMITS = 1000
_MOST = 10**6


def revert(world: World, id: str, tell: worker.Tell) -> Decided:
    """Take a batch that landed back; `tell` is called with the report on the batch that does it.

    Returns the report on the first batch as it is then, or why nothing was done.  `UsageError` for
    a batch that is not there to be taken back.
    """
    told, commit = _landed(world, id)
    target = told["target"]
    back = _changes_back(world, id, commit)
    if isinstance(back, Problem):
        return Decided(told, (back,))
    gate = _for_what_was_there(world)
    data = inverse.response(world.repo, id, target, commit, back)
    if not inverse.reads_back(data, world.repo, gate.rules, commit, back):
        return Decided(told, (_not_as_text(commit),))
    name = f"{batch_id(f'revert-{id}')}.md"
    choice = Choice(target=target, accepted=True)
    problem = _in_the_way(gate, data, name, choice)
    if problem:
        return Decided(told, (problem,))
    made: list[Report] = []
    claim = world.queue.adopt(data, name, chosen.to_json(choice))
    worker.work([claim], gate, made.append, choice)
    for verdict in made:
        tell(verdict)
        if verdict["state"] == "applied":
            marked = _mark(world, told, verdict["id"], verdict["commit"])
            waiting.follow(world, {target})
            return Decided(marked)
    return Decided(told)


def _landed(world: World, id: str) -> tuple[Report, str]:
    """The report of the batch, and the commit by which it is on its target."""
    told = world.queue.load(id) or rebuilt.load(world, id)
    if told is None:
        raise UsageError(f"there is no batch {id}", "see `patchq log`")
    seen = observed.observe(world, told)
    if seen.state == "duplicate" and told["duplicate_of"]:
        other = told["duplicate_of"]
        raise UsageError(f"batch {id} is a duplicate of {other}", f"patchq revert {other}")
    if seen.state == "reverted":
        by = told["duplicate_of"]
        hint = f"to have it again: patchq revert {by}" if by else None
        raise UsageError(f"batch {id} was reverted already", hint)
    if seen.state not in LANDED:
        waits = f"patchq discard {id}" if seen.state in ("proposed", "held") else None
        raise UsageError(f"batch {id} has not landed: it is {seen.state}", waits)
    if told["state"] != seen.state:  # a person merged it by plain git, and nobody noted it yet
        observed.reconcile(world)
        told = world.queue.load(id) or told
    commit = _on_target(world, {**told, "commit": seen.commit or told["commit"]})
    return told, commit


def _on_target(world: World, told: Report) -> str:
    repo, id, target = world.repo, told["id"], told["target"]
    tip = repo.branch_tip(target)
    if tip is None:
        raise UsageError(f"the branch {target} is gone")
    commit = history.landing(told, repo, tip)
    if commit is None:
        raise UsageError(f"batch {id} is not in the history of {target} any more")
    undone = _undone_by(world, commit, tip)
    if undone is not None:
        by = next(iter(trailers(repo.message(undone)).get("Patchq-Batch", [])), None)
        _mark(world, told, by, undone)
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
        named, parents = trailers(repo.message(start)).get("Patchq-Batch", []), repo.parents(start)
        if len(parents) != 1 or len(named) > 1:
            break
        start = parents[0]
        if named == [id]:
            return inverse.changes(repo, start, commit)
    return Problem(
        "conflict.base",
        f"commit {commit[:12]} holds more than batch {id}",
        f"take it back with git: git revert {commit[:12]}",
    )


def _for_what_was_there(world: World) -> World:
    """The same gate without its doubts about new text: what comes back stood there before."""
    config = world.config
    relaxed = {
        "validate_": config.validate_.model_copy(update={"elision": False, "syntax": False}),
        "limits": config.limits.model_copy(update={"files": _MOST, "edits": _MOST}),
        "paths": config.paths.model_copy(update={"new_directories": True}),
    }
    return replace(world, config=config.model_copy(update=relaxed))


def _in_the_way(world: World, data: bytes, name: str, choice: Choice) -> Problem | None:
    """What keeps the batch from landing now, found without writing anything."""
    claim = Claim("", Source(name, "", len(data)), data, id=batch_id(name[:-3]))
    draft = process(claim, world, Tips(world), replace(choice, dry_run=True))
    if draft.state == "applied":
        return None
    problem = next((p for p in draft.problems if p.severity == "error"), None)
    if problem is None and draft.problems:  # busy or dirty: a warning for what could wait
        problem = replace(draft.problems[-1], severity="error", hint=_HINTS.get(draft.state))
    return problem or Problem(
        "match.identical", f"nothing of the batch is left on {choice.target}", "nothing to do"
    )


_HINTS = {
    "proposed": "commit or stash them, then revert again",
    "held": "finish or abort that, then revert again",
}


def _not_as_text(commit: str) -> Problem:
    return Problem(
        "response.unreadable_edit",
        "what the batch changed cannot be taken back by a diff of text",
        f"take it back with git: git revert {commit[:12]}",
    )


def _mark(world: World, told: Report, by: str | None, commit: str) -> Report:
    """Put down that the batch was reverted; its record stays on the commit by which it landed."""
    reason = f"reverted by {by or 'hand'}, commit {commit}"
    if world.queue.load(told["id"]):
        return observed.rewrite(world, told, "reverted", reason, duplicate_of=by)
    fresh = report.with_state(told, "reverted", duplicate_of=by)
    notes.add(world, fresh, reason)
    return fresh
