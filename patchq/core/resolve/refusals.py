"""Problems of edits without a certain place, worded to help the next attempt.

An ambiguous quote's places are named, each with what tells it from the others.

Similarity is used here only: it suggests, it never applies.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

from msgspec import Struct
from msgspec.structs import replace

from patchq.core.model.names import nearest
from patchq.core.model.ops import (
    Anchored,
    InParagraph,
    InsertAt,
    Op,
    PatchHunk,
    Replace,
    ReplaceText,
    halves,
)
from patchq.core.model.values import Candidate, Edit, Problem
from patchq.core.resolve import ladder
from patchq.core.resolve.ladder import Missed
from patchq.core.resolve.levels import Lines, lines_of, unescape
from patchq.core.resolve.nearest import BYTES_A_STEP, DOTS, PER_EDIT, Effort, nearest_places
from patchq.core.resolve.places import LineRange, Shift, indentation, shifted
from patchq.core.text.lines import Text
from patchq.core.text.quote import decode

_CONTEXT = 3
_MOST_EXCERPT = 60
_MOST = 20  # so many places, or their lines, a report names
_FEW = 5
_BLANKS = str.maketrans({" ": "·", "\t": "→", "\r": "␍", "\u00a0": "⍽"})

Search = Callable[[bytes], str | None]  # returns another file that holds the lines


class Scene(Struct, frozen=True):
    """The file that was searched for a quote, and means to explain the miss.

    `text` is the base's, or what `earlier` edits of the batch made of it.  What takes long is done
    only with a `search`, and all of it only as far as the `effort` reaches.
    """

    path: str
    text: Text
    enabled: Sequence[str]
    effort: Effort
    search: Search | None = None
    earlier: bool = False


def problem(edit: Edit, scene: Scene, missed: Missed) -> Problem:
    """Return the problem of a missed edit."""
    op = edit.op
    if not scene.effort.spend(PER_EDIT + len(scene.text.whole) // BYTES_A_STEP):
        return _unexamined(edit, scene, missed)
    if missed.why == "count":
        return _count(edit, scene, missed)
    if isinstance(op, Anchored):
        return _anchor(edit, op, scene, missed)
    if isinstance(op, InsertAt | InParagraph) or (isinstance(op, PatchHunk) and not op.old):
        what = missed.detail or "nothing in the file is what it describes"
        if missed.why == "ambiguous":
            lines = ", ".join(str(place.start + 1) for place in missed.places)
            what = f"it may mean several places: lines {lines}"
        return _uncertain(edit, scene, missed, what, "quote the lines next to the change")
    if missed.why == "unwritable" and not missed.places:
        return _uncertain(
            edit, scene, missed, missed.detail, "write the new lines as the file has them"
        )
    quote = Replace(*map(_ended, halves(op)))
    if missed.why == "unwritable":
        return Problem(
            "match.none",
            f"the quote of edit {edit.id} is in {_place(scene)} only as `{missed.level}` reads "
            f"it, at line {missed.places[0].start + 1}, and {missed.detail}",
            "quote the lines exactly as the file has them, and write the new lines alike",
            edit=edit.id,
            path=scene.path,
            line=None if scene.earlier else missed.places[0].start + 1,
        )
    if missed.why == "ambiguous":
        return _ambiguous(edit, quote, scene, missed)
    return _none(edit, quote, scene)


def _code(op: Op, missed: Missed) -> str:
    """Return the code for an edit that was missed.

    `match.count` is for a number of replacements, and for places too many to count; an edit whose
    `occurrences` are not all there gets `match.none`.
    """
    why = missed.why
    if isinstance(op, Anchored):
        if why == "invented":
            return "anchor.invented"
        return "anchor.ambiguous" if why in ("ambiguous", "unwritable") else "anchor.none"
    is_numbered = not isinstance(op, ReplaceText) or op.at is not None
    if why == "count" and not (is_numbered and missed.detail.isdecimal()):
        return "match.count"
    return "match.ambiguous" if why == "ambiguous" else "match.none"


def _unexamined(edit: Edit, scene: Scene, missed: Missed) -> Problem:
    """Return the short problem of a missed edit, without an explanation.

    The budget for explanations is spent.
    """
    lines = ", ".join(str(place.start + 1) for place in missed.places[:_FEW])
    more = ", …" if len(missed.places) > _FEW else ""
    found = f": it may mean lines {lines}{more}" if missed.why == "ambiguous" and lines else ""
    return Problem(
        _code(edit.op, missed),
        f"edit {edit.id}, at line {edit.at[0]} of the response, has no certain place in "
        f"{_place(scene)}{found}; so many edits have none that this one was not looked into",
        "read the file again, and send fewer edits at a time",
        edit=edit.id,
        path=scene.path,
        line=missed.places[0].start + 1 if lines and not scene.earlier else None,
    )


def _uncertain(edit: Edit, scene: Scene, missed: Missed, what: str, hint: str) -> Problem:
    return Problem(
        _code(edit.op, missed),
        f"edit {edit.id} has no certain place in {scene.path}: {what}",
        hint,
        edit=edit.id,
        path=scene.path,
    )


def _count(edit: Edit, scene: Scene, missed: Missed) -> Problem:
    op = edit.op
    asked = "another number of places"
    hint = "quote more of what surrounds the place"
    if not (isinstance(op, ReplaceText) and missed.detail.isdecimal()):
        pass  # they are too many to count, or sentences
    elif op.at is None:
        asked = f"`expected_replacements: {op.count}`" if op.stated else "one place"
        hint = f"say `expected_replacements: {missed.detail}` if all of them are meant, or {hint}"
    else:
        numbers = ", ".join(map(str, op.at))
        asked = f"`occurrence: {numbers}`" if op.before else f"`occurrences: [{numbers}]`"
        hint = f"count from 1 to {missed.detail}, or {hint}"
    times = "once" if missed.detail == "1" else f"{missed.detail} times"
    return Problem(
        _code(op, missed),
        f"the text of edit {edit.id} occurs {times} in {scene.path}, and the edit asks for {asked}",
        hint,
        edit=edit.id,
        path=scene.path,
        candidates=candidates(scene, Replace(*map(_ended, halves(op))), missed),
    )


def _ended(half: str) -> str:
    return half if half.endswith("\n") or not half else half + "\n"


def _anchor(edit: Edit, op: Anchored, scene: Scene, missed: Missed) -> Problem:
    anchor = (op.selected or op.name or "").strip()
    if missed.why == "unwritable":
        return _uncertain(edit, scene, missed, missed.detail, "quote the lines to change")
    if missed.detail == "scope":
        what = "its content may take the place of the header alone or of the whole definition"
        return _uncertain(
            edit, scene, missed, what, 'say `"scope": "line"` or `"scope": "definition"`'
        )
    if missed.why == "ambiguous":
        lines = ", ".join(str(place.start + 1) for place in missed.places)
        what = f"the anchor {anchor!r} is on several lines: {lines}"
        hint = "choose an anchor that occurs once, or state its `line`"
        problem = _uncertain(edit, scene, missed, what, hint)
        found = _bare(scene, missed.places[:_MOST])
        return replace(problem, line=missed.places[0].start + 1, candidates=found)
    if missed.why == "invented" and op.candidates:
        what, known = "none of the candidates", [*op.candidates]
    else:
        what, known = "not in the file", [decode(line) for line in scene.text.contents]
    scene.effort.spend(4 * len(known))
    likely = nearest(anchor, dict.fromkeys(filter(None, map(str.strip, known))))
    hint = f"did you mean {likely!r}?" if likely else "choose an anchor that the file has"
    return _uncertain(edit, scene, missed, f"the anchor {anchor!r} is {what}", hint)


# ---------------------------------------------------------------- a quote of whole lines


def _place(scene: Scene) -> str:
    return f"{scene.path}, as earlier edits leave it," if scene.earlier else scene.path


def _ambiguous(edit: Edit, op: Replace, scene: Scene, missed: Missed) -> Problem:
    starts = [place.start + 1 for place in missed.places]
    lines = ", ".join(map(str, starts[:_MOST]))
    if len(starts) > _MOST:
        lines += f" and {len(starts) - _MOST} or more others"
    several = len(starts) > 1
    found = candidates(scene, op, missed) if several else ()
    alike = [one.line - 1 for one in found if one.disambiguate is None]
    what = f"is found at several places in {_place(scene)}: lines {lines}"
    advice = (
        "put the lines that stand right before the place you mean in front of both halves, until "
        "the quote occurs only once"
    )
    if not several:
        what = f"occurs several times in line {lines} of {_place(scene)}"
        advice = "quote more of the line"
    if missed.level == "elided" and not several:
        what = f"leaves lines out (`...`), and what it quotes is in {_place(scene)} in several ways"
        advice = "quote every line, without `...`"
    return Problem(
        "match.ambiguous",
        f"the quote of edit {edit.id} {what}",
        advice,
        edit=edit.id,
        path=scene.path,
        line=None if scene.earlier else starts[0],
        candidates=found,
        excerpt=_excerpt(scene.text, alike[0], len(lines_of(op.old)))
        if alike and not scene.earlier
        else None,
    )


def _none(edit: Edit, op: Replace, scene: Scene) -> Problem:
    text, quote = scene.text, lines_of(op.old)
    places = nearest_places(text, quote, scene.effort)
    cause, advice = _cause(op, quote, scene, places)
    message = f"the quote of edit {edit.id} is not found in {_place(scene)} ({cause})"
    line, excerpt = None, None
    if places:
        line = places[0] + 1
        message += f"; the nearest place is line {line}{_first_difference(text, quote, places[0])}"
        for other in places[1:]:
            message += f"; line {other + 1} is as near: {_visible(text.contents[other], b'')}"
        excerpt = _excerpt(text, places[0], len(quote))
    elif len(text.lines) <= _MOST_EXCERPT:
        excerpt = _excerpt(text, 0, len(text.lines))
    return Problem(
        "match.none",
        message,
        advice,
        edit=edit.id,
        path=scene.path,
        line=None if scene.earlier else line,
        excerpt=None if scene.earlier else excerpt,
        quote=op.old,
    )


def _cause(op: Replace, quote: Lines, scene: Scene, places: list[int]) -> tuple[str, str]:
    text, raw = scene.text, op.old.encode("utf-8", "surrogateescape")
    if any(map(DOTS.match, quote)):
        return "elided", "quote every line; `...` replaces nothing here"
    if unescape(raw) != raw and unescape(raw).strip() in text.data:
        return "escaped", "write the lines as the file has them, without backslash escapes"
    loose = text.view(_loose)
    if next(iter(loose.find(_loose(quote))), None) is not None:
        return "whitespace", "copy the blanks of the file's lines exactly"
    new = lines_of(op.new)
    if op.new.strip() and not set(_loose(quote)).isdisjoint(filter(None, _loose(new))):
        there = list(islice(loose.find(_loose(new)), 2))
        if len(there) == 1 and any(there[0] <= near < there[0] + len(new) for near in places):
            return "already applied", "the new lines are in the file already: leave this edit out"
    if len(quote) == 1 and (not quote[0].strip() or quote[0].strip() in text.data):
        return "partial line", "quote whole lines, from their first character to their last"
    other = scene.search(b"\n".join(quote).strip()) if scene.search else None
    if other is not None:
        return f"other file: these lines stand in {other}", f"name {other} as the path"
    shown = "quote the lines shown here" if places else "read it again before you quote it"
    return "stale", f"the file has changed or was misremembered: {shown}"


def _loose(lines: Lines) -> Lines:
    return [b" ".join(line.split()) for line in lines]


def _first_difference(text: Text, quote: Lines, start: int) -> str:
    """Return the first difference to the quote, as the end of a sentence.

    A difference in more than the indentation comes first.
    """
    there = text.contents[start : start + len(quote)]
    pairs = list(zip(quote, there, strict=False))
    differing = [k for k, (quoted, found) in enumerate(pairs) if quoted.strip() != found.strip()]
    if not differing and len(pairs) < len(quote):
        return f", where the file ends before the quote's line {len(pairs) + 1}: " + _visible(
            quote[len(pairs)], b""
        )
    differing += [k for k, (quoted, found) in enumerate(pairs) if quoted != found]
    if not differing:
        return ""
    quoted, found = pairs[differing[0]]
    return (
        f", the first difference at line {start + differing[0] + 1}: the quote has "
        f"{_visible(quoted, found)}, the file has {_visible(found, quoted)}"
    )


def _excerpt(text: Text, start: int, count: int) -> tuple[int, tuple[str, ...]]:
    first = max(start - _CONTEXT, 0)
    last = min(start + count + _CONTEXT, first + _MOST_EXCERPT)
    return first + 1, tuple(map(decode, text.contents[first:last]))


def _visible(line: bytes, other: bytes) -> str:
    """Return a line with the blanks at both ends made visible.

    All blanks are if the lines differ in nothing else.
    """
    if not line:
        return "an empty line"
    text, inner = decode(line), decode(line).strip(" \t\r")
    if _loose([line]) == _loose([other]) or not inner:
        return f"`{text.translate(_BLANKS)[:200]}`"
    start = text.index(inner)
    ends = text[:start].translate(_BLANKS), text[start + len(inner) :].translate(_BLANKS)
    return f"`{(ends[0] + inner + ends[1])[:200]}`"


# ---------------------------------------------------------------- the places that a quote may mean


_MOST_CONTEXT = 12
_MOST_TRIALS = 40
_SYMBOL_REACH = 2000
_PER_PLACE = 60
_SYMBOL = re.compile(
    r"^\s*(?:(?:export|default|pub(?:\([^)]*\))?|public|private|protected|static|final|abstract|"
    r"async|unsafe|const|override|virtual|inline)\s+)*"
    r"(?:def|class|func(?:\s*\([^)]*\))?|fn|function\*?|impl(?:<[^>]*>)?|struct|enum|trait|"
    r"interface|module|namespace|type)\s+([A-Za-z_$][\w$]*)"
)


def candidates(scene: Scene, op: Replace, missed: Missed) -> tuple[Candidate, ...]:
    """Return the first places of an ambiguous quote.

    `disambiguate` is text that makes the edit certain in front of both halves: it was tried; None
    when no such text was found.
    """
    if scene.search is None:
        return _bare(scene, missed.places[:_MOST])
    every, trials = tuple(missed.places), iter(range(_MOST_TRIALS))
    places = every[:_MOST]
    return tuple(
        replace(one, disambiguate=next(_certain(scene, op, place, every, trials), None))
        for one, place in zip(_bare(scene, places), places, strict=True)
    )


def _bare(scene: Scene, places: Iterable[LineRange]) -> tuple[Candidate, ...]:
    text, effort = scene.text, scene.effort
    return tuple(
        Candidate(
            scene.path,
            place.start + 1,
            symbol_at(text, place.start, effort) if effort.spend(_PER_PLACE) else None,
            decode(text.contents[place.start]),
        )
        for place in places
    )


def _certain(
    scene: Scene, op: Replace, place: LineRange, places: Sequence[LineRange], trials: Iterator[int]
) -> Iterator[str]:
    """Yield the lines before a place that make its quote certain, fewest first."""
    there = scene.text.contents
    for count in range(1, min(_MOST_CONTEXT, place.start) + 1):
        if any(_same_before(there, place, other, count) for other in places if other is not place):
            continue
        quoted = _as_quoted(there[place.start - count : place.start], place.shift)
        # A further line costs a comparison for each of the other places, and a search.
        steps = len(places) + len(scene.text.whole) // BYTES_A_STEP
        if quoted is None or next(trials, None) is None or not scene.effort.spend(steps):
            return
        longer = Replace(quoted + op.old, quoted + op.new)
        found = ladder.resolve(scene.text, longer, scene.enabled)
        if (
            isinstance(found, ladder.Found)
            and not found.already
            and found.start == place.start - count
        ):
            yield quoted.removesuffix("\n")


def _same_before(there: Lines, place: LineRange, other: LineRange, count: int) -> bool:
    return count <= other.start and all(
        there[place.start - k].strip() == there[other.start - k].strip()
        for k in range(1, count + 1)
    )


def _as_quoted(lines: Lines, shift: Shift) -> str | None:
    """Return the file's lines in the quote's indentation; None if that is impossible."""
    back = Shift(added=shift.removed, removed=shift.added)
    moved = [line for line in (shifted(line, back) for line in lines) if line is not None]
    try:
        return b"\n".join([*moved, b""]).decode() if len(moved) == len(lines) else None
    except UnicodeDecodeError:
        return None


def symbol_at(text: Text, index: int, effort: Effort) -> str | None:
    """Return the definitions around a line, outermost first, such as `Login.check`.

    They are found by indentation.
    """
    names: list[str] = []
    depth, at = sys.maxsize, index
    while at >= max(0, index - _SYMBOL_REACH) and depth > 0:
        line, at = text.contents[at], at - 1
        if not line.strip() or len(indentation(line)) >= depth:
            continue
        depth = len(indentation(line))
        if match := _SYMBOL.match(decode(line)):
            names.append(match[1])
    effort.spend(2 * (index - at))
    return ".".join(reversed(names)) or None
