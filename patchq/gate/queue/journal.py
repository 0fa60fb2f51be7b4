"""What happened, in its order: the journal that everybody who follows the queue reads.

A line is added right after the change that it tells of can be seen, so nothing is told that did not
happen; the reports stay the truth.  Who may die between the two (a command; the daemon, whose lock
tells that it died) leaves a mark: an intent before the change, or the register of verdicts.
`untold` compares what is marked so with the reports, and has told what was not.

An event's id is 16 hexadecimal digits, the nanoseconds of the clock, or one more than the id before
it where that is larger; so ids are in the order of the lines, and go on behind a restart, a lost
tail, or a clock that was set.  The journal is two files at most: a full one becomes `events.1`.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import takewhile
from pathlib import Path
from typing import Any, TypedDict

from patchq.gate.git.files import append, flock, opened
from patchq.gate.queue.spool import Folder, decode
from patchq.gate.report.schema import (
    EVENT_KINDS,
    EventKind,
    Moment,
    Report,
    kind_of,
    waits_for_its_agent,
)

EVENTS, BEFORE = "events", "events.1"
SCHEMA = "patchq.event/1"
MOST_BYTES = 1 << 20
"""A journal of this size becomes the one before; the one before that goes."""
_OPEN = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK
_LONGEST_SECONDS = 1.0
"""For so long one waits for others who write, before one writes beside them."""
_TAIL = 64
_JSON = json.JSONEncoder(separators=(",", ":"))
_MOST_CODES = 10
_FIRST = "0" * 16
Entry = dict[str, Any]


class Event(TypedDict):
    """One change of state, `patchq.event/1`; what is not known is null or empty."""

    schema: str
    id: str
    at: dict[str, Any]
    kind: EventKind
    batch: str
    state: str | None
    source: str | None
    agent: str | None
    target: str | None
    branch: str | None
    commit: str | None
    other: str | None
    codes: Sequence[str]


def differs(before: Report | None, after: Report) -> bool:
    """Whether the step from one report on a batch to the next is an event: each time that somebody
    asks for changes is one."""
    return _sign(before) != _sign(after)


def _sign(report: Report | None) -> tuple[EventKind | None, Moment | None]:
    asked = report.review if report and waits_for_its_agent(report) else None
    return kind_of(report) if report else None, asked.at if asked else None


def claimed(batch: str) -> Entry:
    return {"kind": "claimed", "batch": batch}


def entry(report: Report) -> Entry:
    """The event that the batch has come to the state that the report tells."""
    codes = dict.fromkeys(problem.code for problem in report.problems)
    said = {
        "kind": kind_of(report),
        "batch": report.id,
        "source": report.source.name,
        **{key: getattr(report, key) for key in ("state", "agent", "target", "branch", "commit")},
        "other": report.duplicate_of,
        "codes": list(codes)[:_MOST_CODES],
    }
    return {key: value for key, value in said.items() if value}


class Journal:
    """The journal in the folder `base`; several processes write it at once."""

    def __init__(self, base: Folder) -> None:
        self._base = base
        self._held_back: list[Entry] = []
        self._since = _FIRST
        """The id that an event would have had when the first of these was held back."""

    def begin(self) -> None:
        """Have a journal, so that `untold` finds what is held back now and never told."""
        with self._locked():
            pass

    def hold_back(self, entry: Entry) -> None:
        """Tell of it together with what comes next."""
        if not self._held_back:
            self._since = f"{time.time_ns():016x}"
        self._held_back.append(entry)

    def _due(self) -> list[Entry]:
        """What was held back; but of no batch of which another process has told more meanwhile."""
        held, self._held_back = self._held_back, []
        lines = backwards(self._base) if held else ()
        meanwhile = takewhile(lambda line: line["id"] > self._since, lines)
        told = {line["batch"] for line in meanwhile if line.get("kind") is not None}
        return [entry for entry in held if entry["batch"] not in told]

    def note(self, *entries: Entry) -> None:
        """Tell of what can be seen now."""
        with self._locked() as fd:
            _write(fd, [*self._due(), *entries])

    def note_held_back(self) -> None:
        """Tell of what is held back, if anything is."""
        if self._held_back:
            self.note()

    @contextlib.contextmanager
    def telling(self, report: Report, *, marked: bool, later: bool = False) -> Iterator[None]:
        """Tell of the report once the block has let it be seen; `marked`: whether the register
        tells who was killed in between what he left; `later`: `note_held_back` follows soon."""
        mark = None
        if not marked:
            with self._locked() as fd:
                mark = _write(fd, [{"kind": None, "batch": report.id}])
        yield
        if mark is None:
            (self.hold_back if later else self.note)(entry(report))
            return
        with self._locked() as fd:
            if not self._told(report.id, after=mark):
                _write(fd, [*self._due(), entry(report)])

    def complete(self, missing: Callable[[Iterator[Entry]], Sequence[Entry]]) -> None:
        """Add what `missing` makes of the lines, the last one first; nobody adds any meanwhile."""
        if self._base.status(EVENTS) is not None:
            with self._locked() as fd:
                _write(fd, missing(backwards(self._base)))

    def _told(self, batch: str, *, after: str) -> bool:
        """Whether somebody told of the batch since that id, who took this process for dead."""
        for line in backwards(self._base):
            if line["id"] <= after:
                return False
            if line.get("batch") == batch and line["kind"] is not None:
                return True
        return False

    @contextlib.contextmanager
    def _locked(self) -> Iterator[int]:
        """The journal, for this process alone; a full one makes room for a new one."""
        folder = self._base.fd
        for _ in range(10):
            with contextlib.ExitStack() as stack:
                try:
                    fd = stack.enter_context(opened(EVENTS, _OPEN, folder))
                except PermissionError:  # root, or another user, began it
                    self._base.move(EVENTS, self._base, BEFORE)
                    continue
                flock(fd, _LONGEST_SECONDS)
                size = os.fstat(fd).st_size
                if not _stands(fd, folder):
                    continue  # somebody else has put it away
                if size >= MOST_BYTES:
                    self._base.move(EVENTS, self._base, BEFORE)
                    continue
                if not size:
                    self._begin(fd)
                yield fd
                return
        raise OSError(f"the journal {EVENTS} is replaced again and again")

    def _begin(self, fd: int) -> None:
        self._base.share(fd)
        newest = next(backwards(self._base), None)
        after = newest["id"] if newest else _FIRST
        _write(fd, [{"schema": SCHEMA, "after": after}], after)


def _stands(fd: int, folder: int) -> bool:
    """Whether this is the journal that others would open now."""
    with contextlib.suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(fd), os.lstat(EVENTS, dir_fd=folder))
    return False


def _write(fd: int, entries: Sequence[Entry], after: str = _FIRST) -> str:
    """Add the entries, each with its id, behind that one; the last one's.  The lock is held."""
    size = os.fstat(fd).st_size
    tail = os.pread(fd, _TAIL, max(0, size - _TAIL))
    number = last = max(time.time_ns(), int(_id_at_end(tail) or after, 16) + 1)
    lines = []
    for number, entry in enumerate(entries, last):
        lines.append(_JSON.encode({**entry, "id": f"{number:016x}"}))
    if lines:
        torn = "\n" * (size > 0 and not tail.endswith(b"\n"))
        append(fd, (torn + "\n".join([*lines, ""])).encode())
    return f"{number:016x}"


