"""Check the queue against the repository, and rebuild each from the other.

Damage is found by looking, whatever caused it.  A response is never deleted: one without a verdict
goes back to the inbox.  Nothing is made up: what neither report nor git knows stays damage, with
what a person can do.

A power cut leaves empty refs.  These hide what is behind them, so they are mended first.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from patchq.gate.errors import Fault, RepositoryFault, Unreachable, UsageError
from patchq.gate.git import files, records, refs
from patchq.gate.git.refs import ref_names, ref_value
from patchq.gate.pipeline import history, notes
from patchq.gate.pipeline.session import Session
from patchq.gate.queue import spool, store
from patchq.gate.queue.engine import StoreQueue, store_queue
from patchq.gate.queue.lock import Lock
from patchq.gate.queue.spool import PAGE, REPORT
from patchq.gate.queue.store import LOST, REPAIR, STORE, UNREAD
from patchq.gate.report.schema import LANDED, NOTED, Report, waits_for_its_agent
from patchq.gate.review import from_git
from patchq.gate.service.check import Finding

_ROUNDS = 3  # a repair may show more: a report that was rebuilt has a note


def check(session: Session) -> list[Finding]:
    """Return all damage that can be seen; what cannot be read hides the rest."""
    return [*_refs(session)] or [*_batches(session, store_queue(session.queue))]


def repair(session: Session) -> list[Finding]:
    """Repair what can be repaired, and return the rest.

    The queue's lock is taken, and kept.
    """
    session.queue.acquire()
    failed: dict[object, Finding] = {}
    for _ in range(_ROUNDS):
        for finding in check(session):
            try:
                if finding.repair and finding.key not in failed:
                    finding.repair()
            except (Fault, OSError) as error:
                fault = error if isinstance(error, Fault) else spool.fault(error)
                why = "; ".join(filter(None, (fault.message, fault.hint)))
                failed[finding.key] = replace(finding, cure=f"not repaired: {why}", repair=None)
        session.queue.sync()
    return [failed.get(finding.key, finding) for finding in check(session)]


def set_aside_store(root: Path) -> list[Finding]:
    """Move a store that cannot be used out of the way."""
    try:
        found = store.there(root)
        why = next(iter(found.problems()), None) if found else None
    except (store.Damaged, UsageError) as fault:
        why = fault.message
    if why is None:
        return []
    lock = Lock(root / "lock")
    lock.acquire()
    try:
        place = spool.set_aside(root, *(root / f"{STORE}{end}" for end in ("-shm", "-wal", "")))
    finally:
        lock.release()
    message = f"{why}; made again from git and the reports"
    return [Finding("store.broken", "todo", message, where=str(place))]


def enter_history(session: Session) -> None:
    """Enter the batches of which git alone knows into a new store.

    Beside a new queue, the landed ones are entered by their ids alone.
    """
    queue = store_queue(session.queue)
    if queue.store.recall(UNREAD) != LOST:
        from_git.remember(session, history.landed_commits(session))
    for finding in _unknown(session, queue):
        if finding.repair:
            finding.repair()
    queue.store.remember(UNREAD, "")


# ---------------------------------------------------------------- refs


def _refs(session: Session) -> Iterator[Finding]:
    commondir = session.repo.commondir
    prefixes = (records.BRANCHES, records.OWN, "refs/notes/")
    try:
        names = [name for prefix in prefixes for name in ref_names(commondir, prefix)]
    except RepositoryFault as fault:
        where = str(commondir / "packed-refs")
        yield Finding("ref.packed", "todo", fault.message, fault.hint, where)
        return
    for name in names:
        try:
            oid = ref_value(commondir, name)
            why = f"the ref names {oid}, which is not in the repository"
        except RepositoryFault as fault:
            oid, why = None, fault.message
        ours = not name.startswith("refs/notes/") or name == records.NOTES
        if ours and (oid is None or session.repo.resolve_commit(oid) is None):
            known = not name.startswith(records.BRANCHES) or _tip(session, name)
            again = partial(_make_again, session, name, oid) if known else None
            cure = f"fetch its commit, or: git update-ref -d '{name}'"
            yield Finding("ref.broken", "todo", why, cure, name, again)


def _make_again(session: Session, name: str, oid: str | None) -> None:
    """Remove a ref, and make a proposal's branch again at once.

    A missing branch would mean that it was discarded.
    """
    if oid:
        refs.delete(session.repo, name, oid)
    else:
        spool.set_aside(session.queue_root, session.repo.commondir / name)
    tip = _tip(session, name)
    if tip and not session.repo.ref_target(name):
        _make_ref(session, name, tip)


def _make_ref(session: Session, name: str, commit: str) -> None:
    refs.move(session.repo, name, None, commit, "patchq: fsck", session.identity())
    files.barrier(session.repo.commondir)


def _tip(session: Session, name: str) -> str | None:
    id = name.removeprefix(records.BRANCHES)
    if id == name or session.repo.ref_target(records.DISCARDED + id):
        return None
    report = session.queue.load(id)
    waits = report.commit if report and report.state == "proposed" else None
    tips = (session.repo.ref_target(records.WAITING + id), waits)
    return next((tip for tip in tips if tip and session.repo.resolve_commit(tip)), None)


# ---------------------------------------------------------------- batches


def _batches(session: Session, queue: StoreQueue) -> Iterator[Finding]:
    for problem in queue.store.problems():
        yield Finding("store.broken", "todo", problem, REPAIR, STORE)
    yield from _files(session, queue)
    reports = (spool.report(batch.report) for batch in queue.batches() if batch.state != "held")
    known = [report for report in reports if report]
    yield from _commits(session, [report for report in known if report.state in LANDED])
    yield from _marks(session, [report for report in known if report.state == "proposed"])
    # In a cluster the database and the remote's trailers are the record, and workers follow them.
    if not session.config.has_cluster:
        yield from _unknown(session, queue)
        yield from _notes(session, known)


def _files(session: Session, queue: StoreQueue) -> Iterator[Finding]:
    root, known = queue.root, set[Path]()
    for batch in queue.batches():
        folder, wanted = queue.outbox.files(batch)
        known.update(folder.path / name for name in wanted)
        for name in folder.wrong(wanted):
            path = folder.path / name
            lost = "missing" if not os.path.lexists(path) else "differs"
            yield Finding(
                f"file.{lost}",
                "todo",
                f"the file is not there as patchq wrote it ({lost})",
                None,
                str(path),
                partial(queue.outbox.show, batch),
            )
    for path in (path for name in ("done", "rejected") for path in sorted((root / name).iterdir())):
        end = next((end for end in (REPORT, PAGE) if path.name.endswith(end)), "")
        id = path.name.removesuffix(end) if end else path.stem
        if path not in known and path.suffix != ".tmp" and not queue.knows(id):
            yield Finding(
                "file.unknown",
                "todo",
                "the store does not know the change of this file",
                None,
                str(path),
                partial(_enter, session, queue, id, path),
            )


def _enter(session: Session, queue: StoreQueue, id: str, path: Path) -> None:
    """Enter the batch of a file by its report, or else by git.

    Without either, a response goes to the inbox, and what is none is moved aside.
    """
    if queue.knows(id):
        return
    if found := queue.outbox.published_as(path.with_name(id + REPORT)):
        queue.restore(*found)
    elif known := from_git.reports(session, [id]):
        queue.restore(known[id][0], None)
    elif path.name.endswith((REPORT, PAGE)):
        spool.set_aside(queue.root, path)
    else:
        target = queue.root / "inbox" / path.name
        while os.path.lexists(target):
            target = target.with_name(f"again-{target.name}")
        path.rename(target)


def _commits(session: Session, known: list[Report]) -> Iterator[Finding]:
    with suppress(Unreachable):  # what landed from another machine need not be fetched yet
        session.branches.refresh()
    there: dict[str, frozenset[str]] = {}
    for report in known:
        tip = session.branches.tip(report.target) if report.target else None
        if tip is None or report.commit is None:
            continue
        if tip not in there:
            there[tip] = frozenset(commit.oid for commit in session.repo.commits(tip))
        if report.commit in there[tip]:
            continue
        if session.repo.resolve_commit(report.commit):
            now = history.examine(session, report)
            if now.state == "reverted":
                why = f"its report says {report.state}, and {now.note}"
                yield Finding("commit.gone", "todo", why, f"patchq retry {report.id}", report.id)
        elif history.successor(report, session.repo, tip) is None:
            yield Finding(
                "commit.missing",
                "todo",
                f"commit {report.commit} of {report.target} is not in the repository",
                "fetch it from a clone, or `git fsck --lost-found`; or send the response again",
                report.id,
            )


def _marks(session: Session, proposals: list[Report]) -> Iterator[Finding]:
    marks = session.repo.refs(records.WAITING)
    for report in proposals:
        mark, commit = records.WAITING + report.id, report.commit
        if mark not in marks and commit and session.repo.resolve_commit(commit):
            yield Finding(
                "mark.missing",
                "todo",
                "the change waits for review, and no ref says so",
                None,
                mark,
                partial(_make_ref, session, mark, commit),
            )


def _unknown(session: Session, queue: StoreQueue) -> Iterator[Finding]:
    waiting = {name.removeprefix(records.WAITING) for name in session.repo.refs(records.WAITING)}
    for id in sorted(waiting | history.landed_commits(session).keys()):
        known = not spool.valid(id) or queue.knows(id)
        for report, _ in from_git.reports(session, () if known else [id]).values():
            yield Finding(
                "batch.unknown",
                "todo",
                f"git has the change as {report.state}, and the queue does not know it",
                None,
                id,
                partial(queue.restore, report, None),
            )


def _notes(session: Session, known: list[Report]) -> Iterator[Finding]:
    noted = {note.batch: note for note in notes.each(session)}
    for report in known:
        asked, note = waits_for_its_agent(report), noted.get(report.id)
        says = note is not None and (
            notes.agrees(note, report) if asked else note.state == report.state
        )
        due = report.commit if asked or report.state in NOTED else None
        if due and not says and session.repo.resolve_commit(due):
            add = partial(notes.add, session, report, "noted by fsck")
            yield Finding(
                "note.missing",
                "todo",
                f"its note does not say that it is {'sent back' if asked else report.state}",
                None,
                report.id,
                add,
            )
