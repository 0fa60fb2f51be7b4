"""Quoting of foreign text, so that it cannot pass for patchq's own.

File contents, responses, paths and hook output reach reports only through this module: what a
reader would not see (control, bidirectional, zero-width characters) is written out, and the
Markdown around a quotation is always stronger than anything inside it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

# A character that takes no place of its own on a screen, or changes that of others.
HIDDEN = re.compile(
    "[\x00-\x1f\x7f-\x9f"  # C0, DEL, C1
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f"  # zero-width, line separators, bidirectional
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    "\ud800-\udfff"  # surrogates that stand alone
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)

_SHORT = {"\t": "\\t", "\n": "\\n", "\r": "\\r"}
_BACKTICKS = re.compile("`+")
_MARKDOWN = re.compile(r"(?P<span>(?<!`)(?P<run>`+)(?!`).+?(?<!`)(?P=run)(?!`))|[<\[`]")
_LINE_LIMIT = 500


def decode(data: bytes) -> str:
    """Return bytes as UTF-8 text, with invalid ones as `\\xNN`."""
    return data.decode("utf-8", "backslashreplace")


def visible(text: str, keep: str = "") -> str:
    """Return `text` with its hidden characters, except those in `keep`, written out.

    They are written as `\\x1b` or `\\u202e`.
    """
    others = text
    for kept in keep:
        others = others.replace(kept, "")
    if HIDDEN.search(others) is None:
        return text  # most are of many lines, and hold nothing else
    return HIDDEN.sub(lambda m: m[0] if m[0] in keep else _written_out(m[0]), text)


def clip(text: str, limit: int) -> str:
    """Return `text`, or its first `limit` characters and a mark."""
    return text if len(text) <= limit else text[:limit] + " …"


def inline(text: str, limit: int = 200) -> str:
    """Return a one-line Markdown code span of at most `limit` characters."""
    shown = visible(clip(text, limit))
    ticks = "`" * _free_run(shown, 1)
    pad = " " if not shown or "`" in (shown[0], shown[-1]) else ""
    return f"{ticks}{pad}{shown}{pad}{ticks}"


def fence(text: str, info: str = "") -> str:
    """Return a fenced Markdown block that `text` cannot close.

    It has no newline at the end.
    """
    shown = visible(text, keep="\n\t").removesuffix("\n")
    ticks = "`" * _free_run(shown, 3)
    return f"{ticks}{info}\n{shown}\n{ticks}"


def sentence(text: str) -> str:
    """Return a message as Markdown, with its code spans.

    Anything that would start a tag or a link is escaped.
    The first line only; the caller fences the others.
    """
    line = visible(text.split("\n", 1)[0])
    escaped = _MARKDOWN.sub(lambda m: m[0] if m["span"] else f"\\{m[0]}", line)
    return re.sub(r"^\s*(?=[#>*+=|~-])", r"\\", escaped)


def line_words(lines: Sequence[int]) -> str:
    """Return lines in words, given the first and the last, 1-based."""
    return f"line {lines[0]}" if lines[0] >= lines[1] else f"lines {lines[0]}-{lines[1]}"


def excerpt(lines: Sequence[str], first: int) -> str:
    """Return numbered lines, `12 | text`, from line `first` of their file."""
    width = len(str(first + len(lines) - 1))
    return "\n".join(
        f"{number:{width}} | {clip(line.removesuffix(chr(13)), _LINE_LIMIT)}"
        for number, line in enumerate(lines, first)
    )


def _free_run(text: str, least: int) -> int:
    return max([least, *(len(run) + 1 for run in _BACKTICKS.findall(text))])


def _written_out(character: str) -> str:
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:  # a byte that was no UTF-8
        code -= 0xDC00
    if character in _SHORT:
        return _SHORT[character]
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
