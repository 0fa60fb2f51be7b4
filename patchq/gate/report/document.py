"""The report on one response, as programs read it: schema `patchq.report/1`.

`to_json` makes the one source of truth; `page` renders it for people and models.  Excerpts of files
are no part of the schema: they travel inside `retry.prompt`, the text that lets a model send a
correct response, and so outlive every later rewriting of the report.  Every report fits into 256
KiB; what has to go is marked where it stood.
"""

from __future__ import annotations

import json
import re
import time
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import accumulate, takewhile
from typing import Any, TypeVar

from msgspec import Struct, convert, to_builtins
from msgspec.structs import replace

from patchq.core.model.values import (
    Candidate,
    Correction,
    EditOutcome,
    Problem,
    State,
)
from patchq.core.text.quote import HIDDEN, clip, visible
from patchq.gate.report import page, secrecy
from patchq.gate.report.codes import CODES
from patchq.gate.report.schema import (
    COMMITTED,
    Moment,
    ProblemEntry,
    Report,
    SizeEntry,
)

MAX_BYTES = 256 * 1024
_MOST_CANDIDATES = 200

_RANGES = re.compile(r"^@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@$", re.MULTILINE)
_FILE = re.compile(r"^diff --git .*$", re.MULTILINE)

# What a batch has only while it waits.
_OVER: Mapping[str, None] = {"branch": None, "stands_on": None, "boarded": None}

T = TypeVar("T")
P = TypeVar("P", bound=Struct)


def to_json(
    facts: Report,
    problems: Sequence[Problem] = (),
    prompt: str | None = None,
    instructions: str = "",
    *,
    tip: str = "",
    foreseen: bool = False,
) -> Report:
    """Return the report of these facts and problems, without secrets.

    A refused response's report has the `prompt`, or one made with the `instructions` and the
    target's `tip`; what is only `foreseen`, by a dry run, has no batch.  A response that held a
    secret is quoted nowhere: there is no diff, and no excerpt beside it.  Elsewhere, a line that
    holds one says so in its place.
    """
    report = _whole(facts, problems)
    if report.state == "rejected":
        if _hold_a_secret(problems):
            problems = [replace(problem, excerpt=None, quote=None) for problem in problems]
        prompt = prompt or page.prompt(report, problems, instructions, tip=tip, foreseen=foreseen)
        report = replace(report, retry=replace(report.retry, prompt=prompt))
    return fitted(secrecy.without(report))


def to_plan(facts: Report, problems: Sequence[Problem] = ()) -> dict[str, Any]:
    """Return `patchq.plan/1`, which hooks get: the report without a verdict, uncut."""
    report = _whole(replace(facts, hooks=(), decided=None), problems)
    return {**plain(report), "schema": "patchq.plan/1", "state": None}


def plain(value: object) -> Any:
    """Return a report, or a part of one, as JSON's own values."""
    return to_builtins(value)


def _whole(facts: Report, problems: Sequence[Problem]) -> Report:
    """Return the facts with the problems, each text cut to its limit."""
    secret, waits = _hold_a_secret(problems), facts.state == "proposed"
    committed = facts.state in COMMITTED
    name = facts.source.name
    return replace(
        facts,
        source=replace(facts.source, name=name and secrecy.file_name(name)),
        agent=_short(facts.agent),
        model=_short(facts.model),
        message=None if secret else _short(facts.message or None),
        target=_short(facts.target),
        commit=facts.commit if committed else None,
        tree=facts.tree if committed else None,
        branch=facts.branch if waits else None,
        stands_on=facts.stands_on if waits else None,
        edits=[_clipped(edit) for edit in facts.edits],
        problems=[problem_entry(problem) for problem in problems],
        corrections=_head([_clipped(one) for one in facts.corrections], _ROOM_FOR_CORRECTIONS),
        size=size(facts.diff),
        diff="" if secret else facts.diff,
        attempts=list(facts.attempts),
        hooks=list(facts.hooks),
        retry=replace(facts.retry, of=_short(facts.retry.of)),
        timings=dict(facts.timings),
    )


