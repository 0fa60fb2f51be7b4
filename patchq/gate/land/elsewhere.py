"""Work of other machines: the branches that they move, and the marks of their proposals.

A mark says that a batch waits, and at which commit (`records.WAITING`).  Whoever proposes makes it
in his own repository.  Where others propose as well, a feeder follows the reports, and who serves a
branch for now takes the marks over from whoever served it before.

Most responses speak of their own target alone.  Where several processes serve a branch each, to
fetch the others as well would be to fetch what these land, once for each process.  So only what
speaks of others has all of them asked for.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress

from patchq.core.formats.envelope.front_matter import header_of
from patchq.gate.errors import Unreachable
from patchq.gate.git import records, refs
from patchq.gate.pipeline.process import lane_of
from patchq.gate.pipeline.session import Session, recorded
from patchq.gate.queue import Claim
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
    """Bring the marks of waiting batches in line with the queue.

    The marks on the branches that this process serves are set, and those of batches decided
    anywhere are removed.  What others proposed may have a base on any branch, so all are asked for.
    A mark whose commit was never shared, since the process that made it died, is set to the commit
    of the report.
    """
    if not session.config.has_cluster:
        return
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


_ID = re.compile(r"[0-9a-fA-F]{40}")


def lanes(claims: Iterable[Claim], session: Session) -> Collection[str] | None:
    """Return the branches on which the verdicts depend; None: all of them."""
    found = set[str]()
    for claim in claims if session.serves else ():
        header, chosen = header_of(claim.data), recorded(claim)
        base = header.base or ""
        known = _ID.fullmatch(base) and session.repo.resolve_commit(base)
        if claim.request or header.depends_on or header.retries or (base and not known):
            return None
        found.add(lane_of(claim.data, session.target, session.config.targets))
        others = chosen and chosen.target, claim.intended and claim.intended.target
        found |= {name for name in others if name}
    return found or None
