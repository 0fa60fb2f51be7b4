"""What nobody told the journal of, since who did it died in between.

A verdict is in the register before it can be seen, and a command writes an intent into the journal
before it changes anything; so whatever may be missing is known, and the reports tell what is.

So that who starts often looks at little, a start that found much to look through leaves a summary
in the journal: up to a place in the register all is told of, but for the claims that go on, of
which it has what was told last; and nobody's intent before it is open.  Who comes next looks no
further.  A power cut may take lines from before a summary, so one of an earlier start of the
machine counts for nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice

from msgspec import Struct

from patchq.gate.errors import Fault
from patchq.gate.git.files import boot
from patchq.gate.queue import spool
from patchq.gate.queue.journal import Entry, entry
from patchq.gate.queue.spool import Folder
from patchq.gate.report.schema import EventKind, Report, kind_of

_LEAST_LINES, _MOST_LINES = 512, 8192
"""So many lines are looked through for what was not told; more only for what is missed there."""
_WORTH = 64
"""Behind fewer lines another summary saves nothing."""
_MOST_GOING_ON = 64
"""A summary is one line of the journal, which is bounded, and so are the batches that it names."""
_UNDECIDED = (None, "claimed", "held")


class Listed(Struct, frozen=True):
    """The verdicts that may not be told of: behind a place, or the last `most`, of the register in
    `base`, and what is `held`.  Of some ids, `going_on` gives those whose claims go on."""

    base: Folder
    most: int
    held: Collection[str]
    going_on: Callable[[Iterable[str]], Iterable[str]]

    @property
    def size(self) -> int:
        """Of the register, in bytes."""
        status = self.base.status(spool.VERDICTS)
        return status.st_size if status else 0

    def behind(self, summary: Entry | None) -> list[str]:
        """The ids that the summary says nothing of, and those whose claims went on then."""
        if summary is None:
            return [*self.held, *islice(self.base.backwards(spool.VERDICTS), self.most)]
        behind = spool.verdicts(self.base.path, summary["told"])[0]
        return [*self.held, *summary["going_on"], *behind]


def missing(
    lines: Iterator[Entry],
    load: Callable[[str], Report | None],
    ended: Callable[[str], float | None],
    listed: Listed | None = None,
) -> list[Entry]:
    """The lines to add to those of the journal, the last of which comes first: what is not told of
    the intents, and of what is `listed`, if it `ended` since there is a journal; and a summary."""
    place = listed.size if listed else 0
    look = _LookBack(place if listed else None)
    look.read(lines, _LEAST_LINES, until_summary=True)
    ids = listed.behind(look.summary) if listed else []
    look.left = look.intended.keys() - look.last.keys()
    look.read(lines, _LEAST_LINES)
    if look.summary is None:
        look.left = set(ids) - look.last.keys()
        look.read(lines, _MOST_LINES)
    missed = dict[str, Entry]()
    for id in dict.fromkeys((*ids, *look.intended)):
        before = look.summary is None and id not in look.last and id not in look.intended
        if before and (ended(id) or 0.0) < look.since:
            continue
        # What somebody else put there is none of ours to tell of.
        with suppress(AttributeError, KeyError, TypeError, Fault):
            report = load(id)
            if report and kind_of(report) not in (None, look.last.get(id)):
                missed[id] = entry(report)
    told = look.last | {id: line["kind"] for id, line in missed.items()}
    worth = look.since_summary > _WORTH and not look.intended.keys() - missed.keys()
    if not (worth and listed and listed.size == place):
        return [*missed.values()]
    return [*missed.values(), *_summary(place, ids, told, listed)]


def _summary(
    place: int, ids: Iterable[str], told: Mapping[str, EventKind], listed: Listed
) -> list[Entry]:
    """The summary, unless too many claims go on."""
    undecided = [id for id in dict.fromkeys(ids) if told.get(id) in _UNDECIDED]
    going_on = {id: told.get(id) for id in (*listed.held, *listed.going_on(undecided))}
    if len(going_on) > _MOST_GOING_ON or not boot():
        return []
    return [{"kind": None, "told": place, "going_on": going_on, "boot": boot()}]


@dataclass(slots=True)
class _LookBack:
    """What the lines said so far, beside a register of that size, if any is looked at."""

    size: int | None
    last: dict[str, EventKind] = field(default_factory=dict)
    """What was told last of each batch."""
    intended: dict[str, None] = field(default_factory=dict)
    """The batches of which nothing was told since somebody meant to change them."""
    summary: Entry | None = None
    left: set[str] = field(default_factory=set)
    """The batches that are looked for."""
    since: float = 0.0
    """When the first of the lines was written, in seconds since the epoch."""
    since_summary: int = 0
    """How many lines stand behind any summary."""
    _read: int = 0
    _summaries: int = 0

    def read(self, lines: Iterator[Entry], most: int, *, until_summary: bool = False) -> None:
        """Read on, until so many lines were read altogether: up to a summary, or as long as some
        batch is left."""
        while self._read < most and (self.summary is None if until_summary else self.left):
            line = next(lines, None)
            if line is None:
                return
            self._read += 1
            self.since = int(line["id"], 16) / 10**9
            self._take(line)

    def _take(self, line: Entry) -> None:
        id, kind = line.get("batch"), line.get("kind")
        if "told" in line:
            self._summaries += 1
            if self.summary is None and self._holds(line):
                self.summary = line
                told = {id: kind for id, kind in line["going_on"].items() if kind}
                self.last = told | self.last
                self.left -= told.keys()
        elif id and kind is not None:
            self.last.setdefault(id, kind)
            self.left.discard(id)
        elif id and id not in self.last:
            self.intended[id] = None
        self.since_summary += not self._summaries

    def _holds(self, summary: Entry) -> bool:
        shorter = self.size is not None and self.size < summary["told"]
        return not shorter and summary["boot"] == boot()
