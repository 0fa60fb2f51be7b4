"""The report on one response, as programs read it: schema `patchq.report/1`.

`to_json` turns an `Outcome` into the one source of truth; `report_md` renders that for people and
models.  Excerpts of files are no part of the schema: they travel inside `retry.prompt`, the text
that lets a model send a correct response, and so outlive every later rewriting of the report.
Every report fits into 256 KiB; what has to go is marked where it stood.
"""

from __future__ import annotations

import json
import re
import time
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from datetime import UTC, datetime
from itertools import accumulate
from operator import attrgetter
from types import MappingProxyType
from typing import Any, TypeGuard, TypeVar, Unpack, cast, get_args

from patchq.core.model.report import (
    ADDED,
    CHANGES,
    COMMITTED,
    AttemptEntry,
    BatchDocument,
    CandidateEntry,
    CollisionEntry,
    CorrectionEntry,
    EditEntry,
    FootingEntry,
    HookEntry,
    Moment,
    ProblemEntry,
    Report,
    ReportChanges,
    ReviewEntry,
    SourceEntry,
)
from patchq.core.model.values import (
    Attempt,
    Candidate,
    Collision,
    Correction,
    EditOutcome,
    HookRun,
    Outcome,
    Problem,
    State,
)
from patchq.core.text import unified
from patchq.core.text.quote import HIDDEN, clip, visible
from patchq.gate.report import page, secrecy
from patchq.gate.report.codes import CODES

SCHEMA = "patchq.report/1"
PLAN = "patchq.plan/1"
MAX_BYTES = 256 * 1024
_MOST_CANDIDATES = 200

KEYS = tuple(Report.__annotations__)
"""The keys of a report, in their order; none is ever absent."""

T = TypeVar("T")


def to_json(outcome: Outcome) -> Report:
    """The report on `outcome`, ready for `dumps`.

    A response that held a secret is quoted nowhere: there is no diff, and no excerpt beside it.
    Elsewhere, a line that holds one says so in its place.
    """
    report = _whole(outcome)
    edits, problems = report["edits"][:_MOST_EDITS], report["problems"][:_MOST_PROBLEMS]
    cut = {
        "edits": len(report["edits"]) - len(edits),
        "problems": len(report["problems"]) - len(problems),
    }
    # Nobody is shown the others, so no secret is looked for in them.
    foremost: Report = {**report, "edits": edits, "problems": problems}
    text = json.dumps(foremost)
    if len(text) <= _ROOM["hooks"] and secrecy.has_none(text):
        return foremost  # the usual case, told by one look at all of it
    return _fitted(secrecy.without(foremost), cut)


def _whole(outcome: Outcome) -> Report:
    secret = any(problem.code == "edit.secret" for problem in outcome.problems)
    committed = outcome.state in COMMITTED
    base, rules = outcome.base, outcome.rules
    corrections = [_entry(correction, CorrectionEntry) for correction in outcome.corrections]
    report: Report = {
        "schema": SCHEMA,
        "id": outcome.id,
        "state": outcome.state,
        "duplicate_of": outcome.duplicate_of,
        "source": {
            "name": secrecy.file_name(outcome.source.name),
            "sha256": outcome.source.sha256,
            "bytes": outcome.source.size,
        },
        "agent": _short(outcome.agent),
        "model": _short(outcome.model),
        "message": None if secret else _short(outcome.subject or None),
        "received": moment(outcome.received),
        "decided": moment(outcome.decided),
        "reason": None,
        "mode": outcome.mode,
        "rules": {"from": rules.source, "blob": rules.blob} if rules else None,
        "target": _short(outcome.target),
        "base": {"commit": base.commit, "how": base.how} if base else None,
        "commit": outcome.commit if committed else None,
        "tree": outcome.tree if committed else None,
        "branch": outcome.branch if outcome.state == "proposed" else None,
        "stands_on": _footing(outcome),
        "edits": [_entry(edit, EditEntry) for edit in outcome.edits],
        "problems": [problem_json(problem) for problem in outcome.problems],
        "corrections": _head(corrections, _ROOM_FOR_CORRECTIONS),
        "attempts": [_entry(attempt, AttemptEntry) for attempt in outcome.attempts],
        "hooks": hook_runs(outcome.hooks),
        "size": unified.size(outcome.diff),
        "diff": "" if secret else outcome.diff,
        "review": None,
        "retry": {"prompt": None, "of": _short(outcome.retries)},
        "timings": dict(outcome.timings),
    }
    if outcome.state != "rejected":
        return report
    evidence = [] if secret else [_evidence(problem) for problem in outcome.problems]
    prompt = outcome.prompt or page.prompt(
        report, evidence, outcome.instructions, foreseen=outcome.foreseen
    )
    return {**report, "retry": {**report["retry"], "prompt": prompt}}


