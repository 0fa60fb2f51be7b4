"""patchq's own part of a file that belongs to others: put there, or replaced in place.

Every other byte of the file stays as it is, its line ends and its indentation too.  Raises
`UsageError`, with the line, for a file that cannot be understood.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from patchq.gate.errors import UsageError

NAME = "patchq"
BEGIN, END = "<!-- patchq: begin -->", "<!-- patchq: end -->"
_BOM = b"\xef\xbb\xbf"
_BLANK = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()


# ---------------------------------------------------------------- sections of text


def section(path: str, data: bytes, text: str) -> bytes:
    """The file with the text between the marks."""
    if b"\0" in data:
        raise UsageError(f"{path} is not UTF-8 text", "save it as UTF-8, then try again")
    mark, data = (_BOM, data[3:]) if data.startswith(_BOM) else (b"", data)
    end = b"\r\n" if b"\r\n" in data else b"\n"
    block = end.join(f"{BEGIN}\n{text}{END}".encode().split(b"\n"))
    lines = data.splitlines(keepends=True)
    begins, ends = (
        [n for n, line in enumerate(lines) if line.strip() == what.encode()]
        for what in (BEGIN, END)
    )
    if not begins and not ends:
        gap = b"" if not data or data.endswith((b"\n\n", b"\r\n\r\n")) else end
        return mark + data + (end if data and not data.endswith(b"\n") else b"") + gap + block + end
    if len(begins) != 1 or len(ends) != 1 or begins > ends:
        line = 1 + min(begins + ends)
        raise UsageError(
            f"{path}:{line}: expected one line `{BEGIN}` and behind it one `{END}`",
            "take the marks out, with what patchq wrote between them",
        )
    last = lines[ends[0]]
    closed = block + last[len(last.rstrip(b"\r\n")) :]
    return mark + b"".join([*lines[: begins[0]], closed, *lines[ends[0] + 1 :]])


# ---------------------------------------------------------------- JSON


class _Member(NamedTuple):
    """A member of an object: its key, and where it begins and its value stands in the text."""

    key: str
    at: int
    start: int
    end: int


def json_entry(path: str, data: bytes, entry: Mapping[str, object]) -> bytes:
    """The file with the server among its `mcpServers`; one of this name that is there stays."""
    mark = _BOM if data.startswith(_BOM) else b""
    try:
        text = data.removeprefix(_BOM).decode()
        if not text.strip():
            text = "{}\n"
        value = json.loads(text)
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise UsageError(f"{path}:{line}: not UTF-8 text", _by_hand(entry)) from None
    except json.JSONDecodeError as error:
        place = f"{path}:{error.lineno}:{error.colno}"
        raise UsageError(f"{place}: not JSON: {error.msg}", _by_hand(entry)) from None
    except RecursionError:
        raise UsageError(f"{path} is nested too deeply", _by_hand(entry)) from None
    servers = value.get("mcpServers", {}) if isinstance(value, dict) else None
    if not isinstance(servers, dict):
        place, line = ("mcpServers", _line(text)) if isinstance(value, dict) else ("the file", 1)
        raise UsageError(f"{path}:{line}: expected {place} to be an object", _by_hand(entry))
    if NAME in servers:
        return data
    top = text.index("{")
    found = [one for one in _members(text, top) if one.key == "mcpServers"]
    if found:
        text = _with_member(text, found[-1].start, NAME, entry)
    else:
        text = _with_member(text, top, "mcpServers", {NAME: entry})
    return mark + text.encode()


def _line(text: str) -> int:
    """The line of the member `mcpServers`."""
    found = [one for one in _members(text, text.index("{")) if one.key == "mcpServers"]
    return text.count("\n", 0, found[-1].at) + 1


def _members(text: str, at: int) -> Iterator[_Member]:
    """The members of the object that begins there, in a text that is JSON."""
    here = _past(text, at + 1)
    while text[here] != "}":
        key, colon = _DECODER.raw_decode(text, here)
        start = _past(text, _past(text, colon) + 1)
        _, end = _DECODER.raw_decode(text, start)
        yield _Member(key, here, start, end)
        here = _past(text, end)
        if text[here] == ",":
            here = _past(text, here + 1)


def _past(text: str, at: int) -> int:
    blank = _BLANK.match(text, at)
    return blank.end() if blank else at


def _with_member(text: str, at: int, key: str, value: Mapping[str, object]) -> str:
    """The text with one more member at the end of the object that begins there."""
    members = list(_members(text, at))
    newline = "\r\n" if "\r\n" in text else "\n"
    outer = _indent_at(text, at)
    if members and "\n" not in text[at : members[0].at]:  # all on one line
        return _put(text, members[-1].end, f", {json.dumps(key)}: {json.dumps(value)}")
    inner = _indent_at(text, members[0].at) if members else outer + _unit(text)
    unit = inner[len(outer) :] if inner.startswith(outer) and inner != outer else _unit(text)
    shown = json.dumps(value, indent=unit).replace("\n", f"\n{inner}")
    member = f"\n{inner}{json.dumps(key)}: {shown}".replace("\n", newline)
    if members:
        return _put(text, members[-1].end, f",{member}")
    close = _past(text, at + 1)
    return f"{text[: at + 1]}{member}{newline}{outer}{text[close:]}"


def _put(text: str, at: int, more: str) -> str:
    return text[:at] + more + text[at:]


def _indent_at(text: str, at: int) -> str:
    """The blanks that the line of a place begins with."""
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _unit(text: str) -> str:
    """By what the file indents: what its first indented line begins with."""
    found = re.search(r"^[ \t]+(?=\S)", text, re.MULTILINE)
    return found[0] if found else "  "


def _by_hand(entry: Mapping[str, object]) -> str:
    shown = json.dumps({"mcpServers": {NAME: entry}})
    return f"mend it, or put this into it: {shown}"


# ---------------------------------------------------------------- TOML


def toml(path: str, data: bytes, entry: Mapping[str, object]) -> bytes:
    """The file with the table of the server at its end; one that is there stays."""
    end = "\r\n" if b"\r\n" in data else "\n"
    lines = [f"[mcp_servers.{NAME}]", *(f"{k} = {json.dumps(v)}" for k, v in entry.items()), ""]
    hint = f"mend it, or put this into it: {'; '.join(lines[:-1])}"
    try:
        old = tomllib.loads(data.decode("utf-8-sig"))
        if NAME in old.get("mcp_servers", {}):
            return data
        gap = "" if not data.strip() else end if data.endswith(b"\n") else end * 2
        new = data + (gap + end.join(lines)).encode()
        tomllib.loads(new.decode("utf-8-sig"))
    except (ValueError, TypeError) as error:
        raise UsageError(f"{path}: not what Codex reads: {error}", hint) from None
    return new
