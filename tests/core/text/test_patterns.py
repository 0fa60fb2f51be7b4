"""Regular expressions that are compiled when they are first used."""

from __future__ import annotations

import re

import pytest

from patchq.core.text.patterns import Pattern


def test_every_method_does_what_that_of_the_compiled_expression_does() -> None:
    text = "a1 B22 c333"
    words, compiled = r"([a-c])(\d+)", re.compile(r"([a-c])(\d+)", re.IGNORECASE)

    def made() -> Pattern:
        return Pattern(words, re.IGNORECASE)

    assert made().pattern == compiled.pattern
    assert made().findall(text, 1) == compiled.findall(text, 1)
    assert [m.span() for m in made().finditer(text)] == [m.span() for m in compiled.finditer(text)]
    for found in (made().search(text, 1), made().match(text, 3, 5), made().fullmatch("b2")):
        assert found is not None
        assert found.re == compiled
    assert made().split(text, 1) == compiled.split(text, 1)
    assert made().sub(r"\2", text) == compiled.sub(r"\2", text)
    assert made().subn(r"\2", text, 2) == compiled.subn(r"\2", text, 2)


def test_what_is_wrong_is_told_at_the_first_use() -> None:
    pattern = Pattern("(")
    assert pattern.pattern == "("
    with pytest.raises(re.error):
        pattern.match("")


def test_there_is_no_other_name() -> None:
    assert not hasattr(Pattern("a"), "groups")
