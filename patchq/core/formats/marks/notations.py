"""Edits in a notation of other tools: markers with other words, halves in tags, calls in tags.

    <<<<<<< OLD          <old>               <write_to_file>            <file path="src/a.py">
    x = 1                x = 1               <path>src/a.py</path>      x = 2
    =======              </old>              <content>x = 2</content>   </file>
    x = 2                <new>               </write_to_file>
    >>>>>>> NEW          x = 2
                         </new>

None of them is read: nobody says what they mean to every tool.  Left as prose they would be lost,
and whatever stands beside them would land alone; so they refuse the response.  A conflict as git
writes it, under no path, is only shown.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from patchq.core.formats.format import UnreadableEdit
from patchq.core.text.patterns import Pattern

_LEAD = r"[ \t\u3000]*(?:(?:[>|*+\u2022\u2502\u2503\u258f\u258c-]|[#/;%]+|\d{1,3}[.)])[ \t]*)*"
_OPENS = Pattern(
    rf"{_LEAD}(?:(?P<left><{{5,9}})(?!<)[ \t]*(?P<word>\w.{{0,80}})"
    r"|(?P<dashes>-{5,9}) ?(?P<capitals>[A-Z][A-Z ]{1,40}))[ \t\r]*\Z"
)
_CLOSES = Pattern(
    rf"{_LEAD}(?:(?P<right>(?<!>)>{{5,9}})(?!>)[ \t]*\w.{{0,80}}|\+{{5,9}} ?[A-Z][A-Z ]{{1,40}})"
    r"[ \t\r]*\Z"
)
_DIVIDES = Pattern(rf"{_LEAD}={{5,9}}[ \t\r]*\Z")
_OF_GIT = Pattern(
    r"HEAD\b|Updated upstream\b|Stashed changes\b|ours\b|theirs\b|LOCAL\b|[0-9a-f]{7,40}\b"
)
"""What git writes behind the marker that opens a conflict."""

_WHAT = r"(?:[_-]\w+|str|string|text|code|content|lines)?"
_OLD = rf"(?:old|original){_WHAT}|before|find|search"
_NEW = rf"(?:new|updated|modified){_WHAT}|after|replace(?:ment|[_-]?with)?"
_CALL = (
    r"(?=(?:\w+_)?(?:write|create|edit|insert|apply|replace|delete|remove|rename|move|update"
    r"|modify|patch|append|overwrite|save)_\w)\w++|(?:dyad|lov|bolt)-?(?:write|delete|rename|action)"
    r"|(?:write|create|edit|delete|rename|move|update|insert|patch)(?:file|code|content)s?"
)
"""Names of calls; a text that is none is told from them in proportion to its length."""
_API = r"(?:antml:)?invoke|tool_call|tool_use|function"
_NAME = r"[A-Za-z][\w.:-]*"
_HOLDER = (
    rf"<(?P<holder>{_NAME})\s(?=[^<>\n]*(?<!/)>[ \t\r]*$)"
    r"[^<>\n]*\b(?:path|file|file_?path|(?:file_?)?name|title)\s*=\s*"
    r"[\"'](?P<path>[^\"'\s<>]+)[\"'][^<>\n]*>"
)
_TAG = Pattern(
    rf"</(?P<old>{_OLD})\s*>|<(?P<new>{_NEW})(?:\s[^<>]*)?>"
    rf"|<(?P<call>{_CALL})(?:\s[^<>]*)?>[ \t\r]*(?=$|<)"
    rf"|<(?P<api>{_API})(?:[\s=][^<>]*)?>|{_HOLDER}|</(?P<closed>{_NAME})\s*>",
    re.IGNORECASE,
)
_ENDS = Pattern(rf"</({_NAME})", re.IGNORECASE)
_TELLS = Pattern(rf"{_OLD}|{_CALL}|{_API}", re.IGNORECASE)
_HOLDS = Pattern(_HOLDER, re.IGNORECASE | re.MULTILINE)
"""What one of the tags that count is closed by, or opens with where any name will do."""
_READS = Pattern(r"(?:read|view|list|search|find|grep|glob|get|open|ls)(?:_|\b)", re.IGNORECASE)
_NAMED = Pattern(r"(?:name|function)\s*=\s*[\"']?(\w+)", re.IGNORECASE)
_SPAN = Pattern(r"`[^`\n]*`")
_SEND = "send the change as a SEARCH/REPLACE block, with the markers as they are written there"

_DASHES = Pattern(r"-{5,9} ?[A-Z]{2}")


def may_note(text: str) -> bool:
    """Whether any of this may stand in a text."""
    return _may_mark(text) or _may_tag(text)


def _may_mark(text: str) -> bool:
    signs = "<" in text and "<<<<<" in text
    return signs or ("-----" in text and _DASHES.search(text) is not None)


def _may_tag(text: str) -> bool:
    return "<" in text and _ENDS.search(text) is not None


def _may_tell(text: str) -> bool:
    """Whether tags that count may stand in a text, and close."""
    names = set(_ENDS.findall(text))
    return any(map(_TELLS.fullmatch, names)) or (bool(names) and _HOLDS.search(text) is not None)


def check_notations(
    prose: Iterable[tuple[int, str]],
    edits: Sequence[int],
    headed: Callable[[int], bool],
    is_file: Callable[[int, str], bool],
) -> None:
    """Raise `UnreadableEdit` for what is an edit in such a notation, in lines (number, text).

    `edits` are the numbers of the lines on which edits begin that could be read; `headed` tells
    whether a path stands above a line (an index), `is_file` whether the token on a line (a number)
    is the path of a file that is not only shown.
    """
    lines = list(prose)
    text = "\n".join([line for _, line in lines])
    if "<<<<<" in text or "-----" in text:
        _check_markers(lines, headed)
    text = _SPAN.sub("", text) if "`" in text else text
    if _may_tell(text):
        numbers = [number for number, _ in lines]
        _check_tags(zip(numbers, text.split("\n"), strict=True), edits, is_file)


def _check_markers(lines: Iterable[tuple[int, str]], headed: Callable[[int], bool]) -> None:
    opened: tuple[int, str, str] | None = None
    divided = False
    for number, line in lines:
        if "<<<<<" in line or "-----" in line:
            if match := _OPENS.match(line):
                kind, word = ("<", match["word"]) if match["left"] else ("-", match["capitals"])
                opened, divided = (number, kind, word), False
        elif opened and "=====" in line:
            divided = divided or _DIVIDES.match(line) is not None
        elif opened and (">>>>>" in line or "+++++" in line) and (match := _CLOSES.match(line)):
            first, kind, word = opened
            opened = None
            if (kind == "<") != bool(match["right"]) or not (divided or word.isupper()):
                continue
            if divided and _OF_GIT.match(word) and not headed(first - 1):
                continue
            raise UnreadableEdit(
                first - 1,
                f"a block opens here with a marker of another word, {word[:40]!r}, and ends on "
                f"line {number}",
                "write `SEARCH` behind the opening marker and `REPLACE` behind the closing one, "
                "with the file's path on the line above the block",
            )


def _check_tags(
    lines: Iterable[tuple[int, str]], edits: Sequence[int], is_file: Callable[[int, str], bool]
) -> None:
    old = 0
    opened: dict[str, int] = {}
    for number, line in lines:
        for tag in _TAG.finditer(line) if "<" in line else ():
            if tag["old"]:
                old = old or number
            elif tag["new"] and old:
                raise _in_tags(old, "halves in tags")
            elif name := _opened(tag, partial(is_file, number)):
                opened.setdefault(name, number)
            elif tag["closed"]:
                first = opened.pop(tag["closed"].lower(), 0)
                if first and bisect_left(edits, first) == bisect_left(edits, number):
                    raise _in_tags(first, "a tool's call, or a file, in tags")


def _opened(tag: re.Match[str], is_file: Callable[[str], bool]) -> str | None:
    """What the tag of a call, or of a file, is closed by."""
    if tag["api"]:
        name = _NAMED.search(tag[0])
        return None if name and _READS.match(name[1]) else tag["api"].lower()
    if tag["holder"]:
        return tag["holder"].lower() if is_file(tag["path"]) else None
    return tag["call"].lower() if tag["call"] else None


def _in_tags(number: int, what: str) -> UnreadableEdit:
    return UnreadableEdit(number - 1, f"this is an edit that cannot be read: {what}", _SEND)