def _footing(outcome: Outcome) -> FootingEntry | None:
    below = outcome.stands_on if outcome.state == "proposed" else None
    return {"batch": below.batch, "commit": below.commit} if below else None


def _evidence(problem: Problem) -> page.Evidence:
    first, lines = problem.excerpt or (1, ())
    return page.Evidence(first, lines, problem.quote or "")


def to_plan(outcome: Outcome) -> BatchDocument:
    """What hooks are told of a batch (`patchq.plan/1`): the report without a verdict, uncut."""
    return {**_whole(replace(outcome, hooks=(), decided=None)), "schema": PLAN, "state": None}


def with_state(report: Report, state: State, **changes: Unpack[ReportChanges]) -> Report:
    """The report with a later state, decided now, and other values for some of its keys.

    The review branch is gone in every state but `proposed`, unless `branch` says otherwise,
    and with it what that stands on.
    """
    unknown = changes.keys() - set(KEYS)
    if unknown:
        raise ValueError(f"{SCHEMA} has no {', '.join(sorted(unknown))}; it has {', '.join(KEYS)}")
    branch = report["branch"] if state == "proposed" else None
    below = report["stands_on"] if state == "proposed" else None
    later: ReportChanges = {"branch": branch, "stands_on": below}
    if state != report["state"]:
        later = {**later, "decided": moment(time.time()), "reason": None}
    return _fitted({**report, **later, "state": state, **changes})


def moment(seconds: float | None) -> Moment | None:
    """A time of the wall clock, in seconds since the epoch, as reports have it."""
    if seconds is None:
        return None
    iso = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {"unix": round(seconds, 3), "iso": iso}


def with_problems(report: Report, *problems: Problem) -> Report:
    """The report with more to tell, such as the warning `target.moved`."""
    return _fitted({**report, "problems": [*report["problems"], *map(problem_json, problems)]})


def with_review(report: Report, review: ReviewEntry, prompt: str, warning: Problem) -> Report:
    """The report with what a person asks for, in place of what was asked for before: the comments,
    the text that a model answers, and the warning that goes with them."""
    others = [problem for problem in report["problems"] if problem["code"] != CHANGES]
    return _fitted(
        {
            **report,
            "problems": [*others, problem_json(warning)],
            "review": review,
            "retry": {**report["retry"], "prompt": secrecy.without(prompt)},
        }
    )


def is_whole(value: Mapping[str, object], id: str) -> TypeGuard[Report]:
    """Whether an object of JSON is a report on the batch, with everything that a report has."""
    source = value.get("source")
    return (
        set(KEYS) - ADDED <= value.keys() <= set(KEYS)
        and (value["schema"], value["id"]) == (SCHEMA, id)
        and value["state"] in get_args(State)
        and isinstance(source, dict)
        and source.keys() >= SourceEntry.__annotations__.keys()
        and all(isinstance(value[key], list) for key in ("edits", "problems", "hooks"))
    )


