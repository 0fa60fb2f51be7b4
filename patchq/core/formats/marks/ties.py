"""What ties a fence to a path: its info, the line right above it, its first line.

A path in the info behind a colon says that the file is written.  The others say no more than whose
text it is: a path that is the whole line above, or stands in the sentence that ends there with a
colon; one in another sentence; a comment that is the fenced text's first line.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from patchq.core.formats.format import Document, UnreadableEdit
from patchq.core.formats.marks.lines import Fence, fence, line_above
from patchq.core.formats.marks.paths import (
    Known,
    as_meant,
    is_path,
    path_line,
    path_of_info,
    path_of_sentence,
)
from patchq.core.model.frozen import frozen
from patchq.core.model.values import TieKind
from patchq.core.text.patterns import Pattern
from patchq.core.text.seen import named_fence

_STRONG = Pattern(r"[\w+#.-]*:[ \t]*\S")
_CITED = Pattern(r"\d+:\d+:(?P<behind>\S+)\Z|(?:[\w+#.-]*:)?(?P<before>[^:]*[^:\d]):\d+(?:-\d+)?\Z")
"""Infos with a colon that cite lines of a file."""
_SUGGESTED = Pattern(r"suggestion:")
"""The info of a review's suggestion for some lines, which it does not name."""
_CROWDED = Pattern(r"[\w+#.-]*:[ \t]*(\S+)[ \t]+\S")
_LISTED = Pattern(r"\s*[-*+>]\s")
_COMMENT = Pattern(
    r"\s*(?:#|//)[ \t]*(?:(?i:file ?path|file ?name|file|path)[ \t]*:[ \t]*(?=\S)|(?![/#!]))"
    r"([^\s#!:]\S*)\s*"
)
_FILE_NAME = Pattern(r"(?:.*/)?[^/]*[^/.]\.[A-Za-z][A-Za-z0-9]{0,9}")
_ABBREVIATION = Pattern(r"\w\.[A-Za-z]")

_COLON = Pattern(r"[:\uff1a][*_`\"'\s]*\Z")
_SENTENCE_ENDS = Pattern(r"[.!?][*_`\"')]*\s+|[\u3002\uff01\uff1f]|:\s+")
_MARKUP = Pattern(r"\s*(?:#{1,6}\s|[-*+>]\s|\d{1,3}[.)]\s|\|)")
_HEDGES = Pattern(
    r"\b(?:examples?|e\.g|instance|could|might|would|may(?:be)?|perhaps|suppose|imagine|"
    r"alternatively|optionally|if|beispiel\w*|könnte\w*|exemple|exemplo|ejemplo|esempio|"
    r"pourr\w+|podr\w+|poder\w+|potre\w+|например|можно)\b|例如|比如|例えば|可以|예를",
    re.IGNORECASE,
)
"""Words with which a sentence only says what a file could be."""
_MOST_LINES = 6
_UNSPACED = Pattern(
    r"[\u3001\u3002\uff01\uff0c\uff1a\uff1b\uff1f]|[\w-]\.[A-Za-z0-9]+[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]"
)
"""Signs of such a sentence: its punctuation, letters right behind a file's ending."""
_TICKED = Pattern(r"(?<!`)`([^`\n]+)`(?!`)")
_WORD = Pattern(r"[^\s`*\"'()\[\]{}<>|,;:\u3000-\u303f\u3040-\u30ff\u3400-\u9fff\uff00-\uffef]+")
_NO_FILES = frozenset(
    (
        "node.js", "next.js", "nuxt.js", "vue.js", "react.js", "express.js", "three.js", "d3.js",
        "socket.io", "asp.net", "vb.net",
    )
)  # fmt: skip
_DOMAINS = (".com", ".org", ".net", ".io", ".dev", ".ai", ".app")


Named = tuple[TieKind, int, str]
"""A path that something names, and the index of that line."""


@frozen
class Tie:
    """What ties a fence to `path`; `top` is the index of the first line that does."""

    kind: TieKind
    path: str
    top: int
    in_info: bool = False
    """Whether the fence's info names the path."""
    other: str | None = None
    """A second path that is named."""


def is_named(mark: Fence) -> bool:
    """Whether something stands behind a colon in a fence's info, as a file's name does."""
    return _STRONG.match(mark.info) is not None


def in_info(path: str) -> str:
    """What to send for a fence that is to write the file of that path."""
    return f"put the path into the info of the file's fence: {named_fence(path)}"


def language_of(mark: Fence) -> str:
    """The language that a fence's info begins with, in lower case."""
    return mark.info.partition(":")[0].split(" ")[0].lower()


def tie_by_name(doc: Document, i: int, mark: Fence) -> Tie | None:
    """The tie of the fence on line `i` by a path behind a colon in its info, which writes; one with
    the numbers of lines cites them."""
    if _SUGGESTED.match(mark.info):
        raise UnreadableEdit(
            i,
            "a review's suggestion stands here, which does not say for which lines of which file",
            "send the change as a SEARCH/REPLACE block",
        )
    if cited := _CITED.match(mark.info):
        path = cited["behind"] or cited["before"]
        return Tie("mention", as_meant(path, doc.known), i, in_info=True)
    path = path_of_info(mark.info, doc.known)
    if path is None:
        crowded = _CROWDED.match(mark.info)
        if crowded and is_path(crowded[1], doc.known):
            raise UnreadableEdit(
                i, "expected nothing behind the path in the fence's info", in_info(crowded[1])
            )
        return None
    return one_tie(doc, i, [("name", i, path), *_path_above(doc, i)])


