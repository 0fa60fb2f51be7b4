"""Measure how often the place suggested for a missed quote is the one that was meant.

    python -m bench.corpus.nearest CASES.jsonl.gz… [--least 95]

The quotes are those of a corpus's certain edits, each damaged in seven ways, and kept where the
damage makes it a quote without a place.  `later` are quotes that were refused as they are: another
response of the corpus brings nearly the same new text to a place of the very same file.  A place is
right within three lines of the first quoted line, or in the lines that an elided quote leaves out.
patchq's way is held against three others.  Exit 1 when its share of right ones is below `--least`,
2 when there is no quote.
"""

from __future__ import annotations

import difflib
import random
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from rapidfuzz import fuzz, process

from bench.console import command_line
from bench.corpus.cases import Case, read_cases
from patchq.core import formats
from patchq.core.formats.envelope.front_matter import open_response
from patchq.core.model.ops import PatchHunk, Replace, ReplaceText, halves
from patchq.core.resolve.ladder import Missed, resolve
from patchq.core.resolve.levels import LEVELS, STRIPPED, Lines, lines_of, stripped
from patchq.core.resolve.match import Hints, match
from patchq.core.resolve.nearest import Effort, nearest_places
from patchq.core.resolve.places import find_lines
from patchq.core.text.lines import Text

Way = Callable[[Text, Lines], list[int]]
WORD = re.compile(rb"\w+")
REACH = 3
ALIKE = 90
"""So much (of 100) of the new text has a later response in common with the refused one."""


@dataclass(frozen=True)
class Placed:
    """An edit's quote, and the lines (0-based) that it has, or that it should have."""

    name: str
    text: Text
    quote: Lines
    start: int
    end: int


# ---------------------------------------------------------------- the quotes


def certain(cases: Sequence[Case]) -> tuple[list[Placed], list[Placed]]:
    """Return the quotes with a place, and those refused whose place a later response shows."""
    texts: dict[bytes, Text] = {}
    placed: dict[tuple[str, Text, str], tuple[Placed, str]] = {}
    missed: dict[tuple[str, Text, str], str] = {}
    for case in cases:
        opened = open_response(case.response)
        if isinstance(opened, tuple):
            continue
        text = opened.text
        read = formats.parse(text, case.before.__contains__, opened.header, opened.first_line)
        for edit in read.edits:
            op, data = edit.op, case.before.get(edit.path)
            if not isinstance(op, PatchHunk | Replace | ReplaceText) or not data:
                continue
            old, new = halves(op)
            if not old.strip() or (isinstance(op, ReplaceText) and "\n" not in old):
                continue
            there = texts.setdefault(data, Text(data))
            found, key = match(there, op, Hints(LEVELS, edit.path)), (edit.path, there, old)
            if isinstance(found, Missed):
                missed |= {key: new} if found.why == "none" else {}
            elif key not in placed and any(stripped(there.contents[found.start : found.end])):
                quote = there.contents[found.start : found.end]
                name = f"{case.id} {edit.id}"
                placed[key] = Placed(name, there, quote, found.start, found.end), new
    later = [
        Placed(one.name, one.text, lines_of(old), one.start, one.end)
        for (path, text, old), new in missed.items()
        for (other, same, _), (one, brought) in placed.items()
        if (path, text) == (other, same) and fuzz.ratio(new, brought) >= ALIKE
    ]
    return [one for one, _ in placed.values()], list(
        {(one.text, one.start): one for one in later}.values()
    )


def a_word(quote: Lines, rng: random.Random) -> Lines:
    k = rng.choice([k for k, line in enumerate(quote) if WORD.search(line)] or [0])
    return [*quote[:k], renamed(quote[k], rng), *quote[k + 1 :]]


def a_word_a_line(quote: Lines, rng: random.Random) -> Lines:
    return [renamed(line, rng) for line in quote]


def renamed(line: bytes, rng: random.Random) -> bytes:
    found = list(WORD.finditer(line))
    if not found:
        return line
    word = rng.choice(found)
    return line[: word.start()] + b"renamed" + line[word.end() :]


def a_line_less(quote: Lines, rng: random.Random) -> Lines:
    k = rng.randrange(1, len(quote) - 1) if len(quote) > 2 else len(quote)
    return quote[:k] + quote[k + 1 :]


def other_indentation(quote: Lines, _: random.Random) -> Lines:
    return [line.lstrip() if k % 2 else b"  " + line for k, line in enumerate(quote)]


def other_blanks(quote: Lines, rng: random.Random) -> Lines:
    between = re.compile(rb"(?<=\w)(?=[^\w\s])|(?<=[^\w\s])(?=\w)")
    return [between.sub(lambda _: b" " * (rng.random() < 0.3), line) for line in quote]


