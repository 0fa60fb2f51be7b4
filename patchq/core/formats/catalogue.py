"""All formats together: what may begin on a line, by its text alone, and who is asked there.

Most lines are prose, and what stands around them does not make them anything else.  A text has few
lines in many copies, or many that differ and are longer; so the reader asks once for each different
line, and only the formats that may begin there, which look around, are asked in each place.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import lru_cache

from msgspec import Struct

from patchq.core.formats.format import Document, Format, Opening, Read, Sign
from patchq.core.formats.marks.blocks import may_mark
from patchq.core.formats.marks.carried import prefix_of
from patchq.core.formats.marks.lines import TAG_NAMES, Fence, fence
from patchq.core.formats.marks.tags import Tag, opens_channel, thought_on

_OWN = ("```", "~~~", "<", "\\[", "◁")
"""How the lines begin that the reader itself looks for: fences and thinking blocks."""
_BARE = "`~<{["
"""What a line begins with that carries no prefix."""
_COMMENTS = "|/;%│┃▏▌"
"""What else may lead a marker, and nothing else."""
_TAGGED = "<[◁"
_SHORT = 40
_HINT = "send every change as a SEARCH/REPLACE block"
_TAGS = Sign("an edit in tags", r"\s*<(?:old_str(?:ing)?|new_str(?:ing)?|file_text)>")


class Beginning(Struct, frozen=True):
    """What may begin on a line."""

    reads: tuple[Read, ...] = ()
    """The formats that may begin there, in the order in which they are asked."""
    mark: Fence | None = None
    """The line as a fence line."""
    thought: Tag | None = None
    """The tag with which a thinking block begins or ends there."""
    channel: bool = False
    """Whether a message of a model's raw output begins there."""
    skips: Callable[[Document, int], bool] | None = None
    """Whether all that may begin there was read before, in vain."""
    prefix: str | None = None
    """What stands before the beginning of an edit, or of a fence, on the line."""


NOTHING = Beginning()
_LED = re.compile(r"(\[\^?\]?(?:\\.|[^]\\])*\]|\\.|[^][(){}.*+?^$|\\])(?![*?{])[^|]*", re.DOTALL)
"""A regular expression that begins with one letter or class of letters (1), and has no branches."""
_LEAD = re.compile(r"(?:\[((?:\\[\"']|[\"'`<>{}\w])+)\]|[`~<>{}\w])(?![*?{+])")
"""One character, or a class of some (1), that a regular expression begins with."""


class Beginnings(dict[str, Beginning]):
    """What begins on the lines of one text on which something may begin, remembered."""

    def __init__(self, begins: Callable[[str], Beginning]) -> None:
        super().__init__()
        self._begins = begins

    def __missing__(self, line: str) -> Beginning:
        self[line] = begun = self._begins(line)
        return begun


class Signs:
    """What resembles edits of some formats, the narrower first: signs in certain fences, those at
    a line's start, those anywhere.  Each has a hint, what to send instead, and its form's name."""

    def __init__(self, formats: Iterable[Format]) -> None:
        hints = [
            (sign, f"write it as `patchq formats {form.name}` shows, or {_HINT}", form.name)
            for form in formats
            for sign in form.signs
        ]
        self.fenced = [hint for hint in hints if hint[0].languages]
        others = [hint for hint in hints if not hint[0].languages]
        tags = (_TAGS, _HINT, None)
        self.others: list[tuple[Sign, str, str | None]] = sorted(
            [*others, tags], key=lambda other: other[0].anywhere
        )
        self.languages = frozenset().union(*(sign.languages for sign, *_ in self.fenced))
        anywhere = [sign for sign, *_ in self.others if sign.anywhere]
        self._starts = re.compile(
            "|".join(sign.pattern for sign, *_ in self.others if not sign.anywhere)
        ).match
        held = [p for sign in anywhere for p in (sign.pattern, sign.behind) if p]
        self._holds = re.compile("|".join(held) or r"(?!)").search
        language = rf"\s*(?i:{'|'.join(self.languages) or '(?!)'})"
        tag = f"<(?:{'|'.join(TAG_NAMES)})>"
        self._searches = _searches([*held, *(lead + language for lead in ("```", "~~~", tag))])

    def may_stand(self, text: str) -> bool:
        """Whether a sign may stand anywhere in a text."""
        found = any(search(text) for search in self._searches)
        return found or any(map(self._starts, text.split("\n")))

    def mark(self, line: str) -> bool | None:
        """Whether the line is a fence line or has a sign, wherever it stands; None if it is
        blank."""
        if not line.strip():
            return None
        return bool(fence(line) or self._starts(line) or self._holds(line))


