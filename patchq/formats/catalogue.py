"""All formats together: what may begin on a line, by its text alone, and who is asked there.

Most lines are prose, and what stands around them does not make them anything else.  A text has few
lines in many copies, or many that differ and are longer; so the reader asks once for each different
line, and only the formats that may begin there, which look around, are asked in each place.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from patchq.formats.document import Document
from patchq.formats.envelope.thinking import closes_thought, opens_thought
from patchq.formats.format import Format, Opening, Read
from patchq.formats.leftovers import Signs
from patchq.formats.marks.fences import Fence, fence

_OWN = ("`{3}", "~{3}", "<")
"""How the lines begin that the reader itself looks for: fences and thinking blocks."""


@dataclass(frozen=True, slots=True)
class Beginning:
    """What may begin on a line."""

    reads: tuple[Read, ...] = ()
    """The formats that may begin there, in the order in which they are asked."""
    mark: Fence | None = None
    """The line as a fence line."""
    quotes: tuple[Read, ...] = ()
    """The formats of which an edit, or an excerpt, may stand in the fence."""
    thought: bool = False
    """Whether a thinking block begins or ends there."""
    skips: Callable[[Document, int], bool] | None = None
    """Whether all that may begin there was read before, in vain."""


NOTHING = Beginning()
_FIRST = re.compile(r"\[(?:\\.|[^]\\])+\]|\\.|.", re.DOTALL)


class Catalogue(Mapping[str, Format]):
    """The formats by their names, in the order in which they are listed."""

    def __init__(self, formats: Iterable[Format]) -> None:
        self._formats = {form.name: form for form in formats}
        forms = self._formats.values()
        self._openings = tuple(
            dict.fromkeys(opening for form in forms for opening in form.openings)
        )
        starts = "|".join(
            [*_OWN, *(start for opening in self._openings for start in opening.starts)]
        )
        self._may_begin = re.compile(rf"\s*(?:{starts})").match
        self._by_letter: dict[str, tuple[Opening, ...]] = {}
        fences = dict.fromkeys(fence for form in forms for fence in form.fences)
        self._fences = sorted(fences, key=lambda opening: opening.turn)
        self.signs = Signs(forms)

    def __getitem__(self, name: str) -> Format:
        return self._formats[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._formats)

    def __len__(self) -> int:
        return len(self._formats)

    def named(self, name: str) -> Format | None:
        """The format of that name, or alias; case and `-` for `_` do not matter."""
        name = name.replace("-", "_").lower()
        return next((form for form in self.values() if name in (form.name, *form.aliases)), None)

    def begins(self, line: str) -> Beginning:
        """What may begin on a line; `NOTHING` itself for prose."""
        if not self._may_begin(line):
            return NOTHING
        if mark := fence(line):
            fences = [f for f in self._fences if f.may_begin is None or f.may_begin(mark, line)]
            reads = tuple([f.read for f in fences if not f.quotes])
            return Beginning(reads, mark, tuple([f.read for f in fences if f.quotes]))
        letter = line.lstrip()[0]
        openings = self._by_letter.get(letter)
        if openings is None:
            openings = self._by_letter[letter] = self._led_by(letter)
        reads = tuple([o.read for o in openings if o.may_begin is None or o.may_begin(line)])
        thought = letter == "<" and (opens_thought(line) or closes_thought(line))
        if not (reads or thought):
            return NOTHING
        skips = openings[0].skips if len(openings) == 1 else None
        return Beginning(reads, thought=thought, skips=skips)

    def _led_by(self, letter: str) -> tuple[Opening, ...]:
        """The openings that may begin on a line whose first letter, blanks aside, is this."""
        return tuple(
            opening
            for opening in self._openings
            if any(re.match(_first(start), letter) for start in opening.starts)
        )


def _first(start: str) -> str:
    """The letter, or the class of letters, that a regular expression begins with."""
    match = _FIRST.match(start)
    assert match is not None
    return match[0]
