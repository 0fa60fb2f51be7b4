r"""Replacements that are escaped wrongly, as what comes of them shows: the file does not parse.

The program has tried them as they are and with all their escapes undone by then.  What is left are
texts of which some escapes are meant and others are not.  The model is asked for the right ones,
and believed if they are the only ones: each kind of escape (`\n`, `\"`, …) is undone everywhere or
nowhere, and a single choice of kinds makes the file parse, the one that the model gives.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations

from patchq.llm.questions import Questioner, question, quoted
from patchq.llm.quotes import MOST_QUOTED
from patchq.llm.repair import PlannedBatch, Repair
from patchq.model.ops import InContext, Occurrences, Replace, ReplaceText
from patchq.model.values import Correction, Edit, FileChange, Plan
from patchq.plan import guards
from patchq.report import secrecy

_LOG = logging.getLogger("patchq")
ESCAPING = "corrected_string_escaping"
"""The key of the answer."""
_ESCAPE = re.compile(r"\\([ntr\"'`\\])")
_MEANS = {"n": "\n", "t": "\t", "r": "\r"}
_MOST_KINDS = 4


def correct(batch: PlannedBatch, questioner: Questioner) -> Repair | None:
    """Ask about the one edit of the plan, which is not refused, that leaves a file which does not
    parse and that has escapes in its new text; None if its text stands."""
    judged = [change for change in batch.plan.changes if batch.rules.judged(change.path)]
    broken = [(change, flaw) for change in judged if (flaw := guards.unparsable(change))]
    if len(broken) != 1:
        return None
    change, flaw = broken[0]
    doubtful = [edit for edit in batch.edits if edit.path == change.path and _kinds(edit)]
    if len(doubtful) != 1 or len(_kinds(doubtful[0])) > _MOST_KINDS:
        return None
    edit = doubtful[0]
    variants = {new: batch.replanned({edit.id: _with_new(edit, new)}) for new in _variants(edit)}
    parsing = [new for new, variant in variants.items() if _parses(variant.plan, change)]
    if len(parsing) != 1:
        return None
    before = (change.before or b"").decode("utf-8", "backslashreplace")
    messages = question(for_escaping(change.path, _new(edit), flaw.message))
    ask = partial(questioner.ask, ESCAPING, messages, before)
    if questioner.each(ask, [_new(edit)]) != parsing:
        return None
    _LOG.info("edit %s: the model corrected its escapes to %r", edit.id, parsing[0])
    return Repair(variants[parsing[0]], (Correction(edit.id, "new", "model"),))


def for_escaping(path: str, new: str, flaw: str) -> str:
    """Ask for a replacement with the right escapes, when the file does not parse with it."""
    return (
        f"With this text written into the file {json.dumps(path)}, the file does not parse "
        f"({json.dumps(flaw)}). The text may be escaped wrongly, as `\\n` for a line break or "
        '`\\"` for a quote.\n\n'
        f"The text:\n{quoted(new)}\n\n"
        f'Answer {{"{ESCAPING}": "…"}} with the same text, its escapes corrected and nothing '
        "else changed."
    )


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
    if secrecy.in_text(_ESCAPE.sub(" ", new), ""):
        return []  # no model is to see it
    return sorted(set(_ESCAPE.findall(new)))


def _variants(edit: Edit) -> list[str]:
    """The new text with some kinds of escapes undone, at least one."""
    kinds, new = _kinds(edit), _new(edit)
    counts = range(1, len(kinds) + 1)
    some = [undone for count in counts for undone in combinations(kinds, count)]
    return [_ESCAPE.sub(partial(_meaning, undone=undone), new) for undone in some]


def _meaning(match: re.Match[str], undone: Sequence[str]) -> str:
    kind = match[1]
    return _MEANS.get(kind, kind) if kind in undone else match[0]


def _parses(plan: Plan, change: FileChange) -> bool:
    after = [other for other in plan.changes if other.path == change.path]
    return not plan.refused and len(after) == 1 and guards.unparsable(after[0]) is None
