"""Contextual edits by paragraph: a predicate names the paragraphs, a target or a number of
sentences what is to change in them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from patchq.model.ops import InParagraph
from patchq.model.predicate import Predicate, parse
from patchq.model.values import Hunk
from patchq.resolve.ladder import Found, Missed
from patchq.resolve.search import Place
from patchq.text.lines import Text

_SENTENCE = re.compile(r"\S.*?(?:[.!?](?=\s|$)|\Z)", re.DOTALL)
Range = tuple[int, int]


def resolve(text: Text, op: InParagraph) -> Found | Missed:
    """Where `op` belongs in `text`."""
    predicate = parse(op.predicate)
    places: list[Range] = []
    for start, paragraph in _paragraphs(text):
        told = paragraph.decode("utf-8", "surrogateescape")
        if predicate.matches(told):
            places += _in_bytes(told, start, _inside(told, op, predicate))
    if op.target is None:
        if len(places) != op.sentences:
            return Missed("count", detail=str(len(places)))
    elif len(places) > 1 and not op.every:
        chosen = _in_window(text, places, op.window)
        if len(chosen) != 1:
            return _ambiguous(text, places)
        places = chosen
    places = _apart(places)
    if not places:
        return Missed("none")
    first, last = places[0][0], max(places[-1][1] - 1, places[-1][0])
    start, end = text.line_at(first) - 1, text.line_at(last)
    new = op.new.replace("\r\n", "\n").encode("utf-8", "surrogateescape")
    new = new.replace(b"\n", text.line_end)
    if len(places) == 1 and _stands_in_new(text, op, new, places[0]):
        return Found("exact", start, end, already=True)
    runs = tuple((Hunk(*place, new),) for place in places if text.whole[slice(*place)] != new)
    return Found("exact", start, end, runs)


def _paragraphs(text: Text) -> Iterator[tuple[int, bytes]]:
    """Every run of lines that are not blank, with its offset."""
    first: int | None = None
    for i, line in enumerate([*text.lines, b""]):
        if line.strip():
            first = i if first is None else first
        elif first is not None:
            yield text.starts[first], text.whole[text.starts[first] : text.starts[i]]
            first = None


def _in_bytes(told: str, start: int, places: Sequence[Range]) -> Iterator[Range]:
    """The places, which are in characters of a paragraph, as offsets of the text."""
    at = 0
    for first, last in places:
        start += len(told[at:first].encode("utf-8", "surrogateescape"))
        at = first
        yield start, start + len(told[first:last].encode("utf-8", "surrogateescape"))


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
    at = paragraph.find(sought) if sought else -1
    found: list[Range] = []
    while at >= 0:
        found.append((at, at + len(sought)))
        at = paragraph.find(sought, at + 1)
    return found


def _apart(places: Sequence[Range]) -> list[Range]:
    kept: list[Range] = []
    for place in places:
        if not kept or place[0] >= kept[-1][1]:
            kept.append(place)
    return kept


def _stands_in_new(text: Text, op: InParagraph, new: bytes, place: Range) -> bool:
    """Whether the target that was found is a part of the new text, which is there already."""
    old = text.whole[slice(*place)]
    ahead = new.find(old) if op.target is not None and new != old else -1
    while ahead >= 0:
        start = place[0] - ahead
        if start >= 0 and text.whole[start : start + len(new)] == new:
            return True
        ahead = new.find(old, ahead + 1)
    return False


def _distance(place: Range, literals: Sequence[Range]) -> float:
    """How many characters lie between a place and the nearest literal."""
    return min(
        (max(start - place[1], place[0] - end, 0) for start, end in literals), default=float("inf")
    )


def _in_window(text: Text, offsets: Sequence[Range], window: Range | None) -> list[Range]:
    if window is None:
        return []
    return [place for place in offsets if window[0] <= text.line_at(place[0]) <= window[1]]


def _ambiguous(text: Text, offsets: Sequence[Range]) -> Missed:
    lines = dict.fromkeys(text.line_at(start) - 1 for start, _ in offsets[:51])
    return Missed("ambiguous", "exact", tuple(Place(line, line + 1, [], []) for line in lines))
