"""Comments as a person hands them in: a list in JSON, or plain lines.

    src/a.py:12: say why          line 12 of the proposal's file
    src/a.py:-9: why did it go?   line 9 of the file before it
    edit 2: do it without         one edit, by its id
        a further line, since it is indented, or begins as none of these

Text before the first of them is on the batch as a whole.  All that is wrong is reported at once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Any, Literal

from msgspec import DecodeError, Meta, Struct, ValidationError, convert, json

from patchq.gate.errors import UsageError
from patchq.gate.report.schema import CommentEntry

MAX_BYTES = 64 * 1024
_MOST_FLAWS = 10
_LINE = re.compile(
    r"(?:edit[ \t]+(?P<edit>[^\s:]+)|(?P<path>\S(?:.*?\S)?):(?P<old>-?)(?P<line>[0-9]{1,9}))"
    r":[ \t]*(?P<text>.*)"
)
# Keys of a report's own comments, which can be handed in as they are.
_KNOWN = frozenset(CommentEntry.__struct_fields__)


class DraftComment(Struct, frozen=True):
    """A comment that is not checked against a batch yet."""

    text: str
    path: str | None = None
    line: int | None = None
    side: Literal["base", "new"] | None = None
    edit: str | None = None
    lines: tuple[Annotated[int, Meta(ge=1)], int] | None = None
    """The first and the last of several lines; `line` is the last."""
    by: str | None = None
    origin: str | None = None
    """Who made it, and its address, where that was on a forge."""

    def __post_init__(self) -> None:
        if self.lines and self.lines[0] > self.lines[1]:
            raise ValueError("expected the first line before the last")


def read(data: bytes) -> list[DraftComment]:
    """Return the comments of a file; raises `UsageError`."""
    if len(data) > MAX_BYTES:
        raise UsageError(
            f"the comments are longer than {MAX_BYTES // 1024} KiB", "say it in fewer words"
        )
    try:
        text = data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        message = f"the comments are not UTF-8 (byte {error.start})"
        raise UsageError(message, "write them as UTF-8") from None
    return _listed(text) if text.lstrip().startswith(("[", "{")) else list(plain(text))


def plain(text: str) -> Iterator[DraftComment]:
    """Yield the comments of plain lines."""
    found: dict[str, Any] = {}
    text_lines: list[str] = []
    for line in text.split("\n"):
        match = None if line[:1].isspace() else _LINE.fullmatch(line)
        if match is None:
            text_lines.append(line)
            continue
        yield from _draft(text_lines, found)
        text_lines = [match["text"]]
        found = {"edit": match["edit"]}
        if match["path"]:
            side = "base" if match["old"] else None
            found = {"path": match["path"], "line": int(match["line"]), "side": side}
    yield from _draft(text_lines, found)


def _draft(lines: list[str], found: dict[str, Any]) -> Iterator[DraftComment]:
    text = "\n".join(lines).strip("\n").rstrip()
    if text or found:
        yield DraftComment(text, **found)


def _listed(text: str) -> list[DraftComment]:
    """Return the comments of a list in JSON, or of the object that holds it."""
    try:
        value = json.decode(text)
        entries = value.get("comments", [value]) if isinstance(value, dict) else value
        entries = convert(entries, list[Any])
    except (DecodeError, ValidationError) as error:
        hint = "write a list, or lines like `path:line: text`"
        raise UsageError(f"the comments are no list in JSON: {error}", hint) from None
    flaws, drafts = [], []
    for number, entry in enumerate(entries, 1):
        try:
            drafts.append(convert(entry, DraftComment))
            if unknown := entry.keys() - _KNOWN:
                flaws.append(f"comment {number}: unknown key {', '.join(sorted(unknown))}")
        except ValidationError as error:
            flaws.append(f"comment {number}: {error}")
    refuse(flaws)
    return drafts


def refuse(flaws: list[str]) -> None:
    """Raise a `UsageError` that tells all flaws, if there are any."""
    if flaws:
        more = len(flaws) - _MOST_FLAWS
        shown = [*flaws[:_MOST_FLAWS], *([f"… and {more} more"] if more > 0 else [])]
        raise UsageError("\n".join(["the comments cannot be taken:", *shown]), "nothing was sent")
