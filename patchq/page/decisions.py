"""Decisions made on the page, as on the command line, and unsent drafts.

Each form carries the commit that the page showed, so that nothing lands unseen.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct, ValidationError, convert, field, json
from msgspec.structs import replace
from starlette.datastructures import ImmutableMultiDict

from patchq.core.model.values import Problem
from patchq.gate.api import Gate
from patchq.gate.errors import Fault, UsageError
from patchq.gate.report.schema import CommentEntry
from patchq.gate.review.decide import Decided
from patchq.gate.review.errands import read_comments

Form = ImmutableMultiDict[str, str]
_OF_COMMENTS = ("path", "side", "from", "line", "words")


def decide(
    gate: Gate, deed: str, seen: Mapping[str, str], form: Form
) -> tuple[list[Decided], list[Problem]]:
    """Make one decision on all changes of `seen`, each at its commit there.

    Returns those that were made, and the problems of the others.
    """
    if deed not in DEEDS or not seen:
        raise UsageError("nothing was decided: choose some proposals", "go back to the inbox")
    made, problems = list[Decided](), list[Problem]()
    for ids in gate.by_target(seen) if deed == "accept" else [[id] for id in seen]:
        shown = {id: seen[id] for id in ids}
        try:
            if deed not in _UNSEEN and not all(shown.values()):
                message = "the form does not say which commit was looked at"
                raise UsageError(message, "open the change again")
            decided = DEEDS[deed](gate, shown, form)
        except Fault as error:
            problems.append(problem(error, ", ".join(ids) if len(seen) > 1 else ""))
            continue
        for one in (*decided.others, decided):
            about = "" if [*seen] == [one.report.id] else f"{one.report.id}: "
            problems += [replace(it, message=about + it.message) for it in one.problems]
            made += [] if one.problems else [one]
    return made, problems


def problem(error: Fault, about: str = "") -> Problem:
    """Return a fault as the page shows it."""
    message = f"{about}: {error.message}" if about else error.message
    return Problem(error.code, message, error.hint)


def _accept(gate: Gate, seen: Mapping[str, str], form: Form) -> Decided:
    only = _edits(form) if "only" in form else None
    # The commit that was looked at has those of its stack for its history.
    return gate.accept(seen, only, stack="stack" in form, seen=seen)


def _choose(gate: Gate, seen: Mapping[str, str], form: Form) -> Decided:
    (id,) = seen
    return gate.preview(id, _edits(form))


def _discard(gate: Gate, seen: Mapping[str, str], form: Form) -> Decided:
    ((id, commit),) = seen.items()
    return gate.discard(id, form.get("why") or None, commit)


def _send_back(gate: Gate, seen: Mapping[str, str], form: Form) -> Decided:
    ((id, commit),) = seen.items()
    general, columns = form.get("why", ""), [form.getlist(name) for name in _OF_COMMENTS]
    placed = [
        (DraftPlace(*place), words) for *place, words in zip(*columns, strict=True) if words.strip()
    ]
    try:
        comments = [place.comment(words) for place, words in placed]
        every = (*read_comments(general.encode()), *comments)
        return gate.send_back(id, every, commit)
    except Fault:
        for place, words in [(WHOLE, general), *placed]:
            keep_draft(gate, id, place, words)
        raise


def _discuss(gate: Gate, seen: Mapping[str, str], form: Form) -> Decided:
    (id,) = seen
    comment, resolves = form.get("comment", ""), "resolves" in form
    decided = gate.discuss(id, comment, form.get("reply", ""), resolves=resolves)
    keep_draft(gate, id, DraftPlace(thread=comment), "")
    return decided


def _take_back(gate: Gate, seen: Mapping[str, str], form: Form) -> Decided:
    (id,) = seen
    before = gate.report(id).review
    decided = gate.undo(id)
    review = decided.report.review
    left = {one.id for one in review.comments} if review else set()
    drafts: dict[DraftPlace, list[str]] = {}
    for one in before.comments if before else ():
        place = WHOLE
        if one.lines and one.path and one.side:
            place = DraftPlace(one.path, one.side, *map(str, one.lines))
        if one.id not in left:
            drafts.setdefault(place, []).append(one.text)
    for place, texts in drafts.items():
        keep_draft(gate, id, place, "\n".join(texts))
    return decided


DEEDS: Mapping[str, Callable[[Gate, Mapping[str, str], Form], Decided]] = {
    "accept": _accept,
    "choose": _choose,
    "discard": _discard,
    "discuss": _discuss,
    "send-back": _send_back,
    "take-back": _take_back,
}
_UNSEEN = ("discuss", "take-back")  # land or take away nothing that may have moved


def _edits(form: Form) -> frozenset[str]:
    if chosen := frozenset(form.getlist("edit")):
        return chosen
    raise UsageError("no edit was chosen", "tick those that are to land, or discard the change")


# ---------------------------------------------------------------- drafts


_KIND = "draft"  # of marks


class DraftPlace(Struct, frozen=True):
    """The lines or thread that a draft is about; by default the whole change."""

    path: str = ""
    side: str = ""
    first: str = field(default="", name="from")
    line: str = ""
    thread: str = ""

    @property
    def lines(self) -> str:
        return self.line if self.first in ("", self.line) else f"{self.first} to {self.line}"

    def comment(self, text: str) -> CommentEntry:
        """Return the text as a comment on the lines; raises `UsageError` for invalid ones."""
        lines = [self.first or self.line, self.line]
        values = {"text": text, "path": self.path, "side": self.side, "lines": lines}
        try:
            return convert(values, CommentEntry, strict=False)
        except ValidationError:
            message = f"{self.path} has no line {self.lines}"
            raise UsageError(message, "comment on a line that is shown") from None


WHOLE = DraftPlace()


def drafts_of(gate: Gate, id: str) -> dict[DraftPlace, str]:
    """Return the drafts on a change, each with its place."""
    kept = gate.marks(_KIND, id).all()
    return {json.decode(key, type=DraftPlace): words.decode() for key, words in kept.items()}


def keep_draft(gate: Gate, id: str, about: DraftPlace, words: str) -> None:
    gate.marks(_KIND, id).keep(json.encode(about).decode(), words)


def clear_drafts(gate: Gate, id: str) -> None:
    marks = gate.marks(_KIND, id)
    marks.remove(*marks.all())
