"""Why an edit has no certain place, whatever form it has, as the problem to report."""

from __future__ import annotations

from dataclasses import replace

from patchq.model.names import nearest
from patchq.model.ops import (
    Anchored,
    InParagraph,
    InsertAt,
    PatchHunk,
    Replace,
    ReplaceText,
    halves,
)
from patchq.model.values import Candidate, Edit, Problem
from patchq.resolve import candidates, diagnose, ladder
from patchq.resolve.diagnose import Scene
from patchq.resolve.ladder import Missed
from patchq.resolve.search import Place
from patchq.text.lines import BLANKS

_MOST = 20


def problem(edit: Edit, scene: Scene, missed: Missed) -> Problem:
    """The problem for an edit that was missed."""
    op = edit.op
    if missed.why == "count":
        return _count(edit, scene, missed)
    if isinstance(op, Anchored):
        return _anchor(edit, op, scene, missed)
    if isinstance(op, InsertAt | InParagraph) or (isinstance(op, PatchHunk) and not op.old):
        what = missed.detail or "nothing in the file is what it describes"
        if missed.why == "ambiguous":
            lines = ", ".join(str(place.start + 1) for place in missed.places)
            what = f"it may mean several places: lines {lines}"
        code = "match.ambiguous" if missed.why == "ambiguous" else "match.none"
        return _told(edit, scene, code, what, "quote the lines next to the change")
    if missed.why == "unwritable" and not missed.places:
        return _told(
            edit, scene, "match.none", missed.detail, "write the new lines as the file has them"
        )
    whole = map(_ended, halves(op))
    return diagnose.problem(replace(edit, op=Replace(*whole)), scene, missed)


def _told(edit: Edit, scene: Scene, code: str, what: str, hint: str) -> Problem:
    return Problem(
        code,
        f"edit {edit.id} has no certain place in {scene.path}: {what}",
        hint,
        edit=edit.id,
        path=scene.path,
    )


def _count(edit: Edit, scene: Scene, missed: Missed) -> Problem:
    stated = isinstance(edit.op, ReplaceText) and edit.op.stated
    asked = f"exactly {edit.op.count}" if isinstance(edit.op, ReplaceText) else "other ones"
    return Problem(
        "match.count" if stated else "match.none",
        f"the text of edit {edit.id} occurs {missed.detail} times in {scene.path}, and the edit "
        f"asks for {asked}",
        "state the number that there is, or quote more of what surrounds the place",
        edit=edit.id,
        path=scene.path,
        candidates=_places(edit, scene),
    )


def _places(edit: Edit, scene: Scene) -> tuple[Candidate, ...]:
    """Where a text stands that was counted, as for a quote of whole lines if it is one."""
    old, new = map(_ended, halves(edit.op))
    quote = Replace(old, new)
    found = ladder.resolve(scene.text, quote, scene.enabled) if old else None
    if isinstance(found, Missed) and found.why == "ambiguous" and len(found.places) > 1:
        tried = scene.search is not None
        return candidates.candidates(
            scene.path, scene.text, quote, found, scene.enabled, tried=tried
        )
    first = old.split("\n", 1)[0].encode("utf-8", "surrogateescape")
    lines = [k for k, line in enumerate(scene.text.contents) if first and first in line]
    return tuple(
        candidates.bare(scene.path, scene.text, Place(k, k + 1, [], [])) for k in lines[:_MOST]
    )


def _ended(half: str) -> str:
    return half if half.endswith("\n") or not half else half + "\n"


def _anchor(edit: Edit, op: Anchored, scene: Scene, missed: Missed) -> Problem:
    said = (op.selected or op.name or "").strip()
    if missed.why == "unwritable":
        return _told(edit, scene, "anchor.ambiguous", missed.detail, "quote the lines to change")
    if missed.why == "ambiguous" and missed.detail == "scope":
        return _told(
            edit,
            scene,
            "anchor.ambiguous",
            "its content may take the place of the header alone or of the whole definition",
            'say `"scope": "line"` or `"scope": "definition"`',
        )
    if missed.why == "ambiguous":
        lines = ", ".join(str(place.start + 1) for place in missed.places)
        told = _told(
            edit,
            scene,
            "anchor.ambiguous",
            f"the anchor {said!r} stands on several lines: {lines}",
            "choose an anchor that occurs once, or state its `line`",
        )
        found = (candidates.bare(scene.path, scene.text, place) for place in missed.places[:_MOST])
        return replace(told, line=missed.places[0].start + 1, candidates=tuple(found))
    there = [line.strip(BLANKS).decode("utf-8", "replace") for line in scene.text.contents]
    known = op.candidates if missed.why == "invented" and op.candidates else there
    likely = nearest(said, dict.fromkeys(line for line in known if line))
    invented = missed.why == "invented"
    return _told(
        edit,
        scene,
        "anchor.invented" if invented else "anchor.none",
        f"the anchor {said!r} is " + ("none of the candidates" if invented else "not in the file"),
        f"did you mean {likely!r}?" if likely else "choose an anchor that the file has",
    )
