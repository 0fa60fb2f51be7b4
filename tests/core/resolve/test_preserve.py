"""What is written: the file's own bytes wherever the halves agree."""

from __future__ import annotations

import pytest

from patchq.core.resolve.ladder import Rewrite
from patchq.core.resolve.levels import Unwritable
from patchq.core.text.lines import BOM, Text
from tests.helpers.trees import written


@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        (b"a \nb\t\nc\n", "a\nb\nc\n", "a\nb\nC\n", b"a \nb\t\nC\n"),
        (b"a \nb\nc\n", "a\nb\nc\n", "b\na\nc\n", b"b\na \nc\n"),
        (b"a \nb\nc\n", "a\nb\nc\n", "a\nb\na\n", b"a \nb\na \n"),
        (b"x \ny\nz\nx\t\n", "x\ny\nz\nx\n", "x\nx\ny\nz\n", b"x \nx\t\ny\nz\n"),
        (b"a\nb\n\nc\n", "a\nb\n \nc\n", " \na\nb\nc\n", b"\na\nb\nc\n"),
        (b"  a\n   \n  b\n", "a\n\nb\n", "a\n\n\nb\n", b"  a\n   \n\n  b\n"),
        (b"a\r\nb\nc\r\n", "a\nb\nc\n", "b\na\nx\nc\n", b"b\na\r\nx\r\nc\r\n"),
        (b"a\nb\r\nc\n", "b\n", "x\ny\n", b"a\nx\ny\nc\n"),
        (b"a\rb\nc\n", "a\rb\n", "a\rb\nx\n", b"a\rb\nx\nc\n"),
        (BOM + b"a\nb\n", "a\n", "A\n", BOM + b"A\nb\n"),
        (BOM + b"a\n", "a\n", "x\na\n", BOM + b"x\na\n"),
        (b"\xe9\na\n", "a\n", "b\n", b"\xe9\nb\n"),
        (b"a\nb", "b\n", "B\n", b"a\nB"),
        (b"a\nb", "b\n", "b\nc\n", b"a\nb\nc"),
        (b"a\r\nb", "b\n", "b\nc\n", b"a\r\nb\r\nc"),
        (b"a\nb", "b\n", "", b"a"),
        (b"a\r\nb", "b\n", "", b"a"),
        (b"a\nb", "a\nb\n", "b\na\n", b"b\na"),
        (b"a\nb", "a\n", "", b"b"),
        (b"a", "a\n", "", b""),
        (b"a\nb\r", "a\n", "A\n", b"A\nb\r"),
        (b"a\n\nb", "b\n", "", b"a\n"),
        ("é\nb\n".encode(), "é\nb\n", "é\nü\n", "é\nü\n".encode()),
    ],
    ids=[
        "trailing blanks", "a moved line", "a line that comes twice",
        "the one that goes away is moved", "a moved blank line", "blanks on a blank line",
        "a moved line's end", "new lines take the most frequent end", "lone CR", "BOM",
        "behind a BOM", "bytes that are no UTF-8", "last line changed", "line behind the last",
        "the same with CRLF",
        "last line deleted", "the same with CRLF", "last line moved up", "first line deleted",
        "only line deleted", "a last lone CR", "a blank line is last", "beyond ASCII",
    ],
)  # fmt: skip
def test_own_bytes_are_kept(before: bytes, old: str, new: str, after: bytes) -> None:
    assert written(before, (old, new)) == after


def test_typography_that_the_file_has_plain_is_not_written() -> None:
    text = Text(b"it's\n")
    with pytest.raises(Unwritable, match="typographic"):
        Rewrite(["it’s".encode()], ["it’s new".encode()]).at(text, 0)
    (hunk,) = Rewrite([b"it's"], ["“new”".encode()]).at(text, 0)
    assert hunk.new == "“new”\n".encode()
