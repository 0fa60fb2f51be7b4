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

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace

from patchq.llm import merge, places, questions
from patchq.llm.questioner import Asker
from patchq.model.ops import InContext, Occurrences, Op, PatchHunk, Replace, ReplaceText, halves
from patchq.model.values import Correction, Edit, Plan, Problem, Tree
from patchq.plan import batch as apply
from patchq.plan import syntax
from patchq.plan.targets import Rules
from patchq.report import secrecy
from patchq.text.lines import Text

_LOG = logging.getLogger("patchq")
_MOST_ASKED = 10
"""With more quotes missed than these, the response was made for another text."""
MOST_QUOTED = 8_000
"""Characters of a quote, or of a replacement, that are still worth a question."""


@dataclass(frozen=True, slots=True)
class Corrected:
    """A batch that can be applied now, and what was corrected for that."""

    edits: tuple[Edit, ...]
    plan: Plan
    corrections: tuple[Correction, ...]


@dataclass(frozen=True, slots=True)
class Miss:
    """An edit to ask about: its two halves, and the file as text with `\\n` for line ends."""

    edit: Edit
    old: str
    new: str
    text: str
    wanted: places.Wanted


def correct(
    edits: Sequence[Edit],
    plan: Plan,
    tree: Tree,
    rules: Rules,
    asker: Asker,
    *,
    declared: bool = False,
) -> Corrected | None:
    """Ask about the edits that `plan`, which is refused, has no place for in `tree`; None if the
    refusal stands."""
    missed = misses(edits, plan, tree)
    fresh = asker.each(_Corrector(asker).corrected, missed)
    if not missed or None in fresh:
        return None
    made = {edit.id: edit for edit in fresh if edit is not None}
    batch = tuple(made.get(edit.id, edit) for edit in edits)
    again = apply.plan(batch, tree, rules, declared=declared)
    if not _holds(again, made, rules):
        _LOG.info("the model's snippets are in the file, and the batch is refused with them too")
        return None
    return Corrected(batch, again, tuple(_told(missed, made)))


def misses(edits: Sequence[Edit], plan: Plan, tree: Tree) -> tuple[Miss, ...]:
    """The edits to ask about: none, unless correcting quotes can save the whole batch."""
    errors = [problem for problem in plan.problems if problem.severity == "error"]
    if not 0 < len(errors) <= _MOST_ASKED:
        return ()
    by_id = {edit.id: edit for edit in edits}
    found = []
    for problem in errors:
        edit = by_id.get(problem.edit or "")
        miss = _miss(edit, problem, tree) if edit is not None else None
        if miss is None:
            return ()
        found.append(miss)
    return tuple(found)


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
    if max(len(old), len(new)) > MOST_QUOTED or "\r" in old or secrecy.said(f"{old}\n{new}", ""):
        return None
    text = Text(tree.read(edit.path))
    try:
        chars = text.flat[0].decode()
        f"{edit.path}{old}{new}".encode()
    except UnicodeError:
        return None
    near = problem.line - 1 if problem.line is not None else None
    whole_lines = isinstance(edit.op, Replace | PatchHunk)
    return Miss(edit, old, new, chars, places.Wanted(old, near, whole_lines))


def _quotes_once(op: Op) -> bool:
    match op:
        case Replace() | PatchHunk():
            return True
        case ReplaceText(count=count):
            return count == 1
        case Occurrences(at=at):
            return at in (None, (1,))
        case InContext(every=every):
            return not every
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


def _holds(plan: Plan, made: dict[str, Edit], rules: Rules) -> bool:
    """Whether the batch can be applied, each corrected edit to the letter, and its files parse."""
    if plan.refused:
        return False
    outcomes = [outcome for outcome in plan.edits if outcome.id in made]
    return all(
        outcome.state == "applied" and outcome.match in ("exact", "line_endings")
        for outcome in outcomes
    ) and not any(rules.judged(change.path) and syntax.check(change) for change in plan.changes)


def _told(missed: Sequence[Miss], made: dict[str, Edit]) -> list[Correction]:
    told = []
    for miss in missed:
        id = miss.edit.id
        old, new = halves(made[id].op)
        told.append(Correction(id, "old", "model"))
        _LOG.info("edit %s: the model corrected the quote %r to %r", id, miss.old, old)
        if new != miss.new:
            told.append(Correction(id, "new", "model"))
            _LOG.info("edit %s: its replacement %r became %r", id, miss.new, new)
    return told


@dataclass(frozen=True, slots=True)
class _Corrector:
    """Asks about one edit after the other; each of them on its own."""

    asker: Asker

    def corrected(self, miss: Miss) -> Edit | None:
        """The edit with a quote that the file has, and the replacement for it."""
        old = self._old(miss)
        new = self._new(miss, old) if old is not None else None
        if old is None or new is None:
            return None
        return replace(miss.edit, op=requoted(miss.edit.op, old, new))

    def _old(self, miss: Miss) -> str | None:
        lines = miss.text.removesuffix("\n").split("\n")
        near = miss.wanted.near
        near = near if near is not None else places.likeliest(lines, miss.old)
        start, end = questions.excerpt(lines, near)
        shown = "".join(f"{line}\n" for line in lines[start:end])
        cut = (start, end) != (0, len(lines))
        asked = questions.for_old(miss.edit.path, shown, cut, miss.old, miss.wanted.whole_lines)
        said = self.asker.ask(questions.OLD, asked, miss.text, miss.old)
        if not said:
            return None
        old = places.selected(miss.text, miss.wanted, said)
        if old is None:
            _LOG.info("edit %s: the model named %r, which is not certain", miss.edit.id, said)
        return old

    def _new(self, miss: Miss, old: str) -> str | None:
        """The replacement for the corrected quote: what a merge gives, if the model agrees."""
        fresh = merge.merged(miss.old, old, miss.new)
        if fresh is None or fresh == old:
            _LOG.info("edit %s: it changes what it misquotes, which is not corrected", miss.edit.id)
            return None
        if not fresh:
            return fresh
        asked = questions.for_new(miss.old, old, miss.new)
        said = self.asker.ask(questions.NEW, asked, miss.text, miss.old, old, miss.new)
        if said is None or _bare(said) != _bare(fresh):
            _LOG.info("edit %s: the model's replacement %r is not certain", miss.edit.id, said)
            return None
        return fresh


def _bare(text: str) -> str:
    """The text without its blanks."""
    return "".join(text.split())
