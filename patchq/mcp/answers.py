"""Arguments and answers of the tools: for programs by their schemas, and as text for a model."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Required, cast

import mcp_types as types
from msgspec.structs import replace
from pydantic import AfterValidator, Field
from typing_extensions import TypedDict

from patchq.core import formats
from patchq.core.formats.envelope.front_matter import open_response
from patchq.core.model.names import batch_id, suggestion
from patchq.core.model.ops import (
    Create,
    DeleteFile,
    PatchHunk,
    Rename,
    Replace,
    ReplaceText,
    Write,
    halves,
)
from patchq.core.model.values import Edit, EditOutcome, Envelope
from patchq.core.text.quote import clip, fence, visible
from patchq.gate.api import Gate
from patchq.gate.api.submitting import Change, FileEdit
from patchq.gate.errors import Fault, UsageError
from patchq.gate.report.document import plain, printed
from patchq.gate.report.page import BASE_IN_DOUBT
from patchq.gate.report.schema import ProblemEntry, Report, waits_for_its_agent

LONGEST_WAIT_SECONDS = 600.0
_MOST_FLAWS = 5


def _one_line(text: str) -> str:
    """Return a path or a name; a line end in it would begin another key."""
    if not text or any(ord(character) < 32 or ord(character) == 127 for character in text):
        raise ValueError("expected text, not empty, and without control characters")
    return text


def _plain_id(text: str) -> str:
    if batch_id(text) != text:
        raise ValueError("no change has such an id")
    return text


Path = Annotated[str, AfterValidator(_one_line), Field(max_length=1024)]
Word = Annotated[str, AfterValidator(_one_line), Field(max_length=500)]
ChangeId = Annotated[str, AfterValidator(_plain_id)]
Seconds = Annotated[float, Field(ge=0, le=LONGEST_WAIT_SECONDS)]
Edits = Annotated[list[FileEdit] | None, Field(min_length=1)]
Response = Annotated[str, Field(description="edits in any form that patchq reads")]
Base = Annotated[Word | None, Field(description="the commit you read the files from")]
Target = Annotated[Word | None, Field(description="a branch; else the configured one")]


class CommentAnswer(TypedDict):
    """An answer to the comment of this id."""

    comment: Word
    text: Word


def change_of(edits: list[FileEdit] | None, response: str) -> Change:
    """Return the edits or the response; raises `UsageError` for both, or neither."""
    if bool(edits) == bool(response):
        raise UsageError("expected one of `response` and `edits`, and it not empty")
    return edits or response


EXAMPLE = {"path": "PATH", "old": "exact text of the file, once in it", "new": "what replaces it"}


def how_to_submit(base: str) -> str:
    """Return instructions to change the files of a prompt by the arguments of `submit`."""
    shown = fence(json.dumps({"base": base, "edits": [EXAMPLE]}, indent=1), "json")
    return (
        f"## How to answer\n\nCall `submit` with these arguments, or `check` to try:\n\n{shown}\n\n"
        "An edit with `new` alone has the whole text of its file; `delete` and `rename_to` do what "
        "they say. Change no other file."
    )


def usage_error(tool: str, names: Iterable[str], flaws: Sequence[Mapping[str, Any]]) -> UsageError:
    """Return the error for wrong arguments of a tool."""
    wrong = "; ".join(_flaw(flaw, names) for flaw in flaws[:_MOST_FLAWS])
    return UsageError(f"{tool}: {wrong}", f"it takes {', '.join(names)}")


def _flaw(flaw: Mapping[str, Any], names: Iterable[str]) -> str:
    place = clip(".".join(map(str, flaw["loc"])), 100)
    if flaw["type"] in ("extra_forbidden", "unexpected_keyword_argument"):
        known = names if len(flaw["loc"]) == 1 else FileEdit.__annotations__
        meant = suggestion(str(flaw["loc"][-1])[:100], known)
        return "; ".join(filter(None, (f"there is no argument `{place}`", meant)))
    message = flaw["msg"].removeprefix("Value error, ")
    return f"`{place}`: {message}" if place else str(message)


# ---------------------------------------------------------------- answers


_MOST_PROBLEMS, _MOST_EDITS = 20, 100
_OF_PROBLEMS = (
    "code", "severity", "message", "hint", "edit", "path", "line", "conflicts_with",
)  # fmt: skip
_OF_EDITS = ("id", "path", "state", "match", "lines")
_COMMAND = re.compile(r"`patchq (\w[\w-]*)\b[^`\n]*`")
# The tools that do what commands do; the other commands are a person's.
_TOOLS = {
    "status": "status", "log": "status", "show": "report", "wait": "wait", "submit": "submit",
    "retry": "submit", "check": "check",
}  # fmt: skip


class VerdictAnswer(TypedDict, total=False):
    """Verdict on a change; `waiting` is one without a verdict."""

    id: str
    state: Required[str]
    problems: Required[list[dict[str, Any]]]
    edits: list[dict[str, Any]]
    left_out: int
    target: str
    base: str
    branch: str
    commit: str
    duplicate_of: str
    note: str
    token: str
    risk: str
    report: dict[str, Any]


class StatusAnswer(TypedDict, total=False):
    """State of the queue."""

    daemon: Required[bool]
    mode: Required[str]
    inbox: Required[int]
    trains: Required[list[str]]
    troubles: Required[list[str]]
    batches: Required[list[dict[str, Any]]]
    left_out: Required[int]
    target: str
    busy: str


class PromptAnswer(TypedDict):
    """Files with their base, and how to change them."""

    base: str
    prompt: str


def result(value: Mapping[str, Any], text: str, *, refused: bool = False) -> types.CallToolResult:
    """Return the answer of a tool, without unknown values."""
    known = {key: item for key, item in value.items() if item is not None}
    return types.CallToolResult(
        content=[types.TextContent(text=_of_tools(text))],
        structured_content=json.loads(printed(known)) if known else None,
        is_error=refused,
    )


def _of_tools(text: str) -> str:
    return _COMMAND.sub(lambda it: f"`{_TOOLS[it[1]]}`" if it[1] in _TOOLS else it[0], text)


def _hint(text: str | None) -> str | None:
    """Return a hint in the tools' words; None if it names people's commands."""
    hint = _of_tools(text or "")
    return None if _COMMAND.search(hint) else hint or None


def for_tools(report: Report) -> Report:
    """Return the report with its problems in the tools' words."""
    problems = [
        replace(one, message=_of_tools(one.message), hint=_hint(one.hint))
        for one in report.problems
    ]
    return replace(report, problems=problems)


