"""Reading of agents' own output: a session's events, and the input of hooks.

    {"type": "assistant", "message": {"content": [{"type": "tool_use", "id": "toolu_1", …}]}}
    {"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": "toolu_1", …}]}}
    {"type": "result", "subtype": "success", "is_error": false, "result": "…"}

A session tells what became of its calls: one that was denied, or failed, has changed nothing.  So a
call counts once by its id, and only if a result says that it was made; how the session ended tells
whether all of it is there.  A hook's object is one call, which is about to be made.

The events of Claude Code are read.  What an event of another kind says is passed over, unless it
holds a call.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain

from msgspec.structs import replace

from patchq.core.formats.envelope.api_json import (
    ApiAnswer,
    ApiPart,
    ApiText,
    ToolCall,
    call_in,
    cut_of,
    items_of,
    joined,
    open_api,
    parts_of_message,
)
from patchq.core.formats.format import UnreadableEdit
from patchq.core.text import jsonish
from patchq.core.text.jsonish import JsonError, Node

_CALLED = frozenset({"PreToolUse", "PermissionRequest", "PostToolUse", "BeforeTool", "AfterTool"})
_EVENTS = frozenset({"system", "assistant", "user", "result"})
# Events that say nothing of their own.
_REPEATS = frozenset(
    {"stream_event", "control_request", "control_response", "rate_limit_event", "tool_progress"}
)
_ARGUMENTS = ("input", "args", "arguments", "parameters", "tool_input")
# The kinds of the events of `codex exec --json`.
_NAMES_FILES = re.compile(r"(?:thread|turn|item|session)\.[a-z_]+")
_BY_TREE = "hand in the work tree that the agent changed: `patchq submit --worktree DIR`"
_CODEX = (
    "this is what `codex exec --json` prints, which names the changed files without their text",
    _BY_TREE,
)
# Tools of Claude Code that change no file, whatever their words look like.
_TALK = frozenset({"Agent", "Task", "ExitPlanMode", "SendMessage", "LSP"})
_FAILED_WORDS = "<tool_use_error>"
WHOLE = "send the whole stream, with the results of its calls, or the edits alone"


def open_answer(text: str) -> ApiAnswer | None:
    """Return the opened answer of an API or agent, or None.

    The text as a whole must be that answer.  Raises `UnreadableEdit`.
    """
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        first, values, listed = _values(text)
        if first is None or not is_event(first):
            return open_api(values, listed=listed) if first else None
    except JsonError:
        return None
    stream = _Stream()
    try:
        for event in values:
            stream.read(event)
    except JsonError as error:
        if error.cut:
            raise _cut(error.line, "within an event") from None
        message = f"the stream cannot be read: {error}"
        raise UnreadableEdit(error.line - 1, message, WHOLE, column=error.column) from None
    return stream.answer()


def _values(text: str) -> tuple[Node | None, Iterator[Node], bool]:
    """Return the first value, all values, and whether one list holds them.

    All are read lazily, so that a text of other JSON costs no more than its first value.  Raises
    `JsonError`.
    """
    values = jsonish.parse_each(text)
    first = next(values)
    if not isinstance(first.value, list):
        return first, chain((first,), values), False
    if next(values, None) is not None:
        return None, values, False
    items: list[Node] = first.value
    return (items[0] if items else None), iter(items), True


def is_event(node: Node) -> bool:
    """Return whether a value is an event of an agent, or a hook's object."""
    kind = node.text("type") or ""
    if node.text("hook_event_name") or _NAMES_FILES.fullmatch(kind):
        return True
    message = node.get("message")
    inner = message is not None and isinstance(message.value, dict)
    if kind and (kind in _REPEATS or node.text("session_id", "sessionId", "sessionID")):
        return True
    stated = node.get("subtype", "is_error") is not None
    return kind in _EVENTS and (inner or (stated and kind in ("system", "result")))


