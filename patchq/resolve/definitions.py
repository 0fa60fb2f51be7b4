"""The definitions and statements of a source file, as line ranges, and the anchors that they offer.

Python is read by `ast`, other languages by their grammar if it is installed.  Where neither is
known, where a definition ends is unknown too, and edits that depend on it are refused.

Candidates for an anchor are definitions, imports and decorators where the language is known, and
lines of any file.  The score is the sum of uniqueness (10 for a line that occurs once, 5 for
twice), proximity to a target line (10 less a point for each line away) and distinctiveness (5 for
more than five words, 3 for more than three).
"""

from __future__ import annotations

import ast
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from patchq.text import grammars

_REACH = 10
"""Lines beside the target line that are candidates themselves; without a target all of them."""


@dataclass(frozen=True, slots=True)
class Part:
    """Lines `start:end` (0-based, half-open) of a file that belong together.

    For a definition `start` is its first decorator's line, `header:body` are its header's lines.
    """

    kind: str
    name: str | None
    start: int
    end: int
    header: int
    body: int

    @classmethod
    def of_lines(cls, kind: str, name: str | None, start: int, end: int) -> Part:
        """Lines that are all header."""
        return cls(kind, name, start, end, start, end)


def parts(path: str, source: str) -> list[Part] | None:
    """The parts of a file in order of their lines; None when the language is not known or the file
    does not parse."""
    if path.endswith((".py", ".pyi")):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                # To Python a lone `\r` ends a line; here it does not.
                tree = ast.parse(source.replace("\r", " "))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None
        found = _python(tree, source.split("\n"))
    else:
        named = grammars.named(path, source.encode("utf-8", "surrogateescape"))
        if named is None:
            return None
        found = (Part(n.kind, n.name, n.start, n.end, n.header, n.body) for n in named)
    return sorted(found, key=lambda part: (part.start, -part.end))


def _python(tree: ast.AST, lines: list[str]) -> Iterator[Part]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield from _definition(node, lines)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield Part.of_lines("import_statement", ast.unparse(node), *_extent(node))


def _definition(
    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, lines: list[str]
) -> Iterator[Part]:
    header, end = _extent(node)
    first = min([header, *(_extent(d)[0] for d in node.decorator_list)])
    kind = "class_definition" if isinstance(node, ast.ClassDef) else "function_definition"
    inner = [node.body[0], *getattr(node.body[0], "decorator_list", [])]
    body = max(min(header + 1, end), min(_extent(part)[0] for part in inner))
    while body > header + 1 and lines[body - 1].lstrip()[:1] in ("", "#"):
        body -= 1
    yield Part(kind, node.name, first, end, header, body)
    for decorator in node.decorator_list:
        yield Part.of_lines("decorator", ast.unparse(decorator), *_extent(decorator))


def _extent(node: ast.stmt | ast.expr) -> tuple[int, int]:
    return node.lineno - 1, node.end_lineno or node.lineno


@dataclass(frozen=True, slots=True)
class Ranked:
    """One candidate; `line` is its text without indentation, `lineno` and `end_lineno` are 1-based
    and inclusive, `count` says how often the line occurs."""

    type: str
    name: str | None
    line: str
    lineno: int
    end_lineno: int
    count: int
    score: int


def ranked(path: str, source: str, target: int | None = None) -> list[Ranked]:
    """The candidates of the file, the best first; those of equal score in the file's order."""
    lines = source.split("\n")
    counts = Counter(line.strip() for line in lines)
    found = parts(path, source) or []
    headers = {part.header for part in found}
    near = range(len(lines))
    if target is not None:
        near = range(max(target - 1 - _REACH, 0), min(target + _REACH, len(lines)))
    others = [i for i in near if lines[i].strip() and i not in headers]
    candidates = []
    for part in (*found, *(Part.of_lines("line_pattern", None, i, i + 1) for i in others)):
        line = lines[part.header].strip()
        score = {1: 10, 2: 5}.get(counts[line], 0)
        if target is not None:
            score += max(0, 10 - abs(part.header + 1 - target))
        words = len(line.split())
        score += 5 if words > 5 else 3 if words > 3 else 0
        lineno, count = part.header + 1, counts[line]
        candidates.append(Ranked(part.kind, part.name, line, lineno, part.end, count, score))
    return sorted(candidates, key=lambda candidate: (-candidate.score, candidate.lineno))
