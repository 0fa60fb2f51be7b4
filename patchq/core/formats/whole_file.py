"""Whole files, in a fence with a path, or under a `FILE:` line.

    ```python:path/to/file.py          FILE: path/to/file.py          path/to/file.py
    all lines of the file              all lines of the file          ```python
    ```                                END FILE                       all lines of the file
                                                                      ```

These three forms write a file, and no other.  Excerpts stand under a mere path as well, so the
third one counts only in a response without any edit of another format.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from patchq.core.formats.format import (
    Document,
    FenceOpening,
    FenceUnderPath,
    Format,
    Opening,
    Piece,
    Sign,
    UnreadableEdit,
)
from patchq.core.formats.marks.blocks import is_marker, may_mark, opening
from patchq.core.formats.marks.fences import (
    BEGIN_PATCH,
    DIFF_ENDINGS,
    DIFF_LANGUAGES,
    GIT,
    Fence,
    joined,
    line_above,
    next_line,
)
from patchq.core.formats.marks.parts import (
    Fenced,
    FileLine,
    change_line,
    check_end,
    fenced_at,
    file_line,
    half_at,
    is_file_end,
    is_markdown,
    path_behind,
)
from patchq.core.formats.marks.paths import (
    KnownPaths,
    is_path,
    path_of_info,
)
from patchq.core.model.ops import DeleteFile, Rename, Write
from patchq.core.model.values import Edit, ShownPlace
from patchq.core.text.languages import is_document, is_ending, language_of, may_hold, named_fence

NAME = "whole_file"
INSTRUCTIONS = """\
Answer with the whole text of every file that is new or changes, each in a fence whose info names
the file behind a colon:

```python:path/to/file.py
all lines of the file
```

