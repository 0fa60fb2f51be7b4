"""The places that an ambiguous quote may mean, each with what tells it from the others."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from patchq.model.ops import Replace
from patchq.model.values import Candidate
from patchq.resolve.ladder import Found, Missed, resolve
from patchq.resolve.search import Place, Shift, shifted
from patchq.text.lines import Text
from patchq.text.quote import decode

_MOST_CANDIDATES = 20
_MOST_CONTEXT = 12
_MOST_TRIALS = 40
_SYMBOL_REACH = 2000
_SYMBOL = re.compile(
    r"^\s*(?:(?:export|default|pub(?:\([^)]*\))?|public|private|protected|static|final|abstract|"
    r"async|unsafe|const|override|virtual|inline)\s+)*"
    r"(?:def|class|func(?:\s*\([^)]*\))?|fn|function\*?|impl(?:<[^>]*>)?|struct|enum|trait|"
    r"interface|module|namespace|type)\s+([A-Za-z_$][\w$]*)"
)


def candidates(
    path: str, text: Text, op: Replace, missed: Missed, enabled: Sequence[str], tried: bool = True
) -> tuple[Candidate, ...]:
    """The first places of an ambiguous quote.  `disambiguate` is text that makes the edit certain
    when it is put in front of both halves: it was `tried`; None when no such text was found."""
    trials = iter(range(_MOST_TRIALS if tried else 0))
    return tuple(
        Candidate(
            path,
            place.start + 1,
            symbol_at(text, place.start),
            decode(text.contents[place.start]),
            next(_certain(text, op, place, missed.places, enabled, trials), None),
        )
        for place in missed.places[:_MOST_CANDIDATES]
    )


def bare(path: str, text: Text, place: Place) -> Candidate:
    """A place without what tells it from others: its line number does."""
    line = text.contents[place.start]
    return Candidate(path, place.start + 1, symbol_at(text, place.start), decode(line))


def _certain(
    text: Text,
    op: Replace,
    place: Place,
    places: Sequence[Place],
    enabled: Sequence[str],
    trials: Iterator[int],
) -> Iterator[str]:
    """The lines before a place that, quoted too, make the edit resolve there; fewest first."""
    for count in range(1, min(_MOST_CONTEXT, place.start) + 1):
        if any(_same_before(text, place, other, count) for other in places if other is not place):
            continue
        lines = text.contents[place.start - count : place.start]
        quoted = _as_quoted(lines, place.shift)
        if quoted is None or next(trials, None) is None:
            return
        longer = Replace(quoted + op.old, quoted + op.new)
        found = resolve(text, longer, enabled)
        if isinstance(found, Found) and not found.already and found.start == place.start - count:
            yield quoted.removesuffix("\n")


def _same_before(text: Text, place: Place, other: Place, count: int) -> bool:
    return count <= other.start and all(
        text.contents[place.start - k].strip() == text.contents[other.start - k].strip()
        for k in range(1, count + 1)
    )


def _as_quoted(lines: Sequence[bytes], shift: Shift) -> str | None:
    """The file's lines, indented as the quote is; None if they cannot be."""
    back = Shift(added=shift.removed, removed=shift.added)
    moved = [shifted(line, back) for line in lines]
    if None in moved:
        return None
    try:
        return "".join(line.decode() + "\n" for line in moved if line is not None)
    except UnicodeDecodeError:
        return None


def symbol_at(text: Text, index: int) -> str | None:
    """The definitions that enclose a line, outermost first (`Login.check`), told by indentation."""
    names: list[str] = []
    lines = text.contents
    depth = _depth(lines[index]) if lines[index].strip() else 10**6
    if match := _SYMBOL.match(decode(lines[index])):
        names.append(match[1])
    for line in reversed(lines[max(0, index - _SYMBOL_REACH) : index]):
        if depth == 0:
            break
        if not line.strip() or _depth(line) >= depth:
            continue
        depth = _depth(line)
        if match := _SYMBOL.match(decode(line)):
            names.append(match[1])
    return ".".join(reversed(names)) or None


def _depth(line: bytes) -> int:
    return len(line) - len(line.lstrip())
