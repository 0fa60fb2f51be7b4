"""What may be meant by a quote, and the replacement for a quote that was corrected."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchq.llm.certainty import merged, selected, words

LOAD = """\
def load(name, mode):
    path = os.path.join(ROOT, name)
    with open(path, mode) as file:
        return file.read()
"""
SAVE = """\
def save(name, text):
    path = os.path.join(ROOT, name)
    with open(path, "w") as file:
        file.write(text)
"""
ALIKE = "send(alpha, beta, gamma, delta, one)\n"
FILE = f"import os\n\n\n{LOAD}\n\n{SAVE}\n\n{ALIKE}{ALIKE.replace('one', 'two')}"
QUOTE = LOAD.replace("mode", "how", 1)


@pytest.mark.parametrize("near", [None, 3])
def test_the_snippet_that_is_meant(near: int | None) -> None:
    assert selected(FILE, QUOTE, LOAD, near, whole_lines=True) == LOAD


# What is chosen, the quote, and the line that the refusal names.
REFUSED: dict[str, tuple[str, str, int | None]] = {
    "nothing": ("", QUOTE, None),
    "not in the file": (QUOTE, QUOTE, None),
    "not whole lines": (LOAD[4:], QUOTE, None),
    "several places": ("    path = os.path.join(ROOT, name)\n", QUOTE, None),
    "another place": (SAVE, QUOTE, None),
    "no nearer than another place": (ALIKE, ALIKE.replace("one", "three"), None),
    "another than the refusal names": (LOAD, QUOTE, 12),
    "much more than the quote": (FILE[FILE.index("def load") :], QUOTE, None),
    "another name, its body alike": (LOAD, LOAD.replace("def load", "def read"), None),
}
# A definition, and one of another name: whatever else is alike, it is not the one that is quoted.
DEFINED = {
    "Python": ("\n\ndef _single(text: Text, old: Lines, new: Lines) -> Iterator[Chain]:\n",
               "\n\ndef _chains(text: Text, old: Lines, other: Lines) -> Iterator[Chain]:\n"),
    "a value": ("READ_TIMEOUT_SECONDS = int(environment.get(name, default))\n",
                "WRITE_TIMEOUT_SECONDS = int(environment.get(name, default))\n"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("file", "snippet", "quote", "near"),
    [
        *((FILE, *case) for case in REFUSED.values()),
        *(
            (f"import os\n\n\n{one}\n\nlast = 1\n", one, other, None)
            for one, other in DEFINED.values()
        ),
    ],
    ids=[*REFUSED, *DEFINED],
)
def test_what_cannot_be_meant(file: str, snippet: str, quote: str, near: int | None) -> None:
    assert selected(file, quote, snippet, near, whole_lines=True) is None


# What the response quotes, what the file has, the replacement, and what becomes of it.
MADE: dict[str, tuple[str, str, str, str | None]] = {
    "quotes": ("f('a', 'b')", 'f("a", "b")', "f('a', 'c')", 'f("a", "c")'),
    "quotes and a last sign": ("x = 'a/1';", 'x = "a/1"', "x = 'b/2';", 'x = "b/2"'),
    "a last sign that only the file has": ("x = 1\n", "x = 1;\n", "x = 2\n", "x = 2;\n"),
    "blanks": ("f( a,b)\n", "f(a, b)\n", "f( a,c)\n", "f(a,c)\n"),
    "a line break": ("f(a, b)\n", "f(\n    a, b)\n", "f(a, c)\n", "f(\n    a, c)\n"),
    "deleted": ("x = 'a'\n", 'x = "a"\n', "", ""),
    # uncertain
    "what is changed was misread": ("timeout = 30\n", "timeout = 60\n", "timeout = 90\n", None),
    "what is deleted was misread": ("f(a)\n", "f(a, b)\n", "", None),
    "it is there already": ("a\nb\n", "a\nx\nb\n", "a\nx\nb\n", None),
    "an addition beside lines that are gone": ("A\nB\nC\n", "B\nC\n", "X\nA\nB\nC\n", None),
    "an apostrophe": ("x = 'a'\n", 'x = "a"\n', "x = 'b'  # don't\n", None),
    "the other quotes are new": ("x = 'a'\n", 'x = "a"\n', "x = 'say \"b\"'\n", None),
    "a sign that quotes read": ("echo 'a'\n", 'echo "a"\n', "echo '$HOME'\n", None),
    "quotes of both kinds": ("f('a', \"b\")\n", "f(\"a\", 'b')\n", "f('c', \"b\")\n", None),
    "indentation of new lines": ("f(a)\n", "    f(a)\n", "if x:\n    f(a)\n", None),
    "the blanks are what changes": ("a b\n", "a   b\n", "a  b\n", None),
}  # fmt: skip


@pytest.mark.parametrize(("old", "there", "new", "made"), MADE.values(), ids=MADE.keys())
def test_both_changes_are_made_or_none(old: str, there: str, new: str, made: str | None) -> None:
    assert merged(old, there, new) == made


TEXTS = st.lists(
    st.sampled_from(["a 1\n", "b 2\n", "c 'x';\n", 'c "x"\n', "\n", "    d\n", "d\n"]), max_size=6
).map("".join)


@given(TEXTS, TEXTS, TEXTS)
def test_no_word_comes_from_elsewhere(old: str, there: str, new: str) -> None:
    made = merged(old, there, new)
    if made is not None:
        assert set(words(made)) <= {*words(there), *words(new)}
