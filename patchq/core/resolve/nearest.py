"""The likeliest place of a missed quote, in its file or in another.

Each word of the quote votes for the lines at which the quote would begin if the word were meant
there.  A word that is rare in the file counts for more; blanks count for nothing.

Explaining has a budget of steps.  It needs no clock, so that the same response always gets the same
report; a step is about what comparing two lines takes, and a million of them take well under a
second.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from weakref import WeakKeyDictionary

from patchq.core.model.listing import Unreadable
from patchq.core.model.values import Tree
from patchq.core.resolve.levels import Lines
from patchq.core.text.lines import Text

# Of one reading of a batch: a fraction of the two seconds in which failed edits are explained.
STEPS = 3_000_000
PER_EDIT = 300
BYTES_A_STEP = 500  # so many are searched in the time of a step


@dataclass(slots=True)
class Effort:
    """A budget of steps."""

    left: int = STEPS

    def spend(self, steps: int) -> bool:
        """Take `steps` from the budget; return True if any were left."""
        some = self.left > 0
        self.left -= steps
        return some


_WORD = re.compile(rb"[\w\x80-\xff]+|[^\w\s\x80-\xff]+")
# The start of a line in place of lines that are left out.
DOTS = re.compile(rb"\W*?(?:\.{3}|\xe2\x80\xa6)(?!\w)")
_COMMON = 100  # a word on more lines than these tells no place from another
_LEAST_SHARE = 0.2  # a place with less of the quote's words than this is nothing to suggest
_CLOSE = 0.8  # a second place with this share of the first one's votes is named, too
_APART = 3  # lines so near are one place
_LONGEST_LINE = 1000
_PER_LINE = 5  # steps that it takes to index a line

# The lines of each word, for the texts that a quote was missed in.
_INDICES: WeakKeyDictionary[Text, dict[bytes, list[int]]] = WeakKeyDictionary()


def nearest_places(text: Text, quote: Lines, effort: Effort) -> list[int]:
    """Return the 0-based lines at which the quote most likely begins.

    There are two if they are close, none if nothing is similar.
    """
    if text not in _INDICES:
        if not effort.spend(_PER_LINE * len(text.contents)):
            return []
        _INDICES[text] = _index(text)
    index, votes, most = _INDICES[text], Counter[int](), 0.0
    for j, line in enumerate(quote):
        for word in () if DOTS.match(line) else _words(line):
            lines = index.get(word, [])
            if len(lines) <= _COMMON and effort.spend(len(lines)):
                weight = max(len(lines), 1) ** -0.5
                most += weight
                votes.update(dict.fromkeys((max(i - j, 0) for i in lines), weight))
    ranked = sorted(votes, key=lambda start: (-votes[start], start))
    if not votes or votes[ranked[0]] < _LEAST_SHARE * most:
        return []
    first = ranked[0]
    second = next((start for start in ranked if abs(start - first) > _APART), first)
    is_close = second != first and votes[second] >= _CLOSE * votes[first]
    return [first, second] if is_close else [first]


def _index(text: Text) -> dict[bytes, list[int]]:
    index: dict[bytes, list[int]] = {}
    for i, line in enumerate(text.contents):
        for word in _words(line):
            index.setdefault(word, []).append(i)
    return index


def _words(line: bytes) -> set[bytes]:
    return set(_WORD.findall(line[:_LONGEST_LINE]))


_MOST_FILES = 1000
# A repository may be large and a batch may hold many wrong quotes: so far one is looked for.
_MOST_BYTES = 16 << 20
_PER_FILE = 4000  # looking for a file takes as long as searching so many bytes


class Elsewhere:
    """The other files of a tree, searched within the bounds."""

    def __init__(self, tree: Tree, effort: Effort) -> None:
        self._tree = tree
        self._effort = effort
        self._read: dict[str, bytes] = {}

    def search(self, lines: bytes, but: str, own: Iterable[str]) -> str | None:
        """Return another file that holds `lines`; the batch's `own` files come first."""
        found, left = None, _MOST_BYTES if self._effort.left > 0 else 0
        paths = self._tree.listing().paths[:_MOST_FILES] if left else []
        for path in islice(dict.fromkeys([*own, *paths]), _MOST_FILES):
            if found or left <= 0:
                break
            data = self._content(path)
            left -= len(data) + _PER_FILE
            found = path if path != but and _hold_lines(data, lines) else None
        self._effort.spend((_MOST_BYTES - left) // BYTES_A_STEP)
        return found

    def _content(self, path: str) -> bytes:
        if path not in self._read:
            entry = self._tree.entry(path)
            is_file = entry is not None and entry.kind == "file"
            with suppress(Unreadable):
                self._read[path] = self._tree.read(path) if is_file else b""
        return self._read.get(path, b"")


def _hold_lines(data: bytes, lines: bytes) -> bool:
    at = data.find(lines) if lines else -1
    while at >= 0:
        first, last = data.rfind(b"\n", 0, at) + 1, data.find(b"\n", at + len(lines))
        behind = data[at + len(lines) : last if last >= 0 else len(data)]
        if not data[first:at].strip() and not behind.strip():
            return True
        below = data.find(b"\n", at) + 1
        at = data.find(lines, below) if below else -1
    return False
