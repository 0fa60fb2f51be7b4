"""What a format is, for everybody who adds one.

A format is one file (or a folder with one) that ends in a `FORMAT`, and one line in
`registry.FORMATS`.  It says on which lines it may begin, how it is read from there, how a model is
told to write it, and what resembles it when it is nearly right.  Everything else follows from that:
which lines are prose at a glance, who is asked on a line and in which order, what `patchq formats`
lists, and what refuses a response that nobody could read as it was meant.

    FORMAT = Format(
        "shout",
        INSTRUCTIONS,
        openings=(Opening(read, starts=("SHOUT",)),),
        signs=(Sign("a shout", r"\\s*(?i:shout)\\b"),),
    )

`read(doc, i)` looks at line `i` (an index) of the document.  It returns the `Piece` that begins
there; None if what stands there is none of its own; and raises `UnreadableEdit`, with the line and
what to send instead, where the format begins and is damaged.  Nothing is guessed: a response of
which a part cannot be read is refused as a whole.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from patchq.formats.document import Document, Piece
from patchq.formats.marks.fences import Fence

Read = Callable[[Document, int], Piece | None]


@dataclass(frozen=True, slots=True)
class Opening:
    """Lines on which a format may begin, and how it is read from there."""

    read: Read
    starts: tuple[str, ...]
    """How such a line begins, blanks aside: regular expressions without branches, each led by one
    letter or class of letters.  A line that begins as no format's does is prose, and nobody is
    asked about it; so the more letters, the faster."""
    may_begin: Callable[[str], bool] | None = None
    """Whether it may begin on a line that starts so, by the line's text alone; it is asked once for
    each different line of a text.  None: always."""
    skips: Callable[[Document, int], bool] | None = None
    """Whether line `i` was read before, in vain: asked in each place, before `read`."""


@dataclass(frozen=True, slots=True)
class FenceOpening:
    """Fence lines on which a format may begin."""

    read: Read
    may_begin: Callable[[Fence], bool] | None = None
    """Whether it may begin on the line, by its text alone.  None: always."""
    turn: int = 1
    """Which of several formats is asked first: the lower turn, then the registry's order.  0 is for
    a fence whose language names the format, 2 for one that nothing else may stand in."""
    quotes: bool = False
    """Whether what is read may as well be a mere excerpt.  It is then asked in a second round, for
    a response in which nobody has found an edit."""


@dataclass(frozen=True, slots=True)
class Sign:
    """What tells, in lines that nobody has taken, that an edit was meant."""

    what: str
    """What the line looks like: "a unified diff"."""
    pattern: str
    """A regular expression for the line's beginning, blanks included."""
    anywhere: bool = False
    """Whether the pattern may begin anywhere on the line."""
    behind: str | None = None
    """A pattern that has to stand before it for the sign to count, on the line or above it."""
    languages: frozenset[str] = frozenset()
    """The languages of the fences in which alone the sign counts; none: it counts everywhere."""


@dataclass(frozen=True, slots=True)
class Format:
    """One form in which edits are written."""

    name: str
    instructions: str
    """What a model is told to write it, a text of whole lines."""
    openings: tuple[Opening, ...] = ()
    fences: tuple[FenceOpening, ...] = ()
    signs: tuple[Sign, ...] = ()
    aliases: tuple[str, ...] = ()
    """Further names by which `patchq formats` knows it."""
