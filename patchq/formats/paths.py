"""How models write the path of an edit: bare, dressed, or as the info of a fence.

A **path** token is one that the base has, that holds `/`, or that ends in `.` and 1-10 letters or
digits.
"""

from __future__ import annotations

import re
from collections.abc import Callable

Known = Callable[[str], bool]
"""Whether the base has a file of that path."""

_ENDING = re.compile(r"\.[A-Za-z0-9]{1,10}$")
_TICKED = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
_LABEL = re.compile(r"^(?:file ?path|file ?name|file|path)\s*:\s*", re.IGNORECASE)
_LEADING = re.compile(
    r"^(?:#{1,6}\s+|//+\s*|#\s*|[-*+]\s+|\d{1,3}[.)]\s+|>\s+|<!--\s*|/\*+\s*|;+\s+)"
)
_TRAILING = re.compile(r"(?:\s*-->|\s*\*+/|\s+#{1,6})$")
_WRAPS = ("**", "__", "`", "*", "_", '"', "'")
_IMPOSSIBLE = re.compile(r"[\s`*<>|\"]")


def is_path(token: str, known: Known) -> bool:
    """Whether a token can only be meant as a path."""
    if not token or token.endswith("/"):
        return False
    if known(token):
        return True
    if _IMPOSSIBLE.search(token) or "://" in token:
        return False
    return "/" in token.strip("/") or bool(_ENDING.search(token))


def undress(line: str) -> tuple[str, bool]:
    """The line without labels, comment leaders, emphasis and backticks round the whole of it, and
    whether backticks were among them."""
    text, ticked, before = line.strip(), False, None
    while text != before:
        before = text
        text = _LABEL.sub("", _TRAILING.sub("", _LEADING.sub("", text))).strip()
        if text.endswith(":") and len(text) > 1:
            text = text[:-1].rstrip()
        for wrap in _WRAPS:
            inner = text[len(wrap) : -len(wrap)]
            if inner and text.startswith(wrap) and text.endswith(wrap) and wrap not in inner:
                text, ticked = inner.strip(), ticked or wrap == "`"
                break
    return text, ticked


def path_of_line(line: str, known: Known, *, word: bool) -> str | None:
    """The path that a line names, or None.

    `word` says whether a single word without dot or slash (`Makefile`) may be a path that the base
    does not have.
    """
    text, ticked = undress(line)
    if is_path(text, known):
        return text
    bare = text == line.strip()
    if text and word and (bare or ticked) and not _IMPOSSIBLE.search(text):
        return text
    named = paths_named(line, known)
    return named[0] if len(named) == 1 else None


def paths_named(line: str, known: Known) -> list[str]:
    """The distinct paths in backticks on a line of prose."""
    return list(
        dict.fromkeys(t.strip() for t in _TICKED.findall(line) if is_path(t.strip(), known))
    )


def mentions_other(line: str, path: str, known: Known) -> bool:
    """Whether a line of prose speaks of a file other than `path`."""
    if any(named != path for named in paths_named(line, known)):
        return True
    for word in line.split():
        token = undress(word.strip(".,;:!?()[]"))[0]
        if token != path and (known(token) or ("/" in token and _is_file(token, known))):
            return True
    whole = undress(line)[0]
    return whole != path and " " not in whole and is_path(whole, known)


def _is_file(token: str, known: Known) -> bool:
    return is_path(token, known) and bool(_ENDING.search(token))


def path_of_info(info: str, known: Known) -> str | None:
    """The path in a fence's info: `python path`, `python:path`, or a path alone.

    A language's name alone never is one.
    """
    info = info.strip()
    if not info:
        return None
    if ":" in info:
        label, _, rest = info.partition(":")
        rest = undress(rest)[0]
        if re.fullmatch(r"[\w+#.-]*", label) and rest and not _IMPOSSIBLE.search(rest):
            return rest
    words = info.split()
    if len(words) == 1:
        return words[0] if not words[0].isalnum() and is_path(words[0], known) else None
    token = undress(words[-1])[0]
    return token if is_path(token, known) else None
