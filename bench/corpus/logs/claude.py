"""Cases from the logs of Claude Code's sessions (`~/.claude/projects/*/*.jsonl`).

Each line is one event.  An assistant's message holds calls (`tool_use`, with `id`, `name`,
`input`), the user's message behind it their results (`tool_result`, with `tool_use_id` and
`is_error`), and beside the latter `toolUseResult` tells what the tool did: `filePath`,
`originalFile` (`originalFileContents` of a MultiEdit), `structuredPatch` (hunks of lines),
`userModified`; a `Read` gives `file` with `content`, `startLine`, `numLines`, `totalLines`.

A case is one call whose file is known as it was, and as it became.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from bench.corpus.cases import Case, encode
from bench.git import BenchError

EDITS = ("Edit", "MultiEdit", "Write")
REFUSALS = ("matches of the string to replace", "are exactly the same")
"""What the tool says of a call that no careful reader can follow."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    id: str
    name: str
    input: Mapping[str, Any]
    cwd: str


@dataclass(slots=True)
class Session:
    """What is known by a place in the log: calls without a result yet, files by absolute path."""

    calls: dict[str, ToolCall] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)


def claude_cases(place: Path) -> Iterator[Case]:
    """The cases of a log, or of all logs below a folder."""
    paths = sorted(place.rglob("*.jsonl")) if place.is_dir() else [place]
    if not paths:
        raise BenchError(f"no log of Claude Code: {place}")
    seen: set[str] = set()
    for path in paths:
        session = Session()
        for event in _events(path):
            for case in _cases(session, event):
                if case.id not in seen:  # a session that is resumed repeats its past
                    seen.add(case.id)
                    yield case


def _events(path: Path) -> Iterator[dict[str, Any]]:
    try:
        with path.open(encoding="utf-8", errors="surrogateescape") as lines:
            for line in lines:
                try:
                    event = json.loads(line)
                except ValueError:  # a line that was being written
                    continue
                if isinstance(event, dict):
                    yield event
    except OSError as error:
        raise BenchError(f"no log of Claude Code: {path}: {error}") from error


def _cases(session: Session, event: Mapping[str, Any]) -> Iterator[Case]:
    message = event.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    blocks = (
        [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    )
    for block in blocks:
        if block.get("type") == "tool_use" and isinstance(block.get("input"), dict):
            id = str(block.get("id"))
            cwd = str(event.get("cwd") or "")
            session.calls[id] = ToolCall(id, str(block.get("name")), block["input"], cwd)
        elif block.get("type") == "tool_result":
            call = session.calls.pop(str(block.get("tool_use_id")), None)
            if call and (case := _case(session, call, block, event.get("toolUseResult"))):
                yield case


def _case(session: Session, call: ToolCall, result: Mapping[str, Any], done: object) -> Case | None:
    facts = done if isinstance(done, dict) else {}
    path = str(call.input.get("file_path") or "")
    if call.name == "Read":
        _learn(session, facts)
        return None
    if call.name not in EDITS or not path:
        return None
    if result.get("is_error"):
        old = session.files.get(path)
        clear = any(words in json.dumps(result.get("content")) for words in REFUSALS)
        return _written(call, path, old, old, "refuse") if clear and old is not None else None
    known = _original(facts, session.files.get(path))
    session.files.pop(path, None)
    old, told = known
    new = None if facts.get("userModified") else _after(call, facts, old)
    if new is None:
        return None
    session.files[path] = new
    if old is None and call.name != "Write":
        return None
    certain = told and not (call.name == "Write" and old)
    return _written(call, path, old, new, "exact" if certain else "exact_or_refuse")


def _learn(session: Session, facts: Mapping[str, Any]) -> None:
    """A file that was read as a whole."""
    file = facts.get("file")
    if not isinstance(file, dict) or not isinstance(file.get("content"), str):
        return
    if file.get("startLine") == 1 and file.get("numLines") == file.get("totalLines"):
        session.files[str(file.get("filePath"))] = file["content"]


def _original(facts: Mapping[str, Any], known: str | None) -> tuple[str | None, bool]:
    """The file as the call met it, and whether the tool itself says so."""
    for key in ("originalFile", "originalFileContents"):
        if isinstance(facts.get(key), str):
            return facts[key], True
    if facts.get("type") == "create":
        return None, True
    return known, False


def _after(call: ToolCall, facts: Mapping[str, Any], old: str | None) -> str | None:
    """The file as the call left it: by the tool's own hunks, else by what the call says."""
    if call.name == "Write":
        content = call.input.get("content")
        return content if isinstance(content, str) else None
    if old is None:
        return None
    hunks = facts.get("structuredPatch")
    if isinstance(hunks, list) and hunks and (patched := patched_by(old, hunks)) is not None:
        return patched
    new: str | None = old
    for edit in call.input.get("edits") or [call.input]:
        new = _replaced(new, edit) if isinstance(edit, dict) and new is not None else None
    return new


def _replaced(text: str, edit: Mapping[str, Any]) -> str | None:
    old, new = edit.get("old_string"), edit.get("new_string")
    if not isinstance(old, str) or not isinstance(new, str):
        return None
    if not old:
        return None if text else new
    if not new and not old.endswith("\n") and f"{old}\n" in text:
        old += "\n"
    count = text.count(old)
    return text.replace(old, new) if count == 1 or (count and edit.get("replace_all")) else None


def patched_by(old: str, hunks: Sequence[Mapping[str, Any]]) -> str | None:
    """A text after a tool's hunks; None where they are not of this text (some versions show blanks
    for tabs in them)."""
    lines, new, at = old.split("\n"), list[str](), 0
    try:
        for hunk in hunks:
            start = max(int(hunk["oldStart"]) - 1, 0)
            new += lines[at:start]
            at = start
            for line in hunk["lines"]:
                if line[:1] in {" ", "-"} and lines[at] != line[1:]:
                    return None
                at += line[:1] in {" ", "-"}
                new += [line[1:]] if line[:1] in {" ", "+"} else []
    except (KeyError, IndexError, TypeError, ValueError):
        return None
    ends = [line for line in hunks[-1]["lines"] if line.startswith("\\")]
    return None if ends else "\n".join([*new, *lines[at:]])


def _written(
    call: ToolCall, path: str, old: str | None, new: str | None, expect: str
) -> Case | None:
    """The call as an answer of the API that names the path below its working directory."""
    try:
        name = str(PurePosixPath(path).relative_to(call.cwd))
    except ValueError:
        return None
    use = {"type": "tool_use", "id": call.id, "name": call.name,
           "input": {**call.input, "file_path": name}}  # fmt: skip
    answer = {"type": "message", "role": "assistant", "stop_reason": "tool_use", "content": [use]}
    other = {
        "README": b"A file that is there already.\n"
    }  # a branch needs a commit, and that a file
    return Case(
        id=f"claude-{call.id}",
        source="claude-log",
        format=call.name,
        slip="none",
        response=encode(json.dumps(answer)),
        before=other | ({} if old is None else {name: encode(old)}),
        after={name: None if new is None else encode(new)},
        expect=expect,
    )
