"""Rows as lines of text: the old side, the edits between, the new side."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from shutil import get_terminal_size
from unicodedata import east_asian_width

from patchq.cli.screen import Line, Styled, is_terminal, plain
from patchq.core.text.quote import clip, visible
from patchq.gate.api import syntax
from patchq.gate.review.rows import Cell, FileRows, Row, folded

_IN_A_PIPE = 160
_LEAST = 60
_NUMBER = 5
_EDITS = 6
_OLD, _NEW = "red", "green"
_Runs = Sequence[Sequence[syntax.Run]]
_Code = tuple[_Runs, _Runs]  # the runs of the lines of both sides
_PLAIN: _Code = ((), ())


def lines(files: Iterable[FileRows]) -> Iterator[Line]:
    """Yield the files, one after the other, as wide as the terminal is.

    There the code has its colours, where the extra `review` is installed.
    """
    coloured = is_terminal() and syntax.offered()
    columns = get_terminal_size().columns if is_terminal() else _IN_A_PIPE
    width = (max(columns, _LEAST) - 2 * (_NUMBER + 1) - _EDITS) // 2
    for number, file in enumerate(files):
        yield from [plain("")] if number else []
        yield plain(_title(file), "bold")
        code = syntax.sides(file.change) if coloured else _PLAIN
        for row in folded(file.rows):
            yield from [_fold(row, width)] if row.kind == "fold" else _row(row, width, code)


def _title(file: FileRows) -> str:
    what = f"renamed from {file.renamed_from}" if file.renamed_from else file.what
    count = "binary" if file.binary else f"+{file.added} -{file.deleted}"
    edits = f"  edit {', '.join(file.edits)}" if file.edits else ""
    link = f"  {file.link}" if file.link else ""
    return visible(f"{file.path}  {what}{link}  {count}{edits}")


def _fold(row: Row, width: int) -> Line:
    changed = f" changed ({clip(', '.join(row.edits), 40)})" if row.edits else ""
    text = visible(f"… {row.hidden} more lines{changed} …")
    return plain(f"{'':{_NUMBER}} {text}", "cyan")


def _row(row: Row, width: int, code: _Code) -> Iterator[Line]:
    old = _pieces(row, row.old, width, _OLD, code[0])
    new = _pieces(row, row.new, width, _NEW, code[1])
    sides = (_OLD, _NEW) if row.kind != "same" and code != _PLAIN else ("dim", "dim")
    edits = clip(visible(",".join(row.edits)), _EDITS - 3)
    for number, (left, right) in enumerate(zip_longest(old, new)):
        between = f" {'' if number else edits:^{_EDITS - 2}} "
        yield (
            _number(None if number else row.old, sides[0]),
            *(left or (Styled(" " * width),)),
            Styled(between, "cyan"),
            _number(None if number else row.new, sides[1]),
            *_stripped(right or ()),
        )


def _number(cell: Cell | None, style: str) -> Styled:
    return Styled(f"{cell.line if cell else '':>{_NUMBER}} ", style)


def _pieces(row: Row, cell: Cell | None, width: int, style: str, code: _Runs) -> list[Line]:
    """The cell's text in lines of `width` columns, with what only this side has marked."""
    if cell is None:
        return []
    style = style if row.kind != "same" else ""
    marked = {at for first, end in cell.marks for at in range(first, end)}
    runs = code[cell.line - 1] if cell.line <= len(code) else ()
    styles = syntax.styles(cell.text, runs)
    text = cell.text + ("" if cell.ended else " (no line end)")
    found: list[Line] = []
    line: list[Styled] = []
    used = 0
    for at, char in enumerate(text.expandtabs(1)):
        columns = 2 if east_asian_width(char) in "WF" else 1
        if used + columns > width:
            found.append(tuple(line))
            line, used = [], 0
        own = (styles[at] if at < len(styles) else "") or style
        line.append(Styled(char, f"{own} reverse".strip() if at in marked else own))
        used += columns
    found.append((*line, Styled(" " * (width - used))))
    return [_joined(some) for some in found]


def _joined(pieces: Iterable[Styled]) -> Line:
    """Neighbours of one style as one piece."""
    made: list[Styled] = []
    for piece in pieces:
        if made and made[-1].style == piece.style:
            piece = Styled(made.pop().text + piece.text, piece.style)
        made.append(piece)
    return tuple(made)


def _stripped(line: Line) -> Line:
    """Without the blanks that would fill up the last column."""
    if line and not line[-1].style:
        return (*line[:-1], Styled(line[-1].text.rstrip(" ")))
    return line
