"""The marks of proposals that another machine made, or decided: what the rest looks for here.

A mark says that a batch waits, and at which commit (`records.WAITING`).  Whoever proposes makes it
in his own repository.  Where others propose as well, a feeder follows the reports, and who serves a
branch for now takes the marks over from whoever served it before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress

from patchq.core.model.errors import Unreachable
from patchq.core.model.report import Report, has_commit
from patchq.gate.git import records, refs
from patchq.gate.pipeline.world import World

_LOG_LINE = "patchq: proposed elsewhere"


def follow(world: World, reports: Sequence[Report]) -> None:
    """Have the marks as these reports say."""
    marks = {report["id"]: _commit(report) for report in reports}
    if any(marks.values()):
        with suppress(Unreachable):  # the mark comes with the next change
            world.branches.refresh()
    _put(world, marks, world.repo.refs(records.WAITING))


def catch_up(world: World) -> None:
    """Have the marks of what waits on the branches that this process serves as the queue has them,
    and none of what was decided anywhere.

    What others proposed may have a base on any branch, so all are asked for.  A mark whose commit
    never came to be shared, since who made it died, is where the report is.
    """
    known = world.repo.refs(records.WAITING)
    ids = [name.removeprefix(records.WAITING) for name in known]
    marks = world.queue.proposals(ids)
    if not marks:
        return
    new = {id: to for id, to in marks.items() if known.get(records.WAITING + id) != to}
    if any(new.values()):
        with suppress(Unreachable):
            world.branches.refresh()
    lost = [id for id, commit in new.items() if commit and not world.repo.resolve_commit(commit)]
    for id in lost:
        report = world.queue.load(id)
        new[id] = _commit(report) if report else None
    _put(world, new, known)


def _commit(report: Report) -> str | None:
    return report["commit"] if report["state"] == "proposed" and has_commit(report) else None


def _put(world: World, marks: Mapping[str, str | None], known: Mapping[str, str]) -> None:
    new = dict[str, str | refs.Staged]()
    for id, commit in marks.items():
        name = records.WAITING + id
        now = known.get(name)
        if commit is None and now:
            refs.delete(world.repo, name, now)
        elif commit and commit != now and world.repo.resolve_commit(commit):
            if now:
                refs.move(world.repo, name, now, commit, _LOG_LINE, world.identity())
            else:
                new[name] = commit
    refs.record(world.repo, new, _LOG_LINE, world.identity())
