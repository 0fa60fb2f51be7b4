"""The replacement for a quote that was corrected."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchq.llm.certainty import merged, words

# What the response quotes, what the file has, the replacement, and what becomes of it.
MADE = {
    "quotes": ("f('a', 'b')", 'f("a", "b")', "f('a', 'c')", 'f("a", "c")'),
    "quotes and a last sign": ("x = 'a/1';", 'x = "a/1"', "x = 'b/2';", 'x = "b/2"'),
    "a last sign that only the file has": ("x = 1\n", "x = 1;\n", "x = 2\n", "x = 2;\n"),
    "blanks": ("f( a,b)\n", "f(a, b)\n", "f( a,c)\n", "f(a,c)\n"),
    "a line break": ("f(a, b)\n", "f(\n    a, b)\n", "f(a, c)\n", "f(\n    a, c)\n"),
    "deleted": ("x = 'a'\n", 'x = "a"\n', "", ""),
}  # fmt: skip
UNCERTAIN = {
    "what is changed was misread": ("timeout = 30\n", "timeout = 60\n", "timeout = 90\n"),
    "what is deleted was misread": ("f(a)\n", "f(a, b)\n", ""),
    "it is there already": ("a\nb\n", "a\nx\nb\n", "a\nx\nb\n"),
    "an addition beside lines that are gone": ("A\nB\nC\n", "B\nC\n", "X\nA\nB\nC\n"),
    "an apostrophe": ("x = 'a'\n", 'x = "a"\n', "x = 'b'  # don't\n"),
    "the other quotes are new": ("x = 'a'\n", 'x = "a"\n', "x = 'say \"b\"'\n"),
    "a sign that quotes read": ("echo 'a'\n", 'echo "a"\n', "echo '$HOME'\n"),
    "quotes of both kinds": ("f('a', \"b\")\n", "f(\"a\", 'b')\n", "f('c', \"b\")\n"),
    "indentation of new lines": ("f(a)\n", "    f(a)\n", "if x:\n    f(a)\n"),
    "the blanks are what changes": ("a b\n", "a   b\n", "a  b\n"),
}  # fmt: skip


@pytest.mark.parametrize(("old", "there", "new", "made"), MADE.values(), ids=MADE.keys())
def test_both_changes_are_made(old: str, there: str, new: str, made: str) -> None:
    assert merged(old, there, new) == made


@pytest.mark.parametrize(("old", "there", "new"), UNCERTAIN.values(), ids=UNCERTAIN.keys())
def test_changes_that_meet_are_refused(old: str, there: str, new: str) -> None:
    assert merged(old, there, new) is None


TEXTS = st.lists(
    st.sampled_from(["a 1\n", "b 2\n", "c 'x';\n", 'c "x"\n', "\n", "    d\n", "d\n"]), max_size=6
).map("".join)


@given(TEXTS, TEXTS, TEXTS)
def test_no_word_comes_from_elsewhere(old: str, there: str, new: str) -> None:
    made = merged(old, there, new)
    if made is not None:
        assert set(words(made)) <= {*words(there), *words(new)}
