"""Why a quote has no certain place, told so that the next one has.

Similarity (rapidfuzz) is used here only: it suggests, it never applies.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from rapidfuzz import fuzz, process, utils

from patchq.model import Candidate, Edit, Problem, Replace
from patchq.resolve.ladder import Missed
from patchq.resolve.readings import unescape
from patchq.resolve.search import Place
from patchq.text import Text

_CONTEXT = 3
_MOST_EXCERPT = 60
_MOST_CANDIDATES = 20
_MOST_CONTEXT = 12
_COMMON = 20
_BLANKS = str.maketrans({" ": "·", "\t": "→", "\r": "␍"})
_SYMBOL = re.compile(
    r"^\s*(?:(?:export|default|pub(?:\([^)]*\))?|public|private|protected|static|final|abstract|"
    r"async|unsafe|const|override|virtual|inline)\s+)*"
    r"(?:def|class|func(?:\s*\([^)]*\))?|fn|function\*?|impl(?:<[^>]*>)?|struct|enum|trait|"
    r"interface|module|namespace|type)\s+([A-Za-z_$][\w$]*)"
)


def problem(edit: Edit, path: str, text: Text, missed: Missed, others: Others = ()) -> Problem:
    """The problem to report for a quote that was missed in `text`, the file at `path`."""
    assert isinstance(edit.op, Replace)
    if missed.why == "unshiftable":
        return Problem(
            "match.none",
            f"the quote of edit {edit.id} stands in {path} under another indentation or with "
            f"line numbers, and {missed.detail}",
            "quote the lines exactly as the file has them, and write the new lines alike",
            edit=edit.id,
            path=path,
        )
    if missed.why == "ambiguous":
        return _ambiguous(edit, path, text, missed.places)
    return _none(edit, edit.op, path, text, others)


Others = Iterable[tuple[str, bytes]]
"""Other files that a quote may come from: path and bytes."""


def _ambiguous(edit: Edit, path: str, text: Text, places: Sequence[Place]) -> Problem:
    shown = places[:_MOST_CANDIDATES]
    lines = ", ".join(str(place.start + 1) for place in shown)
    more = "" if len(places) == len(shown) else f" and {len(places) - len(shown)} or more others"
    candidates = tuple(
        Candidate(
            path,
            place.start + 1,
            symbol_at(text, place.start),
            _decoded(text.contents[place.start]),
            _disambiguator(text, place, shown),
        )
        for place in shown
    )
    return Problem(
        "match.ambiguous",
        f"the quote of edit {edit.id} stands at several places in {path}: lines {lines}{more}"
        if len(places) > 1
        else f"the quote of edit {edit.id} leaves lines out (`...`), and what it quotes stands in "
        f"{path} in several ways",
        "put the lines that stand right before the place you mean in front of both halves, until "
        "the quote occurs only once"
        if len(places) > 1
        else "quote every line, without `...`",
        edit=edit.id,
        path=path,
        line=shown[0].start + 1,
        candidates=candidates if len(places) > 1 else (),
    )


def _disambiguator(text: Text, place: Place, places: Sequence[Place]) -> str | None:
    """The fewest lines before the place that stand before no other; None when 12 are too few."""
    for count in range(1, min(_MOST_CONTEXT, place.start) + 1):
        before = text.contents[place.start - count : place.start]
        others = (p.start for p in places if p is not place and p.start >= count)
        if all(
            [line.strip() for line in text.contents[start - count : start]]
            != [line.strip() for line in before]
            for start in others
        ):
            return "\n".join(map(_decoded, before))
    return None


def _none(edit: Edit, op: Replace, path: str, text: Text, others: Others) -> Problem:
    quote = [line.removesuffix("\r") for line in op.old.removesuffix("\n").split("\n")]
    near = nearest(text, quote)
    cause, advice = _cause(op, quote, text, near, others)
    message = f"the quote of edit {edit.id} stands nowhere in {path} ({cause})"
    line, excerpt = None, None
    if near is not None:
        line = near + 1
        first = _first_difference(text, quote, near)
        message += f"; the nearest place is line {line}"
        if first is not None:
            at, quoted, found = first
            message += f", the first difference at line {at + 1}: the quote has {_visible(quoted)}"
            message += (
                f", the file has {_visible(found)}" if found is not None else ", the file ends"
            )
        excerpt = _excerpt(text, near, len(quote))
    elif len(text.contents) <= _MOST_EXCERPT:
        excerpt = _excerpt(text, 0, len(text.contents))
    return Problem(
        "match.none", message, advice, edit=edit.id, path=path, line=line, excerpt=excerpt
    )


def _cause(
    op: Replace, quote: Sequence[str], text: Text, near: int | None, others: Others
) -> tuple[str, str]:
    """The class of the cause, and what to do about it."""
    raw = op.old.encode("utf-8", "surrogateescape")
    if any(line.strip() in ("...", "…") for line in quote):
        return "elided", "quote every line; `...` stands for nothing here"
    if unescape(raw) != raw and unescape(raw).strip() in text.body:
        return "escaped", "write the lines as the file has them, without backslash escapes"
    there = [place.split() for place in map(_decoded, text.contents)]
    wanted = [line.split() for line in quote]
    if near is not None and there[near : near + len(wanted)] == wanted:
        return "whitespace", "copy the blanks of the file's lines exactly"
    new = [line.split() for line in op.new.removesuffix("\n").split("\n")]
    if op.new.strip() and near is not None and _holds(there, new):
        return "already applied", "the new lines are in the file already: leave this edit out"
    if len(quote) == 1 and any(quote[0].strip() in _decoded(line) for line in text.contents):
        return "partial line", "quote whole lines, from their first character to their last"
    body = b"\n".join(line.encode("utf-8", "surrogateescape") for line in quote)
    for other, data in others:
        if body in data:
            return f"other file: these lines stand in {other}", f"name {other} as the path"
    if near is None:
        return "not in this repository", "read the file again before you quote it"
    return "stale", "the file has changed or was misremembered: quote the lines shown here"


def _holds(lines: Sequence[Sequence[str]], wanted: Sequence[Sequence[str]]) -> bool:
    """Whether the lines, blanks aside, hold the wanted ones in a row."""
    told, sought = ("\n".join(["", *map(" ".join, some), ""]) for some in (lines, wanted))
    return sought in told


def nearest(text: Text, quote: Sequence[str]) -> int | None:
    """The line (0-based) at which most of the quote's lines would stand; None when none fits."""
    where: defaultdict[bytes, list[int]] = defaultdict(list)
    for i, line in enumerate(text.contents):
        where[line.strip()].append(i)
    votes: Counter[int] = Counter()
    for j, quoted in enumerate(quote):
        stripped = quoted.strip().encode("utf-8", "surrogateescape")
        if stripped:
            for i in where.get(stripped, [])[:_COMMON]:
                votes[max(i - j, 0)] += min(len(stripped), 40)
    if votes:
        return max(votes, key=lambda start: (votes[start], -start))
    longest = max(range(len(quote)), key=lambda j: len(quote[j].strip()))
    if len(quote[longest].strip()) < 4:
        return None
    best = process.extractOne(
        quote[longest],
        [_decoded(line) for line in text.contents],
        scorer=fuzz.ratio,
        processor=utils.default_process,
        score_cutoff=60,
    )
    return max(int(best[2]) - longest, 0) if best else None


