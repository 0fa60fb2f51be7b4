"""Which snippets may be meant by a quote."""

from __future__ import annotations

import pytest

from patchq.llm.certainty import MissedQuote, selected

FILE = """\
import os

LIMIT = 10


def load(name, mode):
    path = os.path.join(ROOT, name)
    with open(path, mode) as file:
        return file.read()


def save(name, text):
    path = os.path.join(ROOT, name)
    with open(path, "w") as file:
        file.write(text)


class Store:
    root = "/var/store"; cache = "/var/cache"
"""
LOAD = """\
def load(name, mode):
    path = os.path.join(ROOT, name)
    with open(path, mode) as file:
        return file.read()
"""
QUOTE = LOAD.replace("mode", "how", 1)
SAVE = FILE[FILE.index("def save") : FILE.index("\n\nclass")]


def chosen(
    snippet: str, quote: str = QUOTE, near: int | None = None, whole_lines: bool = True
) -> str | None:
    return selected(FILE, MissedQuote(quote, near, whole_lines), snippet)


def test_the_snippet_that_is_meant() -> None:
    assert chosen(LOAD) == LOAD
    assert chosen(LOAD, near=5) == LOAD


REFUSED = {
    "nothing": "",
    "not in the file": QUOTE,
    "not whole lines": LOAD[4:],
    "several places": "    path = os.path.join(ROOT, name)\n",
    "another place": SAVE,
    "much more than the quote": FILE[FILE.index("def load") : FILE.index("\n\nclass")],
}


@pytest.mark.parametrize("snippet", REFUSED.values(), ids=REFUSED.keys())
def test_what_cannot_be_meant(snippet: str) -> None:
    assert chosen(snippet) is None


def test_place_other_than_the_one_that_the_refusal_names() -> None:
    assert chosen(LOAD, near=15) is None


@pytest.mark.parametrize(
    ("there", "quoted"),
    [
        (LOAD, LOAD.replace("def load", "def read")),
        ("\n\ndef _single(text: Text, old: Lines, new: Lines) -> Iterator[Chain]:\n",
         "\n\ndef _chains(text: Text, old: Lines, other: Lines) -> Iterator[Chain]:\n"),
        ("func (s *Store) Load(name string, mode int) (Value, error) {\n",
         "func (s *Store) Save(name string, mode int) (Value, error) {\n"),
        ("READ_TIMEOUT_SECONDS = int(environment.get(name, default))\n",
         "WRITE_TIMEOUT_SECONDS = int(environment.get(name, default))\n"),
        ("impl<T: Clone> Iterator for Loader<T> where T: Send {\n",
         "impl<T: Clone> Iterator for Saver<T> where T: Send {\n"),
    ],
    ids=["its body is alike", "its header is alike", "Go", "a value", "Rust"],
)  # fmt: skip
def test_another_definition_is_not_the_one_that_was_quoted(there: str, quoted: str) -> None:
    file = f"import os\n\n\n{there}\n\nlast = 1\n"
    assert selected(file, MissedQuote(quoted, None, whole_lines=True), there) is None
