"""JSON as models write it."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchq.core.text.jsonish import JsonError, Node, parse, parse_at, parse_each


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": [1, 2.5, -3e2, true, false, null, "x"]}',
         {"a": [1, 2.5, -300.0, True, False, None, "x"]}),
        ("[1, 2,]", [1, 2]),
        ('{"a": 1,}', {"a": 1}),
        ('// one\n{"a": /* two */ 1} // three', {"a": 1}),
        ('"http://x /* y */"', "http://x /* y */"),
        ('"a\nb\r\n\tc"', "a\nb\r\n\tc"),
        (r'"a\nb\"\\\u00e9"', 'a\nb"\\é'),
        ("[\r\n]", []),
    ],
)  # fmt: skip
def test_reads(text: str, value: Any) -> None:
    assert parse(text).plain() == value


@pytest.mark.parametrize(
    ("text", "line", "column", "cut"),
    [
        ("", 1, 1, True),
        ("{", 1, 2, True),
        ('{\n"a": 1', 2, 7, True),
        ('["a', 1, 4, True),
        ("[1 /* x", 1, 8, True),
        ("{a: 1}", 1, 2, False),
        ("{'a': 1}", 1, 2, False),
        ('{"a" 1}', 1, 6, False),
        ('{"a": 1,\n "a": 2}', 2, 2, False),
        ("[1 2]", 1, 4, False),
        ("[NaN]", 1, 2, False),
        ("[01]", 1, 2, False),
        ("[,]", 1, 2, False),
        ('["\\x"]', 1, 3, False),
        ('["\\ud800"]', 1, 2, False),
        ("{} x", 1, 4, False),
        ("[" * 200, 1, 102, False),
        ("[" + "9" * 500 + "]", 1, 2, False),
    ],
)
def test_error_has_its_place(text: str, line: int, column: int, cut: bool) -> None:
    with pytest.raises(JsonError) as caught:
        parse(text)
    assert (caught.value.line, caught.value.column, caught.value.cut) == (line, column, cut)


def test_values_know_their_lines() -> None:
    node = parse('{\n"a": "x\ny",\n"b": [\n1\n]}')
    assert (node.line, node.last) == (1, 6)
    first, second = node.get("a"), node.get("c", "b")
    assert first is not None
    assert second is not None
    assert (first.line, first.last) == (2, 3)
    assert (second.line, second.last) == (4, 6)
    assert node.text("a") == "x\ny"
    assert node.text("b") is None
    assert node.get("c") is None


def test_values_one_behind_the_other() -> None:
    nodes = list(parse_each('{"a": 1}\n\n[2]\n// done\n'))
    assert [(node.plain(), node.line) for node in nodes] == [({"a": 1}, 1), ([2], 3)]
    assert list(parse_each(" ")) == []
    with pytest.raises(JsonError):
        list(parse_each("{} x"))


def test_value_may_end_before_the_text() -> None:
    node, end = parse_at('x {"a": 1} y', 1)
    assert (node, end) == (Node({"a": Node(1, 1, 1)}, 1, 1), 10)


@given(
    st.recursive(
        st.one_of(st.none(), st.booleans(), st.integers(), st.text()),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_json_is_read_as_it_is(value: Any) -> None:
    with suppress(UnicodeEncodeError):
        json.dumps(value, ensure_ascii=False).encode()
        assert parse(json.dumps(value)).plain() == value
        assert parse(json.dumps(value, indent=1, ensure_ascii=False)).plain() == value


@given(st.text(alphabet='{}[]",:1ae\\/*-.\n tru'))
def test_every_text_is_read_or_refused(text: str) -> None:
    node = None
    with suppress(JsonError):
        node = parse(text)
    assert node is None or 1 <= node.line <= node.last <= text.count("\n") + 1
