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
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import accumulate
from types import MappingProxyType
from typing import Any, TypeVar

from msgspec import Struct, convert, to_builtins
from msgspec.structs import replace

from patchq.core.model.values import (
    Candidate,
    Correction,
    EditOutcome,
    Outcome,
    Problem,
    State,
)
from patchq.core.text.quote import HIDDEN, clip, visible
from patchq.gate.report import diff_size, page, secrecy
from patchq.gate.report.codes import CODES
from patchq.gate.report.schema import (
    CHANGES,
    COMMITTED,
    Moment,
    ProblemEntry,
    Report,
    RetryEntry,
    ReviewEntry,
    SourceEntry,
)

PLAN = "patchq.plan/1"
MAX_BYTES = 256 * 1024
_MOST_CANDIDATES = 200
_MOST_ENTRIES = 1000  # more edits, and more problems, than a report has room for

# What a batch has only while it waits.
_OVER: Mapping[str, None] = {"branch": None, "stands_on": None, "boarded": None}

T = TypeVar("T")
P = TypeVar("P", bound=Struct)


def to_json(outcome: Outcome) -> Report:
    """Return the report on `outcome`.

    A response that held a secret is quoted nowhere: there is no diff, and no excerpt beside it.
    Elsewhere, a line that holds one says so in its place.
    """
    report = _whole(outcome)
    edits, problems = report.edits[:_MOST_ENTRIES], report.problems[:_MOST_ENTRIES]
    cut = {
        "edits": len(report.edits) - len(edits),
        "problems": len(report.problems) - len(problems),
    }
    # The others are shown nowhere, so no secret is looked for in them.
    foremost = replace(report, edits=edits, problems=problems)
    return _fitted(secrecy.without(plain(foremost)), cut)


def plain(value: object) -> Any:
    """Return a report, or a part of one, as JSON's own values."""
    return to_builtins(value)


def _whole(outcome: Outcome) -> Report:
    secret = any(problem.code == "edit.secret" for problem in outcome.problems)
    committed, waits = outcome.state in COMMITTED, outcome.state == "proposed"
    corrections = [_clipped(correction) for correction in outcome.corrections]
    report = Report(
        id=outcome.id,
        state=outcome.state,
        duplicate_of=outcome.duplicate_of,
        source=SourceEntry(
            name=secrecy.file_name(outcome.source.name),
            sha256=outcome.source.sha256,
            bytes=outcome.source.size,
        ),
        agent=_short(outcome.agent),
        model=_short(outcome.model),
        message=None if secret else _short(outcome.subject or None),
        received=None if outcome.received is None else moment(outcome.received),
        decided=None if outcome.decided is None else moment(outcome.decided),
        reason=None,
        mode=outcome.mode,
        rules=outcome.rules,
        target=_short(outcome.target),
        base=outcome.base,
        commit=outcome.commit if committed else None,
        tree=outcome.tree if committed else None,
        branch=outcome.branch if waits else None,
        stands_on=outcome.stands_on if waits else None,
        edits=[_clipped(edit) for edit in outcome.edits],
        problems=[problem_entry(problem) for problem in outcome.problems],
        corrections=_head(corrections, _ROOM_FOR_CORRECTIONS),
        attempts=list(outcome.attempts),
        hooks=list(outcome.hooks),
        size=diff_size.size(outcome.diff),
        diff="" if secret else outcome.diff,
        review=None,
        retry=RetryEntry(prompt=None, of=_short(outcome.retries)),
        timings=dict(outcome.timings),
    )
    if outcome.state != "rejected":
        return report
    problems = outcome.problems
    if secret:
        problems = tuple(replace(problem, excerpt=None, quote=None) for problem in problems)
    prompt = outcome.prompt or page.prompt(
        report, problems, outcome.instructions, foreseen=outcome.foreseen
    )
    return replace(report, retry=replace(report.retry, prompt=prompt))


def to_plan(outcome: Outcome) -> dict[str, Any]:
    """Return `patchq.plan/1`, which hooks get: the report without a verdict, uncut."""
    report = _whole(replace(outcome, hooks=(), decided=None))
    return {**plain(report), "schema": PLAN, "state": None}


def with_state(report: Report, state: State, **changes: Any) -> Report:
    """Return the report with a later state, decided now, and other values for some of its fields.

    The review branch is gone in every state but `proposed`, unless `branch` says otherwise,
    and with it the proposal below it.
    """
    later: dict[str, Any] = {} if state == "proposed" else {**_OVER}
    if state != report.state:
        later |= {"decided": now(), "reason": None}
    return fitted(replace(report, **{**later, "state": state, **changes}))


def moment(seconds: float) -> Moment:
    """Return a time in seconds since the epoch as reports have it."""
    iso = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return Moment(unix=round(seconds, 3), iso=iso)


def now() -> Moment:
    """Return the present time as reports have it."""
    return moment(time.time())


def with_problems(report: Report, *problems: Problem) -> Report:
    """Return the report with more problems, such as the warning `target.moved`."""
    return fitted(replace(report, problems=[*report.problems, *map(problem_entry, problems)]))


def with_review(report: Report, review: ReviewEntry, prompt: str, warning: Problem) -> Report:
    """Return the report with the comments of a review in place of those before.

    `prompt` is the text that a model answers; the warning goes with the comments.
    """
    others = [problem for problem in report.problems if problem.code != CHANGES]
    problems = [*others, problem_entry(warning)]
    retry = replace(report.retry, prompt=secrecy.without(prompt))
    return fitted(replace(report, problems=problems, review=review, retry=retry))


