"""JSON as models write it, values put into it, YAML, and quotations."""

from __future__ import annotations

import pytest

from patchq.core.text import jsonish, quote, yamlio
from patchq.core.text.jsonish import JsonError, parse
from patchq.core.text.yamlio import YamlError


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


KEYS, HERE = ("servers", "p"), '"p": {"a": [1]}'


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("{\n}\n", f'{{"servers": {{ {HERE} }}\n}}\n'),
        ('{"servers": {}}', f'{{"servers": {{{HERE}}}}}'),
        ('{\n\t"servers": {\n\t\t"x": "\\u00e9é"\n\t},\n\t"b": 1e3\n}\n',
            f'{{\n\t"servers": {{\n\t\t{HERE},\n\t\t"x": "\\u00e9é"\n\t}},\n\t"b": 1e3\n}}\n'),
        ('{\r\n "a": 1\r\n}\r\n', f'{{\r\n "servers": {{ {HERE} }},\r\n "a": 1\r\n}}\r\n'),
        ('// "a": {\n{\n  "a": "//", // }\n  /* , */\n}\n',
            f'// "a": {{\n{{\n  "servers": {{ {HERE} }},\n  "a": "//", // }}\n  /* , */\n}}\n'),
        ('{ /* a */ "a": [1,], }', f'{{ "servers": {{ {HERE} }}, /* a */ "a": [1,], }}'),
    ],
)  # fmt: skip
def test_a_value_takes_no_other_byte(before: str, after: str) -> None:
    assert jsonish.put(before, KEYS, {"a": [1]}) == after
    assert jsonish.value_at(after, KEYS) == {"a": [1]}
    assert jsonish.put(after, KEYS, {"a": [1]}) == after
    assert jsonish.take_out(after, KEYS) == before


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ('{"servers": {"x": 1, // a\n "p": {}, /* b */}}', '{"servers": {"x": 1, // a /* b */}}'),
        ('{"servers": {"x": 1, "p": {}, "y": 2}}', '{"servers": {"x": 1, "y": 2}}'),
        ('{\n "servers": {\n  "p": {}\n }\n}\n', None),
        ('{\n "a": "x",\n "servers": {\n  "p": {}\n }\n}\n', '{\n "a": "x"\n}\n'),
    ],
)  # fmt: skip
def test_what_others_wrote_stays(text: str, left: str | None) -> None:
    assert jsonish.take_out(text, KEYS) == left


@pytest.mark.parametrize("text", ["", "[]", '{"servers": []}', '{"servers": {}, "servers": {}}'])
def test_a_text_without_a_place_for_it(text: str) -> None:
    with pytest.raises(JsonError):
        jsonish.put(text, KEYS, 1)


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        ("a: b: c", 1, 5, "mapping values"), ("a: 'x\n", 2, 1, "unexpected end"),
        ("ä: ö\nb: \x01", 2, 4, "U+0001"), ("a: *b", 1, 4, "undefined alias"),
        ("a: &a [*a]", 1, 4, "nested deeper"), ("a: !!python/object:os.system x", 1, 4, "tag"),
        ("a: !!binary aGk=", 1, 4, "tag"), ("a: 1\n---\nb: 2\n", 2, 1, "another document"),
        ("{[a]: 1}", 1, 2, "key"), ("[" * 500, 1, 51, "nested deeper"),
        ("- " * 500, 1, 101, "nested deeper"),
    ],
    ids=lambda v: repr(v)[:24],
)  # fmt: skip
def test_what_is_refused(text: str, line: int, column: int, message: str) -> None:
    with pytest.raises(YamlError) as caught:
        yamlio.parse(text)
    assert message in caught.value.message
    assert (caught.value.line, caught.value.column) == (line, column)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain é 𝕏", "plain é 𝕏"), ("a\tb\r\nc", "a\\tb\\r\\nc"),
        ("\x00\x1b[31m\x7f\x9b", "\\x00\\x1b[31m\\x7f\\x9b"),
        ("\u202eabc\u2066\u200d\ufeff\u2028", "\\u202eabc\\u2066\\u200d\\ufeff\\u2028"),
        ("\U000e0041", "\\U000e0041"), ("\udcff", "\\xff"), ("\ud800", "\\ud800"),
    ],
)  # fmt: skip
def test_hidden_characters_are_written_out(text: str, expected: str) -> None:
    assert quote.visible(text) == expected
    assert quote.visible(text, keep=text) == text
    kept = expected.replace("\\t", "\t").replace("\\n", "\n")
    assert quote.visible(f"a\n{text}\tb", keep="\n\t") == f"a\n{kept}\tb"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("quote `x <b>` [1]", "quote `x <b>` \\[1]"), ("<!-- `", "\\<!-- \\`"),
        ("# title", "\\# title"), ("  - item", "\\- item"), ("first\nsecond", "first"),
        ("`a` and ``b`c``", "`a` and ``b`c``"),
    ],
)  # fmt: skip
def test_sentences_keep_their_code_spans_and_start_nothing(text: str, expected: str) -> None:
    assert quote.sentence(text) == expected
