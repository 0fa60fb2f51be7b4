"""What is to be changed, apart from how a response writes it: the changes between two states.

A `Task` comes from a case of a corpus: its files before and after.  Each of its `Change`s quotes
whole lines that stand once in their file, so whatever form it is written in, it means one place.
"""

from __future__ import annotations

import ast
import difflib
import json
import re
import tomllib
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import PurePosixPath

import yaml

from bench.corpus.cases import Case

CONTEXT = 2
"""Lines of context on either side of a change; more where they are needed to be unique."""
MOST_LINES, MOST_CHANGES = 3000, 6
_SIGNS = re.compile(
    r"`{3}|~{3}|^[<>=+-]{3,}|^\*{3} |^@@|^diff |^(FILE|FIND|REPLACE|### CHANGE)\b|[\u2018-\u201f]"
    r"|\.\.\.|…|\{%|\{\{|<%|<[a-z_]*think|^\s*[{\[]\s*$|&(lt|gt|amp);|\\n|^\s*\d+[|→]",
    re.MULTILINE | re.IGNORECASE,
)
"""What could be taken for a sign of some form."""
_FENCE = re.compile(
    r"^\s*(`{3}|~{3})|^(END )?FILE\b|^\s*([<>=+-])\3{4,8} ?[A-Z]|^\*{3} |^@@|^diff |^(---|\+{3}) "
    r"|old_str|new_str|file_text|searchPattern|^\s*(FIND|REPLACE)",
    re.MULTILINE,
)
"""What ends a whole file's text, or makes it a text about edits."""
_BRACKETS = (("(", ")"), ("[", "]"), ("{", "}"))


@dataclass(frozen=True, slots=True)
class Change:
    """Lines of one file: `old` is None where the file is created, `new` where it is deleted."""

    path: str
    old: str | None
    new: str | None
    at: int = 0
    """The index of the first quoted line."""

    @property
    def replaces(self) -> bool:
        return self.old is not None and self.new is not None


@dataclass(frozen=True)
class Task:
    """Changes of some files, which can be written without a doubt in every form."""

    name: str
    before: Mapping[str, str]
    changes: tuple[Change, ...]

    def result(self) -> dict[str, str]:
        """Every file as it is to be."""
        return applied(self.before, self.changes)

    @cached_property
    def fits_files(self) -> bool:
        """Whether whole files can say it: none is deleted, or has signs of edits."""
        deletes = any(change.new is None for change in self.changes)
        return not deletes and not any(holds_signs(file.new or "") for file in self.whole_files)

    @cached_property
    def whole_files(self) -> tuple[Change, ...]:
        """The changed files, each written as a whole; deleted ones are left out."""
        result = self.result()
        paths = dict.fromkeys(change.path for change in self.changes)
        return tuple(Change(path, None, result[path]) for path in paths if path in result)