def dumps(report: Report) -> str:
    """The report as JSON text: a line for each key and each entry of a list, in their order.

    Hidden characters stand as JSON escapes: a terminal that shows the text does not act on them,
    and a program that reads it gets them back.
    """
    return _dumps(plain(report))


def _dumps(value: Mapping[str, object]) -> str:
    entries = [f"{printed(key)}: {_json_lines(item)}" for key, item in value.items()]
    return "{" + ",\n ".join(entries) + "}\n"


def _json_lines(value: object) -> str:
    if not isinstance(value, list) or not value:
        return printed(value)
    return "[\n  " + ",\n  ".join(map(printed, value)) + "]"


def printed(value: object, indent: int | None = None) -> str:
    """A value as JSON text that a terminal does not act on; on one line, unless indented."""
    return HIDDEN.sub(_escape, json.dumps(plain(value), ensure_ascii=False, indent=indent))


def _escape(hidden: re.Match[str]) -> str:
    """A hidden character as its JSON escape; half a surrogate pair, which JSON has none for, as
    text.  A line end is the indentation's."""
    if hidden[0] == "\n":
        return "\n"
    alone = "\ud800" <= hidden[0] <= "\udfff"
    return json.dumps(visible(hidden[0]) if alone else hidden[0])[1:-1]


def problem_entry(problem: Problem) -> ProblemEntry:
    """Return one entry of `problems`; our own words hold no hidden character but newlines."""
    code = CODES.get(problem.code)
    candidates = [_clipped(one) for one in problem.candidates[:_MOST_CANDIDATES]]
    return ProblemEntry(
        code=problem.code,
        alias=code.alias if code else None,
        severity=problem.severity,
        edit=_short(problem.edit),
        path=_short(problem.path, 1024),
        line=problem.line,
        message=_message(problem.message, 4000),
        hint=_message(problem.hint, 2000) if problem.hint else None,
        candidates=_head(candidates, _ROOM_FOR_CANDIDATES),
        conflicts_with=problem.conflicts_with,
    )


def _message(text: str, limit: int) -> str:
    return clip(visible(text[: limit + 1], keep="\n"), limit)


def _short(text: str | None, limit: int = 200) -> str | None:
    return clip(text, limit) if text is not None else None


# The most characters of a text that came with a response, by the value and its field.
_LONGEST: Mapping[type, Mapping[str, int]] = {
    EditOutcome: {"id": 200, "path": 1024, "description": 1000},
    Candidate: {"text": 500, "disambiguate": 2000},
    Correction: {"edit": 200},
}


def _clipped(part: P) -> P:
    """Return the value with its texts as long as a report has them."""
    long = {
        name: _short(text, limit)
        for name, limit in _LONGEST[type(part)].items()
        if (text := getattr(part, name)) is not None and len(text) > limit
    }
    return replace(part, **long) if long else part


# ---------------------------------------------------------------- what fits

# Bytes of JSON for each part, and the text in which a cut list says so; the diff gets the rest.
_ROOM = {"edits": 116 * 1024, "problems": 48 * 1024, "hooks": 16 * 1024}
_SAYS_SO = {"edits": "description", "problems": "message", "hooks": "output"}
_ROOM_FOR_PROMPT = 44 * 1024
_ROOM_FOR_CANDIDATES = 16 * 1024
_ROOM_FOR_CORRECTIONS = 4 * 1024
_ROOM_FOR_MARK = 200
_ROOM_BETWEEN = 4


def fitted(report: Report) -> Report:
    """Return the report with its lists, its prompt and then its diff cut to `MAX_BYTES`."""
    value = plain(report)
    return report if _is_small(value) else _fitted(value)


def _is_small(value: Mapping[str, Any]) -> bool:
    """True in the usual case: all of it is smaller than the least room of a part."""
    return len(json.dumps(value)) <= _ROOM["hooks"]


def _fitted(value: Mapping[str, Any], cut: Mapping[str, int] = MappingProxyType({})) -> Report:
    """Return the report whose plain value may be too large; of some lists so many entries were
    `cut` off before, and the rest is more than fits."""
    if _is_small(value):
        return convert(value, Report)
    prompt = value["retry"]["prompt"]
    short = None if prompt is None else _cut(prompt, _ROOM_FOR_PROMPT)
    small = {
        **value,
        "edits": _listed(value["edits"], "edits", cut.get("edits", 0)),
        "problems": _listed(value["problems"], "problems", cut.get("problems", 0)),
        "hooks": _listed(value["hooks"], "hooks"),
        "diff": "",
        "retry": {**value["retry"], "prompt": short},
    }
    room = MAX_BYTES - len(_dumps(small).encode())
    return convert({**small, "diff": _cut(value["diff"], room)}, Report)


def _listed(entries: Sequence[dict[str, Any]], key: str, cut: int = 0) -> list[dict[str, Any]]:
    """The first of a part's entries, as many as its room holds; the last one says what is cut, now
    and before."""
    kept = _head(entries, _ROOM[key])
    if len(kept) < len(entries):
        last, says = kept[-1], _SAYS_SO[key]
        more = len(entries) + cut - len(kept)
        mark = f"{last[says] or ''} (… {more} more {key} are left out here)"
        kept[-1] = {**last, says: mark.lstrip()}
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
    return len(printed(value).encode())
