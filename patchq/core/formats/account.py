"""The account of code beside a response's edits that went into no file.

A response that lands is looked through once more.  Its prose may show what was meant as a further
edit, in an unknown form: code in a fence, a command that changes files, JSON or a tag that
names a file, lines under a path, a part of the edits between tags.  `shown` collects these lines
while the response is read, `beside` judges them once the result is known: where a shown line is
no line of any file that the response edits or names, a person has to look.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import compress

from patchq.core.formats.format import Document
from patchq.core.formats.marks.fences import (
    TAG_NAMES,
    Fence,
    fence,
    next_line,
)
from patchq.core.formats.marks.paths import KnownPaths, is_path
from patchq.core.model.ops import Rename
from patchq.core.model.values import Edit, Plan, Problem, ShownKind, ShownPlace, Tree
from patchq.core.text.languages import SHELLS, language_of
from patchq.core.text.quote import clip

_MOST_PLACES = 20
_LONGEST = 300  # a longer line is no path and its label
_MOST_SHOWN = 60  # characters of a shown line in a message
# What a list or a quotation puts before a fence.
_LED = re.compile(r"(?:[ \t]*(?:>|[-*+\u2022][ \t]|\d{1,3}[.)][ \t]))*[ \t]*")
# A line of a shell that changes files.
_CHANGES = re.compile(
    r"(?:^|[;&|(]|\b(?:sudo|xargs|then|do|else|exec|time|env)\s)\s*(?:"
    r"(?:rm|mv|cp|ln|touch|tee|patch|truncate|del|ren|move|copy|rmdir|unlink|ed|ex|dd|chmod)\s"
    r"|git\s(?:-\S+\s\S+\s)*(?:rm|mv|apply|am|revert|reset|clean|cherry-pick|merge)\b"
    r"|git\s(?:-\S+\s\S+\s)*stash(?!\s+(?:list|show))"
    r"|git\s(?:-\S+\s\S+\s)*(?:checkout|restore)\s(?!.*--staged)(?:.*\s)?"
    r"(?:--\s|\.(?:\s|$)|[\w/-]+\.[A-Za-z]\w*(?:\s|$))"
    r"|g?sed\s.*-(?:\w*i|-in-place)|(?:perl|ruby|g?awk|yq)\s.*-\w*i|p?npm\spkg\s)"
    r"|(?i:\b(?:new|remove|move|copy|rename|set|clear)-(?:item|content)\b|\badd-content\b|\bout-file\b)"
    r"|(?<![<>&=-])>{1,2}(?!&|=|\s*/dev/|\s*$|\s*\w+>)|<<-?\s*['\"]?\w|\bopen\("
)
# What a line begins with that may show something, at a glance.
_MAY_BEGIN = re.compile(
    r"\s*(?:[<{\[$]|PS)|[\s>*+\u2022\d.)-]*(?:```|~~~|<)"
    r"|[*#`_\s]*(?:(?i:file|path|filename|new)[\s:*`_]+)*\S{1,200}\s*$"
)
_PROMPT = re.compile(r"\s*(?:\$|PS[^>\n]{0,80}>)\s+(?=\S)")
_JSON = re.compile(r"\s*(?:\{\s*(?:[\"'][^\"']*[\"']\s*:|$)|\[\s*(?:\{|$))")
_TAG = re.compile(r"\s*<(/?)([^\W\d_][\w.:-]{0,60})(?:\s[^<>]*)?>\s*")
_FILE = re.compile(r"(?:[\w.@+-]+/)*[\w@+-][\w.@+-]*\.[A-Za-z][A-Za-z0-9]{0,9}")
_WORDS = re.compile(r"[\s`*\"'()\[\]{}<>|,;:=#]+")
_PLAIN_WORDS = frozenset(("file", "path", "filename", "new", ""))
_LISTED = re.compile(r"\s*(?:[-*+>\u2022]|\d{1,3}[.)])\s")

_WHAT: dict[ShownKind, str] = {
    "code": "code stands beside the edits and went nowhere: `{}`",
    "command": "a command that changes files stands beside the edits, and is not run: `{}`",
    "text": "a text for a program or a file stands beside the edits and went nowhere: `{}`",
    "file": "`{}` is made a file, and its name may be none",
    "tags": "the tags `{}` stand round a part of the edits only",
}


# ---------------------------------------------------------------- what is shown


def shown(doc: Document, prose: bytearray, places: Sequence[range]) -> Iterator[ShownPlace]:
    """Yield the places in a text's prose that show code or commands.

    `prose` tells for each line whether it is prose, `places` are the lines (indices) of the edits.
    """
    lines, known = doc.lines, doc.known
    yield from _partial_tags(lines, prose, places)
    behind = 0
    for i in compress(range(len(lines)), prose):
        if i < behind or not _MAY_BEGIN.match(lines[i]):
            continue
        line, behind = lines[i], i + 1
        mark = _fence(doc, i)
        if mark and not mark.closing:
            end = _end(doc, prose, i, mark)
            yield from _fenced(range(i + 1, end), lines, mark, known)
            behind = end + (end < len(lines) and prose[end])
        elif _PROMPT.match(line):
            yield from commands(line, i + 1, known)
        elif _begins_text(doc, i):
            while behind < len(lines) and prose[behind] and lines[behind].strip():
                if _fence(doc, behind):
                    break
                behind += 1
            found = list(range(i, behind))
            if line.lstrip()[0] not in "<{[":  # a path, and more of them perhaps
                found = [k for k in found if not _is_path(lines[k], known)]
            if found:
                yield ShownPlace("text", _numbered(lines, found))


def _fence(doc: Document, i: int) -> Fence | None:
    line = doc.lines[i]
    if doc.fences.at(i) or ("```" not in line and "~~~" not in line):
        return doc.fences.at(i)
    match = _LED.match(line)
    return fence(line[match.end() :]) if match else None


def _end(doc: Document, prose: bytearray, start: int, mark: Fence) -> int:
    """Return the index of the line that ends a fence or begins an edit."""
    edit = prose.find(0, start)
    limit = edit if edit >= 0 else len(doc.lines)
    if doc.fences.at(start):
        return min(limit, doc.fences.end(start, mark))
    ends = (i for i in range(start + 1, limit) if (one := _fence(doc, i)) and mark.closed_by(one))
    return next(ends, limit)


def _fenced(
    inner: range, lines: Sequence[str], mark: Fence, known: KnownPaths
) -> Iterator[ShownPlace]:
    if language_of(mark.info) in SHELLS:
        for i in inner:
            yield from commands(lines[i], i + 1, known)
    elif inner:
        yield ShownPlace("code", _numbered(lines, inner))


def commands(script: str, line: int, known: KnownPaths) -> Iterator[ShownPlace]:
    """Yield the lines of a shell script that change files.

    Each is reported on `line` of the response.
    A line whose every path git ignores changes nothing that counts.
    """
    for text in script.split("\n"):
        plain = _PROMPT.sub("", text)
        if _CHANGES.search(plain) and not _is_ignored(plain, known):
            yield ShownPlace("command", ((line, text.strip()),))


def _is_ignored(command: str, known: KnownPaths) -> bool:
    found = (word.rstrip("/") for word in _WORDS.split(command)[1:])
    words = [word for word in found if word[:1] != "-" and any(map(str.isalnum, word))]
    ignores = known.base.ignores
    ignored = {w for w in words if (ignores(w) or ignores(f"{w}/x")) and not known(w)}
    return bool(ignored) and not any(is_path(w, known) for w in words if w not in ignored)


def _begins_text(doc: Document, i: int) -> bool:
    """Return whether unfenced text for a program or a file begins on line `i`."""
    lines, known = doc.lines, doc.known
    line = lines[i]
    if _JSON.match(line):
        return True
    if line.lstrip()[:1] == "<":
        tokens = _WORDS.split(line)
        return any(known(token) or _FILE.fullmatch(token) for token in tokens if token)
    below = next_line(lines, i) if _is_path(line, known) else i
    return below > i and (below == len(lines) or not _fence(doc, below))


def _is_path(line: str, known: KnownPaths) -> bool:
    """Return whether a line is a path of the base, and no list item.

    Words of `_PLAIN_WORDS` may be beside it.
    """
    if len(line) > _LONGEST or _LISTED.match(line):
        return False
    if "." not in line and "/" not in line and not known.base.has(line.strip("`*#:_ \t")):
        return False
    words = [word.strip("_") for word in _WORDS.split(line)]
    rest = [word for word in words if word.lower() not in _PLAIN_WORDS]
    return len(rest) == 1 and known(known.meant(rest[0]))


def _numbered(lines: Sequence[str], which: Iterable[int]) -> tuple[tuple[int, str], ...]:
    return tuple([(i + 1, lines[i]) for i in which if i < len(lines)])


def _partial_tags(
    lines: Sequence[str], prose: bytearray, places: Sequence[range]
) -> Iterator[ShownPlace]:
    """Yield the tags that enclose some of the edits but not all.

    Only tags alone on their lines count.
    """
    if len(places) < 2:
        return
    opened: dict[str, list[int]] = {}
    held: dict[str, set[int]] = {}
    first: dict[str, int] = {}
    starts = [place.start for place in places]
    for i, line in enumerate(lines):
        match = _TAG.fullmatch(line) if prose[i] and "<" in line else None
        if match is None or match[2].lower() in TAG_NAMES:
            continue
        name = match[2].lower()
        if not match[1]:
            opened.setdefault(name, []).append(i)
        elif opened.get(name):
            top = opened[name].pop()
            first.setdefault(name, top)
            held.setdefault(name, set()).update(s for s in starts if top < s < i)
    for name, inside in held.items():
        if 0 < len(inside) < len(starts):
            yield ShownPlace("tags", ((first[name] + 1, f"<{name}>"),))


def paths_named(text: str, known: KnownPaths) -> tuple[str, ...]:
    """Return the paths of the base that prose names."""
    words = {word.rstrip(".!?") for word in _WORDS.split(text)}
    return tuple(filter(known.base.has, map(known.meant, filter(None, words))))


# ---------------------------------------------------------------- what went nowhere


def beside(
    places: Sequence[ShownPlace],
    named: Iterable[str],
    edits: Iterable[Edit],
    plan: Plan,
    tree: Tree,
) -> list[Problem]:
    """Return warnings for shown places with a line that is in no file.

    The files are taken before and after the edits.
    """
    if not places:
        return []
    there = _lines_of_files(named, edits, plan, tree)
    found = [place for one in places if (place := _lost(one, there))]
    problems = [
        _problem(number, _WHAT[what].format(clip(text, _MOST_SHOWN)))
        for what, number, text in found[:_MOST_PLACES]
    ]
    if len(found) > _MOST_PLACES:
        more = len(found) - _MOST_PLACES
        last = found[_MOST_PLACES]
        problems.append(_problem(last[1], f"and {more} more places like these, from here on"))
    return problems


def _lines_of_files(
    named: Iterable[str], edits: Iterable[Edit], plan: Plan, tree: Tree
) -> frozenset[str]:
    texts = [data for change in plan.changes for data in (change.before, change.after) if data]
    changed = {path for change in plan.changes for path in change.paths}
    others = dict.fromkeys(named)
    for edit in edits:
        others |= dict.fromkeys((edit.path, edit.op.to if isinstance(edit.op, Rename) else ""))
    for path in others.keys() - changed:
        entry = tree.entry(path) if path else None
        if entry is not None and entry.kind == "file":
            texts.append(tree.read(path))
    return frozenset(
        line.strip() for data in texts for line in data.decode("utf-8", "replace").split("\n")
    )


def _lost(place: ShownPlace, there: frozenset[str]) -> tuple[ShownKind, int, str] | None:
    """Return the first line of a shown place in no file, or None."""
    for number, line in place.lines:
        text = line.strip()
        if place.what in ("tags", "file"):
            return place.what, number, text
        if not any(map(str.isalnum, text)) or text in there:
            continue
        if text[0] not in "+-" or text[1:].strip() not in there:
            return place.what, number, text
    return None


def _problem(number: int, message: str) -> Problem:
    return Problem(
        "response.beside",
        f"line {number}: {message}",
        "send it as an edit, too, if it is one; what is only shown needs nothing",
        severity="warning",
        line=number,
    )
