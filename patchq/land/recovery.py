"""After a crash: whether the ref of an intended verdict moved before the process died.

A batch is never applied twice and never forgotten, whatever a person did to the branch meanwhile.
The commit is known to the daemon alone until a ref has it; so it landed if anything at all shows
that a ref had it, and did not if nothing does.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from patchq.formats.envelope.opening import open_response
from patchq.git import records, refs
from patchq.git.reffiles import heads
from patchq.git.repository import Repository
from patchq.land import supersede
from patchq.model.report import Report
from patchq.model.values import Envelope, Problem
from patchq.pipeline.rebase import history
from patchq.pipeline.world import World, flush
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
        commit = _landed_as(report, world) if report else None
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
    report: dict[str, Any] = {**intended, "commit": commit}
    if world.repo.resolve_commit(commit):  # else a person removed it, and git collected it
        report["tree"] = world.repo.tree(commit).root
        log = f"patchq: {report['id']}: recovered"
        refs.create(world.repo, _record(report), commit, log, world.identity())
    return report


def _record(report: Report) -> str:
    """The ref that is made once the verdict's own ref has moved."""
    return (records.WAITING if report["state"] == "proposed" else records.BATCHES) + str(
        report["id"]
    )


def _landed_as(report: Report, world: World) -> str | None:
    """The commit as which the intended batch landed, or None if it did not."""
    repo, commit = world.repo, report["commit"]
    if not commit or report["state"] not in ("applied", "proposed"):
        return None
    proposed = report["state"] == "proposed"
    own, target = f"patchq/{report['id']}", report["target"]
    tips = [repo.branch_tip(name) for name in ((own, target) if proposed else (target,))]
    if any(tip and repo.is_ancestor(commit, tip) for tip in tips):
        return str(commit)
    tip = tips[-1]
    source, base = report["source"]["sha256"], report["base"]["commit"]
    again = history.landed_as(repo, report["id"], source, tip, base) if tip else None
    if again and not proposed:
        return again  # rebased or amended
    seen = again or repo.ref_target(_record(report)) == commit or _in_a_reflog(repo, own, commit)
    return str(commit) if seen else None


def _in_a_reflog(repo: Repository, own: str, commit: str) -> bool:
    """Whether a ref was moved away from the commit, or a renamed or pushed one still has it."""
    for log, value in _reflogs(repo, own):
        text = log.read_bytes()
        if commit.encode() not in text:
            continue
        if value and (_was_at(text, value, commit) or repo.is_ancestor(commit, value)):
            return True
    return False


def _was_at(text: bytes, value: str, commit: str) -> bool:
    """Whether a reflog shows that its ref, now at `value`, was moved away from the commit.

    Lines are written before the ref moves, and several for a group of batches.  So one proves
    something by its old value only, and if all behind it lead from there to where the ref is.
    """
    for line in reversed(text.decode("utf-8", "replace").splitlines()):
        old, new = line[:40], line[41:81]
        if new != value:
            return False
        if old == commit:
            return True
        value = old
    return False


def _reflogs(repo: Repository, own: str) -> Iterator[tuple[Path, str | None]]:
    """Log and value of each work tree's HEAD and of all refs, of the proposals only `own`."""
    for gitdir, ref in heads(repo.commondir):
        if (log := gitdir / "logs/HEAD").is_file():
            yield log, repo.ref_target(ref) if ref else (gitdir / "HEAD").read_text().strip()
    logs = repo.commondir / "logs"
    for where, folders, names in os.walk(logs / "refs"):
        if Path(where) == logs / "refs/heads":
            folders[:] = [name for name in folders if name != "patchq"]
        for log in (Path(where, name) for name in names):
            yield log, repo.ref_target(str(log.relative_to(logs)))
    if (log := logs / "refs/heads" / own).is_file():
        yield log, repo.branch_tip(own)