def dumps(report: Report) -> str:
    """The report as JSON text: a line for each key and each entry of a list, in their order.

    Hidden characters stand as JSON escapes: a terminal that shows the text does not act on them,
    and a program that reads it gets them back.
    """
    entries = [f"{_json(key)}: {_json_lines(value)}" for key, value in report.items()]
    return "{" + ",\n ".join(entries) + "}\n"


def _json_lines(value: object) -> str:
    if not isinstance(value, list) or not value:
        return _json(value)
    return "[\n  " + ",\n  ".join(map(_json, value)) + "]"


def printed(value: object, indent: int | None = None) -> str:
    """A value as JSON text that a terminal does not act on; on one line, unless indented."""
    return HIDDEN.sub(_escape, json.dumps(value, ensure_ascii=False, indent=indent))


def _json(value: object) -> str:
    return HIDDEN.sub(_escape, json.dumps(value, ensure_ascii=False, allow_nan=False))


def _escape(hidden: re.Match[str]) -> str:
    """A hidden character as its JSON escape; half a surrogate pair, which JSON has none for, as
    text.  A line end is the indentation's."""
    if hidden[0] == "\n":
        return "\n"
    alone = "\ud800" <= hidden[0] <= "\udfff"
    return json.dumps(visible(hidden[0]) if alone else hidden[0])[1:-1]


def problem_json(problem: Problem) -> ProblemEntry:
    """One entry of `problems`; what patchq says in it holds no hidden character but newlines."""
    code = CODES.get(problem.code)
    candidates = [_entry(one, CandidateEntry) for one in problem.candidates[:_MOST_CANDIDATES]]
    collision = problem.conflicts_with
    return {
        "code": problem.code,
        "alias": code.alias if code else None,
        "severity": problem.severity,
        "edit": _short(problem.edit),
        "path": _short(problem.path, 1024),
        "line": problem.line,
        "message": _message(problem.message, 4000),
        "hint": _message(problem.hint, 2000) if problem.hint else None,
        "candidates": candidates
        if sum(map(_bound, problem.candidates)) <= _ROOM_FOR_CANDIDATES
        else _head(candidates, _ROOM_FOR_CANDIDATES),
        "conflicts_with": _entry(collision, CollisionEntry) if collision else None,
    }


def _bound(one: Candidate) -> int:
    """More bytes than a candidate's entry has: a hidden character may become twelve."""
    texts = len(one.path) + len(one.symbol or "") + len(one.text) + len(one.disambiguate or "")
    return _ROOM_FOR_KEYS + 12 * texts


def hook_runs(runs: Iterable[HookRun]) -> list[HookEntry]:
    """The entries of `hooks`."""
    return [_entry(run, HookEntry) for run in runs]


def _message(text: str, limit: int) -> str:
    return clip(visible(text[: limit + 1], keep="\n"), limit)


def _short(text: str | None, limit: int = 200) -> str | None:
    return clip(text, limit) if text is not None else None


_Part = EditOutcome | Candidate | Collision | Correction | Attempt | HookRun
_LONGEST: Mapping[type[_Part], Mapping[str, int]] = {
    EditOutcome: {"id": 200, "path": 1024, "description": 1000},
    Candidate: {"text": 500, "disambiguate": 2000},
    Correction: {"edit": 200},
}
"""The most characters of a text that came with a response, by the value and its field."""


_NAMES: Mapping[type[Any], tuple[str, ...]] = {
    kind: tuple(field.name for field in fields(kind)) for kind in get_args(_Part)
}
"""The fields of the values that become entries."""
_VALUES = {kind: attrgetter(*names) for kind, names in _NAMES.items()}


def _entry(part: _Part, kind: type[T]) -> T:
    """A value as an entry of the report, of the type `kind`, which has the same fields."""
    named = zip(_NAMES[type(part)], _VALUES[type(part)](part), strict=True)
    entry: dict[str, Any] = {
        key: list(value) if isinstance(value, tuple) else value for key, value in named
    }
    for key, limit in _LONGEST.get(type(part), {}).items():
        entry[key] = _short(entry[key], limit)
    return cast(T, entry)


