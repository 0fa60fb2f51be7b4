"""Batches whose report the queue gave up (`retention`): what git remembers where the work asks.

A second delivery of the same bytes, and a batch that depends on another one, are judged by the
report of the first.  Where that is gone, the record ref, the trailers of its commit and the notes
say whether it landed.  A refused or discarded batch leaves nothing to judge by, so the same bytes
are tried again then, which is what its agent asked for.
"""

from __future__ import annotations

from patchq.git import records
from patchq.model.report import Report
from patchq.pipeline import notes
from patchq.pipeline.rebase import history
from patchq.pipeline.world import World
from patchq.report import message

_DISCARDED = "refs/patchq/discarded/"


def state(world: World, id: str) -> str | None:
    """The state of a batch that landed once, or waited and was discarded; None for any other."""
    places = ((records.BATCHES, "applied"), (_DISCARDED, "discarded"))
    found = (first for place, first in places if world.repo.ref_target(place + id))
    first = next(found, None)
    if first is None:
        return None
    said = next((note.state for note in notes.each(world) if note.batch == id), first)
    return "discarded" if said == "superseded" else said


def landed(world: World, id: str, sha256: str, target: str | None, tip: str) -> Report | None:
    """What a report on the batch would say now, as far as `history.standing` asks, if these bytes
    landed as the batch and are in the history of `tip`; else None."""
    commit = world.repo.ref_target(records.BATCHES + id)
    if commit is None or world.repo.resolve_commit(commit) is None:
        return None
    told = message.trailers(world.repo.message(commit))
    if f"sha256:{sha256}" not in told.get("Patchq-Source", []):
        return None
    parents = world.repo.parents(commit)
    bases = [*told.get("Patchq-Base", []), *parents, commit]
    report = {
        "id": id,
        "state": state(world, id),
        "commit": commit,
        "target": target,
        "source": {"sha256": sha256},
        "base": {"commit": bases[0]},
    }
    return report if tip and history.landing(report, world.repo, tip) else None
