"""Definitions of other languages, where their grammars are installed."""

from __future__ import annotations

import pytest

from patchq.core.model.values import FileChange
from patchq.core.plan.syntax import unparsable
from patchq.core.text import grammars

SOURCES = {
    "js": ("a.js", "import a from 'b';\n@dec\nexport class A {\n  m(x) {\n    return 1;\n  }\n}\n",
        {("class_definition", "A", 1, 7, 2, 3), ("function_definition", "m", 3, 6, 3, 4)}),
    "ts": (
        "a.ts", "export interface I {\n  a: number;\n}\nfunction f(\n  x: number,\n): void {\n}\n",
        {("class_definition", "I", 0, 3, 0, 1), ("function_definition", "f", 3, 7, 3, 6)}),
    "go": (
        "a.go",
        "package a\n\nfunc (t *T) M() int {\n\treturn 1\n}\n\ntype T struct {\n\ta int\n}\n",
        {("function_definition", "M", 2, 5, 2, 3), ("class_definition", "T", 6, 9, 6, 7)},
    ),
    "rust": ("a.rs", "#[inline]\nfn f() -> i32 {\n    1\n}\n\nimpl T {\n    fn m(&self) {}\n}\n",
        {("function_definition", "f", 0, 4, 1, 2), ("class_definition", "T", 5, 8, 5, 6)}),
    "java": (
        "A.java", "class A {\n    @Override\n    public int m() {\n        return 1;\n    }\n}\n",
        {("function_definition", "m", 1, 5, 2, 3), ("class_definition", "A", 0, 6, 0, 1)}),
    "c": ("a.c", "#include <a.h>\nint *f(int a)\n{\n    return 0;\n}\n",
        {("function_definition", "f", 1, 5, 1, 3),
         ("import_statement", "#include <a.h>", 0, 1, 0, 1)}),
    "cpp": ("a.cpp", "class A {\n    int m() { return 1; }\n};\nint A::n() {\n    return 2;\n}\n",
        {("function_definition", "n", 3, 6, 3, 4), ("class_definition", "A", 0, 3, 0, 1)}),
}  # fmt: skip


@pytest.mark.parametrize(("path", "source", "expected"), SOURCES.values(), ids=SOURCES)
def test_definitions(path: str, source: str, expected: set[tuple[object, ...]]) -> None:
    found = grammars.named(path, source.encode())
    assert found is not None
    assert expected <= {(n.kind, n.name, n.start, n.end, n.header, n.body) for n in found}


BALANCED = {
    "a.js": "const f = (x) => `${x} (${[1]}`;  // (\n",
    "a.ts": "const a = /[(]/.test('{');\n",
    "a.cpp": "[[nodiscard]] int f() { return a[b[0]]; }\n",
    "a.c": "#define BEGIN {\nint f(void) BEGIN\n",
    "a.rs": "#[derive(Debug)]\nstruct A;\n",
    "a.zig": "((",
}  # fmt: skip


@pytest.mark.parametrize(("path", "source"), BALANCED.items())
def test_brackets_are_tokens(path: str, source: str) -> None:
    assert grammars.balanced(path, source.encode())
    if grammars.knows(path):
        assert not grammars.balanced(path, source.encode() + b"\n{\n")
        assert not grammars.balanced(path, b")(\n" + source.encode())


GOOD = "int f(void) {\n  return 1;\n}\n"
MACROS = "TEST(one) BEGIN x y z END\n"
JUDGED: dict[str, tuple[str, str | None, str, str | None]] = {
    "a bracket is lost": ("a.c", GOOD, GOOD.replace("}", ""), "error"),
    "a bracket is lost in Rust": ("a.rs", "fn a() {}\n", "fn a() {}\nfn b( {\n", "error"),
    "what it does not know": ("a.go", "package a\n", "package a\nfunc f() { x := ; }\n", "warning"),
    "a new file with an open bracket": ("a.js", None, "f((", "warning"),
    "brackets and conditionals": ("a.c", "#if A\n#endif\n" + GOOD,
        "#if A\n#endif\n" + GOOD.replace("}", ""), "warning"),
    "it was so before": ("a.c", MACROS + GOOD, MACROS + GOOD + MACROS, None),
    "fine": ("a.c", GOOD, GOOD + GOOD.replace("f", "g"), None),
}  # fmt: skip


@pytest.mark.parametrize(("path", "before", "after", "severity"), JUDGED.values(), ids=JUDGED)
def test_a_grammar_doubts(path: str, before: str | None, after: str, severity: str | None) -> None:
    change = FileChange(path, None if before is None else before.encode(), after.encode())
    problem = unparsable(change)
    assert (problem and problem.severity) == severity, problem
    assert problem is None or problem.code == "result.syntax"
