"""Anchors in a file (line, import, decorator, definition) and the edits made at them.

The anchor has to be unique; only an exactly stated line decides among equals.  What a definition is
taken for, its header or the whole of it, must follow from the content, or be stated (`scope`).

Definitions and statements are line ranges.  Python is read by `ast`, other languages by their
grammar if it is installed.  Where neither is known, where a definition ends is unknown too, and
edits that depend on it are refused.

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
from functools import lru_cache

from msgspec import Struct
from msgspec.structs import replace

from patchq.core.model.ops import Anchored
from patchq.core.resolve.ladder import Found, Missed, Rewrite, inserted
from patchq.core.resolve.levels import STRIPPED, Lines, lines_of, stripped
from patchq.core.resolve.places import LineRange, find_lines, indentation
from patchq.core.text import grammars
from patchq.core.text.grammars import Part
from patchq.core.text.lines import Text

_DEFINITIONS = ("function_definition", "class_definition")


def resolve(text: Text, op: Anchored, path: str) -> Found | Missed:
    """Return the place of `op` in `text`, the file at `path`."""
    anchor = op.selected or op.name or ""
    if op.candidates is not None and anchor.strip() not in map(str.strip, op.candidates):
        return Missed("invented", detail=anchor)
    known = parts(path, b"\n".join(text.contents).decode("utf-8", "replace"))
    found = _anchors(text, op, known)
    several = len(found) > 1
    if op.line is not None and several:
        found = [part for part in found if part.header + 1 == op.line] or found
    if not found:
        return Missed("none")
    if len(found) > 1:
        return Missed(
            "ambiguous",
            "exact",
            tuple(LineRange(part.header, part.header + 1, [], []) for part in found[:51]),
        )
    placed = _placed(text, op, found[0], known is not None)
    return replace(placed, by_number=True) if several and isinstance(placed, Found) else placed


def _anchors(text: Text, op: Anchored, known: list[Part] | None) -> list[Part]:
    of_kind = [part for part in known or () if part.kind == op.kind]
    if op.selected is None:
        return [part for part in of_kind if part.name == op.name]
    quoted = stripped(lines_of(op.selected))
    if not any(quoted):
        return []
    starts = {start for start, _ in find_lines(text, quoted, STRIPPED)}
    if op.kind == "line_pattern" or known is None:
        return [
            Part.of_lines(op.kind, op.name, start, start + len(quoted)) for start in sorted(starts)
        ]
    inside = {
        line: part for part in of_kind for line in (part.header, part.start) if line in starts
    }
    if op.name:
        inside = {line: part for line, part in inside.items() if part.name == op.name}
    return list(inside.values())


def _placed(text: Text, op: Anchored, part: Part, parsed: bool) -> Found | Missed:
    content = _content(text, op, part)
    is_definition = op.kind in _DEFINITIONS
    start, end = (part.header, part.body) if is_definition else (part.start, part.end)
    if is_definition and op.scope != "line":
        if not parsed:
            return Missed("unwritable", detail="where the definition ends is not known here; say "
                          '`"scope": "line"`, or quote its lines')  # fmt: skip
        start, end = part.start, part.end
        if op.action == "replace" and op.scope is None:
            reading = _replaced(text, content, part)
            if reading is None:
                return Missed("ambiguous", "exact", detail="scope")
            start, end = reading
    if op.action == "insert_before":
        return inserted(text, start, content, ahead=True)
    if op.action == "insert_after":
        return inserted(text, end, content)
    rewrite = Rewrite(text.contents[start:end], content if op.action == "replace" else [])
    return Found("exact", start, end, (rewrite.at(text, start),))


def _replaced(text: Text, content: Lines, part: Part) -> tuple[int, int] | None:
    """Return the lines that the content replaces; None if it is ambiguous.

    The header, if it is one; the whole definition, if it repeats at least its last line.
    """
    last = text.contents[part.end - 1].strip()
    written = [line.strip() for line in content if line.strip()]
    header = text.contents[part.header].split()[:1]
    is_header = len(written) == 1 and written[0].endswith(b":") and written[0].split()[:1] == header
    repeats = bool(written) and last in written and part.end - part.header > 1
    if is_header == repeats:
        return None
    return (part.header, part.body) if is_header else (part.start, part.end)


def _content(text: Text, op: Anchored, part: Part) -> Lines:
    """Return the new lines, indented like the anchor if the edit is unindented."""
    if not op.content:
        return []
    content = lines_of(op.content)
    indent = indentation(text.contents[part.header])
    bare = op.selected is not None and not indentation(lines_of(op.selected)[0])
    first = next((line for line in content if line.strip()), b"")
    if not bare or not indent or indentation(first):
        return content
    return [indent + line if line.strip() else line for line in content]


# ---------------------------------------------------------------- the parts of a file


# Lines beside the target line that are candidates themselves; without a target all of them.
_REACH = 10


@lru_cache(4)  # many edits ask for those of one text
def parts(path: str, source: str) -> list[Part] | None:
    """Return the parts of a file in order; None if it cannot be parsed."""
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
        found = iter(named)
    return sorted(found, key=lambda part: (part.start, -part.end))


def _python(tree: ast.AST, lines: list[str]) -> Iterator[Part]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield from _definition(node, lines)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield Part.of_lines("import_statement", ast.unparse(node), *_lines_of_node(node))


def _definition(
    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, lines: list[str]
) -> Iterator[Part]:
    header, end = _lines_of_node(node)
    first = min([header, *(_lines_of_node(d)[0] for d in node.decorator_list)])
    kind = "class_definition" if isinstance(node, ast.ClassDef) else "function_definition"
    inner = [node.body[0], *getattr(node.body[0], "decorator_list", [])]
    body = max(min(header + 1, end), min(_lines_of_node(part)[0] for part in inner))
    while body > header + 1 and lines[body - 1].lstrip()[:1] in ("", "#"):
        body -= 1
    yield Part(kind, node.name, first, end, header, body)
    for decorator in node.decorator_list:
        yield Part.of_lines("decorator", ast.unparse(decorator), *_lines_of_node(decorator))


def _lines_of_node(node: ast.stmt | ast.expr) -> tuple[int, int]:
    return node.lineno - 1, node.end_lineno or node.lineno


class Ranked(Struct, frozen=True):
    """A candidate for an anchor.

    `line` is its text without indentation.  `lineno` and `end_lineno` are 1-based and inclusive.
    `count` is the number of lines with this text.
    """

    type: str
    name: str | None
    line: str
    lineno: int
    end_lineno: int
    count: int
    score: int


def ranked(path: str, source: str, target: int | None = None) -> list[Ranked]:
    """Return the anchor candidates of a file, the best first.

    With a `target` line, other lines than definitions are candidates near it; anywhere, where none
    near it occurs only once.
    """
    lines = source.split("\n")
    counts = Counter(line.strip() for line in lines)
    found = parts(path, source) or []
    headers = {part.header for part in found}
    near = range(len(lines))
    if target is not None:
        near = range(max(target - 1 - _REACH, 0), min(target + _REACH, len(lines)))
        if not any(counts[lines[i].strip()] == 1 for i in near):
            near = range(len(lines))
    others = [i for i in near if lines[i].strip() and i not in headers]
    candidates = []
    for part in (*found, *(Part.of_lines("line_pattern", None, i, i + 1) for i in others)):
        line = lines[part.header].strip()
        score = {1: 10, 2: 5}.get(counts[line], 0)
        if target is not None:
            score += max(0, 10 - abs(part.header + 1 - target))
        words = len(line.split())
        score += 5 if words > 5 else 3 if words > 3 else 0
        candidates.append(
            Ranked(part.kind, part.name, line, part.header + 1, part.end, counts[line], score)
        )
    return sorted(candidates, key=lambda candidate: (-candidate.score, candidate.lineno))
