"""The definitions and statements of a source file, as line ranges.

Python is read by `ast`, other languages by their grammar if it is installed.  Where neither is
known, where a definition ends is unknown too, and edits that depend on it are refused.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from patchq.text import grammars

Kind = Literal["function_definition", "class_definition", "import_statement", "decorator"]


@dataclass(frozen=True, slots=True)
class Part:
    """Lines `start:end` (0-based, half-open) of a file that belong together.

    For a definition `start` is its first decorator's line, `header:body` are its header's lines.
    """

    kind: Kind
    name: str
    start: int
    end: int
    header: int
    body: int


def parts(path: str, source: str) -> list[Part] | None:
    """The parts of a file in order of their lines; None when the language is not known or the file
    does not parse."""
    if not path.endswith((".py", ".pyi")):
        found = grammars.named(path, source.encode("utf-8", "surrogateescape"))
        if found is None:
            return None
        others = (Part(n.kind, n.name, n.start, n.end, n.header, n.body) for n in found)
        return sorted(others, key=lambda part: (part.start, -part.end))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # To Python a lone `\r` ends a line; here it does not.
            tree = ast.parse(source.replace("\r", " "))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return sorted(_python(tree, source.split("\n")), key=lambda part: (part.start, -part.end))


def _python(tree: ast.AST, lines: list[str]) -> Iterator[Part]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield from _definition(node, lines)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            start, end = node.lineno - 1, node.end_lineno or node.lineno
            yield Part("import_statement", ast.unparse(node), start, end, start, end)


def _definition(
    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, lines: list[str]
) -> Iterator[Part]:
    header, end = node.lineno - 1, node.end_lineno or node.lineno
    first = min([header, *(d.lineno - 1 for d in node.decorator_list)])
    kind: Kind = "class_definition" if isinstance(node, ast.ClassDef) else "function_definition"
    body = max(min(header + 1, end), _first_line(node.body[0]))
    while body > header + 1 and lines[body - 1].lstrip()[:1] in ("", "#"):
        body -= 1
    yield Part(kind, node.name, first, end, header, body)
    for decorator in node.decorator_list:
        line, last = decorator.lineno - 1, decorator.end_lineno or decorator.lineno
        yield Part("decorator", ast.unparse(decorator), line, last, line, last)


def _first_line(statement: ast.stmt) -> int:
    decorators = getattr(statement, "decorator_list", [])
    return min(statement.lineno - 1, *(int(d.lineno) - 1 for d in decorators), 10**9)
