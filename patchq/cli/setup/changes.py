"""The changes of files that `patchq setup` makes.

They are planned as a whole, then written one by one.
Patchq's own part of a file is a marked section, a TOML table or a JSON member.  Every other byte is
kept, and comes back as it was.  Raises `UsageError` for a file that cannot be read.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from patchq.cli.setup.clients import INSTRUCTIONS, NAME, InstructionFile, ServerFile
from patchq.core.model.values import FileChange
from patchq.core.text import jsonish
from patchq.core.text.jsonish import JsonError
from patchq.core.text.quote import visible
from patchq.core.text.unified import unified
from patchq.gate.api.location import write_file
from patchq.gate.errors import UsageError


class PlannedFile(Struct, frozen=True):
    """A file before and after a change; None for no file."""

    path: str
    place: Path
    before: bytes | None
    after: bytes | None
    note: str = ""
    is_local: bool = False
    """True if it is to name a path of this machine, so that no commit may have it."""

    def diff(self) -> Iterator[str]:
        change = FileChange(self.path, self.before, self.after)
        return (visible(line, keep="\t") for line in unified([change]).splitlines())

    def write(self, root: Path) -> None:
        """Write or remove the file; raises `UsageError` if that fails, or it changed since."""
        if unchanged(root, self.path).before != self.before:
            raise UsageError(f"{self.path} was changed meanwhile", "try again")
        try:
            write_file(self.place, self.after, Path(os.path.realpath(root)), Path.home())
        except OSError as error:
            raise UsageError(f"cannot write {self.path}: {error.strerror}", "mend that") from None


def unchanged(root: Path, path: str) -> PlannedFile:
    """Return the plan that leaves a file as it is; refuses links out of the work tree."""
    place = Path(path).expanduser()
    if not path.startswith("~/"):
        top = Path(os.path.realpath(root))
        place = Path(os.path.realpath(root / path))
        if not place.is_relative_to(top) or place.relative_to(top).parts[:1] == (".git",):
            raise UsageError(f"{path} leads out of the work tree, to {place}", "mend the link")
    try:
        if place.exists() and not place.is_file():
            raise UsageError(f"{path} is no file that patchq would change", "mend that")
        data = place.read_bytes() if place.exists() else None
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}", "mend that") from None
    return PlannedFile(path, place, data, data)


def of_text(root: Path, text: InstructionFile, *, remove: bool) -> PlannedFile:
    file = unchanged(root, text.path)
    if remove:
        left = file.before and remove_section(text.path, file.before, text.head)
        return replace(file, after=left)
    lines = (file.before or b"").decode("utf-8", "replace").splitlines()
    if instead := [line for line in lines if line.strip().startswith(text.unless)]:
        named = any(INSTRUCTIONS.path in line for line in instead)
        return file if named else replace(file, note=f"add {INSTRUCTIONS.path} to it by hand")
    return replace(file, after=write_section(text.path, file.before, text.text, text.head))


def of_server(root: Path, row: ServerFile, words: list[str], *, remove: bool) -> PlannedFile:
    """Return the change of a client's file of servers, unless a person changed it."""
    file, new = unchanged(root, row.path), row.entry(words)
    old = _entry(row, file.before)
    ours = row.wrote(old) and (not row.is_toml or section(row.path, file.before or b""))
    if old not in (None, new) and not ours:
        return replace(file, note=f"left: a person changed its `{NAME}`")
    if remove:
        return replace(file, after=_put(row, file.before, None)) if old else file
    after = file.before if old == new else _put(row, file.before, new)
    _entry(row, after)
    is_local = os.path.isabs(words[0]) and not row.path.startswith("~")
    return replace(file, after=after, is_local=is_local)


def words_of(root: Path, row: ServerFile) -> list[str]:
    return row.words(_entry(row, unchanged(root, row.path).before))


def _entry(row: ServerFile, data: bytes | None) -> Any:
    if data is None:
        return None
    try:
        if row.is_toml:
            servers = tomllib.loads(data.decode()).get(row.servers)
            return servers.get(NAME) if isinstance(servers, dict) else None
        if not row.comments:
            json.loads(data)
        return jsonish.value_at(data.decode(), (row.servers, NAME))
    except (ValueError, RecursionError) as error:
        place = f":{error.line}:{error.column}" if isinstance(error, JsonError) else ""
        kind = "TOML" if row.is_toml else "JSON"
        hint = "mend or move it, then try again"
        raise UsageError(f"{row.path}{place}: not {kind}: {error}", hint) from None


def _put(row: ServerFile, data: bytes | None, entry: Mapping[str, object] | None) -> bytes | None:
    """Return the file with the entry, or without one."""
    if row.is_toml and entry:
        lines = [f"[{row.servers}.{NAME}]", *(f"{k} = {json.dumps(v)}" for k, v in entry.items())]
        return write_section(row.path, data, "".join(f"{line}\n" for line in lines))
    if row.is_toml:
        return remove_section(row.path, data or b"")
    if data is None:  # over several lines, which tells that all of it was made
        return f"{json.dumps({row.servers: {NAME: entry}}, indent=2)}\n".encode()
    keys = row.servers, NAME
    text = (
        jsonish.put(data.decode(), keys, entry) if entry else jsonish.take_out(data.decode(), keys)
    )
    return None if text is None else text.encode()


def write_section(path: str, data: bytes | None, text: str, head: str = "") -> bytes:
    """Return the file's bytes with the text between our marks; `head` begins a new one."""
    newline = b"\r\n" if data and b"\r\n" in data else b"\n"
    begin, end = _marks(path)
    block = newline.join(f"{begin}\n{text}{end}\n".encode().split(b"\n"))
    if data is None:
        return head.encode() + block
    found = section(path, data)
    if not found:
        return data + newline + block
    last = found[0][len(found[0].rstrip()) :]  # a last line need not be ended
    return data[: found.start()] + found["gap"] + block.rstrip() + last + data[found.end() :]


def remove_section(path: str, data: bytes, head: str = "") -> bytes | None:
    """Return the file without its section, or None where it held nothing else."""
    if not (found := section(path, data)):
        return data
    if data[: found.end("gap")] == head.encode() and found.end() == len(data):
        return None
    return data[: found.start()] + data[found.end() :]


def section(path: str, data: bytes) -> re.Match[bytes] | None:
    """Return the marked section, with the line end that was added before it.

    None if there is none.  Raises `UsageError` if the file is not text, or has other marks than one
    pair.
    """
    marks = [mark.encode() for mark in _marks(path)]
    block = rb"^%b[ \t]*\r?\n(?s:.*?)^%b[ \t]*(?:\r?\n|\Z)" % tuple(map(re.escape, marks))
    gap = rb"(?P<gap>(?:(?<=\n)\r?\n(?=%b)|\r?\n(?=%b\Z))?)" % (block, block)
    found = re.search(gap + block, data, re.MULTILINE)
    lines = [line.strip() for line in data.splitlines()]
    if b"\0" in data or [lines.count(mark) for mark in marks] != [bool(found)] * 2:
        raise UsageError(
            f"{path}: expected UTF-8 text, with one line `{marks[0].decode()}` at most, and behind "
            f"it one `{marks[1].decode()}`",
            "take the marks out, with what patchq wrote between them",
        )
    return found


def _marks(path: str) -> tuple[str, str]:
    begin, end = ("<!-- ", " -->") if path.endswith(".md") else ("# ", "")
    return f"{begin}patchq: begin{end}", f"{begin}patchq: end{end}"
