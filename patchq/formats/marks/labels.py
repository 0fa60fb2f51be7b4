"""The lines that label the parts of a response: `FILE:`, `END FILE`, `CHANGE`, `FIND:`,
`REPLACE WITH:`.

Case, spacing and dressing of the words are free, so ordinary prose comes close to them: `sure` says
whether a line can only be a label.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from patchq.formats.marks.lines import fence, next_line
from patchq.formats.marks.paths import Known, as_meant, undress

_FILE = re.compile(
    r" {0,3}(?P<dress>(?:#{1,6}[ \t]+)?(?P<bold>\*\*|__)?)FILE"
    r"(?:[ \t]*:|(?P=bold)[ \t]*:)(?P<rest>.*)",
    re.DOTALL,
)
_END_FILE = re.compile(r" {0,3}(?:#{1,6}[ \t]+)?(?:\*\*)?END FILE(?:[ \t]*:.*|\*\*)?[ \t\r]*")
_NOTED = re.compile(r"(.+)[ \t]\(([^()]*)\)", re.DOTALL)
_NOTE = re.compile(
    r"(?:(?:a|the|new|newly|file|full|whole|complete|entire|existing|create[ds]?|add(?:ed|s)?|"
    r"modif(?:y|ied)|update[ds]?|change[ds]?|edit(?:ed|s)?|replace[ds]?|rewritten)\b[ \t]*)+",
    re.IGNORECASE,
)
_CHANGE = re.compile(
    r" {0,3}(?:#{1,6}[ \t]*)?(?P<bold>\*\*|__)?(?P<word>CHANGE)(?:"
    r"[ \t]*#?\d+(?:[ \t]*(?:/|of)[ \t]*\d+)?(?:\*\*|__)?[ \t]*"
    r"(?::|[.)](?=\s|\Z)|[-\u2013\u2014](?=\s)|\Z)"
    r"|(?:\*\*|__)?[ \t]*:)(?P<rest>.*)",
    re.IGNORECASE | re.DOTALL,
)
_HALF = re.compile(
    r"(?:\d{1,3}[.)][ \t]*)?(?:(?P<find>FIND)|REPLACE(?:[\s_-]*WITH)?)[ \t]*(?P<colon>:?)",
    re.IGNORECASE,
)
_CROWDED = re.compile(
    r" {0,3}(?:[-*+>][ \t]+|#{1,6}[ \t]*)?[*_]{0,2}"
    r"(?:(?P<find>FIND)|REPLACE(?:[ \t_-]*WITH)?)[*_]{0,2}[ \t]*(?:\(|:[*_]{0,2}[ \t]*\S)"
)
_MAY_LABEL = re.compile(r"[\s\d.)#*_`>+-]*[CcFfRr]")
_LONGEST_HALF = 40
_INDENTED = ("    ", "\t")


@dataclass(frozen=True, slots=True)
class FileLine:
    """A `FILE:` line in capitals; `dressed` as a heading or in bold."""

    rest: str
    dressed: bool


@dataclass(frozen=True, slots=True)
class ChangeLine:
    """A `CHANGE` line; `shouted`: in capitals."""

    description: str
    shouted: bool


@dataclass(frozen=True, slots=True)
class HalfLabel:
    """The label of a block's half; what is not `sure` may be prose."""

    finds: bool
    sure: bool


def file_line(line: str) -> FileLine | None:
    """The line as `FILE: path`, or None."""
    match = _FILE.match(line)
    if match is None:
        return None
    return FileLine(_rest(match), dressed=bool(match["dress"]))


def path_behind(label: FileLine, known: Known) -> str | None:
    """The one path that the rest of a `FILE:` line is; None if there is none, or more than it."""
    rest = label.rest
    if not known(rest):
        rest = undress(rest)[0]
        if (noted := _NOTED.fullmatch(rest)) and not known(rest):  # `path (new file)`
            rest = undress(noted[1])[0] if _NOTE.fullmatch(noted[2]) else ""
    return as_meant(rest, known) or None


def is_file_end(line: str) -> bool:
    """Whether the line is `END FILE`."""
    return _END_FILE.fullmatch(line) is not None


def change_line(line: str) -> ChangeLine | None:
    """The line as `CHANGE 1: description`, or None."""
    match = _CHANGE.match(line.rstrip())
    if match is None:
        return None
    return ChangeLine(_rest(match), shouted=match["word"].isupper())


def _rest(match: re.Match[str]) -> str:
    """What stands behind a label, without the emphasis that ends there."""
    bold = match["bold"] or ""
    return match["rest"].strip().removeprefix(bold).removesuffix(bold).strip()


def half_label(lines: Sequence[str], index: int) -> HalfLabel | None:
    """The line at `index` as the label of a half, alone on its line, or None.

    Without its colon it has to stand over a fence, and in capitals, bold or as a heading; without
    a capital, over a fence (`find:` is also a key in YAML).
    """
    match = _half(lines[index])
    if match is None:
        return None
    text, core = lines[index].strip(), match.string
    shouted = core.isupper()
    fenced = _stands_over_fence(lines, index)
    if not fenced and (core.islower() or not match["colon"]):
        return None
    if not match["colon"] and not shouted and core == text:
        return None
    return HalfLabel(finds=bool(match["find"]), sure=fenced or shouted)


@lru_cache(256)
def _dressed_half(text: str) -> re.Match[str] | None:
    core = text.lstrip("#").replace("*", "").replace("__", "").replace("`", "").strip()
    return _HALF.fullmatch(core)


def _half(line: str) -> re.Match[str] | None:
    """The label of a half that the line is but for its dressing, by its text alone."""
    text = line.strip()
    if not text or len(text) > _LONGEST_HALF or line.startswith(_INDENTED):
        return None
    return _dressed_half(text)


def may_label(line: str) -> bool:
    """Whether the line may be the label of a change or of a half, by its text alone."""
    return _MAY_LABEL.match(line) is not None and bool(
        _half(line) or change_line(line) or _CROWDED.match(line)
    )


def is_crowded_label(lines: Sequence[str], index: int) -> bool:
    """Whether text stands on the line behind what is a label otherwise: in capitals, over a fence
    or over the label of the other half."""
    match = _CROWDED.match(lines[index])
    if match is None:
        return False
    below = next_line(lines, index)
    if below == len(lines) or not match["find"]:
        return _stands_over_fence(lines, index)
    other = _CROWDED.match(lines[below])
    half = half_label(lines, below)
    pairs = bool((other and not other["find"]) or (half and not half.finds))
    return pairs or _stands_over_fence(lines, index)


def _stands_over_fence(lines: Sequence[str], index: int) -> bool:
    below = next_line(lines, index)
    mark = fence(lines[below]) if below < len(lines) else None
    return mark is not None and not mark.closing
