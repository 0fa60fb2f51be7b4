"""The interface of a format.

A format is one file (or a folder with one) that ends in a `FORMAT`, and one line in
`registry.FORMATS`.  It says on which lines it may begin, how it is read from there, how a model is
taught to write it, and what resembles it when it is nearly right.  Everything else follows:
which lines are prose at a glance, who is asked on a line and in which order, what `patchq formats`
lists, and what refuses a response that cannot be read as it was meant.

    FORMAT = Format(
        "shout",
        INSTRUCTIONS,
        openings=(Opening(read, starts=("SHOUT",)),),
        signs=(Sign("a shout", r"\\s*(?i:shout)\\b"),),
    )

`read(doc, i)` looks at line `i` (an index) of the document.  It returns the `Piece` that begins
there; None if what is there is none of its own; and raises `UnreadableEdit`, with the line and
what to send instead, where the format begins and is damaged.  Nothing is guessed: a response of
which a part cannot be read is refused as a whole.

The formats are asked line by line whether one of theirs begins there; the first that says so takes
its lines, which no other format looks at.  All other lines are prose.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import InitVar, dataclass, field
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from patchq.core.formats.marks.fences import Fence, Fences
from patchq.core.formats.marks.paths import Known, KnownPaths, mentions_other
from patchq.core.model.values import Edit, Problem, ShownPlace

N = TypeVar("N")
SEND_AGAIN = "send the whole response again; if it was cut, send fewer changes at once"


# ---------------------------------------------------------------- what it is given


@dataclass
class Document:
    """The lines (without `\\n`) of a text, and the state of its reading."""

    lines: list[str]
    base: InitVar[Known]  # true if the base has a path; `BasePaths` know more
    default_path: str | None = None
    # True if the front matter says that a path line over a fence replaces the file.
    whole_files: bool = False
    path: str | None = None  # the path of the last edit, for one that names none
    changed: set[str] = field(default_factory=set)  # the paths of all edits so far
    low: int = 0  # the first line (index) behind the last edit: headings are not sought before it
    # True if the base has a path, or an earlier edit makes it.
    known: KnownPaths = field(init=False)
    _notes: dict[object, Any] = field(default_factory=dict)
    # All fence lines, and which are open outside of edits, as far as the reader has come.
    fences: Fences = field(init=False)

    def __post_init__(self, base: Known) -> None:
        self.fences = Fences(self.lines)
        self.known = KnownPaths.of(base)

    def notes(self, kind: Callable[[Document], N]) -> N:
        """Return the document's notes of one kind, created on first use."""
        if kind not in self._notes:
            self._notes[kind] = kind(self)
        notes: N = self._notes[kind]
        return notes

    def carried_path(self, between: Iterable[str]) -> str | None:
        """Return the path for an edit that names none, or None.

        It is that of the edit before, or the front matter's; None if lines between name another.
        """
        path = self.path or self.default_path
        others = path and any(mentions_other(line, path, self.known) for line in between)
        return None if others else path


# ---------------------------------------------------------------- what it returns, or raises


class FenceUnderPath(Struct, frozen=True):
    """A fence under a line that is only a path.

    `at` are its lines (1-based).
    It is a file in a response without other edits.  `flaw` is what refuses it as one.
    """

    at: tuple[int, int]
    path: str
    text: str
    language: str
    guarded: bool  # true if an existing file must keep most of its lines
    flaw: UnreadableEdit | None = None


class Piece(Struct, frozen=True):
    """Edits read by a format, and the index of the first line behind them.

    The edits have `at`, and ids only if the response gives some. `top` is the index of the first
    line that belongs to them, where a heading above them does.
    """

    edits: tuple[Edit, ...]
    end: int
    top: int | None = None
    summary: str | None = None
    warnings: tuple[Problem, ...] = ()
    author: str | None = None  # who wrote the change, `Name <address>`, where a mail's head says so
    shown: tuple[ShownPlace, ...] = ()  # the lines of shell calls that change files
    # What may be a file as well as an excerpt; then there are no edits.
    under_path: FenceUnderPath | None = None


