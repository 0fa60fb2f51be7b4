"""Edits that quote characters: calls, indexed and contextual edits."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchq.core.model.ops import (
    InContext,
    InParagraph,
    Occurrences,
    Op,
    PatchHunk,
    Replace,
    ReplaceText,
)
from tests.helpers.trees import batch, planned, result


@pytest.mark.parametrize(
    ("before", "op", "after"),
    [
        ("a b c\n", ReplaceText("b", "B"), "a B c\n"),
        ("x x\n", ReplaceText("x", "y"), "match.ambiguous"),
        ("aaa\n", ReplaceText("aa", "b"), "match.ambiguous"),
        ("x x\n", ReplaceText("x", "y", 2, stated=True), "y y\n"),
        ("x x x\n", ReplaceText("x", "y", 2, stated=True), "match.count"),
        ("x\n", ReplaceText("x", "y", 2, stated=True), "match.count"),
        ("z\n", ReplaceText("x", "y", 2, stated=True), "match.none"),
        ("x x\n", ReplaceText("x", "y", 1, stated=True), "match.count"),
        ("x x x\n", ReplaceText("x", "y", None), "y y y\n"),
        ("aaa\n", ReplaceText("aa", "b", None), "ba\n"),
        ("z\n", ReplaceText("x", "y", None), "match.none"),
        ("a\n a\n", ReplaceText("a\n", "b\n", None), "b\n b\n"),
        ("x \ny\nx\ny \n", ReplaceText("x\ny\n", "x\nz\n", 2, stated=True), "x \nz\nx\nz\n"),
        ("x\nx\ny\n", ReplaceText("x\n", ""), "x\ny\n"),
    ],
    ids=[
        "a part of a line", "two places", "places that overlap", "as many as stated",
        "more than stated", "fewer than stated", "none where some are stated", "one is stated",
        "every one", "every one without overlap", "every one, of none", "every one, in any line",
        "as many as stated, leniently", "two places with one result",
    ],
)  # fmt: skip
def test_counts(before: str, op: Op, after: str) -> None:
    assert result(before, op) == after


@pytest.mark.parametrize(
    ("op", "after"),
    [
        (Occurrences("x", "y", (2,)), "x y x\n"), (Occurrences("x", "y", (3, 1)), "y x y\n"),
        (Occurrences("x", "y", (1, 1)), "y x x\n"),
        (Occurrences("x", "!", (1, 3), insert=True), "x! x x!\n"),
        (Occurrences("x", "", (2,)), "x  x\n"), (Occurrences("x", "y", (4,)), "match.none"),
        (Occurrences("x", "y", (0,)), "match.none"), (Occurrences("x", "y"), "match.ambiguous"),
    ],
)  # fmt: skip
def test_occurrences(op: Op, after: str) -> None:
    assert result("x x x\n", op) == after


@pytest.mark.parametrize(
    ("before", "op", "after"),
    [
        ('say("a")\n', ReplaceText("say(“a”)", "tell('a')"), "tell('a')\n"),
        ('say("a")\n', ReplaceText("say(“a”)", "say(“b”)"), "match.none"),
        ('f("a")\n', ReplaceText('f(\\"a\\")', 'f(\\"b\\")'), 'f("b")\n'),
        ("a b\n", ReplaceText("a b  ", "c"), "match.none"),
        ("  a\n", ReplaceText("\ta", "\tb"), "match.none"),
        ("a  b\n", ReplaceText("a b", "c"), "match.none"),
        ("1 | x\n", ReplaceText("x", "y"), "1 | y\n"),
        ("x\n", ReplaceText("1 | x", "1 | y"), "match.none"),
    ],
    ids=[
        "typography", "curly quotes in the new text too", "unescaped", "trailing blanks",
        "indentation", "blanks inside", "to the letter", "line numbers",
    ],
)  # fmt: skip
def test_less_than_a_line_is_not_stretched(before: str, op: Op, after: str) -> None:
    assert result(before, op) == after


@pytest.mark.parametrize(
    ("before", "op", "after"),
    [
        ("a \nb\n", ReplaceText("a\nb", "a\nc"), "a \nc\n"),
        ("  a\n  b\n", ReplaceText("a\nb\n", "a\nc\n"), "  a\n  c\n"),
        ("x\n  a\n  b", ReplaceText("a\nb", "a\nc"), "x\n  a\n  c"),
        ("a\r\nb\r\n", ReplaceText("a\nb", "a\nc\nd"), "a\r\nc\r\nd\r\n"),
        ("    a\nb\n", ReplaceText("a", "c\n    d"), "    c\n    d\nb\n"),
        ("    a\nb\n", ReplaceText("a", "c\nd"), "match.none"),
        ("    a\nb\n", ReplaceText("a\n", "c\na\n"), "match.none"),
        ("    a\n    b\n", ReplaceText("a\n", ""), "        b\n"),
        ("    a\n\n", ReplaceText("a\n\n", "\n"), "    \n"),
        ("    a\n        a\n", ReplaceText("      a\n", "      b\n"), "    a\n        b\n"),
        ("    a\nb\n", ReplaceText("a\nb", "c\nd\nb"), "    c\nd\nb\n"),
        ("    a\n    b\n", ReplaceText("a\n    b", "c\nd"), "    c\nd\n"),
        ("\ta\n", ReplaceText("a", "b\n        c"), "match.none"),
        ("    a\n", ReplaceText("  a\n", "  b\n  a\n"), "match.none"),
        ("a\nb\nc\n", ReplaceText("a\\nb\\n", ""), "c\n"),
        ("a\nb\nc\n", ReplaceText("a\\nb", ""), "\nc\n"),
        ("a\nb\nc\n", ReplaceText("a\\nb\\n", "d\\n"), "d\nc\n"),
        ("a\nb\nc\n", Occurrences("a\n...\nc\n", "d\n...\nc\n", (1,)), "match.none"),
    ],
    ids=[
        "without the last newline", "shifted", "at an end without newline", "carriage returns",
        "behind the indentation", "a line that lacks it", "a moved line that lacks it",
        "a line but its indentation", "a line but its indentation, a blank one behind",
        "inside one of two indentations", "below the line it begins in, as the quote",
        "as many lines, one of them further out", "another kind of indentation",
        "inside the indentation", "escaped and gone",
        "escaped and gone but for its last newline", "escaped", "elided, with a stated occurrence",
    ],
)  # fmt: skip
def test_several_lines(before: str, op: Op, after: str) -> None:
    assert result(before, op) == after


@pytest.mark.parametrize(
    ("before", "op", "after"),
    [
        ("a\r\nb\r\n", ReplaceText("b", "c\nd"), "a\r\nc\r\nd\r\n"),
        ("a\r\nb\n", ReplaceText("a\nb", "a\nc"), "a\r\nc\n"),
        ("a\r\nb\r\n", ReplaceText("\nb", "\nc"), "a\r\nc\r\n"),
        ("a\r\nb\r\n", ReplaceText("\nb", "c"), "ac\r\n"),
        ("\ufeffa\nb\n", ReplaceText("a", "c"), "\ufeffc\nb\n"),
        ("\ufeffa\nb\n", ReplaceText("\ufeffa\n", "\ufeffc\n"), "\ufeffc\nb\n"),
        ("\ufeffa\nb\n", ReplaceText("\ufeffa \nb\n", "\ufeffa \nc\n"), "\ufeffa\nc\n"),
        ("\ufeffa\nb\n", ReplaceText("a\n", "\ufeffc\n"), "\ufeffc\nb\n"),
        ("\ufeffa\nb\n", ReplaceText("\ufeffa\n", "c\n"), "c\nb\n"),
        ("a\nb", ReplaceText("b", "c"), "a\nc"),
        ("a\nb", ReplaceText("b\n", "c\n"), "a\nc"),
        ("a\nb", ReplaceText("b", ""), "a\n"),
        ("a\rb\rc", ReplaceText("b\nc", "d\nc"), "a\rd\rc"),
    ],
    ids=[
        "CRLF", "mixed", "from a line's end on", "a line's end goes", "BOM", "BOM quoted",
        "BOM quoted in lines", "BOM written alone", "BOM taken away", "no final newline",
        "no final newline, quoted with one", "the last line goes", "a lone carriage return",
    ],
)  # fmt: skip
def test_bytes_of_the_file_stay(before: str, op: Op, after: str) -> None:
    assert result(before, op) == after


@pytest.mark.parametrize(
    ("before", "op"),
    [
        ("a = 10\n", ReplaceText("a = 1", "a = 10")),
        ("a\r\nb\r\n", ReplaceText("a", "a\nb")),
        ("a\nx\nb\n", ReplaceText("a\nb\n", "a\nx\nb\n")),
        ("a\nx\nb", ReplaceText("a\nb", "a\nx\nb")),
        ("x y\n", ReplaceText("x", "x y", None)),
        ("f(a, b)\n", InContext("f(a", "", "", ", b")),
        ("a\n\nb\n", ReplaceText("a", "a\n")),
        ("x! x x!\n", Occurrences("x", "!", (1, 3), insert=True)),
    ],
)
def test_already_there(before: str, op: Op) -> None:
    assert result(before, op) == "already"


@pytest.mark.parametrize(
    ("before", "op", "after"),
    [
        ("import a\nimport b.c\n", ReplaceText("import a", "import a\nimport b"),
         "import a\nimport b\nimport b.c\n"),
        ("x x\n", Occurrences("x", "x x", (1,)), "x x x\n"),
        ("a b\n", ReplaceText("a", "a "), "a  b\n"),
        ("a bc\n", ReplaceText("a", "a b"), "a b bc\n"),
    ],
    ids=["a part of a line", "a stated occurrence", "blanks alone", "a part of a word"],
)  # fmt: skip
def test_what_is_not_there_already(before: str, op: Op, after: str) -> None:
    assert result(before, op) == after


@pytest.mark.parametrize(
    ("before", "op", "after"),
    [
        ("f(a) g(a)\n", InContext("g(", "a", ")", "b"), "f(a) g(b)\n"),
        ("f(a) f(a)\n", InContext("f(", "a", ")", "b"), "match.ambiguous"),
        ("f(a) f(a)\n", InContext("f(", "a", ")", "b", every=True), "f(b) f(b)\n"),
        ("a\na\n", InContext("", "a", "", "b", window=(2, 3)), "a\nb\n"),
        ("a\na\n", InContext("", "a", "", "b", window=(1, 2)), "match.ambiguous"),
        ("a\na\n", InContext("", "a", "", "b", window=(3, 4)), "match.ambiguous"),
        ("f(a)\n", InContext("f(", "", "a", "b, "), "f(b, a)\n"),
        ('"a" x\n', InContext("“a” ", "x", "", "y"), '"a" y\n'),
        ("  a\n  b\n  c\n", InContext("a\n", "b\n", "c\n", "d\n"), "  a\n  d\n  c\n"),
        ("a\nb\n", InContext("x", "a", "", "b"), "match.none"),
    ],
    ids=[
        "the context decides", "two places", "all", "the window decides", "two in the window",
        "none in the window", "an addition", "the context keeps its bytes", "by lines", "no place",
    ],
)  # fmt: skip
def test_in_context(before: str, op: Op, after: str) -> None:
    assert result(before, op) == after


# ---------------------------------------------------------------- where characters stand


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
    done = planned(written(*lines), batch(form(*halves)))
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


# ---------------------------------------------------------------- contextual edits by paragraph


TEXT = "The API is old. Use it.\n\nThe CLI is old. Do not.\n"
API = "contains('API')"


@pytest.mark.parametrize(
    ("before", "op", "after"),
    [
        (TEXT, InParagraph(API, "old", "new"), TEXT.replace("old", "new", 1)),
        (TEXT, InParagraph("contains('The')", "old", "new"), "match.ambiguous"),
        (TEXT, InParagraph("contains('The')", "old", "n", every=True), TEXT.replace("old", "n")),
        (TEXT, InParagraph("contains('The')", "old", "n", window=(3, 3)),
         "The API is old. Use it.\n\nThe CLI is n. Do not.\n"),
        (TEXT, InParagraph(f"!{API} && contains('is')", "old", "new"),
         "The API is old. Use it.\n\nThe CLI is new. Do not.\n"),
        (TEXT, InParagraph(API, "old", "new", distance=4), TEXT.replace("old", "new", 1)),
        (TEXT, InParagraph(API, "old", "new", distance=3), "match.none"),
        (TEXT, InParagraph(API, "Do", "Did"), "match.none"),
        (TEXT, InParagraph(API, None, "Gone.", sentences=1),
         "Gone. Use it.\n\nThe CLI is old. Do not.\n"),
        (TEXT, InParagraph(API, None, "Gone.", sentences=2), "match.none"),
        ("é API aaa\n", InParagraph(API, "aa", "b"), "match.ambiguous"),
        ("é API é old\r\n", InParagraph(API, "old", "a\nb"), "é API é a\r\nb\r\n"),
        ("API x y\n", InParagraph(API, "x", "x y"), "already"),
        (" " * 50_000 + "\nAPI x\n", InParagraph(API, "x", "y"), " " * 50_000 + "\nAPI y\n"),
    ],
    ids=[
        "the paragraph decides", "two places", "all", "the window decides", "a predicate",
        "near enough", "too far", "another paragraph", "a sentence", "another number of sentences",
        "places that overlap", "line ends and letters", "already there", "a long blank line",
    ],
)  # fmt: skip
def test_paragraph(before: str, op: InParagraph, after: str) -> None:
    assert result(before, op) == after
