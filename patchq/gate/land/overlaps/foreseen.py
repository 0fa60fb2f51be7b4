"""Overlaps that a dry run would meet: with what waits for review now, and what is held.

A batch that is held has no commit to compare with.  So it is tried as well, as if what it waits for
had landed.  Where its edits have no place before that, only the files are known that it names.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Literal

from msgspec.structs import replace

from patchq.core.model.values import Collision, Problem
from patchq.gate.errors import ObjectDamaged
from patchq.gate.git.repository import Repository
from patchq.gate.land.overlaps import Blobs, Change, waiting, warnings
from patchq.gate.pipeline import depends
from patchq.gate.pipeline.process import process
from patchq.gate.pipeline.progress import Decision
from patchq.gate.pipeline.session import AS_SENT, Session, Tips, recorded
from patchq.gate.report.schema import PENDING_CONFLICT


def foreseen(decision: Decision, session: Session) -> Decision:
    """Return the decision of a dry run with the overlaps that it would meet now."""
    if decision.state == "rejected" or not decision.changes:
        return decision
    repo = session.repo
    gone = {decision.id, *depends.replaced(session, decision.id, decision.header)}
    with repo.buffer.tentative():
        own = _tried(decision, repo)
        others = {id: it for id, it in waiting.beside(session, own).items() if id not in gone}
        vague = list[Problem]()
        for held in _held(own, session, gone):
            if held.changes and held.state != "rejected":
                others[held.id] = _tried(held, repo, "held")
            elif held.header.depends_on:
                vague += _vague(own, held)
        found = warnings.warnings_for(repo, own, others)
    return replace(decision, problems=(*decision.problems, *found, *vague))


def _tried(
    decision: Decision, repo: Repository, kind: Literal["waits", "held"] = "waits"
) -> Change:
    """Return the change that the decision would be; its texts are kept in memory."""
    assert decision.target
    assert decision.base
    files: dict[str, Blobs] = {}
    for change in decision.changes:
        before = None if change.before is None else repo.keep_blob(change.before)
        if change.renamed_from is not None:
            files[change.renamed_from], before = (before, None), None
        files[change.path] = before, None if change.after is None else repo.keep_blob(change.after)
    agent, base, edits = decision.header.agent, decision.base.commit, decision.edits
    return Change(decision.id, decision.target, agent, "", base, edits, files, kind, decision.on)


def _held(own: Change, session: Session, gone: Collection[str]) -> Iterator[Decision]:
    """Yield what is held for the target and may touch the same files, tried: a bounded number.

    Trying costs, and most have nothing to do with it: a response that changes a file names it.
    """
    names = {path.rpartition("/")[2] for path in own.reach}
    asked = {name.encode() for name in names if name.isascii()}
    tried = 0
    for claim in session.queue.held():
        if not claim.id or claim.id in gone or tried == warnings.MOST_BATCHES:
            continue
        if len(asked) == len(names) and not any(name in claim.data for name in asked):
            continue
        tried += 1
        choice = replace(recorded(claim) or AS_SENT, dry_run=True, ahead=True)
        try:
            decision = process(claim, session, Tips(session), choice)
        except ObjectDamaged:  # the batch that needs it says so when it is looked at
            continue
        if decision.target == own.target:
            yield decision


def _vague(own: Change, held: Decision) -> Iterator[Problem]:
    """Yield the files that both change, where the other's effect is not yet known."""
    until = ", ".join(held.header.depends_on)
    for edit in {edit.path: edit for edit in held.edits if edit.path in own.changes}.values():
        yield Problem(
            PENDING_CONFLICT,
            f"{edit.path} is changed here, and by change {held.id}, which is held; at which lines "
            f"is not known before what it waits for has landed: {until}",
            f"nothing to send now: if {held.id} lands first and at the same lines, this change is "
            "made again on top of it or asks for a retry",
            severity="warning",
            edit=next((one.id for one in own.edits if one.path == edit.path), None),
            path=edit.path,
            conflicts_with=Collision(held.id, edit.id, None, held.header.agent, edit.path),
        )
