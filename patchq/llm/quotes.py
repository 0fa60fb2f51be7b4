"""Edits whose quote stands nowhere, corrected with a model's help: certain, or left as they are.

The order is fixed.  The program has tried everything by then, escapes included.  The model is asked
for the snippet that the quote means; then, only if there is one, for the replacement that fits it.
Nothing is believed that the program cannot check: `places` decides whether the snippet may be
meant, and `merge` makes the replacement, which the model's has to agree with.  The batch is then
planned anew by the same resolver, which checks uniqueness, counts, paths, overlaps and syntax as
ever.  So a model, whatever it answers, can turn a refusal into what a careful merge of the two
texts gives, or into nothing at all; then the first refusal stands, word for word.

It is all or nothing: where an edit stays refused, the batch gains nothing by others' corrections.
"""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass, replace
from functools import partial

from patchq.llm import merge, places
from patchq.llm.questions import Questioner, excerpt, question, quoted
from patchq.llm.repair import PlannedBatch, Repair
from patchq.model.ops import InContext, Occurrences, Op, PatchHunk, Replace, ReplaceText, halves
from patchq.model.values import Correction, Edit, Problem, Tree
from patchq.plan import guards
from patchq.report import secrecy
from patchq.text.lines import Text

_LOG = logging.getLogger("patchq")
OLD, NEW = "corrected_target_snippet", "corrected_new_string"
"""The keys of the two answers."""
_MOST_ASKED = 10
"""With more quotes missed than these, the response was made for another text."""
MOST_QUOTED = 8_000
"""Characters of a quote, or of a replacement, that are still worth a question."""


@dataclass(frozen=True, slots=True)
class Miss:
    """An edit to ask about: its two halves, and the file as text with `\\n` for line ends."""

    edit: Edit
    old: str
    new: str
    text: str
    quote: places.MissedQuote


def correct(batch: PlannedBatch, questioner: Questioner) -> Repair | None:
    """Ask about the edits that the refused plan has no place for; None if the refusal stands."""
    missed = _misses(batch)
    corrected = questioner.each(partial(_corrected, questioner), missed)
    edits = {edit.id: edit for edit in corrected if edit is not None}
    if not missed or len(edits) < len(missed):
        return None
    again = batch.replanned(edits)
    if not _holds(again, edits):
        _LOG.info("the model's snippets are in the file, and the batch is refused with them too")
        return None
    return Repair(again, tuple(one for miss in missed for one in _corrections(miss, edits)))


def _misses(batch: PlannedBatch) -> list[Miss]:
    """The edits to ask about: none, unless correcting quotes can save the whole batch."""
    errors = [problem for problem in batch.plan.problems if problem.severity == "error"]
    if not 0 < len(errors) <= _MOST_ASKED:
        return []
    by_id = {edit.id: edit for edit in batch.edits}
    edits = [(by_id.get(problem.edit or ""), problem) for problem in errors]
    found = [edit and _miss(edit, problem, batch.tree) for edit, problem in edits]
    return [] if None in found else [miss for miss in found if miss]


def _miss(edit: Edit, problem: Problem, tree: Tree) -> Miss | None:
    """What to ask about a refused edit; None if it is refused for another reason than its quote, or
    quotes nothing, or means more than one place, or holds a secret, which no model is to see, or
    its file is no text of the base."""
    entry = tree.entry(edit.path)
    old, new = halves(edit.op)
    if problem.code != "match.none" or not _quotes_once(edit.op):
        return None
    if entry is None or entry.kind != "file" or not old.strip():
        return None
    if max(len(old), len(new)) > MOST_QUOTED or "\r" in old or secrecy.in_text(f"{old}\n{new}", ""):
        return None
    try:
        text = Text(tree.read(edit.path)).flat[0].decode()
        f"{edit.path}{old}{new}".encode()
    except UnicodeError:
        return None
    near = problem.line - 1 if problem.line is not None else None
    whole_lines = isinstance(edit.op, Replace | PatchHunk)
    return Miss(edit, old, new, text, places.MissedQuote(old, near, whole_lines))


def _quotes_once(op: Op) -> bool:
    match op:
        case Replace() | PatchHunk() | ReplaceText(count=1) | InContext(every=False):
            return True
        case Occurrences(at=None | (1,)):
            return True
        case _:
            return False


def requoted(op: Op, old: str, new: str) -> Op:
    """The operation with another quote, which stands once, and another replacement."""
    match op:
        case Replace() | ReplaceText():
            return replace(op, old=old, new=new)
        case PatchHunk():
            return replace(op, old=old, new=new, bare=None)
        case _:
            return ReplaceText(old, new)


