"""Where characters stand, and that damage never makes an edit land elsewhere."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from patchq.core.model.ops import Occurrences, Op, PatchHunk, Replace, ReplaceText
from tests.helpers.ops import batch, plan, result

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
