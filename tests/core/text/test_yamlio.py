"""YAML keeps what was written, knows where it stands, and is bounded."""

from __future__ import annotations

import pytest

from patchq.core.text import yamlio
from patchq.core.text.yamlio import Mapping, Scalar, YamlError
from tests.helpers.plain_yaml import plain


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", True),
        ("FALSE", False),
        ("null", None),
        ("~", None),
        ("12", 12),
        ("-3", -3),
        ("1.5", 1.5),
        ("1e3", 1000.0),
        # what YAML 1.1 would make something else of
        ("on", "on"),
        ("yes", "yes"),
        ("No", "No"),
        ("007", "007"),
        ("0x1f", "0x1f"),
        ("1_000", "1_000"),
        ("1:30", "1:30"),
        ("2024-01-01", "2024-01-01"),
        ("1e999", "1e999"),
        (".inf", ".inf"),
        ("9" * 100_000, "9" * 100_000),
        # quoted is text
        ("'true'", "true"),
        ('"12"', "12"),
        ('""', ""),
    ],
    ids=lambda v: repr(v)[:20],
)
def test_scalar_means_what_is_written(text: str, value: object) -> None:
    node = yamlio.parse(f"key: {text}\n")
    assert isinstance(node, Mapping)
    scalar = node.entries[0][1]
    assert isinstance(scalar, Scalar)
    assert (scalar.value, type(scalar.value)) == (value, type(value))
    assert scalar.text == text.strip("'\"")


def test_nodes_know_their_places() -> None:
    node = yamlio.parse("a: 1\nb:\n  - x\n  - {c: d}\n", first_line=10)
    assert isinstance(node, Mapping)
    items = node.entries[1][1]
    assert isinstance(items, yamlio.Sequence)
    inner = items.items[1]
    assert isinstance(inner, Mapping)
    assert (inner.line, inner.column) == (13, 5)
    assert [(k.line, k.column) for k, _ in inner.entries] == [(13, 6)]
    assert plain(node) == {"a": 1, "b": ["x", {"c": "d"}]}


@pytest.mark.parametrize("text", ["", "# only a comment\n", "---\n"])
def test_nothing_is_none_or_null(text: str) -> None:
    assert plain(yamlio.parse(text)) is None


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        ("a: b: c", 1, 5, "mapping values"), ("a: 'x\n", 2, 1, "unexpected end"),
        ("ä: ö\nb: \x01", 2, 4, "U+0001"), ("a: *b", 1, 4, "undefined alias"),
        ("a: &a [*a]", 1, 4, "nested deeper"), ("a: !!python/object:os.system x", 1, 4, "tag"),
        ("a: !!binary aGk=", 1, 4, "tag"), ("a: 1\n---\nb: 2\n", 2, 1, "another document"),
        ("{[a]: 1}", 1, 2, "key"), ("[" * 500, 1, 51, "nested deeper"),
        ("- " * 500, 1, 101, "nested deeper"), ("a: 1\na: 2\n", 2, 1, "line 1"),
        ("x:\n  a: 1\n  b: 2\n  a: 3\n", 4, 3, "line 2"),
    ],
    ids=lambda v: repr(v)[:24],
)  # fmt: skip
def test_what_is_refused(text: str, line: int, column: int, message: str) -> None:
    with pytest.raises(YamlError) as caught:
        plain(yamlio.parse(text))
    assert message in caught.value.message
    assert (caught.value.line, caught.value.column) == (line, column)


def test_alias_bomb_is_refused_before_it_grows() -> None:
    bomb = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
        f"{c}: &{c} [{','.join([f'*{before}'] * 9)}]\n"
        for before, c in zip("abcdefgh", "bcdefghi", strict=True)
    )
    with pytest.raises(YamlError, match="more than"):
        yamlio.parse(bomb)


@pytest.mark.parametrize(
    ("text", "fine"),
    [
        ("a: 1\n---\nb: !custom x\n", True), ("", True), ("a: [1\n", False), ("a:\n\t- x\n", False),
    ],
)  # fmt: skip
def test_syntax_error_judges_the_stream_alone(text: str, fine: bool) -> None:
    assert (yamlio.syntax_error(text) is None) == fine
