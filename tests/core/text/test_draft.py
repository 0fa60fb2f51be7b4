"""A draft is the text that it says, whatever replacements made it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchq.core.text import draft as module
from patchq.core.text.draft import Draft
from patchq.core.text.lines import Text

PIECES = st.lists(
    st.sampled_from(
        [b"a", b"b", b" ", b"\n", b"\n", b"\r\n", b"\r", b"\xef\xbb\xbf", b"\xff", b"a\nb\n"]
    ),
    max_size=12,
).map(b"".join)
SPLICE = st.tuples(st.integers(0, 40), st.integers(0, 40), PIECES)


@pytest.fixture(params=[1, 3])
def small(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LINES", request.param)
    monkeypatch.setattr(module, "SCANS", 1)


def stripped(lines: list[bytes]) -> list[bytes]:
    return [line.strip() for line in lines]


@pytest.mark.usefixtures("small")
@given(PIECES, st.lists(SPLICE, max_size=5), st.lists(st.sampled_from([b"", b"a", b"b", b" a"])))
def test_a_draft_is_as_if_read_anew(
    data: bytes, splices: list[tuple[int, int, bytes]], quote: list[bytes]
) -> None:
    text: Text = Text(data)
    for one, other, new in splices:
        start, end = sorted((min(one, text.size), min(other, text.size)))
        whole = text.whole[:start] + new + text.whole[end:]
        text = (Draft.of(text) or Text(text.whole)).spliced(start, end, new)
        assert_alike(text, Text(whole), quote or [b"a"])


def assert_alike(text: Text, read: Text, quote: list[bytes]) -> None:
    for name in ("line_end", "has_crlf", "is_ascii", "is_utf8", "size", "offset", "contents"):
        assert getattr(text, name) == getattr(read, name), name
    for name in ("lines", "starts"):
        sequence, plain = getattr(text, name), getattr(read, name)
        assert [*sequence] == plain
        assert [sequence[k] for k in range(-len(plain), len(plain))] == [*plain, *plain]
        assert sequence[1:3] == plain[1:3]
    places = range(read.offset, read.size + 1)
    assert [*map(text.line_at, places)] == [*map(read.line_at, places)]
    assert all(text.part(a, a + 5) == read.whole[a : a + 5] for a in range(read.size))
    readings: tuple[Callable[[list[bytes]], list[bytes]] | None, ...] = (None, stripped)
    for normalise in readings:
        found, expected = text.view(normalise), read.view(normalise)
        assert [*found.lines] == expected.lines
        assert [*found.find(quote)] == [*expected.find(quote)]
        for line in expected.lines:
            assert [*found.where(line)] == [*expected.where(line)]
    needle = b"\n".join([b"a", *quote])
    assert [*text.haystack.find(needle)] == [*read.haystack.find(needle)]
    assert (text.with_returns is None) == (read.with_returns is None)
    assert text.data == read.data
