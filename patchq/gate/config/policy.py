"""Which paths a batch may change: never, not, or only after a person has looked.

Patterns are gitignore's, compared without case, and the last one that matches decides.  So the
patterns of a configuration extend the defaults, and `!pattern` takes paths out of them again.
The structural rules come first and cannot be taken out: a batch must not edit the gate that
judges it.  Every path is judged twice, as written and under the names that a lenient file system
would give it; the stricter verdict counts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from patchq.core.model.frozen import frozen
from patchq.core.model.names import name_key, spells_git
from patchq.core.model.secret_names import SECRET_NAMES
from patchq.gate.config.reviewed import REVIEW

if TYPE_CHECKING:
    from pathspec import Pattern

STRUCTURAL = (".patchq.yaml", "patchq.yaml", "/.patchq")

RulingCode = Literal["path.denied", "path.review"]


@frozen
class Ruling:
    """A path that is denied, or that asks for review, with the pattern that says so."""

    code: RulingCode
    pattern: str
    structural: bool = False


class Policy:
    """The compiled patterns; `judge` costs some tens of microseconds a path.

    `deny` and `review` are the configuration's own patterns, behind the defaults.  `protected`
    are structural patterns of this installation (a queue or a configuration elsewhere).
    """

    def __init__(
        self,
        deny: Sequence[str] = (),
        review: Sequence[str] = (),
        *,
        protected: Sequence[str] = (),
    ) -> None:
        self._rules: tuple[tuple[_Patterns, RulingCode, bool], ...] = (
            (_compiled((*STRUCTURAL, *protected)), "path.denied", True),
            (_compiled((*SECRET_NAMES, *deny)), "path.denied", False),
            (_compiled((*REVIEW, *review)), "path.review", False),
        )

    def judge(self, path: str) -> Ruling | None:
        """The ruling on a path of the repository; None lets it pass."""
        if spells_git(path):
            return Ruling("path.denied", ".git", structural=True)
        lenient = "/".join(map(name_key, path.split("/")))
        names = list(dict.fromkeys((path.casefold(), lenient)))
        for patterns, code, structural in self._rules:
            if pattern := patterns.match(names):
                return Ruling(code, pattern, structural)
        return None


def pattern_error(pattern: str) -> str | None:
    """Why the pattern cannot be used, or None."""
    if not pattern.strip() or pattern.lstrip().startswith("#"):
        return "holds no pattern"
    try:
        compiled = _read(pattern.casefold())
    except (ValueError, re.error):
        return "is not a gitignore pattern"
    return None if any(p.include is not None for p in compiled) else "matches nothing"


def matcher(patterns: Sequence[str]) -> Callable[[str], bool]:
    """Whether a path matches gitignore patterns."""
    compiled = _compiled(tuple(patterns))
    return lambda path: compiled.match([path.casefold()]) is not None


def ignored_by(lines: Sequence[str], path: str) -> bool:
    """Whether the lines of a `.gitignore` match a path below its directory."""
    return bool(lines) and matcher([line for line in lines if not pattern_error(line)])(path)


def _read(pattern: str) -> Sequence[Pattern]:
    from pathspec import GitIgnoreSpec  # takes long to load, and simple patterns do without

    return GitIgnoreSpec.from_lines([pattern]).patterns


_COMPONENT = re.compile(r"(!?)((?:[^/*?\[\]\\!#\s]|\*(?!\*)|\?)+)(/?)")
"""A pattern for a file (2) at any level, or for a directory (3) alone."""
_ENDING = re.compile(r"\*\.[^*?]+")
_LITERAL = re.compile(r"[^*?/]+")
_BEYOND_STARS = re.compile(r"[\[\]\\]")


class _Patterns:
    """Patterns that `pattern_error` has nothing against.

    Most name a file or a directory at any level: plain names and endings (`*.x`) are looked up, and
    a single expression tells of a name that none of the others has, so that these are compiled
    for few.  Of the rest, most ask for a text that few paths hold.
    """

    def __init__(self, patterns: Sequence[str]) -> None:
        self._texts = patterns
        self._names: dict[str, int] = {}
        self._directories: dict[str, int] = {}
        self._endings: dict[str, int] = {}
        self._globs: list[tuple[int, str, bool]] = []
        self._others: list[tuple[int, Pattern]] = []
        for k, pattern in enumerate(map(str.casefold, patterns)):
            simple = _COMPONENT.fullmatch(pattern)
            if simple is None:
                (compiled,) = _read(pattern)
                self._others.append((k, compiled))
            elif _ENDING.fullmatch(simple[2]) and not simple[3]:
                self._endings[simple[2][1:]] = k
            elif "*" in simple[2] or "?" in simple[2]:
                expression = re.escape(simple[2]).replace(r"\*", ".*").replace(r"\?", ".")
                self._globs.append((k, expression, bool(simple[3])))
            else:
                (self._directories if simple[3] else self._names)[simple[2]] = k
        self._globs.reverse()
        self._others.reverse()
        self._plain = self._names.keys() | self._directories.keys()
        expressions = (glob for _, glob, _ in self._globs)
        self._any_glob = re.compile("|".join(expressions) or r"(?!)", re.DOTALL)
        self._literals = {_literal(self._texts[k].casefold()) for k, _ in self._others}

    def match(self, names: Sequence[str]) -> str | None:
        """The pattern that includes any of the names, each decided by its last match."""
        for name in names:
            last = self._last(name)
            if last >= 0 and not self._texts[last].startswith("!"):
                return self._texts[last]
        return None

    def _last(self, name: str) -> int:
        """The index of the last pattern that matches, -1 for none."""
        parts = name.split("/")
        last = -1 if self._plain.isdisjoint(parts) else self._last_plain(parts)
        if self._endings or self._globs:
            last = max(last, self._last_glob(parts))
        if any(map(name.__contains__, self._literals)):
            for k, pattern in self._others:
                if k < last:
                    break
                if pattern.include is not None and pattern.match_file(name) is not None:
                    return k
        return last

    def _last_plain(self, parts: Sequence[str]) -> int:
        """The same among those that are looked up."""
        last = self._names.get(parts[-1], -1)
        for part in parts[:-1]:
            last = max(last, self._names.get(part, -1), self._directories.get(part, -1))
        return last

    def _last_glob(self, parts: Sequence[str]) -> int:
        """The same among those with a star or a question mark that name one level."""
        last = -1
        for depth, part in enumerate(parts):
            dot = part.find(".")
            while dot >= 0:
                last = max(last, self._endings.get(part[dot:], -1))
                dot = part.find(".", dot + 1)
            if self._any_glob.fullmatch(part):
                is_file = depth == len(parts) - 1
                found = (
                    k
                    for k, glob, of_directory in self._globs
                    if re.fullmatch(glob, part, re.DOTALL) and not (of_directory and is_file)
                )
                last = max(last, next(found, -1))
        return last


def _literal(pattern: str) -> str:
    """A text that every path has which the pattern matches."""
    if _BEYOND_STARS.search(pattern):
        return ""
    runs = _LITERAL.findall(pattern.strip().removeprefix("!"))
    return max((run.strip() for run in runs), key=len, default="")


_compiled = lru_cache(maxsize=64)(_Patterns)
"""The same patterns serve every command of a process, and compiling them costs milliseconds."""
