"""What parsed before has to parse afterwards: tables of changes that pass and that do not."""

from __future__ import annotations

import pytest

from patchq.model.values import FileChange
from patchq.plan.guards import MAX_BYTES, unparsable

PASSES = {
    "python": ("a.py", b"x = 1\n", b"x = 2\n"),
    "python-was-broken": ("a.py", b"x = (\n", b"x = ((\n"),
    "python-2": ("a.py", b"print 'a'\n", b"print 'b'\n"),
    "python-names": ("a.py", b"x = 1\n", b"def f(a, a):\n    global a\n"),
    "python-coding": ("a.py", b"x = 1\n", b"# coding: latin-1\nx = '\xe9'\n"),
    "stub": ("a.pyi", b"x: int\n", b"x: str\n"),
    "json-with-comments": ("a.json", b"{}\n", b'// c\n{"a": [1, 2,], /* d */}\n'),
    "yaml-with-tags": ("a.yml", b"a: 1\n", b"a: !ref x\n---\nb: 2\n"),
    "toml": ("a.toml", b"a = 1\n", b"a = 2\n"),
    "unknown-language": ("a.zig", b"fn a() {}\n", b"fn a( {\n"),
    "template": ("a.yaml", b"a: 1\n", b"a: {{ x }}\n{% if %}\n"),
    "was-a-template": ("a.py", b"x = {{ y }}\n", b"x = (\n"),
    "deletion": ("a.py", b"x = 1\n", None),
    "too-large": ("a.py", b"x = 1\n", b"(" * (MAX_BYTES + 1)),
    "new": ("a.py", None, b"x = 1\n"),
    "byte-order-mark": ("a.json", None, b"\xef\xbb\xbf{}\n"),
}


@pytest.mark.parametrize(("path", "before", "after"), PASSES.values(), ids=PASSES)
def test_passes(path: str, before: bytes | None, after: bytes | None) -> None:
    assert unparsable(FileChange(path, before, after)) is None


REFUSED = {
    "python": ("a.py", b"x = 1\n", b"x = 1\ny = (\n", 2),
    "python-indentation": ("a.py", b"x = 1\n", b"x = 1\n  y = 2\n", 2),
    "python-nul": ("a.py", b"x = 1\n", b"x = '\0'\n", 1),
    "json": ("a.json", b"{}\n", b'{\n "a": 1\n "b": 2}\n', 3),
    "json-bytes": ("a.json", b"{}\n", b'{\n"a": "\xff"}\n', 2),
    "yaml": ("a.yaml", b"a: 1\n", b"a: 1\nb: [\n", 3),
    "toml": ("a.toml", b"a = 1\n", b"a = 1\nb = \n", 2),
    "new": ("a.py", None, b"def f(:\n", 1),
}


@pytest.mark.parametrize(("path", "before", "after", "line"), REFUSED.values(), ids=REFUSED)
def test_refused(path: str, before: bytes | None, after: bytes, line: int) -> None:
    problem = unparsable(FileChange(path, before, after))
    assert problem is not None
    assert (problem.code, problem.path) == ("result.syntax", path)
    assert f"line {line}" in problem.message
    assert problem.excerpt is not None
