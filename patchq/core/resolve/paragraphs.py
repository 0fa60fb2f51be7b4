"""Contextual edits by paragraph: a predicate names the paragraphs, a target or a number of
sentences what is to change in them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from patchq.core.model.ops import InParagraph
from patchq.core.model.predicate import Predicate, parse
from patchq.core.model.values import Hunk
from patchq.core.resolve.char_ranges import as_letters, begun_lines, in_bytes, in_utf8, lines_at
from patchq.core.resolve.characters import Wanted, there_already
from patchq.core.resolve.ladder import Found, Missed
from patchq.core.resolve.search import CharRange, apart
from patchq.core.text.lines import Text, find

_SENTENCE = re.compile(r"\S.*?(?:[.!?](?=\s|$)|\Z)", re.DOTALL)
Range = tuple[int, int]


def resolve(text: Text, op: InParagraph) -> Found | Missed:
    """Return the place of `op` in `text`, or why there is none."""
    predicate = parse(op.predicate)
    places: list[CharRange] = []
    for start, paragraph in _paragraphs(text):
        if predicate.matches(paragraph):
            places += in_bytes(paragraph, _inside(paragraph, op, predicate), start)
    if op.target is None:
        if len(places) != op.sentences:
            return Missed("count", detail=str(len(places)))
    elif len(places) > 1 and not op.every:
        first, last = op.window or (1, 0)
        inside = [place for place in places if first <= text.line_at(place.start) <= last]
        if len(inside) != 1:
            return Missed("ambiguous", "exact", begun_lines(text, places))
        places = inside
    places = apart(places)
    if not places:
        return Missed("none")
    start, end = lines_at(text, places)
    new = in_utf8(op.new.replace("\r\n", "\n")).replace(b"\n", text.line_end)
    if op.target is not None:
        wanted = Wanted(in_utf8(op.target), in_utf8(op.new), None)
        if there := there_already(text, wanted, places, ("line_endings",)):
            return there
    runs = tuple(
        (Hunk(place.start, place.end, new),)
        for place in places
        if text.whole[place.start : place.end] != new
    )
    return Found("exact", start, end, runs)


def _paragraphs(text: Text) -> Iterator[tuple[int, str]]:
    """Every run of lines that are not blank, with its offset."""
    first: int | None = None
    for i, line in enumerate([*text.lines, b""]):
        if line.strip():
            first = i if first is None else first
        elif first is not None:
            yield text.starts[first], as_letters(text.whole[text.starts[first] : text.starts[i]])
            first = None


def _inside(paragraph: str, op: InParagraph, predicate: Predicate) -> list[Range]:
    if op.target is None:
        return [
            match.span()
            for match in _SENTENCE.finditer(paragraph.rstrip())
            if any(literal in match[0] for literal in predicate.literals)
        ]
    found = _everywhere(paragraph, op.target)
    if op.distance is None:
        return found
    literals = [
        place for literal in predicate.literals for place in _everywhere(paragraph, literal)
    ]
    return [
        (first, last)
        for first, last in found
        if any(max(start - last, first - end, 0) <= op.distance for start, end in literals)
    ]


def _everywhere(paragraph: str, sought: str) -> list[Range]:
    """Every place, overlapping ones too."""
    return [(at, at + len(sought)) for at in find(paragraph, sought)] if sought else []