def _holds(batch: PlannedBatch, corrected: dict[str, Edit]) -> bool:
    """Whether the batch can be applied, each corrected edit to the letter, and its files parse."""
    plan = batch.plan
    return (
        not plan.refused
        and all(
            outcome.state == "applied" and outcome.match in ("exact", "line_endings")
            for outcome in plan.edits
            if outcome.id in corrected
        )
        and not any(batch.rules.judged(one.path) and guards.unparsable(one) for one in plan.changes)
    )


def _corrections(miss: Miss, corrected: dict[str, Edit]) -> list[Correction]:
    id = miss.edit.id
    old, new = halves(corrected[id].op)
    _LOG.info("edit %s: the model corrected the quote %r to %r", id, miss.old, old)
    if new == miss.new:
        return [Correction(id, "old", "model")]
    _LOG.info("edit %s: its replacement %r became %r", id, miss.new, new)
    return [Correction(id, "old", "model"), Correction(id, "new", "model")]


# ---------------------------------------------------------------- one edit


def _corrected(questioner: Questioner, miss: Miss) -> Edit | None:
    """The edit with a quote that the file has, and the replacement for it."""
    old = _old(questioner, miss)
    new = _new(questioner, miss, old) if old is not None else None
    if old is None or new is None:
        return None
    return replace(miss.edit, op=requoted(miss.edit.op, old, new))


def _old(questioner: Questioner, miss: Miss) -> str | None:
    lines = miss.text.removesuffix("\n").split("\n")
    near = miss.quote.near if miss.quote.near is not None else places.likeliest(lines, miss.old)
    start, end = excerpt(lines, near)
    part = "".join(f"{line}\n" for line in lines[start:end])
    cut = (start, end) != (0, len(lines))
    text = for_old(miss.edit.path, part, cut, miss.old, miss.quote.whole_lines)
    snippet = questioner.ask(OLD, question(text), miss.text, miss.old)
    if not snippet:
        return None
    old = places.selected(miss.text, miss.quote, snippet)
    if old is None:
        _LOG.info("edit %s: the model named %r, which is not certain", miss.edit.id, snippet)
    return old


def _new(questioner: Questioner, miss: Miss, old: str) -> str | None:
    """The replacement for the corrected quote: what a merge gives, if the model agrees."""
    merged = merge.merged(miss.old, old, miss.new)
    if merged is None or merged == old:
        _LOG.info("edit %s: it changes what it misquotes, which is not corrected", miss.edit.id)
        return None
    if not merged:
        return merged
    text = for_new(miss.old, old, miss.new)
    answer = questioner.ask(NEW, question(text), miss.text, miss.old, old, miss.new)
    if answer is None or _bare(answer) != _bare(merged):
        _LOG.info("edit %s: the model's replacement %r is not certain", miss.edit.id, answer)
        return None
    return merged


def _bare(text: str) -> str:
    """The text without its blanks."""
    return "".join(text.split())


# ---------------------------------------------------------------- what is asked


def for_old(path: str, shown: str, cut: bool, quote: str, whole_lines: bool) -> str:
    """Ask which snippet of a file a quote means that stands nowhere in it."""
    part = "the part of it round the likeliest place" if cut else "all of it"
    unit = "whole lines, each from its first character to its last" if whole_lines else "text"
    return (
        f"An edit of the file {json.dumps(path)} quotes text that is not in the file. Find the "
        "one snippet of the file that the quote means.\n\n"
        f"The file ({part}):\n{quoted(shown)}\n\n"
        f"The quote:\n{quoted(quote)}\n\n"
        f'Answer {{"{OLD}": "…"}} with an exact, literal, unique match: {unit} copied from the '
        "file character by character (blanks, quotes and escapes as the file has them), as "
        "long as the quote and no longer, that occurs in the file exactly once. If you are not "
        f'certain, answer {{"{OLD}": ""}}.'
    )


def for_new(old: str, there: str, new: str) -> str:
    """Ask for the replacement, when the quoted text was corrected."""
    return (
        "An edit was to replace the first text by the second. The file has the third in place "
        "of the first. Make the same change to the third text: keep what the edit means, keep "
        "what the file has where the edit changes nothing, and change nothing else.\n\n"
        f"The text that the edit quotes:\n{quoted(old)}\n\n"
        f"Its replacement:\n{quoted(new)}\n\n"
        f"What the file has:\n{quoted(there)}\n\n"
        f'Answer {{"{NEW}": "…"}} with the replacement for what the file has.'
    )