def left_out(quote: Lines, _: random.Random) -> Lines:
    k = max(len(quote) // 4, 1)
    return [*quote[:k], b"    # ... existing code ...", *quote[-k:]] if len(quote) > 4 else quote


def stale(quote: Lines, rng: random.Random) -> Lines:
    """A third of the lines in other words, with new ones behind some of them."""
    old = set(rng.sample(range(len(quote)), max(len(quote) // 3, 1)))
    lines = []
    for k, line in enumerate(quote):
        words = WORD.sub(lambda m: b"old_" * (rng.random() < 0.5) + m[0], line)
        lines += [words if k in old else line]
        lines += [b"    trace(%d)" % k] if k in old and rng.random() < 0.5 else []
    return lines


DAMAGES: dict[str, Callable[[Lines, random.Random], Lines]] = {
    "a word": a_word,
    "a word a line": a_word_a_line,
    "a line less": a_line_less,
    "indentation": other_indentation,
    "blanks": other_blanks,
    "left out": left_out,
    "stale": stale,
}


def damaged(quotes: Sequence[Placed]) -> Iterator[tuple[str, Placed]]:
    """Yield each quote with each damage that leaves it without a place."""
    for one in quotes:
        for name, damage in DAMAGES.items():
            quote = damage(one.quote, random.Random(f"{one.name} {name}"))
            half = b"".join(line + b"\n" for line in quote).decode(errors="surrogateescape")
            found = resolve(one.text, Replace(half, "new\n"), LEVELS)
            if isinstance(found, Missed) and found.why == "none":
                yield name, Placed(one.name, one.text, quote, one.start, one.end)


# ---------------------------------------------------------------- the ways


def patchq(text: Text, quote: Lines) -> list[int]:
    return nearest_places(text, quote, Effort())


def equal_lines(text: Text, quote: Lines) -> list[int]:
    """The place that most quoted lines agree on, but for blanks at their ends; else the line that
    is the most like the longest."""
    votes = Counter[int]()
    for j, line in enumerate(stripped(quote)):
        for i, _ in islice(find_lines(text, [line], STRIPPED), 20) if line else ():
            votes[max(i - j, 0)] += min(len(line), 40)
    if votes:
        return [max(votes, key=lambda start: (votes[start], -start))]
    at = max(range(len(quote)), key=lambda k: len(quote[k].strip()))
    best = process.extractOne(quote[at], text.contents, scorer=fuzz.ratio, score_cutoff=60)
    return [max(int(best[2]) - at, 0)] if best else []


def longest_run(text: Text, quote: Lines) -> list[int]:
    """The longest run of lines that are equal but for blanks at their ends."""
    run = difflib.SequenceMatcher(
        None, stripped(text.contents), stripped(quote), autojunk=False
    ).find_longest_match()
    return [max(run.a - run.b, 0)] if run.size else []


def likest_window(text: Text, quote: Lines) -> list[int]:
    """As many lines whose words are the most alike."""
    lines = [b" ".join(WORD.findall(line)).decode() for line in text.contents]
    wanted = b" ".join(WORD.findall(b"\n".join(quote))).decode()
    windows = (" ".join(lines[k : k + len(quote)]) for k in range(len(lines)))
    ratios = [fuzz.ratio(wanted, window[: 2 * len(wanted)]) for window in windows]
    return [ratios.index(max(ratios))] if ratios else []


WAYS: dict[str, Way] = {
    "patchq": patchq,
    "equal lines": equal_lines,
    "longest run": longest_run,
    "likest window": likest_window,
}


def is_right(one: Placed, start: int, name: str) -> bool:
    last = max(one.start, one.end - 1) if name == "left out" else one.start
    return one.start - REACH <= start <= last + REACH


def main() -> int:
    parser = command_line("bench.corpus.nearest", __doc__)
    parser.add_argument("files", nargs="+", type=Path, metavar="CASES")
    parser.add_argument("--least", type=float, default=95.0, metavar="PERCENT")
    args = parser.parse_args()
    right: dict[str, Counter[str]] = defaultdict(Counter)
    counts, two = Counter[str](), 0
    quotes, later = certain([case for path in args.files for case in read_cases(path)])
    for name, one in (*damaged(quotes), *(("later", one) for one in later)):
        counts.update([name, "all"])
        for way, ask in WAYS.items():
            places = ask(one.text, one.quote)
            fits = [is_right(one, start, name) for start in places]
            right[way].update([name, "all"] if any(fits) else [])
            if way == "patchq":
                right["patchq's first"].update([name, "all"] if any(fits[:1]) else [])
                two += len(places) > 1
    if not counts:
        return 2
    print(f"{'damage':<16}{'quotes':>8}" + "".join(way.rjust(16) for way in right))
    for name, count in counts.items():
        cells = (f"{100 * hits[name] / count:.1f} %".rjust(16) for hits in right.values())
        print(f"{name:<16}{count:>8,}{''.join(cells)}")
    print(f"\npatchq names two places of {100 * two / max(counts['all'], 1):.1f} % of them")
    return int(100 * right["patchq"]["all"] < args.least * counts["all"])


if __name__ == "__main__":
    sys.exit(main())
