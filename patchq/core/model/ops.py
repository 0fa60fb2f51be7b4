"""The operations of edits, with one frozen class for each kind.

Texts are `str` as the response has them; which bytes they mean is decided when they are matched.
"""

from __future__ import annotations

import ast
import re
from typing import Literal

from msgspec import Struct

CONTEXTUAL = "contextual"
INDEXED = "indexed"  # the forms that decide which of two edits counts, by their names
DIFF = "unified_diff"  # the form whose paths are those of the base, whatever else the batch renames


class Replace(Struct, frozen=True):
    """Replace the whole lines `old` with the lines `new`.

    Each line ends with a newline; an empty text is no line.
    """

    old: str
    new: str


class Create(Struct, frozen=True, eq=False):
    """Make a new file that holds `text`.

    `quoting` is true if the path is in a form that also names existing files.
    """

    text: str
    quoting: bool = False
    executable: bool = False

    def __eq__(self, other: object) -> bool:
        # The form in which the path stood is no part of what is done.
        if not isinstance(other, Create):
            return False
        return (self.text, self.executable) == (other.text, other.executable)

    def __hash__(self) -> int:
        return hash((self.text, self.executable))


class DeleteFile(Struct, frozen=True):
    """Remove the file.

    `old` is its text, whole lines, where the response quotes it, and `before` the id (hex) of its
    content, where the response gives one.  With `link` it is a symbolic link.
    """

    old: str | None = None
    before: str | None = None
    link: bool = False


class Rename(Struct, frozen=True):
    """Give the file the path `to`."""

    to: str


class ReplaceText(Struct, frozen=True):
    """Replace the characters `old` between `before` and `after`.

    They are replaced in `count` places, or in all where that is None.  `at` are the numbers of the
    places meant (1-based, left to right, without overlap).  A `window` (first and last line,
    1-based) tells the one place that begins in it from others.
    """

    old: str
    new: str
    count: int | None = 1
    stated: bool = False
    takes_line_end: bool = False
    at: tuple[int, ...] | None = None
    before: str = ""
    after: str = ""
    window: tuple[int, int] | None = None


class InParagraph(Struct, frozen=True):
    """Replace text in the paragraphs that satisfy `predicate`.

    `target` is at most `distance` characters from one of the predicate's literals.  Without a
    target, the `sentences` sentences that hold a literal are replaced.
    """

    predicate: str
    target: str | None
    new: str
    distance: int | None = None
    sentences: int | None = None
    every: bool = False
    window: tuple[int, int] | None = None


class Anchored(Struct, frozen=True):
    """Insert or replace at an anchor.

    The anchor is the line `selected` (indentation and trailing blanks aside), or the definition of
    `name`.  `candidates` are those that the response was to choose from.
    """

    action: Literal["insert_before", "insert_after", "replace", "delete"]
    kind: Literal[
        "function_definition", "class_definition", "line_pattern", "import_statement", "decorator"
    ]
    selected: str | None
    name: str | None
    content: str
    line: int | None = None
    scope: Literal["line", "definition"] | None = None
    candidates: tuple[str, ...] | None = None


class InsertAt(Struct, frozen=True):
    """Insert `text`, whole lines, behind line `line` (0: before the first)."""

    line: int
    text: str


class PatchHunk(Struct, frozen=True):
    """One hunk of a diff, or chunk of a V4A patch.

    It replaces the lines `old` with the lines `new`.
    `line` is the stated first line of `old` (1-based), a hint; `scopes` are lines behind each other
    and before the hunk; `at_end`: the old lines are the file's last.  `final_newline` says how the
    new text ends if the hunk changes the file's last line.  `bare` are the two halves with context
    lines read as they stand, for a patch that lost their leading space.
    """

    old: str
    new: str
    line: int | None = None
    scopes: tuple[str, ...] = ()
    at_end: bool = False
    final_newline: bool = True
    bare: tuple[str, str] | None = None


class Write(Struct, frozen=True):
    """Make the file hold `text`, whether it exists or not.

    `quoting` is true if the form may also be a mere excerpt, so that an existing file is replaced
    only if it keeps most of its lines.
    """

    text: str
    quoting: bool = False