def _hold_a_secret(problems: Sequence[Problem]) -> bool:
    return any(problem.code == "edit.secret" for problem in problems)


def with_state(report: Report, state: State, **changes: Any) -> Report:
    """Return the report with a new state, decided now, and other fields changed.

    The review branch is gone in every state but `proposed`, unless `branch` says otherwise, and
    with it the proposal below it.
    """
    later: dict[str, Any] = {} if state == "proposed" else {**_OVER}
    if state != report.state:
        later |= {"decided": now(), "reason": None}
    return fitted(replace(report, **{**later, "state": state, **changes}))


def size(diff: str) -> SizeEntry | None:
    """Return the size of a diff that `unified` made; None for no diff.

    Lines of a file stand behind a sign, so a line that begins otherwise is a header, and one that
    begins with a blank is context; what is added and deleted follows from the hunks' ranges.
    """
    if not diff:
        return None
    ranges = [(int(old or 1), int(new or 1)) for old, new in _RANGES.findall(diff)]
    context = diff.count("\n ")
    return SizeEntry(
        files=len(set(_FILE.findall(diff))),
        added=sum(new for _, new in ranges) - context,
        deleted=sum(old for old, _ in ranges) - context,
    )


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


def dumps(report: Report) -> str:
    """Return the report as JSON text, in one line.

    Hidden characters stand as JSON escapes: a terminal that shows the text does not act on them,
    and a program that reads it gets them back.
    """
    return printed(report) + "\n"


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
    long = {
        name: _short(text, limit)
        for name, limit in _LONGEST[type(part)].items()
        if (text := getattr(part, name)) is not None and len(text) > limit
    }
    return replace(part, **long) if long else part


# ---------------------------------------------------------------- what fits

# Lists that may be cut: the bytes of JSON for each, and the text in which it says so.  The diff
# gets the rest.
_ROOM = {
    "edits": (116 * 1024, "description"),
    "problems": (48 * 1024, "message"),
    "hooks": (16 * 1024, "output"),
}
_SMALL = 16 * 1024  # all of a report, in the usual case: less than the least room
_ROOM_FOR_PROMPT = 44 * 1024
_ROOM_FOR_CANDIDATES = 16 * 1024
_ROOM_FOR_CORRECTIONS = 4 * 1024
_ROOM_FOR_MARK = 200
_ROOM_BETWEEN = 4


def fitted(report: Report) -> Report:
    """Return the report cut to `MAX_BYTES`.

    Its lists and its prompt are cut first, then its diff.
    """
    value = plain(report)
    if len(json.dumps(value)) <= _SMALL:
        return report
    for key, (room, says) in _ROOM.items():
        kept = _head(value[key], room)
        if left := len(value[key]) - len(kept):
            mark = f"(… {left} more {key} are left out here)"
            kept[-1] = {**kept[-1], says: f"{kept[-1][says] or ''} {mark}".lstrip()}
        value[key] = kept
    prompt, diff = value["retry"]["prompt"], value["diff"]
    value["retry"]["prompt"] = prompt and _cut(prompt, _ROOM_FOR_PROMPT)
    value["diff"] = ""
    value["diff"] = _cut(diff, MAX_BYTES - _size(value))
    return convert(value, Report)


def _head(entries: Sequence[T], room: int) -> list[T]:
    """Return the first entries that fit into `room` bytes, at least one."""
    totals = accumulate(_size(entry) + _ROOM_BETWEEN for entry in entries)
    fits = sum(1 for _ in takewhile(lambda total: total <= room - _ROOM_FOR_MARK, totals))
    return list(entries[: max(1, fits)])


def _cut(text: str, room: int) -> str:
    """Return the lines of `text` that fit into `room` bytes of JSON.

    A mark says how much was cut.
    """
    if _size(text) <= room:
        return text
    head = text[: max(0, room)]
    end = bisect_right(range(len(head)), room - _ROOM_FOR_MARK, key=lambda end: _size(head[:end]))
    kept = head[: head.rfind("\n", 0, end) + 1]
    return f"{kept}… {len(text) - len(kept)} more characters are left out here\n"


def _size(value: object) -> int:
    return len(printed(value).encode())