def text_of(fault: Fault) -> str:
    """Return a fault as text: its code, message and cure."""
    lines = [f"{fault.code}: {fault.message}", *([fault.hint] if fault.hint else [])]
    return visible("\n".join(lines), keep="\n")


def verdict(report: Report, note: str = "") -> VerdictAnswer:
    """Return the report's facts, as many as an answer holds."""
    problems, edits = report.problems, report.edits
    value = {
        "id": report.id,
        "state": report.state,
        "problems": [_known(problem, *_OF_PROBLEMS) for problem in problems[:_MOST_PROBLEMS]],
        "edits": [_known(edit, *_OF_EDITS) for edit in edits[:_MOST_EDITS]],
        "left_out": len(problems[_MOST_PROBLEMS:]) + len(edits[_MOST_EDITS:]) or None,
        "base": report.base.commit if report.base else None,
        "note": note or None,
        **_known(report, "target", "branch", "commit", "duplicate_of"),
    }
    return cast(VerdictAnswer, value)


def _known(entry: Any, *keys: str) -> dict[str, Any]:
    found = {key: plain(getattr(entry, key)) for key in keys}
    return {key: value for key, value in found.items() if value is not None}


# ---------------------------------------------------------------- what may follow a refusal


MAX_BYTES = 64 * 1024
# Codes of edits that no correction lets in: their files are not read.
_NOT_LET_IN = ("path.denied", "path.filtered", "path.outside", "path.invalid", "file.")


def what_to_send(gate: Gate, report: Report, data: bytes | None) -> str:
    """Return the `submit` call to send after a refusal or a send-back."""
    arguments = _arguments(gate, report, data)
    shown = fence(json.dumps(arguments, ensure_ascii=False, indent=1), "json")
    if len(shown.encode()) > MAX_BYTES:
        shown = fence(json.dumps({**arguments, "edits": [EXAMPLE]}, indent=1), "json")
    return (
        "Call `submit` with these arguments, once every edit is right; all are applied, or none. "
        "One that has its `path`, and no `new`, is yours to write, or to leave out: its `old` has "
        "lines of the file at `base`, and what of `old` is not in `new` is deleted."
        f"\n\n{shown}"
    )


