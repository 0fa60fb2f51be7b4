"""Answers of the tools: for programs by their schemas, and as text for a model."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Required, cast

import mcp_types as types
from msgspec.structs import replace
from typing_extensions import TypedDict

from patchq.core.text.quote import visible
from patchq.gate.errors import Fault
from patchq.gate.report.document import plain, printed
from patchq.gate.report.schema import Report

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
    """Return the answer of a tool; what is not known is left out."""
    known = {key: item for key, item in value.items() if item is not None}
    return types.CallToolResult(
        content=[types.TextContent(text=_of_tools(text))],
        structured_content=json.loads(printed(known)) if known else None,
        is_error=refused,
    )


def _of_tools(text: str) -> str:
    """Return the text with tools in place of the commands that do the same."""
    return _COMMAND.sub(lambda it: f"`{_TOOLS[it[1]]}`" if it[1] in _TOOLS else it[0], text)


def _hint(text: str | None) -> str | None:
    """Return a hint in words of tools; None where it names a command that is a person's."""
    hint = _of_tools(text or "")
    return None if _COMMAND.search(hint) else hint or None


def for_tools(report: Report) -> Report:
    """Return the report with problems that speak of tools."""
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
    """Return what the entry has under these keys."""
    found = {key: plain(getattr(entry, key)) for key in keys}
    return {key: value for key, value in found.items() if value is not None}
