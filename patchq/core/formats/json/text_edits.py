"""Indexed and contextual edits: edits of a text by the numbers of its occurrences, or by what
stands round it.

    {"edits": [{"id": "edit-1", "type": "modification", "file": "README.md", "target": "v1.0",
                "replacement": "v2.0", "occurrences": [1, 3], "confidence": 0.9,
                "reason": "the new version", "cascades": ["edit-2"]}], "summary": "…"}

An id names an edit for its reviewer and for other edits.  `cascades` names those that depend on
this one, `dependsOn` those that this one depends on: an edit is cancelled when one that it depends
on is applied.  A contextual edit with the id of an indexed one is its backup.

    {"contextualEdits": [{"id": "ctx-1", "type": "modification", "file": "README.md",
       "searchPattern": {"before": "uses ", "target": "v1.0", "after": " for login"},
       "replacement": "v2.0", "confidence": 0.9, "reason": "the new version"}]}

Instead of its neighbours a pattern may state a predicate over the paragraph.  What a response adds
to narrow the search and is not understood would be ignored in silence, so it is unreadable; a hint
at the line only decides between equals and may say nothing.
"""

from __future__ import annotations

import re

from patchq.core.formats.format import Format
from patchq.core.formats.json.members import JsonPlace, Members, whole
from patchq.core.model.ops import CONTEXTUAL, INDEXED, InContext, InParagraph, Occurrences
from patchq.core.model.predicate import PredicateError
from patchq.core.model.predicate import parse as parse_predicate
from patchq.core.model.values import Edit
from patchq.core.text.jsonish import Node

INDEXED_INSTRUCTIONS = """\
Answer with one JSON object:

{
  "edits": [
    {
      "id": "edit-1",
      "type": "modification",
      "file": "path/to/file.md",
      "target": "the text to change",
      "replacement": "the text that takes its place",
      "occurrences": [1, 3],
      "confidence": 0.95,
      "reason": "what this edit is for"
    }
  ],
  "summary": "what all of them are for"
}

`occurrences` counts where the target stands in the file as it is now, from 1; leave it out for a
target that stands there once. `type` is `modification`, `deletion` (no `replacement`) or `addition`
(`afterText`, `occurrence` and `insertion` instead). Copy all texts exactly.

Group related changes under one id: the same change at several places is one edit with all its
`occurrences`, which people accept or leave out as one. `confidence`, from 0 to 1, says how clear
the context makes the change; edits below the threshold are left out. An edit that must not be made
when another one is names it as `"dependsOn": "edit-1"`. For a complex change, whose places are
hard to count, give both forms: beside the indexed edit, in the same object, a contextual one with
the same id as its backup, which is taken where the indexed one has no place:

  "contextualEdits": [
    {
      "id": "edit-1",
      "type": "modification",
      "file": "path/to/file.md",
      "searchPattern": {
        "before": "the text right before it",
        "target": "the text to change",
        "after": "the text right behind it"
      },
      "replacement": "the text that takes its place"
    }
  ]
"""

_OCCURRENCES_HINT = "send `target`, `replacement` and `occurrences`; see `patchq formats indexed`"
CONTEXTUAL_INSTRUCTIONS = """\
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
every match, so that related changes stand under one id; otherwise there must be one. `confidence`,
from 0 to 1, says how clear the context makes the change; edits below the threshold are left out.
"""

TYPES = ("modification", "deletion", "addition")
_PATTERN_KEYS = {"before", "target", "after", "paragraph", "maxdistance", "sentences"}
_RANGE = re.compile(
    r"(\d{1,9})\s*(?:-|–|—|\.{2,3}|:|to|and|through|until)\s*(?:lines?\s*)?(\d{1,9})(?!\d)",  # noqa: RUF001
    re.IGNORECASE,
)
_NUMBER = re.compile(r"\d+")
_PATTERN_HINT = (
    "send `searchPattern` with `before`, `target` and `after`; see `patchq formats contextual`"
)


