"""Every batch complete: its files in the queue, its place in every register, and what the
repository has of it (marks, notes and commits) as its report says."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from patchq.gate.errors import Unreachable
from patchq.gate.git import records
from patchq.gate.land import reports
from patchq.gate.pipeline import notes, traces
from patchq.gate.pipeline.session import Session
from patchq.gate.queue import spool
from patchq.gate.queue.archive import shard
from patchq.gate.queue.inbox import IGNORED_SUFFIXES
from patchq.gate.queue.layout import PAGE, REPORT
from patchq.gate.queue.spool import Folder, extension
from patchq.gate.report import page
from patchq.gate.report.schema import (
    LANDED,
    NOTED,
    SCHEMA,
    CommittedReport,
    Report,
    SourceEntry,
    has_commit,
    waits_for_its_agent,
)
from patchq.gate.review import from_git
from patchq.gate.service.fsck.entries import Damage, aside, register, set_ref

_OLD_SECONDS = 3600.0
_TEMPORARY = ("active/*.tmp", "*.tmp", "inbox/.*.tmp")
_EMPTY = hashlib.sha256().hexdigest()


@dataclass
class Batches:
    """What `done/` and `rejected/` hold: reports that are whole, by their ids, with their folder,
    and the names of everything else, by what they are."""

    root: Path
    reports: dict[str, Report] = field(default_factory=dict)
    folders: dict[str, Path] = field(default_factory=dict)
    broken: dict[str, Path] = field(default_factory=dict)
    twice: list[str] = field(default_factory=list)
    pages: dict[str, Path] = field(default_factory=dict)
    bodies: dict[str, Path] = field(default_factory=dict)
    scraps: list[Path] = field(default_factory=list)


def read(root: Path) -> Batches:
    """Look through the folders of finished batches, and read every report."""
    found = Batches(root)
    for folder in (root / "done", root / "rejected"):
        for name in sorted(os.listdir(folder)):
            path = folder / name
            if name.endswith(".tmp"):
                found.scraps.append(path)
            elif name.endswith(PAGE):
                found.pages[name.removesuffix(PAGE)] = path
            elif name.endswith(REPORT):
                id, report = name.removesuffix(REPORT), spool.report(path.read_bytes())
                found.twice += [id] if id in found.folders else []
                if report is None or report.id != id:
                    found.broken[id] = path
                else:
                    found.reports[id], found.folders[id] = report, folder
            else:
                found.bodies[name.rpartition(".")[0] or name] = path
    return found


def check(session: Session, there: Batches) -> Iterator[Damage]:
    """Everything about the batches: their files, then what the refs should say of them."""
    yield from _reports(session, there)
    yield from _pages(there)
    yield from _responses(session, there)
    yield from _registers(there)
    for path in (*there.scraps, *(p for glob in _TEMPORARY for p in there.root.glob(glob))):
        if time.time() - path.lstat().st_mtime > _OLD_SECONDS:
            yield Damage("scrap", str(path), "an unfinished file", mend=path.unlink)
    yield from _commits(session, there)
    yield from _unmarked(session, there)
    if session.config.has_cluster:
        return  # the database and the remote's trailers are the record, and the workers follow them
    yield from _unreported(session, there)
    yield from _landed(session, there)
    yield from _notes(session, there)


def _reports(session: Session, there: Batches) -> Iterator[Damage]:
    for id in there.twice:
        yield Damage(
            "report.twice",
            id,
            "done/ and rejected/ both have a report on it",
            f"see git for which is true, and move the other one out of {there.root}",
        )
    for id, path in there.broken.items():
        body = there.bodies.get(id)
        yield Damage(
            "report.broken",
            str(path),
            "the report cannot be read, or is not one of " + SCHEMA,
            "neither git nor a response is left to make it from",
            _restoration(session, there, id, path.parent)
            or (partial(_begin_again, there.root, path, body) if body else None),
        )


def _pages(there: Batches) -> Iterator[Damage]:
    for id, report in there.reports.items():
        path = there.folders[id] / f"{id}{PAGE}"
        if not path.is_file() or not path.stat().st_size:
            yield Damage(
                "page.missing",
                str(path),
                "the report's page is not there",
                mend=partial(_put_page, path.parent, report),
            )


def _responses(session: Session, there: Batches) -> Iterator[Damage]:
    for id, report in there.reports.items():
        source = report.source
        if source.name is None:
            continue  # the report was made from git
        path = there.folders[id] / f"{id}{extension(source.name)}"
        if not os.path.lexists(path):
            yield Damage(
                "body.missing",
                str(path),
                "the response is not there any more",
                "put it there from a backup",
            )
        elif not _same(path, source):
            yield Damage(
                "body.differs",
                str(path),
                "the response is not the one that the report is on",
                "put the right one there",
            )
    for id, path in there.bodies.items():
        if _is_orphan(there, id):
            yield Damage(
                "report.missing",
                str(path),
                "a response without a report",
                mend=_restoration(session, there, id, path.parent)
                or partial(_to_inbox, there.root, path),
            )
    for id, path in there.pages.items():
        if _is_orphan(there, id):
            yield Damage("scrap", str(path), "a page without a report", mend=path.unlink)


def _same(path: Path, source: SourceEntry) -> bool:
    return (
        source.sha256 == _EMPTY  # what was not read has no sum
        or not path.is_file()
        or path.is_symlink()
        or hashlib.sha256(path.read_bytes()).hexdigest() == str(source.sha256)
    )


def _is_orphan(there: Batches, id: str) -> bool:
    """Whether the batch has no report, and no claim by which its verdict is being published."""
    if id in there.reports or id in there.broken:
        return False
    token = register(there.root).token(id)
    if token is None:
        return True
    claim = there.root / "active" / token
    return not any(os.path.exists(f"{claim}{suffix}") for suffix in (".json", ".body"))


def _registers(there: Batches) -> Iterator[Damage]:
    root = there.root
    verdicts = set(spool.verdicts(root)[0])
    sources = {
        path.name: path.read_text(encoding="utf-8", errors="replace").splitlines()
        for path in (root / "sources").iterdir()
    }
    known = register(root)
    for id in known.unknown(sorted({*there.reports, *filter(spool.valid, verdicts)})):
        yield Damage(
            "id.free",
            id,
            "the id is not reserved, so another batch could get it",
            mend=partial(known.restore, id),
        )
    for id, report in there.reports.items():
        sha256 = report.source.sha256
        if id not in verdicts:
            yield Damage(
                "verdict.unlisted",
                id,
                "the register of verdicts lacks it",
                mend=partial(_append, root / spool.VERDICTS, id),
            )
        place, line = root / "sources" / shard(sha256), f"{sha256} {id}"
        if sha256 not in ("", _EMPTY) and line not in sources.get(place.name, ()):
            yield Damage(
                "source.unlisted",
                id,
                "its bytes would not be recognised when they come again",
                mend=partial(_append, place, line),
            )


# ---------------------------------------------------------------- mending


def _restoration(
    session: Session, there: Batches, id: str, folder: Path
) -> Callable[[], object] | None:
    """What puts down the report that git tells, with what the response still tells of itself; None
    where git does not know the batch."""
    report = from_git.load(session, id)
    if report is None:
        return None
    source, body = report.source, there.bodies.get(id)
    if body is not None and body.is_file() and not body.is_symlink():
        source = replace(source, name=body.name, bytes=body.stat().st_size)
    return partial(put, folder, replace(report, source=source))


def put(folder: Path, report: Report) -> None:
    """Write a report and its page."""
    _put_page(folder, report)
    _put(folder / f"{report.id}{REPORT}", spool.encode(report))


def _put_page(folder: Path, report: Report) -> None:
    text = page.to_markdown(report)
    _put(folder / f"{report.id}{PAGE}", text.encode("utf-8", "replace"))


def _begin_again(root: Path, path: Path, body: Path) -> None:
    """Nobody knows the verdict: the response gets another one.  The report is kept, aside."""
    _to_inbox(root, body)
    aside(root, path)


def _to_inbox(root: Path, path: Path) -> None:
    target = root / "inbox" / (path.name + ".txt" * path.name.endswith(IGNORED_SUFFIXES))
    while os.path.lexists(target):
        target = target.with_name(f"again-{target.name}")
    path.rename(target)


def _put(path: Path, data: bytes) -> None:
    with Folder(path.parent, lasting=False) as folder:
        folder.put(path.name, data, flush=True)


def _append(path: Path, line: str) -> None:
    with Folder(path.parent, lasting=False) as folder:
        folder.append(path.name, line)


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
        other = traces.successor(report, session.repo, tip) if tip else None
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
    put(
        there.folders[report.id],
        replace(report, commit=commit, tree=session.repo.tree(commit).root),
    )


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
        lost = id not in there.reports and id not in there.broken and id not in there.bodies
        if lost and (known := from_git.load(session, id)) and session.repo.resolve_commit(commit):
            yield Damage(
                "report.missing",
                id,
                "the batch waits for review, and its report is not in the queue",
                mend=partial(put, there.root / "done", known),
            )
    for report in traces.waiting(session):
        now = traces.observe(session, report)
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
    landed = traces.landed_commits(session)
    for id in register(there.root).unknown(sorted(landed.keys() - there.reports.keys())):
        if spool.valid(id):
            yield Damage(
                "id.free",
                id,
                f"it landed as {landed[id][:12]}, and the queue does not know that",
                mend=partial(from_git.remember, session, {id: landed[id]}),
            )


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