@dataclass
class Reading:
    """Edits and prose of a text.

    Edits without ids of their own have none yet.
    """

    edits: list[Edit] = field(default_factory=list)
    prose: str = ""
    summary: str | None = None
    author: str | None = None
    warnings: list[Problem] = field(default_factory=list)
    sections: int = 0  # the last number of a section of theirs
    # What is beside the edits and may have been meant as one.
    shown: list[ShownPlace] = field(default_factory=list)
    # The paths of the base that the prose names, where something is shown.
    named: list[str] = field(default_factory=list)
    # Fences under a mere path: files, if there is no edit of another format.
    under_paths: list[FenceUnderPath] = field(default_factory=list)

    def add(self, part: Piece | Reading, at: tuple[int, int] | None = None) -> None:
        """Add a part that is further on in the response.

        `at` is its place if its text is inside JSON.
        """
        behind = self.sections
        for edit in part.edits:
            section = edit.section and behind + edit.section
            if section > self.sections:
                self.sections = section
            changes = at or section != edit.section
            self.edits.append(edit.but(at=at, section=section) if changes else edit)
        self.summary = self.summary or part.summary
        self.author = self.author or part.author
        self.warnings += part.warnings
        self.shown += _moved(part.shown, at) if at else part.shown
        if isinstance(part, Reading):
            self.named += part.named
            self.under_paths += [replace(one, at=at or one.at) for one in part.under_paths]


def _moved(places: Iterable[ShownPlace], at: tuple[int, int]) -> list[ShownPlace]:
    return [ShownPlace(one.what, tuple((at[0], line) for _, line in one.lines)) for one in places]


class UnreadableEdit(Exception):
    """The response cannot be read.

    `index` is the line's, counted from 0, `column` from 1.
    """

    def __init__(
        self,
        index: int,
        message: str,
        hint: str,
        code: str = "response.unreadable_edit",
        column: int = 1,
    ) -> None:
        super().__init__(message)
        place = f"line {index + 1}, column {column}: "
        self.problem = Problem(code, place + message, hint, line=index + 1)

    @classmethod
    def of(cls, problem: Problem) -> UnreadableEdit:
        """Return the refusal for a known problem, which is an error from here on."""
        error = cls((problem.line or 1) - 1, problem.message, problem.hint or "", problem.code)
        error.problem = replace(problem, severity="error")
        return error

    @classmethod
    def cut(cls, index: int, message: str, hint: str = SEND_AGAIN) -> UnreadableEdit:
        """Return the refusal of a response that ends too early.

        What begins on line `index` is incomplete.
        """
        return cls(index, message, hint, "response.truncated")

    def written_as(self, format: str | None) -> UnreadableEdit:
        """Name the form of an edit that cannot be read meanwhile."""
        return self.of(replace(self.problem, format=self.problem.format or format or None))


@contextmanager
def written_as(format: str) -> Iterator[None]:
    """Name the form of an edit that cannot be read meanwhile."""
    try:
        yield
    except UnreadableEdit as error:
        raise error.written_as(format) from None


# ---------------------------------------------------------------- what it is


Read = Callable[[Document, int], Piece | None]


class Opening(Struct, frozen=True):
    """Lines on which a format may begin, and how it is read from there."""

    read: Read
    # How such a line begins, blanks aside: regular expressions. A line that begins as no format's
    # does is prose, and no format is asked about it; so the more letters, the faster.
    starts: tuple[str, ...]
    # True if it may begin on a line that starts so, by the line's text alone; it is asked once for
    # each different line of a text. None: always.
    may_begin: Callable[[str], object] | None = None


class FenceOpening(Struct, frozen=True):
    """Fence lines on which a format may begin."""

    read: Read
    # True if it may begin on the line, by its text alone. None: always.
    may_begin: Callable[[Fence], object] | None = None
    # Which of several formats is asked first: the lower turn, then the registry's order. 0 is for a
    # fence whose language names the format, 2 for one that nothing else may stand in.
    turn: int = 1


class Sign(Struct, frozen=True):
    """Pattern of lines that resemble an edit, sought in lines that no format took."""

    what: str  # what the line looks like: "a unified diff"
    pattern: str  # a regular expression for the line's beginning, blanks included
    anywhere: bool = False  # true if the pattern may begin anywhere on the line
    # The languages of the fences in which alone the sign counts; none: it counts everywhere.
    languages: frozenset[str] = frozenset()


_EXAMPLE = re.compile(r"path/to/\w+\.\w+")


class Format(Struct, frozen=True):
    """One form in which edits are written."""

    name: str
    instructions: str  # what a model needs to write it, a text of whole lines
    openings: tuple[Opening, ...] = ()
    fences: tuple[FenceOpening, ...] = ()
    signs: tuple[Sign, ...] = ()

    def instructions_for(self, path: str | None) -> str:
        """Return the instructions with `path` as the path of the example.

        A model might repeat the example's own path, so words take its place where `path` is None or
        is not plain.
        """
        plain = path is not None and re.fullmatch(r"[\w./+@-]+", path)
        return _EXAMPLE.sub(path if plain and path else "the file's path", self.instructions)
