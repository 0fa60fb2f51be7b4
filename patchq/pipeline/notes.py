"""What was decided on batches, as git notes: `refs/notes/patchq`, shown by
`git log --notes=patchq`.

A record ref and a commit's trailers tell that a batch waits or landed by itself; who decided
otherwise, and when, they do not.  So a decision adds a block to the note on the batch's commit:

    Patchq-Batch: fix-login-42
    Patchq-State: accepted
    Patchq-Time: 2026-01-31T12:00:00+00:00

A commit into which a person squashed several batches has a block for each.  A batch that landed by
itself has no note, so that landing costs no second commit.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from patchq.git import records, refs
from patchq.model.errors import Busy
from patchq.model.report import Report
from patchq.model.values import FileChange, Mode, State
from patchq.pipeline.ground import Ground, flush
from patchq.text.quote import visible

if TYPE_CHECKING:
    from patchq.pipeline.world import World

_TRIES = 10
_DIGITS = 40
_KEYS = ("batch", "state", "target", "agent", "model", "mode", "time", "by", "reason")
_LINE = re.compile(r"Patchq-([A-Z][a-z]+): (.*)")


@dataclass(frozen=True, slots=True)
class Note:
    """One decision; `commit` is the one that the note is on, `time` in ISO 8601."""

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
    """The batch that took this one's place, or took it back."""


def add(world: World, report: Report, reason: str = "") -> None:
    """Note the state of a batch on its commit; one that never had a commit has no note, and what is
    noted already stays as it is.

    Durable on return.  `errors.Busy` if others move the notes all the time.
    """
    commit = report["commit"]
    if not commit or world.repo.resolve_commit(commit) is None:
        return
    now = datetime.fromtimestamp(int(world.clock()), UTC).isoformat()
    note = Note(
        commit, report["id"], report["state"], report["target"], report["agent"], report["model"],
        report["mode"], now, reason or None, report["duplicate_of"],
    )  # fmt: skip
    for _ in range(_TRIES):
        if _put(world, note):
            return
    raise Busy(f"{records.NOTES} is moved by others all the time", "run the command again")


def each(ground: Ground) -> Iterator[Note]:
    """All notes that can be read, each batch's latest one."""
    tip = ground.repo.ref_target(records.NOTES)
    if tip is None:
        return
    tree = ground.repo.tree(tip)
    latest: dict[str, Note] = {}
    for path in tree.paths():
        commit = path.replace("/", "")
        for block in _blocks(tree.read(path)) if len(commit) == _DIGITS else ():
            note = _read(commit, block)
            if note and (note.time or "") >= (latest.get(note.batch, note).time or ""):
                latest[note.batch] = note
    yield from latest.values()


def _put(world: World, note: Note) -> bool:
    """Whether the notes were as this saw them, and so have the note now."""
    repo, who = world.repo, world.identity()
    tip = repo.ref_target(records.NOTES)
    path = _path(world, tip, note.commit)
    before = repo.tree(tip).read(path) if tip and repo.tree(tip).entry(path) else None
    blocks = [(block, _read(note.commit, block)) for block in _blocks(before or b"")]
    if any(read and (read.batch, read.state) == (note.batch, note.state) for _, read in blocks):
        return True
    kept = [block for block, read in blocks if read is None or read.batch != note.batch]
    after = "\n\n".join([*kept, _written(note)]) + "\n"
    changes = [FileChange(path, before, after.encode())]
    log = f"patchq: {note.batch}: {note.state}"
    commit, _ = repo.write_commit(tip, changes, log + "\n", who, who)
    flush(world)
    if tip is None:
        return refs.move(repo, records.NOTES, None, commit, log, who)
    return refs.move(repo, records.NOTES, tip, commit, log, who)


def _path(world: World, tip: str | None, commit: str) -> str:
    """Where the notes have, or get, the one on the commit: git itself spreads them over more
    directories the more there are, and reads any depth."""
    places = [commit[:2] + "/" + commit[2:], commit, f"{commit[:2]}/{commit[2:4]}/{commit[4:]}"]
    tree = world.repo.tree(tip) if tip else None
    return next((place for place in places if tree and tree.entry(place)), places[0])


def _blocks(data: bytes) -> list[str]:
    return [
        block for block in re.split(r"\n{2,}", data.decode("utf-8", "replace").strip("\n")) if block
    ]


def _written(note: Note) -> str:
    """The note as a block of lines."""
    fields = ((key, getattr(note, key)) for key in _KEYS)
    return "\n".join(f"Patchq-{key.title()}: {visible(value)}" for key, value in fields if value)


def _read(commit: str, block: str) -> Note | None:
    """The note that a block is; None for what a person wrote beside it."""
    lines = (_LINE.fullmatch(line) for line in block.split("\n"))
    fields = {line[1].lower(): line[2] for line in lines if line}
    if "batch" not in fields or "state" not in fields:
        return None
    known: dict[str, Any] = {key: value for key, value in fields.items() if key in _KEYS}
    return Note(commit, **known)
