"""What the reports say against what the repository has: records, marks, notes and commits."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from patchq.git import records
from patchq.model.report import LANDED, NOTED, Report, has_commit
from patchq.pipeline import notes, traces
from patchq.pipeline.world import World
from patchq.report import message
from patchq.review import from_git, reconcile
from patchq.service.fsck import files
from patchq.service.fsck.damage import Damage
from patchq.service.fsck.files import Batches
from patchq.service.fsck.refs import set_ref


def check(world: World, there: Batches) -> Iterator[Damage]:
    """Everything that the refs should say of the batches."""
    yield from _commits(world, there)
    yield from _marks(world, there)
    yield from _records(world, there)
    yield from _notes(world, there)


def _commits(world: World, there: Batches) -> Iterator[Damage]:
    """Landed batches whose commit is gone: another one with their trailers may stand for them."""
    for id, report in there.reports.items():
        if report["state"] not in LANDED or not has_commit(report):
            continue
        if world.repo.resolve_commit(report["commit"]):
            continue
        tip = world.repo.branch_tip(report["target"])
        other = traces.successor(report, world.repo, tip) if tip else None
        yield Damage(
            "commit.missing",
            id,
            f"commit {report['commit']} of {report['target']} is not in the repository",
            "fetch it from a clone, or `git fsck --lost-found`; the response can be sent again",
            partial(_repoint, world, there, report, other) if other else None,
        )


def _repoint(world: World, there: Batches, report: Report, commit: str) -> None:
    tree = world.repo.tree(commit).root
    files.put(there.folders[report["id"]], {**report, "commit": commit, "tree": tree})


def _marks(world: World, there: Batches) -> Iterator[Damage]:
    """Proposals have a mark that they wait, and marks have a report."""
    marks = _under(world, records.WAITING)
    for id, report in there.reports.items():
        commit = report["commit"] if report["state"] == "proposed" else None
        if commit and id not in marks and world.repo.resolve_commit(commit):
            mark, log = records.waiting(id), f"patchq: {id}: fsck"
            yield Damage(
                "mark.missing",
                mark,
                "the batch waits for review, and no ref says so",
                mend=partial(set_ref, world, mark, None, commit, log),
            )
    for id, commit in marks.items():
        lost = id not in there.reports and id not in there.broken and id not in there.bodies
        if lost and (known := from_git.load(world, id)) and world.repo.resolve_commit(commit):
            yield Damage(
                "report.missing",
                id,
                "the batch waits for review, and its report is not in the queue",
                mend=partial(files.put, there.root / "done", known),
            )
    for report in traces.waiting(world):
        now = traces.observe(world, report)
        if now.state != "proposed":
            note = f" ({now.note})" if now.note else ""
            yield Damage(
                "state.outdated",
                report["id"],
                f"its report says {report['state']}, and it is {now.state}{note}",
                mend=partial(reconcile.reconcile, world),
            )


def _records(world: World, there: Batches) -> Iterator[Damage]:
    """Every landed batch has its record: those that a report names, and those in the history of
    the targets."""
    repo, marks, found = world.repo, _under(world, records.WAITING), _under(world, records.BATCHES)
    wanted = {
        id: report["commit"]
        for id, report in there.reports.items()
        if report["state"] in LANDED and report["commit"] and repo.resolve_commit(report["commit"])
    }
    landed = {id: oid for id, oid in _in_history(world).items() if id not in marks}
    wanted |= {id: oid for id, oid in landed.items() if id not in wanted}
    for id, commit in wanted.items():
        old = found.get(id)
        if old is None or repo.resolve_commit(old) is None:
            ref, log = records.landed(id), f"patchq: {id}: fsck"
            yield Damage(
                "record.missing",
                ref,
                f"the record names {old[:12]}, which is not in the repository"
                if old
                else f"the batch landed as {commit[:12]}, and no ref records it",
                mend=partial(set_ref, world, ref, old, commit, log),
            )
    for id, old in found.items():
        if id not in wanted and repo.resolve_commit(old) is None:
            yield Damage(
                "record.dangling",
                records.landed(id),
                f"the record names {old}, which is not in the repository",
                f"fetch the commit from a clone, or: git update-ref -d {records.landed(id)}",
            )


def _in_history(world: World) -> dict[str, str]:
    """The oldest commit of each batch whose trailers are in the history of a target."""
    return {
        id: commit.oid
        for _, commit in traces.commits(world.repo, traces.targets(world))
        if "Patchq-Batch:" in commit.message
        for id in message.trailers(commit.message).get("Patchq-Batch", [])
    }


def _under(world: World, prefix: str) -> dict[str, str]:
    return {name.removeprefix(prefix): oid for name, oid in world.repo.refs(prefix).items()}


def _notes(world: World, there: Batches) -> Iterator[Damage]:
    noted = {note.batch: note.state for note in notes.each(world)}
    for id, report in there.reports.items():
        commit = report["commit"] if report["state"] in NOTED else None
        if commit and noted.get(id) != report["state"] and world.repo.resolve_commit(commit):
            yield Damage(
                "note.missing",
                id,
                f"the batch is {report['state']}, and its note does not say so",
                mend=partial(notes.add, world, report, "noted by fsck"),
            )
