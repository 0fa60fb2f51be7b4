"""Which snippet of a file a model may name as the one that a failed quote means.

The answer only selects; whether it can be believed is told without it.  The snippet has to

- stand in the file, to the letter, and once; as whole lines where the format quotes whole lines;
- share four in five words with the quote, those that only one of the two has counted against it, so
  that it is neither much wider nor much narrower;
- lie at the place that the refusal itself calls the nearest, if it names one;
- be plainly nearer than every other place of the file: wherever else as many lines are taken, more
  than twice as many of the quote's words are missing, and one at least;
- leave no trace of another place: no line of the quote that is missing from the snippet stands
  elsewhere in the file, and no name that is missing from it is defined there.

Similarity thus vetoes what the model chose; it never chooses.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from patchq.llm.merge import words

_LEAST_WORDS = 3
_ALIKE = 0.8
_DEFINED = re.compile(
    r"\b(?:def|class|function|func|fn|struct|enum|interface|trait|type|module|const|let|var)\s+(\w+)"
)


@dataclass(frozen=True, slots=True)
class MissedQuote:
    """The quote that stands nowhere, the line (0-based) that is nearest if one was named, and
    whether the format quotes whole lines."""

    quote: str
    near: int | None
    whole_lines: bool


def selected(text: str, missed: MissedQuote, snippet: str) -> str | None:
    """The snippet as the quote to use, or None if it is not certain.  `text` has `\\n` for line
    ends; so does what is returned."""
    snippet = snippet.replace("\r\n", "\n")
    if missed.whole_lines and snippet and not snippet.endswith("\n"):
        snippet += "\n"
    if text and not text.endswith("\n"):
        text += "\n"
    starts = list(_found(text, snippet, missed.whole_lines))
    if len(starts) != 1 or snippet == missed.quote:
        return None
    if not _alike(words(missed.quote), words(snippet)):
        return None
    first = text.count("\n", 0, starts[0])
    last = first + snippet.removesuffix("\n").count("\n") + 1
    reach = missed.quote.removesuffix("\n").count("\n") + 1
    if missed.near is not None and not (first < missed.near + reach and missed.near < last):
        return None
    lines = text.split("\n")[:-1]
    rest = "\n".join(lines[first:last]).replace(snippet.removesuffix("\n"), "\n", 1)
    if not _nearest(lines, (first, last), missed.quote, snippet, rest):
        return None
    others = [*lines[:first], rest, *lines[last:]]
    return None if _traces(others, missed.quote, snippet) else snippet


def _found(text: str, snippet: str, whole_lines: bool) -> Iterator[int]:
    """Where the snippet stands, also over itself; at the start of a line if that is asked for."""
    at = text.find(snippet) if snippet.strip() else -1
    while at >= 0:
        if not whole_lines or at == 0 or text[at - 1] == "\n":
            yield at
        at = text.find(snippet, at + 1)


def _alike(quoted: Sequence[str], named: Sequence[str]) -> bool:
    shared = sum((Counter(quoted) & Counter(named)).values())
    return len(quoted) >= _LEAST_WORDS and 2 * shared >= _ALIKE * (len(quoted) + len(named))


def _nearest(
    lines: Sequence[str], own: tuple[int, int], quote: str, snippet: str, rest: str
) -> bool:
    """Whether everywhere else, and in the `rest` of its own lines, more than twice as many words
    of the quote are missing."""
    wanted = Counter(words(quote))
    missing = (wanted - Counter(words(snippet))).total()
    first, last = own
    rivals = [(wanted - Counter(words(rest))).total()]
    for part in (lines[:first], lines[last:]):
        rivals += _missing(part, last - first, wanted)
    return min(rivals) > 2 * missing


def _missing(lines: Sequence[str], count: int, wanted: Counter[str]) -> Iterator[int]:
    """How many of the wanted words are missing from each run of `count` lines."""
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
    """Whether something of the quote that the snippet lacks stands elsewhere in the file."""
    own = {line.strip() for line in snippet.split("\n")}
    lacking = {line.strip() for line in quote.split("\n")} - own
    lacking = {line for line in lacking if len(words(line)) > 1}
    if any(line.strip() in lacking for line in others):
        return True
    unknown = set(words(quote)) - set(words(snippet))
    return any(name in unknown for line in others for name in _DEFINED.findall(line))


def likeliest(lines: Sequence[str], quote: str) -> int:
    """The line (0-based) at which, judged by words alone, most of the quote would stand."""
    wanted = Counter(words(quote))
    count = quote.removesuffix("\n").count("\n") + 1
    missing = list(_missing(lines, count, wanted))
    best = min(range(len(missing)), key=missing.__getitem__, default=0)
    return max(0, best - count + 1)