@dataclass
class _Stream:
    parts: list[ApiPart] = field(default_factory=list)
    calls: dict[str, ToolCall] = field(default_factory=dict)
    # True if the call of that id was made, as its result says.
    made: dict[str, bool] = field(default_factory=dict)
    # The texts that were met, with their messages' ids.
    texts: set[tuple[str, str]] = field(default_factory=set)
    cwd: str | None = None
    # True if the events are those of a session, whose results tell what was made.
    session: bool = False
    ended: bool = False
    last: int = 1  # the line of the last event
    cut: str | None = None  # why the model stopped, if that was no normal end of a message
    failed: str | None = None  # how the last turn ended, if that was no success

    def read(self, event: Node) -> None:
        """Read an event; raises `UnreadableEdit`."""
        if not isinstance(event.value, dict):
            raise _unreadable(event, "expected an event, a JSON object")
        self.last, kind = event.last, event.text("type") or ""
        message = event.get("message")
        if event.text("hook_event_name"):
            self._hook(event)
        elif _NAMES_FILES.fullmatch(kind):
            raise _unreadable(event, *_CODEX)
        elif kind not in _EVENTS:
            if kind not in _REPEATS and _holds_call(event):
                raise _unreadable(event, f"an event of the kind {kind!r} holds a call")
            return
        else:
            self.session = True
        if kind == "system":
            self.cwd = event.text("cwd") or self.cwd
        elif kind == "result":
            self._result(event)
        elif message is not None and kind == "user":
            result = event.get("tool_use_result", "toolUseResult")
            changed = result.get("userModified") if result is not None else None
            if changed is not None and changed.value is True:
                raise _unreadable(event, "a person changed an edit of this stream", _BY_TREE)
            self._results(message)
        elif message is not None:
            of_another = event.text("parent_tool_use_id") is not None
            self._message(message, of_another=of_another)

    def _hook(self, event: Node) -> None:
        name, given = event.text("tool_name"), event.get("tool_input")
        if name is None or given is None:
            return
        kind = event.text("hook_event_name")
        if kind not in _CALLED:
            raise _unreadable(event, f"a hook's object of the kind {kind!r} tells no call")
        at = event.line, event.last
        id, cwd = event.text("tool_use_id"), event.text("cwd")
        self._call(ToolCall(name, given, at, id, cwd=cwd), event)

    def _message(self, message: Node, *, of_another: bool) -> None:
        """Take in a message, which may come in pieces, and again with the next.

        The text of another agent is no part of the answer.
        """
        self.ended, self.failed = False, None
        self.cut = cut_of(message.get("stop_reason")) or self.cut
        for part in parts_of_message(message):
            if not isinstance(part, ApiText):
                self._call(replace(part, cwd=self.cwd), message)
            elif not of_another:
                text = message.text("id") or "", part.text
                if not (text[0] and text in self.texts):
                    self.parts.append(part)
                self.texts.add(text)

    def _call(self, call: ToolCall, node: Node) -> None:
        if call.id is None and self.session:
            raise _unreadable(node, "a call in this stream has no id")
        known = call if call.id is None else self.calls.setdefault(call.id, call)
        if known is call:
            self.parts.append(call)
        elif (known.name, known.arguments.plain()) != (call.name, call.arguments.plain()):
            raise _unreadable(node, f"two different calls have the id {call.id!r}")

    def _results(self, message: Node) -> None:
        items = [
            (key, item)
            for item in items_of(message.get("content"))
            if item.text("type") == "tool_result" and (key := item.text("tool_use_id"))
        ]
        for key, item in items:
            error, inner = item.get("is_error"), items_of(item.get("content"))
            words = item.text("content") or next((one.text("text") for one in inner), None)
            failed = (words or "").startswith(_FAILED_WORDS) or bool(error and error.value)
            self.made[key] = self.made.get(key, True) and not failed

    def _result(self, event: Node) -> None:
        """Read the end of a turn, whose text repeats the last message."""
        self.ended = True
        error, how = event.get("is_error"), event.text("subtype") or "success"
        failed = error is not None and bool(error.value)
        self.cut = cut_of(event.get("stop_reason")) or self.cut
        self.failed = how if how != "success" else "an error" if failed else None
        for denied in items_of(event.get("permission_denials")):
            self.made[denied.text("tool_use_id") or ""] = False
        if not (self.texts or self.calls) and (text := event.text("result")):
            self.parts.append(ApiText(text, (event.line, event.last)))

    def answer(self) -> ApiAnswer:
        if self.failed:
            raise _cut(self.last, f"in {self.failed}")
        if self.session and not (self.ended or self.cut):
            raise _cut(self.last, "without its event `result`")
        if not self.session:
            return ApiAnswer(tuple(joined(self.parts)), self.cut)
        parts = [made for part in self.parts if (made := self._made(part))]
        return ApiAnswer(tuple(joined(parts)), self.cut, self.cwd)

    def _made(self, part: ApiPart) -> ApiPart | None:
        """Return the part, with the fate of its call; None for a call that was not made."""
        if isinstance(part, ApiText):
            return part
        made = self.made.get(part.id or "")
        left_out = made is False or part.name in _TALK
        return None if left_out else replace(part, certain=bool(made))


def _cut(line: int, how: str) -> UnreadableEdit:
    hint = "let the agent go on to its end, and send the whole stream, or the edits alone"
    return UnreadableEdit.cut(line - 1, f"the stream ends {how}", hint)


def _unreadable(node: Node, message: str, hint: str = WHOLE) -> UnreadableEdit:
    return UnreadableEdit(node.line - 1, message, hint)


def _holds_call(node: Node) -> bool:
    if isinstance(node.value, list):
        return any(map(_holds_call, node.value))
    if not isinstance(node.value, dict):
        return False
    given = (node.get(key) for key in _ARGUMENTS)
    if any(arguments is not None and isinstance(arguments.value, dict) for arguments in given):
        return True
    return call_in(node) is not None or any(map(_holds_call, node.value.values()))
