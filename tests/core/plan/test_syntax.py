"""What parsed before has to parse afterwards: tables of changes that pass and that do not."""

from __future__ import annotations

import sys

import pytest

from patchq.core.model.values import FileChange
from patchq.core.plan.syntax import MAX_BYTES, unparsable

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
    "was-a-template": ("a.py", b"x = {{ y }} {% z %}\n", b"x = (\n"),
    "becomes-a-template": ("a.py", b"x = 1\n", b"import {{ name }}\n"),
    "a-template's-file": ("a.json", None, b'{"a": {{ x }}}\n'),
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
    "python-with-braces": ("a.py", b"x = f'{{1}}'\n", b"x = f'{{1}}'\ndef broken(:\n", 2),
    "python-with-more-braces": ("a.py", b"x = 1\n", b"x = '{{'\ny = '{%'\ndef broken(:\n", 3),
    "a workflow": ("a.yml", b"a: ${{ x }}\n", b"a: ${{ x }}\nb: [\n", 3),
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


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="this Python reads it")
def test_a_later_f_string_is_in_doubt() -> None:
    for before in (None, b"x = 1\n"):
        problem = unparsable(FileChange("a.py", before, b"x = f'{a['b']}'\n"))
        assert problem is not None
        assert (problem.code, problem.severity) == ("result.syntax", "warning"), problem.message


NEVER = {
    "Python 2": "try:\n    x()\nexcept ValueError, e:\n    pass\n",
    "a print": 'print "x"\n',
    "an open bracket": "def f[T](x: T\n",
    "an open field": "print(f'{x)\n",
    "behind one": "type A = int\nx = = 1\n",
}


@pytest.mark.parametrize("text", NEVER.values(), ids=NEVER)
def test_what_no_python_reads_is_refused(text: str) -> None:
    problem = unparsable(FileChange("a.py", None, text.encode()))
    assert problem is not None
    assert problem.severity == "error", problem.message
