"""What the reports say against what the repository has: records, marks, notes, commits, claims."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from patchq.git import records, refs, unwritten, worktree
from patchq.git.files import barrier
from patchq.git.linklock import leftovers
from patchq.git.reffiles import heads
from patchq.hooks.jail.worktree import remove
from patchq.land.recovery import TRIES
from patchq.model.report import LANDED, NOTED, Report, has_commit
from patchq.pipeline import notes, traces
from patchq.pipeline.world import World
from patchq.queue import spool
from patchq.queue.directory import REPORT
from patchq.queue.spool import token_of
from patchq.report import document, message
from patchq.review import from_git, reconcile
from patchq.service.fsck import files
from patchq.service.fsck.damage import Damage
from patchq.service.fsck.files import Batches
from patchq.service.fsck.shapes import aside

_LOG = "patchq: {}: fsck"


def check(world: World, there: Batches) -> Iterator[Damage]:
    """Everything about the refs, the claims, and what crashes left in the git directory."""
    yield from _commits(world, there)
    yield from _marks(world, there)
    yield from _records(world, there)
    yield from _notes(world, there)
    yield from _claims(there.root)
    yield from _tries(there.root)
    yield from _leftovers(world, there.root)


def _commits(world: World, there: Batches) -> Iterator[Damage]:
    """Landed batches whose commit is gone: another one with their trailers may stand for them."""
    for id, report in there.reports.items():
        if report["state"] not in LANDED or not has_commit(report):
            continue
        commit = report["commit"]
        if world.repo.resolve_commit(commit):
            continue
        tip = world.repo.branch_tip(report["target"])
        other = traces.successor(report, world.repo, tip) if tip else None
        mend = partial(_repoint, world, there, report, other) if other else None
        yield Damage(
            "commit.missing",
            id,
            f"commit {commit} of {report['target']} is not in the repository",
            "fetch it from a clone, or `git fsck --lost-found`; the response can be sent again",
            mend,
        )


def _repoint(world: World, there: Batches, report: Report, commit: str) -> None:
    tree = world.repo.tree(commit).root
    files.put(there.folders[report["id"]], {**report, "commit": commit, "tree": tree})


def _marks(world: World, there: Batches) -> Iterator[Damage]:
    """Proposals have a mark that they wait, and marks have a report."""
    marks = _under(world, records.WAITING)
    for id, report in there.reports.items():
        if report["state"] != "proposed" or id in marks or not has_commit(report):
            continue
        if world.repo.resolve_commit(commit := report["commit"]):
            mend = partial(_mark, world, id, commit)
            what = "the batch waits for review, and no ref says so"
            yield Damage("mark.missing", records.waiting(id), what, mend=mend)
    for id, commit in marks.items():
        lost = id not in there.reports and id not in there.broken and id not in there.bodies
        if lost and (found := from_git.load(world, id)) and world.repo.resolve_commit(commit):
            mend = partial(files.put, there.root / "done", found)
            what = "the batch waits for review, and its report is not in the queue"
            yield Damage("report.missing", id, what, mend=mend)
    for waits in traces.waiting(world):
        seen = traces.observe(world, waits)
        if seen.state != "proposed":
            what = f"its report says {waits['state']}, and it is {seen.state}"
            said = f"{what} ({seen.note})" if seen.note else what
            settle = partial(reconcile.reconcile, world)
            yield Damage("state.outdated", waits["id"], said, mend=settle)


def _mark(world: World, id: str, commit: str) -> None:
    refs.create(world.repo, records.waiting(id), commit, _LOG.format(id), world.identity())
    barrier(world.repo.commondir)


def _records(world: World, there: Batches) -> Iterator[Damage]:
    """Every landed batch has its record: those that a report names, and those in the history of
    the targets."""
    repo, found = world.repo, _under(world, records.BATCHES)
    wanted = {
        id: report["commit"]
        for id, report in there.reports.items()
        if report["state"] in LANDED and report["commit"] and repo.resolve_commit(report["commit"])
    }
    waiting = _under(world, records.WAITING)
    for id, commit in _in_history(world).items():
        if id not in waiting:
            wanted.setdefault(id, commit)
    for id, commit in wanted.items():
        old = found.get(id)
        if old is None:
            what = f"the batch landed as {commit[:12]}, and no ref records it"
        elif repo.resolve_commit(old) is None:
            what = f"the record names {old[:12]}, which is not in the repository"
        else:
            continue
        mend = partial(_record, world, id, old, commit)
        yield Damage("record.missing", records.landed(id), what, mend=mend)
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
    found: dict[str, str] = {}
    for _, commit in traces.commits(world.repo, traces.targets(world)):
        if "Patchq-Batch:" in commit.message:
            for id in message.trailers(commit.message).get("Patchq-Batch", []):
                found[id] = commit.oid
    return found


def _record(world: World, id: str, old: str | None, commit: str) -> None:
    ref, log, who = records.landed(id), _LOG.format(id), world.identity()
    if old is None:
        refs.create(world.repo, ref, commit, log, who)
    else:
        refs.move(world.repo, ref, old, commit, log, who)
    barrier(world.repo.commondir)


def _under(world: World, prefix: str) -> dict[str, str]:
    return {name.removeprefix(prefix): oid for name, oid in world.repo.refs(prefix).items()}


def _notes(world: World, there: Batches) -> Iterator[Damage]:
    noted = {note.batch: note.state for note in notes.each(world)}
    for id, report in there.reports.items():
        commit = report["commit"] if report["state"] in NOTED else None
        if commit and noted.get(id) != report["state"] and world.repo.resolve_commit(commit):
            what = f"the batch is {report['state']}, and its note does not say so"
            mend = partial(notes.add, world, report, "noted by fsck")
            yield Damage("note.missing", id, what, mend=mend)


def _claims(root: Path) -> Iterator[Damage]:
    """What stands beside the claims: a held batch whose response is gone can never be decided; one
    whose papers cannot be read is decided anew, under its id."""
    active = root / "active"
    for name in sorted(os.listdir(active)):
        path, report = active / name, _read(active / name)
        token, held = token_of(name), name.endswith(".held")
        if token is None:
            continue
        gone = not (active / f"{token}.body").exists() and not any(active.glob(f"{token}/*"))
        if held and gone:
            yield Damage(
                "claim.empty",
                str(path),
                "a batch is held, and its response is gone",
                f"put the response there as {token}.body, or remove {name}",
            )
        elif (held and not _is_held(active, report)) or (
            report is not None
            and (
                (path.suffix == ".json" and not document.is_whole(report, str(report.get("id"))))
                or (path.suffix == ".asked" and report.keys() < {"asked", "data"})
            )
        ):
            what = "what is noted of a claim is not whole, so its response is to be decided anew"
            yield Damage("claim.broken", str(path), what, mend=partial(aside, root, path))
        elif held and report:
            yield from _held_body(active, token, _read(active / f"{report['id']}{REPORT}"))


def _held_body(active: Path, token: str, report: dict[str, Any] | None) -> Iterator[Damage]:
    """Whether the copy of the response is what the batch was held on; the response as it came
    stands in the claim's directory."""
    body, wanted = active / f"{token}.body", report and report["source"]["sha256"]
    if not body.is_file() or not report or _sum(body) == wanted:
        return
    came = next((path for path in active.glob(f"{token}/*") if _sum(path) == wanted), None)
    yield Damage(
        "body.differs",
        str(body),
        "the response is not the one that the report is on",
        "put the right one there",
        partial(_copy_again, active.parent, came, body) if came else None,
    )


