"""Predicates over paragraphs."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchq.core.model.predicate import PredicateError, parse
from tests.helpers.effort import effort


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


def test_literals_come_in_order_and_once() -> None:
    predicate = parse("contains('b') && !(contains('a') || contains('b'))")
    assert predicate.literals == ("b", "a")


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


def test_depth_costs_no_more_than_length() -> None:
    deep = "!(" * 5_000 + "contains('a')" + ")" * 5_000
    assert parse(deep).matches("a") is True
    assert effort(lambda: parse(deep).matches("a")) < 100 * len(deep)
