"""A change that is shown in two fences, `Before:` over the one and `After:` over the other.

Beside edits it explains them, as a rule.  Where its old lines stand in a file that the response
edits or names, and its new lines are neither there nor in any edit, it is a change of its own,
which would be lost.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from patchq.formats.format import UnreadableEdit
from patchq.formats.marks.lines import Fence, fence

_OLD = re.compile(
    r"(?:find|search(?: for)?|replace|change|before|from|old|original|current|existing)"
    r"(?: (?:this|the|code|lines?|version|following|block|text))*"
    r"|vorher|alt|alter code|suche|finde|avant|ancien(?: code)?|chercher|antes|buscar|código actual"
    r"|prima|vecchio|codice attuale|było|przed|было|до|найти|старый код"
    r"|之前|查找|原代码|修改前|替换前|旧代码|変更前|修正前|検索|변경 전|이전|찾기|기존 코드",
    re.IGNORECASE,
)
_NEW = re.compile(
    r"(?:replace(?: it| this)?(?: with| by)?|with|after|to|new|updated|modified|changed)"
    r"(?: (?:this|the|code|lines?|version|following|block|text))*"
    r"|nachher|neu|neuer code|ersetze(?: es)? durch|après|nouveau(?: code)?|remplacer par|después"
    r"|reemplazar (?:con|por)|código nuevo|depois|dopo|nuovo|codice nuovo|po|стало|после"
    r"|заменить на|новый код|之后|替换为|替换成|新代码|修改后|替换后|変更後|修正後|置換|변경 후"
    r"|이후|바꾸기|새 코드",
    re.IGNORECASE,
)
_DRESS = re.compile(r"^(?:[\s#*_>`<\[+.-]|\d{1,3}[.)])+|[\s#*_:`>\].\uff1a-]+\Z|\s*\([^()]*\)")
_MOST_LETTERS = 60


@dataclass(frozen=True, slots=True)
class _Shown:
    """A fence's lines, the label over it and the number of that."""

    number: int
    label: str
    lines: tuple[str, ...]


def check_pairs(
    prose: Sequence[tuple[int, str]],
    stands: Callable[[Sequence[str]], bool],
    written: Iterable[str],
) -> None:
    """Raise `UnreadableEdit` where lines (number, text) show a change of their own.

    `stands` tells whether a quote stands in one of the files in question; `written` are the texts
    that the edits write.
    """
    made: set[str] | None = None
    before: _Shown | None = None
    for one in _labelled(prose):
        old, before = before, one if _OLD.fullmatch(one.label) else None
        if old is None or not _NEW.fullmatch(one.label) or not stands(old.lines):
            continue
        if made is None:
            made = {line.strip() for text in written for line in text.split("\n")}
        there = made.union(line.strip() for line in old.lines)
        if stands(one.lines) or all(line.strip() in there for line in one.lines):
            continue
        raise UnreadableEdit(
            old.number - 1,
            f"a change is shown here, under {old.label!r} and {one.label!r}, that no edit makes",
            "send it in the form of the other edits, or leave it out",
        )


def _labelled(prose: Sequence[tuple[int, str]]) -> Iterator[_Shown]:
    """The fences with a line right above each."""
    above, number = "", 0
    opened: Fence | None = None
    lines: list[str] = []
    for at, line in prose:
        mark = fence(line)
        if opened is None:
            if mark is None:
                above, number = (line, at) if line.strip() else (above, number)
            elif not mark.closing:
                opened, lines = mark, []
        elif mark and opened.closed_by(mark):
            if above and len(above) <= _MOST_LETTERS:
                yield _Shown(number, _DRESS.sub("", _DRESS.sub("", above)), tuple(lines))
            above, opened = "", None
        else:
            lines.append(line)