Where the text holds fences itself, use a longer one. Leave nothing out: what is not there is gone.
"""

_SEND_AGAIN = "send the whole response again; if it was cut, send fewer files at once"
_DIFF = re.compile(rf"{GIT}|--- (?:a/|/dev/null)|@@ .*@@")
_NAMED = re.compile(r"[\w+#.-]*:[ \t]*\S")
# Infos with a colon that cite lines of a file, or belong to a review's suggestion.
_CITES = re.compile(r"suggestion:|\d+:\d+:\S+\Z|(?:[\w+#.-]*:)?[^:]*[^:\d]:\d+(?:-\d+)?\Z")
# Signs of a sentence in a language that sets no blanks between words.
_UNSPACED = re.compile(r"[\u3001\u3002\uff01\uff0c\uff1a\uff1b\uff1f]")
# A line that is a path and nothing else: one pair of backticks and one colon aside.
_ALONE = re.compile(r"\s*(`?)([^\s`]+?)\1:?\s*")


def read(doc: Document, i: int) -> Piece | None:
    """Return the file that begins on line `i`, or None.

    `i` is an index.  Only forms that always mean a file are read.  Raises `UnreadableEdit`.
    """
    line = doc.lines[i]
    if label := file_line(line):
        return _labelled(doc, i, label)
    if is_file_end(line):
        raise UnreadableEdit(
            i,
            "expected a `FILE:` line before this end of a file",
            "send `FILE: path`, the file's lines without a fence, `END FILE`",
        )
    mark = doc.fences.at(i)
    path = _path_in_info(doc, i, mark) if mark and is_named(mark) else None
    text = _file_in_fence(doc, i, mark, path) if mark and path else None
    return _piece(path, i, text.end, text.text) if path and text else None


def is_named(mark: Fence) -> bool:
    """Return whether a fence's info has text behind a colon, like a file's name."""
    return _NAMED.match(mark.info) is not None


def _path_in_info(doc: Document, i: int, mark: Fence) -> str | None:
    """Return the path behind the colon of a fence's info, or None.

    None where the info only cites lines.
    """
    if _CITES.match(mark.info):
        return None
    named = path_of_info(mark.info, doc.known)
    if named is None:
        return None
    path = doc.known.meant(named)
    above = _path_above(doc, i, mark)
    if above and above != path:
        raise UnreadableEdit(
            i,
            f"expected one path for the fence, found two: {above!r} and {path!r}",
            "name the file once",
        )
    return path


# ---------------------------------------------------------------- under a path


def read_under_path(doc: Document, i: int) -> Piece | None:
    """Return the fence of line `i` under a path alone, or None.

    `decided` decides whether it is a file.
    """
    mark = doc.fences.at(i)
    path = _path_above(doc, i, mark) if mark else None
    if mark is None or path is None or not doc.fences.opens(mark):
        return None
    top = line_above(doc.lines, i, doc.low)
    if not may_hold(language_of(mark.info), path) or _is_inside(doc, top):
        return None
    end, text, flaw = doc.fences.end(i, mark), "", None
    try:
        found = _file_in_fence(doc, i, mark, path, stated=False)
        if found is None:
            return None
        end, text = found.end, found.text
    except UnreadableEdit as error:
        if end == len(doc.lines) or may_mark("\n".join(doc.lines[i:end])):
            raise
        flaw = error
    guarded = not doc.whole_files
    under = FenceUnderPath((i + 1, end + 1), path, text, language_of(mark.info), guarded, flaw)
    return Piece((), end + 1, top, under_path=under)


def _path_above(doc: Document, i: int, mark: Fence) -> str | None:
    above = line_above(doc.lines, i, doc.low)
    alone = _ALONE.fullmatch(doc.lines[above]) if above >= doc.low else None
    if alone is None or "://" in alone[2]:
        return None
    path = doc.known.meant(alone[2].removesuffix(":"))
    word = "/" not in path and "." not in path
    named = doc.known(path) or path.lower() == language_of(mark.info) if word else None
    token = named is None and is_path(path, doc.known)
    return path if named or (token and (doc.known(path) or not _UNSPACED.search(path))) else None


def _is_inside(doc: Document, top: int) -> bool:
    """Return whether a fence round line `top` holds more than files and their paths."""
    outer = doc.fences.outermost
    if outer is None or outer >= top:
        return False
    above = line_above(doc.lines, top, 0)
    return next_line(doc.lines, -1) != outer or doc.fences.at(above) is None


def decided(
    edits: Sequence[Edit], fences: Sequence[FenceUnderPath], known: KnownPaths
) -> tuple[list[Edit], list[ShownPlace]]:
    """Return the edits with the files under paths, and the files of unlikely names.

    Raises `UnreadableEdit` where a new file is beside edits, or is written twice.
    """
    _check_twice(edits)
    if any(edit.format != NAME for edit in edits):
        made = {e.op.to if isinstance(e.op, Rename) else e.path for e in edits}
        for one in fences:
            if not known(one.path) and one.path not in made:
                raise UnreadableEdit(
                    one.at[0] - 1,
                    f"the text in this fence may be the new file {one.path!r}, and is beside "
                    "edits in another form",
                    f"{named_fence(one.path)} as the fence's info makes it a file",
                )
        return list(edits), []
    for one in fences:
        if one.flaw:
            raise one.flaw
    files = [Edit("", NAME, f.at, f.path, Write(f.text, quoting=f.guarded)) for f in fences]
    unlikely = [
        ShownPlace("file", ((one.at[0], one.path),))
        for one in fences
        if not known(one.path) and not _is_likely(one, known.base.paths())
    ]
    return sorted([*edits, *files], key=lambda edit: edit.at), unlikely


def _is_likely(one: FenceUnderPath, paths: Iterable[str]) -> bool:
    name = one.path.rpartition("/")[2]
    if "." not in name:
        return True
    ending = name.rpartition(".")[2].lower()
    return is_ending(one.language, ending) or any(path.endswith(f".{ending}") for path in paths)


def _check_twice(edits: Sequence[Edit]) -> None:
    written, whole = [edit for edit in edits if edit.format == NAME], DeleteFile | Rename
    if not written:
        return
    others = {e.path: e for e in edits if e.format != NAME and not isinstance(e.op, whole)}
    for edit in written:
        if edit.path in others:
            raise UnreadableEdit(
                edit.at[0] - 1,
                f"{edit.path!r} is written as a whole here, and edited on line "
                f"{others[edit.path].at[0]}",
                "say once what shall become of the file",
            )


# ---------------------------------------------------------------- FILE:


def _labelled(doc: Document, i: int, label: FileLine) -> Piece | None:
    lines = doc.lines
    below = next_line(lines, i)
    if below == len(lines):
        raise UnreadableEdit.cut(i, "the response ends here, where a file begins", _SEND_AGAIN)
    mark = doc.fences.at(below)
    fenced = mark is not None and not mark.closing
    if label.dressed and not fenced:
        return None
    path = path_behind(label, doc.known)
    if path is None:
        raise UnreadableEdit(
            i, "expected one path behind `FILE:`", "write `FILE: path`, and nothing else"
        )
    if begins_edit(doc, i, path):
        return None
    if mark is None or mark.closing:
        return _unfenced(doc, i, path)
    inner = path_of_info(mark.info, doc.known)
    if inner and doc.known.meant(inner) != path:
        raise UnreadableEdit(
            below,
            f"expected one path for the fence, found two: {path!r} and {inner!r}",
            "name the file once",
        )
    text = _file_in_fence(doc, below, mark, path)
    if text is None:
        return None
    end = next_line(lines, text.end)
    closed = end < len(lines) and is_file_end(lines[end])
    return _piece(path, i, end if closed else text.end, text.text)


def _unfenced(doc: Document, i: int, path: str) -> Piece | None:
    """Return the unfenced file under the `FILE:` line `i`.

    Up to `END FILE` every line is the file's.  Where the next `FILE:` ends it, blank lines at the
    edges set the text off.
    """
    lines = doc.lines
    end, fences = i + 1, False
    if lines[i][:1] == " ":
        raise UnreadableEdit(
            i,
            "`FILE:` is indented, so its text may be, too",
            "put the text into a fence whose info names the file",
        )
    while end < len(lines) and not is_file_end(lines[end]) and not file_line(lines[end]):
        if half_at(doc, end):
            return None
        if is_marker(lines[end]):
            raise UnreadableEdit(
                end,
                f"{lines[end].strip()[:40]!r} is in what should be the text of {path!r}",
                "put the text into a fence whose info names the file, or send blocks alone",
            )
        fences = fences or doc.fences.at(end) is not None
        end += 1
    if end == len(lines):
        raise UnreadableEdit(
            i,
            "the file's text runs to the end of the response, so it may be cut",
            "put the text into a fence, or `END FILE` on the line behind it",
        )
    closed = is_file_end(lines[end])
    if fences and not (closed and is_markdown(path, "")):
        raise UnreadableEdit(
            i,
            "expected a fence right under `FILE:`, found text before it",
            "put nothing between `FILE: path` and the fence with the file's text",
        )
    if closed:
        return _piece(path, i, end, joined(lines[i + 1 : end]))
    start, last = next_line(lines, i), line_above(lines, end, i + 1)
    if last < start:
        raise UnreadableEdit(
            i,
            "expected the file's lines under `FILE:`, found the next file",
            "put the text into a fence; for an empty file, put `END FILE` on the next line",
        )
    return _piece(path, i, last, joined(lines[start : last + 1]))


def _piece(path: str, start: int, end: int, text: str) -> Piece:
    edit = Edit("", NAME, (start + 1, end + 1), path, Write(text))
    return Piece((edit,), end + 1, start)


# ---------------------------------------------------------------- what the fence holds


def _file_in_fence(
    doc: Document, i: int, mark: Fence, path: str, *, stated: bool = True
) -> Fenced | None:
    """Return the file in the fence that opens on line `i`, or None.

    None if it holds edits of that path.
    `stated` says that the form always writes, so that a document may show edits.
    """
    is_diff = language_of(mark.info) in DIFF_LANGUAGES and not path.endswith(DIFF_ENDINGS)
    if is_diff or begins_edit(doc, i, path):
        return None
    text = fenced_at(doc, i, mark)
    if may_mark(text.text) and not (stated and is_document(path)):
        _check_markers(text, path)
    check_end(doc, text, path)
    return text


def _check_markers(text: Fenced, path: str) -> None:
    for i, line in enumerate(text.lines, text.start + 1):
        if is_marker(line):
            raise UnreadableEdit(
                i,
                f"{line.strip()[:40]!r} is in what should be the text of {path!r}",
                "send blocks whole and alone",
            )


def begins_edit(doc: Document, i: int, path: str) -> bool:
    """Return whether an edit of another format begins below line `i`.

    It must begin on the first line with text.
    """
    lines, below = doc.lines, next_line(doc.lines, i)
    line = lines[below] if below < len(lines) else ""
    if (doc.fences.at(below) and not is_document(path)) or (
        path in line and doc.known.on_line(line) == path
    ):
        below = next_line(lines, below)
    if below == len(lines):
        return False
    line = lines[below]
    if opening(line) or line.lstrip().startswith(BEGIN_PATCH):
        return True
    if change_line(line):
        below = next_line(lines, below)
    is_diff = not path.endswith(DIFF_ENDINGS) and _DIFF.match(line)
    return bool(is_diff or (below < len(lines) and half_at(doc, below)))


FORMAT = Format(
    NAME,
    INSTRUCTIONS,
    openings=(
        Opening(
            read, ("[#*_]", "FILE", "END FILE"), lambda line: file_line(line) or is_file_end(line)
        ),
    ),
    fences=(
        FenceOpening(read, is_named, turn=2),
        FenceOpening(read_under_path, lambda mark: not (mark.closing or is_named(mark)), turn=3),
    ),
    signs=(Sign("a whole file", r"FILE: *\S"),),
)
