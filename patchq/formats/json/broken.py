"""JSON that cannot be read: whether it may have been meant as an edit."""

from __future__ import annotations

from patchq.formats.document import WINDOW, Document
from patchq.formats.json.values import Broken, begins
from patchq.formats.marks.fences import fence
from patchq.formats.marks.json_keys import speaks_of_edits
from patchq.formats.unreadable import Unreadable

HINT = "send one JSON object or list in a form that `patchq formats` lists, and nothing else in it"
_AGAIN = "send the whole response again; if it was cut, send fewer changes at once"
_UNQUOTED_LINES = 20


def check_broken(doc: Document, i: int, start: int, broken: Broken, fenced: bool) -> None:
    """Refuse a value that cannot be read, if it may be an edit; else remember that it is none.

    It begins on line `start`: on line `i`, or in the fence that opens there.
    """
    if broken.cut or doc.speaks_of_edits:
        _check_region(doc, i, start, broken, fenced)
    elif broken.sync <= 1 and broken.lines <= WINDOW:
        doc.note_vain(start)
    doc.no_json = max(doc.no_json, i + 1, len(doc.lines) if broken.cut else start + broken.sync)


def _check_region(doc: Document, i: int, start: int, broken: Broken, fenced: bool) -> None:
    """Refuse a value that cannot be read, if its lines speak of an edit or end the response."""
    at = start + broken.line
    asked = at > i and begins(doc.lines[at])  # for itself
    region = doc.lines[i : at + (not asked)]
    if broken.cut:
        first = doc.lines[start].lstrip()
        closed = any(fence(line) for line in region[1:])
        if speaks_of_edits("\n".join(region)) or (not closed and _opens_object(first)):
            raise Unreadable(
                i,
                "the response ends inside the JSON that begins here",
                _AGAIN,
                "response.truncated",
            )
    if not (doc.speaks_of_edits and doc.names_edit(i, at + _UNQUOTED_LINES)):
        return
    rest = doc.lines[at][broken.column - 1 :].split(":")[0].rstrip()
    if rest.isidentifier():  # an object of JavaScript
        for line in doc.lines[at + 1 : at + _UNQUOTED_LINES]:
            if not line.strip():
                break
            region = [*region, line]
    if speaks_of_edits("\n".join(region)):
        raise Unreadable(
            at,
            f"this looks like an edit in JSON that cannot be read: {broken.message}",
            HINT,
            column=broken.column,
        )


def _opens_object(text: str) -> bool:
    """Whether a text begins as an object or a list of objects does, as far as it goes."""
    return text[1:].lstrip()[:1] in (("", '"') if text[:1] == "{" else ("", "{"))
