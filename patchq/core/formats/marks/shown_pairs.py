"""A change that is shown in two fences, `Before:` over the one and `After:` over the other, or in
one under words that tell where: `Replace lines 4-6 with:`, `Delete this function:`.

Beside edits it explains them, as a rule.  Where its old lines stand in a file that the response
edits or names, and its new lines are neither there nor in any edit, it is a change of its own,
which would be lost.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator, Sequence
from functools import cache

from patchq.core.formats.format import UnreadableEdit
from patchq.core.formats.marks.lines import Fence, fence
from patchq.core.model.frozen import frozen
from patchq.core.text.patterns import Pattern

_OLD = Pattern(
    r"(?:find|search(?: for)?|replace|change|before|from|old|original|current|existing)"
    r"(?: (?:this|the|code|lines?|version|following|block|text))*"
    r"|vorher|alt|alter code|suche|finde|avant|ancien(?: code)?|chercher|antes|buscar|código actual"
    r"|prima|vecchio|codice attuale|było|przed|было|до|найти|старый код"
    r"|之前|查找|原代码|修改前|替换前|旧代码|変更前|修正前|検索|변경 전|이전|찾기|기존 코드",
    re.IGNORECASE,
)
_NEW = Pattern(
    r"(?:replace(?: it| this)?(?: with| by)?|with|after|to|new|updated|modified|changed)"
    r"(?: (?:this|the|code|lines?|version|following|block|text))*"
    r"|nachher|neu|neuer code|ersetze(?: es)? durch|après|nouveau(?: code)?|remplacer par|después"
    r"|reemplazar (?:con|por)|código nuevo|depois|dopo|nuovo|codice nuovo|po|стало|после"
    r"|заменить на|новый код|之后|替换为|替换成|新代码|修改后|替换后|変更後|修正後|置換|변경 후"
    r"|이후|바꾸기|새 코드",
    re.IGNORECASE,
)
_AT_LINES = Pattern(
    r"(?:(?:then|also|next|finally|now|and),? )?(?:"
    r"(?:replace|change|update|swap|rewrite)(?: the)? lines? \d+(?:\s*(?:-|\u2013|to|through|and|,)"
    r"\s*\d+)?(?: (?:in|of) \S+)?(?: (?:with|by|to))?"
    r"|(?:insert|add|put|append)(?: \w+){0,3} (?:after|before|below|above|behind|at|on)(?: the)?"
    r" line \d+(?: (?:in|of) \S+)?)(?: (?:this|the following|that))?",
    re.IGNORECASE,
)
_GONE = Pattern(
    r"(?:(?:then|also|next|finally|now|and),? )?(?:delete|remove|drop|erase)"
    r"(?: (?:the|this|these|that|those|following|two|three|old|whole|entire|unused|redundant))*"
    r" (?:functions?|methods?|class(?:es)?|lines?|blocks?|code|imports?|statements?|definitions?"
    r"|parts?|sections?|tests?)(?: (?:entirely|completely|too|below|as well))?",
    re.IGNORECASE,
)
may_tell = re.compile(r"\b[Ll]ines? \d|\b(?:[Dd]elete|[Rr]emove|[Dd]rop|[Ee]rase) ").search
"""Whether words over a fence may tell where its change is, in a text."""
_DRESS = Pattern(r"^(?:[\s#*_>`<\[+.-]|\d{1,3}[.)])+|[\s#*_:`>\].\uff1a-]+\Z|\s*\([^()]*\)")
_MOST_LETTERS = 60


@frozen
class _Shown:
    """A fence's lines, the label over it and the number of that."""

    number: int
    label: str
    lines: tuple[str, ...]

    def is_of(self, lines: Container[str]) -> bool:
        """Whether all its lines are among these, blanks at their edges aside."""
        return all(line.strip() in lines for line in self.lines)


def check_pairs(
    prose: Sequence[tuple[int, str]],
    stands: Callable[[Sequence[str]], bool],
    edits: Sequence[tuple[str, str]],
) -> None:
    """Raise `UnreadableEdit` where lines (number, text) show a change of their own.

    `stands` tells whether a quote stands in one of the files in question; `edits` are the old and
    the new texts of the edits.
    """
    made = cache(lambda: {line.strip() for _, new in edits for line in new.split("\n")})
    gone = cache(lambda: {line.strip() for old, new in edits for line in _gone(old, new)})
    before: _Shown | None = None
    for one in _labelled(prose):
        old, before = before, one if _OLD.fullmatch(one.label) else None
        if old is not None and _NEW.fullmatch(one.label) and stands(old.lines):
            there = made().union(line.strip() for line in old.lines)
            if not stands(one.lines) and not one.is_of(there):
                raise _own_change(old.number, f"under {old.label!r} and {one.label!r}")
        elif _AT_LINES.fullmatch(one.label):
            if not stands(one.lines) and not one.is_of(made()):
                raise _own_change(one.number, f"under {one.label!r}")
        elif _GONE.fullmatch(one.label) and stands(one.lines) and not one.is_of(gone()):
            raise _own_change(one.number, f"under {one.label!r}")


def _gone(old: str, new: str) -> set[str]:
    return {*old.split("\n")}.difference(new.split("\n")) | {""}


def _own_change(number: int, where: str) -> UnreadableEdit:
    return UnreadableEdit(
        number - 1,
        f"a change is shown here, {where}, that no edit makes",
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
