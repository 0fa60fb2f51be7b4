"""What the front matter says: a header, or everything in it that cannot be understood.

`message` takes the rest of its line as it stands, since the subjects of commits have colons and
signs that mean something else to YAML.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Sequence
from functools import partial

from patchq.core.formats.envelope.front_matter import HINT_PROSE, KEYS, MAX_BYTES, Split
from patchq.core.model.names import suggestion
from patchq.core.model.values import Header, Problem
from patchq.core.text import yamlio
from patchq.core.text.yamlio import Misfit

MAX_VALUE_BYTES = 16_384
_MESSAGE = re.compile(r"message[ \t]*:(?:[ \t]+(.*)|)")
# A scalar that is quoted, and ends there or goes on below, or stands in lines of its own.
_SCALAR = re.compile(
    r"\"(?:[^\"\\]|\\.)*(?:\"\s*(?:#.*)?)?\Z|'(?:[^']|'')*(?:'\s*(?:#.*)?)?\Z"
    r"|[|>][-+0-9]*(?:[ \t]+#.*)?\Z",
    re.DOTALL,
)
_AUTHOR = re.compile(r"[^<>]*[^<>\s][^<>]* <[^<>\s]+>")
_SHA256 = re.compile(r"[0-9a-fA-F]{64}")
_HINT_KEYS = f"The keys are {', '.join(f'`{key}`' for key in KEYS)}."
_HINT_QUOTES = 'Put the value into double quotes: `target: "a: b"`.'
_HINT_LINES = "Write it as `key: value`, or below the line `---` that ends the block."


def read_header(found: Split) -> Header | tuple[Problem, ...]:
    """What the block says, or everything that is wrong with it.

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
        hint = _HINT_LINES if error.message == yamlio.NO_ENTRY else _HINT_QUOTES
        return (_bad_value(error.line, message, f"{hint} {HINT_PROSE}"),)
    if root is None and not messages:
        return Header(blank=True)
    if root is not None and not isinstance(root, yamlio.Mapping):
        return (_bad_value(root.line, "The front matter is not a list of `key: value` lines."),)
    entries = sorted((*(root.entries if root else ()), *messages), key=lambda entry: entry[0].line)
    values, flaws = yamlio.read_entries(
        yamlio.Mapping(first, 1, tuple(entries)), {key: partial(_value, key) for key in KEYS}
    )
    problems = [_problem(flaw) for flaw in flaws]
    size, digest = values.pop("bytes", None), values.pop("sha256", None)
    problems += _check_body(size, digest, found.promised.encode(errors="surrogatepass"))
    return tuple(problems) or Header(**values)


def _without_messages(
    block: str, first: int
) -> tuple[list[tuple[yamlio.Scalar, yamlio.Scalar]], str]:
    """The entries `message` that take the rest of their lines, and the block with these blank."""
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
    """The lines as YAML reads a scalar over several: a blank one is a line's end."""
    text, blank = "", 0
    for line in (line.strip() for line in lines):
        if not line:
            blank += 1
            continue
        text += ("\n" * blank or " ") + line if text else line
        blank = 0
    return text


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
    hint = suggestion(key.text, KEYS, _HINT_KEYS)
    hint = hint[:1].upper() + hint[1:]
    message = f"The front matter has no key {yamlio.describe(key)}."
    return Problem("frontmatter.unknown_key", message, f"{hint} {HINT_PROSE}", line=key.line)


def _check_body(size: int | None, digest: str | None, body: bytes) -> list[Problem]:
    """What differs between the body and what the front matter promises of it."""
    message = None
    if size is not None and size != len(body):
        message = f"`bytes` promises {size} bytes after the front matter; there are {len(body)}."
    elif digest is not None and digest.lower() != (found := hashlib.sha256(body).hexdigest()):
        message = f"`sha256` does not agree with what follows the front matter, which has {found}."
    hint = "Send the response again, whole; or leave out `bytes` and `sha256`."
    return [Problem("response.incomplete", message, hint)] if message else []


def _bad_value(line: int, message: str, hint: str = HINT_PROSE) -> Problem:
    return Problem("frontmatter.value", message, hint, line=line)
