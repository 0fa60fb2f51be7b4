"""Edits that quote characters: calls, indexed and contextual edits.

They mean what they say to the letter, so the letter comes first: the quote is sought as it is,
wherever in a line it begins.  Only a quote of whole lines then goes down the ladder of the formats
that quote lines; one of less than a line is never stretched.  By paragraph, a predicate names where
a target, or a number of sentences, is to change.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from patchq.core.model.ops import (
    InParagraph,
    Predicate,
    Replace,
    ReplaceText,
    parse_predicate,
)
from patchq.core.model.values import Hunk
from patchq.core.resolve import ladder
from patchq.core.resolve.ladder import Found, Missed, same_result, typographic
from patchq.core.resolve.levels import unescape
from patchq.core.resolve.places import (
    MOST_PLACES,
    MOST_RANGES,
    CharRange,
    LineRange,
    S,
    apart,
    as_letters,
    begun_lines,
    char_ranges,
    in_bytes,
    in_utf8,
    indentation,
    lines_at,
    within,
)
from patchq.core.text.line_diff import line_diff
from patchq.core.text.lines import BLANKS, BOM, Text, content, find, split_lines

_WORD = re.compile(rb"[\w\x80-\xff]{2}")


class Wanted(Struct, frozen=True):
    """A replacement of `target` between `before` and `after`, as the edit says it."""

    target: bytes
    replacement: bytes
    before: bytes
    after: bytes
    op: ReplaceText

    @classmethod
    def of(cls, op: ReplaceText) -> Wanted:
        """Return the edit's texts as bytes."""
        old, new, before, after = map(in_utf8, (op.old, op.new, op.before, op.after))
        return cls(old, new, before, after, op)

    @property
    def old(self) -> bytes:
        return self.before + self.target + self.after

    @property
    def new(self) -> bytes:
        return self.before + self.replacement + self.after

    @property
    def counts(self) -> bool:
        """Return True if the edit states the number or the choice of its places."""
        return self.op.at is not None or self.op.count not in (1, None) or self.op.stated

    def unescaped(self) -> Wanted:
        parts = (self.target, self.replacement, self.before, self.after)
        target, replacement, before, after = map(unescape, parts)
        return replace(self, target=target, replacement=replacement, before=before, after=after)

    def pick(self, found: Sequence[S], text: Text) -> Sequence[S]:
        """Return the places to change: none if too few, all if too many."""
        if self.op.at is not None:
            there, at = apart(found), sorted(set(self.op.at))
            known = at and 1 <= at[0] <= at[-1] <= len(there)
            return [there[i - 1] for i in at] if known else ()
        if self.op.count != 1:
            there = apart(found)
            return there if len(there) >= (self.op.count or 1) else ()
        if len(found) > 1 and self.op.window:
            first, last = self.op.window
            inside = [span for span in found if first <= text.line_at(span.start) <= last]
            return inside if len(inside) == 1 else found
        return found

    def has_too_many(self, found: Sequence[object]) -> bool:
        return self.op.at is None and self.op.count is not None and len(found) > self.op.count


def resolve(text: Text, op: ReplaceText, levels: Sequence[str]) -> Found | Missed:
    """Return the place of `op` in `text`, or why it has none.

    `Missed("count")` has the number of places that were found instead of the stated one.
    """
    wanted = _wanted(text, op)
    letters = [level for level in ("exact", "line_endings") if level in levels]
    outcome, most = _literal(text, wanted, letters)
    if outcome is not None:
        return outcome
    readings = _readings(wanted, levels)
    for reading, name in readings:
        found = _by_lines(text, reading, levels)
        if isinstance(found, Found) or found.why != "none":
            return found if name is None else replace(found, level=name)
    for reading, name in readings:
        outcome, seen = _literal(text, reading, levels, name)
        most = max(most, seen, key=len)
        if outcome is not None:
            return outcome
    if not most or not wanted.counts:
        return Missed("none")
    return Missed("count", places=begun_lines(text, most), detail=str(len(most)))


def present(text: Text, op: ReplaceText, levels: Sequence[str]) -> Found | None:
    """Return the new text's only place, if the edit is already applied.

    The caller has found the old text in no place.
    """
    wanted = _wanted(text, op)
    if wanted.op.at is not None or wanted.op.count != 1:
        return None
    for reading, name in _readings(wanted, levels):
        lines = _as_lines(reading)
        if lines and (found := ladder.present(text, lines, _without_escapes(levels))):
            return replace(found, level=name or found.level)
    return None


def _wanted(text: Text, op: ReplaceText) -> Wanted:
    """Return the edit's replacement, without a byte order mark that the text has already."""
    wanted = Wanted.of(op)
    if text.offset and not wanted.old.startswith(BOM):
        return replace(wanted, replacement=wanted.replacement.removeprefix(BOM))
    return wanted


