"""Quotations: nothing hides in them, and nothing in them ends them."""

from __future__ import annotations

import pytest

from patchq.core.text import quote


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
        ("a", "`a`"), ("", "`  `"), ("`a``", "``` `a`` ```"), ("a\nb", "`a\\nb`"),
        ("x" * 300, f"`{'x' * 200} …`"),
    ],
)  # fmt: skip
def test_code_spans(text: str, expected: str) -> None:
    assert quote.inline(text) == expected


@pytest.mark.parametrize("text", ["", "a", "```", "a\n~~~\n", "`" * 50])
def test_nothing_closes_a_fence_but_its_end(text: str) -> None:
    block = quote.fence(text, "py").split("\n")
    ticks = block[-1]
    assert block[0] == f"{ticks}py"
    assert len(ticks) >= 3
    assert "\n".join(block[1:-1]) == text.removesuffix("\n")
    assert ticks not in text


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