def _arguments(gate: Gate, report: Report, data: bytes | None) -> dict[str, Any]:
    context = gate.context()
    codes = {problem.code for problem in report.problems}
    base = report.base.commit if report.base and not codes & BASE_IN_DOUBT else None
    if report.state != "rejected" or base is None:  # an answer begins on the target as it is
        base = context.branches.tip(report.target or context.target) or base
    edits = list(_edits(gate, report, data, base)) if data and base else []
    retried = report.id if context.queue.load(report.id) else report.retry.of
    other = report.target if report.target != context.target else None
    known: dict[str, Any] = {"retries": retried, "base": base, "target": other}
    if report.review and waits_for_its_agent(report):
        known["answers"] = [
            {"comment": one.id, "text": "YOUR WORDS"} for one in report.review.unresolved
        ]
    return {
        **{key: value for key, value in known.items() if value},
        "edits": edits or [EXAMPLE],
    }


def _edits(gate: Gate, report: Report, data: bytes, base: str) -> Iterator[Mapping[str, Any]]:
    repo, opened = gate.context().repo, open_response(data)
    if not isinstance(opened, Envelope):
        return
    tree, read = repo.tree(base), repo.tree(report.base.commit) if report.base else None
    parsed = formats.parse(
        opened.text, lambda path: tree.entry(path) is not None, opened.header, opened.first_line
    )
    wrong = {p.edit: p for p in report.problems if p.edit and p.severity == "error"}
    outcomes = {outcome.id: outcome for outcome in report.edits}
    declared = report.base is not None and report.base.how == "declared"
    for edit in parsed.edits:
        problem, path = wrong.get(edit.id), edit.path
        if problem and problem.code.startswith(_NOT_LET_IN):
            yield {"path": path}
            continue
        entry = tree.entry(path)
        text = tree.read(path).decode("utf-8", "replace") if entry else None
        is_as_read = read is not None and read.entry(path) == entry
        meant = _meant(edit, text, problem, declared) if is_as_read else None
        yield {"path": path, **(meant or _to_read(edit, text, problem, outcomes.get(edit.id)))}


def _meant(
    edit: Edit, text: str | None, problem: ProblemEntry | None, declared: bool
) -> Mapping[str, Any] | None:
    """Return arguments that do what the edit means; None if they might do more.

    The file is as it was when the response was made.
    """
    op, is_sound = edit.op, problem is None
    match op:
        case Rename(to):
            return {"rename_to": to}
        case DeleteFile() if is_sound and declared:
            return {"delete": True}
        case Create(new) | Write(new) if text is None:
            return {"new": new}
        case Write(new) if is_sound and declared:
            return {"new": new}
        case ReplaceText(old, new, count) if op == ReplaceText(old, new, count, op.stated):
            if count != 1 and is_sound:
                return {"old": old, "new": new, "replace_all": True}
            return {"old": old, "new": new} if is_sound or _occurs_once(text, old) else None
        case Replace(old, new) | PatchHunk(old, new, bare=None, final_newline=True):
            missed = problem is not None and problem.code.startswith("match.")
            is_certain = (
                not missed and _occurs_once(text, old) and _occurs_once(f"\n{text}", f"\n{old}")
            )
            return {"old": old, "new": new} if is_certain and old.endswith("\n") else None
    return None


def _occurs_once(text: str | None, quote: str) -> bool:
    return bool(quote) and (text or "").replace("\r\n", "\n").count(quote) == 1


def _to_read(
    edit: Edit, text: str | None, problem: ProblemEntry | None, outcome: EditOutcome | None
) -> Mapping[str, Any]:
    """Return the lines that the edit may mean; without `new`, it is refused."""
    if not text:
        return {}
    old = halves(edit.op)[0]
    if _occurs_once(text, old):
        return {"old": old}
    lines = outcome.lines if outcome and outcome.lines else (1, 1)
    first = problem.line if problem and problem.line else lines[0]
    return {"old": _once(text, first - 1, len(old.splitlines()))}


def _once(text: str, first: int, count: int) -> str:
    lines = text.splitlines(keepends=True)
    first = min(max(first, 0), max(len(lines) - 1, 0))
    last = min(first + max(count, 1), len(lines))
    while text.count(found := "".join(lines[first:last])) > 1 or not found.strip():
        if (first, last) == (0, len(lines)):
            break
        first, last = max(first - 1, 0), min(last + 1, len(lines))
    return found
