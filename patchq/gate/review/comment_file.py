"""Comments as a person hands them in: a list in JSON or YAML, or plain lines.

    src/a.py:12: say why          line 12 of the proposal's file
    src/a.py:-9: why did it go?   line 9 of the file before it
    edit 2: do it without         one edit, by its id
        a further line, since it is indented, or begins as none of these

Text before the first of them is on the batch as a whole.  All that is wrong is reported at once.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, ValidationError, convert

from patchq.core.text import yamlio
from patchq.gate.errors import UsageError
from patchq.gate.report.schema import CommentEntry

MAX_BYTES = 64 * 1024
_MOST_FLAWS = 10
_LINE = re.compile(
    r"(?:edit[ \t]+(?P<edit>[^\s:]+)|(?P<path>\S(?:.*?\S)?):(?P<old>-?)(?P<line>[0-9]{1,9}))"
    r":[ \t]*(?P<text>.*)"
)
_KINDS: dict[str, Any] = {
    "path": str | None,
    "line": int | None,
    "lines": tuple[Annotated[int, Meta(ge=1)], int] | None,
    "side": Literal["base", "new"] | None,
    "edit": str | int | None,
    "text": str,
}
# Keys of a report's own comments, which can be handed in as they are.
_KNOWN = frozenset(CommentEntry.__annotations__)


class DraftComment(Struct, frozen=True):
    """A comment that is not checked against a batch yet."""

    text: str
    path: str | None = None
    line: int | None = None
    side: Literal["base", "new"] | None = None
    edit: str | None = None
    lines: tuple[int, int] | None = None
    """The first and the last of several lines; `line` is the last."""
    by: str | None = None
    origin: str | None = None
    """Who made it, and its address, where that was on a forge."""


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
    if re.match(r"\s*([\[{]|-[ \t]+\S|comments:)", text):
        return _listed(_value(text))
    return list(plain(text))


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


def _value(text: str) -> Any:
    """Return the JSON or YAML as plain values."""
    try:
        return json.loads(text, object_pairs_hook=_unique)
    except ValueError:
        pass
    try:
        return _plain(yamlio.parse(text))
    except yamlio.YamlError as error:
        raise UsageError(
            f"the comments are neither JSON nor YAML: line {error.line}: {error.message}",
            "write a list, or lines like `path:line: text`",
        ) from None


def _plain(node: yamlio.Node | None) -> Any:
    if isinstance(node, yamlio.Mapping):
        return _unique([(key.text, _field(key.text, value)) for key, value in node.entries])
    if isinstance(node, yamlio.Sequence):
        return [_plain(item) for item in node.items]
    return node.value if node is not None else None


def _field(key: str, node: yamlio.Node) -> Any:
    """A field's value; words stay as they were written."""
    words = isinstance(node, yamlio.Scalar) and key in ("text", "path", "edit")
    return node.text if words and isinstance(node, yamlio.Scalar) and node.text else _plain(node)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise UsageError(f"a comment has `{key}` twice", "keep one of the two")
        found[key] = value
    return found


def _listed(value: Any) -> list[DraftComment]:
    entries = value.get("comments") if isinstance(value, dict) and "text" not in value else value
    entries = [entries] if isinstance(entries, dict) else entries
    if not isinstance(entries, list):
        raise UsageError(
            "the comments are no list", "write a list of {path, line, side, edit, text}"
        )
    flaws, drafts = [], []
    for number, entry in enumerate(entries, 1):
        wrong = list(_flaws(entry))
        flaws += [f"comment {number}: {flaw}" for flaw in wrong]
        if not wrong:
            edit = entry.get("edit")
            known = {key: entry.get(key) for key in _KINDS}
            if lines := entry.get("lines"):
                known["lines"], known["line"] = tuple(lines), lines[1]
            drafts.append(DraftComment(**known | {"edit": None if edit is None else str(edit)}))
    refuse(flaws)
    return drafts


def _flaws(entry: Any) -> Iterator[str]:
    """Yield the flaws of an entry."""
    if not isinstance(entry, dict):
        yield "expected an object with `text`"
        return
    for key in entry.keys() - _KNOWN:
        yield f"unknown key {key!r}; known: {', '.join(_KINDS)}"
    for key, kind in _KINDS.items():
        try:
            convert(entry.get(key), kind)
        except ValidationError as error:
            yield f"`{key}`: {error}"
    if (lines := entry.get("lines")) and lines != sorted(lines):
        yield f"`lines`: expected the first and the last, got {lines}"


def refuse(flaws: list[str]) -> None:
    """Raise a `UsageError` that tells all flaws, if there are any."""
    if flaws:
        more = len(flaws) - _MOST_FLAWS
        shown = [*flaws[:_MOST_FLAWS], *([f"… and {more} more"] if more > 0 else [])]
        raise UsageError("\n".join(["the comments cannot be taken:", *shown]), "nothing was sent")
