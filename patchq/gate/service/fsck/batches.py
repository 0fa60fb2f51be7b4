"""Every batch complete: its files as the store has them, and what the repository has of it
(marks, notes and commits) as its report says."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from glob import escape
from pathlib import Path

from msgspec.structs import replace

from patchq.gate.errors import Unreachable
from patchq.gate.git import records
from patchq.gate.land import reports
from patchq.gate.pipeline import history, notes
from patchq.gate.pipeline.session import Session
from patchq.gate.queue import spool
from patchq.gate.queue.archive import LOST, UNREAD
from patchq.gate.queue.engine import StoreQueue, store_queue
from patchq.gate.queue.inbox import IGNORED_SUFFIXES
from patchq.gate.queue.layout import PAGE, REPORT
from patchq.gate.queue.outbox import BatchFiles
from patchq.gate.queue.store import REPAIR, STORE
from patchq.gate.report import page
from patchq.gate.report.schema import (
    LANDED,
    NOTED,
    CommittedReport,
    Report,
    has_commit,
    waits_for_its_agent,
)
from patchq.gate.review import from_git
from patchq.gate.service.fsck.entries import Damage, aside, set_ref

_OLD_SECONDS = 3600.0
_TEMPORARY = ("*/*.tmp", "*.tmp", "inbox/.*.tmp")


@dataclass
class Batches:
    """What the store knows, `shown`, and the files in done/ and rejected/ that are none of that."""

    root: Path
    queue: StoreQueue
    reports: dict[str, Report] = field(default_factory=dict)
    shown: list[BatchFiles] = field(default_factory=list)
    strays: list[Path] = field(default_factory=list)


def read(session: Session) -> Batches:
    """Read the store, and the names in the folders of finished batches."""
    queue = store_queue(session.queue)
    found = Batches(queue.root, queue, shown=list(queue.batches()))
    known = set()
    for batch in found.shown:
        if not batch.held:
            found.reports[batch.report.id] = batch.report
        known.update(queue.files(batch))
    for folder in (found.root / "done", found.root / "rejected"):
        found.strays += [path for path in sorted(folder.iterdir()) if path not in known]
    return found


def check(session: Session, there: Batches) -> Iterator[Damage]:
    """Everything about the batches: their files, then what the refs should say of them."""
    for problem in there.queue.problems():
        yield Damage("store.broken", STORE, problem, REPAIR)
    for batch in there.shown:
        yield from _files(there.queue, batch)
    for path in there.strays:
        yield from _stray(session, there, path)
    for path in (path for glob in _TEMPORARY for path in there.root.glob(glob)):
        if time.time() - path.lstat().st_mtime > _OLD_SECONDS:
            yield Damage("scrap", str(path), "an unfinished file", mend=path.unlink)
    yield from _commits(session, there)
    yield from _unmarked(session, there)
    if session.config.has_cluster:
        return  # the database and the remote's trailers are the record, and the workers follow them
    yield from _unreported(session, there)
    yield from _landed(session, there)
    yield from _notes(session, there)


def _files(queue: StoreQueue, batch: BatchFiles) -> Iterator[Damage]:
    """Files of a batch that are not as the store has them."""
    for path in queue.wrong(batch):
        kind = "report" if path.name.endswith(REPORT) else "body"
        kind = "page" if path.name.endswith(PAGE) else kind
        there = os.path.lexists(path)
        yield Damage(
            f"{kind}.{'differs' if there else 'missing'}",
            str(path),
            "the file is not the one that patchq wrote" if there else "the file is not there",
            mend=partial(queue.show, batch),
        )


def _stray(session: Session, there: Batches, path: Path) -> Iterator[Damage]:
    """A file of a batch that the store does not have there."""
    name = path.name
    id = next((name.removesuffix(end) for end in (REPORT, PAGE) if name.endswith(end)), path.stem)
    if there.queue.knows(id):
        if name.endswith((REPORT, PAGE)):
            message = "the batch has no such report: the store, or its retention, says otherwise"
            yield Damage(
                "report.foreign", str(path), message, mend=partial(aside, there.root, path)
            )
    elif name.endswith(REPORT) and (found := there.queue.published(path)):
        again = partial(there.queue.restore, found.report, found.page, found.body, found.ended)
        yield Damage("report.unknown", str(path), "the store does not know the batch", mend=again)
    elif name.endswith(REPORT):
        mend = _restoration(session, there, id, path) or partial(aside, there.root, path)
        yield Damage("report.broken", str(path), "the report cannot be read", mend=mend)
    elif name.endswith(PAGE):
        yield Damage("scrap", str(path), "a page without a report", mend=path.unlink)
    elif not name.endswith(".tmp") and not path.with_name(id + REPORT).exists():
        mend = _restoration(session, there, id, path) or partial(_to_inbox, there.root, path)
        yield Damage("report.missing", str(path), "a response without a report", mend=mend)


# ---------------------------------------------------------------- mending


def _restoration(
    session: Session, there: Batches, id: str, path: Path
) -> Callable[[], object] | None:
    """Return what enters the batch that git tells of, with its response; None without one."""
    report = from_git.load(session, id)
    if report is None:
        return None
    found = (each for each in path.parent.glob(f"{escape(id)}.*") if each.stem == id)
    body = next((each for each in found if each.is_file() and not each.is_symlink()), None)
    if body is not None:
        size = body.stat().st_size
        report = replace(report, source=replace(report.source, name=body.name, bytes=size))
    return partial(_restore, there.queue, report, body)


def _restore(queue: StoreQueue, report: Report, body: Path | None = None) -> None:
    queue.restore(report, _page(report), body.read_bytes() if body else None)


def _page(report: Report) -> bytes:
    return page.to_markdown(report).encode("utf-8", "replace")


def _to_inbox(root: Path, path: Path) -> None:
    target = root / "inbox" / (path.name + ".txt" * path.name.endswith(IGNORED_SUFFIXES))
    while os.path.lexists(target):
        target = target.with_name(f"again-{target.name}")
    path.rename(target)


def _commits(session: Session, there: Batches) -> Iterator[Damage]:
    """Landed batches whose commit is gone: another one with their trailers may stand for them.

    What landed on a remote, perhaps from another machine, need not have been fetched yet.
    """
    missing = [*_missing(session, there)]
    if missing and session.branches.remote:
        try:
            session.branches.refresh()
        except Unreachable as away:
            message = f"{len(missing)} commits of landed batches are not here, and {away.message}"
            yield Damage("commit.unknown", missing[0][0], message, away.hint or "")
            return
        missing = [*_missing(session, there)]
    for id, report in missing:
        tip = session.branches.tip(report.target)
        other = history.successor(report, session.repo, tip) if tip else None
        yield Damage(
            "commit.missing",
            id,
            f"commit {report.commit} of {report.target} is not in the repository",
            "fetch it from a clone, or `git fsck --lost-found`; the response can be sent again",
            partial(_repoint, session, there, report, other) if other else None,
        )


def _missing(session: Session, there: Batches) -> Iterator[tuple[str, CommittedReport]]:
    for id, report in there.reports.items():
        if report.state not in LANDED or not has_commit(report):
            continue
        if not session.repo.resolve_commit(report.commit):
            yield id, report


def _repoint(session: Session, there: Batches, report: Report, commit: str) -> None:
    tree = session.repo.tree(commit).root
    now = replace(report, commit=commit, tree=tree)
    there.queue.rewrite(now, page.to_markdown(now))


def _unmarked(session: Session, there: Batches) -> Iterator[Damage]:
    """Proposals have a mark that they wait."""
    marks = _under(session, records.WAITING)
    for id, report in there.reports.items():
        commit = report.commit if report.state == "proposed" else None
        if commit and id not in marks and session.repo.resolve_commit(commit):
            mark = records.WAITING + id
            yield Damage(
                "mark.missing",
                mark,
                "the batch waits for review, and no ref says so",
                mend=partial(set_ref, session, mark, None, commit, f"patchq: {id}: fsck"),
            )


def _unreported(session: Session, there: Batches) -> Iterator[Damage]:
    """Marks have a report, which says what became of the proposal."""
    for id, commit in _under(session, records.WAITING).items():
        if (
            not there.queue.knows(id)
            and (known := from_git.load(session, id))
            and session.repo.resolve_commit(commit)
        ):
            yield Damage(
                "report.missing",
                id,
                "the batch waits for review, and its report is not in the queue",
                mend=partial(_restore, there.queue, known),
            )
    for report in history.waiting(session):
        now = history.observe(session, report)
        if now.state != "proposed":
            note = f" ({now.note})" if now.note else ""
            yield Damage(
                "state.outdated",
                report.id,
                f"its report says {report.state}, and it is {now.state}{note}",
                mend=partial(reports.reconcile, session),
            )


def _landed(session: Session, there: Batches) -> Iterator[Damage]:
    """Every batch in the history of the targets is known here, so no other gets its id."""
    landed = history.landed_commits(session)
    for id in sorted(landed):
        if spool.valid(id) and not there.queue.knows(id):
            yield Damage(
                "id.free",
                id,
                f"it landed as {landed[id][:12]}, and the queue does not know that",
                mend=partial(from_git.remember, session, {id: landed[id]}),
            )


def enter_history(session: Session, queue: StoreQueue) -> None:
    """Enter the batches of which git alone knows.

    Beside a new queue, the landed ones are entered by their ids alone.
    """
    landed, waiting = history.landed_commits(session), _under(session, records.WAITING)
    for id in (*landed, *waiting) if queue.recall(UNREAD) == LOST else waiting:
        if not queue.knows(id) and (report := from_git.load(session, id)):
            _restore(queue, report)
    from_git.remember(session, landed)


def _under(session: Session, prefix: str) -> dict[str, str]:
    return {name.removeprefix(prefix): oid for name, oid in session.repo.refs(prefix).items()}


def _notes(session: Session, there: Batches) -> Iterator[Damage]:
    noted = {note.batch: note for note in notes.each(session)}
    for id, report in there.reports.items():
        decided = report.state in NOTED or waits_for_its_agent(report)
        commit = report.commit if decided else None
        note = noted.get(id)
        says = note is not None and note.state == report.state
        if note and says and waits_for_its_agent(report):
            says = note.says(report.review)
        if commit and not says and session.repo.resolve_commit(commit):
            yield Damage(
                "note.missing",
                id,
                f"the batch is {_state(report)}, and its note does not say so",
                mend=partial(notes.add, session, report, "noted by fsck"),
            )


def _state(report: Report) -> str:
    return "sent back" if waits_for_its_agent(report) else report.state