def _readings(wanted: Wanted, levels: Sequence[str]) -> list[tuple[Wanted, str | None]]:
    """Return the edit as written, and with its escapes undone if that differs.

    Each comes with the level that names it, None for the edit as written.
    """
    plain = wanted.unescaped()
    if "unescaped" not in levels or plain.old == wanted.old:
        return [(wanted, None)]
    return [(wanted, None), (plain, "unescaped")]


def _without_escapes(levels: Sequence[str]) -> list[str]:
    return [level for level in levels if level != "unescaped"]


# ---------------------------------------------------------------- to the letter


def _literal(
    text: Text, wanted: Wanted, levels: Collection[str], named: str | None = None
) -> tuple[Found | Missed | None, list[CharRange]]:
    """Return the outcome at the first decisive level, and the most places found."""
    most: list[CharRange] = []
    for level, found in char_ranges(text, wanted.old, levels):
        most = max(most, apart(found), key=len)
        places = wanted.pick(found, text)
        if not places:
            continue
        if wanted.has_too_many(places):
            return _several(text, wanted, places, named or level, levels), most
        if len(found) > MOST_RANGES:
            return Missed("count", level, begun_lines(text, found), _times(found)), most
        counted = wanted.op.at is not None and len(found) > 1 and wanted.target
        there = None if counted else there_already(text, wanted, places, levels)
        if there is not None:
            return replace(there, level=named or level), most
        return _rewritten(text, wanted, places, named or level), most
    return None, most


def _several(
    text: Text, wanted: Wanted, found: Sequence[CharRange], level: str, levels: Collection[str]
) -> Found | Missed:
    """Return the place if all places give the same bytes, else why not."""
    places = begun_lines(text, found)
    why: Literal["count", "ambiguous"] = "count" if wanted.counts else "ambiguous"
    missed = Missed(why, level, places, detail=_times(found))
    if wanted.op.count != 1 or len(found) > MOST_PLACES:
        return missed
    if wanted.old == wanted.new:
        return Found(level, places[0].start, places[0].end)
    ways = [_rewritten(text, wanted, [span], level) for span in found]
    first = ways[0]
    same = isinstance(first, Found) and all(
        isinstance(way, Found) and way.runs and same_result(text, first.runs, way.runs)
        for way in ways
    )
    if not same:
        return missed
    there = there_already(text, wanted, found, levels)
    return first if there is None else replace(there, level=level)


def _times(found: Sequence[CharRange]) -> str:
    return str(len(apart(found))) if len(found) <= MOST_RANGES else f"more than {MOST_RANGES:,}"


def _rewritten(
    text: Text, wanted: Wanted, places: Sequence[CharRange], level: str
) -> Found | Missed:
    start, end = lines_at(text, places)
    if flaw := next(filter(None, (_flaw(text, wanted, span) for span in places)), None):
        return Missed("unwritable", level, detail=flaw)
    inner = places
    if wanted.before or wanted.after:
        inner = [within(text, span, wanted.before, wanted.after) for span in places]
    runs = (
        _without_line(text, span)
        if wanted.op.takes_line_end
        else _changed(text, span, wanted.target, wanted.replacement)
        for span in inner
    )
    return Found(level, start, end, tuple(run for run in runs if run))


def _without_line(text: Text, span: CharRange) -> tuple[Hunk, ...]:
    end = text.starts[text.line_at(max(span.end - 1, span.start))]
    whole = _is_lines(text, span) and (end < len(text.whole) or not text.lacks_final_newline)
    return (Hunk(span.start, end if whole else span.end, b""),)


def _flaw(text: Text, wanted: Wanted, span: CharRange) -> str | None:
    """Return the reason why the new text cannot be written at `span`."""
    if not wanted.old.isascii():
        curled = typographic(wanted.old) - typographic(text.whole[span.start : span.end])
        if curled & typographic(wanted.replacement):
            return "a new line has typographic characters that the file has as plain ones"
    line = text.line_at(span.start) - 1
    ahead = text.whole[text.starts[line] : span.start]
    there, written = split_lines(text.whole[span.start : span.end]), split_lines(wanted.new)
    if not ahead or ahead.strip(BLANKS) or len(written) <= len(there):
        return None
    indent = indentation(content(text.lines[line]))
    if _reach(there[1:], indent) and not _reach(written[1:], indent):
        return "a new line is indented less than the line that the quote begins in"
    return None


def _reach(lines: Iterable[bytes], indent: bytes) -> bool:
    """Return True if all non-blank lines begin with `indent`."""
    return all(line.startswith(indent) for line in lines if line.strip())


def _changed(text: Text, span: CharRange, old: bytes, new: bytes) -> tuple[Hunk, ...]:
    """Return the hunks that replace `old` by `new` at `span`.

    Lines, or ends of lines, that the two share keep the text's bytes; new line ends are the text's
    most frequent.
    """
    there = split_lines(text.whole[span.start : span.end])
    ours, theirs = (split_lines(half.replace(b"\r\n", b"\n")) for half in (old, new))
    if ours == theirs:
        return ()
    if len(there) != len(ours) or len(ours) == 1 == len(theirs):
        return (Hunk(span.start, span.end, _ended(text, theirs)),)
    starts = list(accumulate(map(len, there), initial=span.start))
    return tuple(
        Hunk(starts[a0], starts[a1], _ended(text, theirs[b0:b1]))
        for a0, a1, b0, b1 in line_diff(ours, theirs)
    )


