"""Writers of patchq's own part of a file: a JSON member, a TOML table, a marked section.

Each keeps every other byte and can be undone to the byte: an object that a writer made begins with
a blank, which tells it from an empty one that was there.  Raises `UsageError` for a file that
cannot be read.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from typing import Any, NamedTuple

from patchq.gate.errors import UsageError

# The lines before and behind a section.
HTML, HASH = (
    ("<!-- patchq: begin -->", "<!-- patchq: end -->"),
    ("# patchq: begin", "# patchq: end"),
)
_STRING = r'"(?:[^"\\]|\\.)*"'
_COMMENT = re.compile(rf"{_STRING}|//[^\n]*|/\*.*?\*/", re.DOTALL)
_TRAILING_COMMA = re.compile(rf"{_STRING}|,(?=\s*[}}\]])", re.DOTALL)
_BLANKS = " \t\r\n"  # no others are blank in JSON
_DECODER = json.JSONDecoder()


def write_section(
    path: str, data: bytes | None, text: str, marks: tuple[str, str] = HTML, head: str = ""
) -> bytes:
    """Return the file with the text between the marks; `head` begins a new file."""
    newline = b"\r\n" if data and b"\r\n" in data else b"\n"
    block = newline.join(f"{marks[0]}\n{text}{marks[1]}\n".encode().split(b"\n"))
    if data is None:
        return head.encode() + block
    before, old, after = split(path, data, marks)
    if not old:
        return data + newline + block
    return before + (block if old.endswith(b"\n") else block.removesuffix(newline)) + after


def remove_section(
    path: str, data: bytes, marks: tuple[str, str] = HTML, head: str = ""
) -> bytes | None:
    """Return the file without its section, or None where it held nothing else."""
    before, old, after = split(path, data, marks)
    if old and not after and before == head.encode():
        return None
    gap = re.search(rb"\r?\n\Z", before)
    if old and gap and (not after or before[: gap.start()].endswith(b"\n")):
        before = before[: gap.start()]
    return before + after


def split(path: str, data: bytes, marks: tuple[str, str]) -> tuple[bytes, bytes, bytes]:
    """Return the bytes before the section, the section with its marks, and those behind it."""
    if b"\0" in data:
        raise UsageError(f"{path} is not UTF-8 text", "save it as UTF-8, then try again")
    lines = data.splitlines(keepends=True)
    begins, ends = (
        [n for n, line in enumerate(lines) if line.strip() == mark.encode()] for mark in marks
    )
    if not begins and not ends:
        return data, b"", b""
    if len(begins) != 1 or len(ends) != 1 or begins > ends:
        raise UsageError(
            f"{path}:{1 + min(begins + ends)}: expected one line `{marks[0]}` and behind it one "
            f"`{marks[1]}`",
            "take the marks out, with what patchq wrote between them",
        )
    first, last = begins[0], ends[0] + 1
    return b"".join(lines[:first]), b"".join(lines[first:last]), b"".join(lines[last:])


class TomlFile:
    """A TOML file; a table is written at its end, between marks."""

    def __init__(self, path: str, data: bytes | None) -> None:
        self._path, self._data = path, data
        self.value = self._parsed(data or b"")
        self.marked = bool(split(path, data or b"", HASH)[1])

    def _parsed(self, data: bytes) -> dict[str, Any]:
        try:
            return tomllib.loads(data.decode("utf-8-sig"))
        except ValueError as error:
            raise UsageError(f"{self._path}: not TOML: {error}", "mend it") from None

    def write(self, keys: tuple[str, str], entry: Mapping[str, object]) -> bytes:
        """Return the file with the table."""
        lines = [f"[{'.'.join(keys)}]", *(f"{key} = {json.dumps(v)}" for key, v in entry.items())]
        new = write_section(self._path, self._data, "".join(f"{line}\n" for line in lines), HASH)
        self._parsed(new)
        return new

    def remove(self, keys: tuple[str, str]) -> bytes | None:  # of whichever table is there
        """Return the file without the table, or None where it held nothing else."""
        return remove_section(self._path, self._data or b"", HASH)


class _Member(NamedTuple):
    """A member of an object: the places of its key and of its value in the text."""

    key: str
    at: int
    start: int
    end: int


class JsonFile:
    """A JSON file; `comments` also allows trailing commas.  What is not JSON is blanked, so that
    places in the JSON are places in the text."""

    def __init__(self, path: str, data: bytes | None, comments: bool = False) -> None:
        self._path, self._new, data = path, data is None, data or (b"{}" if data is None else b"")
        self._mark = b"\xef\xbb\xbf" if data.startswith(b"\xef\xbb\xbf") else b""
        try:
            self._text = data.removeprefix(self._mark).decode()
            self._bare = _COMMENT.sub(_blanked, self._text) if comments else self._text
            self._json = _TRAILING_COMMA.sub(_blanked, self._bare) if comments else self._text
            self.value = json.loads(self._json)
        except json.JSONDecodeError as error:
            raise self._refusal(f":{error.lineno}:{error.colno}: not JSON: {error.msg}") from None
        except UnicodeDecodeError:
            raise self._refusal(" is not UTF-8 text") from None
        except RecursionError:
            raise self._refusal(" is nested too deeply") from None
        self._root = _past(self._json, 0)

    def write(self, keys: tuple[str, str], entry: Mapping[str, object]) -> bytes:
        """Return the file with the entry in its servers, which are made if need be."""
        if self._new:  # over several lines, which tells that all of it was made
            return f"{json.dumps({keys[0]: {keys[1]: entry}}, indent=2)}\n".encode()
        at, shown = self._root, json.dumps(entry)
        for key in keys:
            members, close = self._object(at)
            found = [one for one in members if one.key == key]
            if not found:
                inner = f"{json.dumps(keys[1])}: {shown}"
                whole = inner if key == keys[1] else f"{json.dumps(key)}: {{ {inner} }}"
                return self._with(at, members, close, whole)
            at = found[-1].start
        return self._encoded(self._text[:at] + shown + self._text[found[-1].end :])

    def _with(self, at: int, members: list[_Member], close: int, member: str) -> bytes:
        """Return the file with a member more at the end of an object."""
        text, newline = self._text, "\r\n" if "\r\n" in self._text else "\n"
        end = len(text[:close].rstrip(_BLANKS))
        if not members:
            lead = newline if end > at + 1 else ""  # a comment may stand there
            return self._encoded(text[:end] + lead + member + text[end:])
        last, line = members[-1], text[text.rfind("\n", 0, members[-1].at) + 1 : members[-1].at]
        blanks = line[: len(line) - len(line.lstrip(" \t"))]
        lead = f"{newline}{blanks}" if "\n" in text[at:close] else " "
        trailing = "," in self._bare[last.end : close]
        comma, tail = ("", ",") if trailing else (",", "")
        new = text[: last.end] + comma + text[last.end : end] + lead + member + tail + text[end:]
        return self._encoded(new)

    def remove(self, keys: tuple[str, str]) -> bytes | None:
        """Return the file without the member and the objects made for it; None: nothing is left."""
        at, cut = self._root, None
        for key in keys:
            members, close = self._object(at)
            found = [one for one in members if one.key == key][-1]
            others = (self._text[at + 1 : found.at] + self._text[found.end : close]).strip(_BLANKS)
            if at == self._root and self._text[found.start + 1] in "\r\n":
                # Clients add `$schema` and `$version` to a file that was made.
                keys_beside = {one.key[:1] for one in members} - {found.key[:1]}
                others = "" if keys_beside <= {"$"} else others
            if others or self._text[at + 1] not in _BLANKS:
                cut = members, found
            at = found.start
        if cut is None:
            return None
        members, found = cut
        text, begin, end = self._text, len(self._text[: found.at].rstrip(_BLANKS)), found.end
        if comma := re.compile(r"\s*,").match(self._bare, end):
            end = comma.end()
        elif len(members) > 1:
            place = self._bare.index(",", members[-2].end)
            return self._encoded(text[:place] + text[place + 1 : begin] + text[end:])
        return self._encoded(text[:begin] + text[end:])

    def _object(self, at: int) -> tuple[list[_Member], int]:
        """Return the members of the object that begins there, and the place of its end."""
        text, members = self._json, list[_Member]()
        if text[at] != "{":
            raise self._refusal(f":{1 + text.count(chr(10), 0, at)}: expected an object")
        here = _past(text, at + 1)
        while text[here] != "}":
            key, colon = _DECODER.raw_decode(text, here)
            start = _past(text, _past(text, colon) + 1)
            end = _DECODER.raw_decode(text, start)[1]
            members.append(_Member(key, here, start, end))
            here = _past(text, end)
            here = _past(text, here + 1) if text[here] == "," else here
        return members, here

    def _encoded(self, text: str) -> bytes:
        return self._mark + text.encode()

    def _refusal(self, problem: str) -> UsageError:
        return UsageError(f"{self._path}{problem}", "mend or move it, then try again")


def _blanked(match: re.Match[str]) -> str:
    return match[0] if match[0].startswith('"') else re.sub(r"[^\r\n]", " ", match[0])


def _past(text: str, at: int) -> int:
    return len(text) - len(text[at:].lstrip(_BLANKS))