def read_indexed(node: Node, place: JsonPlace, default_path: str | None) -> Edit:
    """One indexed edit, without its relations to others.  Raises `UnreadableEdit`."""
    members = Members(node, place)
    kind = _kind_of(members)
    key = "aftertext" if kind == "addition" else "target"
    if (other := "target" if kind == "addition" else "aftertext") in members:
        raise members.error(
            f"expected no {members.written[other]!r} with `{kind}`", _OCCURRENCES_HINT
        )
    target = members.text(key)
    if not target:
        what = "the text that it goes behind as `afterText`" if kind == "addition" else "`target`"
        raise members.error(f"expected {what}, found none", _OCCURRENCES_HINT)
    new = _new_text(members, kind)
    op = Occurrences(target, new, _occurrences(members), insert=kind == "addition")
    return members.edit(INDEXED, op, default_path, members.id())


def _occurrences(members: Members) -> tuple[int, ...] | None:
    """The stated occurrences, each once, in the order of the text."""
    node = members.one("occurrences", "occurrence")
    if node is None:
        return None
    items = node.value if isinstance(node.value, list) else [node]
    numbers = [whole(item.value) or 0 for item in items]
    if not numbers or min(numbers) < 1:
        raise members.place.error(
            node, "expected occurrences as whole numbers from 1", "count from the file's start"
        )
    return tuple(sorted(set(numbers)))


def read_contextual(node: Node, place: JsonPlace, default_path: str | None) -> Edit:
    """One contextual edit, without its relations to others.  Raises `UnreadableEdit`."""
    members = Members(node, place)
    pattern = members.inner("searchPattern", _PATTERN_HINT)
    unknown = sorted(pattern.keys() - _PATTERN_KEYS)
    names = ", ".join(repr(pattern.written[key]) for key in unknown)
    counted = "occurrence" in members or "occurrences" in members
    pattern.check(
        _PATTERN_HINT, (unknown, f"expected nothing else in `searchPattern`, found {names}")
    )
    members.check(_PATTERN_HINT, (counted, "expected no occurrences in a contextual edit"))
    kind = _kind_of(members)
    op = (_in_paragraph if "paragraph" in pattern else _in_context)(members, pattern, kind)
    return members.edit(CONTEXTUAL, op, default_path, members.id())


def _kind_of(members: Members) -> str:
    """The type of an indexed or contextual edit; where it is missing, what it holds tells."""
    kind = members.text("type")
    if kind is None:
        kinds = {"insertion": "addition", "replacement": "modification"}
        kind = next((kinds[key] for key in kinds if key in members), None)
    if kind not in TYPES:
        names = ", ".join(f"`{name}`" for name in TYPES)
        raise members.error(f"expected `type` to be one of {names}, found {kind!r}", _PATTERN_HINT)
    return kind


def _new_text(members: Members, kind: str) -> str:
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
            raise pattern.error(
                f"expected `paragraph` beside {pattern.written[key]!r}", _PATTERN_HINT
            )
    before, after = pattern.text("before") or "", pattern.text("after") or ""
    target = pattern.text("target") or ""
    adds = kind == "addition"
    pattern.check(
        _PATTERN_HINT,
        (adds and target, "expected no `target` in an addition"),
        (adds and not before + after, "expected the text before or after the addition"),
        (not adds and not target, "expected the text to change as `target`, found none"),
    )
    every, window = members.flag("all"), _window_of(members)
    return InContext(before, target, after, _new_text(members, kind), every, window)


def _in_paragraph(members: Members, pattern: Members, kind: str) -> InParagraph:
    pattern.check(
        _PATTERN_HINT,
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
        _PATTERN_HINT,
        (not target and not sentences, "expected `target`, or the number of `sentences`"),
        (target and sentences, "expected either `target` or `sentences`, found both"),
    )
    return InParagraph(
        predicate,
        target or None,
        _new_text(members, kind),
        pattern.number("maxdistance", least=0),
        sentences,
        members.flag("all"),
        _window_of(members),
    )


def _window_of(members: Members) -> tuple[int, int] | None:
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


INDEXED_FORMAT = Format(INDEXED, INDEXED_INSTRUCTIONS)
CONTEXTUAL_FORMAT = Format(CONTEXTUAL, CONTEXTUAL_INSTRUCTIONS)
