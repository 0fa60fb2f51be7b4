"""Edits at an anchor: a line, an import, a decorator, or a definition.

The anchor has to be unique; only an exactly stated line decides among equals.  What a definition is
taken for, its header or the whole of it, must follow from the content, or be said (`scope`).
"""

from __future__ import annotations

from patchq.model.ops import Anchored
from patchq.resolve.definitions import Part, parts
from patchq.resolve.ladder import Found, Missed, inserted
from patchq.resolve.preserve import Rewrite
from patchq.resolve.readings import Lines, lines_of, stripped
from patchq.resolve.search import Place, indentation
from patchq.text.lines import Text

_DEFINITIONS = ("function_definition", "class_definition")


def resolve(text: Text, op: Anchored, path: str) -> Found | Missed:
    """Where `op` belongs in `text`, the file at `path`."""
    anchor = op.selected or op.name or ""
    if op.candidates is not None and anchor.strip() not in map(str.strip, op.candidates):
        return Missed("invented", detail=anchor)
    known = parts(path, b"\n".join(text.contents).decode("utf-8", "replace"))
    found = _anchors(text, op, known)
    if op.line is not None and len(found) > 1:
        found = [part for part in found if part.header + 1 == op.line] or found
    if not found:
        return Missed("none")
    if len(found) > 1:
        places = tuple(Place(part.header, part.header + 1, [], []) for part in found[:51])
        return Missed("ambiguous", "exact", places)
    return _placed(text, op, found[0], known is not None)


def _anchors(text: Text, op: Anchored, known: list[Part] | None) -> list[Part]:
    """The parts that the anchor may mean; a bare line is a part of its own."""
    of_kind = [part for part in known or () if part.kind == op.kind]
    if op.selected is None:
        return [part for part in of_kind if part.name == op.name]
    quoted = stripped(lines_of(op.selected))
    if not any(quoted):
        return []
    view = text.view(stripped)
    starts = set(view.find(quoted))
    if op.kind == "line_pattern" or known is None:
        return [_line(op, start, len(quoted)) for start in sorted(starts)]
    inside = {
        line: part for part in of_kind for line in (part.header, part.start) if line in starts
    }
    if op.name:
        inside = {line: part for line, part in inside.items() if part.name == op.name}
    return list(inside.values())


def _line(op: Anchored, start: int, length: int) -> Part:
    kind = "import_statement" if op.kind == "line_pattern" else op.kind
    return Part.of_lines(kind, op.name, start, start + length)


def _placed(text: Text, op: Anchored, part: Part, parsed: bool) -> Found | Missed:
    content = _content(text, op, part)
    start, end = _extent(op, part)
    if op.kind in _DEFINITIONS and op.scope != "line":
        if not parsed:
            return Missed("unwritable", detail="where the definition ends is not known here; say "
                          '`"scope": "line"`, or quote its lines')  # fmt: skip
        start, end = part.start, part.end
        if op.action == "replace" and op.scope is None:
            reading = _replaced(text, content, part)
            if reading is None:
                return Missed("ambiguous", "exact", detail="scope")
            start, end = reading
    if op.action == "insert_before":
        return inserted(text, start, content, ahead=True)
    if op.action == "insert_after":
        return inserted(text, end, content)
    new = content if op.action == "replace" else []
    rewrite = Rewrite(text.contents[start:end], new)
    return Found("exact", start, end, (rewrite.at(text, start),))


def _extent(op: Anchored, part: Part) -> tuple[int, int]:
    """The anchor's own lines."""
    return (part.header, part.body) if op.kind in _DEFINITIONS else (part.start, part.end)


def _replaced(text: Text, content: Lines, part: Part) -> tuple[int, int] | None:
    """What the content takes the place of: the header, if it is one; the whole definition, if it
    repeats at least its last line; None when it may mean either."""
    last = text.contents[part.end - 1].strip()
    written = [line.strip() for line in content if line.strip()]
    header = text.contents[part.header].split()[:1]
    is_header = len(written) == 1 and written[0].endswith(b":") and written[0].split()[:1] == header
    repeats = bool(written) and last in written and part.end - part.header > 1
    if is_header == repeats:
        return None
    return (part.header, part.body) if is_header else (part.start, part.end)


def _content(text: Text, op: Anchored, part: Part) -> Lines:
    """The new lines; shifted by the anchor's indentation if both it and they were written
    without."""
    if not op.content:
        return []
    content = lines_of(op.content)
    anchor = text.contents[part.header]
    indent = indentation(anchor)
    bare = op.selected is not None and not indentation(lines_of(op.selected)[0])
    first = next((line for line in content if line.strip()), b"")
    if not bare or not indent or indentation(first):
        return content
    return [indent + line if line.strip() else line for line in content]
