"""JSON as models write it."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchq.core.text.jsonish import JsonError, parse


@pytest.mark.parametrize(
    ("text", "line", "column", "cut"),
    [
        ("", 1, 1, True), ('{\n"a": 1', 2, 7, True), ('["a', 1, 4, True), ("[1 /* x", 1, 8, True),
        ("{a: 1}", 1, 2, False), ("{'a': 1}", 1, 2, False), ('{"a" 1}', 1, 6, False),
        ('{"a": 1,\n "a": 2}', 2, 2, False), ("[,]", 1, 2, False), ('["\\x"]', 1, 3, False),
        ('["\\ud800"]', 1, 2, False), ("{} x", 1, 4, False), ("[" * 200, 1, 102, False),
        ("[" + "9" * 500 + "]", 1, 2, False),
    ],
)  # fmt: skip
def test_error_has_its_place(text: str, line: int, column: int, cut: bool) -> None:
    with pytest.raises(JsonError) as caught:
        parse(text)
    assert (caught.value.line, caught.value.column, caught.value.cut) == (line, column, cut)


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
