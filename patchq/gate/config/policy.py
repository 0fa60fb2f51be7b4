"""Paths that a batch may not change, and those that it may only change with a person's consent.

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
from typing import TYPE_CHECKING

from patchq.core.model.names import name_key, spells_git
from patchq.core.model.secret_names import SECRET_NAMES
from patchq.gate.config import unseen

if TYPE_CHECKING:
    from pathspec import Pattern

STRUCTURAL = (".patchq.yaml", "patchq.yaml", "/.patchq")


class Policy:
    """The compiled patterns; a path costs some tens of microseconds.

    `deny` and `review` are the configuration's own patterns, behind the defaults.
    """

    def __init__(self, deny: Sequence[str] = (), review: Sequence[str] = ()) -> None:
        self._structural = _compiled(STRUCTURAL)
        self._deny = _compiled((*SECRET_NAMES, *deny))
        self._review = _compiled(tuple(review))

    def denied(self, path: str) -> str | None:
        """The reason why a path of the repository may not change, as a clause, or None."""
        if spells_git(path):
            return "patchq never touches `.git`"
        for name in _names(path):
            if pattern := self._structural.match(name):
                return f"patchq never touches `{pattern}`"
        pattern = next(filter(None, map(self._deny.match, _names(path))), None)
        return f"`paths.deny` has the pattern `{pattern}`" if pattern else None

    def taken_out(self, path: str) -> bool:
        """True where the configuration says that the path asks for no review."""
        return all(self._review.last(name).startswith("!") for name in _names(path))

    def review(self, path: str, *, existed: bool) -> str | None:
        """The reason why a file at a path asks for review, as a clause, or None.

        `existed`: a file stood there before.
        """
        for name in _names(path):
            own = self._review.last(name)
            if own and not own.startswith("!"):
                return f"`paths.review` has the pattern `{own}`"
            if own:
                continue
            for reason, patterns in unseen.NAMED.items():
                if _compiled(patterns).match(name):
                    return reason
            if doubt := unseen.doubt(name, existed=existed):
                return doubt
        return None


def _names(path: str) -> list[str]:
    """The path as written, and as a lenient file system has it; both without case."""
    lenient = "/".join(map(name_key, path.split("/")))
    return list(dict.fromkeys((path.casefold(), lenient)))


def pattern_error(pattern: str) -> str | None:
    """Return the reason why a pattern cannot be used, or None."""
    if not pattern.strip() or pattern.lstrip().startswith("#"):
        return "holds no pattern"
    try:
        compiled = _read(pattern.casefold())
    except (ValueError, re.error):
        return "is not a gitignore pattern"
    return None if any(p.include is not None for p in compiled) else "matches nothing"


def matcher(patterns: Sequence[str]) -> Callable[[str], bool]:
    """Return a predicate: true for paths that match gitignore patterns."""
    compiled = _compiled(tuple(patterns))
    return lambda path: compiled.match(path.casefold()) is not None


def ignored_by(lines: Sequence[str], path: str) -> bool:
    """True if the lines of a `.gitignore` match a path below its directory."""
    return bool(lines) and matcher([line for line in lines if not pattern_error(line)])(path)


def _read(pattern: str) -> Sequence[Pattern]:
    from pathspec import GitIgnoreSpec  # takes long to load, and simple patterns do without

    return GitIgnoreSpec.from_lines([pattern]).patterns


# Below any directory (1), or at the root (2), components (3), of a directory (4) alone.
_SIMPLE = re.compile(
    r"!?(\*\*/)?(/?)"
    r"((?:[^/*?\[\]\\!#\s]|\*(?!\*)|\?)+(?:/(?:[^/*?\[\]\\!#\s]|\*(?!\*)|\?)+)*)(/?)"
)


class _Patterns:
    """Patterns that `pattern_error` has nothing against.

    A single expression tells of the paths that no simple one has, which are most.
    """

    def __init__(self, patterns: Sequence[str]) -> None:
        self._rules: list[tuple[str, str, Pattern | None]] = []
        for pattern in reversed(patterns):
            folded = pattern.casefold()
            if (simple := _SIMPLE.fullmatch(folded)) is None:
                self._rules.append((pattern, "", _read(folded)[0]))
                continue
            anywhere, rooted, name, directory = simple.groups()
            expression = re.escape(name).replace(r"\*", "[^/]*").replace(r"\?", "[^/]")
            if anywhere or not (rooted or "/" in name):
                expression = f"(?:.*/)?{expression}"
            expression += "/.*" if directory else "(?:/.*)?"
            self._rules.append((pattern, expression, None))
        simple_ones = (expression for _, expression, _ in self._rules if expression)
        self._any = re.compile("|".join(simple_ones) or r"(?!)", re.DOTALL)

    def match(self, name: str) -> str | None:
        """The pattern that includes a path, by the last one that matches it."""
        last = self.last(name)
        return None if last.startswith("!") else last or None

    def last(self, name: str) -> str:
        """The last pattern that matches a path in lower case, "" for none."""
        any_simple = self._any.fullmatch(name) is not None
        for text, expression, pattern in self._rules:
            if pattern is not None:
                if pattern.include is not None and pattern.match_file(name) is not None:
                    return text
            elif any_simple and re.fullmatch(expression, name, re.DOTALL):
                return text
        return ""


# The same patterns serve every command of a process, and compiling them costs milliseconds.
_compiled = lru_cache(maxsize=64)(_Patterns)
