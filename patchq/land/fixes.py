"""What a hook made of a candidate becomes part of the batch, through the same gate as its edits."""

from __future__ import annotations

from collections.abc import Sequence

from patchq.hooks.verdicts import Fixed
from patchq.model.values import EditOutcome, FileChange, Plan, Problem
from patchq.pipeline import mode, stages
from patchq.pipeline.draft import Draft, Refusal
from patchq.plan import targets


def take(draft: Draft, hook: str, fixed: Fixed) -> None:
    """Make the candidate anew with the files as the hook left them, each named as an edit of the
    hook's.  Raises `Refusal` for what no response may do either, or `Settled`."""
    world = draft.world
    assert draft.parent
    assert draft.commit
    changes = _changes(draft, fixed)
    if not changes:
        raise Refusal(
            Problem(
                "hook.refused",
                f"the hook {hook} takes back everything that the batch changes",
                "send what the hook leaves as it is",
            )
        )
    tree = world.repo.tree(draft.parent)
    for path in sorted(fixed):
        try:
            targets.check_spelling(path, world.rules, exists=tree.entry(path) is not None)
        except targets.Refused as refused:
            raise Refusal(_by_hook(hook, refused.problem)) from None
    most = world.config.limits.files
    if len(changes) > most:
        raise Refusal(
            Problem(
                "response.too_large",
                f"with what the hook {hook} changes, the batch is about {len(changes)} files, more "
                f"than `limits.files` ({most})",
                "send the changes in several responses",
            )
        )
    known, plan = draft.paths, Plan(changes)
    stages.check_results(draft, plan)
    _choose_mode_again(draft, plan, known)
    message = world.repo.message(draft.commit)
    draft.commit, draft.tree = world.repo.amend(draft.commit, draft.parent, changes, message)
    draft.edits += tuple(_edit(hook, number, path) for number, path in enumerate(sorted(fixed), 1))


def say(draft: Draft, message: str) -> None:
    """Make the candidate anew with another message; its trailers stay, whatever becomes of it."""
    repo = draft.world.repo
    assert draft.parent
    assert draft.commit
    text = message.replace("\0", "").strip() + "\n"
    text = _with_trailers(text, repo.message(draft.commit))
    draft.subject = text.split("\n", 1)[0]
    changes = repo.file_changes(draft.parent, draft.commit)
    draft.commit, draft.tree = repo.amend(draft.commit, draft.parent, changes, text)


def _with_trailers(text: str, before: str) -> str:
    lines = text.split("\n")
    lost = [line for line in before.split("\n") if line.startswith("Patchq-") and line not in lines]
    return text + ("\n" + "\n".join(lost) + "\n" if lost else "")


def _changes(draft: Draft, fixed: Fixed) -> tuple[FileChange, ...]:
    """What the batch and the hook do to the parent's files, together."""
    repo = draft.world.repo
    assert draft.parent
    assert draft.commit
    changes = {change.path: change for change in repo.file_changes(draft.parent, draft.commit)}
    tree = repo.tree(draft.parent)
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


def _choose_mode_again(draft: Draft, plan: Plan, known: Sequence[str]) -> None:
    """Look at the paths that the batch did not touch before."""
    before, paths = draft.state, draft.paths
    draft.paths = tuple(path for path in paths if path not in known)
    try:
        mode.choose_mode(draft, plan)
    finally:
        draft.paths = paths
    if before == "proposed":
        draft.state = before


def _by_hook(hook: str, problem: Problem) -> Problem:
    return Problem(
        problem.code,
        f"the hook {hook} changes what no batch may: {problem.message}",
        "nothing to correct in the response: have the hook looked after",
        path=problem.path,
    )


def _edit(hook: str, number: int, path: str) -> EditOutcome:
    return EditOutcome(
        f"{hook}:{number}", "hook", (0, 0), path, "write", "applied", description=f"by hook {hook}"
    )
