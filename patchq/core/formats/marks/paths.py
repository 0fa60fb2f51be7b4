"""Paths of edits as models write them, bare, decorated, or in a fence's info.

A **path** token is one that the base has, that holds `/`, or that ends in `.` and 1-10 letters or
digits.  A line is read only as far as a path can be long, and dressings are taken off only so many
times, so that no text costs more than its length.

`KnownPaths.meant` is the path that git has: without `./` and a diff's prefix, with `/` for `\\`,
and for an absolute path the rest below the work tree's root.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import lru_cache

from msgspec import Struct

from patchq.core.model.values import Tree
from patchq.core.text.languages import is_language
from patchq.core.text.quote import decode

Known = Callable[[str], bool]  # true if the base has a file of that path

_LONGEST = 1200  # a path has at most 1024 bytes; the rest is dressing
_LAYERS = 8

_ENDING = re.compile(r"\.[A-Za-z0-9]{1,10}\Z")
# Not `e.g`, `i.e` or `3.11`, which prose is full of.
_NO_ABBREVIATION = re.compile(r".*(?:[^.]\.[A-Za-z][A-Za-z0-9]+|[^.]{2}\.[A-Za-z])\Z", re.DOTALL)
_FILE = r"(?:file ?path|file ?name|file|path)"
_LABEL = re.compile(
    rf"{_FILE}\s*:(?!//)\s*|(?P<bold>\*\*|__|\*|_){_FILE}(?:\s*:\s*(?P=bold)|(?P=bold)\s*:)\s*",
    re.IGNORECASE,
)
# A text without dressing round it, as its ends tell.
_BARE = re.compile(
    r"(?!(?i:file|path)|\d{1,3}[.)])[^\s#/*+><;_`\"'\[-](?:.*[^\s>/#:*_`\"'])?",
    re.DOTALL,
)
_LEADING = re.compile(
    r"#{1,6}\s+|//+\s*|#(?!!)\s*|[-*+]\s+|\d{1,3}[.)]\s+|>\s+|<!--\s*|/\*+\s*|;+\s+"
)
_ELEMENT = re.compile(r"<((?:file_?)?(?:path|name)|file)>\s*([^<>]+?)\s*</\1>", re.IGNORECASE)
_TRAILING = re.compile(r"(?<=\s)(?:-->|\*+/|#{1,6})\Z")
_WRAPS = ("**", "__", "`", "*", "_", '"', "'")
_IMPOSSIBLE = re.compile(r"[\s`*<>|\"]")
_AT_LINE = re.compile(r":\d+(?:[-:]\d+)?\Z")  # what cites a line behind the path of a file
_SHORT = 120
_LANGUAGE = re.compile(r"[\w+#.-]*")
PREFIXES = ("a/", "b/")  # what a diff puts before the paths of its two sides
# Those of Windows, and none by which Markdown escapes a lone `_`.
_BACKSLASHES = re.compile(r"\\+(?!_(?!_))")
_DRIVE = re.compile(r"[A-Za-z]:")
_WHOLE = re.compile(rf"[/~\\]|{_DRIVE.pattern}")  # how a path begins that is below no directory
_BETWEEN_WORDS = re.compile(r"[\s`*\"'()\[\]{}<>|,;]+")


class BasePaths(Struct, frozen=True):
    """Questions that can be asked of the base and of the work trees."""

    has: Known
    has_directory: Known = lambda path: False
    # What an absolute path names, as the path below the root of its work tree.
    below: Callable[[str], str | None] = lambda path: None
    text: Callable[[str], str | None] = lambda path: None  # the text of a file that it has
    ignores: Known = lambda path: False  # true if git ignores a path that it has not
    paths: Callable[[], Iterable[str]] = lambda: ()  # all that it has

    def __call__(self, path: str) -> bool:
        return self.has(path)


@dataclass(frozen=True, slots=True, eq=False)
class KnownPaths:
    """Paths that the base, or an earlier edit, has, however a response spells them."""

    base: BasePaths
    made: set[str] = field(default_factory=set)  # paths that edits make
    lost: set[str] = field(default_factory=set)  # prefixes taken off paths that the base has
    cwd: str | None = None  # the directory that relative paths are below, if it is not the root
    _on_lines: dict[tuple[str, int], str | None] = field(default_factory=dict)

    @classmethod
    def of(cls, known: Known, cwd: str | None = None) -> KnownPaths:
        """Return the known paths for a further text of a response."""
        if isinstance(known, KnownPaths):
            return cls(known.base, set(known.made), known.lost, cwd or known.cwd)
        return cls(known if isinstance(known, BasePaths) else BasePaths(known))

    def __call__(self, path: str) -> bool:
        return self.has(self.spelled(path))

    def meant(self, path: str) -> str:
        """Return the path as git has it.

        A path that names nothing stays as it is, but for `./`.
        """
        path = self.spelled(path)
        if ":" in path and not self.has(path):
            plain = _AT_LINE.sub("", path)
            path = plain if self.has(plain) else path
        if path[:2] in PREFIXES and not self.has(path) and self.has(path[2:]):
            self.lost.add(path[:2])
            return path[2:]
        return path

    def on_line(self, line: str) -> str | None:
        """Return the path that a whole line is, decoration aside, or None."""
        # Many edits have the same line above, and a path that is made may be a word before.
        key = line, len(self.made)
        if key not in self._on_lines:
            text = undress(line)[0]
            self._on_lines[key] = text if is_path(text, self) else None
        return self._on_lines[key]

    def has(self, path: str) -> bool:
        """Return whether the base or an earlier edit has the path."""
        return path in self.made or self.base.has(path)

    def spelled(self, path: str) -> str:
        """Return the path without `./`, and with slashes for backslashes.

        An absolute path below the repository becomes relative.  A diff's prefix stays.
        """
        if self.cwd and path and not _WHOLE.match(path):
            path = f"{self.cwd.rstrip('/')}/{path.removeprefix('./')}"
        if "\\" not in path and path[:1] not in (".", "/"):
            return path
        path = undotted(path)
        if path.startswith("/"):
            return self.base.below(path) or path
        slashed = undotted(_BACKSLASHES.sub("/", path))
        whole = slashed.startswith("/") or _DRIVE.match(slashed)
        return path if slashed == path or whole or self._has_backslash(path) else slashed

    def _has_backslash(self, path: str) -> bool:
        end = path.find("/", path.index("\\"))
        part = path if end < 0 else path[:end]
        return self.has(path) or self.base.has(part) or self.base.has_directory(part)


def is_path(token: str, known: Known) -> bool:
    """Return whether a token can only be meant as a path."""
    if not token or token.endswith("/") or len(token) > _LONGEST:
        return False
    if known(token):
        return True
    if ("/" not in token and "." not in token) or _IMPOSSIBLE.search(token) or "://" in token:
        return False
    return "/" in token.strip("/") or bool(_ENDING.search(token))


def undress(line: str) -> tuple[str, bool]:
    """Return the line without its decoration, and whether backticks were removed.

    Decoration is a label, the leader of a comment, and emphasis or backticks round the whole line.
    """
    text = line.strip()
    if len(text) > _LONGEST:
        return text, False
    bare = text[:-1].rstrip() if text[-1:] == ":" else text
    if _BARE.fullmatch(bare):
        return bare, False
    return _recent(text) if len(text) < _SHORT else _undress(text)


def _undress(text: str) -> tuple[str, bool]:
    ticked = False
    for _ in range(_LAYERS):
        before = text
        text = _without(_LEADING, text)
        text = element[2] if (element := _ELEMENT.fullmatch(text)) else text
        text = _TRAILING.sub("", text).strip()
        text = _without(_LABEL, text)
        if text.endswith(":") and len(text) > 1:
            text = text[:-1].rstrip()
        for wrap in _WRAPS:
            inner = text[len(wrap) : -len(wrap)]
            if inner and text.startswith(wrap) and text.endswith(wrap) and wrap not in inner:
                text, ticked = inner.strip(), ticked or wrap == "`"
                break
        if text == before:
            break
    return text, ticked


# What is asked again and again: a fence's info, a line under many fences.
_recent = lru_cache(256)(_undress)


def _without(leader: re.Pattern[str], text: str) -> str:
    match = leader.match(text)
    return text[match.end() :] or text if match else text


def word_line(line: str) -> str | None:
    """Return the single word that a line consists of, such as `Makefile`, or None.

    It may be in backticks.
    """
    text, ticked = undress(line)
    single = bool(text) and len(text) <= _LONGEST and not _IMPOSSIBLE.search(text)
    return text if single and (ticked or text == line.strip()) else None


def mentions_other(line: str, path: str, known: KnownPaths) -> bool:
    """Return whether a line of prose names a file other than `path`."""
    for word in (undress(line)[0], *_BETWEEN_WORDS.split(line)):
        token = known.meant(word if "://" in word else word.partition(":")[0].rstrip(".!?"))
        named = token != path and is_path(token, known)
        if named and (known(token) or f"`{token}`" in line or _NO_ABBREVIATION.match(token)):
            return True
    return False


def undotted(path: str) -> str:
    """Return the path without a leading `./`."""
    while path.startswith("./"):
        path = path[2:]
    return path


def path_of_info(info: str, known: Known) -> str | None:
    """Return the path in a fence's info, or None.

    The info is `python path`, `python:path`, or a path alone.
    A language's name alone never is one.
    """
    info = info.strip().removesuffix(":")
    if not info or info.isalnum():
        return None
    label, colon, rest = info.partition(":")
    if colon and _LANGUAGE.fullmatch(label) and (rest := undress(rest)[0]):
        return rest if known(rest) or not _IMPOSSIBLE.search(rest) else None
    words = info.split(maxsplit=1)
    if not words or (len(words) == 1 and (words[0].isalnum() or is_language(words[0]))):
        return None
    token = undress(words[-1])[0]
    return token if is_path(token, known) and ("=" not in token or known(token)) else None


def base_paths(
    tree: Tree,
    below: Callable[[str], str | None] = lambda path: None,
    ignores: Known = lambda path: False,
) -> BasePaths:
    """Return the paths under which a response may name files of `tree`.

    `below` gives the path that an absolute one names; `ignores` tells the paths that git ignores.
    """

    def kind(path: str) -> str | None:
        entry = tree.entry(path) if path and "\0" not in path else None
        return entry.kind if entry else None

    def has(path: str) -> bool:
        return kind(path) not in (None, "tree")

    def text(path: str) -> str | None:
        return decode(tree.read(path)) if kind(path) == "file" else None

    return BasePaths(has, lambda path: kind(path) == "tree", below, text, ignores, tree.paths)
