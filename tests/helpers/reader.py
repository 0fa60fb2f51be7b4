"""A careful reader of refusals: it writes the next response from the prompt alone.

What it knows besides is what an author knows of its own response: the edits that it sent, and, for
a quote that stands in several places, which definition or line it had in mind.  Of the repository
it sees nothing.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from patchq.core.model.ops import Create, DeleteFile, Rename, Write, halves
from patchq.core.model.values import Edit

_SECTION = re.compile(
    r"^## (?:Error|Warning) `([\w.]+)`(?:, edit `([^`]*)`(?: \(`[^`]*`\))?)?"
    r"(?:, `([^`]*)`)?"
)
_NUMBERED = re.compile(r"^ *(\d+) \| (.*)$")
_NEAREST = re.compile(r"the nearest place is line (\d+)")
_MEANT = re.compile(r"did you mean (\S+)\?")
_CANDIDATE = re.compile(r"^- `([^`]*)` line (\d+)")
_HEADER = re.compile(r"Begin it with\n\n```\n(---\n.*?---)\n```", re.DOTALL)

Choose = Callable[[str, Sequence[int]], int]
"""The line that was meant, of those at which a quote of a path stands."""


@dataclass
class Section:
    """What the prompt says of one problem."""

    code: str
    edit: str | None
    path: str | None
    text: str = ""
    lines: dict[int, str] = field(default_factory=dict)
    places: dict[int, str] = field(default_factory=dict)
    """Lines at which the quote stands, and what to put in front of it to mean that one."""


def read(prompt: str) -> list[Section]:
    """The sections of a prompt."""
    sections: list[Section] = []
    fence, place = "", 0
    quoted: list[str] = []
    for line in prompt.split("\n"):
        if fence:
            if line == fence:
                fence = ""
                if place:
                    sections[-1].places[place] = "".join(f"{one}\n" for one in quoted)
            elif sections and (numbered := _NUMBERED.match(line)) and not place:
                sections[-1].lines[int(numbered[1])] = numbered[2]
            else:
                quoted.append(line)
        elif line.startswith("```"):
            fence, quoted = "`" * (len(line) - len(line.lstrip("`"))), []
        elif section := _SECTION.match(line):
            sections.append(Section(section[1], section[2], section[3]))
            place = 0
        elif line.startswith("## "):
            place = 0
        elif sections:
            sections[-1].text += line + "\n"
            if candidate := _CANDIDATE.match(line):
                place = int(candidate[2])
                sections[-1].places.setdefault(place, "")
    return sections


def answer(prompt: str, sent: Sequence[Edit], choose: Choose = lambda path, lines: lines[0]) -> str:
    """The next response."""
    by_edit: Mapping[str | None, Section] = {one.edit: one for one in read(prompt)}
    header = _HEADER.search(prompt)
    assert header, "the prompt says how to begin"
    blocks = [_block(edit, by_edit.get(edit.id), choose) for edit in sent]
    return "\n\n".join([header[1], *filter(None, blocks)]) + "\n"


def _block(edit: Edit, section: Section | None, choose: Choose) -> str:
    old, new = (_whole(half) for half in halves(edit.op))
    path = edit.path
    if isinstance(edit.op, Rename):
        return f"{path}\n<<<<<<< RENAME\n{edit.op.to}\n>>>>>>> RENAME"
    if section is not None:
        meant = _MEANT.search(section.text)
        if section.code == "path.not_found":
            if not meant:
                return ""
            path = meant[1]
        elif section.code in ("match.ambiguous", "match.count"):
            place = choose(path, sorted(section.places))
            before = section.places[place]
            behind = "" if before else _behind(section, place + old.count("\n"))
            old, new = before + old + behind, before + new + behind
        elif section.code == "match.none":
            old, new = _corrected(section, old, new)
        elif section.code == "path.exists":
            old = "".join(f"{line}\n" for line in section.lines.values())
    if isinstance(edit.op, DeleteFile):
        return f"{path}\n<<<<<<< DELETE\n>>>>>>> DELETE"
    if isinstance(edit.op, Create | Write) and not old:
        return f"{path}\n<<<<<<< SEARCH\n=======\n{new}>>>>>>> REPLACE"
    return f"{path}\n<<<<<<< SEARCH\n{old}=======\n{new}>>>>>>> REPLACE"


def _behind(section: Section, line: int) -> str:
    """The file's lines from there on, as far as they are shown."""
    return "".join(f"{text}\n" for number, text in section.lines.items() if number >= line)


def _whole(half: str) -> str:
    return half + "\n" if half and not half.endswith("\n") else half


def _corrected(section: Section, old: str, new: str) -> tuple[str, str]:
    """The two halves with the file's lines in place of those that were misquoted."""
    nearest = _NEAREST.search(section.text)
    if nearest is None or not section.lines:
        return old, new
    start, quote = int(nearest[1]), old.splitlines(keepends=True)
    numbers = range(start, start + len(quote))
    there = [section.lines[k] + "\n" for k in numbers if k in section.lines]
    fresh, words = new.splitlines(keepends=True), dict[str, str]()
    for tag, a0, a1, b0, b1 in _differences(quote, there):
        at = _only(fresh, quote[a0:a1])
        if at is not None:
            fresh[at : at + a1 - a0] = there[b0:b1]
        if tag == "replace" and a1 - a0 == b1 - b0:
            words |= _misremembered(quote[a0:a1], there[b0:b1], "".join(there))
    text = "".join(fresh)
    for wrong, right in words.items():
        text = re.sub(rf"(?<!\w){re.escape(wrong)}(?!\w)", right.replace("\\", r"\\"), text)
    return "".join(there), text


def _differences(one: Sequence[str], other: Sequence[str]) -> list[tuple[str, int, int, int, int]]:
    codes = difflib.SequenceMatcher(a=one, b=other, autojunk=False).get_opcodes()
    return [code for code in codes if code[0] != "equal"]


def _misremembered(quoted: list[str], found: list[str], there: str) -> dict[str, str]:
    """Words that the quote has and the file has not, each with the one in its place."""
    words = {}
    for one, other in zip(quoted, found, strict=True):
        a, b = re.findall(r"\w+|\W", one), re.findall(r"\w+|\W", other)
        for _, a0, a1, b0, b1 in _differences(a, b):
            wrong, right = "".join(a[a0:a1]), "".join(b[b0:b1])
            if re.fullmatch(r"\w+", wrong) and not re.search(rf"\b{wrong}\b", there):
                words[wrong] = right
    return words


def _only(lines: Sequence[str], part: Sequence[str]) -> int | None:
    """Where the part stands, if it stands once."""
    found = [k for k in range(len(lines)) if part and lines[k : k + len(part)] == part]
    return found[0] if len(found) == 1 else None