def _ended(text: Text, lines: list[bytes]) -> bytes:
    return b"".join(
        line.removesuffix(b"\n") + text.line_end if line.endswith(b"\n") else line for line in lines
    )


# ---------------------------------------------------------------- there already


def there_already(
    text: Text, wanted: Wanted, places: Sequence[CharRange], levels: Collection[str]
) -> Found | None:
    """Return the lines of the new text around all places, or None.

    The new text counts if it is whole lines, or adds more than blanks to a part of a line.
    """
    old, new = (half.replace(b"\r\n", b"\n") for half in (wanted.old, wanted.new))
    if old == new or old not in new:
        return None
    ahead, _, behind = new.partition(old)
    is_seen = bool((ahead + behind).strip())
    # The end of the line that the old text is on is none that the new one brings.
    ended = wanted.new.endswith(b"\n") and not wanted.old.endswith(b"\n")
    for _, there in char_ranges(text, wanted.new + b"\n" * ended, levels):
        standing = [
            span
            for span in there
            if (is_seen or _is_lines(text, span)) and _is_apart(text, span, ahead, behind)
        ]
        runs = [span for span in (_round(standing, place) for place in places) if span]
        if len(runs) == len(places):
            return Found("exact", *lines_at(text, [runs[0], runs[-1]]), already=True)
    return None


def _round(standing: Sequence[CharRange], place: CharRange) -> CharRange | None:
    """Return the span that contains `place`; `standing` is in order."""
    at = bisect_right(standing, place.start, key=lambda span: span.start) - 1
    return standing[at] if at >= 0 and place.end <= standing[at].end else None


def _is_lines(text: Text, span: CharRange) -> bool:
    start = text.starts[text.line_at(span.start) - 1]
    return span.start == start and _ends_line(text, span.end)


def _is_apart(text: Text, span: CharRange, ahead: bytes, behind: bytes) -> bool:
    """Return True if the span begins and ends between words.

    It also begins or ends a line if lines are added before or after it.  `import b` is not added by
    `import b.c`.
    """
    start = text.starts[text.line_at(span.start) - 1]
    if ahead.endswith(b"\n") and text.whole[start : span.start].strip(BLANKS):
        return False
    if behind.startswith(b"\n") and not _ends_line(text, span.end):
        return False
    sides = (text.whole[at - 1 : at + 1] for at in (span.start, span.end) if at)
    return not any(map(_WORD.fullmatch, sides))


def _ends_line(text: Text, at: int) -> bool:
    line = text.line_at(max(at - 1, 0)) - 1
    return at >= text.starts[line] + len(content(text.lines[line]))


# ---------------------------------------------------------------- by lines


def _as_lines(wanted: Wanted) -> Replace | None:
    """Return the edit as one of whole lines, or None.

    A quote of less than a line cannot, nor one whose line end is to go away.
    """
    old, new = (half.decode("utf-8", "surrogateescape") for half in (wanted.old, wanted.new))
    if "\n" not in old:
        return None
    if not old.endswith("\n"):
        return Replace(old + "\n", new if wanted.op.takes_line_end else new + "\n")
    return Replace(old, new) if new.endswith("\n") or not new else None


def _by_lines(text: Text, wanted: Wanted, levels: Sequence[str]) -> Found | Missed:
    op, levels = _as_lines(wanted), _without_escapes(levels)
    if op is None:
        return Missed("none")

    if wanted.op.at is None and wanted.op.count == 1:
        return ladder.resolve(text, op, levels)

    def pick(found: list[LineRange]) -> Sequence[LineRange]:
        return wanted.pick(found, text)

    return ladder.resolve_many(text, op, levels, pick, wanted.has_too_many)


_SENTENCE = re.compile(r"\S.*?(?:[.!?](?=\s|$)|\Z)", re.DOTALL)
Range = tuple[int, int]


def resolve_paragraphs(text: Text, op: InParagraph) -> Found | Missed:
    """Return the place of `op` in `text`, or why it has none."""
    predicate = parse_predicate(op.predicate)
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
        wanted = Wanted.of(ReplaceText(op.target, op.new, None))
        if there := there_already(text, wanted, places, ("line_endings",)):
            return there
    runs = tuple(
        (Hunk(place.start, place.end, new),)
        for place in places
        if text.whole[place.start : place.end] != new
    )
    return Found("exact", start, end, runs)


def _paragraphs(text: Text) -> Iterator[tuple[int, str]]:
    """Yield every run of non-blank lines, with its offset."""
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
    return [(at, at + len(sought)) for at in find(paragraph, sought)] if sought else []
