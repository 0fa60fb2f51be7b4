"""After a crash: whether the ref of an intended verdict moved before the process died.

A batch is never applied twice and never forgotten, whatever a person did to the branch meanwhile.
What git remembers of the intended commit (`traces`) decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from patchq.formats.envelope.opening import open_response
from patchq.git import refs
from patchq.land import supersede
from patchq.model.report import Report
from patchq.model.values import Envelope, Problem
from patchq.pipeline import traces
from patchq.pipeline.ground import flush
from patchq.pipeline.world import World
from patchq.queue import Claim
from patchq.queue.spool import disk_faults
from patchq.report import page

MOST_TRIES = 5
"""So many processes may die while they decide on one response."""
TRIES = "tries"
"""Where the queue has a file for each claim that is decided anew, with a byte for each try."""
_DEADLY = Problem(
    "fault.crashed",
    f"patchq died {MOST_TRIES} times while it decided on this response; nothing was applied",
    "send the changes in another form or in smaller parts, and report the defect with the response",
)


def finish(claims: Sequence[Claim], world: World) -> tuple[list[Report], list[Claim]]:
    """Publish the intended verdict of each recovered claim whose ref has moved.

    Returns these verdicts, and the other claims, which are to be decided anew.
    """
    landed: list[tuple[Claim, Report]] = []
    rest: list[Claim] = []
    for claim in claims:
        report = claim.intended
        commit = traces.moved_to(report, world.repo) if report else None
        if report and commit:
            landed.append((claim, _recorded(report, commit, world)))
        else:
            rest.append(claim)
    if landed:
        flush(world)
    for claim, report in landed:
        opened = open_response(claim.data)
        if isinstance(opened, Envelope):
            header = replace(opened.header, retries=report["retry"]["of"])
            supersede.by(report["id"], header, world)
        world.queue.publish(claim, report, page.to_markdown(report))
    return [report for _, report in landed], rest


def once_more(claims: Iterable[Claim], world: World) -> Iterator[Claim]:
    """The claims, to be decided one after the other, each noted while it is: one on which process
    after process dies is refused in the end, and keeps nobody from starting.
    """
    claims = list(claims)
    _forget_others(world.queue_root, {claim.token for claim in claims})
    for claim in claims:
        tries = _note(world.queue_root, claim.token)
        try:
            yield claim if tries < MOST_TRIES else replace(claim, problem=_DEADLY)
        finally:  # a fault is no death
            (world.queue_root / TRIES / claim.token).unlink(missing_ok=True)


@disk_faults
def _forget_others(root: Path, tokens: set[str]) -> None:
    """Remove the marks of claims that have their verdict: their process died while it landed."""
    folder = root / TRIES
    for mark in folder.iterdir() if folder.is_dir() else ():
        if mark.name not in tokens:
            mark.unlink()


@disk_faults
def _note(root: Path, token: str) -> int:
    """Count one process more that decides on the claim; how many did before and died."""
    mark = root / TRIES / token
    tries = mark.stat().st_size if mark.exists() else 0
    mark.parent.mkdir(exist_ok=True)
    mark.write_bytes(b"x" * (tries + 1))
    return tries


def _recorded(intended: Report, commit: str, world: World) -> Report:
    """The report as it is now, with the record made that follows the move of its ref."""
    if not world.repo.resolve_commit(commit):  # a person removed it, and git collected it
        return {**intended, "commit": commit}
    log = f"patchq: {intended['id']}: recovered"
    refs.create(world.repo, traces.ref_of(intended), commit, log, world.identity())
    return {**intended, "commit": commit, "tree": world.repo.tree(commit).root}
