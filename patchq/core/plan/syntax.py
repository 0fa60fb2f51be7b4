"""Syntax checks of the files that a batch leaves.

What parsed before has to parse afterwards, and a new file has to parse at all.  Python is read by
the parser of the Python that runs, JSON with comments and trailing commas, YAML by its events, TOML
by `tomllib`.  An f-string that a Python before 3.12 refuses is doubtful instead of broken.

The grammars of other languages are none of a compiler's: they stumble over macros and over what is
newer than they are.  What they do not understand is doubtful.  Broken is a file only whose brackets
were balanced and no longer are; conditionals of a preprocessor may leave them open for a reason.

Templates are not judged, nor is what is too large to be parsed in a moment.
"""

from __future__ import annotations

import ast
import re
import sys
import warnings
from collections.abc import Callable, Iterable

from msgspec import Struct

from patchq.core.model.values import FileChange, Problem
from patchq.core.text import grammars, jsonish, yamlio
from patchq.core.text.languages import suffix

MAX_BYTES = 1 << 20
_TEMPLATES = (b"{{", b"{%", b"<%")
_STRING = re.compile(rb"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|`[^`]*`")
_CONDITIONAL = re.compile(rb"^[ \t]*#[ \t]*(?:if|ifdef|ifndef|elif|else)\b", re.MULTILINE)
_TOML_LINE = re.compile(r"at line (\d+)")
# More of them on a line of TOML may be a key for which `tomllib` takes the square of its parts.
_MOST_DOTS = 100


class Flaw(Struct, frozen=True):
    """A syntax error; `doubt` is the reason why it may be none."""

    line: int
    what: str
    doubt: str | None = None


def unparsable(change: FileChange) -> Problem | None:
    """Return the problem of a change that leaves its file unparsable.

    A warning if that is in doubt; None if the file parses or cannot be judged.
    """
    before, after = None if change.from_link else change.before, change.after
    if change.link or after is None or after == before:
        return None
    if max(len(after), len(before or b"")) > MAX_BYTES:
        return None
    flaw = _flaw(change.path, after)
    if flaw is None or _is_template(change.path, before or b"", after, flaw):
        return None
    if (
        suffix(change.path) not in _PARSERS
        and before
        and not any(map(_CONDITIONAL.search, (before, after)))
        and grammars.balanced(change.path, before)
        and not grammars.balanced(change.path, after)
    ):
        flaw = Flaw(flaw.line, "a bracket that opens or closes alone; the first syntax error is")
    elif before and _flaw(change.path, before):
        return None
    return _problem(change.path, bool(before), after, flaw)


def broken(changes: Iterable[FileChange]) -> tuple[Problem, ...]:
    """Return the problems of changes that leave a file unparsable: errors, else warnings."""
    problems = tuple(filter(None, map(unparsable, changes)))
    return tuple(flaw for flaw in problems if flaw.severity == "error") or problems


def _problem(path: str, there: bool, after: bytes, flaw: Flaw) -> Problem:
    lines = after.decode("utf-8", "backslashreplace").split("\n")
    first = max(flaw.line - 4, 0)
    where = f"{flaw.what} in line {flaw.line}"
    if flaw.doubt is not None:
        message = f"{path} may not parse: {where}{' of the result' if there else ''}; {flaw.doubt}"
    elif there:
        message = f"{path} would no longer parse: {where} of the result"
    else:
        message = f"the new file {path} does not parse: {where}"
    return Problem(
        "result.syntax",
        message,
        "look at the file before it is accepted"
        if flaw.doubt
        else "send the edits again so that the result parses",
        "warning" if flaw.doubt else "error",
        path=path,
        excerpt=(first + 1, tuple(lines[first : flaw.line + 3])),
    )


def _is_template(path: str, before: bytes, after: bytes, flaw: Flaw) -> bool:
    """Return True if the text is a template.

    In code the line with the error decides.  In data an error may be reported anywhere, so that a
    new line with a template's mark decides.
    """
    lines = after.split(b"\n")
    if suffix(path) in _DATA:
        own = set(before.split(b"\n"))
        return any(mark in line for line in lines if line not in own for mark in _TEMPLATES)
    line = lines[flaw.line - 1] if flaw.line <= len(lines) else b""
    return any(mark in _STRING.sub(b"", line) for mark in _TEMPLATES)


def _flaw(path: str, data: bytes) -> Flaw | None:
    """Return the syntax error of a file; None without one, or for unknown languages."""
    parse = _PARSERS.get(suffix(path))
    if parse is None:
        found = grammars.flaw(path, data) if grammars.knows(path) else None
        return found and Flaw(*found, "its grammar here may not know all of the language")
    try:
        return parse(data)
    except UnicodeDecodeError as error:
        return Flaw(data.count(b"\n", 0, error.start) + 1, "no UTF-8")


def _python(data: bytes) -> Flaw | None:
    flaw = _running_python(data)
    if flaw is None:
        return None
    # Since Python 3.12 the fields of an f-string may hold any expression.
    later = sys.version_info < (3, 12) and flaw[1].startswith("f-string")
    return Flaw(*flaw, "Python 3.12 may read this f-string" if later else None)


def _running_python(data: bytes) -> tuple[int, str] | None:
    import symtable

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


def _json(data: bytes) -> Flaw | None:
    try:
        jsonish.parse(data.decode("utf-8-sig"))
    except jsonish.JsonError as error:
        return Flaw(error.line, str(error))
    return None


def _yaml(data: bytes) -> Flaw | None:
    found = yamlio.syntax_error(data.decode("utf-8-sig"))
    return Flaw(found.line, found.message) if found else None


def _toml(data: bytes) -> Flaw | None:
    if any(line.count(b".") > _MOST_DOTS for line in data.split(b"\n")):
        return None
    import tomllib

    try:
        tomllib.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        line = _TOML_LINE.search(str(error)) if isinstance(error, tomllib.TOMLDecodeError) else None
        return Flaw(int(line[1]) if line else 1, str(error))
    return None


_DATA: dict[str, Callable[[bytes], Flaw | None]] = {
    "json": _json,
    "jsonc": _json,
    "yaml": _yaml,
    "yml": _yaml,
    "toml": _toml,
}
_PARSERS = {"py": _python, "pyi": _python, **_DATA}