def _id_at_end(tail: bytes) -> str | None:
    """The id stands last in every line."""
    end = tail.rpartition(b'"id":"')[2]
    try:
        return f"{int(end[:16], 16):016x}" if end[16:] == b'"}\n' else None
    except ValueError:
        return None


def backwards(base: Folder) -> Iterator[Entry]:
    """The lines of the journal, the last one first."""
    newest = "g"
    for name in (EVENTS, BEFORE):  # of which one may become the other meanwhile
        for text in base.backwards(name):
            line = decode(text.encode("utf-8", "replace"))
            if line and _is_id(line.get("id")) and line["id"] < newest:
                newest = line["id"]
                yield line


def _is_id(value: object) -> bool:
    return isinstance(value, str) and re.fullmatch(r"[0-9a-f]{16}", value) is not None


def event(line: Entry) -> Event | None:
    """What a line of the journal tells; None for a mark."""
    if line.get("kind") not in EVENT_KINDS:
        return None
    seconds = int(line["id"], 16) / 10**9
    iso = datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
    return {
        "schema": SCHEMA,
        "id": line["id"],
        "at": {"unix": round(seconds, 6), "iso": iso.replace("+00:00", "Z")},
        "kind": line["kind"],
        "batch": line["batch"],
        "state": line.get("state"),
        "source": line.get("source"),
        "agent": line.get("agent"),
        "target": line.get("target"),
        "branch": line.get("branch"),
        "commit": line.get("commit"),
        "other": line.get("other"),
        "codes": line.get("codes", []),
    }


class Events:
    """The events of the queue at `root` as they come: those behind the id `since`; from now on,
    where that is None.  It takes nothing, makes nothing, and need not be told that it is not
    needed any more but by `close`."""

    def __init__(self, root: Path, since: str | None = None) -> None:
        self._base = Folder(root, lasting=False)
        self._seen = since if since is not None else _last(self._base)
        self.lost = False
        """Whether the journal begins behind what was asked for."""

    @property
    def last(self) -> str:
        """The id behind which it goes on."""
        return self._seen

    def read(self, most: int | None = None) -> list[Event]:
        """What came since the last call, the oldest first; of more than `most` the first ones."""
        lines: list[Entry] = []
        oldest: Entry | None = None
        for line in backwards(self._base):
            oldest = line
            if line["id"] <= self._seen:
                break
            lines.append(line)
        else:
            before = oldest.get("after", _FIRST) if oldest else _FIRST
            self.lost |= self._seen < before
        told = [found for line in reversed(lines) if (found := event(line))]
        cut = told if most is None else told[:most]
        if lines:
            self._seen = lines[0]["id"] if len(cut) == len(told) else cut[-1]["id"]
        return cut

    def newest(self, most: int) -> tuple[list[Event], int]:
        """The last events, the oldest of them first, and how many the journal has before them."""
        told, more = list[Event](), 0
        for line in backwards(self._base):
            if (found := event(line)) and len(told) < most:
                told.append(found)
            elif found:
                more += 1
        return told[::-1], more

    def close(self) -> None:
        self._base.close()


def _last(base: Folder) -> str:
    with contextlib.suppress(FileNotFoundError):
        return next((line["id"] for line in backwards(base)), _FIRST)
    return _FIRST
