"""Contextual edits by paragraph: a predicate names the paragraphs, a target or a number of
sentences what is to change in them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from patchq.model.ops import InParagraph
from patchq.model.predicate import Predicate, parse
from patchq.model.values import Hunk
from patchq.resolve.characters import begun_lines, in_bytes, lines_at
from patchq.resolve.ladder import Found, Missed
from patchq.resolve.search import Spot, apart
from patchq.text.lines import Text
from patchq.text.search import find

_SENTENCE = re.compile(r"\S.*?(?:[.!?](?=\s|$)|\Z)", re.DOTALL)
Range = tuple[int, int]


def resolve(text: Text, op: InParagraph) -> Found | Missed:
    """Where `op` belongs in `text`."""
    predicate = parse(op.predicate)
    places: list[Spot] = []
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
    new = op.new.replace("\r\n", "\n").encode("utf-8", "surrogateescape")
    new = new.replace(b"\n", text.line_end)
    if len(places) == 1 and _stands_in_new(text, op, new, places[0]):
        return Found("exact", start, end, already=True)
    hunks = (Hunk(place.start, place.end, new) for place in places)
    runs = tuple((hunk,) for hunk in hunks if text.whole[hunk.start : hunk.end] != new)
    return Found("exact", start, end, runs)


def _paragraphs(text: Text) -> Iterator[tuple[int, str]]:
    """Every run of lines that are not blank, with its offset."""
    first: int | None = None
    for i, line in enumerate([*text.lines, b""]):
        if line.strip():
            first = i if first is None else first
        elif first is not None:
            paragraph = text.whole[text.starts[first] : text.starts[i]]
            yield text.starts[first], paragraph.decode("utf-8", "surrogateescape")
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
    return [place for place in found if _distance(place, literals) <= op.distance]


def _everywhere(paragraph: str, sought: str) -> list[Range]:
    """Every place, overlapping ones too."""
    return [(at, at + len(sought)) for at in find(paragraph, sought)] if sought else []


def _stands_in_new(text: Text, op: InParagraph, new: bytes, place: Spot) -> bool:
    """Whether the target that was found is a part of the new text, which is there already."""
    old = text.whole[place.start : place.end]
    if op.target is None or new == old:
        return False
    starts = (place.start - ahead for ahead in find(new, old))
    return any(at >= 0 and text.whole[at : at + len(new)] == new for at in starts)


def _distance(place: Range, literals: Sequence[Range]) -> float:
    """How many characters lie between a place and the nearest literal."""
    return min(
        (max(start - place[1], place[0] - end, 0) for start, end in literals), default=float("inf")
    )
