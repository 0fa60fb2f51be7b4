"""Front matter, the YAML block before the edits, and signs of a lost one.

Lines alone decide, before any YAML is read: a block between two lines `---` that begins the
response, blank lines and one fence round it aside, and in which a line begins with a key of ours.
From then on nothing is let through that is not understood: taken for prose, a lost `target` or
`base` would land the edits elsewhere without a word.  So a block that is not closed, or that is
further down, refuses the response as well.  Without a key of ours it is Markdown.

`message` takes the rest of its line as it is, since the subjects of commits have colons and signs
that mean something else to YAML.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from msgspec import Struct

from patchq.core.formats.marks.fences import (
    BEGIN_PATCH,
    GIT,
    Fence,
    fence,
)
from patchq.core.formats.marks.paths import path_of_info
from patchq.core.model.names import suggestion
from patchq.core.model.values import Envelope, Header, Problem
from patchq.core.text import yamlio

KEYS = (
    "id", "target", "base", "message", "author", "agent", "model", "file", "retries",
    "depends_on", "answers", "whole_files", "bytes", "sha256",
)  # fmt: skip
MAX_BYTES = 65_536
_INVISIBLE = "\u200b\u2060\ufeff"
_MARKER = re.compile(r"([ \t]*)---(?:[ \t]+#.*)?[ \t]*")
_KEY = rf"(?:[-{{][ \t]*)?([\"']?)({'|'.join(KEYS)})\1[ \t]*:"
_NAMED = re.compile(_KEY)  # a line that begins with a key of ours, in a list or braces, too
_NAMED_BELOW = re.compile(rf"\n{_KEY}")
_may_open = re.compile(rf"[\s{_INVISIBLE}]*[-`~<]").match
# How a line of YAML begins that is a comment, an item, a continuation, or a key with its colon.
_SHAPED = re.compile(r"#|-(?:\s|\Z)|[ \t]|[\"']?[^\s:#-][^:]*:(?:\s|\Z)")
# A line on which an edit of any form may begin, fences aside.
_EDIT = re.compile(
    rf"\s*(?:[<>]{{5,9}}(?:\s|\Z)|-{{5,9}} SEARCH\b|{re.escape(BEGIN_PATCH)}|{GIT}|Index: "
    r"|\*\*\* (?:Add|Update|Delete) File:|(?:---|\+\+\+) \S|\W*FIND\b\W*:|FILE: "
    r"|[{\[]\s*(?:\Z|[\"{\[]))"
)
HINT_PROSE = (
    "If this block is text of the response itself, put an empty front matter (two lines `---`) "
    "before it."
)
_HINT_FIRST = (
    "Send the front matter as the first thing of the response, from a line `---` to a line `---`, "
    "with nothing but `key: value` lines between."
)
_MESSAGE = re.compile(r"message[ \t]*:(?:[ \t]+(.*)|)")
# A scalar that is quoted, and ends there or goes on below, or is in lines of its own.
_SCALAR = re.compile(
    r"\"(?:[^\"\\]|\\.)*(?:\"\s*(?:#.*)?)?\Z|'(?:[^']|'')*(?:'\s*(?:#.*)?)?\Z"
    r"|[|>][-+0-9]*(?:[ \t]+#.*)?\Z",
    re.DOTALL,
)
_AUTHOR = re.compile(r"[^<>]*[^<>\s][^<>]* <[^<>\s]+>")
_SHA256 = re.compile(r"[0-9a-fA-F]{64}")
_HINT_KEYS = f"The keys are {', '.join(f'`{key}`' for key in KEYS)}."
_HINT_QUOTES = 'Put the value into double quotes: `target: "a: b"`.'


class Split(Struct, frozen=True):
    """A response split into its front matter and its body.

    The lines between the markers begin on line `block_line`, at the character `block_at`; the body
    begins on line `body_line`.
    `promised` is the text that `bytes` and `sha256` speak of.  It is the body, but for a fence
    round both.
    """

    block: str
    block_line: int
    block_at: int
    body: str
    body_line: int
    promised: str


class _Line(Struct, frozen=True):
    text: str
    number: int
    start: int
    end: int

    @property
    def blank(self) -> bool:
        return not self.text.strip().strip(_INVISIBLE)


def split(text: str) -> Split | Problem | None:
    """Return the front matter and the rest; None if there is none.

    It is a problem where it can be no other thing and is not all there.
    """
    lines = _lines(text)
    opening = _filled(lines) if _may_open(text) else None
    mark = fence(opening.text) if opening else None
    first = _filled(lines) if mark else opening
    marker = _MARKER.fullmatch(first.text) if first else None
    if opening is None or first is None or marker is None:
        return None
    if mark and (mark.closing or path_of_info(mark.info, lambda path: False)):
        return None
    named, closing, edit = _block(lines, marker[1], mark)
    if named is None or (mark and closing is None):
        return None
    if marker[1]:
        return _misplaced(first.number, "is indented")
    if closing is None:
        end = f"the edit on line {edit.number} begins" if edit else "it ends"
        return _misplaced(first.number, f"has no line `---` that closes it before {end}")
    block, body = text[first.end : closing.start], text[closing.end :]
    found = Split(block, first.number + 1, first.end, body, closing.number + 1, body)
    return _unwrapped(text, found, opening, mark) if mark else found


def _block(
    lines: Iterator[_Line], indent: str, wrapper: Fence | None
) -> tuple[str | None, _Line | None, _Line | None]:
    """Return the first known key of a block, its end, and its first edit.

    The key is "" if the block is empty, None if it is Markdown.  The end is None if there is an
    edit.
    """
    filled = list[str]()
    edit: _Line | None = None
    closing: _Line | None = None
    for line in lines:
        mark = fence(line.text)
        if mark and wrapper and wrapper.closed_by(mark):
            break
        marker = _MARKER.fullmatch(line.text)
        if marker and marker[1] == indent:
            closing = line
            break
        named = _NAMED.match(line.text)
        if edit is None and (mark or (_EDIT.match(line.text) and not named)):
            edit = line
        if edit is None and not line.blank:
            filled.append(line.text.removeprefix(indent))
    if edit and filled and filled[-1].startswith("file"):
        filled.pop()  # the path line of an edit that is between two rules
    keys = [match[2] if (match := _NAMED.match(line)) else None for line in filled]
    empty = closing is not None and not (filled or edit or wrapper)
    first = "" if empty else next(filter(None, keys if closing else keys[:1]), None)
    return first, None if edit else closing, edit


def _lines(text: str) -> Iterator[_Line]:
    start, number = 0, 1
    for match in re.finditer(r"[^\r\n]*(\r\n?|\n|\Z)", text):
        if match.start() == len(text):
            return
        end = match.end()
        yield _Line(text[start : match.start(1)], number, start, end)
        start, number = end, number + 1


def _filled(lines: Iterator[_Line]) -> _Line | None:
    return next((line for line in lines if not line.blank), None)


def _unwrapped(text: str, found: Split, opening: _Line, mark: Fence) -> Split | None:
    """Return front matter in a fence without it, if it is there alone.

    A fence round the edits, too, is theirs; one that holds other text is a document that is shown.
    """
    below = _filled(_lines(found.body))
    other = fence(below.text) if below else None
    if below and other and mark.closed_by(other):
        body = found.body[below.end :]
        line = found.body_line + below.number
        return Split(found.block, found.block_line, found.block_at, body, line, body)
    if below and not (other or _EDIT.match(below.text) or " " not in below.text.strip()):
        return None
    body = text[opening.start : opening.end] + found.body
    line = found.body_line - 1
    return Split(found.block, found.block_line, found.block_at, body, line, found.promised)


def _misplaced(line: int, how: str) -> Problem:
    message = f"The front matter on line {line} {how}, so it may be lost."
    return Problem("frontmatter.value", message, f"{_HINT_FIRST} {HINT_PROSE}", line=line)


def may_be_further_down(lines: Sequence[str]) -> bool:
    """Return whether lines may hold front matter, by their text alone."""
    text = "\n".join(["", *lines])
    return "---" in text and _NAMED_BELOW.search(text) is not None


def further_down(lines: Iterable[tuple[int, str]]) -> Problem | None:
    """Return the problem of front matter in the text (numbers, lines) before the edits."""
    numbered = [(number, line.rstrip("\r")) for number, line in lines]
    marks = [i for i, (_, line) in enumerate(numbered) if _MARKER.fullmatch(line)]
    for i, j in pairwise(marks):
        inner = [line for _, line in numbered[i + 1 : j] if line.strip()]
        named = next((match[2] for line in inner if (match := _NAMED.match(line))), None)
        unbroken = numbered[j][0] - numbered[i][0] == j - i
        if named and unbroken and all(map(_SHAPED.match, inner)):
            how = f"(`{named}`) is not the first thing of the response"
            return _misplaced(numbered[i][0], how)
    return None


# ---------------------------------------------------------------- its keys


def read_header(found: Split) -> Header | tuple[Problem, ...]:
    """Return the header in the block, or all its problems.

    `bytes` and `sha256` are compared with what follows; a difference is `response.incomplete`.
    """
    first = found.block_line
    if len(found.block.encode(errors="surrogatepass")) > MAX_BYTES:
        return (_bad_value(first - 1, f"The front matter is longer than {MAX_BYTES} bytes."),)
    messages, rest = _without_messages(found.block, first)
    try:
        root = yamlio.parse(rest, first_line=first)
    except yamlio.YamlError as error:
        message = f"The front matter cannot be read, column {error.column}: {error.message}."
        return (_bad_value(error.line, message, f"{_HINT_QUOTES} {HINT_PROSE}"),)
    if root is None and not messages:
        return Header(blank=True)
    if root is not None and not isinstance(root, yamlio.Mapping):
        return (_bad_value(root.line, "The front matter is not a list of `key: value` lines."),)
    entries = sorted((*(root.entries if root else ()), *messages), key=lambda entry: entry[0].line)
    values: dict[str, Any] = {}
    problems: list[Problem] = []
    lines: dict[str, int] = {}
    for key, node in entries:
        if flaw := _misplaced_key(key, lines):
            problems.append(flaw)
            continue
        lines[key.text] = key.line
        try:
            values[key.text] = _value(key.text, node)
        except _Misfit as misfit:
            got = yamlio.describe(node)
            message = f"`{key.text}`: expected {misfit}, got {got}."
            hint = f"Correct `{key.text}`, or leave it out."
            problems.append(_bad_value(node.line, message, hint))
    size, digest = values.pop("bytes", None), values.pop("sha256", None)
    problems += _check_body(size, digest, found.promised.encode(errors="surrogatepass"))
    return tuple(problems) or Header(**values)


def _without_messages(
    block: str, first: int
) -> tuple[list[tuple[yamlio.Scalar, yamlio.Scalar]], str]:
    """Return the `message` entries, and the block with their lines blanked.

    A quoted message or a block scalar is left in the block; any other takes the rest of its lines.
    """
    lines = re.split(r"\r\n?|\n", block)
    found: list[tuple[yamlio.Scalar, yamlio.Scalar]] = []
    i = 0
    while i < len(lines):
        match, start, i = _MESSAGE.fullmatch(lines[i]), i, i + 1
        if match is None:
            continue
        while i < len(lines) and lines[i][:1] in ("", " ", "\t"):
            i += 1
        text = _folded([match[1] or "", *lines[start + 1 : i]])
        if not _SCALAR.match((match[1] or "").strip() or text):
            value = yamlio.Scalar(start + first, 1, text, text or None)
            found.append((yamlio.Scalar(start + first, 1, "message", "message"), value))
            lines[start:i] = [""] * (i - start)
    return found, "\n".join(lines)


def _folded(lines: Sequence[str]) -> str:
    """Return the lines folded as YAML folds a scalar over several lines."""
    text, blank = "", 0
    for line in (line.strip() for line in lines):
        if not line:
            blank += 1
            continue
        text += ("\n" * blank or " ") + line if text else line
        blank = 0
    return text


def _misplaced_key(key: yamlio.Scalar, lines: Mapping[str, int]) -> Problem | None:
    """Return the problem of an unknown key, or one in `lines` already."""
    name = key.text
    if name in lines:
        message = f"`{name}` is twice: in lines {lines[name]} and {key.line}."
        return Problem("frontmatter.duplicate_key", message, "Keep one of them.", line=key.line)
    if name in KEYS:
        return None
    hint = suggestion(name, KEYS, _HINT_KEYS)
    hint = f"{hint[:1].upper()}{hint[1:]} {HINT_PROSE}"
    message = f"The front matter has no key {yamlio.describe(key)}."
    return Problem("frontmatter.unknown_key", message, hint, line=key.line)


class _Misfit(Exception):
    """A value of the wrong kind, with the expected kind as its argument."""


def _value(name: str, node: yamlio.Node) -> str | int | bool | tuple[str, ...] | dict[str, str]:
    if name == "bytes":
        if isinstance(node, yamlio.Scalar) and type(node.value) is int and node.value >= 0:
            return node.value
        raise _Misfit("a whole number, not negative")
    if name == "whole_files":
        if isinstance(node, yamlio.Scalar) and type(node.value) is bool:
            return node.value
        raise _Misfit("`true` or `false`")
    if name == "depends_on":
        if not isinstance(node, yamlio.Sequence):
            raise _Misfit("a list of change ids, `[schema-7, api-3]`")
        return tuple(_text(item) for item in node.items)
    if name == "answers":
        if not isinstance(node, yamlio.Mapping) or any(yamlio.duplicates(node)):
            raise _Misfit("a text for each comment, `{c1: done, c2: kept as it is}`")
        return {key.text: _text(item, "\n\t") for key, item in node.entries}
    if name == "file" and isinstance(node, yamlio.Scalar) and node.text != node.text.strip():
        raise _Misfit("a path without blanks round it")
    text = _text(node, "\n\t" if name == "message" else "")
    if name == "sha256" and not _SHA256.fullmatch(text):
        raise _Misfit("64 hexadecimal digits")
    if name == "author" and not _AUTHOR.fullmatch(text):
        raise _Misfit("`Name <mail@example.org>`")
    return text


def _text(node: yamlio.Node, allowed: str = "") -> str:
    if not isinstance(node, yamlio.Scalar) or node.value is None:
        raise _Misfit("text")
    text = node.text.strip()
    if not text:
        raise _Misfit("text that is not empty")
    if any(unicodedata.category(c) == "Cc" and c not in allowed for c in text):
        raise _Misfit("text without control characters")
    return text


def _check_body(size: int | None, digest: str | None, body: bytes) -> list[Problem]:
    message = None
    if size is not None and size != len(body):
        message = f"`bytes` promises {size} bytes after the front matter; there are {len(body)}."
    elif digest is not None and digest.lower() != (found := hashlib.sha256(body).hexdigest()):
        message = f"`sha256` does not agree with what follows the front matter, which has {found}."
    hint = "Send the response again, whole; or leave out `bytes` and `sha256`."
    return [Problem("response.incomplete", message, hint)] if message else []


def _bad_value(line: int, message: str, hint: str = HINT_PROSE) -> Problem:
    return Problem("frontmatter.value", message, hint, line=line)


# ---------------------------------------------------------------- the whole response

_BOM = b"\xef\xbb\xbf"


def open_response(data: bytes) -> Envelope | tuple[Problem, ...]:
    """Return the header and the text of a response, or its problems."""
    if problem := _not_text(data):
        return (problem,)
    text, first_line, header = data.removeprefix(_BOM).decode(), 1, Header()
    found = split(text)
    if isinstance(found, Problem):
        return (found,)
    if found is not None:
        read = read_header(found)
        if isinstance(read, tuple):
            return read
        header, text, first_line = read, found.body, found.body_line
    if not text.strip():
        hint = "Send the edits in one of the formats that `patchq formats` lists."
        return (Problem("response.no_edits", "The response holds no text.", hint),)
    return Envelope(header, text, first_line)


def header_of(data: bytes) -> Header:
    """Return the header of a response; an empty one if it cannot be read."""
    opened = open_response(data)
    return opened.header if isinstance(opened, Envelope) else Header()


def _not_text(data: bytes) -> Problem | None:
    hint = "Send the response as UTF-8 text."
    if not data:
        again = "Write the whole file under another name and rename it into the inbox."
        return Problem("response.incomplete", "The response is an empty file.", again)
    at, what = len(data), "is no UTF-8"
    try:
        data.decode()
    except UnicodeDecodeError as error:
        at = error.start
    if b"\0" in data[:at]:
        at, what = data.index(b"\0"), "is a NUL"
    if at == len(data):
        return None
    line = data.count(b"\n", 0, at) + 1
    message = f"The byte at offset {at} of the response, line {line}, {what}."
    return Problem("response.not_text", message, hint, line=line)
