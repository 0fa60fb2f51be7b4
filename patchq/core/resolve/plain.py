"""Where most of many quotes stand, found in one pass over the text instead of a search for each.

A quote stands only where a line of it does that says something.  So the text is gone through once
for such a line of each quote, and the quote is compared where it was met.  What is found here is
what the ladder would find; of a quote that needs the ladder nothing is said.

This is done thousands of times for one response, so that a tuple takes the place of a value.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from io import BytesIO
from itertools import compress, count

from patchq.core.model.ops import Replace
from patchq.core.model.values import Hunk
from patchq.core.resolve.ladder import Found, only_change
from patchq.core.text.lines import Text

Plain = tuple[int, int, Hunk]
"""The lines (0-based, half-open) where a quote stands, and what becomes of some of them."""

_TELLING = 12
"""A first line of so many bytes is met nowhere else, as a rule."""
_MOST = 8
"""A quote whose line is met more often is left to the ladder."""


def plain_places(text: Text, ops: Mapping[int, Replace]) -> dict[int, Plain]:
    """The places of the edits that quote lines as they are, stand once, and are not there already;
    by what tells the edits apart."""
    if text.offset or text.ends_at_returns:
        return {}
    quotes = []
    for name, op in ops.items():
        old, new = op.old, op.new
        if old and "\r" not in old and "\r" not in new:
            before, after = _ended(old), _ended(new) if new else b""
            sought = _told_by(before)
            # Most quotes begin with a line that stays.
            alike = not after or (not sought[1] and after.startswith(sought[0]))
            quotes.append((name, before, after, sought, sought if alike else _told_by(after)))
    met = _met(text, {line for *_, (line, _), (new_line, _) in quotes for line in (line, new_line)})
    whole, starts, found = text.whole, text.starts, dict[int, Plain]()
    for name, before, after, (line, ahead), (new_line, new_ahead) in quotes:
        at, new_at = met[line], met[new_line]
        if len(at) > _MOST or len(new_at) > _MOST:
            continue
        there = [
            i - ahead for i in at if i >= ahead and whole.startswith(before, starts[i - ahead])
        ]
        if len(there) != 1 or (after and _stands(text, new_at, new_ahead, after)):
            continue
        quoted, written = before[:-1].split(b"\n"), after[:-1].split(b"\n") if after else []
        if hunk := only_change(text, there[0], quoted, written):
            found[name] = there[0], there[0] + len(quoted), hunk
    return found


def as_found(place: Plain) -> Found:
    """The same as the ladder says it."""
    start, end, hunk = place
    return Found("exact", start, end, ((hunk,),))


def _stands(text: Text, at: Sequence[int], ahead: int, half: bytes) -> bool:
    """Whether a half stands where one of its lines does, with so many lines ahead of it."""
    whole, starts = text.whole, text.starts
    return any(i >= ahead and whole.startswith(half, starts[i - ahead]) for i in at)


def _ended(half: str) -> bytes:
    data = half.encode("utf-8", "surrogateescape")
    return data if data.endswith(b"\n") else data + b"\n"


def _told_by(half: bytes) -> tuple[bytes, int]:
    """A line of a half that is likely to stand nowhere else, and how many are ahead of it."""
    end = half.find(b"\n") + 1
    if end > _TELLING:
        return half[:end], 0
    lines = half[:-1].split(b"\n")
    longest = max(lines, key=len)
    return longest + b"\n", lines.index(longest)


def _met(text: Text, lines: Iterable[bytes]) -> dict[bytes, list[int]]:
    """Where (0-based) each of some lines stands; of one that stands often, the first places and
    one more than these."""
    whole, starts = text.whole, text.starts
    met: dict[bytes, list[int]] = {line: [] for line in lines}
    # The lines are passed on, and not kept: most of them nobody asks for.
    for i in compress(count(), map(met.__contains__, BytesIO(whole))):
        at = met[whole[starts[i] : starts[i + 1]]]
        if len(at) <= _MOST:
            at.append(i)
    return met
