"""What a hook made of a candidate becomes part of the batch, through the same gate as its edits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from patchq.hooks.verdicts import Fixed
from patchq.model.values import EditOutcome, FileChange, Plan, Problem
from patchq.pipeline import mode, stages
from patchq.pipeline.decision import CandidateCommit, Decision
from patchq.pipeline.world import World
from patchq.plan import targets


def take(
    decision: Decision, candidate: CandidateCommit, hook: str, fixed: Fixed, world: World
) -> Decision:
    """The decision with the candidate made anew with the files as the hook left them, each named
    as an edit of the hook's; refused for what no response may do either."""
    changes = _changes(candidate, fixed, world)
    problem = _refusal(changes, candidate, hook, fixed, world)
    if problem:
        return decision.ended("rejected", problem)
    before, known = decision.state, candidate.paths
    decision = stages.checked(decision, changes, world)
    if not decision.lands:
        return decision
    paths = stages.touched(changes)
    unseen = tuple(path for path in paths if path not in known)
    decision, follows = mode.ruled(
        decision, Plan(changes), unseen, candidate.target, candidate.parent, world
    )
    if not decision.lands:
        return decision
    message = world.repo.message(candidate.commit)
    return replace(
        decision,
        state="proposed" if before == "proposed" else decision.state,
        candidate=_amended(candidate, changes, message, world, paths, follows),
        edits=(
            *decision.edits,
            *(_edit(hook, number, path) for number, path in enumerate(sorted(fixed), 1)),
        ),
    )


def say(decision: Decision, candidate: CandidateCommit, message: str, world: World) -> Decision:
    """The decision with the candidate made anew with another message; its trailers stay, whatever
    becomes of it."""
    repo = world.repo
    text = message.replace("\0", "").strip() + "\n"
    text = _with_trailers(text, repo.message(candidate.commit))
    changes = repo.file_changes(candidate.parent, candidate.commit)
    made = _amended(candidate, changes, text, world, candidate.paths, candidate.follows)
    return replace(decision, subject=text.split("\n", 1)[0], candidate=made)


def _amended(
    candidate: CandidateCommit,
    changes: tuple[FileChange, ...],
    message: str,
    world: World,
    paths: tuple[str, ...],
    follows: bool,
) -> CandidateCommit:
    commit, tree = world.repo.amend(candidate.commit, candidate.parent, changes, message)
    return replace(candidate, commit=commit, tree=tree, paths=paths, follows=follows)


def _with_trailers(text: str, before: str) -> str:
    lines = text.split("\n")
    lost = [line for line in before.split("\n") if line.startswith("Patchq-") and line not in lines]
    return text + ("\n" + "\n".join(lost) + "\n" if lost else "")


def _changes(candidate: CandidateCommit, fixed: Fixed, world: World) -> tuple[FileChange, ...]:
    """What the batch and the hook do to the parent's files, together."""
    own = world.repo.file_changes(candidate.parent, candidate.commit)
    changes = {change.path: change for change in own}
    tree = world.repo.tree(candidate.parent)
    for path, made in fixed.items():
        entry = tree.entry(path)
        before = tree.read(path) if entry and entry.kind == "file" else None
        after, executable = made if made else (None, False)
        same_mode = entry is None or made is None or entry.executable == executable
        if before == after and same_mode:
            changes.pop(path, None)
        else:
            changes[path] = FileChange(path, before, after, executable)
    return tuple(changes[path] for path in sorted(changes))


def _refusal(
    changes: Sequence[FileChange],
    candidate: CandidateCommit,
    hook: str,
    fixed: Fixed,
    world: World,
) -> Problem | None:
    if not changes:
        return Problem(
            "hook.refused",
            f"the hook {hook} takes back everything that the batch changes",
            "send what the hook leaves as it is",
        )
    tree = world.repo.tree(candidate.parent)
    for path in sorted(fixed):
        try:
            targets.check_spelling(path, world.rules, exists=tree.entry(path) is not None)
        except targets.Refused as refused:
            return Problem(
                refused.problem.code,
                f"the hook {hook} changes what no batch may: {refused.problem.message}",
                "nothing to correct in the response: have the hook looked after",
                path=refused.problem.path,
            )
    most = world.config.limits.files
    if len(changes) > most:
        return Problem(
            "response.too_large",
            f"with what the hook {hook} changes, the batch is about {len(changes)} files, more "
            f"than `limits.files` ({most})",
            "send the changes in several responses",
        )
    return None


def _edit(hook: str, number: int, path: str) -> EditOutcome:
    return EditOutcome(
        f"{hook}:{number}", "hook", (0, 0), path, "write", "applied", description=f"by hook {hook}"
    )