class Catalogue(dict[str, Format]):
    """The formats by their names, in the order in which they are listed."""

    def __init__(self, formats: Iterable[Format]) -> None:
        super().__init__((form.name, form) for form in formats)
        forms = self.values()
        openings = dict.fromkeys(opening for form in forms for opening in form.openings)
        starts = [start for opening in openings for start in opening.starts]
        self._openings = [
            (re.compile("|".join(map(_first, opening.starts))).match, opening)
            for opening in openings
        ]
        firsts = dict.fromkeys(map(_first, [*_OWN, *starts]))
        self.may_begin = re.compile(
            rf"\s*+(?={'|'.join(firsts)})(?:{'|'.join([*_OWN, *starts])})"
        ).match
        """Whether anything may begin on a line."""
        self._by_letter: dict[str, tuple[Opening, ...]] = {}
        fences = dict.fromkeys(fence for form in forms for fence in form.fences)
        self._fences = sorted(fences, key=lambda opening: opening.turn)
        self.signs = Signs(forms)
        self._recent = lru_cache(256)(self._begun)
        """Most responses begin their edits with the same few lines."""
        self.owners: dict[Read, str] = {}
        """The format that a reader is of, where it is of one only."""
        for form in forms:
            for read in {*(o.read for o in form.openings), *(f.read for f in form.fences)}:
                self.owners[read] = "" if read in self.owners else form.name

    def named(self, name: str) -> Format | None:
        """The format of that name, or alias; case and `-` for `_` do not matter."""
        name = name.replace("-", "_").lower()
        return next((form for form in self.values() if name in (form.name, *form.aliases)), None)

    def begins(self, line: str) -> Beginning:
        """What may begin on a line; `NOTHING` itself for prose."""
        return self.begun(line) if self.may_begin(line) else NOTHING

    def begun(self, line: str) -> Beginning:
        """The same for a line on which something may begin at a glance."""
        return self._recent(line) if len(line) < _SHORT else self._begun(line)

    def _begun(self, line: str) -> Beginning:
        letter = line.lstrip()[0]
        if letter in _COMMENTS and not may_mark(line):
            return NOTHING
        prefix = None if line[0] in _BARE else prefix_of(line)
        if mark := fence(line):
            fences = [f for f in self._fences if f.may_begin is None or f.may_begin(mark)]
            return Beginning(tuple([f.read for f in fences]), mark, prefix=prefix)
        found = self._by_letter.get(letter)
        if found is None:
            found = tuple(opening for leads, opening in self._openings if leads(letter))
            self._by_letter[letter] = found
        reads = tuple([o.read for o in found if o.may_begin is None or o.may_begin(line)])
        if letter in _TAGGED and (channel := opens_channel(line)):
            return Beginning(channel=channel)
        if letter in _TAGGED and (thought := thought_on(line)):
            return Beginning(thought=thought)
        skips = found[0].skips if len(found) == 1 and not prefix else None
        return Beginning(reads, skips=skips, prefix=prefix) if reads or prefix else NOTHING


def _searches(patterns: Iterable[str]) -> list[Callable[[str], object]]:
    """What seeks the patterns in a text, those together that begin with the same character: then
    the text is gone through as fast as for that one."""
    found: dict[str, list[str]] = {}
    for pattern in patterns:
        lead = _LEAD.match(pattern)
        rest = pattern[lead.end() :] if lead else pattern
        for letter in (lead[1] or lead[0]).replace("\\", "") if lead else ("",):
            found.setdefault(letter, []).append(re.escape(letter) + rest)
    return [re.compile("|".join(alike)).search for alike in found.values()]


def _first(start: str) -> str:
    """The letter, or the class of letters, that a line's start begins with."""
    match = _LED.fullmatch(start)
    if match is None:
        raise ValueError(f"expected a letter or a class of letters to begin with: {start!r}")
    return match[1]
