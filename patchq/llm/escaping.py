r"""Replacements that are escaped wrongly, as what comes of them shows: the file does not parse.

The program has tried them as they are and with all their escapes undone by then.  What is left are
texts of which some escapes are meant and others are not.  The model is asked for the right ones,
and believed if they are the only ones: each kind of escape (`\n`, `\"`, …) is undone everywhere or
nowhere, and a single choice of kinds makes the file parse, the one that the model gives.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations

from patchq.llm import questions
from patchq.llm.correct import MOST_QUOTED, Corrected
from patchq.llm.questioner import Asker
from patchq.model.ops import InContext, Occurrences, Replace, ReplaceText
from patchq.model.values import Correction, Edit, FileChange, Plan, Problem, Tree
from patchq.plan import batch as apply
from patchq.plan import syntax
from patchq.plan.targets import Rules
from patchq.report import secrecy

_LOG = logging.getLogger("patchq")
_ESCAPE = re.compile(r"\\([ntr\"'`\\])")
_MEANS = {"n": "\n", "t": "\t", "r": "\r"}
_MOST_KINDS = 4


def correct(
    edits: Sequence[Edit],
    plan: Plan,
    tree: Tree,
    rules: Rules,
    asker: Asker,
    *,
    declared: bool = False,
) -> Corrected | None:
    """Ask about the one edit of `plan`, which is not refused, that leaves a file which does not
    parse and that has escapes in its new text; None if its text stands."""
    broken = [(c, p) for c in plan.changes if rules.judged(c.path) and (p := syntax.check(c))]
    if len(broken) != 1:
        return None
    change, problem = broken[0]
    doubtful = [edit for edit in edits if edit.path == change.path and _kinds(edit)]
    if len(doubtful) != 1 or not 0 < len(_kinds(doubtful[0])) <= _MOST_KINDS:
        return None
    edit = doubtful[0]

    def planned(new: str) -> tuple[tuple[Edit, ...], Plan]:
        batch = tuple(_with_new(other, new) if other is edit else other for other in edits)
        return batch, apply.plan(batch, tree, rules, declared=declared)

    parsing = [new for new in _variants(edit) if _parses(planned(new)[1], change)]
    if len(parsing) != 1:
        return None
    if asker.each(partial(_asked, asker, change=change, problem=problem), [edit]) != parsing:
        return None
    _LOG.info("edit %s: the model corrected its escapes to %r", edit.id, parsing[0])
    return Corrected(*planned(parsing[0]), (Correction(edit.id, "new", "model"),))


def _asked(asker: Asker, edit: Edit, change: FileChange, problem: Problem) -> str | None:
    new, before = _new(edit), (change.before or b"").decode("utf-8", "backslashreplace")
    asked = questions.for_escaping(change.path, new, problem.message)
    return asker.ask(questions.ESCAPING, asked, before, new)


def _new(edit: Edit) -> str:
    op = edit.op
    return op.new if isinstance(op, Replace | ReplaceText | Occurrences | InContext) else ""


def _with_new(edit: Edit, new: str) -> Edit:
    op = edit.op
    assert isinstance(op, Replace | ReplaceText | Occurrences | InContext)
    return replace(edit, op=replace(op, new=new))


def _kinds(edit: Edit) -> list[str]:
    new = _new(edit)
    if len(new) > MOST_QUOTED or any("\ud800" <= sign <= "\udfff" for sign in new):
        return []
    if secrecy.said(_ESCAPE.sub(" ", new), ""):
        return []  # no model is to see it
    return sorted({match[1] for match in _ESCAPE.finditer(new)})


def _variants(edit: Edit) -> list[str]:
    """The new text with some kinds of escapes undone, at least one."""
    kinds, new = _kinds(edit), _new(edit)
    made = []
    for count in range(1, len(kinds) + 1):
        for chosen in combinations(kinds, count):
            made.append(_ESCAPE.sub(partial(_undone, chosen=chosen), new))
    return list(dict.fromkeys(made))


def _undone(match: re.Match[str], chosen: Sequence[str]) -> str:
    kind = match[1]
    return _MEANS.get(kind, kind) if kind in chosen else match[0]


def _parses(plan: Plan, change: FileChange) -> bool:
    after = [other for other in plan.changes if other.path == change.path]
    return not plan.refused and len(after) == 1 and syntax.check(after[0]) is None
