"""The places of a file that a missed quote most likely means, by its words.

Each word of the quote votes for the lines at which the quote would begin if the word were meant
there.  A word that is rare in the file counts for more; blanks count for nothing.
Spelling counts only where the file has none of the words.
"""

from __future__ import annotations

import re
from collections import Counter
from weakref import WeakKeyDictionary

from patchq.core.resolve.effort import Effort
from patchq.core.resolve.readings import Lines
from patchq.core.text.lines import Text

_WORD = re.compile(rb"[\w\x80-\xff]+|[^\w\s\x80-\xff]+")
DOTS = re.compile(rb"\W*?(?:\.{3}|\xe2\x80\xa6)(?!\w)")
"""The start of a line in place of lines that are left out."""
_COMMON = 100
"""A word on more lines than these tells no place from another."""
_LEAST_SHARE = 0.2
"""A place with less of the quote's words than this is nothing to suggest."""
_CLOSE = 0.8
"""A second place with this share of the first one's votes is named, too."""
_APART = 3
"""Lines so near are one place."""
_LONGEST_LINE = 1000
_LEAST_LETTERS = 4
_PER_LINE = 5
"""Steps that it takes to index a line."""

_INDICES: WeakKeyDictionary[Text, dict[bytes, list[int]]] = WeakKeyDictionary()
"""The lines of each word, for the texts that a quote was missed in."""


def nearest_places(text: Text, quote: Lines, effort: Effort) -> list[int]:
    """Return the line (0-based) at which the quote most likely begins; two if they are close."""
    if not effort.spend_once(text, _PER_LINE * len(text.contents)):
        return []
    if text not in _INDICES:
        _INDICES[text] = _index(text)
    index, votes, most = _INDICES[text], Counter[int](), 0.0
    for j, line in enumerate(quote):
        for word in () if DOTS.match(line) else _words(line):
            lines = index.get(word, [])
            if len(lines) <= _COMMON and effort.spend(len(lines)):
                weight = max(len(lines), 1) ** -0.5
                most += weight
                votes.update(dict.fromkeys((max(i - j, 0) for i in lines), weight))
    if not votes:
        return _likest(text, quote, effort)
    ranked = sorted(votes, key=lambda start: (-votes[start], start))
    if votes[ranked[0]] < _LEAST_SHARE * most:
        return []
    first = ranked[0]
    second = next((start for start in ranked if abs(start - first) > _APART), first)
    is_close = second != first and votes[second] >= _CLOSE * votes[first]
    return [first, second] if is_close else [first]


def _likest(text: Text, quote: Lines, effort: Effort) -> list[int]:
    """Return the place of the line that is spelt most like the quote's longest."""
    longest = max(range(len(quote)), key=lambda j: len(quote[j].strip()))
    wanted = quote[longest].strip()[:_LONGEST_LINE]
    if len(wanted) < _LEAST_LETTERS or not effort.spend(8 * len(text.contents)):
        return []
    from rapidfuzz import fuzz, process  # takes long to load, and few quotes are missed

    lines = [line.strip()[:_LONGEST_LINE] for line in text.contents]
    best = process.extractOne(wanted, lines, scorer=fuzz.ratio, score_cutoff=60)
    return [max(int(best[2]) - longest, 0)] if best else []


def _index(text: Text) -> dict[bytes, list[int]]:
    index: dict[bytes, list[int]] = {}
    for i, line in enumerate(text.contents):
        for word in _words(line):
            index.setdefault(word, []).append(i)
    return index


def _words(line: bytes) -> set[bytes]:
    return set(_WORD.findall(line[:_LONGEST_LINE]))
