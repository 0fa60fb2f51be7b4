"""Contextual edits: edits of a text that is found by what stands round it.

    {"contextualEdits": [{"id": "ctx-1", "type": "modification", "file": "README.md",
       "searchPattern": {"before": "uses ", "target": "v1.0", "after": " for login"},
       "replacement": "v2.0", "confidence": 0.9, "reason": "the new version"}]}

Instead of its neighbours a pattern may state a predicate over the paragraph.  What a response adds
to narrow the search and is not understood would be ignored in silence, so it is unreadable; a hint
at the line only decides between equals and may say nothing.
"""

from __future__ import annotations

import re

from patchq.formats.format import Format
from patchq.formats.json.members import JsonPlace, Members, whole
from patchq.model.ops import CONTEXTUAL, InContext, InParagraph
from patchq.model.predicate import PredicateError
from patchq.model.predicate import parse as parse_predicate
from patchq.model.values import Edit
from patchq.text.jsonish import Node

NAME = CONTEXTUAL
INSTRUCTIONS = """\
Answer with one JSON object:

{
  "contextualEdits": [
    {
      "id": "ctx-1",
      "type": "modification",
      "file": "path/to/file.md",
      "searchPattern": {
        "before": "the text right before it",
        "target": "the text to change",
        "after": "the text right behind it"
      },
      "replacement": "the text that takes its place",
      "confidence": 0.95,
      "reason": "what this edit is for",
      "lineHint": "line 45-50"
    }
  ]
}

`type` is `modification`, `deletion` (no `replacement`) or `addition` (no `target`; the text is the
`insertion`). Copy all texts exactly. Instead of `before` and `after`, `"paragraph": "contains('x')
&& !contains('y')"` seeks the target in such paragraphs, `maxDistance` characters from `x` at most;
without a target, `"sentences": 2` names the two sentences that hold `x`. `"all": true` changes
every match; otherwise there must be one.
"""

TYPES = ("modification", "deletion", "addition")
_PATTERN_KEYS = {"before", "target", "after", "paragraph", "maxdistance", "sentences"}
_RANGE = re.compile(
    r"(\d{1,9})\s*(?:-|–|—|\.{2,3}|:|to|and|through|until)\s*(?:lines?\s*)?(\d{1,9})(?!\d)",  # noqa: RUF001
    re.IGNORECASE,
)
_NUMBER = re.compile(r"\d+")
_HINT = "send `searchPattern` with `before`, `target` and `after`; see `patchq formats contextual`"


def read_edit(node: Node, place: JsonPlace, default_path: str | None) -> Edit:
    """One contextual edit, without its relations to others.  Raises `UnreadableEdit`."""
    members = Members(node, place)
    pattern_node = members.get("searchpattern")
    if pattern_node is None or not isinstance(pattern_node.value, dict):
        raise members.error("expected an object as `searchPattern`", _HINT)
    pattern = Members(pattern_node, place)
    unknown = sorted(pattern.keys() - _PATTERN_KEYS)
    names = ", ".join(repr(pattern.written[key]) for key in unknown)
    counted = "occurrence" in members or "occurrences" in members
    pattern.check(_HINT, (unknown, f"expected nothing else in `searchPattern`, found {names}"))
    members.check(_HINT, (counted, "expected no occurrences in a contextual edit"))
    kind = kind_of(members)
    op = (_in_paragraph if "paragraph" in pattern else _in_context)(members, pattern, kind)
    return members.edit(NAME, op, default_path, members.id())


def kind_of(members: Members) -> str:
    """The type of an indexed or contextual edit; where it is missing, what it holds tells."""
    kind = members.text("type")
    if kind is None:
        kinds = {"insertion": "addition", "replacement": "modification"}
        kind = next((kinds[key] for key in kinds if key in members), None)
    if kind not in TYPES:
        names = ", ".join(f"`{name}`" for name in TYPES)
        raise members.error(f"expected `type` to be one of {names}, found {kind!r}", _HINT)
    return kind


def new_text(members: Members, kind: str) -> str:
    """The text that comes in: the replacement, nothing in a deletion, the insertion."""
    key, other = (
        ("insertion", "replacement") if kind == "addition" else ("replacement", "insertion")
    )
    if other in members:
        raise members.error(f"expected no `{other}` in {_a(kind)}", f"send `{key}`")
    text = members.text(key)
    if kind == "deletion":
        if text:
            raise members.error(
                "expected no `replacement` in a deletion", "to replace, send a `modification`"
            )
        return ""
    if text is None:
        raise members.error(f"expected `{key}` in {_a(kind)}, found none", f"send `{key}`")
    return text


def _a(kind: str) -> str:
    return f"an {kind}" if kind == "addition" else f"a {kind}"


def _in_context(members: Members, pattern: Members, kind: str) -> InContext:
    for key in ("maxdistance", "sentences"):
        if key in pattern:
            raise pattern.error(f"expected `paragraph` beside {pattern.written[key]!r}", _HINT)
    before, after = pattern.text("before") or "", pattern.text("after") or ""
    target = pattern.text("target") or ""
    adds = kind == "addition"
    pattern.check(
        _HINT,
        (adds and target, "expected no `target` in an addition"),
        (adds and not before + after, "expected the text before or after the addition"),
        (not adds and not target, "expected the text to change as `target`, found none"),
    )
    every, window = members.flag("all"), window_of(members)
    return InContext(before, target, after, new_text(members, kind), every, window)


def _in_paragraph(members: Members, pattern: Members, kind: str) -> InParagraph:
    pattern.check(
        _HINT,
        (
            "before" in pattern or "after" in pattern,
            "expected either `paragraph` or `before` and `after`, found both",
        ),
        (kind == "addition", "expected `before` and `after` round an addition"),
    )
    predicate = pattern.text("paragraph") or ""
    try:
        parse_predicate(predicate)
    except PredicateError as error:
        raise pattern.place.error(
            pattern["paragraph"],
            f"the predicate cannot be read at its column {error.column}: {error}",
            "write it like `contains('x') && !contains('y')`",
        ) from None
    target, sentences = pattern.text("target"), pattern.number("sentences")
    pattern.check(
        _HINT,
        (not target and not sentences, "expected `target`, or the number of `sentences`"),
        (target and sentences, "expected either `target` or `sentences`, found both"),
    )
    return InParagraph(
        predicate,
        target or None,
        new_text(members, kind),
        pattern.number("maxdistance", least=0),
        sentences,
        members.flag("all"),
        window_of(members),
    )


def window_of(members: Members) -> tuple[int, int] | None:
    """The lines (first, last) that a hint states, or None if it states no certain ones.

    It is a number, or a text like "approximately line 45-50".
    """
    node = members.one("linehint")
    value = node.value if node is not None else None
    value = value if (number := whole(value)) is None else str(number)
    if not isinstance(value, str):
        return None
    numbers = _NUMBER.findall(value)
    if (stated := _RANGE.search(value)) and len(numbers) == 2:
        first, last = int(stated[1]), int(stated[2])
    elif len(numbers) == 1 and len(numbers[0]) < 10:
        first = last = int(numbers[0])
    else:
        return None
    return (first, last) if 1 <= first <= last else None


FORMAT = Format(NAME, INSTRUCTIONS)
