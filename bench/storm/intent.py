"""What one response asks for, as its author knows it: the truth that a storm is judged by.

A text is lines that end in a newline; lines are counted from 0, ranges are half-open.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

Op = Literal["replace", "write", "create", "delete", "rename"]


@dataclass(frozen=True, slots=True)
class Edit:
    """One edit of a base's file.

    `replace` quotes `old`, which stands at line `at`; `write` and `delete` have the whole file as
    `old`; the new path of `rename` is `new`.
    """

    op: Op
    path: str
    at: int = 0
    old: str = ""
    new: str = ""

    def span(self) -> tuple[int, int, list[str]]:
        """The changed span, without the lines that both halves share at their front and then at
        their end, and what takes its place."""
        old, new = lines_of(self.old), lines_of(self.new)
        front = 0
        while front < min(len(old), len(new)) and old[front] == new[front]:
            front += 1
        end = 0
        while end < min(len(old), len(new)) - front and old[-1 - end] == new[-1 - end]:
            end += 1
        return self.at + front, self.at + len(old) - end, new[front : len(new) - end]


@dataclass(frozen=True, slots=True)
class Intent:
    """One response: the commit that its author saw, whether it says so, and its edits."""

    name: str
    base: str
    declared: bool
    edits: tuple[Edit, ...]
    form: str = ""
    aim: str = ""

    @property
    def paths(self) -> set[str]:
        renamed = {edit.new for edit in self.edits if edit.op == "rename"}
        return {edit.path for edit in self.edits} | renamed

    @property
    def blind(self) -> bool:
        """Whether it changes a file without quoting it."""
        quoting = self.form == "unified_diff"
        return any(
            edit.op == "write" or (edit.op == "delete" and not quoting) for edit in self.edits
        )


WAITING, MISQUOTED = "waiting", "misquoted"
"""The aims of intents that are to be proposed before a storm, and of those that quote what stands
nowhere."""


def misquoted(intent: Intent) -> Intent:
    """The intent, each of whose quotes has lines that no file has."""
    edits = (
        replace(
            edit,
            old="".join(f"{line[:-1]} as nobody wrote\n" for line in lines_of(edit.old)),
        )
        for edit in intent.edits
    )
    return replace(intent, edits=tuple(edits), form="search_replace", aim=MISQUOTED)


@dataclass(frozen=True, slots=True)
class Record:
    """An intent that was sent as `sent` (the file's name) with bytes of that sha256.  The target
    was at `before` when it was dropped, and at `after` once there was a verdict, at time `when`."""

    intent: Intent
    sent: str
    sha256: str
    before: str
    after: str
    when: float

    def dump(self) -> str:
        return json.dumps(asdict(self)) + "\n"


def load_record(line: str) -> Record:
    told: dict[str, Any] = json.loads(line)
    said = told.pop("intent")
    edits = tuple(Edit(**edit) for edit in said.pop("edits"))
    return Record(intent=Intent(edits=edits, **said), **told)


def lines_of(text: str) -> list[str]:
    """The lines with their newlines; other line separators are characters like any."""
    parts = text.split("\n")
    last = [parts[-1]] if parts[-1] else []
    return [*(part + "\n" for part in parts[:-1]), *last]


def places(quote: Sequence[str], lines: Sequence[str]) -> list[int]:
    """Where the quoted lines stand."""
    size = len(quote)
    if not size:
        return []
    return [
        at
        for at, line in enumerate(lines)
        if line == quote[0] and list(lines[at : at + size]) == list(quote)
    ]


def replaced(text: str, changes: Sequence[tuple[int, int, Sequence[str]]]) -> str | None:
    """The text with lines `lo:hi` replaced, for each of the changes; None if they overlap."""
    lines, low = lines_of(text), None
    for lo, hi, new in sorted(changes, key=lambda change: change[:2], reverse=True):
        if low is not None and hi > low:
            return None
        lines[lo:hi] = new
        low = lo
    return "".join(lines)


def on_base(intent: Intent, texts: Mapping[str, str]) -> dict[str, str | None]:
    """Every touched path's text after the intent on its own base, None where it is gone."""
    result: dict[str, str | None] = {}
    for path in {edit.path for edit in intent.edits}:
        edits = [edit for edit in intent.edits if edit.path == path]
        changes = [edit.span() for edit in edits if edit.op in ("replace", "write")]
        to = next((edit.new for edit in edits if edit.op == "rename"), path)
        first = edits[0]
        if to != path or first.op == "delete":
            result[path] = None
        if first.op == "create":
            result[path] = first.new
        elif first.op != "delete":
            result[to] = replaced(texts[path], changes)
    return result
