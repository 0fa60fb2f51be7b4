"""Whether a result still makes sense to its language: what parsed before has to parse afterwards,
and a new file has to parse at all.

Python is read by `ast`, JSON with comments and trailing commas, YAML by its events, TOML by
`tomllib`, other languages by their grammar if it is installed.  Templates are not judged, nor is
what is too large to be parsed in a moment.
"""

from __future__ import annotations

import ast
import symtable
import tomllib
import warnings
from collections.abc import Callable

from patchq.model.values import FileChange, Problem
from patchq.text import grammars, jsonish, yamlio

MAX_BYTES = 1 << 20
_TEMPLATES = (b"{{", b"{%", b"<%")
_MOST_DOTS = 100
"""More of them on a line of TOML may be a key for which `tomllib` takes the square of its parts."""


def check(change: FileChange) -> Problem | None:
    """The problem with a change that leaves its file unreadable; None if it is fine or unknown."""
    parse = _parser(change.path)
    if parse is None or change.after is None or change.after == change.before:
        return None
    if not _is_judged(change.after) or (change.before and not _is_judged(change.before)):
        return None
    wrong = parse(change.after)
    if wrong is None or (change.before and parse(change.before)):
        return None
    line, what = wrong
    return Problem(
        "result.syntax",
        f"{change.path} would no longer parse: {what} in line {line} of the result"
        if change.before
        else f"the new file {change.path} does not parse: {what} in line {line}",
        "send the edits again so that the result parses",
        path=change.path,
        excerpt=_excerpt(change.after, line),
    )


Wrong = tuple[int, str]
"""The line that cannot be read, and why."""
Parser = Callable[[bytes], Wrong | None]


def _is_judged(data: bytes) -> bool:
    return len(data) <= MAX_BYTES and not any(mark in data for mark in _TEMPLATES)


def _parser(path: str) -> Parser | None:
    known = _PARSERS.get(path.rpartition(".")[2].lower())
    if known is None and grammars.knows(path):
        return lambda data: grammars.flaw(path, data)
    return known


def _python(data: bytes) -> Wrong | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                # Parses as `ast` does, bytes as well, and makes no tree of objects.
                symtable.symtable(data, "", "exec")  # type: ignore[arg-type]
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                ast.parse(data)  # minds nothing but the grammar
    except SyntaxError as error:
        return error.lineno or 1, error.msg
    except (ValueError, RecursionError, MemoryError) as error:
        return 1, str(error) or type(error).__name__
    return None


def _json(data: bytes) -> Wrong | None:
    try:
        jsonish.parse(data.decode("utf-8-sig"))
    except jsonish.JsonError as error:
        return error.line, str(error)
    except UnicodeDecodeError as error:
        return data.count(b"\n", 0, error.start) + 1, "no UTF-8"
    return None


def _yaml(data: bytes) -> Wrong | None:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return data.count(b"\n", 0, error.start) + 1, "no UTF-8"
    found = yamlio.syntax_error(text)
    return (found.line, found.message) if found else None


def _toml(data: bytes) -> Wrong | None:
    if any(line.count(b".") > _MOST_DOTS for line in data.split(b"\n")):
        return None
    try:
        tomllib.loads(data.decode("utf-8-sig"))
    except tomllib.TOMLDecodeError as error:
        return _line_in(str(error)), str(error)
    except (ValueError, RecursionError) as error:
        return 1, str(error)
    return None


def _line_in(message: str) -> int:
    """The line that `tomllib` names in its message."""
    _, _, behind = message.partition("at line ")
    digits = behind.partition(",")[0]
    return int(digits) if digits.isdigit() else 1


def _excerpt(data: bytes, line: int) -> tuple[int, tuple[str, ...]]:
    lines = data.decode("utf-8", "backslashreplace").split("\n")
    first = max(line - 4, 0)
    return first + 1, tuple(lines[first : line + 3])


_PARSERS: dict[str, Parser] = {
    "py": _python,
    "pyi": _python,
    "json": _json,
    "jsonc": _json,
    "yaml": _yaml,
    "yml": _yaml,
    "toml": _toml,
}
