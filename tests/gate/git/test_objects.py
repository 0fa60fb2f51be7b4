from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchq.gate.git.objects import (
    make_identity,
    parse_identity,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Ada <ada@x.org>", ("Ada", "ada@x.org")),
        ("Ada\nInjected: x <ada@x.org>", ("AdaInjected: x", "ada@x.org")),
        ("Ada <ada@x.org\nparent 123>", ("Ada", "ada@x.orgparent 123")),
        ('"Ada," <a@x>', ("Ada", "a@x")),
        ("<a@x>", None),
        ("Ada <a@x> <b@x>", None),
    ],
)
def test_parse_identity(text: str, expected: tuple[str, str] | None) -> None:
    found = parse_identity(text)
    assert (found and (found.name, found.email)) == expected


@given(st.text(), st.text())
def test_no_identity_breaks_out_of_its_line(name: str, email: str) -> None:
    identity = make_identity(name, email)
    line = str(identity) if identity else "x <> 0 +0000"
    assert not set("\n\r\0") & set(line)
    assert (line.count("<"), line.count(">")) == (1, 1)
