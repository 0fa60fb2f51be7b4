"""A value that is put into a JSON text takes no other byte, and comes out without a trace."""

from __future__ import annotations

import pytest

from patchq.core.text import json_edit
from patchq.core.text.jsonish import JsonError

KEYS, HERE = ("servers", "p"), '"p": {"a": [1]}'


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("{}", f'{{"servers": {{ {HERE} }}}}'),
        ("{\n}\n", f'{{"servers": {{ {HERE} }}\n}}\n'),
        ('{"servers": {}}', f'{{"servers": {{{HERE}}}}}'),
        ('{"a": 1.50, "servers": {"x": {}}}', f'{{"a": 1.50, "servers": {{{HERE},"x": {{}}}}}}'),
        ('{\n\t"servers": {\n\t\t"x": "\\u00e9é"\n\t},\n\t"b": 1e3\n}\n',
            f'{{\n\t"servers": {{\n\t\t{HERE},\n\t\t"x": "\\u00e9é"\n\t}},\n\t"b": 1e3\n}}\n'),
        ('{\r\n "a": 1\r\n}\r\n', f'{{\r\n "servers": {{ {HERE} }},\r\n "a": 1\r\n}}\r\n'),
        ('// "a": {\n{\n  "a": "//", // }\n  /* , */\n}\n',
            f'// "a": {{\n{{\n  "servers": {{ {HERE} }},\n  "a": "//", // }}\n  /* , */\n}}\n'),
        ("{ // nothing\n}", f'{{"servers": {{ {HERE} }} // nothing\n}}'),
        ('{ /* a */ "a": [1,], }', f'{{ "servers": {{ {HERE} }}, /* a */ "a": [1,], }}'),
    ],
)  # fmt: skip
def test_a_value_takes_no_other_byte(before: str, after: str) -> None:
    assert json_edit.put(before, KEYS, {"a": [1]}) == after
    assert json_edit.value_at(after, KEYS) == {"a": [1]}
    assert json_edit.put(after, KEYS, {"a": [1]}) == after
    assert json_edit.take_out(after, KEYS) == before


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ('{"servers": {"x": 1, "p": {}}}', '{"servers": {"x": 1}}'),
        ('{"servers": {"x": 1, // a\n "p": {}, /* b */}}', '{"servers": {"x": 1, // a /* b */}}'),
        ('{"servers": {"x": 1, "p": {}, "y": 2}}', '{"servers": {"x": 1, "y": 2}}'),
        ('{\n "servers": {\n  "p": {}\n }\n}\n', None),
        ('{\n "$schema": "x",\n "servers": {\n  "p": {}\n }\n}\n', None),
        ('{\n "a": "x",\n "servers": {\n  "p": {}\n }\n}\n', '{\n "a": "x"\n}\n'),
    ],
)  # fmt: skip
def test_what_others_wrote_stays(text: str, left: str | None) -> None:
    assert json_edit.take_out(text, KEYS) == left


@pytest.mark.parametrize("text", ["", "[]", '{"servers": []}', '{"servers": {}, "servers": {}}'])
def test_a_text_without_a_place_for_it(text: str) -> None:
    with pytest.raises(JsonError):
        json_edit.put(text, KEYS, 1)
