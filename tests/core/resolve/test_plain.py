"""Most quotes need no ladder: what `resolve` gives for them at once is what the ladder gives.

A text that is searched for the first time is always climbed; one that expects many searches is not,
where the old half stands in one place and the new one nowhere.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchq.core.model.ops import Replace
from patchq.core.resolve.ladder import Found, Missed, resolve
from patchq.core.resolve.plain import as_found, plain_places
from patchq.core.resolve.readings import RUNGS
from patchq.core.text.lines import SCANS, Text
from tests.helpers.effort import effort

FILE = "".join(f"line {k}\n" for k in range(6))

PLAIN = {
    "a line changes": ("line 2\n", "other\n"),
    "a line goes": ("line 2\nline 3\n", "line 2\n"),
    "all lines go": ("line 2\n", ""),
    "a line comes": ("line 2\nline 3\n", "line 2\nother\nline 3\n"),
    "lines change round others": ("line 1\nline 2\nline 3\n", "one\nline 2\nthree\n"),
    "a line moves": ("line 1\nline 2\n", "line 2\nline 1\n"),
    "a line is said twice": ("line 1\nline 2\n", "line 1\nother\nline 1\n"),
    "nothing changes": ("line 2\n", "line 2\n"),
    "the new half stands there": ("line 1\nline 2\n", "line 2\n"),
    "it stands round the old one": ("line 2\n", "line 1\nline 2\n"),
    "it stands elsewhere": ("line 2\n", "line 4\n"),
    "a return": ("line 2\r\n", "other\r\n"),
    "a return comes": ("line 2\n", "other\r\n"),
    "with the mark": ("\ufeffline 0\n", "\ufeffother\n"),
    "a mark comes": ("line 0\n", "\ufeffother\n"),
    "a mark goes": ("\ufeffline 0\n", "other\n"),
    "nothing is quoted": ("", "other\n"),
    "nowhere": ("line 9\n", "other\n"),
    "indented": ("  line 2\n", "  other\n"),
    "a curled quote": ("line 2\n", "\u201cline 2\u201d\n"),
}
FILES = {
    "plain": FILE,
    "with returns": FILE.replace("\n", "\r\n"),
    "with some": FILE.replace("2\n", "2\r\n"),
    "mostly with returns": FILE.replace("\n", "\r\n")
    .replace("1\r\n", "1\n")
    .replace("2\r\n", "2\n"),
    "a lone return": FILE.replace("line 4", "line\r4"),
    "with a mark": "\ufeff" + FILE,
    "without its last end": FILE.removesuffix("\n"),
    "twice": FILE + FILE,
    "fifty times": FILE * 51,
    "empty": "",
}


def answers(data: bytes, op: Replace, *, asked: bool = True) -> list[Found | Missed]:
    """What is found in a text that is searched for the first time, in one that is to be searched
    often, in one that was, and for many quotes in one pass, if that finds anything."""
    fresh, often = Text(data), Text(data)
    often.expect(SCANS + 1)
    found = [resolve(text, op, RUNGS, asked=asked) for text in (fresh, often, often)]
    others = {k: Replace(f"line {k}\n", "x\n") for k in range(3)}
    if place := plain_places(Text(data), {**others, 9: op}).get(9):
        found.append(as_found(place))
    return [
        replace(one, places=tuple(one.places)) if isinstance(one, Missed) else one for one in found
    ]


@pytest.mark.parametrize("text", FILES.values(), ids=FILES)
def test_a_quote_has_its_place_at_once(text: str) -> None:
    for name, halves in PLAIN.items():
        for asked in (True, False):
            first, *others = answers(text.encode(), Replace(*halves), asked=asked)
            assert all(other == first for other in others), (name, asked)


def test_most_of_many_quotes_need_no_search() -> None:
    lines = [f"line {k}\n" for k in range(6)]
    ops = {k: Replace(lines[k] + lines[k + 1], lines[k] + "other\n") for k in range(5)}
    assert plain_places(Text(FILE.encode()), ops).keys() == ops.keys()


def test_most_quotes_need_no_ladder() -> None:
    """Counted are calls: on the ladder it takes half of them again."""
    texts = Text(FILE.encode()), Text(FILE.encode())
    texts[0].expect(SCANS + 1)
    op = Replace("line 2\nline 3\n", "line 2\nother\n")
    plain, climbed = (effort(partial(resolve, text, op, RUNGS)) for text in texts)
    assert plain < 0.7 * climbed, (plain, climbed)


LINES = st.lists(
    st.sampled_from(["a", "b", "c", "", "  a", "a ", "d\r", "\u201ca\u201d"]), max_size=9
)


@given(LINES, LINES, st.integers(0, 8), st.integers(1, 4), st.booleans())
def test_any_quote_has_its_place_at_once(
    lines: list[str], new: list[str], start: int, count: int, asked: bool
) -> None:
    old = list(islice(lines, start, start + count))
    halves = ("".join(f"{line}\n" for line in half) for half in (old, new[:3]))
    data = "".join(f"{line}\n" for line in lines).encode()
    first, *others = answers(data, Replace(*halves), asked=asked)
    assert all(other == first for other in others)


def test_places_of_an_ambiguous_quote_are_made_when_they_are_asked_for() -> None:
    """Counted are calls: six for each of the places that are told apart."""
    text = Text((f"a\nb\n{FILE}" * 60).encode())
    text.expect(SCANS + 1)
    op = Replace("a\nb\n", "c\n")
    resolve(text, op, RUNGS)  # its lines are known then
    found = resolve(text, op, RUNGS)
    assert isinstance(found, Missed)
    assert [place.start for place in found.places[:3]] == [0, 8, 16]
    assert effort(partial(resolve, text, op, RUNGS)) < 6 * len(found.places)
