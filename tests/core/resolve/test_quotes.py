"""Quotes of whole lines: where they are found, when that is certain, and what is written."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from patchq.core.model.ops import Replace
from patchq.core.resolve import places
from patchq.core.resolve.ladder import Found, Missed, present, resolve
from patchq.core.resolve.levels import LEVELS, Lines
from patchq.core.text.lines import BOM, Text
from tests.helpers.trees import RULES, edits, planned, written


@pytest.mark.parametrize(
    ("name", "before", "old", "new", "after"),
    [
        ("exact", "a\nb\nc\n", "b\n", "B\n", "a\nB\nc\n"),
        ("exact", "a\r\nb\r\n", "b\r\n", "B\r\n", "a\r\nB\r\n"),
        ("line_endings", "a\r\nb\r\n", "b\n", "B\n", "a\r\nB\r\n"),
        ("line_endings", "a\nb\n", "b\r\n", "B\r\n", "a\nB\n"),
        ("trailing_whitespace", "a \nb\t\nc\n", "a\nb\n", "a\nB\n", "a \nB\nc\n"),
        ("trailing_whitespace", "a\nb\nc\n", "a  \nb \n", "a  \nB\n", "a\nB\nc\n"),
        ("indentation", "if x:\n    a\n    b\n", "a\nb\n", "a\nB\n", "if x:\n    a\n    B\n"),
        ("indentation", "  a\n\n  b\n", "    a\n\n    b\n", "    a\n\n    B\n", "  a\n\n  B\n"),
        ("indentation", "\ta\n\t\tb\n", "a\n\tb\n", "a\n\tB\n\tC\n", "\ta\n\t\tB\n\t\tC\n"),
        ("edge_blank_lines", "a\nb\n", "\nb\n", "\nB\n", "a\nB\n"),
        ("edge_blank_lines", "a\nb\nc\n", "\n\nb\n\n", "\n\nB\n\n", "a\nB\nc\n"),
        ("edge_blank_lines", "a\nb\n", "\na\n", "", "b\n"),
        ("typography", 'say("a")\nb\n', "say(“a”)\nb\n", "say(“a”)\nB\n", 'say("a")\nB\n'),
        ("typography", "“a”\nb\n", '"a"\nb\n', '"a"\nB\n', "“a”\nB\n"),
        ("typography", "a\u00a0b\nc\n", "a b\nc\n", "a b\nC\n", "a\u00a0b\nC\n"),
        ("line_numbers", "a\nb\n", "1 | a\n2 | b\n", "1 | a\n2 | B\n", "a\nB\n"),
        ("line_numbers", "a\n  b\n", "1→a\n2→  b\n", "a\n  B\n", "a\n  B\n"),
        ("line_numbers", "a\n  b\n", " 9|a\n10|  b\n", " 9|a\n10|  B\n", "a\n  B\n"),
        ("line_numbers", " a\nb\n", "1 |  a\n2 | b\n", "a\nc\n", "a\nc\n"),
        ("line_numbers", "a\nb\n", "\n1 | a\n2 | b\n\n", "\n1 | a\n2 | B\n\n", "a\nB\n"),
        ("exact", "\ufeffa\nb\n", "\ufeffa\nb\n", "\ufeffA\nb\n", "\ufeffA\nb\n"),
        ("trailing_whitespace", "\ufeffa\nb\n", "\ufeffa \nb\n", "\ufeffa \nB\n", "\ufeffa\nB\n"),
        ("exact", "\ufeffa\nb\n", "a\nb\n", "\ufeffA\nb\n", "\ufeffA\nb\n"),
        ("unescaped", 'say("a")\n', 'say(\\"a\\")\n', 'say(\\"b\\")\n', 'say("b")\n'),
        ("unescaped", "a\n\tb\nc\n", "a\\n\\tb\n", "a\\n\\tB\n", "a\n\tB\nc\n"),
        ("unescaped", "a\n\nb\n", "a\\n\n", "", "\nb\n"),
        ("elided", "a\nb\nc\nd\n", "a\n...\nd\n", "A\n...\nD\n", "A\nb\nc\nD\n"),
    ],
)  # fmt: skip
def test_rung(name: str, before: str, old: str, new: str, after: str) -> None:
    plan = planned(before, edits((old, new)))
    assert [(e.state, e.match) for e in plan.edits] == [("applied", name)]
    assert plan.changes[0].after == after.encode()
    without = replace(RULES, levels=tuple(r for r in LEVELS if r != name))
    if name not in ("exact", "line_endings"):  # trailing whitespace covers the line ends
        assert planned(before, edits((old, new)), without).refused


@pytest.mark.parametrize(
    ("before", "old", "new"),
    [
        ("a b\n", "a  b\n", "c\n"), ("\tx\n\ty\n", "    x\n    y\n", "z\n"),
        ("  a\n   b\n", "a\nb\n", "c\n"), ("  a\n", "    a\n", "    a\nb\n"),
        ("b\nx\n", "\nb\n", "c\n"), ("a\n", "\n\n\n\n\na\n", "\n\n\n\n\nb\n"),
        ("x\n", "\nx\n\n", "\n"), ("x\n", "\nx\n", "y\n\n"),
        ("if x:\n    y\n", "7 | if x:\n9 |     y\n", "7 | z\n"),
        ("a\nb\n", "1 | a\n2 | b\n", "1 | a\nB\n"), ("a\nb\n", "1|a\n2| b\n", "1|a\n2| c\n"),
        ("a\nb\n", "    1 | a\n    2 | b\n", "    a\n    c\n"),
        ("\ufeffa\nb\n", "\ufeffa\nb\n", "a\nb\n"), ("a\\nb\n", "a\\\\n\n", "c\n"),
        ("a\nb\nc\n", "a\n...\n", "a\n...\nd\n"),
        ("a\nx\nb\n", "a\n....\nb\n", "c\n....\nb\n"),
        ("a\nx\nb\n", "a\n...\nb\n", "\n...\n\n"), ("a\nb\nc\n", "a\n...\nc\n", "d\n"),
        ("a\nb\nc\n", "c\n...\na\n", "C\n...\na\n"), ("say('a')\n", "say(‘a’)\n", "say(‘b’)\n"),
        ("abc\n", "b\n", "c\n"), ("a\n", "A\n", "b\n"),
    ],
    ids=[
        "blanks inside a line", "tabs are not blanks", "the shift is not uniform",
        "a new line lacks what comes off", "blank lines unpaired", "too many blank lines",
        "one blank line is not given up twice", "blank lines at different edges",
        "numbers that leave lines out", "numbers on some new lines", "bars with and without blanks",
        "numbers on the old lines, and the new ones shifted", "the byte order mark goes",
        "escaped at another level", "dots at the end", "four dots", "dots alone",
        "dots in one half", "segments out of order",
        "curly quotes in a new line too", "part of a line", "case",
    ],
)  # fmt: skip
def test_uncertain_is_refused(before: str, old: str, new: str) -> None:
    plan = planned(before, edits((old, new)))
    assert plan.refused
    assert plan.changes == ()
    assert plan.problems[0].code in ("match.none", "match.ambiguous")


@pytest.mark.parametrize(
    ("before", "old", "new", "already"),
    [
        ("a\nx\nb\n", "a\nb\n", "a\nx\nb\n", True),
        ("if x:\n    y\n", "y\n", "if x:\n    y\n", True), ("a\nb\n", "a\n", "a\nb\n", True),
        ("x\nx\n", "x\n", "x\nx\n", True), ("    a\n", "a\n", "    a\n", True),
        ("a\n", "a  \n", "a\n", True), ("a\nx\nb\n", "a\nb\n", "a\nb\n", False),
        ("new\n", "old\n", "new\n", False), ("a\n}\n", "a\nb\n", "a\n}\n", False),
        ("a\né\n", "a\nb\n", "a\né\n", True), ("a\nx\na\nx\n", "a\nb\n", "a\nx\n", False),
        ("x\ny\n", "x\nz\ny\n", "x\ny\n", False), ("a\n", "a\nb\n", "", False),
        ("a\n\n\nk\nx\n", "k\ny\n", "k\nx\n", True), ("a \nx\n", "a\nb\n", "a\nx\n", True),
        ("x\n  a\n", "b\n...\na\n", "x\n...\na\n", False),
        ("x\nm\na\n", "b\n...\na\n", "x\n...\na\n", True),
        ("1\nx\nm\na\n2\n", "x\n...\na\n", "1\nx\n...\na\n2\n", True),
    ],
    ids=[
        "an insertion", "a wrapping", "a line behind", "a doubled line", "an indentation",
        "a trailing blank", "halves alike", "nothing kept", "nothing said", "a letter beyond ASCII",
        "at two places", "nothing new", "empty replacement", "a changed line", "under lenience",
        "another indentation", "elided", "inside its own elided replacement",
    ],
)  # fmt: skip
def test_already_there(before: str, old: str, new: str, already: bool) -> None:
    seen, op = Text(before.encode()), Replace(old, new)
    found = resolve(seen, op, LEVELS)
    if isinstance(found, Missed):
        assert found.why == "none"
        found = present(seen, op, LEVELS) or found
    assert (isinstance(found, Found) and found.already) == already


def test_halves_that_a_rung_cannot_tell_apart_are_refused() -> None:
    # Found at two blanks: neither what it was (none) nor what it shall be (four).
    result = resolve(Text(b"  a\n"), Replace("a\n", "    a\n"), LEVELS)
    assert isinstance(result, Missed)
    assert result.why == "unwritable"


@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        (b"a \nb\t\nc\n", "a\nb\nc\n", "a\nb\nC\n", b"a \nb\t\nC\n"),  # trailing blanks
        (b"a \nb\nc\n", "a\nb\nc\n", "b\na\nc\n", b"b\na \nc\n"),  # a moved line
        (b"a \nb\nc\n", "a\nb\nc\n", "a\nb\na\n", b"a \nb\na \n"),  # a line that comes twice
        (b"x \ny\nz\nx\t\n", "x\ny\nz\nx\n", "x\nx\ny\nz\n", b"x \nx\t\ny\nz\n"),
        (b"a\nb\n\nc\n", "a\nb\n \nc\n", " \na\nb\nc\n", b"\na\nb\nc\n"),  # a moved blank line
        (b"  a\n   \n  b\n", "a\n\nb\n", "a\n\n\nb\n", b"  a\n   \n\n  b\n"),
        (b"a\r\nb\nc\r\n", "a\nb\nc\n", "b\na\nx\nc\n", b"b\na\r\nx\r\nc\r\n"),
        (b"a\nb\r\nc\n", "b\n", "x\ny\n", b"a\nx\ny\nc\n"),  # new lines take the most frequent end
        (b"a\rb\nc\n", "a\rb\n", "a\rb\nx\n", b"a\rb\nx\nc\n"),  # lone CR
        (BOM + b"a\n", "a\n", "x\na\n", BOM + b"x\na\n"),  # behind a BOM
        (b"a\nb", "b\n", "B\n", b"a\nB"),  # last line changed
        (b"a\nb", "b\n", "b\nc\n", b"a\nb\nc"),  # line behind the last
        (b"a\r\nb", "b\n", "b\nc\n", b"a\r\nb\r\nc"),  # the same with CRLF
        (b"a\nb", "b\n", "", b"a"),  # last line deleted
        (b"a\r\nb", "b\n", "", b"a"),  # the same with CRLF
        (b"a\nb", "a\nb\n", "b\na\n", b"b\na"),  # last line moved up
        (b"a\nb", "a\n", "", b"b"),  # first line deleted
        (b"a", "a\n", "", b""),  # only line deleted
        (b"a\nb\r", "a\n", "A\n", b"A\nb\r"),  # a last lone CR
        (b"a\n\nb", "b\n", "", b"a\n"),  # a blank line is last
        ("é\nb\n".encode(), "é\nb\n", "é\nü\n", "é\nü\n".encode()),  # beyond ASCII
        ("a\nb\nc\n\nx\n", "b\n", "x\n", "a\nx\nc\n\nx\n"),  # the new text elsewhere proves nothing
        # several places
        ("x\nx\nx\n", "x\n", "", "x\nx\n"),  # one of equal neighbours goes
        ("x\nx\n", "x\nx\n", "x\n", "x\n"),  # both are quoted
        ("x\nx\ny\n", "x\n", "x\nz\n", None),  # different neighbours
        ("x\nx\n" + "a\n" * 60 + "x\n", "x\n", "", None),  # one stands apart
        ("x\n" * 51, "x\n", "", None),  # too many to tell
        ("a\nb\na\nc\n", "a\n", "d\n", None),  # two places
        ("  a\n    a\n", "a\n", "b\n", None),  # two shifts
        ("x\n" * places.MOST_PLACES + "y\nx\n", "x\n", "x\nx\n", None),
    ],
)  # fmt: skip
def test_what_is_written(
    before: str | bytes, old: str, new: str, after: str | bytes | None
) -> None:
    wanted = after.encode() if isinstance(after, str) else after
    assert written(before, (old, new)) == wanted


PIECES = st.lists(
    st.lists(st.sampled_from([b"a", b"b"]), min_size=1, max_size=2), min_size=2, max_size=3
)


@given(st.lists(st.sampled_from([b"a", b"b", b"c"]), max_size=9), PIECES, st.data())
def test_a_chain_is_taken_only_if_all_chains_give_its_bytes(
    there: Lines, old: list[Lines], data: st.DataObject
) -> None:
    new = [data.draw(st.sampled_from([segment, [b"X"], [*segment, b"Y"]])) for segment in old]
    results = set()
    for starts in combinations(range(len(there) + 1), len(old)):
        ends = [start + len(segment) for start, segment in zip(starts, old, strict=True)]
        fits = all(there[s:e] == p for s, e, p in zip(starts, ends, old, strict=True))
        if fits and all(e <= s for e, s in zip(ends, starts[1:], strict=False)):
            lines = list(there)
            for s, e, p in reversed(list(zip(starts, ends, new, strict=True))):
                lines[s:e] = p
            results.add(b"".join(line + b"\n" for line in lines))
    before = b"".join(line + b"\n" for line in there)
    halves = ["\n...\n".join(b"\n".join(p).decode() for p in half) + "\n" for half in (old, new)]
    found = resolve(Text(before), Replace(halves[0], halves[1]), LEVELS)
    if isinstance(found, Missed):
        assert found.why == ("ambiguous" if results else "none")
        assert len(results) != 1
    elif not found.already:
        done = before
        for hunk in reversed(found.hunks):
            done = done[: hunk.start] + hunk.new + done[hunk.end :]
        assert results == {done}
