"""Opening a response: from the bytes of a file to the text that holds the edits.

Front matter is the YAML block that may stand before the edits (format document, section 0).
Whether there is one is decided by lines alone, before any YAML is read: `---` opens it only if
every line up to the next `---` is `key: value`, a list item or a comment.  From then on nothing is
let through that is not understood: an unknown key may be a mistyped `base`, and a batch on the
wrong base is worse than one that is sent again.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from dataclasses import dataclass
from functools import partial

from patchq.model.names import nearest
from patchq.model.values import Envelope, Header, Problem
from patchq.text import yamlio
from patchq.text.yamlio import Misfit

_BOM = b"\xef\xbb\xbf"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")

MAX_BYTES = 65_536
MAX_VALUE_BYTES = 16_384

TEXT_KEYS = (
    "id", "target", "base", "message", "author", "agent", "model", "file", "retries",
)  # fmt: skip
KEYS = (*TEXT_KEYS, "depends_on", "whole_files", "bytes", "sha256")

_MARKER = re.compile(rb"---[ \t]*\r?\n?")
_LINE = re.compile(rb"\s*(?:#.*|-(?:\s.*)?|[^\s:#-][^:]*:(?:\s.*)?)", re.DOTALL)
_AUTHOR = re.compile(r"[^<>]*[^<>\s][^<>]* <[^<>\s]+>")
_SHA256 = re.compile(r"[0-9a-fA-F]{64}")
_HINT_KEYS = f"The keys are {', '.join(f'`{key}`' for key in KEYS)}."
_HINT_PROSE = (
    "If this block is text of the response itself, put an empty front matter (two lines `---`) "
    "before it."
)
_HINT_QUOTES = 'Put the value into double quotes: `message: "Fix: the loop"`.'


def open_response(data: bytes) -> Envelope | tuple[Problem, ...]:
    """The header and the text of a response, or why it cannot be read.

    The text keeps its line ends.  It is never blank: a response without any is refused.
    """
    if problem := _not_text(data):
        return (problem,)
    parts = split(data.removeprefix(_BOM))
    header = Header() if parts.block is None else read_header(parts.block, parts.body)
    if isinstance(header, tuple):
        return header
    text = parts.body.decode()
    if not text.strip():
        hint = "Send the edits in one of the formats that `patchq formats` lists."
        return (Problem("response.no_edits", "The response holds no text.", hint),)
    return Envelope(header, text, parts.body_line)


def _not_text(data: bytes) -> Problem | None:
    """Why the bytes are not strict UTF-8 text, with line and offset."""
    hint = "Send the response as UTF-8 text."
    if not data:
        again = "Write the whole file under another name and rename it into the inbox."
        return Problem("response.incomplete", "The response is an empty file.", again)
    if data.startswith(_UTF16):
        return Problem("response.not_text", "The response is UTF-16, not UTF-8.", hint, line=1)
    at = len(data)
    try:
        data.decode()
    except UnicodeDecodeError as error:
        at = error.start
    nul = data.find(b"\0", 0, at)
    if nul < 0 and at == len(data):
        return None
    what, at = ("is a NUL", nul) if nul >= 0 else ("is no UTF-8", at)
    line = data.count(b"\n", 0, at) + 1
    message = f"The byte at offset {at} of the response, line {line}, {what}."
    return Problem("response.not_text", message, hint, line=line)


# ---------------------------------------------------------------- front matter


@dataclass(frozen=True, slots=True)
class Split:
    """A response taken apart: the lines between the markers, None if there is no front matter,
    and the bytes behind it, which begin on line `body_line`."""

    block: bytes | None
    body: bytes
    body_line: int


def split(data: bytes) -> Split:
    """Take the front matter off, by the shape of its lines alone."""
    opening, end = _line_at(data, 0)
    if not _MARKER.fullmatch(opening):
        return Split(None, data, 1)
    start, number = end, 1
    while end < len(data):
        here, number = end, number + 1
        line, end = _line_at(data, here)
        if _MARKER.fullmatch(line):
            return Split(data[start:here], data[end:], number + 1)
        if not _LINE.fullmatch(line):
            break
    return Split(None, data, 1)


def read_header(block: bytes, body: bytes) -> Header | tuple[Problem, ...]:
    """What the block says, or everything that is wrong with it.

    `bytes` and `sha256` are compared with `body`; a difference is `response.incomplete`.
    """
    if len(block) > MAX_BYTES:
        return (_bad_value(1, f"The front matter is longer than {MAX_BYTES} bytes."),)
    try:
        root = yamlio.parse(block.decode(), first_line=2)
    except yamlio.YamlError as error:
        message = f"The front matter cannot be read, column {error.column}: {error.message}."
        return (_bad_value(error.line, message, f"{_HINT_QUOTES} {_HINT_PROSE}"),)
    if root is None:
        return Header()
    if not isinstance(root, yamlio.Mapping):
        return (_bad_value(root.line, "The front matter is not a list of `key: value` lines."),)
    values, flaws = yamlio.read_entries(root, {key: partial(_value, key) for key in KEYS})
    problems = [_problem(flaw) for flaw in flaws]
    problems += _check_body(values.pop("bytes", None), values.pop("sha256", None), body)
    return tuple(problems) or Header(**values)


def _line_at(data: bytes, start: int) -> tuple[bytes, int]:
    """The line that begins at `start`, with its end, and where the next one begins."""
    end = data.find(b"\n", start) + 1 or len(data)
    return data[start:end], end


def _problem(flaw: yamlio.EntryFlaw) -> Problem:
    name = flaw.key.text
    if flaw.expected:
        message = f"`{name}`: expected {flaw.expected}, got {yamlio.describe(flaw.value)}."
        return _bad_value(flaw.value.line, message, f"Correct `{name}`, or leave it out.")
    if flaw.first is None:
        return _unknown(flaw.key)
    message = f"`{name}` stands twice: in lines {flaw.first} and {flaw.key.line}."
    return Problem("frontmatter.duplicate_key", message, "Keep one of them.", line=flaw.key.line)


def _value(name: str, node: yamlio.Node) -> str | int | bool | tuple[str, ...]:
    if name == "bytes":
        if isinstance(node, yamlio.Scalar) and type(node.value) is int and node.value >= 0:
            return node.value
        raise Misfit("a whole number, not negative")
    if name == "whole_files":
        if isinstance(node, yamlio.Scalar) and type(node.value) is bool:
            return node.value
        raise Misfit("`true` or `false`")
    if name == "depends_on":
        if not isinstance(node, yamlio.Sequence):
            raise Misfit("a list of batch ids, `[schema-7, api-3]`")
        return tuple(_text(item) for item in node.items)
    if name == "file" and isinstance(node, yamlio.Scalar) and node.text != node.text.strip():
        raise Misfit("a path without blanks round it")
    text = _text(node, "\n\t" if name == "message" else "")
    if name == "sha256" and not _SHA256.fullmatch(text):
        raise Misfit("64 hexadecimal digits")
    if name == "author" and not _AUTHOR.fullmatch(text):
        raise Misfit("`Name <mail@example.org>`")
    return text


def _text(node: yamlio.Node, allowed: str = "") -> str:
    """A scalar as it was written, whatever YAML makes of it."""
    if not isinstance(node, yamlio.Scalar) or node.value is None:
        raise Misfit("text")
    text = node.text.strip()
    if not text:
        raise Misfit("text that is not empty")
    if len(text.encode()) > MAX_VALUE_BYTES:
        raise Misfit(f"at most {MAX_VALUE_BYTES} bytes")
    if any(unicodedata.category(c) == "Cc" and c not in allowed for c in text):
        raise Misfit("text without control characters")
    return text


def _unknown(key: yamlio.Scalar) -> Problem:
    near = nearest(key.text, KEYS)
    hint = f"Did you mean `{near}`?" if near else _HINT_KEYS
    message = f"The front matter has no key {yamlio.describe(key)}."
    return Problem("frontmatter.unknown_key", message, f"{hint} {_HINT_PROSE}", line=key.line)


def _check_body(size: int | None, digest: str | None, body: bytes) -> list[Problem]:
    """What differs between the body and what the front matter promises of it."""
    message = None
    if size is not None and size != len(body):
        message = f"`bytes` promises {size} bytes after the front matter; there are {len(body)}."
    elif digest is not None and digest.lower() != (found := hashlib.sha256(body).hexdigest()):
        message = f"`sha256` does not agree with what follows the front matter, which has {found}."
    hint = "Send the response again, whole; or leave out `bytes` and `sha256`."
    return [Problem("response.incomplete", message, hint)] if message else []


def _bad_value(line: int, message: str, hint: str = _HINT_PROSE) -> Problem:
    return Problem("frontmatter.value", message, hint, line=line)
