"""The marks of proposals that another machine made, or decided: what the rest looks for here.

A mark says that a batch waits, and at which commit (`records.WAITING`).  Whoever proposes makes it
in his own repository.  Where others propose as well, a feeder follows the reports, and who serves a
branch for now takes the marks over from whoever served it before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress

from patchq.gate.errors import Unreachable
from patchq.gate.git import records, refs
from patchq.gate.pipeline.session import Session
from patchq.gate.report.schema import Report, has_commit

_LOG_LINE = "patchq: proposed elsewhere"


def follow(session: Session, reports: Sequence[Report]) -> None:
    """Have the marks as these reports say."""
    marks = {report.id: _commit(report) for report in reports}
    if any(marks.values()):
        with suppress(Unreachable):  # the mark comes with the next change
            session.branches.refresh()
    _put(session, marks, session.repo.refs(records.WAITING))


def catch_up(session: Session) -> None:
    """Have the marks of what waits on the branches that this process serves as the queue has them,
    and none of what was decided anywhere.

    What others proposed may have a base on any branch, so all are asked for.  A mark whose commit
    never came to be shared, since who made it died, is where the report is.
    """
    known = session.repo.refs(records.WAITING)
    ids = [name.removeprefix(records.WAITING) for name in known]
    marks = session.queue.proposals(ids)
    if not marks:
        return
    new = {id: to for id, to in marks.items() if known.get(records.WAITING + id) != to}
    if any(new.values()):
        with suppress(Unreachable):
            session.branches.refresh()
    lost = [id for id, commit in new.items() if commit and not session.repo.resolve_commit(commit)]
    for id in lost:
        report = session.queue.load(id)
        new[id] = _commit(report) if report else None
    _put(session, new, known)


def _commit(report: Report) -> str | None:
    return report.commit if report.state == "proposed" and has_commit(report) else None


def _put(session: Session, marks: Mapping[str, str | None], known: Mapping[str, str]) -> None:
    for id, commit in marks.items():
        name = records.WAITING + id
        now = known.get(name)
        if commit is None and now:
            refs.delete(session.repo, name, now)
        elif commit and commit != now and session.repo.resolve_commit(commit):
            refs.move(session.repo, name, now, commit, _LOG_LINE, session.identity())
