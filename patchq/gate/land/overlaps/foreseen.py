"""Overlaps that a dry run would meet: with what waits for review now, and what is held.

A batch that is held has no commit to compare with.  So it is tried as well, as if what it waits for
had landed; one whose edits have no place before that is not seen.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import suppress
from typing import Literal

from msgspec.structs import replace

from patchq.gate.errors import ObjectDamaged
from patchq.gate.git.repository import Repository
from patchq.gate.land.overlaps import Blobs, Change, waiting, warnings
from patchq.gate.pipeline import depends
from patchq.gate.pipeline.process import process
from patchq.gate.pipeline.progress import Decision
from patchq.gate.pipeline.session import AS_SENT, Session, Tips, recorded


def foreseen(decision: Decision, session: Session) -> Decision:
    """Return the decision of a dry run with the overlaps that it would meet now."""
    if decision.state == "rejected" or not decision.changes:
        return decision
    repo = session.repo
    gone = {decision.id, *depends.replaced(session, decision.id, decision.header)}
    with repo.buffer.tentative():
        own, waits = _tried(decision, repo), waiting.board(session)
        others = {id: waits[id] for id in waits.beside(own) - gone}
        others |= {it.id: it for it in held(session, own.target, own.reach) if it.id not in gone}
        found = warnings.warnings_for(repo, own, others)
    return replace(decision, problems=(*decision.problems, *found))


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


def held(session: Session, target: str, paths: Collection[str]) -> Iterator[Change]:
    """Yield what is held for the target and may touch the paths, tried: a bounded number.

    Trying costs, and most have nothing to do with them: a response that changes a file names it.
    """
    names = {path.rpartition("/")[2] for path in paths}
    asked = {name.encode() for name in names if name.isascii()}
    tried = 0
    for claim in session.queue.held():
        if not claim.id or tried == warnings.MOST_BATCHES:
            continue
        if len(asked) == len(names) and not any(name in claim.data for name in asked):
            continue
        tried += 1
        choice = replace(recorded(claim) or AS_SENT, dry_run=True, ahead=True)
        with suppress(ObjectDamaged):  # the batch that needs it says so when it is looked at
            decision = process(claim, session, Tips(session), choice)
            if decision.target == target and decision.changes and decision.state != "rejected":
                yield _tried(decision, session.repo, "held")
