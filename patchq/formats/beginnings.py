"""What may begin on a line, by its text alone.

Most lines are prose, and what stands around them does not make them anything else.  A text has few
lines in many copies, or many that differ and are longer; so the reader asks once for each different
line, and only the forms that may begin there, which look around, are asked in each place.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from patchq.formats.document import Document, Piece
from patchq.formats.envelope.thinking import closes_thought, opens_thought
from patchq.formats.find_replace import reading as find_replace
from patchq.formats.json import edits as json_edits
from patchq.formats.marks.blocks import is_suspect, opening
from patchq.formats.marks.fences import Fence, fence
from patchq.formats.marks.json_keys import is_member
from patchq.formats.marks.labels import file_line, is_file_end, may_label
from patchq.formats.unified_diff import reading as unified_diff
from patchq.formats.unified_diff.fences import is_of_diff
from patchq.formats.v4a import reading as v4a
from patchq.formats.whole_file import reading as whole_file

Read = Callable[[Document, int], Piece | None]

PROSE = re.compile(
    r"\s*(?:(?!Bi|[Cc][Hh]|di|E|[Ff][Ii`*_]|Fr|[Rr][Ee`*_])[^\W\d_]"
    r"|[)(}=/.,;:!?]|[^{\[]?\s*\Z)"
)
"""A line on which nothing begins: no marker, label, header or fence starts so."""
_JSON = re.compile(r"\s*[{\[]")


@dataclass(frozen=True, slots=True)
class Beginning:
    """What may begin on a line."""

    forms: tuple[Read, ...] = ()
    """The forms that may begin there, in the order in which they are asked."""
    mark: Fence | None = None
    """The line as a fence line."""
    json: bool = False
    """Whether it begins with what may be an object or a list, so that nothing else begins there."""
    marker: bool = False
    """Whether it may be a marker of SEARCH/REPLACE blocks, or a tag of a thinking block."""


NOTHING = Beginning()
_AS_JSON = Beginning((json_edits.read,), json=True)


def begins(line: str) -> Beginning:
    """What may begin on a line; `NOTHING` itself for prose."""
    if PROSE.match(line):
        return NOTHING
    if _JSON.match(line):
        return _AS_JSON
    if mark := fence(line):
        return Beginning(tuple(_forms_of_fence(line, mark)), mark)
    forms = tuple(_forms(line))
    marker = is_suspect(line) or bool(opening(line)) or opens_thought(line) or closes_thought(line)
    return Beginning(forms, marker=marker) if forms or marker else NOTHING


def _forms_of_fence(line: str, mark: Fence) -> Iterator[Read]:
    """The forms that may begin on a fence line."""
    if is_of_diff(mark):
        yield unified_diff.read
    yield json_edits.read_fenced
    if may_label(line):  # behind the ticks
        yield find_replace.read
    if whole_file.is_named(mark):
        yield whole_file.read


def _forms(line: str) -> Iterator[Read]:
    """The forms that may begin on a line that is no fence's and begins with no bracket."""
    if v4a.may_begin(line):
        yield v4a.read
    if unified_diff.may_begin(line):
        yield unified_diff.read
    if is_member(line):
        yield json_edits.refuse_member
    if may_label(line):
        yield find_replace.read
    if file_line(line) or is_file_end(line):
        yield whole_file.read