# ---------------------------------------------------------------- what fits

# Bytes of JSON for each part, and the text in which a cut list says so; the diff gets the rest.
_ROOM = {"edits": 116 * 1024, "problems": 48 * 1024, "hooks": 16 * 1024}
_SAYS_SO = {"edits": "description", "problems": "message", "hooks": "output"}
_ROOM_FOR_PROMPT = 44 * 1024
_ROOM_FOR_CANDIDATES = 16 * 1024
_ROOM_FOR_CORRECTIONS = 4 * 1024
_ROOM_FOR_MARK = 200
_ROOM_FOR_KEYS = 150
_ROOM_BETWEEN = 4


def _more_than_fit(key: str, entry: type) -> int:
    """More entries of a part than its room can hold: each has its keys, two quotes round each of
    them, what parts them and a character of a value."""
    return _ROOM[key] // sum(len(name) + 6 for name in entry.__annotations__) + 1


_MOST_EDITS = _more_than_fit("edits", EditEntry)
_MOST_PROBLEMS = _more_than_fit("problems", ProblemEntry)


def _fitted(report: Report, cut: Mapping[str, int] = MappingProxyType({})) -> Report:
    """The report with its lists, its prompt and then its diff cut so that `MAX_BYTES` hold it; of
    some lists so many entries were `cut` off before, and the rest is more than fits."""
    if len(json.dumps(report)) <= _ROOM["hooks"]:
        return report  # the usual case: all of it is smaller than the least room of a part
    prompt = report["retry"]["prompt"]
    short = None if prompt is None else _cut(prompt, _ROOM_FOR_PROMPT)
    fitted: Report = {
        **report,
        "edits": _listed(report["edits"], "edits", cut.get("edits", 0)),
        "problems": _listed(report["problems"], "problems", cut.get("problems", 0)),
        "hooks": _listed(report["hooks"], "hooks"),
        "diff": "",
        "retry": {**report["retry"], "prompt": short},
    }
    return {**fitted, "diff": _cut(report["diff"], MAX_BYTES - len(dumps(fitted).encode()))}


def _listed(entries: Sequence[T], key: str, cut: int = 0) -> list[T]:
    """The first of a part's entries, as many as its room holds; the last one says what is cut, now
    and before."""
    kept = _head(entries, _ROOM[key])
    if len(kept) < len(entries):
        last, says = cast(dict[str, Any], kept[-1]), _SAYS_SO[key]
        more = len(entries) + cut - len(kept)
        mark = f"{last[says] or ''} (… {more} more {key} are left out here)"
        kept[-1] = cast(T, {**last, says: mark.lstrip()})
    return kept


def _head(entries: Sequence[T], room: int) -> list[T]:
    """The first of `entries` that `room` bytes hold, and a mark if there are more; one at least."""
    used = list[int]()
    for total in accumulate(_size(entry) + _ROOM_BETWEEN for entry in entries):
        used.append(total)
        if total > room:  # of thousands of entries only those that fit are measured
            return list(entries[: max(1, bisect_right(used, room - _ROOM_FOR_MARK))])
    return list(entries)


def _cut(text: str, room: int) -> str:
    """The lines of `text` that `room` bytes of JSON hold, with a mark where it was cut."""
    head = text[: max(0, room)]
    if len(head) == len(text) and _size(text) <= room:
        return text
    ends = range(len(head))
    end = bisect_right(ends, room - _ROOM_FOR_MARK, key=lambda end: _size(head[:end]))
    kept = head[: head.rfind("\n", 0, end) + 1]
    return f"{kept}… {len(text) - len(kept)} more characters are left out here\n"


def _size(value: object) -> int:
    return len(_json(value).encode())
