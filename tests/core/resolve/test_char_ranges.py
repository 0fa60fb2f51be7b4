"""Where characters stand, and that damage never makes an edit land elsewhere."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchq.core.model.ops import Occurrences, Op, PatchHunk, Replace, ReplaceText
from patchq.core.resolve.levels import LEVELS
from patchq.core.resolve.places import CharRange, char_ranges, within
from patchq.core.text.lines import Text
from tests.helpers.ops import batch, plan, result

LETTERS = st.text(st.sampled_from(list('ab"“é\n\r')), max_size=12)


@given(LETTERS, LETTERS.filter(bool))
def test_every_place_reads_as_what_was_sought(there: str, sought: str) -> None:
    text = Text(there.encode())
    plain = sought.replace("\r\n", "\n").replace("“", '"')
    for level, found in char_ranges(text, sought.encode(), LEVELS):
        for span in found:
            assert 0 <= span.start <= span.end <= len(text.whole)
            read = text.whole[span.start : span.end].decode()
            if level == "exact":
                assert read == sought
            else:
                assert read.replace("\r\n", "\n").replace("“", '"') == plain


def test_a_line_end_is_not_cut() -> None:
    text = Text(b"a\r\nb\r\n")
    assert [(level, found) for level, found in char_ranges(text, b"\nb", LEVELS)] == [
        ("exact", []),
        ("line_endings", [CharRange(1, 4)]),
    ]


def test_the_place_between_its_contexts() -> None:
    text = Text("“é”\r\nx\r\n".encode())
    span = CharRange(0, len(text.whole))
    assert within(text, span, b'"', b'"\nx\n') == CharRange(3, 5)


# ------------------------------------------------------------ damaged edits

WORDS = ("one", "two", "f('x')", "}", "if y:")
LINES = st.lists(
    st.tuples(st.sampled_from(["", "  ", "    "]), st.sampled_from(WORDS)).map("".join),
    min_size=2, max_size=8,
)  # fmt: skip
Slip = Callable[[str], str]
SLIPS: tuple[Slip, ...] = (
    lambda line: line,
    lambda line: line + "  ",
    lambda line: "  " + line,
    lambda line: line.removeprefix("  "),
    lambda line: line.replace("'", "’"),
    lambda line: line + "\r",
)
FORMS: tuple[Callable[[str, str], Op], ...] = (
    Replace,
    ReplaceText,
    Occurrences,
    PatchHunk,
    lambda old, new: ReplaceText(old.removesuffix("\n"), new.removesuffix("\n")),
)


@given(LINES, st.data(), st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_a_damaged_edit_lands_in_a_place_that_it_quotes_or_is_refused(
    lines: list[str], data: st.DataObject, end: str, open_end: bool
) -> None:
    start = data.draw(st.integers(0, len(lines) - 1))
    stop = data.draw(st.integers(start + 1, len(lines)))
    slip, form = data.draw(st.sampled_from(SLIPS)), data.draw(st.sampled_from(FORMS))
    old = lines[start:stop]
    new = [*old, "    fresh()"]

    def written(*there: str) -> str:
        text = end.join([*there, ""])
        return text.removesuffix(end) if open_end and form is not PatchHunk else text

    halves = ("".join(slip(line) + "\n" for line in half) for half in (old, new))
    done = plan(written(*lines), batch(form(*halves)))
    stripped = [line.strip() for line in lines]
    places = [
        i + len(old)
        for i in range(len(lines))
        if stripped[i : i + len(old)] == [line.strip() for line in old]
    ]
    for change in done.changes:
        assert change.after is not None
        got = change.after.decode()
        told = [line.removesuffix("\r") for line in got.split("\n")]
        assert any(
            [line.strip() for line in told if line.strip()]
            == [*stripped[:at], "fresh()", *stripped[at:]]
            for at in places
        )
        assert {line for line in told if line.strip() != "fresh()"} <= {*lines, ""}
        assert got.count("\r\n") == (got.count("\n") if end == "\r\n" else 0)


def test_thousands_of_calls_in_a_long_file() -> None:
    text = "".join(f"line {i} “x”\r\n" for i in range(20_000))
    ops = [ReplaceText(f"line {i} “x”\n", f"l {i}\n") for i in range(0, 20_000, 40)]
    assert result(text, *ops).count("l ") == 500


@pytest.mark.parametrize("levels", [(), ("exact",), LEVELS])
def test_nothing_is_nowhere(levels: tuple[str, ...]) -> None:
    assert list(char_ranges(Text(b"a\n"), b"", levels)) == []