def _copy_again(root: Path, came: Path, body: Path) -> None:
    aside(root, body)
    shutil.copyfile(came, body)


def _sum(path: Path) -> str | None:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else None


def _read(path: Path) -> dict[str, Any] | None:
    return spool.decode(path.read_bytes()) if path.is_file() else None


def _is_held(active: Path, told: dict[str, Any] | None) -> bool:
    """Whether it says of which batch, and since when, and that one has its report."""
    if told is None or not isinstance(told.get("since"), int | float):
        return False
    id = str(told.get("id"))
    report = _read(active / f"{id}{REPORT}")
    return report is not None and document.is_whole(report, id)


def _tries(root: Path) -> Iterator[Damage]:
    """A count of the tries of a claim that is not there any more."""
    folder = root / TRIES
    claims = {token_of(name) for name in os.listdir(root / "active")}
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        if path.name not in claims:
            what = "it counts the tries of a response that has its verdict"
            yield Damage("scrap", str(path), what, mend=partial(path.unlink, missing_ok=True))


def _leftovers(world: World, root: Path) -> Iterator[Damage]:
    """Own files of dead owners in the git directory, and what hooks were given."""
    commondir = world.repo.commondir
    what = "a killed patchq left it, and with it perhaps a lock"
    for own in leftovers(commondir, ".ref"):
        os.close(own.fd)
        yield Damage("scrap", str(own.own), what, mend=partial(refs.clean, commondir))
    for gitdir, _ in heads(commondir):
        for own in leftovers(gitdir, ".index"):
            os.close(own.fd)
            follow = partial(worktree.recover, world.repo, wait=0.0)
            yield Damage("scrap", str(own.own), what, mend=follow)
    objects = commondir / "objects"
    for own in leftovers(objects, ".objects"):
        os.close(own.fd)
        # The file alone is how each process ends that wrote objects.
        if own.beside(".d").exists():
            yield Damage("scrap", str(own.own), what, mend=partial(unwritten.clean, objects))
    for path in sorted((root / "hooks").glob("probe-*")):
        yield Damage("scrap", str(path), "a trial of a hook's jail", mend=partial(remove, path))
