"""An index of formats: what may begin on a line, by its text alone, and who is asked there.

Most lines are prose, and what is around them does not make them anything else.  So only the
formats that may begin on a line, which look around, are asked there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from msgspec import Struct

from patchq.core.formats.format import Format, Opening, Read, Sign
from patchq.core.formats.marks.blocks import prefix_of
from patchq.core.formats.marks.fences import fence
from patchq.core.formats.marks.tags import Tag, opens_channel, thought_on

# How the lines begin that the reader itself looks for: fences and thinking blocks.
_OWN = ("```", "~~~", "<", r"\[", "◁")
# The letter, or class of letters, that a line's start begins with.
_FIRST = re.compile(r"\[\^?\]?(?:\\.|[^]\\])*\]|\\?.")
_BARE = "`~<{["  # what a line begins with that carries no prefix
_TAGGED = "<[◁"
_SHORT = 200
_HINT = "send every change as a SEARCH/REPLACE block"
_TAGS = Sign("an edit in tags", r"\s*<(?:old_str(?:ing)?|new_str(?:ing)?|file_text)>")
# What resembles an edit, what to send instead, and the form's name.
SignHint = tuple[Sign, str, str | None]


class Beginning(Struct, frozen=True):
    """Forms and signs that may begin on a line."""

    # The formats that may begin there, in the order in which they are asked.
    reads: tuple[Read, ...] = ()
    fences: bool = False  # true if it is a fence line
    thought: Tag | None = None  # the tag with which a thinking block begins or ends there
    channel: bool = False  # true if a message of a model's raw output begins there
    # What is before the beginning of an edit, or of a fence, on the line.
    prefix: str | None = None


NOTHING = Beginning()


class Catalogue(dict[str, Format]):
    """The formats by their names, in the order in which they are listed."""

    def __init__(self, formats: Iterable[Format]) -> None:
        super().__init__((form.name, form) for form in formats)
        forms = self.values()
        openings = dict.fromkeys(opening for form in forms for opening in form.openings)
        fences = dict.fromkeys(fence for form in forms for fence in form.fences)
        starts = [start for opening in openings for start in opening.starts]
        firsts, all_starts = _firsts([*_OWN, *starts]), "|".join([*_OWN, *starts])
        # True if anything may begin on a line.
        self.may_begin = re.compile(rf"\s*+(?={firsts})(?:{all_starts})").match
        self._openings = [(re.compile(_firsts(o.starts)).match, o) for o in openings]
        self._by_letter: dict[str, list[Opening]] = {}
        self._fences = sorted(fences, key=lambda opening: opening.turn)
        # Most responses begin their edits with the same few lines.
        self._recent = lru_cache(1024)(self._look)
        self.owners: dict[Read, str] = {}  # the format that a reader is of, where it is of one only
        for form in forms:
            for read in {*(o.read for o in form.openings), *(f.read for f in form.fences)}:
                self.owners[read] = "" if read in self.owners else form.name
        self.signs: list[SignHint] = [
            (sign, f"write it as `patchq formats {form.name}` shows, or {_HINT}", form.name)
            for form in forms
            for sign in form.signs
        ]
        self.signs.append((_TAGS, _HINT, None))
        outside = [sign for sign, *_ in self.signs if not sign.languages]
        self._languages = frozenset().union(*(sign.languages for sign, *_ in self.signs))
        held = "|".join(sign.pattern for sign in outside if sign.anywhere)
        started = "|".join(sign.pattern for sign in outside if not sign.anywhere)
        # True if a line may hold a sign.
        self.may_sign = re.compile(rf"{started}|.*?(?:{held})").match

    def beginning_of_match(self, line: str) -> Beginning:
        """Return the forms and signs that may begin on a line that `may_begin` matches."""
        return self._recent(line) if len(line) < _SHORT else self._look(line)

    def _look(self, line: str) -> Beginning:
        prefix = None if line[0] in _BARE else prefix_of(line)
        if mark := fence(line):
            fences = [f for f in self._fences if f.may_begin is None or f.may_begin(mark)]
            return Beginning(tuple([f.read for f in fences]), fences=True, prefix=prefix)
        letter = line.lstrip()[0]
        if letter in _TAGGED:
            if opens_channel(line):
                return Beginning(channel=True)
            if thought := thought_on(line):
                return Beginning(thought=thought)
        if letter not in self._by_letter:
            self._by_letter[letter] = [o for leads, o in self._openings if leads(letter)]
        found = self._by_letter[letter]
        reads = [o.read for o in found if o.may_begin is None or o.may_begin(line)]
        return Beginning(tuple(reads), prefix=prefix) if reads or prefix else NOTHING

    def sign_on(self, line: str, language: str) -> SignHint | None:
        """Return the sign of an edit on a line in a fence of `language`."""
        if language not in self._languages and not self.may_sign(line):
            return None
        for hint in self.signs:
            sign = hint[0]
            seek = re.search if sign.anywhere else re.match
            if (not sign.languages or language in sign.languages) and seek(sign.pattern, line):
                return hint
        return None


def _firsts(starts: Iterable[str]) -> str:
    """Return the first letters of lines' starts, as one expression."""
    return "|".join(dict.fromkeys(m[0] for m in map(_FIRST.match, starts) if m))
