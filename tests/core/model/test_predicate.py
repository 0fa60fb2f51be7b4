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
        ("contains('a')", "cat", True),
        ("contains('a')", "dog", False),
        ("contains('A')", "cat", False),
        ('  contains ( "it\'s" ) ', "it's", True),
        (r"contains('it\'s')", "it's", True),
        (r"contains('\n')", r"\n", True),
        ("!contains('a')", "dog", True),
        ("!!contains('a')", "dog", False),
        ("contains('a') && contains('b')", "ab", True),
        ("contains('a')&&contains('b')", "a", False),
        ("contains('a') || contains('b')", "b", True),
        ("contains('a') || contains('b') && contains('c')", "a", True),
        ("(contains('a') || contains('b')) && contains('c')", "a", False),
        ("!contains('a') && contains('b')", "b", True),
        ("!(contains('a') && contains('b'))", "a", True),
        ("contains('&&') || contains(')')", "x)", True),
    ],
)
def test_matches(predicate: str, text: str, expected: bool) -> None:
    assert parse(predicate).matches(text) is expected


@pytest.mark.parametrize(
    ("predicate", "column"),
    [
        ("", 1),
        ("  ", 1),
        ("contains", 1),
        ("contains()", 1),
        ("contains('')", 1),
        ("contains('a'", 1),
        ("contains(a)", 1),
        ("matches('a')", 1),
        ("contains('a') contains('b')", 15),
        ("contains('a') &&", 17),
        ("&& contains('a')", 1),
        ("contains('a') & contains('b')", 15),
        ("contains('a') !", 15),
        ("(contains('a')", 15),
        ("contains('a'))", 14),
        ("()", 2),
        ("!", 2),
    ],
)
def test_what_cannot_be_read_has_a_column(predicate: str, column: int) -> None:
    with pytest.raises(PredicateError) as caught:
        parse(predicate)
    assert caught.value.column == column


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
