"""Edits that quote characters: calls, indexed and contextual edits, by paragraph, too."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchq.core.model.ops import InParagraph, Op, PatchHunk, Replace, ReplaceText
from tests.helpers.trees import batch, planned, result

TEXT = "The API is old. Use it.\n\nThe CLI is old. Do not.\n"
API = "contains('API')"


@pytest.mark.parametrize(
    ("before", "op", "after"),
    [
        # counts
        ("a b c\n", ReplaceText("b", "B"), "a B c\n"),  # a part of a line
        ("x x\n", ReplaceText("x", "y"), "match.ambiguous"),  # two places
        ("aaa\n", ReplaceText("aa", "b"), "match.ambiguous"),  # places that overlap
        ("x x\n", ReplaceText("x", "y", 2, stated=True), "y y\n"),  # as many as stated
        ("x x x\n", ReplaceText("x", "y", 2, stated=True), "match.count"),  # more than stated
        ("x\n", ReplaceText("x", "y", 2, stated=True), "match.count"),  # fewer than stated
        ("x x\n", ReplaceText("x", "y", 1, stated=True), "match.count"),  # one is stated
        ("x x x\n", ReplaceText("x", "y", None), "y y y\n"),  # every one
        ("aaa\n", ReplaceText("aa", "b", None), "ba\n"),  # every one without overlap
        ("z\n", ReplaceText("x", "y", None), "match.none"),  # every one, of none
        ("a\n a\n", ReplaceText("a\n", "b\n", None), "b\n b\n"),  # every one, in any line
        ("x \ny\nx\ny \n", ReplaceText("x\ny\n", "x\nz\n", 2, stated=True), "x \nz\nx\nz\n"),
        ("x\nx\ny\n", ReplaceText("x\n", ""), "x\ny\n"),  # two places with one result
        # occurrences
        ("x x x\n", ReplaceText("x", "y", at=(3, 1)), "y x y\n"),
        ("x x x\n", ReplaceText("x", "y", at=(1, 1)), "y x x\n"),
        ("x x x\n", ReplaceText("", "!", at=(1, 3), before="x"), "x! x x!\n"),
        ("x x x\n", ReplaceText("x", "y", at=(4,)), "match.none"),
        ("x x x\n", ReplaceText("x", "y", at=(0,)), "match.none"),
        # less than a line is not stretched
        ('say("a")\n', ReplaceText("say(“a”)", "tell('a')"), "tell('a')\n"),  # typography
        ('say("a")\n', ReplaceText("say(“a”)", "say(“b”)"), "match.none"),
        ('f("a")\n', ReplaceText('f(\\"a\\")', 'f(\\"b\\")'), 'f("b")\n'),  # unescaped
        ("a b\n", ReplaceText("a b  ", "c"), "match.none"),  # trailing blanks
        ("  a\n", ReplaceText("\ta", "\tb"), "match.none"),  # indentation
        ("a  b\n", ReplaceText("a b", "c"), "match.none"),  # blanks inside
        ("1 | x\n", ReplaceText("x", "y"), "1 | y\n"),  # to the letter
        ("x\n", ReplaceText("1 | x", "1 | y"), "match.none"),  # line numbers
        # several lines
        ("a \nb\n", ReplaceText("a\nb", "a\nc"), "a \nc\n"),  # without the last newline
        ("  a\n  b\n", ReplaceText("a\nb\n", "a\nc\n"), "  a\n  c\n"),  # shifted
        ("x\n  a\n  b", ReplaceText("a\nb", "a\nc"), "x\n  a\n  c"),  # at an end without newline
        ("a\r\nb\r\n", ReplaceText("a\nb", "a\nc\nd"), "a\r\nc\r\nd\r\n"),  # carriage returns
        ("    a\nb\n", ReplaceText("a", "c\n    d"), "    c\n    d\nb\n"),  # behind the indentation
        ("    a\nb\n", ReplaceText("a", "c\nd"), "match.none"),  # a line that lacks it
        ("    a\nb\n", ReplaceText("a\n", "c\na\n"), "match.none"),  # a moved line that lacks it
        ("    a\n    b\n", ReplaceText("a\n", ""), "        b\n"),  # a line but its indentation
        ("    a\n\n", ReplaceText("a\n\n", "\n"), "    \n"),
        ("    a\n        a\n", ReplaceText("      a\n", "      b\n"), "    a\n        b\n"),
        ("    a\nb\n", ReplaceText("a\nb", "c\nd\nb"), "    c\nd\nb\n"),
        ("\ta\n", ReplaceText("a", "b\n        c"), "match.none"),  # another kind of indentation
        ("    a\n", ReplaceText("  a\n", "  b\n  a\n"), "match.none"),  # inside the indentation
        ("a\nb\nc\n", ReplaceText("a\\nb\\n", ""), "c\n"),  # escaped and gone
        ("a\nb\nc\n", ReplaceText("a\\nb", ""), "\nc\n"),
        ("a\nb\nc\n", ReplaceText("a\\nb\\n", "d\\n"), "d\nc\n"),  # escaped
        ("a\nb\nc\n", ReplaceText("a\n...\nc\n", "d\n...\nc\n", at=(1,)), "match.none"),
        # bytes of the file stay
        ("a\r\nb\r\n", ReplaceText("b", "c\nd"), "a\r\nc\r\nd\r\n"),  # CRLF
        ("a\r\nb\n", ReplaceText("a\nb", "a\nc"), "a\r\nc\n"),  # mixed
        ("a\r\nb\r\n", ReplaceText("\nb", "\nc"), "a\r\nc\r\n"),  # from a line's end on
        ("a\r\nb\r\n", ReplaceText("\nb", "c"), "ac\r\n"),  # a line's end goes
        ("\ufeffa\nb\n", ReplaceText("a", "c"), "\ufeffc\nb\n"),  # BOM
        ("\ufeffa\nb\n", ReplaceText("\ufeffa\n", "\ufeffc\n"), "\ufeffc\nb\n"),  # BOM quoted
        ("\ufeffa\nb\n", ReplaceText("\ufeffa \nb\n", "\ufeffa \nc\n"), "\ufeffa\nc\n"),
        ("\ufeffa\nb\n", ReplaceText("a\n", "\ufeffc\n"), "\ufeffc\nb\n"),  # BOM written alone
        ("\ufeffa\nb\n", ReplaceText("\ufeffa\n", "c\n"), "c\nb\n"),  # BOM taken away
        ("a\nb", ReplaceText("b\n", "c\n"), "a\nc"),  # no final newline, quoted with one
        ("a\nb", ReplaceText("b", ""), "a\n"),  # the last line goes
        ("a\rb\rc", ReplaceText("b\nc", "d\nc"), "a\rd\rc"),  # a lone carriage return
        # already there
        ("a = 10\n", ReplaceText("a = 1", "a = 10"), "already"),
        ("a\r\nb\r\n", ReplaceText("a", "a\nb"), "already"),
        ("a\nx\nb\n", ReplaceText("a\nb\n", "a\nx\nb\n"), "already"),
        ("x y\n", ReplaceText("x", "x y", None), "already"),
        ("f(a, b)\n", ReplaceText("", ", b", before="f(a"), "already"),
        ("a\n\nb\n", ReplaceText("a", "a\n"), "already"),
        ("x! x x!\n", ReplaceText("", "!", at=(1, 3), before="x"), "already"),
        # what is not there already
        ("import a\nimport b.c\n", ReplaceText("import a", "import a\nimport b"),
            "import a\nimport b\nimport b.c\n"),  # a part of a line
        ("x x\n", ReplaceText("x", "x x", at=(1,)), "x x x\n"),  # a stated occurrence
        ("a b\n", ReplaceText("a", "a "), "a  b\n"),  # blanks alone
        ("a bc\n", ReplaceText("a", "a b"), "a b bc\n"),  # a part of a word
        # in context
        ("f(a) g(a)\n", ReplaceText("a", "b", before="g(", after=")"), "f(a) g(b)\n"),
        ("f(a) f(a)\n", ReplaceText("a", "b", before="f(", after=")"), "match.ambiguous"),
        ("f(a) f(a)\n", ReplaceText("a", "b", None, before="f(", after=")"), "f(b) f(b)\n"),  # all
        ("a\na\n", ReplaceText("a", "b", window=(2, 3)), "a\nb\n"),  # the window decides
        ("a\na\n", ReplaceText("a", "b", window=(1, 2)), "match.ambiguous"),
        ("f(a)\n", ReplaceText("", "b, ", before="f(", after="a"), "f(b, a)\n"),  # an addition
        ('"a" x\n', ReplaceText("x", "y", before="“a” "), '"a" y\n'),  # the context keeps its bytes
        # by lines
        ("  a\n  b\n  c\n", ReplaceText("b\n", "d\n", before="a\n", after="c\n"),
            "  a\n  d\n  c\n"),
        ("a\nb\n", ReplaceText("a", "b", before="x"), "match.none"),  # no place
        # paragraph
        (TEXT, InParagraph(API, "old", "new"), TEXT.replace("old", "new", 1)),
        (TEXT, InParagraph("contains('The')", "old", "new"), "match.ambiguous"),  # two places
        (TEXT, InParagraph("contains('The')", "old", "n", every=True), TEXT.replace("old", "n")),
        (TEXT, InParagraph("contains('The')", "old", "n", window=(3, 3)),
            "The API is old. Use it.\n\nThe CLI is n. Do not.\n"),  # the window decides
        (TEXT, InParagraph(f"!{API} && contains('is')", "old", "new"),
            "The API is old. Use it.\n\nThe CLI is new. Do not.\n"),  # a predicate
        (TEXT, InParagraph(API, "old", "new", distance=4), TEXT.replace("old", "new", 1)),
        (TEXT, InParagraph(API, "old", "new", distance=3), "match.none"),  # too far
        (TEXT, InParagraph(API, "Do", "Did"), "match.none"),  # another paragraph
        (TEXT, InParagraph(API, None, "Gone.", sentences=1),
            "Gone. Use it.\n\nThe CLI is old. Do not.\n"),  # a sentence
        (TEXT, InParagraph(API, None, "Gone.", sentences=2), "match.none"),
        ("é API aaa\n", InParagraph(API, "aa", "b"), "match.ambiguous"),  # places that overlap
        ("é API é old\r\n", InParagraph(API, "old", "a\nb"), "é API é a\r\nb\r\n"),
        ("API x y\n", InParagraph(API, "x", "x y"), "already"),  # already there
        (" " * 50_000 + "\nAPI x\n", InParagraph(API, "x", "y"), " " * 50_000 + "\nAPI y\n"),
    ],
)  # fmt: skip
def test_what_an_edit_makes(before: str, op: Op, after: str) -> None:
    assert result(before, op) == after


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
