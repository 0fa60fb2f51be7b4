"""Decisions on batches as git notes: `refs/notes/patchq`, shown by
`git log --notes=patchq`.

A mark and a commit's trailers tell that a batch waits or landed by itself; who decided otherwise,
and when, they do not.  So a decision adds a block to the note on the batch's commit:

    Patchq-Batch: fix-login-42
    Patchq-State: accepted
    Patchq-Time: 2026-01-31T12:00:00+00:00

A proposal that was sent back has one, too, with its review as JSON (`Patchq-Review`); when the
proposal follows its target, the block goes to the note on its new commit.

A commit into which a person squashed several batches has a block for each.  A batch that landed by
itself has no note, so that landing costs no second commit.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from msgspec import DecodeError, Struct, json

from patchq.core.model.values import FileChange, Mode, State
from patchq.core.text.quote import visible
from patchq.gate.errors import Busy
from patchq.gate.git import records, refs
from patchq.gate.pipeline.context import RepoContext, flush
from patchq.gate.report import document
from patchq.gate.report.schema import NOTED, Report, ReviewEntry

if TYPE_CHECKING:
    from patchq.gate.pipeline.session import Session

_TRIES = 10
_DIGITS = 40
_LINE = re.compile(r"Patchq-([A-Z][a-z]+): (.*)")


class Note(Struct, frozen=True):
    """One decision; `commit` is the one that the note is on, `time` in ISO 8601.

    `by` is the batch that took this one's place, or took it back; `review` is what people asked
    for, as JSON, with lines of `commit`.
    """

    commit: str
    batch: str
    state: State
    target: str | None = None
    agent: str | None = None
    model: str | None = None
    mode: Mode | None = None
    time: str | None = None
    reason: str | None = None
    by: str | None = None
    review: str | None = None

    def reviews(self) -> ReviewEntry | None:
        """Return what people asked for, as reports have it; None if it cannot be read."""
        with suppress(DecodeError):
            return json.decode(self.review, type=ReviewEntry) if self.review else None
        return None


_KEYS = Note.__struct_fields__[1:]


def add(session: Session, report: Report, reason: str = "", before: str | None = None) -> None:
    """Write the state of a batch as a note on its commit.

    The note has the comments of its review, too.  A batch that never had a commit has no note, and
    what is noted already stays.  A note on the batch at the commit `before` goes.  Raises
    `errors.Busy` if others move the notes all the time.
    """
    commit = report.commit
    if not commit or session.repo.resolve_commit(commit) is None:
        return
    now = datetime.fromtimestamp(int(session.clock()), UTC).isoformat()
    note = Note(
        commit, report.id, report.state, report.target, report.agent, report.model,
        report.mode, now, reason or None, report.duplicate_of, _printed(report.review),
    )  # fmt: skip
    for _ in range(_TRIES):
        if _put(session, note, before):
            return
    raise Busy(f"{records.NOTES} is moved by others all the time", "run the command again")


def agrees(note: Note, report: Report) -> bool:
    return (note.state, note.review) == (report.state, _printed(report.review))


def _printed(review: ReviewEntry | None) -> str | None:
    return document.printed(review) if review else None


def each(context: RepoContext) -> Iterator[Note]:
    """Yield the notes that can be read, each batch's latest one."""
    tip = context.repo.ref_target(records.NOTES)
    tree = context.repo.tree(tip) if tip else None
    found = list[Note]()
    for path in tree.paths() if tree else ():
        commit = path.replace("/", "")
        blocks = _blocks(tree.read(path)) if tree and len(commit) == _DIGITS else ()
        found += [note for block in blocks if (note := _read(commit, block))]
    # In one second, an end comes last.
    found.sort(key=lambda note: (note.time or "", note.state in NOTED))
    yield from {note.batch: note for note in found}.values()


def _put(session: Session, note: Note, old: str | None) -> bool:
    """Add the note; return True if the notes were as this saw them."""
    repo, who = session.repo, session.identity()
    tip = repo.ref_target(records.NOTES)
    path, before = _stored(session, tip, note.commit)
    known = filter(None, (_read(note.commit, block) for block in _blocks(before)))
    same = (note.batch, note.state, note.review)
    if any((other.batch, other.state, other.review) == same for other in known):
        return True
    changes = [_changed(path, before, note, _written(note))]
    if old and old != note.commit:
        path, before = _stored(session, tip, old)
        changes += [_changed(path, before, note)] if before else []
    log = f"patchq: {note.batch}: {note.state}"
    commit, _ = repo.write_commit(tip, changes, log + "\n", who, who)
    flush(session)
    return refs.move(repo, records.NOTES, tip, commit, log, who)


def _stored(session: Session, tip: str | None, commit: str) -> tuple[str, bytes | None]:
    """Return the path and the text of the note on the commit.

    Git may have it at any of several depths.
    """
    places = [commit[:2] + "/" + commit[2:], commit, f"{commit[:2]}/{commit[2:4]}/{commit[4:]}"]
    tree = session.repo.tree(tip) if tip else None
    path = next((place for place in places if tree and tree.entry(place)), None)
    return path or places[0], tree.read(path) if tree and path else None


def _changed(path: str, before: bytes | None, note: Note, *new: str) -> FileChange:
    """Return the change of a text of notes to these blocks of the batch."""
    blocks = ((block, _read(note.commit, block)) for block in _blocks(before))
    kept = [block for block, other in blocks if other is None or other.batch != note.batch]
    text = "\n\n".join([*kept, *new])
    return FileChange(path, before, f"{text}\n".encode() if text else None)


def _blocks(data: bytes | None) -> list[str]:
    text = (data or b"").decode("utf-8", "replace")
    return [block for block in re.split(r"\n{2,}", text.strip("\n")) if block]


def _written(note: Note) -> str:
    fields = ((key, getattr(note, key)) for key in _KEYS)
    return "\n".join(f"Patchq-{key.title()}: {visible(value)}" for key, value in fields if value)


def _read(commit: str, block: str) -> Note | None:
    """Return the note that a block is; None for text that a person wrote."""
    lines = [line for text in block.split("\n") if (line := _LINE.fullmatch(text))]
    known: dict[str, Any] = {key: line[2] for line in lines if (key := line[1].lower()) in _KEYS}
    return Note(commit, **known) if known.keys() >= {"batch", "state"} else None