def _first_difference(
    text: Text, quote: Sequence[str], start: int
) -> tuple[int, str, str | None] | None:
    for j, quoted in enumerate(quote):
        if start + j >= len(text.contents):
            return len(text.contents) - 1, quoted, None
        found = _decoded(text.contents[start + j])
        if found != quoted:
            return start + j, quoted, found
    return None


def _excerpt(text: Text, start: int, count: int) -> tuple[int, tuple[str, ...]]:
    first = max(start - _CONTEXT, 0)
    last = min(start + count + _CONTEXT, first + _MOST_EXCERPT)
    return first + 1, tuple(map(_decoded, text.contents[first:last]))


def symbol_at(text: Text, index: int) -> str | None:
    """The definitions that enclose a line, outermost first (`Login.check`), told by indentation."""
    names: list[str] = []
    lines = text.contents
    depth = _depth(lines[index]) if lines[index].strip() else 10**6
    if match := _SYMBOL.match(_decoded(lines[index])):
        names.append(match[1])
    for line in reversed(lines[max(0, index - 2000) : index]):
        if depth == 0:
            break
        if not line.strip() or _depth(line) >= depth:
            continue
        depth = _depth(line)
        if match := _SYMBOL.match(_decoded(line)):
            names.append(match[1])
    return ".".join(reversed(names)) or None


def _depth(line: bytes) -> int:
    return len(line) - len(line.lstrip())


def _visible(line: str) -> str:
    """A line with its leading and trailing blanks made visible."""
    inner = line.strip()
    if not inner:
        return f"`{line.translate(_BLANKS)}`" if line else "an empty line"
    start = line.index(inner)
    shown = line[:start].translate(_BLANKS) + inner + line[start + len(inner) :].translate(_BLANKS)
    return f"`{shown[:200]}`"


def _decoded(line: bytes) -> str:
    return line.decode("utf-8", "backslashreplace")