def lines_of(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def stands(quote: str, text: str) -> bool:
    """Whether the quoted lines stand in a text, whatever blanks are round each of them."""
    wanted = [line.strip() for line in lines_of(quote)]
    found = [line.strip() for line in lines_of(text)]
    size = len(wanted)
    return any(found[at : at + size] == wanted for at in range(len(found) - size + 1))


def holds_signs(text: str) -> bool:
    """Whether a file's text ends a fence, or may be taken for edits itself."""
    return bool(_FENCE.search(text))


def is_plain(text: str) -> bool:
    """Whether a text holds nothing that a form could take for its own."""
    return not _SIGNS.search(text) and text.isascii() and "\r" not in text and "\t" not in text


def applied(files: Mapping[str, str], changes: Iterable[Change]) -> dict[str, str]:
    """All files after the changes, whose places are those of `files`."""
    result = dict(files)
    lines: dict[str, list[str]] = {}
    for change in sorted(changes, key=lambda change: -change.at):
        if change.old is None:
            result[change.path] = change.new or ""
        elif change.new is None:
            result.pop(change.path, None)
        else:
            own = lines.setdefault(change.path, lines_of(files.get(change.path, "")))
            own[change.at : change.at + len(lines_of(change.old))] = lines_of(change.new)
            result[change.path] = "".join(own)
    return result


def tasks_of(cases: Iterable[Case]) -> list[Task]:
    """The different tasks of a corpus's certain cases, in its order: whole cases first, then one
    change of several, then two and three neighbours of them."""
    sources: dict[object, tuple[Mapping[str, str], list[Change], str]] = {}
    for case in cases:
        state = (frozenset(case.before.items()), frozenset(case.after.items()))
        if case.expect == "exact" and state not in sources and (source := _source(case)):
            sources[state] = (*source, case.id)
    found: dict[object, Task] = {}
    for size in (MOST_CHANGES, 1, 2, 3):
        for before, changes, name in sources.values():
            for number, part in enumerate(_parts(changes, size)):
                task = Task(f"{name}#{size}.{number}", before, part)
                key = (frozenset(before.items()), frozenset(part))
                if key not in found and _is_certain(task):
                    found[key] = task
    return list(found.values())


def _parts(changes: Sequence[Change], size: int) -> Iterator[tuple[Change, ...]]:
    """The whole where `size` is the most that a task may have, else all neighbours, so many."""
    if size == MOST_CHANGES:
        yield tuple(changes)
        return
    for first in range(len(changes) - size + 1):
        yield tuple(changes[first : first + size])


def _source(case: Case) -> tuple[dict[str, str], list[Change]] | None:
    """A case's files and its changes; None for one that is not text or too long."""
    try:
        before = {path: text.decode() for path, text in case.before.items()}
        after = {path: None if t is None else t.decode() for path, t in case.after.items()}
    except UnicodeDecodeError:
        return None
    if any(text.count("\n") > MOST_LINES for text in before.values()):
        return None
    changes: list[Change] = []
    for path, text in after.items():
        old = before.get(path)
        if old is not None and text is not None:
            changes += _changes(path, old, text)
        elif old != text:
            changes.append(Change(path, old, text))
    return before, changes


def _is_certain(task: Task) -> bool:
    """Whether every form can write it, and every reader has to take it."""
    changes = task.changes
    if not 0 < len(changes) <= MOST_CHANGES:
        return False
    result = task.result()
    paths = {change.path for change in changes}
    texts = [files[path] for files in (task.before, result) for path in paths if path in files]
    return (
        all(is_plain(half or "") for change in changes for half in (change.old, change.new))
        and all(text.endswith("\n") for text in texts if text)
        and is_sound(task.before, result)
        and result != task.before
    )


def is_sound(before: Mapping[str, str], after: Mapping[str, str]) -> bool:
    """Whether every file that changes stays as readable as it was; a part of them may not."""
    return all(
        _is_sound(path, before[path], after[path])
        for path in before.keys() & after.keys()
        if before[path] != after[path]
    )


def _is_sound(path: str, old: str | None, new: str | None) -> bool:
    if old is None or new is None:
        return True
    suffix = PurePosixPath(path).suffix
    if suffix in _PARSERS:
        return can_be_parsed(suffix, new) or not can_be_parsed(suffix, old)
    depths = [[text.count(a) - text.count(b) for a, b in _BRACKETS] for text in (old, new)]
    return depths[0] == depths[1]


@lru_cache(maxsize=2048)
def can_be_parsed(suffix: str, text: str) -> bool:
    """Whether the language's own parser takes it: of a language that has one here."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _PARSERS[suffix](text)
    except (ValueError, SyntaxError, yaml.YAMLError):
        return False
    return True


_PARSERS: Mapping[str, Callable[[str], object]] = {
    ".py": ast.parse,
    ".toml": tomllib.loads,
    ".json": json.loads,
    ".yml": lambda text: list(yaml.parse(text)),
    ".yaml": lambda text: list(yaml.parse(text)),
}


def _changes(path: str, old: str, new: str) -> list[Change]:
    """The changes of one file, each with lines that stand once; nothing if that cannot be had."""
    a, b = lines_of(old), lines_of(new)
    bare = [line.strip() for line in a]
    spans: list[list[int]] = []
    for first, end, new_first, new_end in _differences(a, b):
        lead, tail = min(CONTEXT, first), min(CONTEXT, len(a) - end)
        span = [first - lead, end + tail, new_first - lead, new_end + tail]
        _widen(span, bare)
        if spans and span[0] <= spans[-1][1]:
            spans[-1][1], spans[-1][3] = max(span[1], spans[-1][1]), max(span[3], spans[-1][3])
        else:
            spans.append(span)
    changes = [
        Change(path, "".join(a[first:end]), "".join(b[max(new_first, 0) : new_end]), first)
        for first, end, new_first, new_end in spans
    ]
    certain = all((change.old or "").strip() for change in changes)
    return changes if certain and applied({path: old}, changes)[path] == new else []


def _differences(a: Sequence[str], b: Sequence[str]) -> Iterator[tuple[int, int, int, int]]:
    """What differs: a span of the old lines, and one of the new."""
    least = min(len(a), len(b))
    lead = next((i for i in range(least) if a[i] != b[i]), least)
    tail = next((i for i in range(least - lead) if a[-1 - i] != b[-1 - i]), least - lead)
    old, new = a[lead : len(a) - tail], b[lead : len(b) - tail]
    for code in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if code[0] != "equal":
            yield code[1] + lead, code[2] + lead, code[3] + lead, code[4] + lead


def _widen(span: list[int], lines: Sequence[str]) -> None:
    """Take lines round a span of old and new ones until the old ones, without blanks at their ends,
    stand once."""
    while (span[0], span[1]) != (0, len(lines)) and not _stands_once(lines, span[0], span[1]):
        if span[0] > 0:
            span[0], span[2] = span[0] - 1, span[2] - 1
        if span[1] < len(lines):
            span[1], span[3] = span[1] + 1, span[3] + 1


def _stands_once(lines: Sequence[str], first: int, end: int) -> bool:
    run, size = lines[first:end], end - first
    places = (at for at, line in enumerate(lines) if line == lines[first])
    return any(run) and sum(lines[at : at + size] == run for at in places) == 1
