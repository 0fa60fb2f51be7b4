"""Checks of a model's correction: the snippet for a quote, and its new text.

The answer only selects a snippet; whether it can be believed is decided without it.  It has to

- stand in the file, to the letter, and once; as whole lines where the format quotes whole lines;
- share four in five words with the quote, those that only one of the two has counted against it, so
  that it is neither much wider nor much narrower;
- lie at the place that the refusal itself calls the nearest, if it names one;
- be plainly nearer than every other place of the file: wherever else as many lines are taken, more
  than twice as many of the quote's words are missing, and one at least;
- leave no trace of another place: no line of the quote that is missing from the snippet is
  elsewhere in the file, and no name that is missing from it is defined there;
- agree with the quote on a line that is nowhere else, if it agrees on any whole line: lines
  that are all repeated tell no place from another;
- define what the quote defines: a function of another name is another function, however alike, and
  the one that was quoted is gone.

Similarity thus vetoes what the model chose; it never chooses.

The response changed `old` to `new`, and where it says `old` the file says `there`.  A merge makes
the response's change to the file's text.  It is certain only where the two differences keep apart:
on different lines, or on one line where the file differs by blanks, by the kind of its quotes or by
a last `;` or `,` alone.  A response that changes what it has misread is not corrected.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from msgspec import Struct

from patchq.core.text.line_diff import line_diff

_LEAST_WORDS = 3
_ALIKE = 0.8
# A name that a line defines: by a word for it, as C and its kin do, or by giving it a value.
_DEFINED = re.compile(
    r"\bimpl\b[^\n{]*\bfor[ \t]+(\w+)"
    r"|\b(?:def|class|function|func|fn|struct|enum|interface|trait|type|module|const|let|var|impl|"
    r"macro_rules!|namespace|union|object|val)"
    r"(?:\s*\([^()\n]*\)\s*|\s*<[^<>\n]*>\s*|\s*\*\s*|\s+)(\w+)"
    r"|^[ \t]*(?:[A-Za-z_][\w:<>,*&\[\]]*[ \t]+)+[*&]*(\w+)\([^;=\n]*[{)][ \t]*$"
    r"|^[ \t]*(\w+)[ \t]*(?::[^=\n]*)?=(?!=)",
    re.MULTILINE,
)
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_TOKEN = re.compile(r"(\s*)(\w+|[^\w\s])")
_QUOTES = frozenset("'\"`")
_TAILS = frozenset(";,")
# Signs that one kind of quotes reads and another does not, in one language or another.
_LIVE = frozenset("\\${}#%@!")

# The lines from and to (0-based) of the old text, and their replacement.
Block = tuple[int, int, Sequence[str]]


def words(text: str) -> list[str]:
    return re.findall(r"\w+", text)


# ---------------------------------------------------------------- the snippet


def selected(
    text: str, quote: str, snippet: str, near: int | None, *, whole_lines: bool
) -> str | None:
    r"""Return the snippet as the quote to use; None if it is uncertain.

    `near` is the line nearest to the missed quote, 0-based, and None if none was named.
    `whole_lines` is True if the format quotes whole lines.  `text` and the result have `\n` for
    line ends.
    """
    snippet = snippet.replace("\r\n", "\n")
    if whole_lines and snippet and not snippet.endswith("\n"):
        snippet += "\n"
    if text and not text.endswith("\n"):
        text += "\n"
    starts = list(_found(text, snippet, whole_lines))
    if (
        len(starts) != 1
        or snippet == quote
        or not set(_defined(quote)) <= set(_defined(snippet))
        or not _shares_words(words(quote), words(snippet))
    ):
        return None
    first = text.count("\n", 0, starts[0])
    last = first + snippet.removesuffix("\n").count("\n") + 1
    reach = quote.removesuffix("\n").count("\n") + 1
    if near is not None and not (first < near + reach and near < last):
        return None
    lines = text.split("\n")[:-1]
    rest = "\n".join(lines[first:last]).replace(snippet.removesuffix("\n"), "\n", 1)
    if not _is_marked(lines, quote, snippet):
        return None
    if not _nearest(lines, (first, last), quote, snippet, rest):
        return None
    others = [*lines[:first], rest, *lines[last:]]
    return None if _traces(others, quote, snippet) else snippet


def _found(text: str, snippet: str, whole_lines: bool) -> Iterator[int]:
    """Yield the offsets of the snippet, overlapping ones included.

    With `whole_lines` only those at the start of a line.
    """
    at = text.find(snippet) if snippet.strip() else -1
    while at >= 0:
        if not whole_lines or at == 0 or text[at - 1] == "\n":
            yield at
        at = text.find(snippet, at + 1)


def _is_marked(lines: Sequence[str], quote: str, snippet: str) -> bool:
    own = {line.strip() for line in snippet.split("\n")}
    shared = {line.strip() for line in quote.split("\n") if words(line)} & own
    counts = Counter(line.strip() for line in lines)
    return not shared or any(counts[line] == 1 for line in shared)


def _shares_words(quoted: Sequence[str], named: Sequence[str]) -> bool:
    shared = sum((Counter(quoted) & Counter(named)).values())
    return len(quoted) >= _LEAST_WORDS and 2 * shared >= _ALIKE * (len(quoted) + len(named))


def _nearest(
    lines: Sequence[str], own: tuple[int, int], quote: str, snippet: str, rest: str
) -> bool:
    """Return True if every other place lacks more than twice as many quoted words.

    The `rest` of the snippet's own lines is another place, too.
    """
    wanted = Counter(words(quote))
    first, last = own
    rivals = (
        (wanted - Counter(words(rest))).total(),
        *_missing(lines[:first], last - first, wanted),
        *_missing(lines[last:], last - first, wanted),
    )
    return min(rivals) > 2 * (wanted - Counter(words(snippet))).total()


def _missing(lines: Sequence[str], count: int, wanted: Counter[str]) -> Iterator[int]:
    """Yield the number of wanted words that each run of `count` lines lacks.

    A run ends at each line, so the first ones are shorter.
    """
    there: Counter[str] = Counter()
    missing = wanted.total()
    known = [[word for word in words(line) if word in wanted] for line in lines]
    for k, line in enumerate(known):
        for word in line:
            missing -= there[word] < wanted[word]
            there[word] += 1
        for word in known[k - count] if k >= count else ():
            there[word] -= 1
            missing += there[word] < wanted[word]
        yield missing


def _traces(others: Sequence[str], quote: str, snippet: str) -> bool:
    own = {line.strip() for line in snippet.split("\n")}
    lacking = {line.strip() for line in quote.split("\n") if len(words(line)) > 1} - own
    if any(line.strip() in lacking for line in others):
        return True
    unknown = set(words(quote)) - set(words(snippet))
    return any(name in unknown for line in others for name in _defined(line))


def _defined(text: str) -> list[str]:
    return [name for found in _DEFINED.findall(text) for name in found if name]


# ---------------------------------------------------------------- the replacement


def merged(old: str, there: str, new: str) -> str | None:
    r"""Return the change from `old` to `new`, made to `there`; None if uncertain.

    `there` is the file's text where the response quotes `old`.  Lines end with `\n`; the last need
    not.
    """
    olds, theirs, ours = (_LINE.findall(text) for text in (old, there, new))
    # Lines that repeat can be paired in several ways; all of them have to come to the same.
    results = {
        _joined(olds, _single_lines(drift, olds), changes)
        for drift in _pairings(olds, theirs)
        for changes in _pairings(olds, ours)
    }
    return results.pop() if len(results) == 1 else None


def _pairings(olds: Sequence[str], others: Sequence[str]) -> list[list[Block]]:
    """Return the changed blocks, with equal lines paired from either end."""
    front = [(a0, a1, others[b0:b1]) for a0, a1, b0, b1 in line_diff(olds, others)]
    m, n = len(olds), len(others)
    back = [
        (m - a1, m - a0, others[n - b1 : n - b0])
        for a0, a1, b0, b1 in reversed(line_diff(olds[::-1], others[::-1]))
    ]
    return [front, back]


def _joined(olds: Sequence[str], drift: Sequence[Block], changes: Sequence[Block]) -> str | None:
    parts: list[Block] = []
    left = list(drift)
    for start, end, new_lines in changes:
        met = [block for block in left if _overlap(block, start, end)]
        if met and (start == end or any(a < start or end < b for a, b, _ in met)):
            return None
        left = [block for block in left if block not in met]
        if any(_touches(block, olds, start, end) for block in left):
            return None
        if met:
            one = _redone(olds[start:end], _applied(olds, met, start, end), new_lines)
            if one is None:
                return None
            new_lines = [one]
        parts.append((start, end, new_lines))
    return "".join(_applied(olds, [*parts, *left], 0, len(olds)))


def _single_lines(blocks: Sequence[Block], olds: Sequence[str]) -> list[Block]:
    cut: list[Block] = []
    for start, end, new_lines in blocks:
        if end - start == len(new_lines):
            cut += [(start + k, start + k + 1, [line]) for k, line in enumerate(new_lines)]
        else:
            cut.append((start, end, new_lines))
    return [block for block in cut if list(block[2]) != list(olds[block[0] : block[1]])]


def _overlap(block: Block, start: int, end: int) -> bool:
    """Return True if a block and `start:end` overlap.

    An insertion overlaps lines on both sides of it, and another insertion at its place.
    """
    a, b, _ = block
    return a == start if a == b and start == end else a < end and start < b


def _touches(block: Block, olds: Sequence[str], start: int, end: int) -> bool:
    """Return True if a block borders on `start:end`, or could be shifted there.

    A block is shifted by another pairing of equal lines.
    """
    a, b, new_lines = block
    if _keeps(block, olds):
        return False
    own = {*olds[a:b], *new_lines}
    while a > 0 and olds[a - 1] in own:
        a -= 1
    while b < len(olds) and olds[b] in own:
        b += 1
    return a <= end and start <= b


def _keeps(block: Block, olds: Sequence[str]) -> bool:
    """Return True if a block replaces one line by a similar one.

    Similar lines share at least half of their words.
    """
    start, end, new_lines = block
    if (end - start, len(new_lines)) != (1, 1):
        return False
    one, other = words(olds[start]), words(new_lines[0])
    return 2 * len(set(one) & set(other)) >= max(len(set(one)), len(set(other)), 1)


def _applied(olds: Sequence[str], blocks: Sequence[Block], start: int, end: int) -> list[str]:
    lines: list[str] = []
    for a, b, new_lines in sorted(blocks, key=lambda block: block[:2]):
        lines += [*olds[start:a], *new_lines]
        start = b
    return [*lines, *olds[start:end]]


# ---------------------------------------------------------------- the replacement, on the same line


class _Read(Struct, frozen=True):
    """Tokens of a text, the blanks before each, and those after the last."""

    gaps: list[str]
    tokens: list[str]
    rest: str

    @classmethod
    def of(cls, text: str) -> _Read:
        found = list(_TOKEN.finditer(text))
        rest = text[found[-1].end() :] if found else text
        return cls([match[1] for match in found], [match[2] for match in found], rest)

    def quoted(self, ours: str, theirs: str) -> _Read:
        tokens = [theirs if token == ours else token for token in self.tokens]
        return _Read(self.gaps, tokens, self.rest)

    def shorter(self) -> _Read:
        return _Read(self.gaps[:-1], self.tokens[:-1], self.rest)

    def longer(self, gap: str, sign: str) -> _Read:
        return _Read([*self.gaps, gap], [*self.tokens, sign], self.rest)


def _redone(old: Sequence[str], there: Sequence[str], new: Sequence[str]) -> str | None:
    """Return the change from `old` to `new`, made to the similar lines `there`.

    None if `there` differs in more than its quotes, last sign and blanks, or the change cannot be
    carried over with certainty.
    """
    o, t, n = (_Read.of("".join(lines)) for lines in (old, there, new))
    if not o.tokens:
        return None  # blank lines are alike everywhere
    if not new:
        return "" if _alike(o.tokens) == _alike(t.tokens) else None
    kinds = {
        (ours, theirs)
        for ours, theirs in zip(o.tokens, t.tokens, strict=False)
        if {ours, theirs} <= _QUOTES
    }
    for ours, theirs in kinds:
        if ours != theirs:
            if len(kinds) > 1 or not _may_change_quotes(o, n, ours, theirs):
                return None
            o, n = o.quoted(ours, theirs), n.quoted(ours, theirs)
    if o.tokens != t.tokens and len(old) == len(new):
        if o.shorter().tokens == t.tokens and o.tokens[-1] in _TAILS & {*n.tokens[-1:]}:
            o, n = o.shorter(), n.shorter()
        elif o.tokens == t.shorter().tokens and t.tokens[-1] in _TAILS - {*n.tokens[-1:]}:
            o, n = (read.longer(t.gaps[-1], t.tokens[-1]) for read in (o, n))
    return _with_gaps(o, t, n) if o.tokens == t.tokens else None


def _alike(tokens: Sequence[str]) -> list[str]:
    return ["'" if token in _QUOTES else token for token in tokens]


def _may_change_quotes(o: _Read, n: _Read, ours: str, theirs: str) -> bool:
    """Return True if the other kind of quotes would mean the same in `new`.

    It is in neither, the quoted text ends, and no new sign is read in one kind of quotes only.
    """
    known = {*o.tokens}
    return (
        theirs not in known
        and theirs not in n.tokens
        and n.tokens.count(ours) % 2 == 0
        and not any(token in _LIVE and token not in known for token in n.tokens)
        and "\\" not in known
    )


def _with_gaps(o: _Read, t: _Read, n: _Read) -> str | None:
    kept = _kept(o.tokens, n.tokens)
    shifted = any(
        ours != theirs
        for k, (ours, theirs) in enumerate(zip(o.gaps, t.gaps, strict=True))
        if k == 0 or "\n" in ours
    )
    parts: list[str] = []
    for k, (gap, token) in enumerate(zip(n.gaps, n.tokens, strict=True)):
        at = kept.get(k)
        follows = at is not None and (kept.get(k - 1) == at - 1 if k else at == 0)
        if at is None or not follows:
            if shifted and (k == 0 or "\n" in gap):
                return None
        elif o.gaps[at] != t.gaps[at]:
            if gap != o.gaps[at]:
                return None
            gap = t.gaps[at]
        parts += [gap, token]
    return "".join([*parts, n.rest if n.rest != o.rest else t.rest])


def _kept(old: Sequence[str], new: Sequence[str]) -> dict[int, int]:
    """Map the index of each kept token in `new` to its index in `old`."""
    kept: dict[int, int] = {}
    i = j = 0
    for a0, a1, b0, b1 in [*line_diff(old, new), (len(old), len(old), len(new), len(new))]:
        kept.update(zip(range(j, b0), range(i, a0), strict=True))
        i, j = a1, b1
    return kept