class WriteBytes(Struct, frozen=True):
    """Make the file hold `data`.

    `before` is the id (hex) of its content until then, None for a new file, which may be
    `executable`.  With `link` it is a symbolic link, and the data is where it leads; if it is
    `turned`, a file was there before that, or a link before a file.
    """

    data: bytes
    before: str | None
    executable: bool = False
    link: bool = False
    turned: bool = False

    @property
    def from_link(self) -> bool:
        """Return whether the file before is a symbolic link."""
        return self.link != self.turned


class SetMode(Struct, frozen=True):
    """Make the file executable, or plain."""

    executable: bool


Op = (
    Replace
    | ReplaceText
    | InParagraph
    | Anchored
    | InsertAt
    | PatchHunk
    | Write
    | Create
    | DeleteFile
    | Rename
    | WriteBytes
    | SetMode
)

MAKING = (Create, Write, WriteBytes, Rename)  # the kinds that make a file at a path


WHOLE = (*MAKING, DeleteFile, SetMode)  # the kinds that say something of a file as a whole


_QUOTING = (Replace, PatchHunk)


def halves(op: Op) -> tuple[str, str]:
    """Return the text that an edit replaces, and the text in its place.

    Both may be empty.
    """
    if isinstance(op, _QUOTING):  # most are, and every edit is asked several times
        return op.old, op.new
    if isinstance(op, ReplaceText):
        return op.before + op.old + op.after, op.before + op.new + op.after
    match op:
        case InParagraph(_, target, new):
            return target or "", new
        case Anchored(_, _, selected, name, content):
            return selected or name or "", content
        case InsertAt(_, text) | Write(text) | Create(text):
            return "", text
        case DeleteFile() | Rename() | WriteBytes() | SetMode():
            return "", ""


# ---------------------------------------------------------------- predicates of paragraphs

# The predicate of a contextual edit, which selects its paragraphs.
#
#     contains('REST API') && (contains("version") || !contains('legacy'))
#
# `!` binds before `&&`, `&&` before `||`, as Python's `not`, `and` and `or` do; so Python reads it,
# with the number of its text in place of each `contains`.
_TOKEN = re.compile(
    r"(&&|\|\||!|\(|\))"
    r"|contains\s*\(\s*(?:'((?:[^'\\]|\\.)+)'|\"((?:[^\"\\]|\\.)+)\")\s*\)"
    r"|\s+",
    re.DOTALL,
)
_ESCAPE = re.compile(r"\\(['\"\\])")
_WORDS = {"&&": " and ", "||": " or ", "!": " not ", "(": "(", ")": ")"}


class PredicateError(ValueError):
    """Error in a predicate."""


class Predicate(Struct, frozen=True):
    """A predicate as an expression over the numbers of its texts."""

    texts: tuple[str, ...]
    root: ast.expr

    @property
    def literals(self) -> tuple[str, ...]:
        """The texts of its `contains`, each once, from left to right."""
        return tuple(dict.fromkeys(self.texts))

    def matches(self, text: str) -> bool:
        """Return whether `text` satisfies the predicate, with case."""
        return _holds(self.root, [one in text for one in self.texts])


def parse_predicate(text: str) -> Predicate:
    """Return the predicate in `text`.

    Raises `PredicateError`.
    """
    texts, words, end = list[str](), list[str](), 0
    for found in _TOKEN.finditer(text):
        sign, quoted = found[1], found[2] or found[3]
        if found.start() != end:
            break
        end = found.end()
        words.append(f" {len(texts)} " if quoted else _WORDS.get(sign, ""))
        texts += [_ESCAPE.sub(r"\1", quoted)] if quoted else []
    if end != len(text):
        raise PredicateError(f"nothing is known that begins as its column {end + 1} does")
    try:
        root = ast.parse("".join(words).strip(), mode="eval").body
        _holds(root, [False] * len(texts))
    except (SyntaxError, RecursionError, MemoryError, TypeError):
        raise PredicateError("its signs do not fit together") from None
    return Predicate(tuple(texts), root)


def _holds(node: ast.expr, known: list[bool]) -> bool:
    """Return the value of an expression.

    Raises `TypeError` if it is not one of a predicate.
    """
    match node:
        case ast.Constant(int(number)):
            return known[number]
        case ast.UnaryOp(ast.Not(), operand):
            return not _holds(operand, known)
        case ast.BoolOp(op, values):
            found = [_holds(value, known) for value in values]
            return all(found) if isinstance(op, ast.And) else any(found)
        case _:
            raise TypeError(node)
