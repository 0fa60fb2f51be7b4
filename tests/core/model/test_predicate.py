"""Predicates over paragraphs."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchq.core.model.predicate import PredicateError, parse


@pytest.mark.parametrize(
    ("predicate", "text", "expected"),
    [
        ("contains('a')", "cat", True), ('  contains ( "it\'s" ) ', "it's", True),
        (r"contains('it\'s')", "it's", True), (r"contains('\n')", r"\n", True),
        ("!contains('a')", "dog", True), ("!!contains('a')", "dog", False),
        ("contains('a') && contains('b')", "ab", True),
        ("contains('a')&&contains('b')", "a", False), ("contains('a') || contains('b')", "b", True),
        ("(contains('a') || contains('b')) && contains('c')", "a", False),
        ("!(contains('a') && contains('b'))", "a", True),
        ("contains('&&') || contains(')')", "x)", True),
    ],
)  # fmt: skip
def test_matches(predicate: str, text: str, expected: bool) -> None:
    assert parse(predicate).matches(text) is expected


@pytest.mark.parametrize(
    "predicate",
    [
        "", "  ", "contains", "contains('')", "contains('a'", "contains(a)", "contains('a') &&",
        "&& contains('a')", "contains('a') & contains('b')", "contains('a') !", "(contains('a')",
        "contains('a'))", "()", "0", "contains('a') contains('b')", "contains('a') and 1",
        "(contains('a'))(contains('b'))", "(" * 5000 + "contains('a')" + ")" * 5000,
    ],
)  # fmt: skip
def test_what_cannot_be_read(predicate: str) -> None:
    with pytest.raises(PredicateError):
        parse(predicate)


@given(
    st.lists(
        st.sampled_from(["contains('a')", 'contains("b")', "&&", "||", "!", "(", ")", " ", "x"]),
        max_size=30,
    ).map("".join),
    st.text(alphabet="abx"),
)
def test_every_text_is_a_predicate_or_none(predicate: str, text: str) -> None:
    with suppress(PredicateError):
        assert parse(predicate).matches(text) in (True, False)