def tie_of(doc: Document, i: int, mark: Fence) -> Tie | None:
    """The tie of the fence on line `i` by anything else: it may be a quotation as well."""
    above = text_above(doc, i)
    in_info = path_of_info(mark.info, doc.known) if mark.info else None
    line = doc.lines[above] if above is not None else ""
    on_line = _path_on(line, doc.known) if line else None
    if in_info or (on_line and not _LISTED.match(line)):
        named = [*named_by("path", i, in_info)]
        if above is not None and not _LISTED.match(line):
            named += named_by("path", above, on_line)
        return one_tie(doc, i, named)
    if above is not None and (":" in line or "\uff1a" in line or "`" in line or on_line):
        sentence = _sentence_before_colon(doc, above)
        paths = paths_in(sentence, doc.known)
        if len(paths) == 1:
            kind: TieKind = "mention" if _HEDGES.search(sentence) else "sentence"
            return Tie(kind, as_meant(paths[0], doc.known), above)
        if path := on_line or path_of_sentence(line, doc.known):
            return Tie("mention", as_meant(path, doc.known), above)
    return _commented(doc, i)


def text_above(doc: Document, i: int) -> int | None:
    """The line right above a fence, if it holds text and is no fence line."""
    above = line_above(doc.lines, i, doc.low)
    return None if above < doc.low or fence(doc.lines[above]) else above


def one_tie(doc: Document, i: int, named: Sequence[Named]) -> Tie:
    """The tie by all that names the path of the fence on line `i`, the strongest first."""
    if len(named) == 1:
        kind, at, path = named[0]
        return Tie(kind, as_meant(path, doc.known), at, at == i)
    paths = list(dict.fromkeys(as_meant(path, doc.known) for _, _, path in named))
    in_info = any(at == i for _, at, _ in named)
    other = paths[1] if len(paths) > 1 else None
    return Tie(named[0][0], paths[0], min(at for _, at, _ in named), in_info, other)


def _path_above(doc: Document, i: int) -> list[Named]:
    """The line right above a fence and its path, if it is one and no item of a list."""
    above = text_above(doc, i)
    if above is None or _LISTED.match(doc.lines[above]):
        return []
    return named_by("path", above, _path_on(doc.lines[above], doc.known))


def _path_on(line: str, known: Known) -> str | None:
    """The path that is the whole of a line.  Where words are not set off by blanks, a sentence with
    a path in it looks like one."""
    path = path_line(line, known)
    return path if path and (known(path) or not _UNSPACED.search(path)) else None


def named_by(kind: TieKind, at: int, path: str | None) -> list[Named]:
    return [(kind, at, path)] if path else []


def _sentence_before_colon(doc: Document, above: int) -> str:
    """The sentence that ends with a colon at the end of line `above`; empty if none does."""
    lines, first = doc.lines, above
    if not _COLON.search(lines[above]):
        return ""
    while (
        first > max(doc.low, above - _MOST_LINES)
        and not _MARKUP.match(lines[first])
        and lines[first - 1].strip()
        and not fence(lines[first - 1])
    ):
        first -= 1
    text = " ".join(line.strip() for line in lines[first : above + 1])
    return _SENTENCE_ENDS.split(_COLON.sub("", text))[-1]


def paths_in(sentence: str, known: Known) -> list[str]:
    """The distinct paths of a sentence, in backticks or bare."""
    found: dict[str, None] = {}
    for token in _TICKED.findall(sentence):
        if is_path(token.strip(), known):
            found[token.strip()] = None
    for word in _WORD.findall(_TICKED.sub(" ", sentence)):
        token = word.strip("_").rstrip(".!?")
        if is_path(token, known) and (known(token) or _names_a_file(token)):
            found[token] = None
    return list(found)


def _names_a_file(token: str) -> bool:
    """Whether a bare word that the base does not have is a file's name, and no product's or
    site's."""
    if not _FILE_NAME.fullmatch(token) or "//" in token or _ABBREVIATION.fullmatch(token):
        return False
    if "/" in token:
        return not token.partition("/")[0].endswith(_DOMAINS)
    plain = token.lower()
    return token[0] != token[0].upper() and plain not in _NO_FILES and not plain.endswith(_DOMAINS)


def _commented(doc: Document, i: int) -> Tie | None:
    """The tie by the comment that is the first line of the fence on line `i`."""
    line = doc.lines[i + 1] if i + 1 < len(doc.lines) else ""
    match = _COMMENT.fullmatch(line) if "#" in line or "//" in line else None
    if match is None:
        return None
    path = as_meant(match[1], doc.known)
    names = doc.known(path) or (is_path(path, doc.known) and _FILE_NAME.fullmatch(path))
    return Tie("comment", path, i) if names else None
