from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchq.gate.git.objects import (
    FILE,
    Identity,
    Node,
    Trees,
    graft,
    make_identity,
    parse_identity,
)


def test_graft_sorts_as_git_does_and_keeps_the_rest() -> None:
    odd = b"0100664 a.b\0" + b"x" * 20
    raw = odd + b"40000 a\0" + b"y" * 20 + b"100644 a0\0" + b"z" * 20
    kept: list[bytes] = []

    def keep(data: bytes) -> str:
        kept.append(data)
        return ""

    changes: list[Node] = [{"a": None}, {"b": None}, {"a": (FILE, "00" * 20)}]
    for change in changes:
        graft(Trees({"base": raw}.__getitem__), keep, "base", change)
    assert kept == [
        odd + b"100644 a0\0" + b"z" * 20,
        raw,
        b"100644 a\0" + b"\0" * 20 + odd + b"100644 a0\0" + b"z" * 20,
    ]


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


@pytest.mark.parametrize(
    ("offset", "zone"), [(0, "+0000"), (90, "+0130"), (-90, "-0130"), (-720, "-1200")]
)
def test_identity_as_in_a_header(offset: int, zone: str) -> None:
    assert str(Identity("Ada", "a@x", 5, offset)) == f"Ada <a@x> 5 {zone}"


@given(st.text(), st.text())
def test_no_identity_breaks_out_of_its_line(name: str, email: str) -> None:
    identity = make_identity(name, email)
    line = str(identity) if identity else "x <> 0 +0000"
    assert not set("\n\r\0") & set(line)
    assert (line.count("<"), line.count(">")) == (1, 1)
