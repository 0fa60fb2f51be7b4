"""Decisions on the page, by the functions of the command line.

Each form carries the commit that the page showed, so that nothing lands unseen.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from patchq.core.model.values import Problem
from patchq.gate.api import Gate
from patchq.gate.errors import Fault, UsageError
from patchq.gate.review import comment_file
from patchq.gate.review.comment_file import DraftComment
from patchq.gate.review.decide import Decided

Fields = Sequence[tuple[str, str]]  # a form's names and values, in its order


class FormResult(Struct, frozen=True):
    """The reasons that nothing was done, or the effect of the choice of edits."""

    problems: tuple[Problem, ...] = ()
    written: str = ""
    """The comments that were not taken, as plain lines: what a person wrote is not lost."""
    choice: Decided | None = None
    """What a choice of edits would land."""


def take(gate: Gate, id: str, deed: str, fields: Fields) -> FormResult | None:
    """Do what the form asks for; None when it is done."""
    try:
        if deed not in _DEEDS:
            raise UsageError(f"there is no {deed} of a change", "go back to the change")
        return _DEEDS[deed](gate, id, fields)
    except Fault as error:
        problem = Problem(error.code, error.message, error.hint)
        return FormResult((problem,), "\n".join(_written(fields)))


def decide_each(gate: Gate, deed: str, fields: Fields) -> FormResult | None:
    """Decide on the chosen proposals alike; None when that is done for each.

    What one has against it keeps none of the others; what is wrong with the machine ends it.
    """
    words = _one(fields, "all" if deed == "send-back" else "why").replace("\r\n", "\n").strip()
    chosen = [value.partition(" ") for name, value in fields if name == "chosen"]
    if not chosen or (deed == "send-back" and not words):
        what = "what is to be different" if chosen else "which proposals are meant"
        return FormResult((Problem("usage", f"nothing was decided: say {what}", None),), words)
    seen = {id: commit for id, _, commit in chosen if commit}
    if deed == "accept":
        return _accepted(gate, seen)
    problems: list[Problem] = []
    for number, (id, _, commit) in enumerate(chosen, 1):
        try:
            problems += _decided(gate, deed, id, words, commit or None).problems
        except Fault as error:
            left = ", ".join(other for other, _, _ in chosen[number:])
            over = not isinstance(error, UsageError) and bool(left)
            message = f"{id}: {error.message}" + (f"; left as they were: {left}" if over else "")
            problems.append(Problem(error.code, message, error.hint))
            if over:
                break
    return FormResult(tuple(problems), words) if problems else None


def _accepted(gate: Gate, seen: Mapping[str, str]) -> FormResult | None:
    """Accept the proposals that were seen, those of one target as one train."""
    trains: dict[str | None, list[str]] = {}
    for id in seen:
        trains.setdefault(gate.report(id).target, []).append(id)
    problems: list[Problem] = []
    for ids in trains.values():
        try:
            decided = gate.accept(ids, seen={id: seen[id] for id in ids})
        except Fault as error:
            problems.append(Problem(error.code, error.message, error.hint))
        else:
            problems += [
                replace(problem, message=f"{one.report.id}: {problem.message}")
                for one in (*decided.others, decided)
                for problem in one.problems
            ]
    return FormResult(tuple(problems)) if problems else None


def _decided(gate: Gate, deed: str, id: str, words: str, commit: str | None) -> Decided:
    if deed == "discard":
        return gate.discard(id, words or None, commit)
    if deed == "send-back":
        return gate.send_back(id, [DraftComment(words)], commit)
    raise UsageError(f"there is no {deed} of several changes", "go back to the inbox")


def _placed(fields: Fields) -> list[dict[str, Any]]:
    """The comments on lines: each with its place before it."""
    found, place = [], dict[str, Any]()
    first: int | str = ""
    for name, value in fields:
        if name in ("path", "side"):
            place[name] = value
        elif name == "from":
            first = _number(value)
        elif name == "line":
            place["line"] = last = _number(value)
            place.pop("lines", None)
            if isinstance(first, int) and isinstance(last, int) and first < last:
                place["lines"] = [first, last]
            first = ""
        elif name == "words" and value.strip():
            found.append({**place, "text": value.replace("\r\n", "\n")})
    return found


def _number(value: str) -> int | str:
    return int(value) if value.isdecimal() and len(value) < 10 else value


def _written(fields: Fields) -> Iterator[str]:
    """Yield the comments as plain lines."""
    yield from (value for name, value in fields if name == "all" and value.strip())
    for one in _placed(fields):
        old = "-" if one.get("side") == "base" else ""
        words = one["text"].replace("\n", "\n    ")
        yield f"{one.get('path')}:{old}{one.get('line')}: {words}"


def _accept(gate: Gate, id: str, fields: Fields) -> FormResult | None:
    only = tuple(sorted(_edits(fields))) if _one(fields, "chosen") else None
    return _ended(gate.accept([id], only, seen={id: _seen(fields)}))


def _accept_stack(gate: Gate, id: str, fields: Fields) -> FormResult | None:
    # The commit that was looked at has those below it for its history.
    return _ended(gate.accept([id], stack=True, seen={id: _seen(fields)}))


def _choose(gate: Gate, id: str, fields: Fields) -> FormResult | None:
    decided = gate.preview(id, _edits(fields))
    if decided.problems:
        return FormResult(decided.problems)
    return FormResult(choice=decided)


def _discard(gate: Gate, id: str, fields: Fields) -> FormResult | None:
    return _ended(gate.discard(id, _one(fields, "why") or None, _seen(fields)))


def _send_back(gate: Gate, id: str, fields: Fields) -> FormResult | None:
    general = "\n".join(value for name, value in fields if name == "all")
    drafts = list(comment_file.plain(general.replace("\r\n", "\n")))
    if placed := _placed(fields):
        drafts += comment_file.read(json.dumps(placed).encode())
    return _ended(gate.send_back(id, drafts, _seen(fields)))


def _discuss(gate: Gate, id: str, fields: Fields) -> FormResult | None:
    comment, words = _one(fields, "comment"), _one(fields, "reply").replace("\r\n", "\n")
    decided = gate.discuss(id, comment, words, resolves=bool(_one(fields, "resolves")))
    gate.marks("draft").put(place_of(thread=comment), "", id)
    return _ended(decided)


def _take_back(gate: Gate, id: str, fields: Fields) -> FormResult | None:
    """Take the last decision back; the comments of a request become drafts again."""
    before = gate.report(id).review
    after = gate.undo(id).report.review
    left = {one.id for one in after.comments} if after else set()
    marks, general = gate.marks("draft"), list[str]()
    for one in before.comments if before else ():
        if one.id in left:
            continue
        if one.lines and one.path and one.side:
            place = place_of(one.path, one.side, str(one.lines[0]), str(one.lines[1]))
            marks.put(place, one.text, id)
        else:
            general.append(f"edit {one.edit}: {one.text}" if one.edit else one.text)
    marks.put(place_of(), "\n".join(general), id)
    return None


def place_of(
    path: str = "", side: str = "", first: str = "", line: str = "", thread: str = ""
) -> str:
    """Return the key of the draft of a comment or a reply; of nothing, that of general words."""
    return json.dumps({"path": path, "side": side, "from": first, "line": line, "thread": thread})


_DEEDS: Mapping[str, Callable[[Gate, str, Fields], FormResult | None]] = {
    "accept": _accept,
    "accept-stack": _accept_stack,
    "choose": _choose,
    "discard": _discard,
    "discuss": _discuss,
    "send-back": _send_back,
    "take-back": _take_back,
}


def _ended(decided: Decided) -> FormResult | None:
    return FormResult(decided.problems) if decided.problems else None


def _one(fields: Fields, name: str) -> str:
    return next((value for key, value in fields if key == name), "")


def _seen(fields: Fields) -> str:
    """The commit that was looked at; `UsageError` where the form does not say."""
    if commit := _one(fields, "commit"):
        return commit
    raise UsageError("the form does not say which commit was looked at", "open the change again")


def _edits(fields: Fields) -> frozenset[str]:
    chosen = frozenset(value for key, value in fields if key == "edit")
    if chosen:
        return chosen
    raise UsageError("no edit was chosen", "tick those that are to land, or discard the change")
