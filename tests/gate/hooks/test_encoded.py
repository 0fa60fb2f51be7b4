"""Encoded bytes in a program's output: what is left out, and what has to stay."""

from __future__ import annotations

import base64
import random
import re
import textwrap

import pytest

from patchq.gate.hooks.encoded import without_encoded

_BODY = base64.b64encode(random.Random(1).randbytes(300)).decode()
SECRET = f"-----BEGIN OPENSSH PRIVATE KEY-----\n{_BODY}\n".encode()
B64, HEX = base64.b64encode(SECRET).decode(), SECRET.hex()
AROUND = ("collected 3 items\n", "\n3 passed in 2.01s")


def lines(text: str, width: int, start: str = "") -> str:
    return "\n".join(start + part for part in textwrap.wrap(text, width))


ENCODINGS = {
    "base64": B64,
    "base32": base64.b32encode(SECRET).decode(),
    "hex": HEX,
    "backwards": B64[::-1],
    "in lines": lines(B64, 40),
    "in lines of a test's failure": lines(B64, 20, "E   "),
    "a character a line": "\n".join(B64),
    "bytes in hex": " ".join(textwrap.wrap(HEX, 2)),
    "as escapes": "".join(f"\\x{byte:02x}" for byte in SECRET),
    "bytes in decimal": ", ".join(map(str, SECRET)),
    "a dump": "\n".join(
        f"{at:08x}: {' '.join(textwrap.wrap(SECRET[at : at + 16].hex(), 4))}"
        for at in range(0, len(SECRET), 16)
    ),
}


@pytest.mark.parametrize("text", ENCODINGS.values(), ids=ENCODINGS)
def test_an_encoding_is_left_out_however_it_is_broken_up(text: str) -> None:
    shown = without_encoded(text.join(AROUND))
    assert shown.startswith(AROUND[0])
    assert re.search(r"left out: \d+ characters that look encoded", shown)
    rest = re.sub(r"\(left out: \d+ characters that look encoded\)", "", shown)
    assert len(rest) - len("".join(AROUND)) < 48


ORDINARY = [
    "tests/hooks/test_engine.py::test_h12_there_is_no_network_unless_it_is_asked_for PASSED [ 23%]",
    'File "/home/me/Projects/shop/src/shop/cartTotals2.py", line 42, in computeTotalForEachItem',
    f"HEAD is now at {'9fd51d9' * 5}3a1b2 Assert that a full clone is taken for none",
    "AssertionError: assert {'a': 1, 'b': [1, 2, 3]} == {'a': 1, 'b': [1, 2, 4]}",
    "<Cart object at 0x7f3a2b1c9d80> != <Cart object at 0x7f3a2b1c9e40>",
    "2026-11-22T16:37:04.902+00:00 WARNING worker-7 12ms 1048576 bytes 0x1F",
]


@pytest.mark.parametrize("text", ORDINARY)
def test_what_programs_say_stays(text: str) -> None:
    whole = "\n".join([text] * 3)
    assert without_encoded(whole) == whole
